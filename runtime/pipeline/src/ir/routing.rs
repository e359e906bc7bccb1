//! The routing after an attempt of a node: retries, back-off and retry targets.

use super::NodeId;

/// The routing after the attempts of a node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Routing {
    /// Additional attempts; none if the file sets none (decision what-is-retried).
    pub max_retries: Option<u32>,
    /// Back-off between attempts, from `retry_policy` or the default (spec §3.6).
    pub backoff: Backoff,
    /// The next node after a failure or an unmet gate.
    pub retry_target: Option<NodeId>,
    /// Used if `retry_target` is absent.
    pub fallback_retry_target: Option<NodeId>,
    /// A missing status counts as a success (spec App. C, decision auto-status-fills-silence).
    pub auto_status: bool,
    /// A partial result is accepted when no retries are left.
    pub allow_partial: bool,
}

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
