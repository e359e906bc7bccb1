//! The events of a human gate: a question was asked, and it was answered or its deadline passed.
//!
//! An answer records who gave it, when, how and with which text. The outcome of the gate is computed from the answer alone.

use super::{BranchId, Digest, NodeId, RecoveryAction, RecoveryQuestion, Task, time_format};
use glovebox_record::question::{Answer, Answers};
use glovebox_record::{Choice, Failure, FailureClass, Outcome, QuestionId, QuestionType, Status};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A person was asked a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAsked {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch that waits for the answer.
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
    /// The text of the question.
    pub text: String,
    /// The choices, in file order.
    #[serde(default)]
    pub choices: Vec<Choice>,
    /// The answer that is used after the timeout, or if no person can answer; absent if the gate has no default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Choice>,
    /// The deadline for an answer; absent if there is none.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<Timestamp>,
    /// The writes that the question is about, if it is about disallowed writes; absent for a human gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Box<RecoveryQuestion>>,
}

impl QuestionAsked {
    /// Returns the rules that decide whether an answer is valid.
    pub fn answers(&self) -> Answers<'_> {
        Answers { kind: self.question_type, choices: &self.choices }
    }

    /// Returns the visit of the gate as a task.
    pub fn task(&self) -> Task {
        Task::for_handler(self.generation, &self.branch, &self.node, self.visit)
    }

    /// Returns the id of the question that a visit of a gate asks: `node#visit`. A generation above 0 and a branch
    /// other than `main` precede it: `1/branch/node#visit`.
    pub fn id_of(task: &Task) -> QuestionId {
        let generation = if task.generation > 0 { format!("{}/", task.generation) } else { String::new() };
        let branch = if task.branch == BranchId::main() { String::new() } else { format!("{}/", task.branch) };
        QuestionId::from(format!("{generation}{branch}{}#{}", task.node, task.visit))
    }

    /// Returns the id of the question about the disallowed writes of a visit.
    pub fn id_of_recovery(task: &Task) -> QuestionId {
        QuestionId::from(format!("{}/recovery", Self::id_of(task)))
    }
}

/// How an answer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// In the terminal of the process that drives the run.
    Terminal,
    /// By `glovebox answer`.
    Command,
    /// By a client of `glovebox serve`.
    Http,
    /// By an agent, with `glovebox mcp --right operate`.
    Mcp,
    /// From a file of answers.
    File,
    /// By `--auto-approve`, without a person.
    Auto,
    /// By the gate's default, because no person could answer.
    Default,
    /// The deadline passed without an answer. The gate used its default, or failed if it has none.
    Timeout,
}

impl AnsweredBy {
    /// Returns the name used in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Command => "command",
            Self::Http => "http",
            Self::Mcp => "mcp",
            Self::File => "file",
            Self::Auto => "auto",
            Self::Default => "default",
            Self::Timeout => "timeout",
        }
    }
}

/// A question was answered, or its deadline has passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswered {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch that waited for the answer.
    pub branch: BranchId,
    /// The gate.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The question.
    pub question: QuestionId,
    /// How the answer was given.
    pub how: AnsweredBy,
    /// The name of the person who answered; empty if no person did.
    #[serde(default)]
    pub by: String,
    /// The time of the answer. The record can be later if the run was paused and resumed.
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub answered_at: Timestamp,
    /// The answer as the person wrote it.
    #[serde(default)]
    pub value: String,
    /// The parsed answer; absent if the deadline passed and there is no default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The text of a free answer, or the comment to a choice. It is untrusted text of bounded length.
    #[serde(default)]
    pub text: String,
    /// The line of the file of answers; absent for any other answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sheet: Option<SheetLine>,
    /// True if the question was about disallowed writes. Such an answer does not complete the node; the answer of a gate does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovery: bool,
}

/// A line of a file of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SheetLine {
    /// BLAKE3 digest of the file.
    pub digest: Digest,
    /// The number of the line, from 1.
    pub line: u32,
}

impl QuestionAnswered {
    /// Returns the outcome of the gate. It prefers the label of the choice and suggests its target
    /// (decision choices-name-label-and-target).
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

    /// Returns the visit of the gate as a task.
    pub fn task(&self) -> Task {
        Task::for_handler(self.generation, &self.branch, &self.node, self.visit)
    }

    /// Returns the recovery action that an answer about disallowed writes chose. An answer that names no action denies.
    pub fn action(&self) -> RecoveryAction {
        let Some(Answer::Choice(choice)) = &self.answer else { return RecoveryAction::Deny };
        let named = RecoveryAction::ALL.into_iter().find(|action| choice.to == *action.as_str());
        named.unwrap_or(RecoveryAction::Deny)
    }
}

/// The run was paused: no process drives it until it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunPaused {
    /// The name of the person who paused the run; absent if the run waits for answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The questions without an answer.
    #[serde(default)]
    pub questions: Vec<QuestionId>,
    /// Why an available answer was rejected; absent if no answer was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The stage that is executed again once the cause of its failure is fixed; absent if the run was paused for another reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldStage>,
    /// The first time at which a stage that waits for a quota would have been executed again, as its provider named it;
    /// absent if no stage waits for a quota or no provider named a time.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub resume_at: Option<Timestamp>,
}

/// A stage that failed because a person must provide something, such as credit at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldStage {
    /// The stage.
    pub node: NodeId,
    /// The failure of the stage.
    pub failure: Failure,
    /// How often the visit has waited for its quota before; absent if it has not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waits: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
