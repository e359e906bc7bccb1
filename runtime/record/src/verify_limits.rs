//! The operator's limits on repetitions after a failed verification (decision repetitions-by-category), from `[verify.retry]`.
//!
//! The event `run.started` records the limits, so that they do not change during the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits on repetitions after a failed verification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyLimits {
    /// Maximum number of repetitions for all categories of failure; absent if only the category decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Number of times in a row that the same failure ends the run; absent if the operator did not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated_signature_threshold: Option<u32>,
    /// Minimum time before work is repeated after a failure that may disappear with time, in seconds.
    pub cooldown_seconds: u32,
}

impl VerifyLimits {
    /// Number of consecutive equal failures that ends the run if neither the operator nor the graph sets a number
    /// (decision one-signature-two-bounds).
    pub const SIGNATURE_THRESHOLD_DEFAULT: u32 = 4;
}
