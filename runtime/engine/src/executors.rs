//! Where the attempts of a run are made.
//!
//! The driver asks for a seat for each attempt that may start, and claims the attempt when a machine has taken the seat. A
//! machine that made an attempt may keep its seat for the next one. The claim of that attempt is then part of the append
//! with the result. An executor decides nothing about retries and routes, and appends nothing: it returns a result, and the
//! driver decides whether it counts.
//!
//! [`Here`] makes attempts in this process. Their futures are part of the driver's, and end with it. Attempts on other
//! machines can outlive the driver, and a driver that takes the run over adopts them.

use crate::assignment::{Assignment, AttemptResult};
use crate::follow::Fault;
use glovebox_journal::event::{MachineId, Moved, NodeId};
use glovebox_journal::ports::Delivery;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The machines that make attempts.
pub trait Executors {
    /// A place on a machine for one attempt.
    type Seat: Seat;

    /// True if attempts continue when their driver ends with an error, because another driver may adopt them. If false, the
    /// driver stops its attempts and waits for them.
    const OUTLIVE_DRIVER: bool;

    /// Waits for a machine that can make the attempt of a delivery. `place` is where the branch is, if another machine made its last
    /// attempt. The driver may drop the future, which takes the request back.
    fn seat(&self, delivery: &Delivery, place: Option<&Moved>) -> impl Future<Output = Result<Self::Seat, Fault>>;

    /// Waits for the result of an attempt that was claimed by an earlier driver. It returns at once if the result is already
    /// there. Requests to stop and messages in the assignment are those of the new driver. `None` if no machine has the
    /// attempt: it is then made again.
    fn adopt(&self, assignment: Assignment) -> impl Future<Output = Result<Option<MadeAttempt<Self::Seat>>, Fault>>;
}

/// A place on a machine for one attempt. If it is dropped, the machine is free for other attempts.
pub trait Seat: Sized {
    /// Returns the name of the machine for the record. `None` for this process, so that its records stay small.
    fn machine(&self) -> Option<&MachineId>;

    /// Returns the stages whose attempts the machine can make, as the plan names them. `None` for all stages of the run.
    fn stages(&self) -> Option<&Arc<BTreeSet<NodeId>>>;

    /// Makes an attempt that was claimed for this seat. `None` if the machine was lost: the attempt is then made again. If the
    /// driver drops the future, the attempt continues, unless it is made in this process.
    fn make(self, assignment: Assignment) -> impl Future<Output = Result<Option<MadeAttempt<Self>>, Fault>>;
}

/// The result of an attempt.
pub struct MadeAttempt<S> {
    /// The result.
    pub result: AttemptResult,
    /// The seat, if the machine keeps it for the next attempt.
    pub seat: Option<S>,
}

/// This process, which has a seat for every attempt at once.
pub struct Here<'e, E>(pub &'e E);

impl<E> Clone for Here<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Here<'_, E> {}

impl<E: AsyncFn(Assignment) -> Result<AttemptResult, Fault>> Executors for Here<'_, E> {
    type Seat = Self;

    const OUTLIVE_DRIVER: bool = false;

    async fn seat(&self, _delivery: &Delivery, _place: Option<&Moved>) -> Result<Self, Fault> {
        Ok(*self)
    }

    async fn adopt(&self, _assignment: Assignment) -> Result<Option<MadeAttempt<Self>>, Fault> {
        Ok(None)
    }
}

impl<E: AsyncFn(Assignment) -> Result<AttemptResult, Fault>> Seat for Here<'_, E> {
    fn machine(&self) -> Option<&MachineId> {
        None
    }

    fn stages(&self) -> Option<&Arc<BTreeSet<NodeId>>> {
        None
    }

    async fn make(self, assignment: Assignment) -> Result<Option<MadeAttempt<Self>>, Fault> {
        let result = (self.0)(assignment).await?;
        Ok(Some(MadeAttempt { result, seat: Some(self) }))
    }
}
