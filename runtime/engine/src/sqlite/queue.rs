//! Ready attempts out of the journal's own database.
//!
//! Leases live in memory: the process that drives a run is the only one that delivers, and when it dies its leases must die
//! with it. A row leaves the table with the commit of its attempt, in the same transaction.

use super::{SqliteLog, port_error};
use crate::event::Event;
use crate::ports::{ClaimQueue, Delivery, Next, PortError};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Deliveries that are out, and until when (milliseconds since the epoch).
#[derive(Default)]
pub(super) struct Leases(Mutex<HashMap<Delivery, i64>>);

impl Leases {
    fn lock(&self) -> MutexGuard<'_, HashMap<Delivery, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClaimQueue for SqliteLog {
    fn next(&self, now: Timestamp, lease_ms: u64) -> Result<Next, PortError> {
        let now = now.as_millisecond();
        let mut leases = self.leases.lock();
        let mut earliest = None;
        for (delivery, due_at) in waiting(self)? {
            let at = leases.get(&delivery).copied().unwrap_or(i64::MIN).max(due_at);
            if at <= now {
                leases.insert(delivery.clone(), now.saturating_add_unsigned(lease_ms));
                return Ok(Next::Due(delivery));
            }
            earliest = Some(earliest.map_or(at, |other: i64| other.min(at)));
        }
        Ok(earliest.and_then(|at| Timestamp::from_millisecond(at).ok()).map_or(Next::Empty, Next::At))
    }

    fn extend(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<bool, PortError> {
        let now = now.as_millisecond();
        match self.leases.lock().get_mut(delivery) {
            Some(until) if *until > now => {
                *until = now.saturating_add_unsigned(lease_ms);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn done(&self, delivery: &Delivery) -> Result<(), PortError> {
        self.leases.lock().remove(delivery);
        Ok(())
    }
}

fn waiting(log: &SqliteLog) -> Result<Vec<(Delivery, i64)>, PortError> {
    let reader = log.reader();
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
        waiting.push((Delivery { task: ready.task, ready_seq }, due_at));
    }
    Ok(waiting)
}
