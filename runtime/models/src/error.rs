//! Errors of model calls: one type, and one table of the consequences of each kind.
//!
//! Retries, class of the failure and help are read from the table and decided nowhere else. The kind of an error is determined from a
//! status, a code of the provider, or the transport.

use glovebox_record::FailureClass;
use jiff::Timestamp;
use std::fmt;
use std::time::Duration;

/// Maximum `Retry-After` that is waited for. If a provider asks for more, the call fails.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Whether the host retries a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Never, because the same request would fail in the same way.
    Never,
    /// After a wait, a limited number of times.
    Later,
    /// After a wait, if no part of the answer was passed on.
    BeforeFirstByte,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct ErrorRow {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Name of the kind for guests, records and failure codes.
    pub name: &'static str,
    /// Whether the host retries the call.
    pub retry: Retry,
    /// Class of the stage's failure.
    pub class: FailureClass,
    /// Help for the user.
    pub help: &'static str,
}

/// Declares the kinds and the table from one list.
macro_rules! errors {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $retry:ident, $class:ident, $help:literal;)+) => {
        /// A kind of failed model call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)+
        }

        /// Every kind, in the order of the documentation.
        pub const ERRORS: &[ErrorRow] = &[
            $(ErrorRow {
                kind: ErrorKind::$kind,
                name: $name,
                retry: Retry::$retry,
                class: FailureClass::$class,
                help: $help,
            },)+
        ];
    };
}

errors! {
    /// The provider does not accept the key: 401.
    Authentication = "authentication", Never, Deterministic, "set the right key and run `glovebox models test`";
    /// The key has no permission for the request: 403.
    AccessDenied = "access-denied", Never, Deterministic, "allow this model for the key, and run `glovebox models test`";
    /// The provider has no such model or path: 404.
    NotFound = "not-found", Never, Deterministic, "correct `model` or `endpoint` under `[models]` in glovebox.toml";
    /// The provider does not accept the request: 400, 422.
    InvalidRequest = "invalid-request", Never, Deterministic, "read the provider's message; the model may not support this request";
    /// Too many requests: 429.
    RateLimit = "rate-limit", Later, Transient, "wait, or lower `parallel_max` under `[run]` in glovebox.toml";
    /// The provider failed: 5xx.
    Server = "server", Later, Transient, "try again later with `glovebox resume`";
    /// The provider's filter withheld the answer.
    ContentFilter = "content-filter", Never, Deterministic, "change the prompt so that the provider's content filter accepts it";
    /// The conversation is longer than the model accepts: 413, or 400 with a code.
    ContextLength = "context-length", Never, Budget, "make the prompt shorter, or set `llm_model` to a model with a larger context";
    /// The account has no credit left: 402, or 429 with a code.
    QuotaExceeded = "quota-exceeded", Never, Budget, "add credit at the provider, or wait until the quota resumes, then `glovebox resume`";
    /// No answer in time: 408, or no bytes received for the model's `timeout`.
    RequestTimeout = "request-timeout", Never, Transient, "raise `timeout` under `[models]` in glovebox.toml";
    /// The run was asked to stop.
    Canceled = "canceled", Never, Canceled, "continue with `glovebox resume`";
    /// The provider could not be reached.
    Network = "network", Later, Transient, "check the network and `endpoint` under `[models]` in glovebox.toml";
    /// The answer was truncated or could not be read.
    Stream = "stream", BeforeFirstByte, Transient, "try again later with `glovebox resume`";
    /// The model called a tool with arguments that its schema does not allow.
    InvalidToolCall = "invalid-tool-call", Never, Deterministic, "set `llm_model` to a model that can call tools";
    /// The model repeated the same tool calls.
    Loop = "loop", Never, Deterministic, "read the conversation with `glovebox transcript RUN NODE`; make the prompt clearer, or set `llm_model` to another model";
    /// The provider does not support the requested choice of tools.
    UnsupportedToolChoice = "unsupported-tool-choice", Never, Deterministic, "set `llm_model` to a model that can call tools";
    /// The model did not answer with an object that matches the schema.
    NoObjectGenerated = "no-object-generated", Never, Deterministic, "set `llm_model` to a model with structured output";
    /// The provider, its endpoint or its key is not configured.
    Configuration = "configuration", Never, Deterministic, "correct `[models]` in glovebox.toml";
    /// Another model answered than the requested one.
    PinViolation = "pin-violation", Never, Scope, "set `model` to the exact name, or allow the other name with `answers_as`, in glovebox.toml";
    /// The answer exceeds the maximum length.
    AnswerTooLarge = "answer-too-large", Never, Contract, "lower `output_tokens_max` under `[models]` in glovebox.toml";
    /// The call could cost more than the remaining budget.
    BudgetExceeded = "budget-exceeded", Never, Budget, "raise `max_tokens` or `max_budget_usd`";
    /// The stage has no turns, tool rounds or time left.
    LimitExceeded = "limit-exceeded", Never, Budget, "raise the limit on the node or under `[limits]` in glovebox.toml";
    /// The stage has no permission for the request.
    NotGranted = "not-granted", Never, Scope, "a plugin needs `grants = { model = true }`; no grant allows what the gateway refuses";
    /// The conversation contains text of a hold-out.
    HoldoutLeak = "holdout-leak", Never, Scope, "remove the text of hold-outs from prompts and from files that the stage reads";
    /// The script that replaces the model has no further turn.
    ScriptExhausted = "script-exhausted", Never, Deterministic, "add the missing turn to the script";
}

impl ErrorKind {
    /// Returns the row of the kind in the table.
    pub fn row(self) -> &'static ErrorRow {
        // The macro creates a row for each kind, in the order of the kinds.
        &ERRORS[self as usize]
    }

    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Returns the kind for a status, if the provider gives no code.
    pub fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Authentication,
            402 => Self::QuotaExceeded,
            403 => Self::AccessDenied,
            404 | 405 | 410 => Self::NotFound,
            408 => Self::RequestTimeout,
            413 => Self::ContextLength,
            429 => Self::RateLimit,
            // Redirects are never followed: they would send key and prompt to an address that the operator did not configure.
            300..=399 => Self::Configuration,
            400..=499 => Self::InvalidRequest,
            // The specification requires that unknown errors are retried.
            _ => Self::Server,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind, which decides the consequences.
    pub kind: ErrorKind,
    /// Description for people, without the key.
    pub message: String,
    /// Wait that the provider asks for before the next request.
    pub retry_after: Option<Duration>,
    /// The time at which the used up quota resumes; `None` for another error, and if the provider names no time.
    pub resume_at: Option<Timestamp>,
}

impl ModelError {
    /// Creates an error without times.
    pub fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), retry_after: None, resume_at: None }
    }

    /// Returns true if the host may retry the call.
    pub fn is_retried(&self) -> bool {
        self.kind.row().retry != Retry::Never && self.retry_after.is_none_or(|wait| wait <= RETRY_AFTER_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_has_its_row_and_a_name_of_its_own() {
        for (at, row) in ERRORS.iter().enumerate() {
            assert_eq!((row.kind as usize, row.kind.as_str()), (at, row.name));
            assert!(!row.help.is_empty());
        }
        let names: BTreeSet<&str> = ERRORS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ERRORS.len());
    }

    #[test]
    fn only_what_may_pass_is_asked_again() {
        let again = |kind| ModelError::new(kind, "").is_retried();
        for row in ERRORS {
            let expected =
                matches!(row.kind, ErrorKind::RateLimit | ErrorKind::Server | ErrorKind::Network | ErrorKind::Stream);
            assert_eq!(again(row.kind), expected, "{}", row.name);
        }
        let late = |seconds| ModelError {
            retry_after: Some(Duration::from_secs(seconds)),
            ..ModelError::new(ErrorKind::RateLimit, "")
        };
        assert!(late(60).is_retried() && !late(61).is_retried());
    }

    #[test]
    fn a_status_has_its_kind() {
        let check = |status, kind| assert_eq!(ErrorKind::of_status(status), kind, "{status}");
        check(400, ErrorKind::InvalidRequest);
        check(401, ErrorKind::Authentication);
        check(402, ErrorKind::QuotaExceeded);
        check(403, ErrorKind::AccessDenied);
        check(404, ErrorKind::NotFound);
        check(408, ErrorKind::RequestTimeout);
        check(413, ErrorKind::ContextLength);
        check(422, ErrorKind::InvalidRequest);
        check(429, ErrorKind::RateLimit);
        check(307, ErrorKind::Configuration);
        for status in [500, 502, 503, 529, 600] {
            check(status, ErrorKind::Server);
        }
    }
}
