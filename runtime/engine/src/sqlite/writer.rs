//! The one thread that writes.
//!
//! It takes what has queued up, stores every batch in a savepoint of its own, commits once and answers everybody. A batch
//! whose expectations fail leaves no trace and does not disturb its neighbours. Competing writers on one database starve each
//! other for seconds; many senders to one writer do not.

use super::port_error;
use super::rows::{self, Tip};
use super::signature;
use crate::event::{Digest, Event, Subject, canonical, chain};
use crate::ports::{PortError, Stored};
use glovebox_sandbox::user_key::UserKey;
use jiff::Timestamp;
use rusqlite::{Connection, Savepoint, TransactionBehavior};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Batches that wait at most; more senders than that wait for their turn.
const WAITING_MAX: usize = 256;
/// Batches in one commit at most.
const GROUP_MAX: usize = 64;

/// An event as it is stored.
pub(super) struct Entry {
    subject: String,
    text: String,
    queue: QueueChange,
}

/// What an event changes in the queue: append is enqueue.
enum QueueChange {
    Nothing,
    Ready { task: String, due_at: Option<i64> },
    Done { task: String },
    Clear,
}

impl Entry {
    /// Writes an event as text.
    pub(super) fn of(event: &Event) -> Result<Self, serde_json::Error> {
        let queue = match event {
            Event::StageReady(ready) => {
                let due_at = ready.due_at.map(Timestamp::as_millisecond);
                QueueChange::Ready { task: ready.task.to_string(), due_at }
            }
            Event::StageFinished(finished) => QueueChange::Done { task: finished.attempt.task.to_string() },
            Event::RunFinished(_) => QueueChange::Clear,
            _ => QueueChange::Nothing,
        };
        Ok(Self { subject: event.subject().to_string(), text: canonical(event)?, queue })
    }
}

/// Events that are stored together or not at all.
pub(super) struct Batch {
    pub(super) expect: Vec<(Subject, u64)>,
    pub(super) at: Timestamp,
    pub(super) entries: Vec<Entry>,
}

type Answer = Result<Vec<Stored>, PortError>;

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
    /// Starts the thread at the journal's end, with the key that records are signed with.
    pub(super) fn start(connection: Connection, at: (Tip, Option<UserKey>)) -> Result<Self, PortError> {
        let (requests, inbox) = mpsc::channel(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || serve(connection, at, inbox))
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

fn serve(mut connection: Connection, (mut tip, key): (Tip, Option<UserKey>), mut inbox: mpsc::Receiver<Request>) {
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
            Ok((stored, reached)) => {
                savepoint.commit().map_err(port_error)?;
                next = reached;
                answers.push(Ok(stored));
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
) -> Result<(Vec<Stored>, Tip), PortError> {
    for (subject, expected) in batch.expect {
        let head = rows::head(savepoint, &subject)?;
        if head != expected {
            return Err(PortError::Conflict { subject, expected, head });
        }
    }
    let mut stored = Vec::with_capacity(batch.entries.len());
    for entry in &batch.entries {
        let one = insert(savepoint, &tip, batch.at, entry)?;
        if let Some(key) = key {
            signature::sign(savepoint, key, one.seq, &one.hash)?;
        }
        enqueue(savepoint, one.seq, batch.at, &entry.queue)?;
        tip = Tip { seq: one.seq, hash: one.hash };
        stored.push(one);
    }
    Ok((stored, tip))
}

fn insert(connection: &Connection, tip: &Tip, at: Timestamp, entry: &Entry) -> Result<Stored, PortError> {
    let seq = tip.seq + 1;
    let hash: Digest = chain(&tip.hash, seq, at, &entry.text);
    let sql = "INSERT INTO record (seq, at, subject, prev, hash, event) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut statement = connection.prepare_cached(sql).map_err(port_error)?;
    let (prev, own) = (tip.hash.as_bytes(), hash.as_bytes());
    let row = (seq.cast_signed(), at.as_millisecond(), &entry.subject, prev, own, &entry.text);
    statement.execute(row).map_err(port_error)?;
    Ok(Stored { seq, prev: tip.hash, hash })
}

/// The queue is what the journal says is ready and not yet finished.
fn enqueue(connection: &Connection, seq: u64, at: Timestamp, change: &QueueChange) -> Result<(), PortError> {
    match change {
        QueueChange::Ready { task, due_at } => {
            let due_at = due_at.unwrap_or(at.as_millisecond());
            let sql = "INSERT OR REPLACE INTO queue (task, ready_seq, due_at) VALUES (?1, ?2, ?3)";
            let mut statement = connection.prepare_cached(sql).map_err(port_error)?;
            statement.execute((task, seq.cast_signed(), due_at)).map_err(port_error)?;
        }
        QueueChange::Done { task } => {
            let mut statement = connection.prepare_cached("DELETE FROM queue WHERE task = ?1").map_err(port_error)?;
            statement.execute([task]).map_err(port_error)?;
        }
        QueueChange::Clear => {
            connection.execute("DELETE FROM queue", []).map_err(port_error)?;
        }
        QueueChange::Nothing => {}
    }
    Ok(())
}
