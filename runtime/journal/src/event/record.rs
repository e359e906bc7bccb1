//! A journal record: an event with a sequence number and a time, chained to the previous record by a hash.
//!
//! This module knows how a record is hashed and written, not where it is stored.

use super::{Digest, Event, time_format, write_canonical};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// An event with its place in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The sequence number. It counts from 1 without gaps.
    pub seq: u64,
    /// The time of the append, in whole milliseconds. The order of records is defined by `seq`, not by this time.
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Hash of the previous record; all zeros for the first.
    pub prev: Digest,
    /// Hash over `prev`, `seq`, `at` and the event. See [`chain`].
    pub hash: Digest,
    /// The event.
    pub event: Event,
    /// The stored text of the event, if the record was read from a journal.
    #[serde(skip)]
    #[schemars(skip)]
    pub text: EventText,
}

impl Record {
    /// Appends the record to `bytes` as canonical JSON. If the stored text of the event is known, it is copied instead
    /// of serialized again.
    pub fn write(&self, bytes: &mut Vec<u8>) -> serde_json::Result<()> {
        let Some(text) = self.text.get() else { return write_canonical(bytes, self) };
        bytes.extend_from_slice(b"{\"at\":");
        write_canonical(bytes, &time_format::text(&self.at))?;
        bytes.extend_from_slice(b",\"event\":");
        bytes.extend_from_slice(text.as_bytes());
        for (name, digest) in [(",\"hash\":", &self.hash), (",\"prev\":", &self.prev)] {
            bytes.extend_from_slice(name.as_bytes());
            write_canonical(bytes, digest)?;
        }
        bytes.extend_from_slice(b",\"seq\":");
        write_canonical(bytes, &self.seq)?;
        bytes.push(b'}');
        Ok(())
    }
}

/// The stored text of an event, if it is known. All values compare equal.
#[derive(Clone, Default)]
pub struct EventText(Option<Arc<str>>);

impl EventText {
    /// Drops the text, to save memory in records that are kept.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl From<String> for EventText {
    fn from(text: String) -> Self {
        Self(Some(text.into()))
    }
}

impl PartialEq for EventText {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for EventText {}

impl fmt::Debug for EventText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "known" } else { "unknown" })
    }
}

/// Truncates a time to the whole milliseconds that records store, so that a record is equal to itself after it was stored and read.
pub fn whole_milliseconds(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

/// Returns the hash of a record: BLAKE3 over the previous hash, the sequence number, the milliseconds since the epoch
/// (both little-endian) and the event's [`super::canonical`] text. The key derivation context is used only here, so
/// that no other hash of this program can equal a record's hash.
pub fn chain(prev: &Digest, seq: u64, at: Timestamp, canonical_event: &str) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("glovebox 2026 journal record v1");
    hasher.update(prev.as_bytes());
    hasher.update(&seq.to_le_bytes());
    hasher.update(&at.as_millisecond().to_le_bytes());
    hasher.update(canonical_event.as_bytes());
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::super::canonical;
    use super::*;

    #[test]
    fn a_record_is_written_the_same_from_its_text() {
        let event: Event = serde_json::from_value(serde_json::json!({
            "kind": "stage.retrying", "branch": "main", "node": "build", "visit": 2, "work": "handler", "ordinal": 1,
            "attempt_id": "01", "generation": 0, "delay_ms": 5, "due_at": "2026-11-25T00:00:00.005Z", "reason": "\"quoted\"\n",
        }))
        .unwrap();
        let text = EventText::from(canonical(&event).unwrap());
        let at = Timestamp::from_millisecond(1_764_000_000_007).unwrap();
        let record = Record { seq: 12, at, prev: Digest::ZERO, hash: Digest::hash(b"it"), event, text };
        let mut from_text = Vec::new();
        record.write(&mut from_text).unwrap();
        assert_eq!(String::from_utf8(from_text).unwrap(), canonical(&record).unwrap());
    }

    #[test]
    fn the_text_of_an_event_is_known_until_it_is_forgotten() {
        let mut text = EventText::from("{}".to_owned());
        assert_eq!(text.get(), Some("{}"));
        text.forget();
        assert_eq!(text.get(), None);
    }

    #[test]
    fn a_record_keeps_whole_milliseconds() {
        let at = Timestamp::from_microsecond(1_764_000_000_007_900).unwrap();
        assert_eq!(whole_milliseconds(at), Timestamp::from_millisecond(1_764_000_000_007).unwrap());
    }
}
