//! The report of a call: every limit with what was used of it, and the record as it was at the end.

use crate::attempt::Attempt;
use crate::call::Report;
use crate::component::Component;
use crate::ending::Ended;
use crate::limits::{Limits, UNBOUNDED};
use glovebox_record::{FailureClass, LimitUse, Outcome};
use std::time::Duration;

/// The report of a call that ran.
pub(crate) fn of(component: &Component, mut attempt: Attempt, ended: Ended, duration: Duration) -> Report {
    attempt.count_handles();
    let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let usage = attempt.limits.iter().map(|(name, limit)| LimitUse {
        name: name.to_owned(),
        used: used(name, component, &attempt, &ended.outcome, duration_ms),
        limit: bound(limit, &attempt.limits),
    });
    Report {
        usage: usage.collect(),
        outcome: ended.outcome,
        claims: ended.claims,
        ending: ended.ending,
        refusals: attempt.refusals.kept(),
        refusals_total: attempt.refusals.total(),
        touched_files: !attempt.receipts.is_empty()
            || attempt.meter.commands > 0
            || attempt.view.as_ref().is_some_and(|view| view.touched()),
        receipts: attempt.receipts,
        artifacts: attempt.artifacts,
        log: attempt.log,
        stdout: attempt.stdout.kept(),
        stderr: attempt.stderr.kept(),
        turns_used: attempt.conversation.turns,
        duration_ms,
    }
}

/// The report of a call whose guest was never started; the component is known unless the host itself failed.
pub(crate) fn without_guest(component: Option<&Component>, limits: &Limits, ended: Ended) -> Report {
    let used = |name: &str| match (name, component) {
        ("component_bytes", Some(component)) => Some(component.inspection.bytes),
        ("instances", Some(component)) => Some(component.instances()),
        _ => None,
    };
    let usage = limits.iter().map(|(name, limit)| LimitUse {
        name: name.to_owned(),
        used: used(name),
        limit: bound(limit, limits),
    });
    Report {
        usage: usage.collect(),
        outcome: ended.outcome,
        claims: ended.claims,
        ending: ended.ending,
        refusals: Vec::new(),
        refusals_total: 0,
        receipts: Vec::new(),
        artifacts: Vec::new(),
        log: Vec::new(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        turns_used: 0,
        duration_ms: 0,
        touched_files: false,
    }
}

fn bound(limit: u64, limits: &Limits) -> u64 {
    if limit == UNBOUNDED { limits.wall_ms } else { limit }
}

fn used(name: &str, component: &Component, attempt: &Attempt, outcome: &Outcome, duration_ms: u64) -> Option<u64> {
    let measured = of_commands(name, attempt).unwrap_or_else(|| Some(of_call(name, component, attempt, duration_ms)));
    // What ended the call was used up, even where the last, refused step was not counted.
    match &outcome.failure {
        Some(failure) if failure.class == FailureClass::Budget && failure.code.limit_name() == Some(name) => {
            measured.max(attempt.limits.get(name))
        }
        _ => measured,
    }
}

/// What commands used; nothing for a limit that is not on commands.
fn of_commands(name: &str, attempt: &Attempt) -> Option<Option<u64>> {
    let used = &attempt.meter.of_commands;
    Some(match name {
        "command_ms" => used.command_ms,
        "command_output_bytes" => used.command_output_bytes,
        "cpu_ms" => used.cpu_ms,
        "command_memory_bytes" => used.command_memory_bytes,
        "processes" => used.processes,
        "descriptors" => used.descriptors,
        "file_bytes" => used.file_bytes,
        "tmp_bytes" => used.tmp_bytes,
        // Only known when the jail has ended, so the engine adds it.
        "disk_bytes" => None,
        _ => return None,
    })
}

fn of_call(name: &str, component: &Component, attempt: &Attempt, duration_ms: u64) -> u64 {
    let meter = &attempt.meter;
    match name {
        "wall_ms" => duration_ms,
        "memory_bytes" => meter.memory_bytes_peak,
        "table_elements" => meter.table_elements_peak,
        "instances" => component.instances(),
        "resources" => meter.resources_peak,
        "hostcall_bytes" => meter.hostcall_bytes_peak,
        "output_bytes" => attempt.stdout.total_bytes().max(attempt.stderr.total_bytes()),
        "write_bytes" => attempt.view.as_ref().map_or(0, |view| view.written_bytes()),
        "write_entries" => attempt.view.as_ref().map_or(0, |view| view.written_entries()),
        "component_bytes" => component.inspection.bytes,
        "turns" => u64::from(attempt.conversation.turns),
        "tool_rounds" => u64::from(attempt.conversation.tool_rounds),
        "artifact_bytes" => meter.artifact_bytes,
        "log_lines" => meter.log_lines,
        "commands" => meter.commands,
        "outcome_bytes" => meter.outcome_bytes,
        "refusals" => attempt.refusals.total(),
        // A row of the table without a measure would be a limit nobody reports.
        other => unreachable!("limit `{other}` is not measured"),
    }
}
