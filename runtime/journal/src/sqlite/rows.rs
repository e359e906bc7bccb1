//! Records as database rows: reading and verifying them.
//!
//! The hash covers the stored text of the event, not a new serialization by a later version of the program, so an old
//! journal always verifies. A gap or a changed byte is [`PortError::Corrupt`] with the sequence number.

use super::port_error;
use crate::event::{Digest, Event, EventText, Record, StreamKey, chain};
use crate::ports::PortError;
use glovebox_record::Tokens;
use glovebox_record::spend::{Money, SpendTotals};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row};

/// The end of a journal, or of a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tip {
    /// The last sequence number; 0 if there is no record.
    pub(crate) seq: u64,
    /// The last hash; all zeros if there is no record.
    pub(crate) hash: Digest,
}

impl Tip {
    /// The tip of a journal without records.
    pub const START: Tip = Tip { seq: 0, hash: Digest::ZERO };
}

/// A stored row.
struct Stored {
    seq: u64,
    at: Timestamp,
    stream: String,
    prev: Digest,
    hash: Digest,
    event: String,
}

const COLUMNS: &str = "SELECT seq, at, stream, prev, hash, event FROM record";

/// Verifies the chain from the first record to the last.
pub(super) fn verify(connection: &Connection) -> Result<Tip, PortError> {
    walk(connection, Tip::START, usize::MAX, |_| Ok(()))
}

/// Returns the end of a journal whose records up to `known` were verified. Later records are not verified. If the last
/// verified record has changed, the journal is corrupt.
pub(super) fn tip_after(connection: &Connection, known: &Tip) -> Result<Tip, PortError> {
    if before(connection, known.seq + 1)? != *known {
        return Err(changed(known.seq));
    }
    tip(connection)
}

/// Reads records and verifies each one against its predecessor.
pub(super) fn read(connection: &Connection, from: u64, records_max: usize) -> Result<Vec<Record>, PortError> {
    page(connection, &mut before(connection, from.max(1))?, records_max)
}

/// Reads records after `tip`, verifies each one against its predecessor, and advances `tip` to the last of them.
pub(super) fn page(connection: &Connection, tip: &mut Tip, records_max: usize) -> Result<Vec<Record>, PortError> {
    let mut records = Vec::new();
    *tip = walk(connection, *tip, records_max, |stored| {
        records.push(parse(stored)?);
        Ok(())
    })?;
    Ok(records)
}

/// Verifies every record after `after` against its predecessor. Returns the start and the resumes of the run among
/// them, and the tip.
pub(super) fn terms(connection: &Connection, after: Tip) -> Result<(Vec<Record>, Tip), PortError> {
    let mut records = Vec::new();
    let tip = walk(connection, after, usize::MAX, |stored| {
        // The search uses only text that the hash covers. The hash does not cover the stream column.
        if stored.seq == 1 || stored.event.contains(RESUMED) {
            let record = parse(stored)?;
            let is_of_terms = record.seq == 1 || record.event.run_resumed().is_some();
            records.extend(is_of_terms.then_some(record));
        }
        Ok(())
    })?;
    Ok((records, tip))
}

/// A text that every `run.resumed` contains.
const RESUMED: &str = "\"run.resumed\"";

/// Passes the records after the tip to `take`, each verified against its predecessor. Returns the new tip.
fn walk(
    connection: &Connection,
    mut tip: Tip,
    records_max: usize,
    mut take: impl FnMut(Stored) -> Result<(), PortError>,
) -> Result<Tip, PortError> {
    let sql = format!("{COLUMNS} WHERE seq > ?1 ORDER BY seq LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql).map_err(port_error)?;
    let limit = i64::try_from(records_max).unwrap_or(i64::MAX);
    let mut rows = statement.query((tip.seq.cast_signed(), limit)).map_err(port_error)?;
    while let Some(row) = rows.next().map_err(port_error)? {
        let stored = decode(row, tip.seq + 1)?;
        check(&stored, &tip)?;
        tip = Tip { seq: stored.seq, hash: stored.hash };
        take(stored)?;
    }
    Ok(tip)
}

/// Reads the first and the last record without verifying them. If the journal has only one record, it is returned once.
pub(super) fn ends(connection: &Connection) -> Result<Vec<Record>, PortError> {
    let sql =
        format!("{COLUMNS} WHERE seq IN ((SELECT min(seq) FROM record), (SELECT max(seq) FROM record)) ORDER BY seq");
    let mut statement = connection.prepare(&sql).map_err(port_error)?;
    let mut rows = statement.query([]).map_err(port_error)?;
    let mut records = Vec::with_capacity(2);
    while let Some(row) = rows.next().map_err(port_error)? {
        records.push(parse(decode(row, 1)?)?);
    }
    Ok(records)
}

/// Returns the spend of all attempts without reading any other record.
pub(super) fn spent(connection: &Connection) -> Result<SpendTotals, PortError> {
    // Most attempts ask no model. Their records are not parsed.
    let field = |path: &str| format!("json_extract(event, '$.{path}')");
    let fields = ["tokens.input", "tokens.output", "cost", "is_estimated"].map(field).join(", ");
    let sql = format!(
        "SELECT {fields} FROM record WHERE stream GLOB 'task.*' AND instr(event, '\"tokens\":') > 0 AND {} = 'stage.finished'",
        field("kind")
    );
    let mut statement = connection.prepare(&sql).map_err(port_error)?;
    let mut rows = statement.query([]).map_err(port_error)?;
    let mut spent = SpendTotals::default();
    while let Some(row) = rows.next().map_err(port_error)? {
        // A forged record may contain a value of any type.
        let number = |at| row.get::<_, Option<i64>>(at).ok().flatten().unwrap_or_default().max(0).cast_unsigned();
        let tokens = Tokens { input: number(0), output: number(1) };
        spent.add(SpendTotals { tokens, cost: Money(number(2)), is_estimated: number(3) != 0 });
    }
    Ok(spent)
}

/// Returns the sequence number of a stream's last record; 0 if it has none.
pub(super) fn head(connection: &Connection, stream: &StreamKey) -> Result<u64, PortError> {
    // The head of a stream is read only for the first append of a process. Its last record is then close to the end of
    // the journal, so the search starts there.
    let sql = "SELECT seq FROM record WHERE stream = ?1 ORDER BY seq DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql).map_err(port_error)?;
    let head: Option<i64> =
        statement.query_row([stream.to_string()], |row| row.get(0)).optional().map_err(port_error)?;
    Ok(head.unwrap_or(0).cast_unsigned())
}

/// Returns the stream and the last sequence number of each branch, by one scan of the journal.
pub(super) fn branch_heads(connection: &Connection) -> Result<Vec<(String, u64)>, PortError> {
    // The prefix is the one that `StreamKey` writes for a branch.
    let sql = "SELECT stream, max(seq) FROM record WHERE stream >= 'branch.' AND stream < 'branch/' GROUP BY stream";
    let mut statement = connection.prepare(sql).map_err(port_error)?;
    let heads = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())));
    heads.and_then(Iterator::collect).map_err(port_error)
}

/// Returns the end of the journal without verifying it.
pub(super) fn tip(connection: &Connection) -> Result<Tip, PortError> {
    let seq: i64 =
        connection.query_row("SELECT coalesce(max(seq), 0) FROM record", [], |row| row.get(0)).map_err(port_error)?;
    before(connection, seq.cast_unsigned() + 1)
}

/// Returns the tip that the record with sequence number `seq` must link to.
pub(super) fn before(connection: &Connection, seq: u64) -> Result<Tip, PortError> {
    let last = seq - 1;
    let sql = "SELECT hash FROM record WHERE seq = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(port_error)?;
    let hash: Option<Vec<u8>> =
        statement.query_row([last.cast_signed()], |row| row.get(0)).optional().map_err(port_error)?;
    match hash {
        Some(bytes) => Ok(Tip { seq: last, hash: digest(&bytes, last)? }),
        // There is no record to link to before the first one and after the last one.
        None => Ok(Tip { seq: last, hash: Digest::ZERO }),
    }
}

fn check(stored: &Stored, tip: &Tip) -> Result<(), PortError> {
    if stored.seq != tip.seq + 1 {
        return Err(corrupt(tip.seq + 1, format!("it is missing, record {} follows", stored.seq)));
    }
    if stored.prev != tip.hash {
        return Err(corrupt(stored.seq, "its previous hash is not the hash of the record before it"));
    }
    if chain(&stored.prev, stored.seq, stored.at, &stored.event) != stored.hash {
        return Err(corrupt(stored.seq, "its hash is not that of its content"));
    }
    Ok(())
}

fn decode(row: &Row<'_>, expected_seq: u64) -> Result<Stored, PortError> {
    let broken = |error: rusqlite::Error| match port_error(error) {
        PortError::Unavailable(found) => corrupt(expected_seq, found),
        corrupt => corrupt,
    };
    let seq = row.get::<_, i64>(0).map_err(broken)?.cast_unsigned();
    let at = Timestamp::from_millisecond(row.get(1).map_err(broken)?)
        .map_err(|error| corrupt(expected_seq, error.to_string()))?;
    let prev: Vec<u8> = row.get(3).map_err(broken)?;
    let hash: Vec<u8> = row.get(4).map_err(broken)?;
    Ok(Stored {
        seq,
        at,
        stream: row.get(2).map_err(broken)?,
        prev: digest(&prev, seq)?,
        hash: digest(&hash, seq)?,
        event: row.get(5).map_err(broken)?,
    })
}

fn parse(stored: Stored) -> Result<Record, PortError> {
    let event: Event = serde_json::from_str(&stored.event).map_err(|error| corrupt(stored.seq, error.to_string()))?;
    // The hash does not cover the stream column, which is only an index. It must agree with the event.
    if event.stream().to_string() != stored.stream {
        return Err(corrupt(
            stored.seq,
            format!("its column `stream` has `{}`, which does not match its event", stored.stream),
        ));
    }
    let Stored { seq, at, prev, hash, event: text, .. } = stored;
    // The events of a forged journal may contain line breaks between tokens, which must not reach `progress.ndjson`.
    let text = if text.bytes().any(|byte| byte < b' ') { EventText::default() } else { text.into() };
    Ok(Record { seq, at, prev, hash, event, text })
}

pub(super) fn digest(bytes: &[u8], seq: u64) -> Result<Digest, PortError> {
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| corrupt(seq, "one of its hashes is not 32 bytes long"))?;
    Ok(Digest::from_bytes(bytes))
}

/// Returns the error for a record that changed after it was verified.
pub(super) fn changed(seq: u64) -> PortError {
    corrupt(seq, "it has changed since the journal was verified")
}

fn corrupt(seq: u64, found: impl Into<String>) -> PortError {
    PortError::Corrupt { what: format!("journal record {seq}"), found: found.into() }
}
