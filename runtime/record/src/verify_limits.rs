//! The operator's limits on repetitions after a failed verification (decision repetitions-by-category):
//! `[verify.retry]`.
//!
//! `run.started` records it, so that a run keeps the bounds that it began with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Repetitions of the same failure in a row, unless the operator says how many (decision one-signature-two-bounds).
const SIGNATURE_THRESHOLD: u32 = 4;

/// The bounds on repetitions after a failed verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyLimits {
    /// Most repetitions, for any category of failure; absent where the category alone decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// The same failure so many times in a row ends the run.
    pub repeated_signature_threshold: u32,
    /// Least time before work is repeated after a failure that may pass with time, seconds.
    pub cooldown_seconds: u32,
}

impl Default for VerifyLimits {
    fn default() -> Self {
        Self { max_retries: None, repeated_signature_threshold: SIGNATURE_THRESHOLD, cooldown_seconds: 0 }
    }
}
