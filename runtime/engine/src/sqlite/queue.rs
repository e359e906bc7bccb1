//! Ready attempts out of the journal's own database.
//!
//! Leases live in memory: the process that drives a run is the only one that delivers, and when it dies its leases must die
//! with it. A row leaves the table with the commit of its attempt, in the same transaction.

use super::{SqliteLog, port_error};
use crate::event::{Event, RunId};
use crate::lease::LeaseTable;
use crate::ports::{ClaimQueue, Delivery, Next, PortError};
use jiff::Timestamp;
use rusqlite::Connection;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The leases of this process.
#[derive(Default)]
pub(super) struct Leases(Mutex<LeaseTable>);

impl Leases {
    fn lock(&self) -> MutexGuard<'_, LeaseTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
