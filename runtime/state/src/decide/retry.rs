//! Decides whether an attempt is repeated, when, and which status counts if it is not (spec §3.5, §3.6,
//! decision what-is-retried).
//!
//! The decision is made once, before the attempt is appended, and is part of the attempt's record. These rules are not
//! evaluated again.

use super::infra::{self, is_infra, is_of_machine};
use super::lost_sandbox;
use super::no_change::{self, Ruling};
use super::{verification, verify_limits};
use crate::run_state::{Branch, RunState, is_of_budget};
use glovebox_journal::event::{Ending, Recoverable, RunId, StageFinished, StageRetrying, Work};
use glovebox_pipeline::ir::{Backoff, Node, Pipeline};
use glovebox_pipeline::route;
use glovebox_record::no_change::NoChangeRule;
use glovebox_record::{Failure, FailureClass, FailureCode, FailureFamily, Outcome, Status};
use jiff::{SignedDuration, Timestamp};

/// Completes the record of a finished attempt: whether another attempt follows, and if not, the final status. An
/// attempt that may not be repeated keeps the status `retry` only if an outgoing edge matches that status. Nothing is
/// repeated if the run is `stopping`. The rule of the operator for agents that change nothing is applied too.
pub fn finalize_attempt(
    pipeline: &Pipeline,
    rule: Option<&NoChangeRule>,
    state: &RunState,
    stopping: bool,
    finished: &mut StageFinished,
) {
    let Some(node) = pipeline.node(&finished.attempt.task.node) else { return };
    let branch = state.branch(&finished.attempt.task.branch);
    let ruling = match finished.attempt.task.work {
        Work::Verify => {
            verification::settle(node, branch, finished);
            Ruling::Open
        }
        Work::Handler | Work::Join => {
            accept_silence(node, finished.ending == Ending::Returned, &mut finished.outcome);
            no_change::judge(node, rule, branch, finished)
        }
    };
    let stopping = stopping || branch.canceled.is_some() || state.canceled.is_some();
    let may_repeat = |ordinal: u32| {
        let uncounted = no_change::repeated(node, branch) + lost_sandbox::repeated(node, branch, finished);
        ordinal.saturating_sub(uncounted) < attempts_max(pipeline, node, &finished.outcome)
    };
    let is_repeated = match ruling {
        Ruling::Open if lost_sandbox::is_first(node, branch, finished) => true,
        Ruling::Open => repeated(branch, finished).is_some_and(may_repeat),
        Ruling::Repeated => true,
        Ruling::Refused => false,
    };
    finished.follow_up.retrying = is_repeated && !stopping;
    let bound = steps_of_node_exceeded(state, node).or_else(|| verify_limits::not_repeated(pipeline, state, finished));
    if let Some(bound) = bound.filter(|_| finished.follow_up.retrying) {
        finished.follow_up.retrying = false;
        let notes = &mut finished.outcome.notes;
        let separator = if notes.is_empty() { "" } else { "\n" };
        *notes = format!("{notes}{separator}not repeated: {}", bound.reason);
    }
    if finished.outcome.status == Status::Retry && !finished.follow_up.retrying {
        exhaust(pipeline, node, !stopping, &mut finished.outcome);
    }
    // At a fan-in, the choice is verified together with the merge that follows from it.
    let is_verified = node.checks.verification.is_some() && !node.handler.is_fan_in();
    let is_of_handler = finished.attempt.task.work == Work::Handler;
    finished.follow_up.verifying = is_of_handler && is_verified && finished.outcome.status.satisfies_gate();
    settle_recoverable(pipeline, node, stopping, finished);
}

/// Completes the part of the record that a person may decide about. No question is asked if the run is stopping or if
/// the attempt was canceled or cut off. The stage's own outcome is final: a decision repeats nothing.
fn settle_recoverable(pipeline: &Pipeline, node: &Node, stopping: bool, finished: &mut StageFinished) {
    let is_final = !finished.follow_up.retrying && finished.attempt.task.work == Work::Handler;
    let is_of_scope = finished.outcome.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::SCOPE_WRITE);
    let is_kept = is_final && is_of_scope && !stopping && finished.ending == Ending::Returned;
    let is_spent = |recoverable: &Recoverable| recoverable.outcome.failure.as_ref().is_some_and(is_of_budget);
    let Some(recoverable) = finished.files.recoverable.take() else { return };
    let recoverable = Some(recoverable).filter(|recoverable| is_kept && !is_spent(recoverable));
    if recoverable.is_none() {
        // The stored values belong to the stage's own outcome, which is discarded.
        finished.files.stored_values.clear();
    }
    finished.files.recoverable = recoverable.map(|mut recoverable| {
        let own = &mut recoverable.outcome;
        accept_silence(node, true, own);
        if own.status == Status::Retry {
            exhaust(pipeline, node, true, own);
        }
        recoverable.verifying = node.checks.verification.is_some() && own.status.satisfies_gate();
        recoverable
    });
}

/// Returns the number of the attempt that would be repeated, or `None` if nothing can be repeated. After a failed
/// verification, the node's work is repeated, but only the verification if the machine failed.
fn repeated(branch: &Branch, finished: &StageFinished) -> Option<u32> {
    match finished.attempt.task.work {
        Work::Verify if repeats_verification(finished) => Some(finished.attempt.ordinal),
        Work::Verify => branch.unverified.as_ref()?.ordinal,
        Work::Handler | Work::Join => Some(finished.attempt.ordinal),
    }
}

pub(super) fn repeats_verification(finished: &StageFinished) -> bool {
    finished.attempt.task.work == Work::Verify && finished.outcome.failure.as_ref().is_some_and(is_of_machine)
}

/// Returns the failure if the node has used up its `max_steps`.
pub(super) fn steps_of_node_exceeded(state: &RunState, node: &Node) -> Option<Failure> {
    let most = node.bounds.steps_max.filter(|most| state.node_usages.of(&node.id).steps >= *most)?;
    let reason = format!("node `{}` exceeded `max_steps` ({most})", node.id);
    Some(Failure::new(FailureClass::Budget, FailureCode::NODE_STEPS, reason))
}

/// Returns the `stage.retrying` event for an attempt that is repeated.
pub(super) fn after(pipeline: &Pipeline, state: &RunState, finished: &StageFinished) -> StageRetrying {
    let task = &match repeats_verification(finished) {
        true => finished.attempt.task.clone(),
        false => finished.attempt.task.handling(),
    };
    let ordinal = &repeated(state.branch(&task.branch), finished).unwrap_or(finished.attempt.ordinal);
    let backoff = pipeline.node(&task.node).map(|node| node.routing.backoff);
    let run_id = state.run_id().map_or("", RunId::as_str);
    let seed = format!("{run_id}\n{}\n{}", task, ordinal);
    let delay_ms = backoff.map_or(0, |backoff| delay_ms(&backoff, *ordinal, &seed));
    let delay_ms = delay_ms.max(verify_limits::cooldown_ms(state, finished));
    let at = state.at.unwrap_or(Timestamp::UNIX_EPOCH);
    let delay = SignedDuration::from_millis(i64::try_from(delay_ms).unwrap_or(i64::MAX));
    StageRetrying {
        task: task.clone(),
        ordinal: ordinal + 1,
        delay_ms,
        due_at: at.checked_add(delay).unwrap_or(Timestamp::MAX),
    }
}

/// Applies `auto_status`: only to an attempt without an outcome, never to a trap, a limit or a failure with a cause
/// (decision auto-status-fills-silence).
fn accept_silence(node: &Node, has_returned: bool, outcome: &mut Outcome) {
    let silent = outcome.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::OUTCOME_MISSING);
    if node.routing.auto_status && silent && has_returned {
        outcome.status = Status::Success;
        outcome.failure = None;
        outcome.notes = "auto-status: handler completed without writing status".to_owned();
    }
}

/// Returns the total number of attempts that are allowed for this outcome.
fn attempts_max(pipeline: &Pipeline, node: &Node, outcome: &Outcome) -> u32 {
    let failure = outcome.failure.as_ref();
    if outcome.status.satisfies_gate() || outcome.status == Status::Skipped || failure.is_some_and(is_final) {
        return 1;
    }
    let explicit = node.routing.max_retries.map(|retries| retries.saturating_add(1)).or(node.routing.backoff.attempts);
    let passing = outcome.status == Status::Retry || failure.is_some_and(|f| f.class == FailureClass::Transient);
    match explicit {
        Some(attempts) => attempts,
        None if failure.is_some_and(is_infra) => pipeline.default_max_retries.max(infra::RETRIES).saturating_add(1),
        None if passing => pipeline.default_max_retries.saturating_add(1),
        None => 1,
    }
}

/// Returns true for failures that a repetition cannot fix, whatever the pipeline asks for.
fn is_final(failure: &Failure) -> bool {
    use FailureClass::{Budget, Canceled, Contract, Scope, Transient};
    let refused_by_provider = failure.code.family() == FailureFamily::Provider && failure.class != Transient;
    // A repetition would immediately fail in the same way.
    let is_held_back = failure.code == FailureCode::REQUIRED_TOOL;
    matches!(failure.class, Scope | Contract | Canceled | Budget) || refused_by_provider || is_held_back
}

/// Sets the final status of an outcome `retry` if no attempt follows. `goes_on` is true if the run continues from here.
fn exhaust(pipeline: &Pipeline, node: &Node, goes_on: bool, outcome: &mut Outcome) {
    if node.routing.allow_partial && goes_on {
        outcome.status = Status::PartialSuccess;
        outcome.notes = "retries exhausted, partial accepted".to_owned();
        return;
    }
    // A fan-in always records its own end.
    let is_awaited = goes_on && !node.handler.is_fan_in() && route::awaits_retry(pipeline, &node.id);
    outcome.status = if is_awaited { Status::Retry } else { Status::Fail };
    // A reason that the handler gave stays unchanged (decision reasons-stay-unchanged).
    outcome
        .failure
        .get_or_insert_with(|| Failure::new(FailureClass::Transient, "retry/exhausted", "max retries exceeded"));
}

/// Returns the backoff before the retry that follows attempt `ordinal` (spec §3.6). Jitter comes from a hash instead of
/// a random number: the same journal gives the same delay.
fn delay_ms(backoff: &Backoff, ordinal: u32, seed: &str) -> u64 {
    let exponent = i32::try_from(ordinal.saturating_sub(1)).unwrap_or(i32::MAX);
    let grown = backoff.initial_ms as f64 * backoff.factor.powi(exponent);
    let capped = grown.min(backoff.max_ms as f64);
    let jittered = if backoff.jitter { capped * (0.5 + fraction(seed)) } else { capped };
    // The cast saturates, and turns the NaN of an extreme factor into zero.
    jittered as u64
}

/// Returns a number in [0, 1) that depends only on the text.
fn fraction(seed: &str) -> f64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&blake3::hash(seed.as_bytes()).as_bytes()[..8]);
    (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64
}
