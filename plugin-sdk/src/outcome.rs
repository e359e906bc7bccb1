//! [`Outcome`]: what a handler returns, built step by step. A failed stage returns an outcome too, not an error.
//!
//! The host checks the outcome: it compares claims with its records, and refuses reserved context keys.

use crate::bindings::glovebox::plugin::types::{self, Entry, Failure, Status};
use serde_json::Value;

/// The result of a handler: status, notes, context updates, and a failure if there is one.
#[derive(Clone, Debug)]
#[must_use]
pub struct Outcome {
    raw: types::Outcome,
}

/// A statement of a handler that the host checks.
enum Claim {
    CommandPassed,
    FileWritten,
    Artifact,
}

impl Outcome {
    /// Creates the outcome of a stage that did its work.
    pub fn success() -> Self {
        Self::new(Status::Success)
    }

    /// Creates the outcome of a stage that did part of its work.
    pub fn partial_success() -> Self {
        Self::new(Status::PartialSuccess)
    }

    /// Creates the outcome of a stage that had nothing to do.
    pub fn skipped() -> Self {
        Self::new(Status::Skipped)
    }

    /// Creates the outcome of a stage that failed. `code` is stable, such as `tool/exit-code`. `reason` is for people and is not changed.
    pub fn fail(code: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(Status::Fail).failed(code, reason)
    }

    /// Creates the outcome of a stage that failed, and that may succeed in another attempt. See [`Outcome::fail`] for `code` and `reason`.
    pub fn retry(code: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(Status::Retry).failed(code, reason).class("transient")
    }

    /// Suggests the class of the failure. The host decides it. Without a failure this has no effect.
    pub fn class(mut self, class: impl Into<String>) -> Self {
        if let Some(failure) = &mut self.raw.failure {
            failure.class = class.into();
        }
        self
    }

    /// Sets the label of the outgoing edge that the run should follow.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.raw.preferred_label = Some(label.into());
        self
    }

    /// Suggests a next node. Each call adds a further choice.
    pub fn suggest(mut self, node_id: impl Into<String>) -> Self {
        self.raw.suggested_next_ids.push(node_id.into());
        self
    }

    /// Sets a key of the pipeline's context. If a key is set more than once, the last value applies.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        let (key, value) = (key.into(), value.into().to_string());
        self.raw.context_updates.retain(|entry| entry.key != key);
        self.raw.context_updates.push(Entry { key, value });
        self
    }

    /// Sets notes for people about what the stage did.
    pub fn notes(mut self, notes: impl Into<String>) -> Self {
        self.raw.notes = notes.into();
        self
    }

    /// Claims that a command passed, with the receipt that `exec` returned.
    pub fn claim_command(self, receipt: impl Into<String>) -> Self {
        self.claim(Claim::CommandPassed, receipt)
    }

    /// Claims that a file of the workspace was written.
    pub fn claim_file(self, path: impl Into<String>) -> Self {
        self.claim(Claim::FileWritten, path)
    }

    /// Claims that an artifact was stored.
    pub fn claim_artifact(self, name: impl Into<String>) -> Self {
        self.claim(Claim::Artifact, name)
    }

    /// Returns the status.
    pub fn status(&self) -> Status {
        self.raw.status
    }

    /// Returns the failure, if there is one.
    pub fn failure(&self) -> Option<&Failure> {
        self.raw.failure.as_ref()
    }

    /// Returns the value of a context key as JSON text.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.raw.context_updates.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
    }

    fn new(status: Status) -> Self {
        Self {
            raw: types::Outcome {
                status,
                preferred_label: None,
                suggested_next_ids: Vec::new(),
                context_updates: Vec::new(),
                notes: String::new(),
                failure: None,
                claims: Vec::new(),
                extra: Vec::new(),
            },
        }
    }

    fn failed(mut self, code: impl Into<String>, reason: impl Into<String>) -> Self {
        self.raw.failure =
            Some(Failure { class: "deterministic".to_owned(), code: code.into(), reason: reason.into() });
        self
    }

    fn claim(mut self, claim: Claim, what: impl Into<String>) -> Self {
        let kind = match claim {
            Claim::CommandPassed => "command-passed",
            Claim::FileWritten => "file-written",
            Claim::Artifact => "artifact",
        };
        self.raw.claims.push((kind.to_owned(), what.into()));
        self
    }
}

impl From<Outcome> for types::Outcome {
    fn from(outcome: Outcome) -> Self {
        outcome.raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_what_the_contract_wants() {
        let raw = types::Outcome::from(
            Outcome::fail("tool/exit-code", "tool_exit_code_1")
                .label("fix")
                .suggest("a")
                .suggest("b")
                .set("k", 1)
                .set("k", "v"),
        );
        assert_eq!(raw.status, Status::Fail);
        assert_eq!(raw.preferred_label.as_deref(), Some("fix"));
        assert_eq!(raw.suggested_next_ids, ["a", "b"]);
        assert_eq!(raw.context_updates.len(), 1, "the last value of a key stands");
        assert_eq!(raw.context_updates[0].value, "\"v\"");
        assert_eq!(raw.failure.map(|failure| failure.class).as_deref(), Some("deterministic"));
    }

    #[test]
    fn a_class_needs_a_failure() {
        assert!(Outcome::success().class("scope").failure().is_none());
        assert_eq!(Outcome::retry("x", "y").class("budget").failure().map(|f| f.class.as_str()), Some("budget"));
    }
}
