//! Tests of a guest's models and commands, and of the checks of its outcome: refusals, counts, receipts and claims.

use crate::guests;
use crate::world::*;
use glovebox_host::call::{AttemptProgress, CallObserver, CommandGrant, CommandSetting, Progress};
use glovebox_host::component::LoadError;
use glovebox_host::llm::{Model, Script, TextGuard};
use glovebox_jail::jail::{Jail, JailSetting, Source};
use glovebox_jail::pulse::Pulse;
use glovebox_record::path::ScopePath;
use glovebox_record::{CommandEnding, Ending, FailureClass, LimitName, Network, Status, Tier};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn a_malformed_outcome_fails_the_contract() {
    let report = run("malformed-outcome", &[]);
    expect_failure(&report, FailureClass::Contract, "outcome/malformed");
    assert!(report.outcome.context_updates.is_empty());
    assert!(report.outcome.failure.unwrap().reason.contains("`color` is not JSON"));
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
    Some(Model::bind(&"n".into(), &[], Some(&script), 0, 0).unwrap())
}

#[test]
fn turns_are_counted_by_the_host() {
    let mut call = call(&[(LimitName::Turns, 3)]);
    call.model = Some(Model::bind(&"n".into(), &[], None, 0, 0).unwrap());
    let report = execute("asks-model", call);
    expect_failure(&report, FailureClass::Budget, "limit/turns");
    assert_eq!((report.ending.clone(), report.outcome.notes.as_str(), report.turns_used), (Ending::Returned, "03", 3));
    assert_eq!(usage(&report, LimitName::Turns), (3, 3));
}

#[test]
fn a_success_declared_before_the_turns_ran_out_counts() {
    let check = |declared: &str, expected: Status| {
        let mut call = call(&[(LimitName::Turns, 2)]);
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
    let mut call = call(&[(LimitName::ToolRounds, 2)]);
    call.model = script(&"[[node.n]]\ntool = [{ name = 'glob' }]\n".repeat(5));
    let report = execute("asks-model", call);
    expect_failure(&report, FailureClass::Budget, "limit/tool_rounds");
    assert_eq!(usage(&report, LimitName::ToolRounds), (2, 2));
}

#[test]
fn a_script_that_runs_dry_fails_the_stage_and_says_where() {
    let mut call = call(&[]);
    call.model = script("[[node.n]]\ntext = 'OUTCOME: SUCCESS'\n");
    let report = execute("asks-model", call);
    expect_failure(&report, FailureClass::Deterministic, "script/exhausted");
    let reason = report.outcome.failure.unwrap().reason;
    assert_eq!(reason, "the script has 1 turn for node `n`, expected one for turn 2");
    assert_eq!(report.turns_used, 1);
}

#[test]
fn a_secret_in_a_models_answer_ends_the_attempt_and_is_quoted_nowhere() {
    let guard = |model: Option<Model>| {
        let found = |text: &str| text.contains("secret").then(|| "checks/a.sh:3".to_owned());
        Some(model.unwrap().guarded(TextGuard::new(found)))
    };
    let more = "[[node.n]]\ntext = 'OUTCOME: SUCCESS'\n[[node.n]]\ntext = 'more'\n";
    for turn in [
        "text = 'the secret'",
        "tool = [{ name = 'glob', arguments = { pattern = 'secret' } }]",
        "outcome = { status = 'success', notes = 'a secret' }",
    ] {
        let mut call = call(&[]);
        call.model = guard(script(&format!("{more}[[node.n]]\n{turn}\n{more}")));
        let report = execute("asks-model", call);
        expect_failure(&report, FailureClass::Scope, "holdout/leak");
        let reason = report.outcome.failure.as_ref().unwrap().reason.as_str();
        assert_eq!(reason, "holdout_leak: the response contains text of a hold-out scenario");
        assert_eq!((report.turns_used, report.refusals.len()), (3, 1), "told once, and never asked again");
        assert_eq!(report.refusals[0].path, "checks/a.sh:3");
        assert_eq!(report.outcome.notes, "");
    }
    let mut call = call(&[]);
    call.model = guard(script(more));
    expect_failure(&execute("asks-model", call), FailureClass::Deterministic, "script/exhausted");
}

fn commands(prefix: &str) -> CommandSetting {
    let folder = |name: &str| -> PathBuf {
        let path = world().folder.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let copy = folder("copy");
    let setting = JailSetting {
        tier: Tier::Unconfined,
        policy: glovebox_jail::jail::ExecPolicy::default(),
        network: Network::None,
        limits: glovebox_record::Limits::default(),
        inside: copy.clone(),
        inner: Vec::new(),
        kept: Vec::new(),
        hidden: Vec::new(),
        folder: folder("scratch"),
        pulse: Pulse::default(),
    };
    let jail = Jail::open(&setting, Source::Directory(copy)).unwrap();
    CommandSetting {
        grant: CommandGrant { argv_prefixes: vec![vec![prefix.to_owned()]], ..CommandGrant::default() },
        jail: Arc::new(glovebox_jail::lazy_jail::LazyJail::opened(jail)),
        workdir: ScopePath::root(),
        live: None,
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
    let mut call = call(&[(LimitName::Commands, 0)]);
    call.commands = Some(commands("true"));
    assert_eq!(execute("runs-command", call).outcome.notes, "limit");
}

#[test]
fn a_granted_command_leaves_a_receipt() {
    let mut call = call(&[]);
    call.commands = Some(commands("true"));
    let report = execute("runs-command", call);
    assert_eq!((report.outcome.status, report.outcome.notes.as_str()), (Status::Success, "run-1/n/1"), "{report:?}");
    let receipt = &report.receipts[0];
    assert_eq!((receipt.how, receipt.code, receipt.tier.as_str()), (CommandEnding::Exited, Some(0), "unconfined"));
    assert_eq!(usage(&report, LimitName::Commands), (1, 1000));
    assert!(report.touched_files);
}

#[test]
fn a_command_ends_with_its_call() {
    let mut call = call(&[(LimitName::WallMs, 2_000)]);
    call.commands = Some(commands("sleep"));
    let began = Instant::now();
    let report = execute("sleeping-command", call);
    assert_eq!(report.ending, Ending::LimitHit("wall_ms".to_owned()));
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(
        (report.receipts[0].how, report.receipts[0].argv.join(" ").as_str()),
        (CommandEnding::TimedOut, "sleep 600")
    );
}

#[test]
fn a_command_has_its_own_bound() {
    let mut call = call(&[(LimitName::CommandMs, 200)]);
    call.commands = Some(commands("sleep"));
    let report = execute("sleeping-command", call);
    expect_limit(&report, LimitName::CommandMs);
    assert_eq!(report.receipts[0].how, CommandEnding::TimedOut);
}

#[test]
fn cancellation_reaches_a_command() {
    let mut call = call(&[]);
    call.commands = Some(commands("sleep"));
    let (progress, mut told) = tokio::sync::mpsc::channel(16);
    call.observer = CallObserver::new("a".into(), progress, Pulse::default());
    let canceled = Arc::clone(&call.canceled);
    let teller = std::thread::spawn(move || {
        let started = |told: &AttemptProgress| matches!(told.progress, Progress::CommandStarted(_));
        while !told.blocking_recv().as_ref().is_none_or(started) {}
        canceled.store(true, Ordering::Relaxed);
    });
    let report = execute("sleeping-command", call);
    teller.join().unwrap();
    assert_eq!(report.ending, Ending::Canceled);
    assert_eq!(report.receipts[0].how, CommandEnding::Canceled);
}

#[test]
fn a_streamed_answer_ends_with_finish_and_not_again() {
    let mut call = call(&[]);
    call.model = Some(Model::bind(&"n".into(), &[], None, 0, 0).unwrap());
    let report = execute("overreads-completion", call);
    assert_eq!((report.outcome.status, report.outcome.notes.as_str()), (Status::Success, "2"), "{report:?}");
    assert_eq!(report.turns_used, 1);
}

#[test]
fn a_claim_is_handed_on_as_it_was_made() {
    let report = run("lies", &[]);
    assert_eq!(
        (report.outcome.status, report.claims.len(), report.receipts.len()),
        (Status::Success, 1, 0),
        "{report:?}"
    );
    assert_eq!(report.claims[0].kind, "command-passed");
}

#[test]
fn artifacts_cannot_be_put_elsewhere() {
    let report = run("artifact-tricks", &[]);
    assert_eq!(report.outcome.status, Status::Success, "{report:?}");
    let names: Vec<&str> = report.artifacts.iter().map(|artifact| artifact.name.as_str()).collect();
    assert_eq!((names, report.refusals_total), (vec!["prompt.md"], 6));
}

#[test]
fn what_a_command_prints_is_kept_up_to_a_bound() {
    let mut call = call(&[(LimitName::CommandOutputBytes, 64 << 10)]);
    call.commands = Some(commands("seq"));
    let report = execute("loud-command", call);
    assert!(report.outcome.notes.starts_with("1\n2\n3\n"), "{report:?}");
    assert_eq!(report.receipts[0].stdout_bytes, 6_888_896);
    let (used, limit) = usage(&report, LimitName::CommandOutputBytes);
    assert!(used <= limit && limit == 64 << 10, "{used} of {limit}");
}
