//! The operations of the writer on the database.
//!
//! A group of batches and the waiting blobs are stored in one transaction. The tip of the journal and the last record
//! of each active stream are cached. After any error the cache is cleared, because it may be wrong, and the values are
//! read again.

use super::super::log_file::LogFile;
use super::super::queue::SharedQueue;
use super::super::rows::{self, Tip};
use super::super::{port_error, signature};
use super::{Answer, Batch, Entry};
use crate::blobs::rows::StoredBlobs;
use crate::blobs::{Outbox, PendingBlobs};
use crate::event::{Digest, StreamKey, chain};
use crate::ports::{PortError, Stored};
use crate::queue_change::QueueChange;
use cap_std::fs::Dir;
use glovebox_workspace::user_key::UserKey;
use jiff::Timestamp;
use rusqlite::{Connection, Params};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time that the last checkpoint waits for readers. The content of the database is the same without the checkpoint.
const CLOSE_WAIT: Duration = Duration::from_millis(200);

/// The error of a whole group: nothing was stored, or it is unknown whether anything was.
#[derive(Debug)]
pub(super) enum GroupError {
    Refused(PortError),
    Unknown(PortError),
}

impl GroupError {
    /// Returns the error for one sender. Each sender gets a copy.
    pub(super) fn again(&self) -> PortError {
        match self {
            Self::Refused(PortError::Unavailable(why)) => PortError::Unavailable(why.clone()),
            Self::Refused(error) => PortError::Unavailable(error.to_string()),
            Self::Unknown(error) => PortError::Ambiguous(error.to_string()),
        }
    }
}

/// The database, owned by the writer.
pub(in crate::sqlite) struct Store {
    connection: Connection,
    key: Option<UserKey>,
    outbox: Arc<Outbox>,
    queue: SharedQueue,
    blobs: StoredBlobs,
    /// The end of the journal; `None` after an error.
    tip: Option<Tip>,
    heads: Heads,
    /// `None` if SQLite lengthens the log itself.
    log: Option<LogFile>,
}

/// A cache of the last record of streams. A missing stream is read from the database. Once all branches are known, a
/// missing branch has no record.
#[derive(Default)]
struct Heads {
    of: HashMap<String, u64>,
    has_all_branches: bool,
}

/// The changes of a transaction to the cached values, applied after the commit.
struct Draft {
    tip: Tip,
    /// Streams with their new heads; `None` for a task that has ended.
    heads: Vec<(String, Option<u64>)>,
    /// The changes that the records make to the queue.
    queue: Vec<(QueueChange, u64, Timestamp)>,
}

impl Store {
    /// Creates the store of a journal that ends at `tip`. `key` signs records, `outbox` has the blobs that appends
    /// store, and appends update `queue`.
    pub(in crate::sqlite) fn new(
        connection: Connection,
        tip: Tip,
        key: Option<UserKey>,
        outbox: Arc<Outbox>,
        queue: SharedQueue,
    ) -> Self {
        Self {
            blobs: StoredBlobs::default(),
            connection,
            key,
            outbox,
            queue,
            tip: Some(tip),
            heads: Heads { has_all_branches: tip.seq == 0, ..Heads::default() },
            log: None,
        }
    }

    /// Lengthens the write-ahead log for the first appends. Later appends lengthen it further.
    pub(super) fn lengthen(&mut self, run: &Dir) -> Result<(), PortError> {
        let begun = LogFile::begin(run);
        self.log = Some(begun.map_err(|error| {
            PortError::Unavailable(format!("could not extend the journal's write-ahead log: {error}"))
        })?);
        Ok(())
    }

    /// Lengthens the log before an append that needs it. An error is ignored: if there is no space for more zeros,
    /// there may still be space for the records.
    fn keep_log_long(&mut self) {
        if let Some(Err(error)) = self.log.as_mut().map(LogFile::before_append) {
            tracing::debug!(%error, "could not extend the journal's write-ahead log in advance");
            self.log = None;
        }
    }

    /// Stores a group and the blobs that wait in one durable transaction.
    pub(super) fn commit(&mut self, batches: Vec<Batch>) -> Result<Vec<Answer>, GroupError> {
        self.keep_log_long();
        let parcel = self.outbox.parcel().map_err(GroupError::Refused)?;
        let committed = self.know_branches(&batches).and_then(|()| self.transact(batches, &parcel));
        match committed {
            Ok((answers, draft)) => {
                self.tip = Some(draft.tip);
                self.heads.take(draft.heads);
                self.queue.follow(draft.queue);
                self.outbox.stored(parcel);
                Ok(answers)
            }
            Err(error) => {
                (self.tip, self.heads) = (None, Heads::default());
                self.queue.forget();
                self.blobs.forget();
                if !self.connection.is_autocommit() {
                    let _ = self.execute("ROLLBACK", []);
                }
                Err(GroupError::Unknown(error))
            }
        }
    }

    /// Checkpoints and truncates the write-ahead log, so that the database file can be copied.
    pub(super) fn close(self) {
        let emptied = self.connection.busy_timeout(CLOSE_WAIT).and_then(|()| {
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
        });
        match emptied {
            Ok(0) => {}
            Ok(_) => tracing::debug!("another process reads the journal, so its write-ahead log was not emptied"),
            Err(error) => tracing::debug!(%error, "the journal's write-ahead log was not emptied"),
        }
    }

    /// Reads the heads of all branches once, as soon as a batch expects the head of an unknown branch. A parallel node
    /// starts many branches that have no record yet.
    fn know_branches(&mut self, batches: &[Batch]) -> Result<(), PortError> {
        let is_unknown = |(stream, _): &(StreamKey, u64)| {
            matches!(stream, StreamKey::Branch(_)) && !self.heads.of.contains_key(&stream.to_string())
        };
        if !self.heads.has_all_branches && batches.iter().flat_map(|batch| &batch.expect).any(is_unknown) {
            for (stream, head) in rows::branch_heads(&self.connection)? {
                self.heads.of.entry(stream).or_insert(head);
            }
            self.heads.has_all_branches = true;
        }
        Ok(())
    }

    fn transact(&mut self, batches: Vec<Batch>, parcel: &PendingBlobs) -> Result<(Vec<Answer>, Draft), PortError> {
        let tip = self.tip.map_or_else(|| rows::tip(&self.connection), Ok)?;
        self.execute("BEGIN IMMEDIATE", [])?;
        let mut draft = Draft { tip, heads: Vec::new(), queue: Vec::new() };
        let is_alone = batches.len() == 1;
        let mut answers = Vec::with_capacity(batches.len());
        for batch in batches {
            let (tip, known, changes) = (draft.tip, draft.heads.len(), draft.queue.len());
            // A batch that is alone needs no savepoint: a conflict is detected before anything is written.
            if !is_alone {
                self.execute("SAVEPOINT batch", [])?;
            }
            let stored = self.store(&mut draft, batch);
            if stored.is_err() {
                draft.tip = tip;
                draft.heads.truncate(known);
                draft.queue.truncate(changes);
            }
            match (is_alone, stored.is_ok()) {
                (true, _) => {}
                (false, true) => self.execute("RELEASE batch", [])?,
                (false, false) => {
                    self.execute("ROLLBACK TO batch", []).and_then(|()| self.execute("RELEASE batch", []))?
                }
            }
            match stored {
                Err(error) if !matches!(error, PortError::Conflict { .. }) => return Err(error),
                stored => answers.push(stored),
            }
        }
        self.blobs.store(&self.connection, parcel).map_err(port_error)?;
        self.execute("COMMIT", [])?;
        Ok((answers, draft))
    }

    fn store(&self, draft: &mut Draft, batch: Batch) -> Answer {
        for (stream, expected) in batch.expect {
            let head = self.head(draft, &stream)?;
            if head != expected {
                return Err(PortError::Conflict { stream, expected, head });
            }
        }
        let mut stored = Vec::with_capacity(batch.entries.len());
        for entry in batch.entries {
            let prev = draft.tip.hash;
            let (seq, hash) = self.insert(&draft.tip, batch.at, &entry)?;
            draft.tip = Tip { seq, hash };
            let has_ended = matches!(entry.queue, QueueChange::Done { .. });
            draft.heads.push((entry.stream, Some(seq).filter(|_| !has_ended)));
            draft.queue.push((entry.queue, seq, batch.at));
            stored.push(Stored { seq, prev, hash, text: entry.text.into() });
        }
        Ok(stored)
    }

    fn head(&self, draft: &Draft, stream: &StreamKey) -> Result<u64, PortError> {
        let name = stream.to_string();
        let drafted = draft.heads.iter().rev().find(|(known, _)| *known == name);
        let known = match drafted {
            Some((_, head)) => *head,
            None => self.heads.of.get(&name).copied(),
        };
        if known.is_none() && self.heads.has_all_branches && matches!(stream, StreamKey::Branch(_)) {
            return Ok(0);
        }
        known.map_or_else(|| rows::head(&self.connection, stream), Ok)
    }

    fn insert(&self, tip: &Tip, at: Timestamp, entry: &Entry) -> Result<(u64, Digest), PortError> {
        let seq = tip.seq + 1;
        let hash: Digest = chain(&tip.hash, seq, at, &entry.text);
        let (number, at, stream, event) = (seq.cast_signed(), at.as_millisecond(), &entry.stream, &entry.text);
        let (prev, own) = (tip.hash.as_bytes(), hash.as_bytes());
        let sql = "INSERT INTO record (seq, at, stream, prev, hash, event, mac) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let mac = self.key.as_ref().map(|key| signature::sign(key, &hash));
        self.execute(sql, (number, at, stream, prev, own, event, mac.as_ref().map(blake3::Hash::as_bytes)))?;
        Ok((seq, hash))
    }

    fn execute(&self, sql: &str, values: impl Params) -> Result<(), PortError> {
        let done = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
        done.map(drop).map_err(port_error)
    }
}

impl Heads {
    fn take(&mut self, changes: Vec<(String, Option<u64>)>) {
        for (stream, head) in changes {
            match head {
                Some(head) => drop(self.of.insert(stream, head)),
                None => drop(self.of.remove(&stream)),
            }
        }
    }
}
