//! The processor time of the whole machine, to measure work that includes processes which the benchmark cannot wait
//! for.
//!
//! Its resolution is 10 ms, so it is used only for long runs, on a machine that does nothing else.

use std::fs;
use std::time::Duration;

/// Clock ticks per second in `/proc`.
const TICKS: u64 = 100;

/// Returns the processor time of the machine since boot: user, system and interrupt time.
pub(crate) fn machine_cpu() -> Duration {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = text.lines().next().unwrap_or_default().split_whitespace();
    let fields: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _waiting, interrupts, soft_interrupts, ..] = fields[..] else { panic!("{text}") };
    Duration::from_millis((user + nice + system + interrupts + soft_interrupts) * 1_000 / TICKS)
}
