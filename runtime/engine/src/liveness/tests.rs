//! Tests of the file of the stream.

use super::*;
use glovebox_journal::event::{Attempt, BranchEnd, BranchFinished, Digest, EventText, NodeId, Task};
use glovebox_journal::liveness::check;
use jiff::Timestamp;
use tokio::sync::mpsc::channel;

fn attempt(id: &str) -> Attempt {
    let task = Task::for_handler(0, &BranchId::from("left"), &NodeId::from("build"), 1);
    Attempt { task, ordinal: 1, id: id.into() }
}

fn line(event: LivenessEvent, id: &str) -> LivenessLine {
    LivenessLine::of_attempt(event, Timestamp::UNIX_EPOCH, &attempt(id))
}

fn read(dir: &Dir) -> Vec<LivenessLine> {
    let text = dir.read_to_string(LIVENESS_FILE).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ended(branch: &str) -> Record {
    let finished = BranchFinished {
        generation: 0,
        branch: branch.into(),
        parent: BranchId::main(),
        outcome: BranchEnd::Success,
        node: None,
        score: 0.0,
        notes: String::new(),
        failure: None,
    };
    Record {
        seq: 1,
        at: Timestamp::UNIX_EPOCH,
        prev: Digest::ZERO,
        hash: Digest::ZERO,
        event: Event::BranchFinished(Box::new(finished)),
        text: EventText::default(),
    }
}

#[test]
fn there_is_no_file_before_the_first_line_and_a_branch_without_one_has_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
    let (lines, mut received) = channel(16);
    let stream = LivenessStream::new(&dir, lines);
    stream.note(&[ended("left")]);
    assert!(!dir.exists(LIVENESS_FILE));
    stream.write(&[line(LivenessEvent::StageAttemptStart, "a"), line(LivenessEvent::StageHeartbeat, "a")]);
    stream.write(&[line(LivenessEvent::StageAttemptEnd, "a")]);
    stream.note(&[ended("right"), ended("left"), ended("left")]);
    let lines = read(&dir);
    let events: Vec<&str> = lines.iter().map(|line| line.event.as_str()).collect();
    assert_eq!(events, ["stage_attempt_start", "stage_heartbeat", "stage_attempt_end", "branch_complete"]);
    check(&lines).unwrap();
    let received: Vec<LivenessLine> = std::iter::from_fn(|| received.try_recv().ok()).collect();
    assert_eq!(received, lines);
}

#[test]
fn a_long_file_is_replaced_by_one_with_the_attempts_in_progress() {
    let folder = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
    let stream = LivenessStream::new(&dir, channel(1).0);
    let heartbeats: Vec<LivenessLine> = (0..100).map(|_| line(LivenessEvent::StageHeartbeat, "a")).collect();
    stream.write(&[line(LivenessEvent::StageAttemptStart, "a"), line(LivenessEvent::StageAttemptStart, "b")]);
    stream.write(&[line(LivenessEvent::StageAttemptEnd, "b")]);
    let mut was_replaced = false;
    for _ in 0..150 {
        let before = read(&dir).len();
        stream.write(&heartbeats);
        let (lines, bytes) = (read(&dir), dir.metadata(LIVENESS_FILE).unwrap().len());
        check(&lines).unwrap();
        assert!(bytes < FILE_BYTES_MAX + (64 << 10), "{bytes}");
        was_replaced |= lines.len() < before;
    }
    assert!(was_replaced);
    assert!(!read(&dir).iter().any(|line| line.attempt_id().unwrap().as_str() == "b"));
}

#[test]
fn an_error_ends_the_file_and_not_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
    dir.create_dir(LIVENESS_FILE).unwrap();
    let (lines, mut received) = channel(16);
    let stream = LivenessStream::new(&dir, lines);
    for _ in 0..2 {
        stream.write(&[line(LivenessEvent::StageHeartbeat, "a")]);
        assert!(received.try_recv().is_ok(), "this process gets the line");
    }
}
