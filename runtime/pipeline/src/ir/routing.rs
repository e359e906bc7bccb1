//! What follows an attempt of a node: another attempt, and how long after.

/// Delay between attempts (spec §3.6).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The preset's total number of attempts, used if `max_retries` is absent.
    pub attempts: Option<u32>,
    /// Delay before the first retry, milliseconds.
    pub initial_ms: u64,
    /// Multiplier for each further retry.
    pub factor: f64,
    /// Maximum delay, milliseconds.
    pub max_ms: u64,
    /// Multiplies the delay by a random factor from 0.5 to 1.5.
    pub jitter: bool,
}

impl Default for Backoff {
    /// 200 ms, doubled for each retry up to a minute, with jitter (spec §3.6).
    fn default() -> Self {
        Self { attempts: None, initial_ms: 200, factor: 2.0, max_ms: 60_000, jitter: true }
    }
}
