//! The liveness stream of a run: signs of life of attempts, beside the journal.
//!
//! The stream is for people and other programs that watch a run. It may be lost and is bounded, and no decision is based on it. A line has
//! counts and never text. [`check`] holds it to the life of an attempt: nothing of an attempt comes after its end
//! (decision nothing-after-an-end).

use crate::event::{Attempt, AttemptId, BranchId, Event, NodeId, Record, time_format};
use glovebox_record::WaitKind;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a line of the stream is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LivenessEvent {
    /// An attempt began. The line is written with the first heartbeat of the attempt, with the time of its beginning.
    StageAttemptStart,
    /// An attempt ended. No line of the attempt follows.
    StageAttemptEnd,
    /// Something of the attempt moved since the last heartbeat, or the host knows what the attempt waits for.
    StageHeartbeat,
    /// A branch ended.
    BranchComplete,
    /// Commands or requests to tool servers were started since the last heartbeat.
    ApiToolCallStart,
    /// Commands or requests to tool servers ended since the last heartbeat.
    ApiToolCallEnd,
    /// Pieces of answers of a model arrived since the last heartbeat.
    ApiAssistantTextDelta,
}

impl LivenessEvent {
    /// Every event.
    pub const ALL: [Self; 7] = [
        Self::StageAttemptStart,
        Self::StageAttemptEnd,
        Self::StageHeartbeat,
        Self::BranchComplete,
        Self::ApiToolCallStart,
        Self::ApiToolCallEnd,
        Self::ApiAssistantTextDelta,
    ];

    /// Returns the name in a line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StageAttemptStart => "stage_attempt_start",
            Self::StageAttemptEnd => "stage_attempt_end",
            Self::StageHeartbeat => "stage_heartbeat",
            Self::BranchComplete => "branch_complete",
            Self::ApiToolCallStart => "api_tool_call_start",
            Self::ApiToolCallEnd => "api_tool_call_end",
            Self::ApiAssistantTextDelta => "api_assistant_text_delta",
        }
    }
}

/// A line of the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LivenessLine {
    /// What the line is about.
    pub event: LivenessEvent,
    /// The time of the event.
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Number of the generation, counted from 0.
    pub run_generation: u32,
    /// The branch.
    pub branch_id: BranchId,
    /// The attempt; absent for `branch_complete`.
    #[serde(flatten)]
    pub attempt: Option<LiveAttempt>,
    /// Number of the events that the line stands for; absent if the event is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Number of bytes of the model's answers, or for `stage_heartbeat` of the output of commands; absent if there are
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What the attempt waits for; absent if the host does not know of a wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitKind>,
}

/// The attempt of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveAttempt {
    /// The id of the attempt.
    pub attempt_id: AttemptId,
    /// The branch of the attempt.
    pub attempt_branch_id: BranchId,
    /// The node of the attempt.
    pub attempt_node_id: NodeId,
    /// Number of the attempt within its visit, counted from 1.
    pub attempt_ordinal: u32,
}

impl LivenessLine {
    /// Creates a line about an attempt, without counts.
    pub fn of_attempt(event: LivenessEvent, at: Timestamp, attempt: &Attempt) -> Self {
        let Attempt { task, ordinal, id } = attempt.clone();
        Self {
            event,
            at,
            run_generation: task.generation,
            branch_id: task.branch.clone(),
            attempt: Some(LiveAttempt {
                attempt_id: id,
                attempt_branch_id: task.branch,
                attempt_node_id: task.node,
                attempt_ordinal: ordinal,
            }),
            count: None,
            bytes: None,
            waits_for: None,
        }
    }

    /// Creates the line about the end of a branch.
    pub fn of_branch(at: Timestamp, run_generation: u32, branch_id: BranchId) -> Self {
        let event = LivenessEvent::BranchComplete;
        Self { event, at, run_generation, branch_id, attempt: None, count: None, bytes: None, waits_for: None }
    }

    /// Returns the id of the line's attempt.
    pub fn attempt_id(&self) -> Option<&AttemptId> {
        self.attempt.as_ref().map(|attempt| &attempt.attempt_id)
    }
}

/// Checks that the lines of a stream respect the life of attempts and branches: a line of an attempt comes after its start and
/// before its end, and a branch ends once and after its attempts.
///
/// # Errors
/// Returns the first line that does not, and why.
pub fn check<'l>(lines: impl IntoIterator<Item = &'l LivenessLine>) -> Result<(), String> {
    let mut attempts: BTreeMap<&AttemptId, bool> = BTreeMap::new();
    let mut branches: BTreeSet<(u32, &BranchId)> = BTreeSet::new();
    for line in lines {
        let fault = |why: &str| Err(format!("{why}: {line:?}"));
        if branches.contains(&(line.run_generation, &line.branch_id)) {
            return fault("the branch had ended");
        }
        let Some(id) = line.attempt_id() else {
            branches.insert((line.run_generation, &line.branch_id));
            continue;
        };
        match (line.event, attempts.get(id)) {
            (_, Some(true)) => return fault("the attempt had ended"),
            (LivenessEvent::StageAttemptStart, Some(false)) => return fault("the attempt had begun"),
            (LivenessEvent::StageAttemptStart, None) => drop(attempts.insert(id, false)),
            (_, None) => return fault("the attempt had not begun"),
            (LivenessEvent::StageAttemptEnd, Some(false)) => drop(attempts.insert(id, true)),
            (_, Some(false)) => {}
        }
    }
    Ok(())
}

/// Checks that a journal respects the life of attempts: an attempt begins and ends once, and nothing about it is recorded after its
/// end. Also checks that no line of the stream is later than the recorded end of its attempt.
///
/// # Errors
/// Returns the first record or line that does not, and why.
pub fn check_records<'r>(records: impl IntoIterator<Item = &'r Record>, stream: &[LivenessLine]) -> Result<(), String> {
    let mut attempts: BTreeMap<&AttemptId, Option<Timestamp>> = BTreeMap::new();
    for record in records {
        let fault = |why: &str| Err(format!("{why}: record {} {}", record.seq, record.event.kind()));
        let (id, ends) = match &record.event {
            Event::StageStarted(started) => match attempts.insert(&started.attempt.id, None) {
                Some(_) => return fault("the attempt had begun"),
                None => continue,
            },
            Event::StageSteered(steered) => (&steered.attempt.id, false),
            Event::StatusIngested(ingested) => (&ingested.attempt.id, false),
            Event::StageFinished(finished) => (&finished.attempt.id, true),
            Event::StageHeld(held) => (&held.attempt.id, true),
            _ => continue,
        };
        match attempts.get_mut(id) {
            None => return fault("the attempt had not begun"),
            Some(Some(_)) => return fault("the attempt had ended"),
            Some(end) => *end = ends.then_some(record.at),
        }
    }
    let is_late = |line: &&LivenessLine| {
        let ended = line.attempt_id().and_then(|id| *attempts.get(id)?);
        ended.is_some_and(|ended| line.at > ended)
    };
    stream.iter().find(is_late).map_or(Ok(()), |line| Err(format!("the attempt's end was recorded before: {line:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Digest, EventText, StageFinished, StageStarted, Task};
    use glovebox_record::{Outcome, Status};

    fn attempt(id: &str, branch: &str) -> Attempt {
        let task = Task::for_handler(0, &BranchId::from(branch), &NodeId::from("build"), 1);
        Attempt { task, ordinal: 1, id: id.into() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Returns a line for each word, such as `a+` for the start, `a` for a heartbeat, `a-` for the end and `left!` for the
    /// end of a branch.
    fn lines(words: &str) -> Vec<LivenessLine> {
        let line = |(second, word): (usize, &str)| {
            let at = at(second as i64);
            let of = |event, id: &str| LivenessLine::of_attempt(event, at, &attempt(id, "left"));
            match word.split_at(word.len() - 1) {
                (id, "+") => of(LivenessEvent::StageAttemptStart, id),
                (id, "-") => of(LivenessEvent::StageAttemptEnd, id),
                (branch, "!") => LivenessLine::of_branch(at, 0, branch.into()),
                _ => of(LivenessEvent::StageHeartbeat, word),
            }
        };
        words.split_whitespace().enumerate().map(line).collect()
    }

    #[test]
    fn each_violation_of_the_life_of_an_attempt_is_found() {
        for (words, fault) in [
            ("", None),
            ("a+ a b+ a a- b b- left!", None),
            ("right! a+ a", None),
            ("a+ a- a", Some("the attempt had ended")),
            ("a+ a- a-", Some("the attempt had ended")),
            ("a+ a- a+", Some("the attempt had ended")),
            ("a+ a a+", Some("the attempt had begun")),
            ("a", Some("the attempt had not begun")),
            ("a-", Some("the attempt had not begun")),
            ("a+ a- left! left!", Some("the branch had ended")),
            ("a+ left! a", Some("the branch had ended")),
        ] {
            let found = check(&lines(words)).err();
            assert_eq!(found.as_deref().map(|found| found.split(':').next().unwrap()), fault, "{words}");
        }
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let lines = [
            LivenessLine { count: Some(3), bytes: Some(12), ..lines("a").remove(0) },
            LivenessLine { waits_for: Some(WaitKind::Model), ..lines("a").remove(0) },
            LivenessLine::of_branch(at(5), 2, "left".into()),
        ];
        let texts = lines.iter().map(|line| serde_json::to_string(line).unwrap());
        let texts: Vec<String> = texts.collect();
        assert_eq!(
            texts[0],
            r#"{"event":"stage_heartbeat","at":"1970-01-01T00:00:00.000Z","run_generation":0,"branch_id":"left","attempt_id":"a","attempt_branch_id":"left","attempt_node_id":"build","attempt_ordinal":1,"count":3,"bytes":12}"#
        );
        for (line, text) in lines.iter().zip(&texts) {
            assert_eq!(&serde_json::from_str::<LivenessLine>(text).unwrap(), line);
        }
        for event in LivenessEvent::ALL {
            assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
        }
    }

    #[test]
    fn a_journal_with_a_record_after_an_end_is_found_and_so_is_a_late_line() {
        let record = |seq: u64, event: Event| Record {
            seq,
            at: at(seq as i64),
            prev: Digest::ZERO,
            hash: Digest::ZERO,
            event,
            text: EventText::default(),
        };
        let started = || {
            Event::StageStarted(StageStarted {
                attempt: attempt("a", "left"),
                worker: "w".into(),
                machine: None,
                moved: None,
            })
        };
        let ended = || {
            let ended = StageFinished::new(attempt("a", "left"), Outcome::new(Status::Success));
            Event::StageFinished(Box::new(ended))
        };
        let whole = [record(2, started()), record(9, ended())];
        check_records(&whole, &lines("a+ a a-")).unwrap();
        check_records(&whole[..1], &lines("x a+ a")).unwrap();
        let found = |records: &[Record], stream: &[LivenessLine]| check_records(records, stream).unwrap_err();
        assert!(found(&[record(1, ended())], &[]).starts_with("the attempt had not begun"));
        assert!(found(&[record(1, started()), record(2, started())], &[]).starts_with("the attempt had begun"));
        let twice = [record(1, started()), record(2, ended()), record(3, ended())];
        assert!(found(&twice, &[]).starts_with("the attempt had ended"));
        let late = lines("x x x x x x x x x x a+");
        assert!(found(&whole, &late).starts_with("the attempt's end was recorded before"));
    }
}
