//! Creates the report of a call: the usage of every limit, and everything that was recorded.

use crate::attempt::Attempt;
use crate::call::Report;
use crate::component::Component;
use crate::ending::CallEnd;
use glovebox_record::spend::Money;
use glovebox_record::{FailureClass, LimitName, LimitUse, Limits, Outcome, Tokens};
use glovebox_workspace::view::View;
use std::time::Duration;

/// Returns the report of a call whose guest was started.
pub(crate) fn for_call(component: &Component, mut attempt: Attempt, ended: CallEnd, duration: Duration) -> Report {
    attempt.wasi.count_handles();
    attempt.llm.access.close();
    let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let usage = LimitName::ALL.iter().map(|name| LimitUse {
        name: *name,
        used: used(*name, component, &attempt, &ended.outcome, duration_ms),
        limit: attempt.call.limits.bound(*name),
    });
    Report {
        usage: usage.collect(),
        outcome: ended.outcome,
        claims: ended.claims,
        ending: ended.ending,
        refusals: attempt.call.refusals.stored(),
        refusals_total: attempt.call.refusals.total(),
        touched_files: !attempt.exec.receipts.is_empty()
            || attempt.exec.started > 0
            || attempt.files.view.as_ref().is_some_and(|view| view.touched()),
        receipts: attempt.exec.receipts,
        tool_calls: attempt.tools.calls,
        artifacts: attempt.control.artifacts,
        log: attempt.control.log,
        stdout: attempt.wasi.stdout.kept(),
        stderr: attempt.wasi.stderr.kept(),
        turns_used: attempt.llm.access.turns,
        tokens: attempt.llm.access.tokens,
        cost: attempt.llm.access.cost,
        conversation: attempt.llm.access.take_messages(),
        transcript: attempt.llm.access.take_transcript(),
        is_estimated: attempt.llm.access.is_estimated,
        steered: attempt.llm.access.deliveries(),
        answered_by: attempt.llm.access.answered_by.take(),
        resume_at: attempt.llm.access.resume_at(),
        duration_ms,
    }
}

/// Returns the report of a call whose guest was never started. `component` is `None` if the host itself failed.
pub(crate) fn without_guest(component: Option<&Component>, limits: &Limits, ended: CallEnd) -> Report {
    let used = |name| match (name, component) {
        (LimitName::ComponentBytes, Some(component)) => Some(component.inspection.bytes),
        (LimitName::Instances, Some(component)) => Some(component.instances()),
        _ => None,
    };
    let usage =
        LimitName::ALL.iter().map(|name| LimitUse { name: *name, used: used(*name), limit: limits.bound(*name) });
    Report {
        usage: usage.collect(),
        outcome: ended.outcome,
        claims: ended.claims,
        ending: ended.ending,
        refusals: Vec::new(),
        refusals_total: 0,
        receipts: Vec::new(),
        tool_calls: Vec::new(),
        artifacts: Vec::new(),
        log: Vec::new(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        turns_used: 0,
        tokens: Tokens::default(),
        cost: Money::default(),
        conversation: Vec::new(),
        transcript: Vec::new(),
        is_estimated: false,
        steered: Vec::new(),
        answered_by: None,
        resume_at: None,
        duration_ms: 0,
        touched_files: false,
    }
}

fn used(name: LimitName, component: &Component, attempt: &Attempt, outcome: &Outcome, duration_ms: u64) -> Option<u64> {
    let measured = measured(name, component, attempt, duration_ms);
    // A limit that ended the call counts as fully used, although the refused operation was not counted.
    match &outcome.failure {
        Some(failure) if failure.class == FailureClass::Budget && failure.code.limit_name() == Some(name.as_str()) => {
            measured.max(Some(attempt.call.limits.get(name)))
        }
        _ => measured,
    }
}

/// Returns the measured usage. A limit on commands has no usage before the first command.
fn measured(name: LimitName, component: &Component, attempt: &Attempt, duration_ms: u64) -> Option<u64> {
    let (meter, view) = (&attempt.call.meter, attempt.files.view.as_deref());
    let of_commands = &attempt.exec.usage;
    Some(match name {
        LimitName::WallMs => duration_ms,
        LimitName::MemoryBytes => meter.memory_bytes_peak,
        LimitName::TableElements => meter.table_elements_peak,
        LimitName::Instances => component.instances(),
        LimitName::Resources => attempt.wasi.handles_peak,
        LimitName::HostcallBytes => meter.hostcall_bytes_peak,
        LimitName::OutputBytes => attempt.wasi.stdout.total_bytes().max(attempt.wasi.stderr.total_bytes()),
        LimitName::WriteBytes => view.map_or(0, View::written_bytes),
        LimitName::WriteEntries => view.map_or(0, View::written_entries),
        LimitName::ComponentBytes => component.inspection.bytes,
        LimitName::Turns => u64::from(attempt.llm.access.turns),
        LimitName::ToolRounds => u64::from(attempt.llm.access.tool_rounds),
        LimitName::ArtifactBytes => attempt.control.artifact_bytes,
        LimitName::LogLines => attempt.control.log_lines,
        LimitName::CommandMs => return of_commands.command_ms,
        LimitName::CommandOutputBytes => return of_commands.command_output_bytes,
        LimitName::Commands => attempt.exec.started,
        LimitName::CpuMs => return of_commands.cpu_ms,
        LimitName::CommandMemoryBytes => return of_commands.command_memory_bytes,
        LimitName::Processes => return of_commands.processes,
        LimitName::Descriptors => return of_commands.descriptors,
        LimitName::FileBytes => return of_commands.file_bytes,
        LimitName::TmpBytes => return of_commands.tmp_bytes,
        // The usage of these limits is known only after the jail has ended, so the engine adds it.
        LimitName::DiskBytes | LimitName::IgnoredEntries => return None,
        LimitName::OutcomeBytes => meter.outcome_bytes,
        LimitName::Refusals => attempt.call.refusals.total(),
    })
}
