//! Claims, each against what the host recorded.

use super::*;
use glovebox_journal::event::{Artifact, Attempt, AttemptId, BranchId, Digest, FileChange, Task, Work};
use glovebox_record::{CommandEnding, Hook, HookKind, Outcome, Receipt, Status};
use glovebox_state::simulation::receipt;

fn fact() -> StageFinished {
    let task = Task { generation: 0, branch: BranchId::main(), node: "a".into(), visit: 1, work: Work::Handler };
    let attempt = Attempt { task, ordinal: 1, id: AttemptId::new("a-1".to_owned()) };
    StageFinished::of(attempt, Outcome::of(Status::Success))
}

/// Whether a stage with these records succeeds with a claim.
fn holds(change: impl FnOnce(&mut StageFinished), kind: &str, value: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("workspace")).unwrap();
    std::fs::write(folder.path().join("workspace/there.txt"), "x").unwrap();
    let run = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
    let mut fact = fact();
    change(&mut fact);
    check((&run, "workspace"), &mut fact, &[Claim { kind: kind.to_owned(), value: value.to_owned() }]);
    let code = fact.outcome.failure.as_ref().map(|failure| failure.code.as_str());
    assert!(code.is_none_or(|code| code == FailureCode::CLAIM_UNPROVEN.as_str()), "{code:?}");
    code.is_none()
}

#[test]
fn a_command_has_passed_if_a_receipt_of_the_stage_says_so() {
    let with = |receipts: Vec<Receipt>| move |fact: &mut StageFinished| fact.receipts = receipts;
    let passed = receipt(Some(0), CommandEnding::Exited);
    assert!(holds(with(vec![passed.clone()]), "command-passed", "r"));
    assert!(!holds(with(Vec::new()), "command-passed", "r"), "no receipt");
    assert!(!holds(with(vec![passed.clone()]), "command-passed", "another"), "another receipt");
    assert!(!holds(with(vec![receipt(Some(1), CommandEnding::Exited)]), "command-passed", "r"), "it failed");
    assert!(!holds(with(vec![receipt(Some(0), CommandEnding::TimedOut)]), "command-passed", "r"), "it was killed");
    let hook = Hook { kind: HookKind::Pre, tool: "write_file".to_owned(), call: "1".to_owned() };
    let of_hook = Receipt { hook: Some(hook), ..passed };
    assert!(!holds(with(vec![of_hook]), "command-passed", "r"), "a hook judges a call, not the work");
}

#[test]
fn a_file_was_written_if_it_is_there_at_the_end() {
    let path = |text: &str| ScopePath::parse(text).unwrap();
    let after = |ops: &'static [(&'static str, ChangeOp)]| {
        move |fact: &mut StageFinished| {
            fact.changes = ops.iter().map(|(text, op)| FileChange::bare(path(text), *op)).collect();
        }
    };
    for (ops, value, expected) in [
        (&[][..], "there.txt", true),
        (&[], "missing.txt", false),
        (&[], "", false),
        (&[("new.txt", ChangeOp::Write)], "new.txt", true),
        (&[("there.txt", ChangeOp::Delete)], "there.txt", false),
        (&[("there.txt", ChangeOp::Rmdir)], "there.txt", false),
        (&[("there.txt", ChangeOp::Delete), ("there.txt", ChangeOp::Write)], "there.txt", true),
        (&[("new.txt", ChangeOp::Write), ("new.txt", ChangeOp::Delete)], "new.txt", false),
    ] {
        assert_eq!(holds(after(ops), "file-written", value), expected, "{ops:?} {value}");
    }
}

#[test]
fn an_artifact_was_kept_if_it_has_that_name() {
    let kept = |fact: &mut StageFinished| {
        let (name, media_type) = ("report.md".to_owned(), "text/markdown".to_owned());
        fact.artifacts.push(Artifact { name, media_type, digest: Digest::ZERO, bytes: 0 });
    };
    assert!(holds(kept, "artifact", "report.md"));
    assert!(!holds(kept, "artifact", "report.txt"));
}
