//! The processor time of the whole machine: what a thing costs that leaves processes behind which nobody here reaps.
//!
//! In steps of 10 ms, so only long runs are measured with it, and only on a machine that does nothing else.

use std::fs;
use std::time::Duration;

/// The kernel's clock ticks in a second, in `/proc`.
const TICKS: u64 = 100;

/// What the processors of the machine worked so far: for programs, the kernel and interrupts.
pub(crate) fn machine_cpu() -> Duration {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = text.lines().next().unwrap_or_default().split_whitespace();
    let fields: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _waiting, interrupts, soft_interrupts, ..] = fields[..] else { panic!("{text}") };
    Duration::from_millis((user + nice + system + interrupts + soft_interrupts) * 1_000 / TICKS)
}
