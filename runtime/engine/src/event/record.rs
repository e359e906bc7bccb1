//! An event in its place: numbered, stamped, and chained to the record before by a hash.
//!
//! Knows how a record is hashed and written, not where it is kept.

use super::{Digest, Event, moment};
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
    #[serde(with = "moment")]
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Hash of the previous record; all zeros for the first.
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

/// Writes an event, or anything made from one, as canonical JSON: object keys sorted, no white space.
pub fn canonical<T: Serialize>(fact: &T) -> Result<String, serde_json::Error> {
    let mut text = CanonicalText(String::with_capacity(256));
    text.push(&serde_json::to_value(fact)?)?;
    Ok(text.0)
}

/// Canonical JSON that is being written.
struct CanonicalText(String);

impl CanonicalText {
    fn push(&mut self, value: &Value) -> Result<(), serde_json::Error> {
        match value {
            Value::Object(fields) => {
                // Sorted here because the map's own order depends on a feature that any dependency may switch on.
                let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
                self.push_all(['{', '}'], sorted.into_iter(), |text, (key, value)| {
                    text.push_scalar(key)?;
                    text.0.push(':');
                    text.push(value)
                })
            }
            Value::Array(items) => self.push_all(['[', ']'], items.iter(), Self::push),
            scalar => self.push_scalar(scalar),
        }
    }

    fn push_scalar(&mut self, scalar: &impl Serialize) -> Result<(), serde_json::Error> {
        self.0.push_str(&serde_json::to_string(scalar)?);
        Ok(())
    }

    fn push_all<T>(
        &mut self,
        brackets: [char; 2],
        items: impl Iterator<Item = T>,
        push: impl Fn(&mut Self, T) -> Result<(), serde_json::Error>,
    ) -> Result<(), serde_json::Error> {
        self.0.push(brackets[0]);
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            push(self, item)?;
        }
        self.0.push(brackets[1]);
        Ok(())
    }
}

/// Hashes a record: BLAKE3 over previous hash, sequence number, milliseconds since the epoch (both little-endian) and the
/// event's [`canonical`] text. The hash has a context of its own, so that no other hash of this program can replace it.
pub fn chain(prev: &Digest, seq: u64, at: Timestamp, canonical_event: &str) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("glovebox 2026 journal record v1");
    hasher.update(prev.as_bytes());
    hasher.update(&seq.to_le_bytes());
    hasher.update(&at.as_millisecond().to_le_bytes());
    hasher.update(canonical_event.as_bytes());
    hasher.finalize().into()
}
