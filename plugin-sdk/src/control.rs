//! The attempt's own bounds and progress. Grants nothing outside the attempt.

use crate::bindings::glovebox::plugin::control;
use serde_json::Value;

/// Reports progress under one of the event kinds of the agent loop, or the plugin's own.
pub fn emit(kind: &str, event: &Value) {
    control::emit(kind, &event.to_string());
}

/// Says whether the run has been told to stop; a stage that goes on is stopped by force.
pub fn canceled() -> bool {
    control::canceled()
}

/// Returns a bound of this attempt by name, such as `turns` or `wall-ms`.
pub fn limit(name: &str) -> Option<u64> {
    control::limits().into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}
