//! The check of all calls of a test for traps.

use crate::bench::Bench;
use crate::error::TestError;
use crate::observed::ended;
use crate::report::Finding;
use glovebox_record::Ending;

pub(super) fn traps(bench: &Bench<'_>) -> Result<Finding, TestError> {
    bench.all_inputs()?;
    let calls = bench.summaries();
    let trapped = |ending: &Ending| matches!(ending, Ending::Trapped(_) | Ending::NotLinked(_));
    let found: Vec<_> = calls.iter().filter(|call| trapped(&call.ending)).collect();
    Ok(match found.first() {
        Some(first) => {
            let of = format!("{} of {} calls", found.len(), calls.len());
            Finding::Failed(format!("{of}; with {}, {}", first.title, ended(&first.ending)))
        }
        None => Finding::Passed(Some(format!("{} calls", calls.len()))),
    })
}
