//! The host's words in the journal's: the same facts, types of their own.
//!
//! The journal outlives the host that wrote it, so nothing here is shared by accident. No judgement is made, but for
//! [`replace`], which puts the engine's verdict over a stage that crossed a line.

use super::failed;
use crate::event::{Ending, LimitUse, Receipt, Refusal, StageFinished};
use crate::outcome::{Failure, FailureClass, Outcome, Status};
use glovebox_host::{call, outcome as host};

/// Puts a failure in the place of what the stage answered. The stage's own reason stays readable in the notes.
pub(super) fn replace(fact: &mut StageFinished, failure: Failure) {
    let mut notes = std::mem::take(&mut fact.outcome.notes);
    if let Some(own) = fact.outcome.failure.as_ref() {
        let line = format!("the stage itself failed: {}", own.reason);
        notes = if notes.is_empty() { line } else { format!("{notes}\n{line}") };
    }
    fact.outcome = failed(failure, notes);
}

pub(super) fn outcome(outcome: host::Outcome) -> Outcome {
    Outcome {
        status: status(outcome.status),
        preferred_label: outcome.preferred_label,
        suggested_next_ids: outcome.suggested_next_ids,
        context_updates: outcome.context_updates,
        notes: outcome.notes,
        failure: outcome.failure.map(|failure| Failure::new(class(failure.class), failure.code, failure.reason)),
    }
}

pub(super) fn status(status: host::Status) -> Status {
    match status {
        host::Status::Success => Status::Success,
        host::Status::PartialSuccess => Status::PartialSuccess,
        host::Status::Retry => Status::Retry,
        host::Status::Fail => Status::Fail,
        host::Status::Skipped => Status::Skipped,
    }
}

fn class(class: host::FailureClass) -> FailureClass {
    match class {
        host::FailureClass::Transient => FailureClass::Transient,
        host::FailureClass::Deterministic => FailureClass::Deterministic,
        host::FailureClass::Canceled => FailureClass::Canceled,
        host::FailureClass::Budget => FailureClass::Budget,
        host::FailureClass::Scope => FailureClass::Scope,
        host::FailureClass::Contract => FailureClass::Contract,
        host::FailureClass::Internal => FailureClass::Internal,
    }
}

/// What a stage is told of the failure that led to it.
pub(super) fn told(failure: &Failure) -> host::Failure {
    let class = match failure.class {
        FailureClass::Transient => host::FailureClass::Transient,
        FailureClass::Deterministic => host::FailureClass::Deterministic,
        FailureClass::Canceled => host::FailureClass::Canceled,
        FailureClass::Budget => host::FailureClass::Budget,
        FailureClass::Scope => host::FailureClass::Scope,
        FailureClass::Contract => host::FailureClass::Contract,
        FailureClass::Internal => host::FailureClass::Internal,
    };
    host::Failure { class, code: failure.code.clone(), reason: failure.reason.clone() }
}

pub(super) fn ending(ending: call::Ending) -> Ending {
    match ending {
        call::Ending::Returned => Ending::Returned,
        call::Ending::Trapped(text) => Ending::Trapped(text),
        call::Ending::LimitHit(name) => Ending::LimitHit(name),
        call::Ending::Canceled => Ending::Canceled,
        call::Ending::NotLinked(reason) => Ending::NotLinked(reason),
    }
}

pub(super) fn limit_use(usage: call::LimitUse) -> LimitUse {
    LimitUse { name: usage.name, used: usage.used, limit: usage.limit }
}

pub(super) fn refusal(refusal: glovebox_sandbox::refusal::Refusal) -> Refusal {
    Refusal { operation: refusal.operation, path: refusal.path, reason: refusal.reason, help: refusal.help }
}

pub(super) fn receipt(receipt: call::Receipt) -> Receipt {
    Receipt {
        id: receipt.id,
        argv: receipt.argv,
        cwd: receipt.cwd,
        env_names: receipt.env_names,
        tier: receipt.tier,
        degradations: receipt.degradations,
        subject: false,
        over: receipt.over,
        how: receipt.how,
        code: receipt.code,
        duration_ms: receipt.duration_ms,
        stdout_digest: receipt.stdout_digest,
        stdout_bytes: receipt.stdout_bytes,
        stderr_digest: receipt.stderr_digest,
        stderr_bytes: receipt.stderr_bytes,
    }
}
