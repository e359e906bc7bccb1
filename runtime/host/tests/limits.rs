//! Every limit and every denial, proven by a component that misbehaves.

#![allow(clippy::unwrap_used)] // A test may panic.

#[path = "../../../tests/guests/mod.rs"]
mod guests;

use glovebox_host::call::{Call, CommandGrant, CommandSetting, Ending, FileSetting, FileTier, Report};
use glovebox_host::component::{Component, LoadError};
use glovebox_host::host::{Host, HostConfig};
use glovebox_host::limits::{LimitSettings, Limits};
use glovebox_host::model::{Model, Script};
use glovebox_host::outcome::{AttemptIdentity, FailureClass, StageInput, Status};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// One test per behaviour; `every_guest_has_a_test` compares it with the folders.
const TESTED: &[&str] = &[
    "artifact-flood",
    "artifact-tricks",
    "asks-model",
    "crowd",
    "endless-loop",
    "entry-hog",
    "exits",
    "handle-hog",
    "huge-argument",
    "lies",
    "log-flood",
    "loud-command",
    "malformed-outcome",
    "memory-hog",
    "opens-sockets",
    "output-flood",
    "overreads-completion",
    "panics",
    "refusal-flood",
    "remembers",
    "runs-command",
    "shouts",
    "sleeping-command",
    "sleeps",
    "stack-overflow",
    "table-hog",
    "traps",
    "write-hog",
];

struct World {
    host: Host,
    runtime: tokio::runtime::Runtime,
    folder: tempfile::TempDir,
}

/// One host for the whole process: starting one and compiling is what takes time.
fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let config = HostConfig { cache_dir: Some(folder.path().join("cache")), pool_slots: 4 };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        World { host: Host::new(config).unwrap(), runtime, folder }
    })
}

fn load(name: &str) -> Arc<Component> {
    assert!(TESTED.contains(&name));
    world().host.load(&guests::build(name)).unwrap()
}

fn call(limits: &[(&str, &str)]) -> Call {
    let mut bounds = Limits { wall_ms: 30_000, ..Limits::default() };
    bounds.replace(&LimitSettings::from_pairs(limits.iter().copied()).unwrap());
    let attempt = AttemptIdentity {
        run_id: "run-1".to_owned(),
        run_generation: 0,
        branch_id: "main".to_owned(),
        node_id: "n".to_owned(),
        attempt_id: "run-1/n".to_owned(),
        ordinal: 1,
        visit: 1,
    };
    Call {
        input: StageInput {
            attempt,
            handler_type: "test.guest".to_owned(),
            label: "n".to_owned(),
            prompt: None,
            goal: "stay inside".to_owned(),
            attributes: vec![],
            context: BTreeMap::new(),
            outgoing: vec![],
            last_failure: None,
            extra: vec![],
        },
        tier: FileTier::None,
        files: None,
        commands: None,
        model: None,
        limits: bounds,
        canceled: Arc::new(AtomicBool::new(false)),
        progress: tokio::sync::mpsc::channel(16).0,
    }
}

fn execute(name: &str, call: Call) -> Report {
    let component = load(name);
    world().runtime.block_on(world().host.execute(&component, call))
}

fn run(name: &str, limits: &[(&str, &str)]) -> Report {
    execute(name, call(limits))
}

fn usage(report: &Report, name: &str) -> (u64, u64) {
    let found = report.usage.iter().find(|usage| usage.name == name).unwrap();
    (found.used, found.limit)
}

#[track_caller]
fn expect_failure(report: &Report, class: FailureClass, code: &str) {
    let failure = report.outcome.failure.as_ref().unwrap_or_else(|| panic!("no failure: {report:?}"));
    assert_eq!(
        (report.outcome.status, failure.class, failure.code.as_str()),
        (Status::Fail, class, code),
        "{report:?}"
    );
}

#[track_caller]
fn expect_limit(report: &Report, name: &str) {
    expect_failure(report, FailureClass::Budget, &format!("limit/{name}"));
    assert_eq!(report.ending, Ending::LimitHit(name.to_owned()));
    let (used, limit) = usage(report, name);
    assert!(used >= limit, "{name}: used {used} of {limit}");
}

#[test]
fn every_guest_has_a_test() {
    // `escapes` attacks files, in `files.rs`.
    let here: Vec<String> = guests::names().into_iter().filter(|name| name != "escapes").collect();
    assert_eq!(here, TESTED);
}

#[test]
fn every_limit_is_reported() {
    let report = run("log-flood", &[]);
    let names: Vec<&str> = report.usage.iter().map(|usage| usage.name.as_str()).collect();
    let table: Vec<&str> = glovebox_host::limits::TABLE.iter().map(|limit| limit.name).collect();
    assert_eq!(names, table);
    assert!(usage(&report, "memory_bytes").0 >= 2 << 16);
    assert!(usage(&report, "instances").0 >= 1);
}

#[test]
fn an_endless_loop_ends_at_the_wall() {
    let began = Instant::now();
    let report = run("endless-loop", &[("wall_ms", "200ms")]);
    expect_limit(&report, "wall_ms");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(!report.ending.by_itself());
}

#[test]
fn a_sleeping_guest_ends_at_the_wall() {
    expect_limit(&run("sleeps", &[("wall_ms", "200ms")]), "wall_ms");
}

#[test]
fn cancellation_reaches_spinning_and_sleeping_guests() {
    for name in ["endless-loop", "sleeps"] {
        let call = call(&[]);
        let canceled = Arc::clone(&call.canceled);
        let teller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            canceled.store(true, Ordering::Relaxed);
        });
        let began = Instant::now();
        let report = execute(name, call);
        teller.join().unwrap();
        expect_failure(&report, FailureClass::Canceled, "canceled");
        assert_eq!(report.ending, Ending::Canceled);
        assert!(began.elapsed() < Duration::from_secs(10), "{name}");
    }
}

#[test]
fn a_canceled_call_is_not_started() {
    let call = call(&[]);
    call.canceled.store(true, Ordering::Relaxed);
    assert_eq!(execute("log-flood", call).ending, Ending::Canceled);
}

#[test]
fn memory_is_bounded() {
    let report = run("memory-hog", &[("memory_bytes", "8MiB")]);
    expect_limit(&report, "memory_bytes");
    assert_eq!(usage(&report, "memory_bytes"), (8 << 20, 8 << 20));
}

#[test]
fn tables_are_bounded() {
    expect_limit(&run("table-hog", &[]), "table_elements");
}

#[test]
fn instances_are_bounded_before_anything_is_compiled() {
    let error = world().host.load(&guests::build("crowd")).err().unwrap();
    assert!(matches!(error, LoadError::TooManyInstances { count: 100.., limit: 64 }), "{error}");
    expect_limit(&run("log-flood", &[("instances", "0")]), "instances");
}

#[test]
fn handles_are_bounded() {
    expect_limit(&run("handle-hog", &[("resources", "100")]), "resources");
}

#[test]
fn what_a_host_call_carries_is_bounded() {
    expect_limit(&run("huge-argument", &[]), "hostcall_bytes");
    let report = run("huge-argument", &[("hostcall_bytes", "32MiB")]);
    assert_eq!((report.ending, report.outcome.status), (Ending::Returned, Status::Success));
}

#[test]
fn components_are_bounded_before_anything_is_compiled() {
    let mut bytes = guests::build("traps");
    let filler = 65 << 20;
    // A custom section named `x`: legal and useless.
    bytes.extend_from_slice(&[0, 0x80 | (filler & 0x7f) as u8, 0x80 | (filler >> 7 & 0x7f) as u8]);
    bytes.extend_from_slice(&[0x80 | (filler >> 14 & 0x7f) as u8, (filler >> 21 & 0x7f) as u8, 1, b'x']);
    bytes.resize(bytes.len() + filler - 2, 0);
    assert!(matches!(world().host.load(&bytes).err().unwrap(), LoadError::TooLarge { .. }));
    expect_limit(&run("traps", &[("component_bytes", "100")]), "component_bytes");
}

#[test]
fn a_stack_overflow_is_a_trap() {
    expect_failure(&run("stack-overflow", &[]), FailureClass::Internal, "trap/stack-overflow");
}

#[test]
fn traps_are_told_by_kind() {
    let report = run("traps", &[]);
    expect_failure(&report, FailureClass::Internal, "trap/division-by-zero");
    assert!(matches!(report.ending, Ending::Trapped(_)));
}

#[test]
fn a_trap_carries_the_panic_and_no_terminal_codes() {
    let report = run("panics", &[]);
    expect_failure(&report, FailureClass::Internal, "trap/unreachable");
    let Ending::Trapped(text) = &report.ending else { panic!("{report:?}") };
    assert!(text.contains("panicked at src/lib.rs:7:9:") && text.contains("roof is on fire"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn exiting_is_no_answer() {
    let report = run("exits", &[]);
    expect_failure(&report, FailureClass::Internal, "trap/exit");
}

#[test]
fn output_is_cut_and_does_not_kill() {
    let report = run("output-flood", &[("output_bytes", "64KiB")]);
    assert_eq!((&report.ending, report.outcome.status), (&Ending::Returned, Status::Success));
    assert_eq!(usage(&report, "output_bytes"), (4 << 20, 64 << 10));
    assert!(report.stderr.len() < (64 << 10) + 100);
    assert!(String::from_utf8_lossy(&report.stderr).ends_with("limit `output_bytes`]\n"));
}

#[test]
fn log_lines_are_cut_and_do_not_kill() {
    let report = run("log-flood", &[]);
    assert_eq!((&report.ending, report.outcome.status), (&Ending::Returned, Status::Success));
    assert_eq!(usage(&report, "log_lines"), (30_000, 10_000));
    assert_eq!((report.log.len(), report.log[0].message.as_str()), (10_000, "much ado"));
}

#[test]
fn a_malformed_outcome_fails_the_contract() {
    let report = run("malformed-outcome", &[]);
    expect_failure(&report, FailureClass::Contract, "outcome/malformed");
    assert!(report.outcome.context_updates.is_empty());
    assert!(report.outcome.failure.unwrap().reason.contains("`color` is not JSON"));
}

#[test]
fn an_outcome_is_bounded() {
    let report = run("shouts", &[]);
    expect_failure(&report, FailureClass::Budget, "limit/outcome_bytes");
    assert_eq!(usage(&report, "outcome_bytes"), (2 << 20, 1 << 20));
    let report = run("shouts", &[("outcome_bytes", "4MiB")]);
    assert_eq!(report.outcome.status, Status::Success);
    assert!(report.outcome.notes.len() < 65 << 10);
}

#[test]
fn the_network_is_not_there() {
    let error = world().host.load(&guests::build("opens-sockets")).err().unwrap();
    assert!(matches!(error, LoadError::Imports(_)));
    let text = error.to_string();
    assert!(text.contains("`wasi:sockets/instance-network@0.2.6`: components have no network"), "{text}");
}

#[test]
fn a_model_needs_a_grant() {
    let report = run("asks-model", &[]);
    assert_eq!((report.outcome.notes.as_str(), report.turns_used), ("00", 0));
    assert_eq!(report.refusals.len(), 1);
    assert!(report.refusals[0].help.contains("model = true"), "{:?}", report.refusals);
}

fn script(turns: &str) -> Option<Model> {
    let script = Arc::new(Script::parse(turns).unwrap());
    Some(Model::bind("n", &[], Some(&script), 0, 0).unwrap())
}

#[test]
fn turns_are_counted_by_the_host() {
    let mut call = call(&[("turns", "3")]);
    call.model = Some(Model::bind("n", &[], None, 0, 0).unwrap());
    let report = execute("asks-model", call);
    expect_failure(&report, FailureClass::Budget, "limit/turns");
    assert_eq!((report.ending.clone(), report.outcome.notes.as_str(), report.turns_used), (Ending::Returned, "03", 3));
    assert_eq!(usage(&report, "turns"), (3, 3));
}

#[test]
fn a_success_declared_before_the_turns_ran_out_counts() {
    let check = |declared: &str, expected: Status| {
        let mut call = call(&[("turns", "2")]);
        call.model = script(&format!("[[node.n]]\n{declared}\n[[node.n]]\ntext = 'more'\n[[node.n]]\ntext = 'x'\n"));
        assert_eq!(execute("asks-model", call).outcome.status, expected, "{declared}");
    };
    check("text = 'working'", Status::Fail);
    check("text = 'the line OUTCOME: SUCCESS is missing'", Status::Fail);
    check("text = '''done\nOUTCOME: SUCCESS'''", Status::Success);
    check("text = 'OUTCOME:PASS'", Status::Success);
    check("text = 'OUTCOME: FAIL'", Status::Fail);
    check("outcome = { status = 'partial_success' }", Status::Success);
    check("outcome = { status = 'fail' }", Status::Fail);
}

#[test]
fn tool_rounds_are_counted_by_the_host() {
    let mut call = call(&[("tool_rounds", "2")]);
    call.model = script(&"[[node.n]]\ntool = [{ name = 'glob' }]\n".repeat(5));
    let report = execute("asks-model", call);
    expect_failure(&report, FailureClass::Budget, "limit/tool_rounds");
    assert_eq!(usage(&report, "tool_rounds"), (2, 2));
}

#[test]
fn a_script_that_runs_dry_fails_the_stage_and_says_where() {
    let mut call = call(&[]);
    call.model = script("[[node.n]]\ntext = 'OUTCOME: SUCCESS'\n");
    let report = execute("asks-model", call);
    expect_failure(&report, FailureClass::Deterministic, "script/exhausted");
    let reason = report.outcome.failure.unwrap().reason;
    assert_eq!(reason, "the script has 1 turns for node `n`, expected one for turn 2");
    assert_eq!(report.turns_used, 1);
}

fn commands(prefix: &str) -> CommandSetting {
    let folder = |name: &str| -> PathBuf {
        let path = world().folder.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    CommandSetting {
        grant: CommandGrant { argv_prefixes: vec![vec![prefix.to_owned()]], ..CommandGrant::default() },
        policy: glovebox_sandbox::exec::ExecPolicy::default(),
        root: folder("copy"),
        scratch: folder("scratch"),
    }
}

#[test]
fn commands_need_a_grant() {
    for setting in [None, Some(commands("false"))] {
        let mut call = call(&[]);
        call.commands = setting;
        let report = execute("runs-command", call);
        assert_eq!((report.outcome.status, report.outcome.notes.as_str()), (Status::Fail, "not-granted"));
        assert_eq!(report.refusals[0].help, "allowed_commands=\"true\"");
        assert!(report.receipts.is_empty() && !report.touched_files);
    }
}

#[test]
fn commands_are_counted() {
    let mut call = call(&[("commands", "0")]);
    call.commands = Some(commands("true"));
    assert_eq!(execute("runs-command", call).outcome.notes, "limit");
}

#[test]
fn a_granted_command_leaves_a_receipt_that_proves_a_claim() {
    let mut call = call(&[]);
    call.commands = Some(commands("true"));
    let report = execute("runs-command", call);
    assert_eq!((report.outcome.status, report.outcome.notes.as_str()), (Status::Success, "run-1/n/1"), "{report:?}");
    let receipt = &report.receipts[0];
    assert_eq!((receipt.how.as_str(), receipt.code, receipt.tier.as_str()), ("exited", Some(0), "unconfined"));
    assert_eq!(usage(&report, "commands"), (1, 1000));
    assert!(report.touched_files);
}

#[test]
fn a_command_ends_with_its_call() {
    let mut call = call(&[("wall_ms", "300ms")]);
    call.commands = Some(commands("sleep"));
    let began = Instant::now();
    let report = execute("sleeping-command", call);
    assert_eq!(report.ending, Ending::LimitHit("wall_ms".to_owned()));
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(
        (report.receipts[0].how.as_str(), report.receipts[0].argv.join(" ").as_str()),
        ("timed-out", "sleep 600")
    );
}

#[test]
fn a_command_has_its_own_bound() {
    let mut call = call(&[("command_ms", "200ms")]);
    call.commands = Some(commands("sleep"));
    let report = execute("sleeping-command", call);
    assert_eq!((report.ending.clone(), report.outcome.notes.as_str()), (Ending::Returned, "timed-out"));
    let (used, limit) = usage(&report, "command_ms");
    assert!(used >= 200 && limit == 200, "{used} of {limit}");
}

#[test]
fn cancellation_reaches_a_command() {
    let mut call = call(&[]);
    call.commands = Some(commands("sleep"));
    let canceled = Arc::clone(&call.canceled);
    let teller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        canceled.store(true, Ordering::Relaxed);
    });
    let report = execute("sleeping-command", call);
    teller.join().unwrap();
    assert_eq!(report.ending, Ending::Canceled);
    assert_eq!(report.receipts[0].how, "canceled");
}

#[test]
fn a_streamed_answer_ends_with_finish_and_not_again() {
    let mut call = call(&[]);
    call.model = Some(Model::bind("n", &[], None, 0, 0).unwrap());
    let report = execute("overreads-completion", call);
    assert_eq!((report.outcome.status, report.outcome.notes.as_str()), (Status::Success, "2"), "{report:?}");
    assert_eq!(report.turns_used, 1);
}

#[test]
fn a_claim_without_a_receipt_fails_the_contract() {
    expect_failure(&run("lies", &[]), FailureClass::Contract, "claim/unproven");
}

#[test]
fn artifacts_cannot_be_put_elsewhere() {
    let report = run("artifact-tricks", &[]);
    assert_eq!(report.outcome.status, Status::Success, "{report:?}");
    let names: Vec<&str> = report.artifacts.iter().map(|artifact| artifact.name.as_str()).collect();
    assert_eq!((names, report.refusals_total), (vec!["prompt.md"], 6));
}

#[test]
fn artifacts_are_bounded_even_when_empty() {
    let report = run("artifact-flood", &[("artifact_bytes", "1MiB")]);
    assert_eq!((report.outcome.status, report.artifacts.len()), (Status::Success, 256));
    assert_eq!(usage(&report, "artifact_bytes"), (1 << 20, 1 << 20));
}

fn with_files(limits: &[(&str, &str)]) -> (tempfile::TempDir, Call) {
    let folder = tempfile::tempdir().unwrap();
    let mut call = call(limits);
    call.tier = FileTier::Workspace;
    call.files =
        Some(FileSetting { root: folder.path().to_owned(), scope: glovebox_sandbox::scope::Scope::everything() });
    (folder, call)
}

#[test]
fn written_bytes_are_bounded() {
    let (folder, call) = with_files(&[("write_bytes", "100KiB")]);
    let report = execute("write-hog", call);
    assert_eq!((&report.ending, report.outcome.notes.as_str()), (&Ending::Returned, "quota"));
    assert_eq!(usage(&report, "write_bytes"), (96 << 10, 100 << 10));
    assert_eq!(std::fs::metadata(folder.path().join("big.bin")).unwrap().len(), 32 << 10);
    assert!(report.touched_files);
}

#[test]
fn created_entries_are_bounded() {
    let (folder, call) = with_files(&[("write_entries", "10")]);
    let report = execute("entry-hog", call);
    assert_eq!(report.outcome.notes, "quota");
    assert_eq!(usage(&report, "write_entries"), (10, 10));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 10);
}

#[test]
fn refusals_are_kept_up_to_a_bound_and_counted_beyond() {
    let report = run("refusal-flood", &[]);
    assert_eq!((report.refusals.len(), report.refusals_total), (1000, 5000));
    assert_eq!(usage(&report, "refusals"), (5000, 1000));
}

#[test]
fn what_a_command_prints_is_kept_up_to_a_bound() {
    let mut call = call(&[("command_output_bytes", "64KiB")]);
    call.commands = Some(commands("seq"));
    let report = execute("loud-command", call);
    assert!(report.outcome.notes.starts_with("1\n2\n3\n"), "{report:?}");
    assert_eq!(report.receipts[0].stdout_bytes, 6_888_896);
    let (used, limit) = usage(&report, "command_output_bytes");
    assert!(used <= limit && limit == 64 << 10, "{used} of {limit}");
}

#[test]
fn nothing_of_a_call_is_there_in_the_next() {
    for _ in 0..3 {
        assert_eq!(run("remembers", &[]).outcome.notes, "11");
    }
}

#[test]
fn more_calls_than_slots_wait_for_their_turn() {
    let component = load("remembers");
    let calls: Vec<_> = (0..12).map(|_| (Arc::clone(&component), call(&[]))).collect();
    let notes = world().runtime.block_on(async {
        let running =
            calls.into_iter().map(|(component, call)| async move { world().host.execute(&component, call).await });
        let tasks: Vec<_> = running.map(tokio::spawn).collect();
        let mut notes = Vec::new();
        for task in tasks {
            notes.push(task.await.unwrap().outcome.notes);
        }
        notes
    });
    assert_eq!(notes, vec!["11"; 12]);
}

#[test]
fn a_pool_that_cannot_be_made_is_done_without() {
    let host = Host::new(HostConfig { cache_dir: None, pool_slots: 1 << 24 }).unwrap();
    assert!(!host.is_pooled());
    let component = host.load(&guests::build("remembers")).unwrap();
    let report = world().runtime.block_on(host.execute(&component, call(&[])));
    assert_eq!(report.outcome.notes, "11");
}
