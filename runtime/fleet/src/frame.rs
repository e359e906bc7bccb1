//! A frame: the records of one append, as one message.
//!
//! The first line is a header in JSON. Each further line is the canonical text of one event, so the hashes cover the
//! stored bytes. A frame that is too large for a message has its events in a blob, which the header names. A frame links
//! to the frame before it as a record links to the record before it: by the sequence number and the hash.
//! In an encrypted run, all lines but the header are one text in base64, and so is the digest of a blob; the hashes of the header
//! are keyed; and the header of the first frame has the run's key for each machine that may have it.
//!
//! Whoever appends a frame signs its header: the submitter the first one, a driver the others. The header names the run and has the
//! hash of the record before the frame and that of its last record, which covers all its records. So a frame cannot be moved to
//! another place or another run.

use crate::run_key::{RunKey, SealedKey, TextKind};
use glovebox_journal::event::{Digest, Event, EventText, Record, RunId, canonical, chain};
use glovebox_journal::ports::{PortError, Stored};
use glovebox_signing::envelope::PayloadType;
use glovebox_signing::key::{PublicKey, SigningKey};
use jiff::Timestamp;
use schemars::JsonSchema;
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "fleet-frame.json")]
pub struct Header {
    /// Version of the form of frames.
    version: i32,
    /// Id of the fleet. The frame means nothing in another one.
    fleet: String,
    /// The run.
    #[schemars(with = "String")]
    run: RunId,
    /// Sequence number of the first record.
    pub(crate) first: u64,
    /// Number of records, at least 1.
    count: u64,
    /// Time of the append in milliseconds since the epoch.
    at: i64,
    /// Hash of the record before the first. Keyed with the key of the run if that is encrypted.
    pub(crate) prev: Digest,
    /// Hash of the last record. Keyed in the same way.
    pub(crate) hash: Digest,
    /// A name that no other append has. Two drivers may append equal events; their frames still differ.
    pub(crate) nonce: String,
    /// What names the key of the run; absent if the run is not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_id: Option<Digest>,
    /// In the first frame of an encrypted run: its key, for each machine that may have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) keys: Vec<SealedKey>,
    /// The blob with the events, if they are not in the message. Of an encrypted run it is named in the encrypted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<Digest>,
    /// The public key of the machine that appended the frame: `ed25519:` and 32 bytes in base64.
    #[schemars(with = "String")]
    pub(crate) signer: PublicKey,
    /// The signature in base64: by the signer, over the JSON of this header without this field, as a payload of the type
    /// `application/vnd.glovebox.fleet-frame.v1+json` in DSSE's pre-authentication encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

impl Header {
    /// Returns true if the frame ends with this record.
    fn ends_with(&self, end: Tip, key: Option<&RunKey>) -> bool {
        self.first.saturating_add(self.count) - 1 == end.seq && shown(&end.hash, key) == self.hash
    }

    /// Returns the bytes that are signed.
    fn signed(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&Self { signature: None, ..self.clone() })
    }

    /// Checks that the frame is one of this run of this fleet, and that its signer signed it.
    ///
    /// # Errors
    /// It is of another run or another fleet, or its signature is not that of its content.
    pub(crate) fn check_signature(&self, fleet: &str, run: &RunId) -> Result<(), PortError> {
        if self.fleet != fleet {
            return Err(corrupt(self.first, "its frame is one of another fleet"));
        }
        if self.run != *run {
            return Err(corrupt(self.first, format!("its frame is one of the run `{}`", self.run)));
        }
        let signature = self.signature.as_deref().ok_or_else(|| corrupt(self.first, "its frame is not signed"))?;
        let bytes = self.signed().map_err(|error| corrupt(self.first, error.to_string()))?;
        match PayloadType::FLEET_FRAME.has_signed(&bytes, &self.signer, signature) {
            true => Ok(()),
            false => Err(corrupt(self.first, format!("the signature of its frame is not that of {}", self.signer))),
        }
    }
}

/// Returns a hash as headers have it.
fn shown(hash: &Digest, key: Option<&RunKey>) -> Digest {
    key.map_or(*hash, |key| key.record_hash(hash))
}

/// What is before the events in the text of an encrypted frame.
const EVENTS: char = '=';
/// What is before the digest of the blob with the events, in the text of an encrypted frame.
const BLOB: char = '@';

/// The events of a frame.
pub(crate) enum FrameEvents {
    /// One a line.
    Lines(String),
    /// In a blob.
    Blob(Digest),
}

/// How the events of a frame are written.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sealing<'a> {
    /// The key of the run; `None` if it is not encrypted.
    pub(crate) key: Option<&'a RunKey>,
    /// The key for each machine that may have it, for the first frame.
    pub(crate) keys: &'a [SealedKey],
}

/// A frame to append.
pub(crate) struct Frame {
    /// The end of the journal before it.
    tip: Tip,
    at: Timestamp,
    pub(crate) nonce: String,
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
        Self { tip, at, nonce, lines: texts.join("\n"), records }
    }

    /// Returns the sequence number of the first record.
    pub(crate) fn first(&self) -> u64 {
        self.tip.seq + 1
    }

    /// Returns the end of the journal after this frame.
    fn end(&self) -> Tip {
        self.records.last().map_or(self.tip, |last| Tip { seq: last.seq, hash: last.hash })
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
    pub(crate) fn too_large(&self, sealing: Sealing<'_>) -> Option<&str> {
        // Encrypted, they are in base64.
        let bytes_max = if sealing.key.is_some() { MESSAGE_BYTES_MAX / 4 * 3 } else { MESSAGE_BYTES_MAX };
        (self.lines.len() > bytes_max).then_some(&self.lines)
    }

    /// Returns the message, signed. `blob` is the digest of the events if they are stored as a blob.
    pub(crate) fn message(
        &self,
        fleet: &str,
        run: &RunId,
        blob: Option<Digest>,
        sealing: Sealing<'_>,
        key: &SigningKey,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let mut header = Header {
            version: VERSION,
            fleet: fleet.to_owned(),
            run: run.clone(),
            first: self.first(),
            count: self.records.len() as u64,
            at: self.at.as_millisecond(),
            prev: shown(&self.tip.hash, sealing.key),
            hash: shown(&self.end().hash, sealing.key),
            nonce: self.nonce.clone(),
            key_id: sealing.key.map(RunKey::id),
            keys: if self.first() == 1 { sealing.keys.to_vec() } else { Vec::new() },
            events: blob.filter(|_| sealing.key.is_none()),
            signer: key.public(),
            signature: None,
        };
        header.signature = Some(PayloadType::FLEET_FRAME.sign(&header.signed()?, key));
        let mut message = serde_json::to_vec(&header)?;
        let text = match (sealing.key, blob) {
            (None, Some(_)) => return Ok(message),
            (None, None) => self.lines.clone(),
            (Some(key), Some(blob)) => key.encrypt_text(TextKind::Frame, format!("{BLOB}{blob}").as_bytes()),
            (Some(key), None) => key.encrypt_text(TextKind::Frame, format!("{EVENTS}{}", self.lines).as_bytes()),
        };
        message.push(b'\n');
        message.extend_from_slice(text.as_bytes());
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

/// Checks that a frame has the number after the end of the journal before it.
///
/// # Errors
/// It does not.
pub(crate) fn follows(header: &Header, tip: Tip) -> Result<(), PortError> {
    let next = tip.seq + 1;
    match header.first == next {
        true => Ok(()),
        false => Err(corrupt(next, format!("record {} is in its place", header.first))),
    }
}

/// Returns the events of a frame, decrypted. `lines` is what follows its header.
///
/// # Errors
/// They are not encrypted with the key.
pub(crate) fn events(header: &Header, lines: Option<&str>, key: Option<&RunKey>) -> Result<FrameEvents, PortError> {
    let Some(key) = key else {
        let lines = || FrameEvents::Lines(lines.unwrap_or_default().to_owned());
        return Ok(header.events.map_or_else(lines, FrameEvents::Blob));
    };
    let failed = |error: String| corrupt(header.first, error);
    let text =
        key.decrypt_text(TextKind::Frame, lines.unwrap_or_default()).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(text).map_err(|error| failed(error.to_string()))?;
    if let Some(lines) = text.strip_prefix(EVENTS) {
        return Ok(FrameEvents::Lines(lines.to_owned()));
    }
    let blob = text.strip_prefix(BLOB).and_then(|digest| digest.parse().ok());
    blob.map(FrameEvents::Blob).ok_or_else(|| failed("its encrypted text has another form".to_owned()))
}

/// Returns the records of a frame, each verified against its predecessor. `tip` is the end of the journal before it, and `key` the key
/// of the run if that is encrypted.
///
/// # Errors
/// The frame does not follow `tip`, or one of its hashes is wrong.
pub(crate) fn verify(header: &Header, lines: &str, tip: Tip, key: Option<&RunKey>) -> Result<Vec<Record>, PortError> {
    follows(header, tip)?;
    let next = tip.seq + 1;
    if header.prev != shown(&tip.hash, key) {
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
    if !header.ends_with(end, key) {
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

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    fn message(frame: &Frame) -> Vec<u8> {
        frame.message("F", &"run".into(), None, Sealing::default(), &key(1)).unwrap()
    }

    fn read(message: &[u8], tip: Tip) -> Result<Vec<Record>, PortError> {
        let (header, lines) = parse(message, tip.seq + 1)?;
        verify(&header, lines.unwrap(), tip, None)
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let first = frame(Tip::START, &["a", "b\n\"c\""]);
        let second = frame(first.end(), &["d"]);
        assert_eq!(read(&message(&first), Tip::START).unwrap(), first.records);
        assert_eq!(read(&message(&second), first.end()).unwrap(), second.records);
        assert_eq!((second.first(), second.records[0].seq), (3, 3));
    }

    #[test]
    fn a_frame_that_was_changed_or_moved_is_corrupt() {
        let (first, other) = (frame(Tip::START, &["a", "b"]), frame(Tip::START, &["c", "d"]));
        let text = String::from_utf8(message(&first)).unwrap();
        let third = message(&frame(first.end(), &["e"]));
        let cases = [
            (text.replace("\"a\"", "\"x\"").into_bytes(), Tip::START, "its hash is not that of its content"),
            (text.replace("\"count\":2", "\"count\":3").into_bytes(), Tip::START, "its hash is not"),
            (text.rsplit_once('\n').unwrap().0.as_bytes().to_vec(), Tip::START, "its hash is not"),
            (text.split_once('\n').unwrap().0.as_bytes().to_vec(), Tip::START, "its frame has no events"),
            (text.into_bytes(), first.end(), "record 1 is in its place"),
            (third.clone(), Tip::START, "record 3 is in its place"),
            (third, other.end(), "its previous hash is not the hash of the record before it"),
            (b"\xff".to_vec(), Tip::START, "invalid utf-8"),
            (b"{}".to_vec(), Tip::START, "missing field `version`"),
        ];
        for (message, tip, expected) in cases {
            let error = read(&message, tip).unwrap_err();
            assert!(matches!(error, PortError::Corrupt { .. }) && error.to_string().contains(expected), "{error}");
        }
    }

    /// Each part of a header is signed, also those that no hash covers.
    #[test]
    fn a_header_that_was_changed_has_no_valid_signature() {
        let text = String::from_utf8(message(&frame(Tip::START, &["a", "b"]))).unwrap();
        let check = |text: &str, run: &str| parse(text.as_bytes(), 1).unwrap().0.check_signature("F", &run.into());
        check(&text, "run").unwrap();
        let elsewhere = parse(text.as_bytes(), 1).unwrap().0.check_signature("G", &"run".into()).unwrap_err();
        assert_eq!(elsewhere.to_string(), "journal record 1 is corrupt: its frame is one of another fleet");
        let other = key(2);
        let signer = key(1).public().to_string();
        let signed_elsewhere =
            PayloadType::FLEET_RESULT.sign(&parse(text.as_bytes(), 1).unwrap().0.signed().unwrap(), &key(1));
        let signature = parse(text.as_bytes(), 1).unwrap().0.signature.unwrap();
        for (from, to) in [
            ("\"count\":2", "\"count\":3"),
            ("\"nonce\":\"nonce\"", "\"nonce\":\"other\""),
            ("\"at\":1764000000007", "\"at\":1764000000008"),
            (signer.as_str(), &other.public().to_string()),
            (signature.as_str(), &signed_elsewhere),
            (signature.as_str(), "?"),
        ] {
            let changed = text.replace(from, to);
            assert_ne!(changed, text);
            let error = check(&changed, "run").unwrap_err();
            assert!(error.to_string().contains("the signature of its frame is not that of ed25519:"), "{error}");
        }
        let error = check(&text, "other").unwrap_err().to_string();
        assert_eq!(error, "journal record 1 is corrupt: its frame is one of the run `run`");
        let unsigned = text.replace(&format!(",\"signature\":\"{signature}\""), "");
        let error = check(&unsigned, "run").unwrap_err().to_string();
        assert_eq!(error, "journal record 1 is corrupt: its frame is not signed");
    }

    #[test]
    fn a_frame_of_another_version_is_named() {
        let message = String::from_utf8(message(&frame(Tip::START, &["a"]))).unwrap();
        let error = read(message.replace("\"version\":1", "\"version\":2").as_bytes(), Tip::START).unwrap_err();
        assert!(matches!(error, PortError::Version { found: 2, expected: 1 }), "{error}");
    }
}
