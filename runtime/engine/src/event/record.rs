//! An event in its place: numbered, stamped, and chained to the record before by a hash.
//!
//! Knows how a record is hashed and written, not where it is kept.

use super::{Digest, Event};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// An event with its place in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Counts from 1 without gaps.
    pub seq: u64,
    /// When it was appended, whole milliseconds. Not trusted for order; `seq` is.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Hash of the record before; all zeros for the first.
    pub prev: Digest,
    /// Hash over `prev`, `seq`, `at` and the event: [`chain`].
    pub hash: Digest,
    /// What happened.
    pub event: Event,
}

/// Cuts a moment to the whole milliseconds that records keep, so that a record reads back as it was made.
pub fn whole_milliseconds(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

/// Hashes a record: BLAKE3 over previous hash, sequence number, milliseconds since the epoch (both little-endian) and the
/// event's [`canonical`] text. Keyed by a purpose, so that no other hash in this program can stand in for it.
pub fn chain(prev: &Digest, seq: u64, at: Timestamp, canonical_event: &str) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("glovebox 2026 journal record v1");
    hasher.update(prev.as_bytes());
    hasher.update(&seq.to_le_bytes());
    hasher.update(&at.as_millisecond().to_le_bytes());
    hasher.update(canonical_event.as_bytes());
    hasher.finalize().into()
}

/// Writes an event, or anything made from one, as canonical JSON: object keys sorted, no white space.
pub fn canonical<T: Serialize>(fact: &T) -> Result<String, serde_json::Error> {
    let mut text = String::with_capacity(256);
    write_canonical(&serde_json::to_value(fact)?, &mut text)?;
    Ok(text)
}

fn write_canonical(value: &Value, text: &mut String) -> Result<(), serde_json::Error> {
    match value {
        Value::Object(fields) => {
            // Sorted here because the map's own order depends on a feature that any dependency may switch on.
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            write_sequence(text, ['{', '}'], sorted.into_iter(), |(key, value), text| {
                text.push_str(&serde_json::to_string(key)?);
                text.push(':');
                write_canonical(value, text)
            })
        }
        Value::Array(items) => write_sequence(text, ['[', ']'], items.iter(), write_canonical),
        scalar => {
            text.push_str(&serde_json::to_string(scalar)?);
            Ok(())
        }
    }
}

fn write_sequence<T>(
    text: &mut String,
    brackets: [char; 2],
    items: impl Iterator<Item = T>,
    write: impl Fn(T, &mut String) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    text.push(brackets[0]);
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(item, text)?;
    }
    text.push(brackets[1]);
    Ok(())
}
