//! The check of a cancellation in the middle of a call.

use super::deadlines::END_MAX;
use crate::bench::{Bench, CallPlan};
use crate::error::TestError;
use crate::report::{Finding, milliseconds};
use glovebox_record::{Ending, LimitName};

pub(super) fn ends(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let normal = bench.normal()?;
    if !normal.is_returned() && !normal.is_over(LimitName::WallMs) {
        return Ok(Finding::NotApplicable("the call with the normal input does not return".to_owned()));
    }
    let stage = bench.normal_stage();
    let cancel_at = normal.calls.total.div_ceil(2).max(1);
    let plan = CallPlan { cancel_at: Some(cancel_at), ..bench.plan(&stage, bench.granted()) };
    let observed = bench.call("a call that is canceled", &plan)?;
    let Some(took) = observed.after_cancel else {
        return Ok(Finding::NotApplicable("its calls end before they can be canceled".to_owned()));
    };
    let when =
        if observed.calls.total >= cancel_at { format!("at host call {cancel_at}") } else { "after 20 ms".to_owned() };
    Ok(if took > END_MAX {
        Finding::Failed(format!("it was canceled {when}, and ended {} ms later", milliseconds(took)))
    } else if matches!(observed.report.ending, Ending::Canceled | Ending::Returned) {
        Finding::Passed(Some(format!("canceled {when}, ended {} ms later", milliseconds(took))))
    } else {
        Finding::Failed(format!("it was canceled {when}, and {}", observed.ended()))
    })
}
