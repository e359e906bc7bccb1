//! An event in its place: numbered, stamped, and chained to the record before by a hash.
//!
//! Knows how a record is hashed and written, not where it is kept.

use super::{Digest, Event, moment};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// Hashes a record: BLAKE3 over previous hash, sequence number, milliseconds since the epoch (both little-endian) and the
/// event's [`super::canonical`] text. The hash has a context of its own, so that no other hash of this program can replace it.
pub fn chain(prev: &Digest, seq: u64, at: Timestamp, canonical_event: &str) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("glovebox 2026 journal record v1");
    hasher.update(prev.as_bytes());
    hasher.update(&seq.to_le_bytes());
    hasher.update(&at.as_millisecond().to_le_bytes());
    hasher.update(canonical_event.as_bytes());
    hasher.finalize().into()
}
