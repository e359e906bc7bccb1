//! The events of a human gate: a question was asked, and it was answered or nobody answered it in time.
//!
//! An answer says who gave it, when, how and in which words. What the gate's outcome is follows from it and from nothing else.

use super::{BranchId, Digest, NodeId, RecoveryAction, RecoveryQuestion, Task, time_format};
use glovebox_record::question::{Answer, Answers};
use glovebox_record::{Choice, Failure, FailureClass, Outcome, QuestionId, QuestionType, Status};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAsked {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch that waits.
    pub branch: BranchId,
    /// The gate.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The question, unique in the run.
    pub question: QuestionId,
    /// The type of the question.
    #[serde(rename = "type")]
    pub question_type: QuestionType,
    /// Its text.
    pub text: String,
    /// The choices, in file order.
    #[serde(default)]
    pub choices: Vec<Choice>,
    /// The answer after the timeout, or if nobody is there; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Choice>,
    /// When it is too late to answer; absent when it never is.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<Timestamp>,
    /// The writes that the question is about, if it is about disallowed writes; absent for a human gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Box<RecoveryQuestion>>,
}

impl QuestionAsked {
    /// The rules by which an answer is valid.
    pub fn answers(&self) -> Answers<'_> {
        Answers { kind: self.question_type, choices: &self.choices }
    }

    /// The visit of the gate.
    pub fn task(&self) -> Task {
        Task::for_handler(self.generation, &self.branch, &self.node, self.visit)
    }

    /// The id of the question that a visit of a gate asks: the node and the visit, with branch and generation where they are not the first.
    pub fn id_of(task: &Task) -> QuestionId {
        let generation = if task.generation > 0 { format!("{}/", task.generation) } else { String::new() };
        let branch = if task.branch == BranchId::main() { String::new() } else { format!("{}/", task.branch) };
        QuestionId::from(format!("{generation}{branch}{}#{}", task.node, task.visit))
    }

    /// The id of the question about the disallowed writes of a visit.
    pub fn id_of_recovery(task: &Task) -> QuestionId {
        QuestionId::from(format!("{}/recovery", Self::id_of(task)))
    }
}

/// How an answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// In the terminal of the process that drives the run.
    Terminal,
    /// By `glovebox answer`.
    Command,
    /// From a file of answers.
    File,
    /// By `--auto-approve`: no person looked.
    Auto,
    /// The gate's default, because nobody was there.
    Default,
    /// Nobody answered in time: the gate's default, or a failure.
    Timeout,
}

impl AnsweredBy {
    /// The word in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Command => "command",
            Self::File => "file",
            Self::Auto => "auto",
            Self::Default => "default",
            Self::Timeout => "timeout",
        }
    }
}

/// A question was answered, or its time has passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswered {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch that waited.
    pub branch: BranchId,
    /// The gate.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The question.
    pub question: QuestionId,
    /// How the answer came.
    pub how: AnsweredBy,
    /// The name of the person who gave it; empty when no person did.
    #[serde(default)]
    pub by: String,
    /// When it was given. The record may be later, when a paused run is resumed.
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub answered_at: Timestamp,
    /// The answer as it was written.
    #[serde(default)]
    pub value: String,
    /// The parsed answer; absent when nobody answered in time and there is no default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The text of a free answer, or what was said beside a choice. Text from outside, bounded.
    #[serde(default)]
    pub text: String,
    /// The line of the file of answers; absent for an answer that came in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sheet: Option<SheetLine>,
    /// True if the question was about disallowed writes. Such an answer does not end the node as a gate's answer does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovery: bool,
}

/// A line of a file of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SheetLine {
    /// BLAKE3 of the file.
    pub digest: Digest,
    /// The number of the line, from 1.
    pub line: u32,
}

impl QuestionAnswered {
    /// The gate's outcome: it prefers the label and suggests the target of the choice (decision choices-name-label-and-target).
    pub fn outcome(&self) -> Outcome {
        let failed = |code: &'static str, reason: String| {
            Outcome::failed(Failure::new(FailureClass::Deterministic, code, reason))
        };
        let declined =
            |with: &str| failed("human/declined", format!("human gate `{}` was answered with `{with}`", self.node));
        let mut outcome = match &self.answer {
            None => return failed("human/timeout", "human gate timeout, no default".to_owned()),
            Some(Answer::No) => declined("no"),
            Some(Answer::Text) => Outcome::new(Status::Success),
            Some(Answer::Choice(choice)) => Outcome {
                preferred_label: Some(choice.label.clone()),
                suggested_next_ids: vec![choice.to.to_string()],
                ..match choice.declines {
                    true => declined(choice.label.trim()),
                    false => Outcome::new(Status::Success),
                }
            },
        };
        let text = |text: &str| Value::String(text.to_owned());
        let (selected, label) = match &self.answer {
            Some(Answer::Choice(choice)) => (choice.key.as_str(), choice.label.as_str()),
            Some(Answer::No) => ("N", "no"),
            _ => ("", ""),
        };
        outcome.context_updates.extend([
            ("human.gate.selected".to_owned(), text(selected)),
            ("human.gate.label".to_owned(), text(label)),
            ("human.gate.text".to_owned(), text(&self.text)),
        ]);
        outcome
    }

    /// The visit of the gate.
    pub fn task(&self) -> Task {
        Task::for_handler(self.generation, &self.branch, &self.node, self.visit)
    }

    /// The decision of an answer about disallowed writes. An answer that names no action denies.
    pub fn action(&self) -> RecoveryAction {
        let Some(Answer::Choice(choice)) = &self.answer else { return RecoveryAction::Deny };
        let named = RecoveryAction::ALL.into_iter().find(|action| choice.to == *action.as_str());
        named.unwrap_or(RecoveryAction::Deny)
    }
}

/// The run holds no process from here on, until it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunPaused {
    /// The name of the person who asked for it; absent when it waits for answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The questions that nobody has answered.
    #[serde(default)]
    pub questions: Vec<QuestionId>,
    /// Why an answer that was at hand did not count; absent when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The failure of a stage that is made again once its cause is mended; absent when it was not that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldStage>,
}

/// A stage that failed for want of something that a person has to give, such as credit at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldStage {
    /// The stage.
    pub node: NodeId,
    /// Its failure.
    pub failure: Failure,
}
