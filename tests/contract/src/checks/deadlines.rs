//! Checks of the wall time: the component ends by itself, and the host can end it.

use crate::bench::{Bench, CallPlan};
use crate::error::TestError;
use crate::report::{Finding, milliseconds};
use glovebox_record::LimitName;
use std::time::Duration;

/// Maximum time from a deadline or a cancellation to the end of the call.
pub(super) const END_MAX: Duration = Duration::from_secs(1);

pub(super) fn ends(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let mut slowest = 0;
    for at in [Bench::normal, Bench::empty] {
        let observed = at(bench)?;
        if observed.is_over(LimitName::WallMs) {
            let limit = observed.report.usage.iter().find(|usage| usage.name == LimitName::WallMs);
            let limit = limit.map_or(0, |usage| usage.limit);
            return Ok(Finding::Failed(format!("the call with {} did not end within {limit} ms", observed.title)));
        }
        slowest = slowest.max(observed.report.duration_ms);
    }
    Ok(Finding::Passed(Some(format!("at most {slowest} ms"))))
}

pub(super) fn stops(bench: &Bench<'_>) -> Result<Finding, TestError> {
    if !bench.normal()?.is_returned() {
        return Ok(Finding::NotApplicable("the call with the normal input does not return".to_owned()));
    }
    let stage = bench.normal_stage();
    let wall_ms = (bench.normal()?.report.duration_ms / 2).max(1);
    let plan = CallPlan { wall_ms, ..bench.plan(&stage, bench.granted()) };
    let observed = bench.call("a wall time that is too short", &plan)?;
    let late = observed.took.saturating_sub(Duration::from_millis(wall_ms));
    Ok(if late > END_MAX {
        Finding::Failed(format!("with a wall time of {wall_ms} ms, the call ended {} ms after it", milliseconds(late)))
    } else if observed.is_returned() || observed.is_over(LimitName::WallMs) {
        Finding::passed()
    } else {
        Finding::Failed(format!("with a wall time of {wall_ms} ms, {}", observed.ended()))
    })
}
