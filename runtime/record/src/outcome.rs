//! The outcome of a stage: its status, and its failure.
//!
//! The host decides the class and the code of a failure. Only [`crate::failure_category`] interprets the text of a reason. Only
//! that module and the methods of this module interpret the text of a code.

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
    /// The stage did its work.
    Success,
    /// The stage did part of its work. Routing treats this as success.
    PartialSuccess,
    /// The stage asks for another attempt.
    Retry,
    /// The stage failed.
    Fail,
    /// The stage had nothing to do.
    Skipped,
}

impl Status {
    /// Returns the name used in conditions, files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::PartialSuccess => "partial_success",
            Status::Retry => "retry",
            Status::Fail => "fail",
            Status::Skipped => "skipped",
        }
    }

    /// Returns true if this status satisfies a goal gate (spec §3.4).
    pub fn satisfies_gate(self) -> bool {
        matches!(self, Status::Success | Status::PartialSuccess)
    }
}

/// Why a stage or a run failed, decided by the host and never by matching text (decision classes-come-from-the-host).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// Another attempt may succeed.
    Transient,
    /// Another attempt will fail in the same way.
    Deterministic,
    /// The run was canceled. The work is never retried.
    Canceled,
    /// A named limit was reached.
    Budget,
    /// The stage read, wrote or ran something that was not granted.
    Scope,
    /// The component broke its contract: a malformed outcome, a missing export, a claim that is not proved.
    Contract,
    /// The component trapped, or the host failed.
    Internal,
}

impl FailureClass {
    /// Returns the name used in files and messages.
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

/// The family of a failure code, which its prefix determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureFamily {
    /// `limit/<name>`: a named limit was reached.
    Limit,
    /// `trap/<kind>`: the component trapped.
    Trap,
    /// `provider/…`: the provider of the model refused a call or failed.
    Provider,
    /// `script/…`: the script that replaces a model has no answer.
    Script,
    /// Any other prefix that only the host uses: `plugin/`, `claim/`, `outcome/`, `status/`, `host/`, `holdout/`, `policy/`.
    Host,
    /// A code that a handler chose, or that the engine gives to a run.
    Other,
}

/// The code of a failure, such as `limit/memory_bytes`. Codes are stable, so that people and programs can look them up.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FailureCode(Cow<'static, str>);

/// Declares the codes that several places create or compare with.
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
    /// The call was canceled.
    CANCELED = "canceled";
    /// The run was canceled.
    RUN_CANCELED = "run/canceled";
    /// The handler returned no outcome.
    OUTCOME_MISSING = "outcome/missing";
    /// The handler's outcome is not one that the plugin interface allows.
    OUTCOME_MALFORMED = "outcome/malformed";
    /// The status file of the stage states a failure.
    STATUS_FAILED = "status/failed";
    /// The status file in the drop folder is unusable.
    STATUS_UNREADABLE = "status/unreadable";
    /// The status file in the drop folder belongs to another attempt.
    STATUS_FOREIGN = "status/foreign";
    /// The records do not prove a claim of the handler.
    CLAIM_UNPROVEN = "claim/unproven";
    /// The account at the provider of the model has no credit left. The run pauses.
    PROVIDER_QUOTA = "provider/quota-exceeded";
    /// An agent changed nothing, although the operator requires changes (decision no-change-is-a-failure).
    NO_ACTIONABLE_CHANGES = "no_actionable_changes";
    /// The scripted model has no turn left.
    SCRIPT_EXHAUSTED = "script/exhausted";
    /// The component could not be instantiated.
    NOT_LINKED = "plugin/not-linked";
    /// The component was revoked.
    REVOKED = "plugin/revoked";
    /// The stage that `required_tool_node` names has not passed.
    REQUIRED_TOOL = "host/required_tool_node";
    /// The disk of the run became full.
    RUN_DISK_FULL = "host/disk_full";
    /// The first process of the stage's sandbox was killed.
    SANDBOX_LOST = "host/sandbox_lost";
    /// The machines that made the attempt were lost.
    MACHINE_LOST = "host/machine_lost";
    /// The host itself failed.
    HOST_FAULT = "host/fault";
    /// The stage knew text of a hold-out that it must not see.
    HOLDOUT_LEAK = "holdout/leak";
    /// A policy could not judge a tool call of the stage.
    POLICY_FAULT = "policy/fault";
    /// A policy refused an edge, or could not judge it.
    POLICY_EDGE = "policy/edge";
    /// The stage wrote files that its scope does not allow.
    SCOPE_WRITE = "scope/write";
    /// The run reached an exit while a goal gate was not satisfied (spec §3.4).
    GATE_UNSATISFIED = "GoalGateUnsatisfied";
    /// A verifier's command said that the machine failed and not the product.
    VERIFY_INFRA = "verify/infra";
    /// A test command of a stage with hold-outs ran no test.
    NO_TESTS = "verify/no-tests";
    /// The run reached an exit, but a stage had skipped commands of the operator's verify contract
    /// (decision dropped-checks-are-no-success).
    CHECK_DROPPED = "verification/dropped-check";
    /// A stage failed too many times with the same failure.
    FAILURE_CYCLE = "loop/signature_limit";
    /// A verification failed in the same way too often in a row.
    REPEATED_SIGNATURE = "loop/repeated_signature";
    /// The run used up its limit of disk space.
    RUN_DISK = "limit/run_disk_bytes";
    /// The run used up its limit of steps.
    RUN_STEPS = "limit/max_steps";
    /// The run used up its limit of wall time.
    RUN_WALL_TIME = "limit/max_wall_time";
    /// A node used up its limit of steps.
    NODE_STEPS = "limit/node_max_steps";
    /// A node used up its limit of wall time.
    NODE_WALL_TIME = "limit/node_max_wall_time";
    /// A model call would have exceeded the token limit of the run.
    RUN_TOKENS = "limit/max_tokens";
    /// A model call would have exceeded the money limit of the run.
    RUN_COST = "limit/max_budget_usd";
    /// No branch of the run made progress for the time of the stall watchdog.
    RUN_STALLED = "run/stall_watchdog_timeout";
}

impl FailureCode {
    /// Returns the code for a limit that was reached.
    pub fn limit(name: &str) -> Self {
        Self(format!("limit/{name}").into())
    }

    /// Returns the code for a kind of trap.
    pub fn trap(kind: &str) -> Self {
        Self(format!("trap/{kind}").into())
    }

    /// Creates the code that a handler chose. `None` if the text is not a short name, or if the code is reserved for the host.
    pub fn from_handler(text: String) -> Option<Self> {
        let code = Self(text.into());
        (code.is_name() && !code.is_reserved()).then_some(code)
    }

    /// Returns the code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the family of the code.
    pub fn family(&self) -> FailureFamily {
        let Some((family, _)) = self.0.split_once('/') else { return FailureFamily::Other };
        match family {
            "limit" => FailureFamily::Limit,
            "trap" => FailureFamily::Trap,
            "provider" => FailureFamily::Provider,
            "script" => FailureFamily::Script,
            "plugin" | "claim" | "outcome" | "status" | "host" | "holdout" | "policy" => FailureFamily::Host,
            _ => FailureFamily::Other,
        }
    }

    /// Returns the name of the limit that was reached. `None` if the code is not that of a limit.
    pub fn limit_name(&self) -> Option<&str> {
        self.0.strip_prefix("limit/")
    }

    /// Returns true for a failure of the model, of its provider, or of the script that replaces it.
    pub fn is_of_model(&self) -> bool {
        matches!(self.family(), FailureFamily::Provider | FailureFamily::Script)
    }

    /// Returns true if no handler may use the code.
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(Self::CANCELED.as_str())
            || matches!(
                self.family(),
                FailureFamily::Limit | FailureFamily::Trap | FailureFamily::Script | FailureFamily::Host
            )
    }

    /// Returns true for 1 to 64 letters, digits, `/`, `_`, `-` and `.`, which distinguishes a code from a message.
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

/// A failure of a stage or a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Class of the failure, which decides about retries and the exit code.
    pub class: FailureClass,
    /// Stable code, such as `limit/memory_bytes`.
    pub code: FailureCode,
    /// Reason as text. Routing does not change it.
    pub reason: String,
}

impl Failure {
    /// Creates a failure.
    pub fn new(class: FailureClass, code: impl Into<FailureCode>, reason: impl Into<String>) -> Self {
        Self { class, code: code.into(), reason: reason.into() }
    }

    /// Returns true if a quota at the provider is used up or the account has no credit. Only the host can give this class and code.
    pub fn is_of_quota(&self) -> bool {
        self.class == FailureClass::Budget && self.code == FailureCode::PROVIDER_QUOTA
    }
}

/// The outcome of a stage, from its handler or from the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Status of the stage.
    pub status: Status,
    /// Label of the edge that the handler prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_label: Option<String>,
    /// Next nodes that the handler suggests, best first.
    #[serde(default)]
    pub suggested_next_ids: Vec<String>,
    /// Values to set in the pipeline's context. The engine removes reserved keys before it records them.
    #[serde(default)]
    pub context_updates: BTreeMap<String, Value>,
    /// Notes for people.
    #[serde(default)]
    pub notes: String,
    /// The failure; present if the status is `fail` or `retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl Outcome {
    /// Creates an outcome that has only a status.
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

    /// Creates an outcome with a status, and with the failure that caused it, if there is one.
    pub fn ended(status: Status, failure: Option<&Failure>) -> Self {
        Self { failure: failure.cloned(), ..Self::new(status) }
    }

    /// Creates a failed outcome.
    pub fn failed(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::new(Status::Fail) }
    }

    /// Returns a copy without context updates.
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
        for code in [
            "",
            "limit/turns",
            "trap/x",
            "canceled",
            "canceled-by-me",
            "holdout/leak",
            "status/foreign",
            "has space",
            "é",
        ] {
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
