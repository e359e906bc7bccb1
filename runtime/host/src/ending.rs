//! How a call that did not return ended, found by the type of its error and never by its text.

use crate::call::Claim;
use crate::probe::CarriedTooMuch;
use crate::stop::Stop;
use glovebox_record::{Ending, Failure, FailureClass, FailureCode, LimitName, Limits, Outcome};
use glovebox_sandbox::refusal::escaped;
use std::fmt::Display;
use wasmtime::{Error, PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::{I32Exit, ResourceTableError};

/// Most frames of a trap that are told.
const FRAMES_MAX: usize = 8;

/// Longest name of a function in a trap's report, bytes.
const FRAME_BYTES_MAX: usize = 256;

/// The ending of a call and the outcome the host puts in place of the handler's.
pub(crate) struct Ended {
    pub(crate) ending: Ending,
    pub(crate) outcome: Outcome,
    pub(crate) claims: Vec<Claim>,
}

impl Ended {
    /// An end that the handler did not bring about: the host fails the call in its place.
    fn by_host(ending: Ending, failure: Failure) -> Self {
        Self { ending, outcome: Outcome::failed(failure), claims: Vec::new() }
    }
}

/// What is known when a call ends by an error.
pub(crate) struct Circumstances<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) carried_too_much: &'a CarriedTooMuch,
    /// The end of stderr, where a panic leaves its text.
    pub(crate) stderr_tail: &'a str,
    /// False while the component was still being instantiated.
    pub(crate) started: bool,
}

/// Judges the error a call ended with.
pub(crate) fn judge(error: &Error, circumstances: &Circumstances<'_>) -> Ended {
    if let Some(stop) = error.downcast_ref::<Stop>() {
        return match stop {
            Stop::Limit(name) => limit_hit(*name, circumstances.limits),
            Stop::Canceled => canceled(),
        };
    }
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return limit_hit(LimitName::Resources, circumstances.limits);
    }
    if circumstances.carried_too_much.is(error) {
        return limit_hit(LimitName::HostcallBytes, circumstances.limits);
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return trapped(trap_kind(*trap), trap.to_string(), error, circumstances.stderr_tail);
    }
    if let Some(I32Exit(code)) = error.downcast_ref::<I32Exit>() {
        let text = format!("the component called exit({code}) instead of returning an outcome");
        return trapped("exit", text, error, circumstances.stderr_tail);
    }
    if error.is::<PoolConcurrencyLimitError>() || !circumstances.started {
        return not_linked(error.root_cause().to_string());
    }
    trapped("host-call", error.root_cause().to_string(), error, circumstances.stderr_tail)
}

/// A named limit ended the call.
pub(crate) fn limit_hit(name: LimitName, limits: &Limits) -> Ended {
    let reason = format!("limit `{name}` ({}) reached", limits.get(name));
    Ended::by_host(
        Ending::LimitHit(name.to_string()),
        Failure::new(FailureClass::Budget, FailureCode::limit(name.as_str()), reason),
    )
}

/// The failure of a call that was asked to stop.
pub(crate) fn cancellation() -> Failure {
    Failure::new(FailureClass::Canceled, FailureCode::CANCELED, "the run was told to stop")
}

/// The run was told to stop.
pub(crate) fn canceled() -> Ended {
    Ended::by_host(Ending::Canceled, cancellation())
}

/// The component could not be instantiated.
pub(crate) fn not_linked(problem: String) -> Ended {
    let reason = format!("the component could not be instantiated: {problem}");
    Ended::by_host(Ending::NotLinked(problem), Failure::new(FailureClass::Contract, FailureCode::NOT_LINKED, reason))
}

/// The host itself failed while it ran the component.
pub(crate) fn host_fault(problem: impl Display) -> Ended {
    let reason = format!("the host failed while it ran the component: {problem}");
    Ended::by_host(
        Ending::Trapped(reason.clone()),
        Failure::new(FailureClass::Internal, FailureCode::HOST_FAULT, reason),
    )
}

fn trapped(kind: &str, text: String, error: &Error, stderr_tail: &str) -> Ended {
    let mut told = text;
    if !stderr_tail.is_empty() {
        let lines: Vec<String> = stderr_tail.lines().map(escaped).collect();
        told = format!("{told}\n{}", lines.join("\n"));
    }
    let frames: Vec<String> = error.downcast_ref::<WasmBacktrace>().map(frames).unwrap_or_default();
    if !frames.is_empty() {
        told = format!("{told}\nin {}", frames.join(" < "));
    }
    let failure = Failure::new(FailureClass::Internal, FailureCode::trap(kind), told.clone());
    Ended::by_host(Ending::Trapped(told), failure)
}

fn frames(backtrace: &WasmBacktrace) -> Vec<String> {
    backtrace.frames().iter().filter_map(|frame| frame.func_name()).take(FRAMES_MAX).map(frame_name).collect()
}

/// A component chooses the names of its functions, and how long they are.
fn frame_name(name: &str) -> String {
    escaped(&name[..name.floor_char_boundary(FRAME_BYTES_MAX)])
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
