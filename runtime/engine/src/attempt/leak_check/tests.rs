//! Tests that every part of a stage's result is searched for hold-outs, each part alone.

use super::*;
use glovebox_journal::event::{Attempt, AttemptId, BranchId, ChangeOp, FileChange, Task, Work};
use glovebox_journal::memory::MemoryBlobs;
use glovebox_record::Status;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use glovebox_workspace::holdout::canary::PublicSummary;
use glovebox_workspace::holdout::seal;
use serde_json::json;

const SECRET: &str = "the answer to the scenario is forty-two and a half";

fn canary() -> (tempfile::TempDir, Canary) {
    let project = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(project.path().join("scenarios")).unwrap();
    std::fs::write(project.path().join("scenarios/a.txt"), format!("{SECRET}\n")).unwrap();
    let folders = [Entry::parse("scenarios/").unwrap()];
    let sealed = seal(project.path(), &folders, &project.path().join("sealed")).unwrap();
    let canary = Canary::for_seal(&sealed, &PublicSummary::default()).unwrap();
    (project, canary)
}

fn fact() -> StageFinished {
    let task = Task { generation: 0, branch: BranchId::main(), node: "a".into(), visit: 1, work: Work::Handler };
    let attempt = Attempt { task, ordinal: 1, id: AttemptId::new("a-1".to_owned()) };
    StageFinished::new(attempt, Outcome::new(Status::Success))
}

fn artifact(name: &str, content: &str, blobs: &MemoryBlobs) -> Artifact {
    let digest = blobs.put_bytes(content.as_bytes()).unwrap();
    Artifact { name: name.to_owned(), digest, bytes: content.len() as u64, media_type: "text/plain".to_owned() }
}

/// The name of a part of a result, and a function that puts a text there.
type Place<'p> = (&'p str, &'p dyn Fn(&mut StageFinished, &str));

#[test]
fn each_place_of_an_answer_is_searched() {
    let (_project, canary) = canary();
    let blobs = MemoryBlobs::default();
    let captured =
        |text: &str| Some(StoredOutput { digest: blobs.put_bytes(text.as_bytes()).unwrap(), bytes: text.len() as u64 });
    let places: [Place<'_>; 8] = [
        ("notes", &|fact, text| fact.outcome.notes = text.to_owned()),
        ("context", &|fact, text| _ = fact.outcome.context_updates.insert("a.b".to_owned(), json!(text))),
        ("context key", &|fact, text| _ = fact.outcome.context_updates.insert(text.to_owned(), json!(1))),
        ("trap", &|fact, text| fact.ending = Ending::Trapped(text.to_owned())),
        ("name of an artifact", &|fact, text| fact.files.artifacts.push(artifact(text, "", &blobs))),
        ("artifact", &|fact, text| fact.files.artifacts.push(artifact("a.txt", text, &blobs))),
        ("standard output", &|fact, text| fact.files.stdout = captured(text)),
        ("standard error", &|fact, text| fact.files.stderr = captured(text)),
    ];
    for (place, put) in places {
        for (text, is_leak) in [(SECRET, true), ("the answer is not known to this stage at all", false)] {
            let mut fact = fact();
            put(&mut fact, text);
            let before = fact.clone();
            check(&mut fact, &canary, &blobs, true).unwrap();
            let code = fact.outcome.failure.as_ref().map(|failure| failure.code.as_str());
            assert_eq!(code, is_leak.then_some(FailureCode::HOLDOUT_LEAK.as_str()), "{place}");
            assert!(!serde_json::to_string(&fact).unwrap().contains(SECRET), "{place}: the text is dropped");
            let kept = (fact.files.artifacts.len(), fact.files.stdout.is_some(), fact.files.stderr.is_some());
            assert!(!is_leak || kept == (0, false, false), "{place}");
            assert!(is_leak || fact == before, "{place}: an answer without a hold-out is left as it is");
        }
    }
    let mut fact = fact();
    fact.outcome.notes = SECRET.to_owned();
    check(&mut fact, &canary, &blobs, false).unwrap();
    assert_eq!(fact.outcome.failure, None, "a stage that may know them may say them");
}

/// Creates a change of this path, to this content or to a symbolic link with this target.
fn change(path: &str, content: &str, target: Option<&str>, blobs: &MemoryBlobs) -> FileChange {
    let op = if target.is_some() { ChangeOp::Symlink } else { ChangeOp::Write };
    let digest = target.is_none().then(|| blobs.put_bytes(content.as_bytes()).unwrap());
    let target = target.map(str::to_owned);
    FileChange { digest, target, ..FileChange::bare(ScopePath::parse(path).unwrap(), op) }
}

#[test]
fn each_place_of_a_changed_file_is_searched_and_nothing_of_the_attempt_is_kept() {
    let (_project, canary) = canary();
    let blobs = MemoryBlobs::default();
    for (place, changed) in [
        ("content", change("src/a", SECRET, None, &blobs)),
        ("path", change(SECRET, "x", None, &blobs)),
        ("target of a link", change("src/a", "", Some(SECRET), &blobs)),
    ] {
        for with_answer in [true, false] {
            let mut fact = fact();
            fact.files.changes = vec![change("src/b", "nothing of it", None, &blobs), changed.clone()];
            check(&mut fact, &canary, &blobs, with_answer).unwrap();
            let failure = fact.outcome.failure.clone().unwrap_or_else(|| panic!("{place}"));
            assert_eq!((failure.class, failure.code), (FailureClass::Scope, FailureCode::HOLDOUT_LEAK));
            assert_eq!(failure.reason, "holdout_leak: a file of the stage contains text of a hold-out scenario");
            assert_eq!(fact.files.changes, [], "{place}: the other changes go with it");
            let refusals: Vec<_> =
                fact.refusals.listed.iter().map(|one| (one.operation.as_str(), one.path.as_str())).collect();
            assert_eq!((refusals.as_slice(), fact.refusals.total), ([("tell", "scenarios/a.txt:1")].as_slice(), 1));
        }
    }
}

#[test]
fn changes_without_a_holdout_stay() {
    let (_project, canary) = canary();
    let blobs = MemoryBlobs::default();
    let mut fact = fact();
    fact.files.changes = vec![change("src/b", "nothing of it", None, &blobs)];
    check(&mut fact, &canary, &blobs, true).unwrap();
    assert_eq!((fact.outcome.failure, fact.files.changes.len(), fact.refusals.listed.len()), (None, 1, 0));
}

#[test]
fn a_leak_of_the_answer_says_so_and_takes_the_changes_too() {
    let (_project, canary) = canary();
    let blobs = MemoryBlobs::default();
    let mut fact = fact();
    fact.files.changes = vec![change("src/b", "nothing of it", None, &blobs)];
    fact.outcome.notes = SECRET.to_owned();
    check(&mut fact, &canary, &blobs, true).unwrap();
    let reason = fact.outcome.failure.map(|failure| failure.reason);
    assert_eq!(reason.as_deref(), Some("holdout_leak: the result of the stage contains text of a hold-out scenario"));
    assert_eq!(fact.files.changes, []);
}
