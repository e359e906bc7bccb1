//! Classifies a call that did not return, by the type of its error. One error of wasmtime has no public type and is
//! compared with the error that [`crate::probe`] provoked.

use crate::probe::HostcallSizeError;
use crate::progress::Claim;
use crate::stop::Stop;
use glovebox_jail::exec::ExecError;
use glovebox_record::{Ending, Failure, FailureClass, FailureCode, LimitName, Limits, Outcome};
use glovebox_workspace::refusal::escaped;
use std::fmt::Display;
use wasmtime::{Error, PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::{I32Exit, ResourceTableError};

/// Maximum number of stack frames of a trap that are reported.
const FRAMES_MAX: usize = 8;

/// Maximum length of a function name in the report of a trap, in bytes.
const FRAME_BYTES_MAX: usize = 256;

/// How a call ended, and its outcome.
pub(crate) struct CallEnd {
    pub(crate) ending: Ending,
    pub(crate) outcome: Outcome,
    pub(crate) claims: Vec<Claim>,
}

impl CallEnd {
    /// Creates the end of a call that the host fails in place of the handler.
    fn by_host(ending: Ending, failure: Failure) -> Self {
        Self { ending, outcome: Outcome::failed(failure), claims: Vec::new() }
    }
}

/// Facts about a call that ended with an error.
pub(crate) struct ErrorContext<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) hostcall_size_error: &'a HostcallSizeError,
    /// The end of standard error, which contains the message of a panic.
    pub(crate) stderr_tail: &'a str,
    /// False if the component could not be instantiated.
    pub(crate) started: bool,
}

/// Converts the error with which a call ended to a failure that the host determines.
pub(crate) fn to_host_failure(error: &Error, circumstances: &ErrorContext<'_>) -> CallEnd {
    if let Some(stop) = error.downcast_ref::<Stop>() {
        return match stop {
            Stop::Limit(name) => limit_hit(*name, circumstances.limits),
            Stop::Canceled => canceled(),
            Stop::Revoked => revoked("it was revoked"),
        };
    }
    if let Some(killed @ ExecError::Killed) = error.downcast_ref::<ExecError>() {
        return sandbox_lost(killed);
    }
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return limit_hit(LimitName::Resources, circumstances.limits);
    }
    if circumstances.hostcall_size_error.is(error) {
        return limit_hit(LimitName::HostcallBytes, circumstances.limits);
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return TrapReport { kind: trap_kind(*trap), text: trap.to_string() }.ended(error, circumstances);
    }
    if let Some(I32Exit(code)) = error.downcast_ref::<I32Exit>() {
        let text = format!("the component called exit({code}) instead of returning an outcome");
        return TrapReport { kind: "exit", text }.ended(error, circumstances);
    }
    if error.is::<PoolConcurrencyLimitError>() || !circumstances.started {
        return not_linked(error);
    }
    TrapReport { kind: "host-call", text: error.root_cause().to_string() }.ended(error, circumstances)
}

/// Returns the end of a call that reached a limit.
pub(crate) fn limit_hit(name: LimitName, limits: &Limits) -> CallEnd {
    let reason = format!("limit `{name}` ({}) reached", limits.get(name));
    CallEnd::by_host(
        Ending::LimitHit(name.to_string()),
        Failure::new(FailureClass::Budget, FailureCode::limit(name.as_str()), reason),
    )
}

/// Returns the end of a call whose sandbox was killed.
fn sandbox_lost(killed: &ExecError) -> CallEnd {
    let failure = Failure::new(FailureClass::Transient, FailureCode::SANDBOX_LOST, killed.to_string());
    CallEnd::by_host(Ending::SandboxLost, failure)
}

/// Returns the failure of a canceled call.
pub(crate) fn cancellation() -> Failure {
    Failure::new(FailureClass::Canceled, FailureCode::CANCELED, "the run was asked to stop")
}

/// Returns the end of a canceled call.
pub(crate) fn canceled() -> CallEnd {
    CallEnd::by_host(Ending::Canceled, cancellation())
}

/// Returns the end of a call whose component must not run (decision revoked-components-are-stopped).
pub(crate) fn revoked(reason: &str) -> CallEnd {
    let failure =
        Failure::new(FailureClass::Contract, FailureCode::REVOKED, format!("the component may not run: {reason}"));
    CallEnd::by_host(Ending::Revoked(reason.to_owned()), failure)
}

/// Returns the end of a call whose component could not be instantiated.
fn not_linked(error: &Error) -> CallEnd {
    let problem = error.root_cause().to_string();
    let reason = format!("the component could not be instantiated: {problem}");
    CallEnd::by_host(Ending::NotLinked(problem), Failure::new(FailureClass::Contract, FailureCode::NOT_LINKED, reason))
}

/// Returns the end of a call during which the host itself failed.
pub(crate) fn host_fault(problem: impl Display) -> CallEnd {
    let reason = format!("the host failed while it ran the component: {problem}");
    let failure = Failure::new(FailureClass::Internal, FailureCode::HOST_FAULT, reason.as_str());
    CallEnd::by_host(Ending::Trapped(reason), failure)
}

/// Kind and text of the error of a call that did not return.
struct TrapReport {
    kind: &'static str,
    text: String,
}

impl TrapReport {
    /// Adds the end of the component's output and its backtrace, and returns the end of the call.
    fn ended(self, error: &Error, circumstances: &ErrorContext<'_>) -> CallEnd {
        let mut text = self.text;
        if !circumstances.stderr_tail.is_empty() {
            let lines: Vec<String> = circumstances.stderr_tail.lines().map(escaped).collect();
            text = format!("{text}\n{}", lines.join("\n"));
        }
        let frames: Vec<String> = error.downcast_ref::<WasmBacktrace>().map(frames).unwrap_or_default();
        if !frames.is_empty() {
            text = format!("{text}\nin {}", frames.join(" < "));
        }
        let failure = Failure::new(FailureClass::Internal, FailureCode::trap(self.kind), text.as_str());
        CallEnd::by_host(Ending::Trapped(text), failure)
    }
}

/// Returns the function names of a backtrace. Their number and length are limited, because the component chooses them.
fn frames(backtrace: &WasmBacktrace) -> Vec<String> {
    let names = backtrace.frames().iter().filter_map(|frame| frame.func_name()).take(FRAMES_MAX);
    names.map(|name| escaped(&name[..name.floor_char_boundary(FRAME_BYTES_MAX)])).collect()
}

fn trap_kind(trap: Trap) -> &'static str {
    match trap {
        Trap::StackOverflow => "stack-overflow",
        Trap::MemoryOutOfBounds => "memory-out-of-bounds",
        Trap::TableOutOfBounds => "table-out-of-bounds",
        Trap::IndirectCallToNull => "call-to-null",
        Trap::BadSignature => "bad-signature",
        Trap::IntegerOverflow => "integer-overflow",
        Trap::IntegerDivisionByZero => "division-by-zero",
        Trap::BadConversionToInteger => "bad-conversion",
        Trap::UnreachableCodeReached => "unreachable",
        _ => "other",
    }
}
