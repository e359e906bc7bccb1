//! Tests of every limit with a component that violates it.

use crate::guests;
use crate::world::*;
use glovebox_host::call::{Call, FileSetting, FileSource, FileTier};
use glovebox_host::component::LoadError;
use glovebox_host::host::{Host, HostConfig};
use glovebox_host::revocation::RevocationCheck;
use glovebox_record::{Ending, FailureClass, LimitName, Status};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn every_guest_has_a_test() {
    // Guests that other tests use: `escapes` attacks files in `files.rs`, `observes` stores what a builder is given (suite `bits` of
    // the binary), `runs-scenario` is bound as a verifier (suite `verifier`), `seeks-refused` looks for the calls that a hook refused
    // (suite `tool_hooks`), `nested` is a rule plugin (suite `rule_plugins`), and `value-hog` sets large context values (suite
    // `large_values`).
    let elsewhere = ["escapes", "nested", "observes", "runs-scenario", "seeks-refused", "value-hog"];
    let here: Vec<String> = guest_names().into_iter().filter(|name| !elsewhere.contains(&name.as_str())).collect();
    assert_eq!(here, TESTED);
}

#[test]
fn every_limit_is_reported() {
    let report = run("log-flood", &[]);
    let names: Vec<LimitName> = report.usage.iter().map(|usage| usage.name).collect();
    assert_eq!(names, LimitName::ALL);
    assert!(usage(&report, LimitName::MemoryBytes).0 >= 2 << 16);
    assert!(usage(&report, LimitName::Instances).0 >= 1);
}

#[test]
fn an_endless_loop_ends_at_the_wall() {
    let began = Instant::now();
    let report = run("endless-loop", &[(LimitName::WallMs, 200)]);
    expect_limit(&report, LimitName::WallMs);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_ne!(report.ending, Ending::Returned);
}

#[test]
fn a_sleeping_guest_ends_at_the_wall() {
    expect_limit(&run("sleeps", &[(LimitName::WallMs, 200)]), LimitName::WallMs);
}

#[test]
fn cancellation_reaches_spinning_and_sleeping_guests() {
    for name in ["endless-loop", "sleeps"] {
        load(name);
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
fn a_revocation_reaches_spinning_and_sleeping_guests() {
    for name in ["endless-loop", "sleeps"] {
        load(name);
        let began = Instant::now();
        let revoked_at = began + Duration::from_millis(100);
        let check = RevocationCheck::new(move || (Instant::now() >= revoked_at).then(|| "it leaks".to_owned()));
        let report = execute(name, Call { revocation: Some(check), ..call(&[]) });
        expect_failure(&report, FailureClass::Contract, "plugin/revoked");
        assert_eq!(report.ending, Ending::Revoked("it leaks".to_owned()));
        assert!(began.elapsed() >= Duration::from_millis(100) && began.elapsed() < Duration::from_secs(10), "{name}");
    }
}

#[test]
fn a_revoked_component_is_not_called() {
    let check = RevocationCheck::new(|| Some("it leaks".to_owned()));
    let report = execute("log-flood", Call { revocation: Some(check), ..call(&[]) });
    assert_eq!((report.ending, report.log.len()), (Ending::Revoked("it leaks".to_owned()), 0));
}

#[test]
fn memory_is_bounded() {
    let report = run("memory-hog", &[(LimitName::MemoryBytes, 8 << 20)]);
    expect_limit(&report, LimitName::MemoryBytes);
    assert_eq!(usage(&report, LimitName::MemoryBytes), (8 << 20, 8 << 20));
}

#[test]
fn tables_are_bounded() {
    expect_limit(&run("table-hog", &[]), LimitName::TableElements);
}

#[test]
fn instances_are_bounded_before_anything_is_compiled() {
    let error = world().host.load(&guests::build("crowd")).err().unwrap();
    assert!(matches!(error, LoadError::TooManyInstances { count: 100.., limit: 64 }), "{error}");
    expect_limit(&run("log-flood", &[(LimitName::Instances, 0)]), LimitName::Instances);
}

#[test]
fn handles_are_bounded() {
    expect_limit(&run("handle-hog", &[(LimitName::Resources, 100)]), LimitName::Resources);
}

#[test]
fn what_a_host_call_carries_is_bounded() {
    expect_limit(&run("huge-argument", &[]), LimitName::HostcallBytes);
    let report = run("huge-argument", &[(LimitName::HostcallBytes, 32 << 20)]);
    assert_eq!((report.ending, report.outcome.status), (Ending::Returned, Status::Success));
}

#[test]
fn components_are_bounded_before_anything_is_compiled() {
    let mut bytes = guests::build("traps");
    let filler = 65 << 20;
    // A custom section named `x`, which is valid and has no effect.
    bytes.extend_from_slice(&[0, 0x80 | (filler & 0x7f) as u8, 0x80 | (filler >> 7 & 0x7f) as u8]);
    bytes.extend_from_slice(&[0x80 | (filler >> 14 & 0x7f) as u8, (filler >> 21 & 0x7f) as u8, 1, b'x']);
    bytes.resize(bytes.len() + filler - 2, 0);
    assert!(matches!(world().host.load(&bytes).err().unwrap(), LoadError::TooLarge { .. }));
    expect_limit(&run("traps", &[(LimitName::ComponentBytes, 100)]), LimitName::ComponentBytes);
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
    let report = run("output-flood", &[(LimitName::OutputBytes, 64 << 10)]);
    assert_eq!((&report.ending, report.outcome.status), (&Ending::Returned, Status::Success));
    assert_eq!(usage(&report, LimitName::OutputBytes), (4 << 20, 64 << 10));
    assert!(report.stderr.len() < (64 << 10) + 100);
    assert!(String::from_utf8_lossy(&report.stderr).ends_with("limit `output_bytes`]\n"));
}

#[test]
fn log_lines_are_cut_and_do_not_kill() {
    let report = run("log-flood", &[]);
    assert_eq!((&report.ending, report.outcome.status), (&Ending::Returned, Status::Success));
    assert_eq!(usage(&report, LimitName::LogLines), (30_000, 10_000));
    assert_eq!((report.log.len(), report.log[0].message.as_str()), (10_000, "much ado"));
}

#[test]
fn an_outcome_is_bounded() {
    let report = run("shouts", &[]);
    expect_failure(&report, FailureClass::Budget, "limit/outcome_bytes");
    assert_eq!(usage(&report, LimitName::OutcomeBytes), (2 << 20, 1 << 20));
    let report = run("shouts", &[(LimitName::OutcomeBytes, 4 << 20)]);
    assert_eq!(report.outcome.status, Status::Success);
    assert!(report.outcome.notes.len() < 65 << 10);
}

#[test]
fn artifacts_are_bounded_even_when_empty() {
    let report = run("artifact-flood", &[(LimitName::ArtifactBytes, 1 << 20)]);
    assert_eq!((report.outcome.status, report.artifacts.len()), (Status::Success, 256));
    assert_eq!(usage(&report, LimitName::ArtifactBytes), (1 << 20, 1 << 20));
}

fn with_files(limits: &[(LimitName, u64)]) -> (tempfile::TempDir, Call) {
    let folder = tempfile::tempdir().unwrap();
    let mut call = call(limits);
    call.tier = FileTier::Workspace;
    call.files = Some(FileSetting {
        source: FileSource::Folder(folder.path().to_owned()),
        scope: glovebox_record::scope::Scope::everything(),
        protected: Default::default(),
        known_as: Vec::new(),
        is_of_plugin: false,
    });
    (folder, call)
}

#[test]
fn written_bytes_are_bounded() {
    let (folder, call) = with_files(&[(LimitName::WriteBytes, 100 << 10)]);
    let report = execute("write-hog", call);
    assert_eq!((&report.ending, report.outcome.notes.as_str()), (&Ending::Returned, "quota"));
    assert_eq!(usage(&report, LimitName::WriteBytes), (96 << 10, 100 << 10));
    assert_eq!(std::fs::metadata(folder.path().join("big.bin")).unwrap().len(), 32 << 10);
    assert!(report.touched_files);
}

#[test]
fn created_entries_are_bounded() {
    let (folder, call) = with_files(&[(LimitName::WriteEntries, 10)]);
    let report = execute("entry-hog", call);
    assert_eq!(report.outcome.notes, "quota");
    assert_eq!(usage(&report, LimitName::WriteEntries), (10, 10));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 10);
}

#[test]
fn refusals_are_kept_up_to_a_bound_and_counted_beyond() {
    let report = run("refusal-flood", &[]);
    assert_eq!((report.refusals.len(), report.refusals_total), (1000, 5000));
    assert_eq!(usage(&report, LimitName::Refusals), (5000, 1000));
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
    let host = Host::new(HostConfig::in_process(None, 1 << 24)).unwrap();
    assert!(!host.is_pooled());
    let component = host.load(&guests::build("remembers")).unwrap();
    let report = world().runtime.block_on(host.execute(&component, call(&[])));
    assert_eq!(report.outcome.notes, "11");
}
