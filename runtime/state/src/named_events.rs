//! The events of section 9.6 of the Attractor specification, which other tools expect, as a fold of records.
//!
//! A record stands for no, one or several events. `CheckpointSaved` has no record: the journal itself is the checkpoint.

use glovebox_journal::event::{
    AnsweredBy, BranchEnd, BranchId, Event, NodeId, QuestionId, Record, RunId, Task, Verdict,
};
use glovebox_record::Status;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// One event. Durations are in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event")]
#[schemars(title = "serve-event.json")]
pub enum NamedEvent {
    /// The pipeline began.
    PipelineStarted {
        /// Name of the pipeline's graph.
        name: String,
        /// Id of the run.
        id: RunId,
    },
    /// The pipeline succeeded.
    PipelineCompleted {
        /// Time since the start of the run.
        duration: u64,
        /// Number of artifacts that stages kept.
        artifact_count: u64,
    },
    /// The pipeline failed.
    PipelineFailed {
        /// Why.
        error: String,
        /// Time since the start of the run.
        duration: u64,
    },
    /// A stage began.
    StageStarted {
        /// The node.
        name: NodeId,
        /// Number of the stage in the run, counted from 0.
        index: u32,
    },
    /// A stage ended, and did not fail.
    StageCompleted {
        /// The node.
        name: NodeId,
        /// Number of the stage in the run, counted from 0.
        index: u32,
        /// Duration of the last attempt.
        duration: u64,
    },
    /// An attempt of a stage failed.
    StageFailed {
        /// The node.
        name: NodeId,
        /// Number of the stage in the run, counted from 0.
        index: u32,
        /// Why.
        error: String,
        /// True if another attempt follows.
        will_retry: bool,
    },
    /// Another attempt of a stage follows.
    StageRetrying {
        /// The node.
        name: NodeId,
        /// Number of the stage in the run, counted from 0.
        index: u32,
        /// Number of the attempt, counted from 1.
        attempt: u32,
        /// Time until the attempt begins.
        delay: u64,
    },
    /// A parallel node was reached.
    ParallelStarted {
        /// Number of branches.
        branch_count: usize,
    },
    /// A branch began.
    ParallelBranchStarted {
        /// The branch.
        branch: BranchId,
        /// Number of the branch in its parallel node, counted from 0.
        index: u32,
    },
    /// A branch ended.
    ParallelBranchCompleted {
        /// The branch.
        branch: BranchId,
        /// Number of the branch in its parallel node, counted from 0.
        index: u32,
        /// Time since the start of the branch.
        duration: u64,
        /// False if the branch failed or was canceled.
        success: bool,
    },
    /// All branches of a parallel node have ended.
    ParallelCompleted {
        /// Time since the parallel node was reached.
        duration: u64,
        /// Number of branches that succeeded.
        success_count: u32,
        /// Number of branches that failed or were canceled.
        failure_count: u32,
    },
    /// A person was asked a question.
    InterviewStarted {
        /// The question.
        question: QuestionId,
        /// The node that asks.
        stage: NodeId,
    },
    /// A question was answered.
    InterviewCompleted {
        /// The question.
        question: QuestionId,
        /// The answer, as the person wrote it.
        answer: String,
        /// Time since the question was asked.
        duration: u64,
    },
    /// The time limit of a question passed.
    InterviewTimeout {
        /// The question.
        question: QuestionId,
        /// The node that asks.
        stage: NodeId,
        /// Time since the question was asked.
        duration: u64,
    },
}

impl NamedEvent {
    /// Returns the name of the event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::PipelineStarted { .. } => "PipelineStarted",
            Self::PipelineCompleted { .. } => "PipelineCompleted",
            Self::PipelineFailed { .. } => "PipelineFailed",
            Self::StageStarted { .. } => "StageStarted",
            Self::StageCompleted { .. } => "StageCompleted",
            Self::StageFailed { .. } => "StageFailed",
            Self::StageRetrying { .. } => "StageRetrying",
            Self::ParallelStarted { .. } => "ParallelStarted",
            Self::ParallelBranchStarted { .. } => "ParallelBranchStarted",
            Self::ParallelBranchCompleted { .. } => "ParallelBranchCompleted",
            Self::ParallelCompleted { .. } => "ParallelCompleted",
            Self::InterviewStarted { .. } => "InterviewStarted",
            Self::InterviewCompleted { .. } => "InterviewCompleted",
            Self::InterviewTimeout { .. } => "InterviewTimeout",
        }
    }
}

/// What the events after a record need to know of the records before it. All of it is about stages, branches and
/// questions that have not ended, so it does not grow with the run.
#[derive(Debug, Default)]
pub struct NamedEvents {
    started: Option<Timestamp>,
    stages: u32,
    artifacts: u64,
    indexes: BTreeMap<Task, u32>,
    parallels: BTreeMap<(BranchId, NodeId), Timestamp>,
    branches: BTreeMap<BranchId, (u32, Timestamp)>,
    questions: BTreeMap<QuestionId, Timestamp>,
}

impl NamedEvents {
    /// Returns the events that a record stands for.
    pub fn of(&mut self, record: &Record) -> Vec<NamedEvent> {
        let since = |began: Option<Timestamp>| {
            began.map_or(0, |began| u64::try_from(record.at.duration_since(began).as_millis()).unwrap_or(0))
        };
        match &record.event {
            Event::RunStarted(started) => {
                self.started = Some(record.at);
                vec![NamedEvent::PipelineStarted { name: started.pipeline.name.clone(), id: started.run_id.clone() }]
            }
            Event::RunFinished(finished) => {
                let duration = since(self.started);
                vec![match finished.status {
                    Verdict::Success => NamedEvent::PipelineCompleted { duration, artifact_count: self.artifacts },
                    Verdict::Fail => NamedEvent::PipelineFailed {
                        error: finished.failure.as_ref().map(|failure| failure.reason.clone()).unwrap_or_default(),
                        duration,
                    },
                }]
            }
            Event::StageStarted(_) | Event::StageFinished(_) | Event::StagePassed(_) | Event::StageRetrying(_) => {
                self.of_stage(&record.event)
            }
            Event::QuestionAsked(asked) => {
                self.questions.insert(asked.question.clone(), record.at);
                vec![NamedEvent::InterviewStarted { question: asked.question.clone(), stage: asked.node.clone() }]
            }
            Event::QuestionAnswered(answered) => {
                let question = answered.question.clone();
                let duration = since(self.questions.remove(&question));
                vec![match answered.how {
                    AnsweredBy::Timeout => {
                        NamedEvent::InterviewTimeout { question, stage: answered.node.clone(), duration }
                    }
                    _ => NamedEvent::InterviewCompleted { question, answer: answered.value.clone(), duration },
                }]
            }
            event => self.of_parallel(event, record.at, since),
        }
    }

    fn of_stage(&mut self, event: &Event) -> Vec<NamedEvent> {
        match event {
            Event::StageStarted(started) => {
                let task = &started.attempt.task;
                let index = self.index(task);
                vec![NamedEvent::StageStarted { name: task.node.clone(), index }]
            }
            Event::StageFinished(finished) => {
                self.artifacts += finished.files.artifacts.len() as u64;
                let (task, will_retry) = (&finished.attempt.task, finished.follow_up.retrying);
                let (name, index) = (task.node.clone(), self.index(task));
                if !will_retry {
                    self.indexes.remove(task);
                }
                let (outcome, duration) = (&finished.outcome, finished.duration_ms);
                let error = || outcome.failure.as_ref().map(|failure| failure.reason.clone()).unwrap_or_default();
                vec![match outcome.status {
                    Status::Fail | Status::Retry => NamedEvent::StageFailed { name, index, error: error(), will_retry },
                    _ => NamedEvent::StageCompleted { name, index, duration },
                }]
            }
            Event::StagePassed(passed) => {
                let (name, index) = (passed.node.clone(), self.stages);
                self.stages += 1;
                let started = NamedEvent::StageStarted { name: name.clone(), index };
                vec![started, NamedEvent::StageCompleted { name, index, duration: 0 }]
            }
            Event::StageRetrying(retrying) => vec![NamedEvent::StageRetrying {
                name: retrying.task.node.clone(),
                index: self.index(&retrying.task),
                attempt: retrying.ordinal,
                delay: retrying.delay_ms,
            }],
            _ => Vec::new(),
        }
    }

    fn of_parallel(
        &mut self,
        event: &Event,
        at: Timestamp,
        since: impl Fn(Option<Timestamp>) -> u64,
    ) -> Vec<NamedEvent> {
        match event {
            Event::ParallelStarted(started) => {
                self.parallels.insert((started.branch.clone(), started.node.clone()), at);
                for (child, index) in started.children.iter().zip(0..) {
                    self.branches.insert(child.id.clone(), (index, at));
                }
                vec![NamedEvent::ParallelStarted { branch_count: started.children.len() }]
            }
            Event::BranchStarted(started) => {
                let known = self.branches.entry(started.branch.clone()).or_insert((0, at));
                known.1 = at;
                vec![NamedEvent::ParallelBranchStarted { branch: started.branch.clone(), index: known.0 }]
            }
            Event::BranchFinished(finished) => {
                let known = self.branches.remove(&finished.branch);
                let success = matches!(finished.outcome, BranchEnd::Success | BranchEnd::PartialSuccess);
                let (branch, index) = (finished.branch.clone(), known.map_or(0, |(index, _)| index));
                let duration = since(known.map(|(_, at)| at));
                vec![NamedEvent::ParallelBranchCompleted { branch, index, duration, success }]
            }
            Event::ParallelJoined(joined) => {
                let began = self.parallels.remove(&(joined.branch.clone(), joined.node.clone()));
                let (success_count, failure_count) = (joined.succeeded, joined.failed + joined.canceled);
                vec![NamedEvent::ParallelCompleted { duration: since(began), success_count, failure_count }]
            }
            _ => Vec::new(),
        }
    }

    fn index(&mut self, task: &Task) -> u32 {
        *self.indexes.entry(task.clone()).or_insert_with(|| {
            self.stages += 1;
            self.stages - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Simulation, finished, pipeline};
    use glovebox_record::{Failure, FailureClass, FailureCode, Outcome};
    use serde_json::{Value, json};

    const FRAME: &str = "start [shape=Mdiamond]; exit [shape=Msquare]";

    fn events(text: &str, fails: &str) -> Vec<Value> {
        let graph = pipeline(&format!("digraph g {{ {FRAME} {text} }}"));
        let run = Simulation::run(&graph, 30, &mut |open| {
            let failure = Failure::new(FailureClass::Deterministic, FailureCode::NO_TESTS, "it broke");
            let failed = Outcome { failure: Some(failure), ..Outcome::new(Status::Fail) };
            finished(open, if open.task.node == *fails { failed } else { Outcome::new(Status::Success) })
        });
        let mut fold = NamedEvents::default();
        let named = run.records.iter().flat_map(|record| fold.of(record));
        named.map(|event| serde_json::to_value(&event).unwrap()).collect()
    }

    fn names(events: &[Value]) -> Vec<&str> {
        events.iter().map(|event| event["event"].as_str().unwrap()).collect()
    }

    #[test]
    fn a_run_has_the_events_of_the_specification() {
        let events = events("a; start -> a -> exit", "");
        assert_eq!(events[0], json!({ "event": "PipelineStarted", "name": "g", "id": "run" }));
        let of_a: Vec<&Value> = events.iter().filter(|event| event["name"] == "a").collect();
        assert_eq!((&of_a[0]["event"], &of_a[1]["event"]), (&json!("StageStarted"), &json!("StageCompleted")));
        assert_eq!(of_a[0]["index"], of_a[1]["index"]);
        assert_eq!(events.last().unwrap()["event"], "PipelineCompleted");
    }

    #[test]
    fn a_failure_names_its_reason() {
        let events = events("a; start -> a -> exit", "a");
        let failed = events.iter().find(|event| event["event"] == "StageFailed").unwrap();
        assert_eq!((&failed["error"], &failed["will_retry"]), (&json!("it broke"), &json!(false)));
        assert_eq!(events.last().unwrap()["event"], "PipelineFailed");
    }

    #[test]
    fn branches_begin_and_end_in_pairs() {
        let events = events(
            "f [shape=component]; j [shape=tripleoctagon]; a; b; c; start -> f; f -> a -> j; f -> b -> j; j -> c -> exit",
            "",
        );
        let names = names(&events);
        for (name, count) in [
            ("ParallelStarted", 1),
            ("ParallelBranchStarted", 2),
            ("ParallelBranchCompleted", 2),
            ("ParallelCompleted", 1),
        ] {
            assert_eq!(names.iter().filter(|other| **other == name).count(), count, "{name}: {names:?}");
        }
        let of = |name: &str, field: &str| -> Vec<&Value> {
            events.iter().filter(|event| event["event"] == name).map(|event| &event[field]).collect()
        };
        assert_eq!(of("ParallelBranchStarted", "index"), [&json!(0), &json!(1)]);
        assert_eq!(of("ParallelCompleted", "success_count"), [&json!(2)]);
    }
}
