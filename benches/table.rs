//! The table that the benchmarks print: the median of a measurement, the median of its baseline, and their ratio; then
//! the minimum of the measurement and the ratio of the two minima. Other work of the machine affects the minima least.
//!
//! Measurement and baseline alternate (A B A B …), so that a change in the speed of the machine affects both. No
//! benchmark passes or fails.

use std::time::{Duration, Instant};

/// Prints the header of the table.
pub(crate) fn head() {
    println!(
        "{:<48} {:>10} {:>10} {:>8} {:>10} {:>8}  baseline",
        "measured", "median", "baseline", "ratio", "least", "ratio"
    );
}

/// Alternates a measurement with its baseline, after one warm-up run of each, and prints a row.
#[allow(dead_code)] // Not every benchmark alternates with a baseline.
pub(crate) fn row(
    name: &str,
    samples: usize,
    mut measured: impl FnMut() -> Duration,
    mut baseline: impl FnMut() -> Duration,
    of: &str,
) {
    measured();
    baseline();
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..samples).map(|_| (measured(), baseline())).unzip();
    let (least, least_of_theirs) = (least(&ours), least(&theirs));
    let least = format!("{:>10} {:>8.2}", shown(least), ratio(least, least_of_theirs));
    line(name, median(ours), median(theirs), &least, of);
}

/// Prints a row with times that were measured elsewhere.
#[allow(dead_code)] // Not every benchmark has such a row.
pub(crate) fn print(name: &str, ours: Duration, theirs: Duration, of: &str) {
    line(name, ours, theirs, &format!("{:>10} {:>8}", "-", "-"), of);
}

/// Prints a count or a size, which has no baseline.
#[allow(dead_code)] // Not every benchmark has a count.
pub(crate) fn count(name: &str, counted: f64, unit: &str) {
    println!("{name:<48} {counted:>10.2} {:>10} {:>8} {:>10} {:>8}  {unit}", "-", "-", "-", "-");
}

/// Prints a count or a size with the one that it should have.
#[allow(dead_code)] // Not every benchmark has a target.
pub(crate) fn against(name: &str, counted: f64, wanted: f64, unit: &str) {
    let ratio = counted / wanted;
    println!("{name:<48} {counted:>10.2} {wanted:>10.2} {ratio:>8.2} {:>10} {:>8}  {unit}", "-", "-");
}

fn line(name: &str, ours: Duration, theirs: Duration, least: &str, of: &str) {
    println!("{name:<48} {:>10} {:>10} {:>8.2} {least}  {of}", shown(ours), shown(theirs), ratio(ours, theirs));
}

fn shown(time: Duration) -> String {
    format!("{time:.2?}")
}

fn ratio(ours: Duration, theirs: Duration) -> f64 {
    ours.as_secs_f64() / theirs.as_secs_f64()
}

#[allow(dead_code)] // Not every benchmark alternates with a baseline.
fn least(times: &[Duration]) -> Duration {
    times.iter().min().copied().unwrap_or_default()
}

/// Returns the median.
#[allow(dead_code)] // Not every benchmark has samples of its own.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Returns the time that `act` takes.
#[allow(dead_code)] // Benchmarks of processes measure from the start of the process.
pub(crate) fn timed(act: impl FnOnce()) -> Duration {
    let start = Instant::now();
    act();
    start.elapsed()
}
