//! The outcome of a stage: its status, and its failure.
//!
//! The host decides a failure's class and code. No code interprets the text of a reason, and only the methods here interpret the
//! text of a code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Status of a stage (spec §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Did its work.
    Success,
    /// Did part of it; routes like success.
    PartialSuccess,
    /// Asks to be executed again.
    Retry,
    /// Failed.
    Fail,
    /// Had nothing to do.
    Skipped,
}

impl Status {
    /// The word used in conditions, files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::PartialSuccess => "partial_success",
            Status::Retry => "retry",
            Status::Fail => "fail",
            Status::Skipped => "skipped",
        }
    }

    /// True when a goal gate accepts it (spec §3.4).
    pub fn satisfies_gate(self) -> bool {
        matches!(self, Status::Success | Status::PartialSuccess)
    }
}

/// Why a stage or a run failed, decided by the host and never by matching text (decision classes-come-from-the-host).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// May work on retry.
    Transient,
    /// Will fail the same way again.
    Deterministic,
    /// The run was asked to stop; never retried.
    Canceled,
    /// A named limit.
    Budget,
    /// Reading, writing or running outside the grant.
    Scope,
    /// A malformed outcome, a missing export, a bad claim.
    Contract,
    /// A trap in the component or a fault of the host.
    Internal,
}

impl FailureClass {
    /// The word used in files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureClass::Transient => "transient",
            FailureClass::Deterministic => "deterministic",
            FailureClass::Canceled => "canceled",
            FailureClass::Budget => "budget",
            FailureClass::Scope => "scope",
            FailureClass::Contract => "contract",
            FailureClass::Internal => "internal",
        }
    }
}

/// The origin of a code, recognized by its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureFamily {
    /// `limit/<name>`: a named limit was reached.
    Limit,
    /// `trap/<kind>`: the component trapped.
    Trap,
    /// `provider/…`: the model's provider refused or failed.
    Provider,
    /// `script/…`: the script in place of a model has no answer.
    Script,
    /// Any other code that only the host gives: `plugin/`, `claim/`, `outcome/`, `host/`, `holdout/`.
    Host,
    /// A handler's own code, or one that the engine gives to a run.
    Other,
}

/// The code of a failure, such as `limit/memory_bytes`. Stable, so that people and programs can look it up.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FailureCode(Cow<'static, str>);

/// Declares the codes that are given in more than one place or asked for.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        impl FailureCode {
            $($(#[$doc])* pub const $name: Self = Self(Cow::Borrowed($text));)+
        }
    };
}

codes! {
    /// The handler failed without a code.
    STAGE_FAILED = "stage/failed";
    /// The call was asked to stop.
    CANCELED = "canceled";
    /// The run was asked to stop.
    RUN_CANCELED = "run/canceled";
    /// The handler gave no outcome.
    OUTCOME_MISSING = "outcome/missing";
    /// The handler's outcome breaks the contract.
    OUTCOME_MALFORMED = "outcome/malformed";
    /// The records do not prove a claim.
    CLAIM_UNPROVEN = "claim/unproven";
    /// The account at the model's provider has no credit left: the run pauses.
    PROVIDER_QUOTA = "provider/quota-exceeded";
    /// An agent changed nothing, and the operator asks for changes (decision no-change-is-a-failure).
    NO_ACTIONABLE_CHANGES = "no_actionable_changes";
    /// The scripted model has no turn left.
    SCRIPT_EXHAUSTED = "script/exhausted";
    /// The component could not be instantiated.
    NOT_LINKED = "plugin/not-linked";
    /// The stage that this one requires has not passed.
    REQUIRED_TOOL = "host/required_tool_node";
    /// The host itself failed.
    HOST_FAULT = "host/fault";
    /// The stage knew text of a hold-out.
    HOLDOUT_LEAK = "holdout/leak";
    /// The stage wrote files that its scope does not allow.
    SCOPE_WRITE = "scope/write";
    /// An exit was reached while a goal gate was unmet (spec §3.4).
    GATE_UNSATISFIED = "GoalGateUnsatisfied";
    /// A test command with hold-outs in reach ran no test.
    NO_TESTS = "verify/no-tests";
    /// An exit was reached, and a stage had dropped checks of the operator (decision dropped-checks-are-no-success).
    CHECK_DROPPED = "verification/dropped-check";
    /// A stage failed too often in the same way.
    FAILURE_CYCLE = "loop/signature_limit";
    /// The run used up its disk space.
    RUN_DISK = "limit/run_disk_bytes";
    /// The run used up its steps.
    RUN_STEPS = "limit/max_steps";
    /// The run used up its time.
    RUN_WALL_TIME = "limit/max_wall_time";
    /// A node used up its steps.
    NODE_STEPS = "limit/node_max_steps";
    /// A node used up its time.
    NODE_WALL_TIME = "limit/node_max_wall_time";
    /// A model call would have crossed the run's tokens.
    RUN_TOKENS = "limit/max_tokens";
    /// A model call would have crossed the run's money.
    RUN_COST = "limit/max_budget_usd";
}

impl FailureCode {
    /// The code of a limit that was reached.
    pub fn limit(name: &str) -> Self {
        Self(format!("limit/{name}").into())
    }

    /// The code of a trap.
    pub fn trap(kind: &str) -> Self {
        Self(format!("trap/{kind}").into())
    }

    /// Takes a handler's own code; none when it is not a short name or belongs to the host.
    pub fn from_handler(text: String) -> Option<Self> {
        let code = Self(text.into());
        (code.is_name() && !code.is_reserved()).then_some(code)
    }

    /// The code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The origin of the code.
    pub fn family(&self) -> FailureFamily {
        let Some((family, _)) = self.0.split_once('/') else { return FailureFamily::Other };
        match family {
            "limit" => FailureFamily::Limit,
            "trap" => FailureFamily::Trap,
            "provider" => FailureFamily::Provider,
            "script" => FailureFamily::Script,
            "plugin" | "claim" | "outcome" | "host" | "holdout" => FailureFamily::Host,
            _ => FailureFamily::Other,
        }
    }

    /// The limit that was reached, for a code of a limit.
    pub fn limit_name(&self) -> Option<&str> {
        self.0.strip_prefix("limit/")
    }

    /// True for a failure of the model, of its provider or of the script in its place.
    pub fn is_of_model(&self) -> bool {
        matches!(self.family(), FailureFamily::Provider | FailureFamily::Script)
    }

    /// True for a code that no handler may use.
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(Self::CANCELED.as_str())
            || matches!(
                self.family(),
                FailureFamily::Limit | FailureFamily::Trap | FailureFamily::Script | FailureFamily::Host
            )
    }

    /// True for 1 to 64 letters, digits, `/`, `_`, `-` and `.`: a name, as opposed to a text.
    pub fn is_name(&self) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'.');
        (1..=64).contains(&self.0.len()) && self.0.bytes().all(is_plain)
    }
}

impl From<&'static str> for FailureCode {
    fn from(code: &'static str) -> Self {
        Self(Cow::Borrowed(code))
    }
}

impl From<String> for FailureCode {
    fn from(code: String) -> Self {
        Self(Cow::Owned(code))
    }
}

impl From<FailureCode> for String {
    fn from(code: FailureCode) -> Self {
        code.0.into_owned()
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// A failure as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Decides retries and exit codes.
    pub class: FailureClass,
    /// Stable code, such as `limit/memory_bytes`.
    pub code: FailureCode,
    /// Raw text, kept unchanged through routing.
    pub reason: String,
}

impl Failure {
    /// Makes a failure.
    pub fn new(class: FailureClass, code: impl Into<FailureCode>, reason: impl Into<String>) -> Self {
        Self { class, code: code.into(), reason: reason.into() }
    }
}

/// The outcome of a stage, from its handler or from the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Status of the stage.
    pub status: Status,
    /// Hint for edge selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_label: Option<String>,
    /// Hints for edge selection, best first.
    #[serde(default)]
    pub suggested_next_ids: Vec<String>,
    /// Keys for the pipeline's context; the engine removes reserved ones before it records them.
    #[serde(default)]
    pub context_updates: BTreeMap<String, Value>,
    /// For people.
    #[serde(default)]
    pub notes: String,
    /// Present when the status is `fail` or `retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl Outcome {
    /// An outcome with a status and nothing else.
    pub fn new(status: Status) -> Self {
        Self {
            status,
            preferred_label: None,
            suggested_next_ids: Vec::new(),
            context_updates: BTreeMap::new(),
            notes: String::new(),
            failure: None,
        }
    }

    /// An outcome with a status and the failure behind it, if there is one.
    pub fn ended(status: Status, failure: Option<&Failure>) -> Self {
        Self { failure: failure.cloned(), ..Self::new(status) }
    }

    /// A failed outcome.
    pub fn failed(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::new(Status::Fail) }
    }

    /// Returns a copy that sets nothing in the context.
    pub fn without_context_updates(&self) -> Self {
        Self {
            status: self.status,
            preferred_label: self.preferred_label.clone(),
            suggested_next_ids: self.suggested_next_ids.clone(),
            context_updates: BTreeMap::new(),
            notes: self.notes.clone(),
            failure: self.failure.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_host_cannot_be_borrowed() {
        let check = |text: &str, expected: bool| {
            assert_eq!(FailureCode::from_handler(text.to_owned()).is_some(), expected, "{text}");
        };
        for code in ["acme/lint", "provider/auth", "stage/failed", "limits/x", "E42"] {
            check(code, true);
        }
        for code in ["", "limit/turns", "trap/x", "canceled", "canceled-by-me", "holdout/leak", "has space", "é"] {
            check(code, false);
        }
        check(&"x".repeat(65), false);
    }

    #[test]
    fn codes_are_read_as_they_are_written() {
        let code = FailureCode::limit("turns");
        assert_eq!(serde_json::to_string(&code).unwrap(), "\"limit/turns\"");
        assert_eq!(serde_json::from_str::<FailureCode>("\"limit/turns\"").unwrap(), code);
        assert_eq!((code.limit_name(), code.family()), (Some("turns"), FailureFamily::Limit));
        assert!(FailureCode::SCRIPT_EXHAUSTED.is_of_model() && !FailureCode::HOST_FAULT.is_of_model());
    }
}
