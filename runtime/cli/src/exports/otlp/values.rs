//! Ids, times and attributes of OpenTelemetry.

use jiff::Timestamp;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};

/// Maximum length of a name in an attribute, in characters.
const NAME_CHARACTERS_MAX: usize = 256;

/// Returns the id of the trace of a run, 16 bytes.
pub(super) fn trace_id(run_id: &str, started: Timestamp) -> Vec<u8> {
    hash(&["trace", run_id, &started.as_millisecond().to_string()], 16)
}

/// Returns the id of a span, 8 bytes. `key` is unique among the spans of this kind in the trace.
pub(super) fn span_id(trace_id: &[u8], kind: &str, key: &str) -> Vec<u8> {
    let trace: String = trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
    hash(&["span", &trace, kind, key], 8)
}

fn hash(parts: &[&str], bytes: usize) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        // The length before each part keeps apart what would be the same text together.
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hasher.finalize().as_bytes()[..bytes].to_vec()
}

/// Returns a time as OpenTelemetry has it. A time before 1970 is 0.
pub(super) fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or_default()
}

pub(super) fn text(key: &str, text: &str) -> KeyValue {
    of(key, Value::StringValue(text.chars().take(NAME_CHARACTERS_MAX).collect()))
}

pub(super) fn number(key: &str, number: u64) -> KeyValue {
    of(key, Value::IntValue(i64::try_from(number).unwrap_or(i64::MAX)))
}

pub(super) fn flag(key: &str, flag: bool) -> KeyValue {
    of(key, Value::BoolValue(flag))
}

fn of(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_every_part() {
        let trace = trace_id("r", Timestamp::UNIX_EPOCH);
        assert_eq!((trace.len(), trace == trace_id("r", Timestamp::UNIX_EPOCH)), (16, true));
        assert_ne!(trace, trace_id("s", Timestamp::UNIX_EPOCH));
        let ids = [("visit", "ab"), ("visita", "b"), ("attempt", "ab")].map(|(kind, key)| span_id(&trace, kind, key));
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
        assert!(ids.iter().all(|id| id.len() == 8));
    }
}
