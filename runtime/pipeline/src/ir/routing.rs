//! What follows an attempt of a node: retries, back-off and retry targets.

use super::NodeId;

/// The settings for what follows the attempts of a node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Routing {
    /// Maximum number of additional attempts. `None` if the file does not say (decision what-is-retried).
    pub max_retries: Option<u32>,
    /// Delay between attempts, from `retry_policy` or the default (spec §3.6).
    pub backoff: Backoff,
    /// The next node after a failure or an unsatisfied goal gate.
    pub retry_target: Option<NodeId>,
    /// The node to use if `retry_target` is absent.
    pub fallback_retry_target: Option<NodeId>,
    /// True if a missing status counts as success (spec App. C, decision auto-status-fills-silence).
    pub auto_status: bool,
    /// True if the stage answers by a status file (decision status-files).
    pub status_file: bool,
    /// True if a partial result is accepted when no retries are left.
    pub allow_partial: bool,
}

/// Delay between attempts (spec §3.6).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// Total number of attempts of the preset, used if `max_retries` is absent. `None` if there is no preset.
    pub attempts: Option<u32>,
    /// Delay before the first retry, in milliseconds.
    pub initial_ms: u64,
    /// Factor by which the delay grows with each further retry.
    pub factor: f64,
    /// Maximum delay, in milliseconds.
    pub max_ms: u64,
    /// True if the delay is multiplied by a random factor from 0.5 to 1.5.
    pub jitter: bool,
}

impl Default for Backoff {
    /// Returns a delay of 200 ms, doubled for each retry up to a minute, with jitter (spec §3.6).
    fn default() -> Self {
        Self { attempts: None, initial_ms: 200, factor: 2.0, max_ms: 60_000, jitter: true }
    }
}
