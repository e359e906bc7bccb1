//! The seats that the driver asked for, one for each attempt that may start and has no machine yet.

use super::{Arrival, RunError};
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use glovebox_journal::event::Task;
use glovebox_journal::ports::Delivery;

/// An attempt and its seat.
pub(super) type SeatedAttempt<S> = (Delivery, S);

/// The seats that were asked for. If it is dropped, the requests are taken back.
pub(super) struct Seats<R> {
    requests: FuturesUnordered<R>,
    tasks: Vec<Task>,
}

impl<S, R: Future<Output = Result<SeatedAttempt<S>, RunError>>> Seats<R> {
    pub(super) fn new() -> Self {
        Self { requests: FuturesUnordered::new(), tasks: Vec::new() }
    }

    /// Returns the number of seats that were asked for and are not there yet.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Asks for a seat, unless one was asked for already: a queue may deliver twice.
    pub(super) fn ask(&mut self, delivery: Delivery, request: impl FnOnce(Delivery) -> R) {
        if !self.tasks.contains(&delivery.task) {
            self.tasks.push(delivery.task.clone());
            self.requests.push(request(delivery));
        }
    }

    /// Returns a seat that is there already.
    pub(super) fn ready(&mut self) -> Option<Result<Arrival<S>, RunError>> {
        if self.tasks.is_empty() {
            return None;
        }
        self.next().now_or_never().flatten()
    }

    /// Waits for a seat. `None` if none was asked for.
    pub(super) async fn next(&mut self) -> Option<Result<Arrival<S>, RunError>> {
        let seated = self.requests.next().await?;
        Some(seated.map(|(delivery, seat)| {
            self.tasks.retain(|task| *task != delivery.task);
            Arrival::Seated(delivery, seat)
        }))
    }
}
