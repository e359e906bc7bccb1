//! What the host observed of an attempt while it ran: whether something moved, and what the attempt waited for.
//!
//! The counts never contain text of a model or a command. A wait that the host knows is not a stall.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Something that an attempt waits for, as the host knows. Only the host can name a wait, never a guest or a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A provider refused a request, and the request is repeated later.
    ModelRetry,
    /// A request was sent to a model, and its answer is not complete.
    Model,
    /// The host makes or ends the sandbox, or examines the files of the attempt. This includes the lock of a shared cache.
    Sandbox,
}

impl WaitKind {
    /// All kinds, the most informative first.
    pub const ALL: [Self; 3] = [Self::ModelRetry, Self::Model, Self::Sandbox];

    /// Returns the name of the kind in a record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ModelRetry => "model_retry",
            Self::Model => "model",
            Self::Sandbox => "sandbox",
        }
    }

    /// Returns the kind as the end of the sentence "it waits for".
    pub const fn described(self) -> &'static str {
        match self {
            Self::ModelRetry => "the next try of a model request",
            Self::Model => "the model",
            Self::Sandbox => "its sandbox",
        }
    }
}

impl fmt::Display for WaitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Default of `stall_timeout_ms`.
pub const STALL_TIMEOUT_DEFAULT: Duration = Duration::from_secs(600);
/// Maximum of the default of `stall_check_interval_ms`, which is a tenth of the timeout.
pub const STALL_CHECK_INTERVAL_MAX: Duration = Duration::from_secs(10);

/// The settings of the stall watchdog, as pipeline, flags and record have them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StallSettings {
    /// Maximum time in milliseconds without progress of any branch; 0 turns the watchdog off. Absent for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Time in milliseconds between two looks at the branches. Absent for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_interval_ms: Option<u64>,
}

/// The bounds of the stall watchdog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StallBounds {
    /// Maximum time without progress of any branch.
    pub timeout: Duration,
    /// Time between two looks at the branches.
    pub interval: Duration,
}

impl StallSettings {
    /// Returns true if every value is the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the lower of each value. A timeout of 0 means no limit, so it counts as the highest.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        let timeouts = [self.timeout_ms, other.timeout_ms].into_iter().flatten();
        let intervals = [self.check_interval_ms, other.check_interval_ms].into_iter().flatten();
        Self { timeout_ms: timeouts.min_by_key(|ms| ms.wrapping_sub(1)), check_interval_ms: intervals.min() }
    }

    /// Returns these settings, with each missing value taken from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            timeout_ms: self.timeout_ms.or(other.timeout_ms),
            check_interval_ms: self.check_interval_ms.or(other.check_interval_ms),
        }
    }

    /// Returns the bounds, or `None` if the watchdog is off.
    pub fn bounds(self) -> Option<StallBounds> {
        let timeout = self.timeout_ms.map_or(STALL_TIMEOUT_DEFAULT, Duration::from_millis);
        let interval = self.check_interval_ms.map(Duration::from_millis);
        let interval = interval.unwrap_or_else(|| STALL_CHECK_INTERVAL_MAX.min(timeout / 10)).min(timeout);
        (!timeout.is_zero()).then_some(StallBounds { timeout, interval })
    }
}

/// The liveness of an attempt that was longer than one heartbeat interval, as counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LivenessTotals {
    /// Number of heartbeats: intervals in which something moved, or in which the host knew what the attempt waited for.
    pub heartbeats: u64,
    /// Number of commands and requests to tool servers that were started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_calls: u64,
    /// Number of pieces in which answers of models arrived.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub text_deltas: u64,
    /// Length of these pieces in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub text_bytes: u64,
    /// Number of bytes that commands printed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_bytes: u64,
    /// The longest time without a heartbeat in milliseconds, measured in whole intervals.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub longest_silence_ms: u64,
    /// The time in milliseconds for which the attempt waited, by what it waited for, measured in whole intervals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waited_ms: BTreeMap<WaitKind, u64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_names_of_the_record_and_the_order_of_the_list() {
        for pair in WaitKind::ALL.windows(2) {
            assert!(pair[0] < pair[1]);
        }
        for kind in WaitKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert!(!kind.described().is_empty());
        }
    }

    #[test]
    fn the_lower_setting_wins_and_a_timeout_of_zero_is_none() {
        let setting = |timeout_ms, check_interval_ms| StallSettings { timeout_ms, check_interval_ms };
        let (attribute, flag) = (setting(Some(2_000), Some(50)), setting(Some(3_000), None));
        assert_eq!((attribute.least(flag), flag.least(attribute)), (attribute, attribute));
        assert_eq!(attribute.least(setting(Some(0), Some(10))), setting(Some(2_000), Some(10)));
        assert_eq!(StallSettings::default().least(setting(Some(0), None)).bounds(), None);
        assert_eq!(flag.or(attribute), setting(Some(3_000), Some(50)));
        let bounds = |ms| StallSettings { timeout_ms: ms, ..StallSettings::default() }.bounds().unwrap();
        let (seconds, millis) = (Duration::from_secs, Duration::from_millis);
        assert_eq!(bounds(None), StallBounds { timeout: seconds(600), interval: seconds(10) });
        assert_eq!(bounds(Some(1_500)), StallBounds { timeout: millis(1_500), interval: millis(150) });
    }

    #[test]
    fn counts_of_zero_are_left_out() {
        let totals = LivenessTotals {
            heartbeats: 3,
            waited_ms: BTreeMap::from([(WaitKind::Model, 20_000)]),
            ..LivenessTotals::default()
        };
        let text = serde_json::to_string(&totals).unwrap();
        assert_eq!(text, r#"{"heartbeats":3,"waited_ms":{"model":20000}}"#);
        assert_eq!(serde_json::from_str::<LivenessTotals>(&text).unwrap(), totals);
    }
}
