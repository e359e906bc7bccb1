//! The operator's limits on repetitions after a failed verification (decision repetitions-by-category), from `[verify.retry]`.
//!
//! The event `run.started` records the limits, so that they do not change during the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default number of consecutive equal failures that ends the run (decision one-signature-two-bounds).
const SIGNATURE_THRESHOLD: u32 = 4;

/// The limits on repetitions after a failed verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyLimits {
    /// Maximum number of repetitions for all categories of failure; absent if only the category decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Number of times in a row that the same failure ends the run.
    pub repeated_signature_threshold: u32,
    /// Minimum time before work is repeated after a failure that may disappear with time, in seconds.
    pub cooldown_seconds: u32,
}

impl Default for VerifyLimits {
    fn default() -> Self {
        Self { max_retries: None, repeated_signature_threshold: SIGNATURE_THRESHOLD, cooldown_seconds: 0 }
    }
}
