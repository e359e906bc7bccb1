//! The one thread that writes.
//!
//! It takes what has queued up, commits it once and answers everybody. A batch whose expectations fail leaves no trace and does not disturb
//! its neighbours. Competing writers on one database starve each other for seconds; many senders to one writer do not.

mod store;

use super::rows::Tip;
use crate::blobs::Outbox;
use crate::event::{Event, Subject, canonical};
use crate::ports::{PortError, Stored};
use glovebox_sandbox::user_key::UserKey;
use jiff::Timestamp;
use rusqlite::Connection;
use std::sync::Arc;
use std::thread::JoinHandle;
use store::Store;
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
    /// Starts the thread at the journal's end, with the key that records are signed with and the blobs that appends take along.
    pub(super) fn start(
        connection: Connection,
        (tip, key): (Tip, Option<UserKey>),
        outbox: Arc<Outbox>,
    ) -> Result<Self, PortError> {
        let (requests, inbox) = mpsc::channel(WAITING_MAX);
        let store = Store::new(connection, (tip, key), outbox);
        let thread = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || serve(store, inbox))
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

    /// Ends the thread after what it was sent, and waits for it.
    pub(super) fn stop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(mut store: Store, mut inbox: mpsc::Receiver<Request>) {
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
        let answers = match store.commit(batches) {
            Ok(answers) => answers,
            Err(error) => senders.iter().map(|_| Err(error.again())).collect(),
        };
        for (sender, answer) in senders.into_iter().zip(answers) {
            let _ = sender.send(answer);
        }
    }
    store.close();
}
