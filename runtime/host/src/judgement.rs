//! What policies are asked about, and what follows from their answers: permission or a refusal with its reason.
//!
//! This module does not know how a component is run. A policy that traps, exceeds a limit or was revoked refuses everything. The reason
//! of a refusal is untrusted text: it is cut and made visible here.

use crate::revocation::RevocationCheck;
use glovebox_names::visible;
use glovebox_record::LimitSettings;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Maximum length of the reason of a refusal, in characters.
const REASON_CHARS_MAX: usize = 500;

/// An action that a policy judges, as JSON.
#[derive(Debug, Clone)]
pub enum Question {
    /// A tool call of an agent.
    Call(String),
    /// An edge that the run is about to take.
    Edge(String),
}

/// A tool call of an agent's model, as a policy gets it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "the question of `judge-call`")]
pub struct JudgedCall<'a> {
    /// Id of the node.
    pub node: &'a str,
    /// Type of the node's handler.
    pub handler: &'a str,
    /// Attributes of the node.
    pub attributes: &'a Map<String, Value>,
    /// Name by which the model calls the tool.
    pub tool: &'a str,
    /// The arguments; `null` if the stage can read hold-outs.
    pub arguments: Value,
}

/// An edge that a run is about to take, as a policy gets it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "the question of `judge-edge`")]
pub struct JudgedEdge<'a> {
    /// Id of the node that the run leaves.
    pub from: &'a str,
    /// Id of the next node.
    pub to: &'a str,
    /// Status of the last stage, such as `success`.
    pub status: &'a str,
    /// The rule that chose the next node, such as `condition` or `retry_target`.
    pub how: &'a str,
    /// Attributes of the edge; empty for a jump to a target.
    pub attributes: Map<String, Value>,
    /// Attributes of the next node.
    pub target: Map<String, Value>,
    /// Nodes whose last visit on this branch succeeded, sorted.
    pub succeeded: Vec<&'a str>,
}

impl From<&JudgedCall<'_>> for Question {
    fn from(call: &JudgedCall<'_>) -> Self {
        Self::Call(json(call))
    }
}

impl From<&JudgedEdge<'_>> for Question {
    fn from(edge: &JudgedEdge<'_>) -> Self {
        Self::Edge(json(edge))
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it has only texts and lists")
}

/// A refusal of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Name of the policy in glovebox.toml.
    pub policy: String,
    /// The reason, cut and without deceptive characters.
    pub reason: String,
    /// True if the policy could not judge: it trapped, exceeded a limit or was revoked.
    pub is_fault: bool,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, reason, is_fault } = self;
        match is_fault {
            true => write!(f, "the policy `{policy}` could not judge, so it refuses: {reason}"),
            false => write!(f, "the policy `{policy}` refuses: {reason}"),
        }
    }
}

/// The answer of a policy: permission, or the reason of a refusal. The outer error says why there is no answer.
pub type PolicyAnswer = Result<Result<(), String>, String>;

type AskFunction = dyn Fn(&Question, &LimitSettings) -> PolicyAnswer + Send + Sync;

/// Asks the component of a policy, within these limits.
#[derive(Clone)]
pub struct AskPolicy(Arc<AskFunction>);

impl AskPolicy {
    pub(crate) fn new(ask: impl Fn(&Question, &LimitSettings) -> PolicyAnswer + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }
}

impl AskPolicy {
    /// Asks outside of a run. Returns permission, or the reason of a refusal as the component wrote it.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn ask_outside(&self, question: &Question) -> PolicyAnswer {
        (self.0)(question, &LimitSettings::default())
    }
}

/// A policy of a run.
pub struct RunPolicy {
    /// Name in glovebox.toml.
    pub name: String,
    /// Asks the component.
    pub ask: AskPolicy,
    /// Says whether the policy was revoked.
    pub revocation: RevocationCheck,
}

/// The policies of a run, in the order of glovebox.toml. Each of them must allow an action.
#[derive(Default)]
pub struct PolicySet {
    policies: Vec<RunPolicy>,
    limits: LimitSettings,
}

impl fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.policies.iter().map(|policy| &policy.name)).finish()
    }
}

impl PolicySet {
    /// Creates a set. `limits` lowers the limits of each question.
    pub fn new(policies: Vec<RunPolicy>, limits: LimitSettings) -> Self {
        Self { policies, limits }
    }

    /// Returns true if there is no policy, so that nothing needs to be judged.
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// Returns the first refusal. Blocks for at most one second for each policy.
    pub fn judge(&self, question: &Question) -> Result<(), Denial> {
        self.policies.iter().try_for_each(|policy| policy.judge(question, &self.limits))
    }
}

impl RunPolicy {
    fn judge(&self, question: &Question, limits: &LimitSettings) -> Result<(), Denial> {
        let denial = |reason: &str, is_fault| Denial { policy: self.name.clone(), reason: shown(reason), is_fault };
        if let Some(reason) = self.revocation.look() {
            return Err(denial(reason, true));
        }
        match (self.ask.0)(question, limits) {
            Ok(judged) => judged.map_err(|reason| denial(&reason, false)),
            Err(fault) => Err(denial(&fault, true)),
        }
    }
}

/// Returns the reason of a refusal as one short line.
fn shown(reason: &str) -> String {
    let cut: String = reason.chars().take(REASON_CHARS_MAX).collect();
    let line = visible::line(cut.trim()).into_owned();
    if line.is_empty() { "it gives no reason".to_owned() } else { line }
}
