//! The table the benchmarks print: the median of a thing, of its baseline done in turn with it, and their ratio.
//!
//! In turn (A B A B …), so that a machine whose speed drifts moves both. Nothing here passes or fails.

use std::time::{Duration, Instant};

/// Prints the head of the table.
pub(crate) fn head() {
    println!("{:<48} {:>10} {:>10} {:>8}  baseline", "measured", "median", "baseline", "ratio");
}

/// Measures two things in turn, once each without counting, and prints a row.
#[allow(dead_code)] // Not every benchmark measures in turn.
pub(crate) fn row(
    name: &str,
    samples: usize,
    mut measured: impl FnMut() -> Duration,
    mut baseline: impl FnMut() -> Duration,
    of: &str,
) {
    measured();
    baseline();
    let (ours, theirs) = (0..samples).map(|_| (measured(), baseline())).unzip();
    print(name, median(ours), median(theirs), of);
}

/// Prints a row of what was measured elsewhere.
pub(crate) fn print(name: &str, ours: Duration, theirs: Duration, of: &str) {
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{name:<48} {:>10} {:>10} {ratio:>8.2}  {of}", format!("{ours:.2?}"), format!("{theirs:.2?}"));
}

/// The middle one.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Time of one act.
#[allow(dead_code)] // Processes are timed around their spawn.
pub(crate) fn timed(act: impl FnOnce()) -> Duration {
    let start = Instant::now();
    act();
    start.elapsed()
}
