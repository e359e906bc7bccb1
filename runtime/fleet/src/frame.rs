//! A frame: the records of one append, as one message.
//!
//! The first line is a header in JSON. Each further line is the canonical text of one event, so the hashes cover the
//! stored bytes. A frame that is too large for a message has its events in a blob, which the header names. A frame links
//! to the frame before it as a record links to the record before it: by the sequence number and the hash.

use glovebox_journal::event::{Digest, Event, EventText, Record, canonical, chain};
use glovebox_journal::ports::{PortError, Stored};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of the form of frames.
const VERSION: i32 = 1;
/// Maximum size in bytes of a frame that is a message of its own. A server accepts messages of 1 MiB by default.
pub(crate) const MESSAGE_BYTES_MAX: usize = 900 * 1024;
/// Maximum size in bytes of the events of a frame.
pub(crate) const EVENTS_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The end of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tip {
    /// The last sequence number; 0 if there is no record.
    pub(crate) seq: u64,
    /// The last hash; all zeros if there is no record.
    pub(crate) hash: Digest,
}

impl Tip {
    /// The tip of a journal without records.
    pub(crate) const START: Self = Self { seq: 0, hash: Digest::ZERO };
}

/// The first line of a frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    version: i32,
    /// Sequence number of the first record.
    pub(crate) first: u64,
    /// Number of records, at least 1.
    count: u64,
    /// Time of the append in milliseconds since the epoch.
    at: i64,
    /// Hash of the record before the first.
    pub(crate) prev: Digest,
    /// Hash of the last record.
    pub(crate) hash: Digest,
    /// A name that no other append has. Two drivers may append equal events; their frames still differ.
    pub(crate) nonce: String,
    /// The blob with the events, if they are not in the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<Digest>,
}

impl Header {
    /// Returns the end of the journal after this frame.
    pub(crate) fn tip(&self) -> Tip {
        Tip { seq: self.first.saturating_add(self.count) - 1, hash: self.hash }
    }
}

/// A frame to append.
pub(crate) struct Frame {
    pub(crate) header: Header,
    /// The events, one a line.
    lines: String,
    /// The records, in order.
    pub(crate) records: Vec<Record>,
}

impl Frame {
    /// Creates the frame that follows `tip`. `texts` has the canonical text of each event, and there is at least one.
    pub(crate) fn new(tip: Tip, at: Timestamp, events: &[Event], texts: &[String], nonce: String) -> Self {
        let mut end = tip;
        let records = events.iter().zip(texts).map(|(event, text)| {
            let (seq, prev) = (end.seq + 1, end.hash);
            end = Tip { seq, hash: chain(&prev, seq, at, text) };
            Record { seq, at, prev, hash: end.hash, event: event.clone(), text: EventText::from(text.clone()) }
        });
        let records: Vec<Record> = records.collect();
        let (first, count) = (tip.seq + 1, records.len() as u64);
        let (at, prev, hash) = (at.as_millisecond(), tip.hash, end.hash);
        let header = Header { version: VERSION, first, count, at, prev, hash, nonce, events: None };
        Self { header, lines: texts.join("\n"), records }
    }

    /// Returns the positions of the records.
    pub(crate) fn stored(&self) -> Vec<Stored> {
        let stored = |record: &Record| {
            let Record { seq, prev, hash, ref text, .. } = *record;
            Stored { seq, prev, hash, text: text.clone() }
        };
        self.records.iter().map(stored).collect()
    }

    /// Returns the events if they must be stored as a blob before the message is published.
    pub(crate) fn too_large(&self) -> Option<&str> {
        (self.lines.len() > MESSAGE_BYTES_MAX).then_some(&self.lines)
    }

    /// Returns the message. `blob` is the digest of the events if they are stored as a blob.
    pub(crate) fn message(&self, blob: Option<Digest>) -> Result<Vec<u8>, serde_json::Error> {
        let mut message = serde_json::to_vec(&Header { events: blob, ..self.header.clone() })?;
        if blob.is_none() {
            message.push(b'\n');
            message.extend_from_slice(self.lines.as_bytes());
        }
        Ok(message)
    }
}

/// Splits a message into its header and its events, which are `None` if they are in a blob.
///
/// # Errors
/// The message is not a frame of this version. `expected` is the sequence number of its first record, for the error.
pub(crate) fn parse(message: &[u8], expected: u64) -> Result<(Header, Option<&str>), PortError> {
    let text = std::str::from_utf8(message).map_err(|error| corrupt(expected, error.to_string()))?;
    let (header, lines) = text.split_once('\n').map_or((text, None), |(header, lines)| (header, Some(lines)));
    let version: Version = serde_json::from_str(header).map_err(|error| corrupt(expected, error.to_string()))?;
    if version.version != VERSION {
        return Err(PortError::Version { found: version.version, expected: VERSION });
    }
    let header: Header = serde_json::from_str(header).map_err(|error| corrupt(expected, error.to_string()))?;
    if header.events.is_none() != lines.is_some() || header.count == 0 {
        return Err(corrupt(expected, "its frame has no events"));
    }
    Ok((header, lines))
}

#[derive(Deserialize)]
struct Version {
    version: i32,
}

/// Returns the records of a frame, each verified against its predecessor. `tip` is the end of the journal before it.
///
/// # Errors
/// The frame does not follow `tip`, or one of its hashes is wrong.
pub(crate) fn verify(header: &Header, lines: &str, tip: Tip) -> Result<Vec<Record>, PortError> {
    let next = tip.seq + 1;
    if header.first != next {
        return Err(corrupt(next, format!("record {} is in its place", header.first)));
    }
    if header.prev != tip.hash {
        return Err(corrupt(next, "its previous hash is not the hash of the record before it"));
    }
    let at = Timestamp::from_millisecond(header.at).map_err(|error| corrupt(next, error.to_string()))?;
    let (mut end, mut records) = (tip, Vec::new());
    for text in lines.split('\n') {
        let (seq, prev) = (end.seq + 1, end.hash);
        let event: Event = serde_json::from_str(text).map_err(|error| corrupt(seq, error.to_string()))?;
        end = Tip { seq, hash: chain(&prev, seq, at, text) };
        // A forged event may contain control characters between tokens, which must not reach the files of a run.
        let is_plain = !text.bytes().any(|byte| byte < b' ');
        let text = if is_plain { EventText::from(text.to_owned()) } else { EventText::default() };
        records.push(Record { seq, at, prev, hash: end.hash, event, text });
    }
    if end != header.tip() {
        return Err(corrupt(end.seq, "its hash is not that of its content"));
    }
    Ok(records)
}

/// Returns the texts that an append stores.
pub(crate) fn texts(events: &[Event]) -> Result<Vec<String>, PortError> {
    let texts = events.iter().map(canonical).collect::<Result<Vec<String>, _>>();
    let texts = texts.map_err(|error| PortError::Unavailable(error.to_string()))?;
    let bytes: u64 = texts.iter().map(|text| text.len() as u64 + 1).sum();
    match bytes > EVENTS_BYTES_MAX {
        true => Err(PortError::Unavailable(format!(
            "an append has {bytes} bytes of events, the most is {EVENTS_BYTES_MAX}"
        ))),
        false => Ok(texts),
    }
}

/// Returns the error of a journal whose record `seq` cannot be verified.
pub(crate) fn corrupt(seq: u64, found: impl Into<String>) -> PortError {
    PortError::Corrupt { what: format!("journal record {seq}"), found: found.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_journal::event::RunCanceled;

    fn frame(tip: Tip, by: &[&str]) -> Frame {
        let events: Vec<Event> = by.iter().map(|by| Event::RunCanceled(RunCanceled { by: (*by).to_owned() })).collect();
        let at = Timestamp::from_millisecond(1_764_000_000_007).unwrap();
        Frame::new(tip, at, &events, &texts(&events).unwrap(), "nonce".to_owned())
    }

    fn read(message: &[u8], tip: Tip) -> Result<Vec<Record>, PortError> {
        let (header, lines) = parse(message, tip.seq + 1)?;
        verify(&header, lines.unwrap(), tip)
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let first = frame(Tip::START, &["a", "b\n\"c\""]);
        let second = frame(first.header.tip(), &["d"]);
        assert_eq!(read(&first.message(None).unwrap(), Tip::START).unwrap(), first.records);
        assert_eq!(read(&second.message(None).unwrap(), first.header.tip()).unwrap(), second.records);
        assert_eq!(second.records[0].seq, 3);
    }

    #[test]
    fn a_frame_that_was_changed_or_moved_is_corrupt() {
        let (first, other) = (frame(Tip::START, &["a", "b"]), frame(Tip::START, &["c", "d"]));
        let message = String::from_utf8(first.message(None).unwrap()).unwrap();
        let third = frame(first.header.tip(), &["e"]).message(None).unwrap();
        let cases = [
            (message.replace("\"a\"", "\"x\"").into_bytes(), Tip::START, "its hash is not that of its content"),
            (message.replace("\"count\":2", "\"count\":3").into_bytes(), Tip::START, "its hash is not"),
            (message.rsplit_once('\n').unwrap().0.as_bytes().to_vec(), Tip::START, "its hash is not"),
            (message.split_once('\n').unwrap().0.as_bytes().to_vec(), Tip::START, "its frame has no events"),
            (message.into_bytes(), first.header.tip(), "record 1 is in its place"),
            (third.clone(), Tip::START, "record 3 is in its place"),
            (third, other.header.tip(), "its previous hash is not the hash of the record before it"),
            (b"\xff".to_vec(), Tip::START, "invalid utf-8"),
            (b"{}".to_vec(), Tip::START, "missing field `version`"),
        ];
        for (message, tip, expected) in cases {
            let error = read(&message, tip).unwrap_err();
            assert!(matches!(error, PortError::Corrupt { .. }) && error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn a_frame_of_another_version_is_named() {
        let message = String::from_utf8(frame(Tip::START, &["a"]).message(None).unwrap()).unwrap();
        let error = read(message.replace("\"version\":1", "\"version\":2").as_bytes(), Tip::START).unwrap_err();
        assert!(matches!(error, PortError::Version { found: 2, expected: 1 }), "{error}");
    }
}
