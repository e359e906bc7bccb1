//! The model bound to one attempt of one node. It answers turns.
//!
//! Three kinds are built in and none of them leaves the machine: a script, the answers of the node's `test.*` attributes,
//! and the specification's simulated answer. It refuses to know the guest: counting, limits and grants are the caller's.

mod attributes;
mod guard;
mod scripted;
mod simulated;

pub use attributes::{TEST_PREFIX, TestAnswers, TestAttributeError};
pub use guard::TextGuard;
pub use scripted::{Script, ScriptError};

use glovebox_record::{NodeId, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The model of one attempt.
#[derive(Debug, Clone)]
pub struct Model {
    kind: ModelKind,
    node: NodeId,
    /// Turns that finished attempts of this node have used; the next one to answer counts from 0.
    position: u32,
    guard: Option<TextGuard>,
}

#[derive(Debug, Clone)]
enum ModelKind {
    Scripted(Arc<Script>),
    Tested(TestAnswers),
    Simulated,
}

/// The source of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// A script.
    Scripted,
    /// The node's `test.*` attributes.
    Test,
    /// The specification's simulated answer.
    Simulated,
}

impl Provider {
    /// The word in records and in `llm.info`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Test => "test",
            Self::Simulated => "simulated",
        }
    }
}

/// What a model says in one turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// Text, possibly empty.
    pub text: String,
    /// Tools it asks for; ids are unique within the attempt.
    pub tool_calls: Vec<ToolCall>,
    /// An outcome it declares.
    pub outcome: Option<DeclaredOutcome>,
    /// Tokens of the exchange.
    pub usage: Usage,
}

/// A tool the model asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Unique within the attempt.
    pub id: String,
    /// The tool.
    pub name: String,
    /// JSON text.
    pub arguments: String,
}

/// Tokens of one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Tokens sent.
    pub input: u64,
    /// Tokens received.
    pub output: u64,
}

/// An outcome as a model declares it; reaches the guest as a part of kind `outcome`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredOutcome {
    /// How the stage ended.
    pub status: Status,
    /// Hint for edge selection.
    #[serde(default)]
    pub preferred_label: String,
    /// Hint for edge selection.
    #[serde(default)]
    pub suggested_next_ids: Vec<String>,
    /// Keys for the pipeline's context.
    #[serde(default)]
    pub context_updates: BTreeMap<String, Value>,
    /// For people.
    #[serde(default)]
    pub notes: String,
    /// Why it failed.
    #[serde(default)]
    pub failure_reason: String,
}

/// Why a turn was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The script has no such turn.
    #[error("the script has {scripted} {} for node `{node_id}`, expected one for turn {turn}", if *scripted == 1 { "turn" } else { "turns" })]
    ScriptExhausted {
        /// The node.
        node_id: NodeId,
        /// The turn that was asked for, from 1.
        turn: u32,
        /// How many there are.
        scripted: usize,
    },
}

impl Model {
    /// Binds a node to its model: a script that mentions the node, else its `test.*` attributes, else the script (which
    /// will run dry and say so), else the simulated answer.
    ///
    /// `turns_used` is the sum over the node's finished attempts, `finished_attempts` their number.
    pub fn bind(
        node: &NodeId,
        attributes: &[(String, String)],
        script: Option<&Arc<Script>>,
        turns_used: u32,
        finished_attempts: u32,
    ) -> Result<Model, TestAttributeError> {
        let tested = TestAnswers::read(attributes, finished_attempts)?;
        let kind = match (script, tested) {
            (Some(script), _) if script.mentions(node) => ModelKind::Scripted(Arc::clone(script)),
            (_, Some(answers)) => ModelKind::Tested(answers),
            (Some(script), None) => ModelKind::Scripted(Arc::clone(script)),
            (None, None) => ModelKind::Simulated,
        };
        Ok(Model { kind, node: node.clone(), position: turns_used, guard: None })
    }

    /// Has every text to and from the model looked at first; one that is found out ends the attempt as failed, class scope, code
    /// `holdout/leak`.
    pub fn guarded(self, guard: TextGuard) -> Self {
        Model { guard: Some(guard), ..self }
    }

    /// Who listens.
    pub(crate) fn guard(&self) -> Option<&TextGuard> {
        self.guard.as_ref()
    }

    /// Who answers.
    pub fn provider(&self) -> Provider {
        match self.kind {
            ModelKind::Scripted(_) => Provider::Scripted,
            ModelKind::Tested(_) => Provider::Test,
            ModelKind::Simulated => Provider::Simulated,
        }
    }

    /// What `llm.info` tells a guest.
    pub fn info(&self) -> Vec<(String, String)> {
        let provider = self.provider().as_str();
        let pairs = [("provider", provider), ("model", provider)];
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    /// Answers the next turn.
    pub fn answer(&mut self) -> Result<Answer, ModelError> {
        let answer = match &self.kind {
            ModelKind::Scripted(script) => script.turn(&self.node, self.position)?,
            ModelKind::Tested(answers) => answers.answer(&self.node),
            ModelKind::Simulated => simulated::answer(&self.node),
        };
        self.position += 1;
        Ok(answer)
    }
}
