//! Tests in which a component attacks the boundaries of its files.
//!
//! The guest `escapes` makes the raw calls. The table of attacks and the witness of the disk are those of the view's own tests, so
//! that an attack has the same result through every interface.

#[path = "../../workspace/tests/view/fixture.rs"]
#[allow(dead_code)]
mod fixture;
#[path = "../../workspace/tests/view/swap.rs"]
mod swap;
#[path = "../../workspace/tests/view/table.rs"]
mod table;

use crate::guests;
use fixture::{Fixture, SECRET, scope};
use glovebox_host::call::{Call, CallObserver, CommandGrant, FileSetting, FileSource, FileTier, Report};
use glovebox_host::component::Component;
use glovebox_host::host::{Host, HostConfig};
use glovebox_host::input::StageInput;
use glovebox_record::scope::Scope;
use glovebox_record::{Attempt, BranchId, Ending, LimitName, Limits, Task, Work};
use glovebox_workspace::protect::Protected;
use glovebox_workspace::view::ViewError;
use rustix::fs::{CWD, Mode};
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use swap::Swapping;
use table::{TABLE, Try};

/// The error codes of `wasi:filesystem`, in the order of its enum.
#[rustfmt::skip]
const CODES: &[&str] = &[
    "access", "would-block", "already", "bad-descriptor", "busy", "deadlock", "quota", "exist", "file-too-large",
    "illegal-byte-sequence", "in-progress", "interrupted", "invalid", "io", "is-directory", "loop", "too-many-links",
    "message-size", "name-too-long", "no-device", "no-entry", "no-lock", "insufficient-memory", "insufficient-space",
    "not-directory", "not-empty", "not-recoverable", "unsupported", "no-tty", "no-such-device", "overflow",
    "not-permitted", "pipe", "read-only", "invalid-seek", "text-file-busy", "cross-device",
];

/// A step of the guest: an operation with its flags, and a path or text.
type Step<'a> = (&'a str, &'a str);

struct World {
    host: Host,
    runtime: tokio::runtime::Runtime,
    escapes: Arc<Component>,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let host = Host::new(HostConfig::in_process(None, 4)).unwrap();
        let escapes = host.load(&guests::build("escapes")).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        World { host, runtime, escapes }
    })
}

/// Returns the scope for which the table of attacks is written.
fn rules() -> Scope {
    scope(&["./"], &["out/", "src/main.rs"], &["scenarios/holdout/"])
}

fn call(fixture: &Fixture, tier: FileTier, scope: Scope, limits: &[(LimitName, u64)], steps: &[Step<'_>]) -> Call {
    let mut bounds = Limits { wall_ms: 20_000, ..Limits::default() };
    bounds.replace(&limits.iter().copied().collect());
    let attempt = Attempt {
        task: Task { generation: 0, branch: BranchId::main(), node: "n".into(), visit: 1, work: Work::Handler },
        ordinal: 1,
        id: "run-1/n".into(),
    };
    let input = StageInput {
        run: "run-1".into(),
        attempt,
        handler_type: "test.escapes".to_owned(),
        label: "n".to_owned(),
        prompt: None,
        goal: "get out".to_owned(),
        attributes: steps.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        context: BTreeMap::new(),
        outgoing: vec![],
        write_paths: vec![],
        commands: CommandGrant::default(),
        last_failure: None,
        extra: vec![],
    };
    Call {
        input,
        tier,
        files: Some(FileSetting {
            source: FileSource::Folder(fixture.root().to_owned()),
            scope,
            protected: Protected::default(),
            known_as: vec!["/home/me/proj".to_owned()],
            is_of_plugin: false,
        }),
        commands: None,
        program: None,
        model: None,
        conversation: Default::default(),
        hooks: None,
        policy: None,
        tools: glovebox_host::tools::ToolSetting::default(),
        limits: bounds,
        canceled: Arc::new(AtomicBool::new(false)),
        revocation: None,
        observer: CallObserver::unobserved(),
    }
}

/// Returns the call with a layer over the tree, which must leave the tree unchanged.
fn on_layer(fixture: &Fixture, call: Call) -> Call {
    let files = call.files.map(|files| {
        let layer = fixture.layer(&files.scope);
        FileSetting { source: FileSource::Layer(Arc::clone(layer.as_layer().unwrap())), ..files }
    });
    Call { files, ..call }
}

fn execute(call: Call) -> Report {
    let world = world();
    world.runtime.block_on(world.host.execute(&world.escapes, call))
}

/// Returns the result of each step: `ok`, `ok:` and the bytes read, or an error code.
fn answers(report: &Report) -> Vec<String> {
    assert_eq!(report.ending, Ending::Returned, "{report:?}");
    report.outcome.notes.lines().map(answer).collect()
}

/// Converts a line of the guest's notes to a result. The line has a dot for each operation that succeeded, followed by the data that
/// was read or the error of the last operation.
fn answer(line: &str) -> String {
    let rest = line.trim_start_matches('.');
    let code = |letter: char| CODES[letter as usize - usize::from(b'A')].to_owned();
    match rest.chars().next() {
        None => "ok".to_owned(),
        Some('~') => "end".to_owned(),
        Some('?') => "no descriptor".to_owned(),
        Some('!') => rest[1..].to_owned(),
        Some('#') => code(rest[1..].chars().next().unwrap()),
        Some(letter) if rest == line && !letter.is_ascii_digit() => code(letter),
        Some(_) if rest == line => rest.to_owned(),
        Some(_) => format!("ok:{rest}"),
    }
}

fn posix(fixture: &Fixture, steps: &[Step<'_>]) -> Vec<String> {
    answers(&execute(call(fixture, FileTier::Posix, rules(), &[], steps)))
}

/// Returns the raw calls that a C library would make. Open flags: create 1, directory 2, exclusive 4, truncate 8.
fn posix_steps(attempt: Try) -> Vec<Step<'static>> {
    match attempt {
        Try::Read(path) => vec![("o01", path), ("r", "")],
        Try::Write(path) => vec![("o92", path), ("w", "EVIL")],
        Try::Truncate(path) => vec![("o81", path)],
        Try::Create(path) => vec![("o52", path)],
        Try::List(path) => vec![("o21", path), ("l", "")],
        Try::Stat(path) => vec![("s0", path)],
        Try::MakeDirectory(path) => vec![("m", path)],
        Try::Unlink(path) => vec![("u", path)],
        Try::RemoveDirectory(path) => vec![("d", path)],
        Try::Rename(from, to) => vec![("A", from), ("n", to)],
        Try::Times(path) => vec![("T", path)],
        Try::Link(path) => vec![("A", path), ("h", "out/alias")],
        Try::Symlink(path) => vec![("A", "/etc/passwd"), ("y", path)],
        Try::ReadLink(path) => vec![("k", path)],
    }
}

fn posix_code(denied: ViewError) -> &'static str {
    match denied {
        ViewError::NotFound => "no-entry",
        ViewError::NotPermitted => "not-permitted",
        ViewError::Loop => "loop",
        ViewError::Invalid => "invalid",
        other => panic!("no attack is answered {other:?}"),
    }
}

#[test]
fn every_attack_is_refused_by_the_posix_tier() {
    let both = TABLE.iter().flat_map(|row| [(row, false), (row, true)]);
    for ((case, attempt, expected), is_layered) in both {
        let fixture = Fixture::new();
        let outside: &[&str] = if expected.is_ok() && !is_layered { &["src/main.rs", "out"] } else { &[] };
        let before = fixture.witness(outside);
        let call = call(&fixture, FileTier::Posix, rules(), &[], &posix_steps(*attempt));
        let report = execute(if is_layered { on_layer(&fixture, call) } else { call });
        let answers = answers(&report);
        match expected {
            Ok(()) => assert!(answers.iter().all(|answer| answer == "ok"), "{case}: {answers:?}"),
            Err(denied) => assert_eq!(answers[0], posix_code(*denied), "{case}"),
        }
        assert_eq!(fixture.witness(outside), before, "{case}: the disk changed");
        assert_eq!(report.refusals.is_empty(), expected.is_ok(), "{case}: {:?}", report.refusals);
        assert_eq!(report.touched_files, expected.is_ok(), "{case}");
        assert!(!report.outcome.notes.contains(std::str::from_utf8(SECRET).unwrap()), "{case}: leaked");
    }
}

/// Returns the attack as calls of `glovebox:plugin/files`, or `None` if that interface has no such operation.
fn files_steps(attempt: Try) -> Option<Vec<Step<'static>>> {
    Some(match attempt {
        Try::Read(path) => vec![("Fr", path)],
        Try::Write(path) | Try::Create(path) => vec![("A", "EVIL"), ("Fw", path)],
        Try::List(path) => vec![("Fl", path)],
        Try::Stat(path) => vec![("Fs", path)],
        Try::Unlink(path) | Try::RemoveDirectory(path) => vec![("Fd", path)],
        _ => return None,
    })
}

#[test]
fn every_attack_is_refused_by_the_interface_files() {
    let tiers = [FileTier::Workspace, FileTier::Posix].into_iter().flat_map(|tier| [(tier, false), (tier, true)]);
    for (tier, is_layered) in tiers {
        for (case, attempt, expected) in TABLE {
            let Some(steps) = files_steps(*attempt) else { continue };
            let crooked = steps.iter().any(|(_, path)| path.contains("./"));
            let expected = match expected {
                _ if crooked => "invalid",
                Ok(()) => "ok",
                Err(ViewError::NotFound) => "not-found",
                Err(ViewError::Invalid) => "invalid",
                Err(_) => "not-permitted",
            };
            let fixture = Fixture::new();
            let outside: &[&str] = if expected == "ok" && !is_layered { &["src/main.rs"] } else { &[] };
            let before = fixture.witness(outside);
            let call = call(&fixture, tier, rules(), &[], &steps);
            let report = execute(if is_layered { on_layer(&fixture, call) } else { call });
            assert_eq!(answers(&report), [expected], "{case}");
            assert_eq!(fixture.witness(outside), before, "{case}: the disk changed");
            assert_eq!(report.refusals.is_empty(), expected == "ok", "{case}: {:?}", report.refusals);
        }
    }
}

/// Executes steps in one call and compares the result of each.
#[track_caller]
fn check(fixture: &Fixture, steps: &[(&str, &str, &str)]) {
    let asked: Vec<Step<'_>> = steps.iter().map(|(step, value, _)| (*step, *value)).collect();
    let layered = on_layer(fixture, call(fixture, FileTier::Posix, rules(), &[], &asked));
    // The layer is tested first, because it leaves the tree unchanged.
    for (got, place) in [(answers(&execute(layered)), "layer"), (posix(fixture, &asked), "folder")] {
        let expected = steps.iter().filter(|(step, ..)| *step != "A");
        for ((step, value, expected), got) in expected.clone().zip(&got) {
            assert_eq!(got, expected, "step {step} {value:?}, {place}");
        }
        assert_eq!(got.len(), expected.count(), "{got:?}");
    }
}

#[test]
fn what_is_granted_works_with_every_method() {
    let fixture = Fixture::new();
    #[rustfmt::skip]
    check(&fixture, &[
        ("P", "", "1"), ("m", "out/new", "ok"), ("o52", "out/new/f", "ok"), ("w", "hello", "ok"), ("W", "HE", "ok"),
        ("a", "!", "ok"), ("g", "", "ok:2"), ("p", "", "ok:6"), ("t", "", "ok"), ("z2", "", "ok"), ("c", "", "ok"),
        ("C", "", "ok"), ("v", "", "ok"), ("S", "", "ok"), ("M", "", "ok"), ("o01", "out/new/f", "ok"),
        ("r", "", "ok:HEll"), ("R", "", "ok:HEll"), ("T", "out/new/f", "ok"), ("H", "out/new/f", "ok"),
        ("s1", "out/new/f", "ok"), ("A", "out/new/f", ""), ("n", "out/new/g", "ok"), ("o21", "out", "ok"),
        ("g", "", "ok:Q"), ("p", "", "ok:3"), ("b", "", "ok"), ("o21", "new", "ok"), ("l", "", "ok:g,"), ("e", "", "0"),
        ("u", "new/g", "ok"), ("d", "new", "ok"), ("s0", "to_src", "ok"), ("s1", "to_src", "loop"),
        ("H", "to_src", "loop"), ("s0", "../src", "not-permitted"), ("o52", "own", "exist"), ("o01", "none", "no-entry"),
        ("k", "own", "invalid"), ("k", "d", "invalid"), ("k", "none", "no-entry"),
    ]);
    assert!(!fixture.root().join("out/new").exists());
}

#[test]
fn a_descriptor_for_reading_stays_one() {
    let fixture = Fixture::new();
    let before = fixture.witness(&[]);
    let no = "not-permitted";
    for path in ["src/lib.rs", "src/main.rs"] {
        let steps = [("o01", path, "ok"), ("w", "EVIL", no), ("W", "EVIL", no), ("a", "EVIL", no), ("z0", "", no)];
        check(&fixture, &steps);
        check(&fixture, &[("o01", path, "ok"), ("t", "", no), ("g", "", "ok:1")]);
    }
    check(&fixture, &[("o21", "src", "ok"), ("t", "", no), ("w", "EVIL", "bad-descriptor"), ("R", "", "is-directory")]);
    check(&fixture, &[("o21", "src", "ok"), ("z0", "", "bad-descriptor"), ("o22", "out", "is-directory")]);
    check(
        &fixture,
        &[("o31", "out", "invalid"), ("o04", "src/lib.rs", "unsupported"), ("o21", "src/lib.rs", "not-directory")],
    );
    assert_eq!(fixture.witness(&[]), before);
}

#[test]
fn listings_leave_out_what_is_hidden() {
    let fixture = Fixture::new();
    let top = "ok:Cargo.toml,out,ro,scenarios,src,visible,";
    check(&fixture, &[("o21", ".", "ok"), ("l", "", top), ("o21", "scenarios", "ok"), ("l", "", "ok:readme,")]);
    let steps =
        [("Fl", ""), ("Fl", "scenarios"), ("Fl", "out"), ("Fs", "src"), ("Fs", "src/lib.rs"), ("Fr", "src/lib.rs")];
    let report = execute(call(&fixture, FileTier::Workspace, rules(), &[], &steps));
    assert_eq!(answers(&report), [top, "ok:readme,", "ok:d,hard,own,", "ok:directory", "ok:file", "ok:lib"]);
}

#[test]
fn every_way_to_write_has_the_same_quota() {
    for way in ["w", "W", "a"] {
        let fixture = Fixture::new();
        let steps = [("o52", "out/f"), (way, "12345678"), (way, "12345678"), (way, "1")];
        let report = execute(call(&fixture, FileTier::Posix, rules(), &[(LimitName::WriteBytes, 10)], &steps));
        assert_eq!(answers(&report), ["ok", "ok", "quota", "ok"], "{way}");
        assert!(fs::metadata(fixture.root().join("out/f")).unwrap().len() <= 10, "{way}");
        let used = report.usage.iter().find(|usage| usage.name == LimitName::WriteBytes).unwrap();
        assert_eq!((used.used, used.limit), (Some(9), 10), "{way}");
        assert!(report.refusals.iter().any(|refusal| refusal.help.contains("limits.write_bytes")), "{way}");
    }
}

#[test]
fn entries_and_whole_files_have_the_quota_too() {
    let fixture = Fixture::new();
    let limits = [(LimitName::WriteBytes, 10), (LimitName::WriteEntries, 2)];
    let long = [("A", "0123456789a"), ("Fw", "out/own")];
    let rest = [("A", "0"), ("Fw", "out/f"), ("o52", "out/g"), ("z4", ""), ("m", "out/h")];
    let steps: Vec<Step<'_>> = long.into_iter().chain(rest).collect();
    let report = execute(call(&fixture, FileTier::Posix, rules(), &limits, &steps));
    assert_eq!(answers(&report), ["quota", "ok", "ok", "quota", "quota"]);
    assert_eq!(fs::read(fixture.root().join("out/own")).unwrap(), b"own");
}

#[test]
fn without_the_tier_there_is_no_file_system() {
    let fixture = Fixture::new();
    for tier in [FileTier::None, FileTier::Workspace] {
        let report = execute(call(&fixture, tier, rules(), &[], &[("P", "")]));
        assert_eq!(answers(&report), ["0"], "{tier:?}");
    }
    let report = execute(call(&fixture, FileTier::None, rules(), &[], &[("Fr", "src/lib.rs"), ("Fl", "")]));
    assert_eq!(answers(&report), ["not-permitted", "not-permitted"]);
    assert!(report.refusals[0].help.contains("glovebox.toml"), "{:?}", report.refusals);
}

#[test]
fn pipes_do_not_hang_a_call_and_long_files_are_not_cut() {
    let fixture = Fixture::new();
    rustix::fs::mkfifoat(CWD, fixture.root().join("out/pipe"), Mode::from_raw_mode(0o666)).unwrap();
    fs::File::create(fixture.root().join("out/long")).unwrap().set_len(1 << 40).unwrap();
    let no = "not-permitted";
    check(&fixture, &[("o01", "out/pipe", no), ("o02", "out/pipe", no), ("Fr", "out/pipe", no)]);
    check(&fixture, &[("FR", "out/long", "too-large"), ("FR", "src/lib.rs", "ok")]);
}

#[test]
fn a_stage_may_make_the_directories_of_its_grant() {
    let fixture = Fixture::new();
    let narrow = scope(&[], &["new/deep/", "REVIEW.md"], &[]);
    let steps =
        [("A", "x"), ("Fw", "new/deep/er/f"), ("Fw", "REVIEW.md"), ("Fw", "other"), ("Fr", "src/lib.rs"), ("Fl", "")];
    let report = execute(call(&fixture, FileTier::Workspace, narrow, &[], &steps));
    assert_eq!(answers(&report), ["ok", "ok", "not-found", "not-found", "ok:REVIEW.md,new,"]);
    assert_eq!(fs::read(fixture.root().join("new/deep/er/f")).unwrap(), b"x");
}

#[test]
fn swapping_a_directory_for_links_leaks_nothing() {
    for is_layered in [false, true] {
        race(is_layered);
    }
}

fn race(is_layered: bool) {
    let fixture = Fixture::new();
    let before = fixture.witness(&["out", "park"]);
    let target = "out/d/h.toml";
    let round =
        [("o01", target), ("r", ""), ("o92", target), ("w", "mine"), ("o21", "out/d"), ("l", ""), ("Fr", target)];
    let steps: Vec<Step<'_>> = round.iter().copied().cycle().take(round.len() * 100).collect();
    let swapping = Swapping::start(&fixture);
    let mut successes = BTreeMap::new();
    let start = Instant::now();
    // The race lasts until each operation has succeeded at least once, which may take long on a busy machine.
    let is_lucky = |successes: &BTreeMap<&str, u32>| {
        !successes.is_empty() && successes.values().all(|count| *count > 0) && swapping.count() > 100
    };
    let (least, most) = (Duration::from_secs(2), Duration::from_secs(60));
    while start.elapsed() < least || !is_lucky(&successes) && start.elapsed() < most {
        let call = call(&fixture, FileTier::Posix, rules(), &[], &steps);
        let answers = answers(&execute(if is_layered { on_layer(&fixture, call) } else { call }));
        assert_eq!(answers.len(), steps.len());
        for ((step, _), answer) in steps.iter().zip(answers) {
            assert!(
                !answer.contains("SECRET") && !answer.contains("lib.rs") && !answer.contains("deep"),
                "{step}: {answer}"
            );
            *successes.entry(*step).or_insert(0) += u32::from(answer.starts_with("ok"));
        }
    }
    let swaps = swapping.finish();
    assert_eq!(fixture.witness(&["out", "park"]), before, "something outside changed");
    assert!(swaps > 100 && successes.values().all(|count| *count > 0), "{swaps} swaps, {successes:?}");
}
