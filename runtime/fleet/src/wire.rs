//! What a machine and the driver of a run say to each other, as JSON.
//!
//! A machine asks, and the driver answers. Nothing of it is a fact: a question may be lost or come twice, and both sides then
//! ask again. What must not be lost is in the stream: the pointer to a task before, and the result of the attempt after.

use crate::run_key::SealedKey;
use bytes::Bytes;
use glovebox_engine::run::ClaimedTask;
use glovebox_jail::pulse::PulseCounts;
use glovebox_journal::event::{AttemptId, MachineId, NodeId, StageFinished, StatusIngested, Task};
use glovebox_plan::plan::ProgramFolders;
use glovebox_record::placement::{MachineFacts, ProgramName};
use glovebox_record::spend::Spend;
use glovebox_record::steering::SteeringMessage;
use glovebox_record::{Digest, Failure, RunId, WaitKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of these messages. A machine with another version gets no attempt.
pub(crate) const PROTOCOL: u32 = 1;

/// A pointer to a task that is ready, or to a run that must be driven.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pointer {
    pub(crate) run: RunId,
    /// The record that made the task ready.
    pub(crate) seq: u64,
    /// The task. `None` for a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<Task>,
}

impl Pointer {
    pub(crate) fn new(run: &RunId, seq: u64, task: Option<Task>) -> Self {
        Self { run: run.clone(), seq, task }
    }

    /// Returns the content of the message.
    pub(crate) fn payload(&self) -> Bytes {
        serde_json::to_vec(self).expect("a pointer holds text and numbers only").into()
    }
}

/// A question of a machine to the driver of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    pub(crate) protocol: u32,
    /// The id of the fleet. A question of another fleet is not answered.
    pub(crate) fleet: String,
    /// The run. A question about another run is not answered.
    pub(crate) run: RunId,
    pub(crate) machine: MachineId,
    pub(crate) ask: Ask,
}

impl Question {
    /// Returns the task for which the machine asks. `None` for another question.
    pub(crate) fn claimed(&self) -> Option<&Task> {
        match &self.ask {
            Ask::Claim { task, .. } => Some(task),
            _ => None,
        }
    }

    /// Returns why a question in another version of the protocol is refused. `None` for one in this version.
    pub(crate) fn other_protocol(&self) -> Option<String> {
        let Self { protocol, .. } = self;
        let reason =
            || format!("the machine speaks version {protocol} of the protocol, and the driver version {PROTOCOL}");
        (*protocol != PROTOCOL).then(reason)
    }
}

/// What a machine asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Ask {
    /// May this machine make the attempt of a task?
    Claim { task: Task, ready_seq: u64, facts: MachineFacts },
    /// Must the attempt go on? The machine has got `steered` messages so far.
    Beat { attempt: AttemptId, counts: PulseCounts, waits_for: Option<WaitKind>, steered: usize },
    /// May the attempt pay this amount for a call of a node? So far, it has paid or reserved `held`.
    Reserve { attempt: AttemptId, node: NodeId, held: Spend, wanted: Spend },
    /// The machine cannot make the attempt, and has done nothing of it.
    GiveBack { attempt: AttemptId, reason: String },
    /// The result is in the stream. Is there a next attempt, if this machine goes on?
    Made { attempt: AttemptId, goes_on: bool },
}

/// The answer of a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Answer {
    /// The attempt was claimed for the machine.
    Order(Order),
    /// The driver does not know yet. The machine asks again later.
    Later,
    /// The task is not needed, or another machine has it.
    NotNeeded,
    /// The attempt goes on.
    GoOn { steering: Vec<SteeringMessage> },
    /// The amount is reserved.
    Granted,
    /// The amount would exceed a bound.
    Denied(Box<Failure>),
    /// The attempt must stop. Its result still counts.
    Stop,
    /// The run does not wait for the attempt any more.
    Overtaken,
    /// The driver does not give attempts to the machine.
    Refused { reason: String },
    /// Stages of the run need these programs. The machine looks for them where its commands would find them, and asks again with
    /// what it found.
    LookFor { programs: BTreeSet<ProgramName>, folders: ProgramFolders },
}

/// An attempt for a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    pub(crate) task: ClaimedTask,
    /// Digest of the run's plan.
    pub(crate) plan: Digest,
}

/// What a driver signs to answer a question.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerMessage {
    pub(crate) protocol: u32,
    /// The id of the fleet.
    pub(crate) fleet: String,
    pub(crate) run: RunId,
    /// Digest of the signed question. The answer means nothing to another one.
    pub(crate) question: Digest,
    /// The key of the run for the machine, with an order in an encrypted run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<SealedKey>,
    pub(crate) content: AnswerContent,
}

/// An answer, encrypted in an encrypted run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum AnswerContent {
    /// The answer.
    Answer(Answer),
    /// The answer, encrypted with the key of the run.
    Encrypted(String),
}

/// The result of an attempt, as it is stored in the stream.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Made {
    pub(crate) protocol: u32,
    /// The id of the fleet.
    pub(crate) fleet: String,
    pub(crate) machine: MachineId,
    /// The number of the record with the claim.
    pub(crate) token: u64,
    pub(crate) finished: StageFinished,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ingested: Option<Box<StatusIngested>>,
}

/// The message of a result: the result itself, or the blob with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum MadeMessage {
    /// The result.
    Made(Box<Made>),
    /// A result that is too large for a message.
    Blob(Digest),
    /// One of these, encrypted with the key of the run.
    Encrypted(String),
}
