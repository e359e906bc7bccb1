//! Ready attempts out of the journal's own database.
//!
//! Leases live in memory: the process that drives a run is the only one that delivers, and when it dies its leases must die
//! with it. A row leaves the table with the commit of its attempt, in the same transaction. No hash covers the table, so it is compared with
//! the records whenever a process takes a run over, and they count.

use super::{SqliteLog, port_error};
use crate::event::{Event, Record, RunId};
use crate::lease::LeaseTable;
use crate::ports::{ClaimQueue, Delivery, Next, PortError};
use jiff::Timestamp;
use rusqlite::{Connection, Params};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The leases of this process.
#[derive(Default)]
pub(super) struct Leases(Mutex<LeaseTable>);

impl Leases {
    fn lock(&self) -> MutexGuard<'_, LeaseTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an event changes in the queue: append is enqueue.
pub(super) enum QueueChange {
    Nothing,
    Ready { task: String, due_at: Option<i64> },
    Done { task: String },
    Clear,
}

impl QueueChange {
    /// What follows for the queue from an event.
    pub(super) fn of(event: &Event) -> Self {
        match event {
            Event::StageReady(ready) => {
                Self::Ready { task: ready.task.to_string(), due_at: ready.due_at.map(Timestamp::as_millisecond) }
            }
            Event::StageFinished(finished) => Self::Done { task: finished.attempt.task.to_string() },
            Event::RunFinished(_) => Self::Clear,
            // It begins again at a node: what was ready, or under way in a process that was killed, is not made.
            Event::RunResumed(resumed) if resumed.from.is_some() => Self::Clear,
            _ => Self::Nothing,
        }
    }

    /// Makes the change in the table, for a record with this number and time.
    pub(super) fn store(&self, connection: &Connection, seq: u64, at: Timestamp) -> Result<(), PortError> {
        match self {
            Self::Ready { task, due_at } => insert(connection, (task, (seq, due_at.unwrap_or(at.as_millisecond())))),
            Self::Done { task } => execute(connection, ("DELETE FROM queue WHERE task = ?1", [task])),
            Self::Clear => execute(connection, ("DELETE FROM queue", [])),
            Self::Nothing => Ok(()),
        }
    }
}

/// What records say is ready and not finished: sequence number and due moment of each task.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Queue(BTreeMap<String, (u64, i64)>);

impl Queue {
    /// Takes in a record, in the order of the journal.
    pub(crate) fn apply(&mut self, record: &Record) {
        match QueueChange::of(&record.event) {
            QueueChange::Ready { task, due_at } => {
                self.0.insert(task, (record.seq, due_at.unwrap_or(record.at.as_millisecond())));
            }
            QueueChange::Done { task } => drop(self.0.remove(&task)),
            QueueChange::Clear => self.0.clear(),
            QueueChange::Nothing => {}
        }
    }

    /// Makes the table anew where it does not say the same as the records: a journal that was cut has rows of records that are gone, and
    /// lacks those of attempts whose end is gone.
    pub(super) fn restore(&self, connection: &mut Connection) -> Result<(), PortError> {
        if *self == Self::stored(connection)? {
            return Ok(());
        }
        tracing::warn!("the queue was not what the journal's records say; it was made anew");
        let transaction = connection.transaction().map_err(port_error)?;
        execute(&transaction, ("DELETE FROM queue", []))?;
        self.0.iter().try_for_each(|(task, place)| insert(&transaction, (task, *place)))?;
        transaction.commit().map_err(port_error)
    }

    fn stored(connection: &Connection) -> Result<Self, PortError> {
        let mut statement = connection.prepare("SELECT task, ready_seq, due_at FROM queue").map_err(port_error)?;
        let rows = statement.query_map([], |row| {
            let place = (row.get::<_, i64>(1)?.cast_unsigned(), row.get(2)?);
            Ok((row.get(0)?, place))
        });
        rows.and_then(Iterator::collect).map(Self).map_err(port_error)
    }
}

fn insert(connection: &Connection, (task, (seq, due_at)): (&String, (u64, i64))) -> Result<(), PortError> {
    let sql = "INSERT OR REPLACE INTO queue (task, ready_seq, due_at) VALUES (?1, ?2, ?3)";
    execute(connection, (sql, (task, seq.cast_signed(), due_at)))
}

fn execute(connection: &Connection, (sql, values): (&'static str, impl Params)) -> Result<(), PortError> {
    let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
    done.map(drop).map_err(port_error)
}

impl ClaimQueue for SqliteLog {
    async fn next(&self, run: &RunId, now: Timestamp, lease_ms: u64) -> Result<Next, PortError> {
        self.require(run)?;
        Ok(self.leases.lock().next(waiting(self)?, now, lease_ms))
    }

    async fn extend(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<bool, PortError> {
        Ok(self.leases.lock().extend(delivery, now, lease_ms))
    }

    async fn hold(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<(), PortError> {
        self.leases.lock().hold(delivery, now, lease_ms);
        Ok(())
    }

    async fn done(&self, delivery: &Delivery) -> Result<(), PortError> {
        self.leases.lock().end(delivery);
        Ok(())
    }
}

fn waiting(log: &SqliteLog) -> Result<Vec<(Delivery, i64)>, PortError> {
    log.reading(|reader| read_waiting(reader, &log.run))
}

fn read_waiting(reader: &Connection, run: &RunId) -> Result<Vec<(Delivery, i64)>, PortError> {
    let sql = "SELECT event, ready_seq, due_at FROM queue JOIN record ON seq = ready_seq ORDER BY due_at, ready_seq";
    let mut statement = reader.prepare_cached(sql).map_err(port_error)?;
    let rows = statement
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.cast_unsigned(), row.get(2)?)));
    let mut waiting = Vec::new();
    for row in rows.map_err(port_error)? {
        let (event, ready_seq, due_at) = row.map_err(port_error)?;
        let Ok(Event::StageReady(ready)) = serde_json::from_str(&event) else {
            let found = "it is no `stage.ready`, but the queue says so".to_owned();
            return Err(PortError::Corrupt { what: format!("journal record {ready_seq}"), found });
        };
        waiting.push((Delivery { run: run.clone(), task: ready.task, ready_seq }, due_at));
    }
    Ok(waiting)
}
