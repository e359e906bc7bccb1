//! Limits, progress and cancellation of the attempt. Grants nothing outside of the attempt.

use crate::imports::control;
use serde_json::Value;

/// Reports progress. `kind` is an event kind of the agent loop, such as `tool-call-start`, or one of the plugin's own.
pub fn emit(kind: &str, event: &Value) {
    control::emit(kind, &event.to_string());
}

/// Returns true if the run is being canceled. The host ends a stage that does not return soon.
pub fn canceled() -> bool {
    control::canceled()
}

/// Returns a limit of this attempt by name, such as `turns` or `wall-ms`.
pub fn limit(name: &str) -> Option<u64> {
    control::limits().into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}
