//! Checks of all calls of a test for limits that were reached.

use crate::bench::Bench;
use crate::error::TestError;
use crate::report::Finding;
use glovebox_record::LimitName;

/// Maximum number of host calls of one call.
const HOST_CALLS_MAX: u64 = 100_000;

/// Returns a failure for the first call that used up one of these limits. A limit whose use is counted in full counts as used up when
/// it is exceeded or when it ended the call.
fn within(bench: &Bench<'_>, names: &[LimitName]) -> Result<Finding, TestError> {
    bench.all_inputs()?;
    for call in bench.summaries() {
        let is_named = |name: &LimitName| call.over.as_deref() == Some(name.as_str());
        let over = call.usage.iter().filter(|usage| names.contains(&usage.name)).find(|usage| {
            let used = usage.used.unwrap_or(0);
            is_named(&usage.name) || used > usage.limit || (used == usage.limit && is_refused_at(usage.name))
        });
        if let Some(usage) = over {
            let (name, limit, used) = (usage.name, usage.limit, usage.used.unwrap_or(0));
            return Ok(Finding::Failed(format!("with {}, `{name}` was used up: {used} of {limit}", call.title)));
        }
    }
    Ok(Finding::passed())
}

/// Returns true for a limit at which more is refused and not counted.
fn is_refused_at(name: LimitName) -> bool {
    matches!(name, LimitName::WriteBytes | LimitName::WriteEntries | LimitName::ArtifactBytes | LimitName::Resources)
}

pub(super) fn memory(bench: &Bench<'_>) -> Result<Finding, TestError> {
    use LimitName::{HostcallBytes, Instances, MemoryBytes, Resources, TableElements};
    within(bench, &[MemoryBytes, TableElements, Instances, Resources, HostcallBytes])
}

pub(super) fn output(bench: &Bench<'_>) -> Result<Finding, TestError> {
    use LimitName::{ArtifactBytes, CommandOutputBytes, LogLines, OutcomeBytes, OutputBytes, Refusals};
    within(bench, &[OutputBytes, LogLines, ArtifactBytes, OutcomeBytes, Refusals, CommandOutputBytes])
}

pub(super) fn files(bench: &Bench<'_>) -> Result<Finding, TestError> {
    within(bench, &[LimitName::WriteBytes, LimitName::WriteEntries])
}

pub(super) fn model(bench: &Bench<'_>) -> Result<Finding, TestError> {
    if !bench.wants().model {
        return Ok(Finding::NotApplicable("it wants no model".to_owned()));
    }
    within(bench, &[LimitName::Turns, LimitName::ToolRounds])
}

pub(super) fn host_calls(bench: &Bench<'_>) -> Result<Finding, TestError> {
    bench.all_inputs()?;
    let calls = bench.summaries();
    let most = calls.iter().max_by_key(|call| call.host_calls);
    let most = most.map_or((0, ""), |call| (call.host_calls, call.title.as_str()));
    Ok(match most {
        (count, title) if count > HOST_CALLS_MAX => {
            Finding::Failed(format!("with {title}, it made {count} host calls"))
        }
        (count, _) => Finding::Passed(Some(format!("at most {count}"))),
    })
}
