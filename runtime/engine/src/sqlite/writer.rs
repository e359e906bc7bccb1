//! The one thread that writes.
//!
//! It takes what has queued up, stores every batch in a savepoint of its own, commits once and answers everybody. A batch
//! whose expectations fail leaves no trace and does not disturb its neighbours. Competing writers on one database starve each
//! other for seconds; many senders to one writer do not.

use super::port_error;
use super::rows::{self, Tip};
use super::signature;
use crate::event::{Digest, Event, Record, Subject, chain};
use crate::ports::PortError;
use glovebox_sandbox::user_key::UserKey;
use jiff::Timestamp;
use rusqlite::{Connection, Savepoint, TransactionBehavior};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot, watch};

/// Batches that wait at most; more senders than that wait for their turn.
const WAITING_MAX: usize = 256;
/// Batches in one commit at most.
const GROUP_MAX: usize = 64;

/// An event and its canonical text.
pub(super) struct Entry {
    pub(super) event: Event,
    pub(super) text: String,
}

/// Events that are stored together or not at all.
pub(super) struct Batch {
    pub(super) expect: Vec<(Subject, u64)>,
    pub(super) at: Timestamp,
    pub(super) entries: Vec<Entry>,
}

type Answer = Result<Vec<Record>, PortError>;

struct Request {
    batch: Batch,
    answer: oneshot::Sender<Answer>,
}

/// The sending side of the thread; dropping it ends the thread after what it was sent.
pub(super) struct Writer {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread at the journal's end, with the key that records are signed with. `told` hears the last sequence number
    /// after each commit.
    pub(super) fn start(
        connection: Connection,
        at: (Tip, Option<UserKey>),
        told: watch::Sender<u64>,
    ) -> Result<Self, PortError> {
        let (requests, inbox) = mpsc::channel(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || serve(connection, at, inbox, &told))
            .map_err(|error| PortError::Unavailable(error.to_string()))?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Hands a batch over and waits until it is durable or refused.
    pub(super) async fn append(&self, batch: Batch) -> Answer {
        let gone = || PortError::Unavailable("the journal's writer has stopped".into());
        let (answer, answered) = oneshot::channel();
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(Request { batch, answer }).await.map_err(|_| gone())?;
        // The writer died with the batch in hand: it may have been committed.
        answered.await.map_err(|_| PortError::Ambiguous("the last append".into()))?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(
    mut connection: Connection,
    (mut tip, key): (Tip, Option<UserKey>),
    mut inbox: mpsc::Receiver<Request>,
    told: &watch::Sender<u64>,
) {
    while let Some(first) = inbox.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP_MAX {
            match inbox.try_recv() {
                Ok(request) => group.push(request),
                Err(_) => break,
            }
        }
        let (batches, senders): (Vec<Batch>, Vec<_>) =
            group.into_iter().map(|request| (request.batch, request.answer)).unzip();
        let answers = match commit_group(&mut connection, &mut tip, key.as_ref(), batches) {
            Ok(answers) => answers,
            Err(error) => senders.iter().map(|_| Err(PortError::Ambiguous(error.to_string()))).collect(),
        };
        told.send_replace(tip.seq);
        for (sender, answer) in senders.into_iter().zip(answers) {
            let _ = sender.send(answer);
        }
    }
}

/// Stores a group in one durable transaction. An error means that it is unknown whether the commit happened.
fn commit_group(
    connection: &mut Connection,
    tip: &mut Tip,
    key: Option<&UserKey>,
    batches: Vec<Batch>,
) -> Result<Vec<Answer>, PortError> {
    // Read again rather than remembered: after a commit of unknown fate the memory may be wrong.
    *tip = rows::tip(connection)?;
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(port_error)?;
    let mut next = *tip;
    let mut answers = Vec::with_capacity(batches.len());
    for batch in batches {
        let mut savepoint = transaction.savepoint().map_err(port_error)?;
        savepoint.set_drop_behavior(rusqlite::DropBehavior::Rollback);
        match store(&savepoint, next, key, batch) {
            Ok((records, reached)) => {
                savepoint.commit().map_err(port_error)?;
                next = reached;
                answers.push(Ok(records));
            }
            Err(error) => answers.push(Err(error)),
        }
    }
    transaction.commit().map_err(port_error)?;
    *tip = next;
    Ok(answers)
}

fn store(
    savepoint: &Savepoint<'_>,
    mut tip: Tip,
    key: Option<&UserKey>,
    batch: Batch,
) -> Result<(Vec<Record>, Tip), PortError> {
    for (subject, expected) in batch.expect {
        let head = rows::head(savepoint, &subject)?;
        if head != expected {
            return Err(PortError::Conflict { subject, expected, head });
        }
    }
    let mut records = Vec::with_capacity(batch.entries.len());
    for Entry { event, text } in batch.entries {
        let record = insert(savepoint, &tip, batch.at, event, &text)?;
        if let Some(key) = key {
            signature::sign(savepoint, key, record.seq, &record.hash)?;
        }
        enqueue(savepoint, &record)?;
        tip = Tip { seq: record.seq, hash: record.hash };
        records.push(record);
    }
    Ok((records, tip))
}

fn insert(connection: &Connection, tip: &Tip, at: Timestamp, event: Event, text: &str) -> Result<Record, PortError> {
    let seq = tip.seq + 1;
    let hash: Digest = chain(&tip.hash, seq, at, text);
    let sql = "INSERT INTO record (seq, at, subject, prev, hash, event) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut statement = connection.prepare_cached(sql).map_err(port_error)?;
    let subject = event.subject().to_string();
    let row = (seq.cast_signed(), at.as_millisecond(), subject, tip.hash.as_bytes(), hash.as_bytes(), text);
    statement.execute(row).map_err(port_error)?;
    Ok(Record { seq, at, prev: tip.hash, hash, event })
}

/// Append is enqueue: the queue is what the journal says is ready and not yet finished.
fn enqueue(connection: &Connection, record: &Record) -> Result<(), PortError> {
    match &record.event {
        Event::StageReady(ready) => {
            let due_at = ready.due_at.unwrap_or(record.at).as_millisecond();
            let sql = "INSERT OR REPLACE INTO queue (task, ready_seq, due_at) VALUES (?1, ?2, ?3)";
            let mut statement = connection.prepare_cached(sql).map_err(port_error)?;
            statement.execute((ready.task.to_string(), record.seq.cast_signed(), due_at)).map_err(port_error)?;
        }
        Event::StageFinished(finished) => {
            let mut statement = connection.prepare_cached("DELETE FROM queue WHERE task = ?1").map_err(port_error)?;
            statement.execute([finished.attempt.task.to_string()]).map_err(port_error)?;
        }
        Event::RunFinished(_) => {
            connection.execute("DELETE FROM queue", []).map_err(port_error)?;
        }
        _ => {}
    }
    Ok(())
}
