//! State that every interface of a call needs: its attempt, its bounds and deadline, and the receivers of refusals and progress.

use crate::deadline::Deadline;
use crate::limiter::Meter;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::ticker::Ticker;
use glovebox_jail::jail::Jail;
use glovebox_jail::lazy_jail::LazyJail;
use glovebox_record::{AttemptId, LimitName, Limits, Refusal};
use glovebox_workspace::refusal::RefusalLog;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;
use wasmtime::{Error, Result};

/// State that every interface of a call needs.
pub(crate) struct CallContext {
    /// The attempt's id, from which receipts get theirs.
    pub(crate) id: AttemptId,
    /// Bounds of the call.
    pub(crate) limits: Limits,
    /// Memory, tables and what crosses the border.
    pub(crate) meter: Meter,
    /// Refusals so far, shared with the view.
    pub(crate) refusals: Arc<RefusalLog>,
    /// The run was canceled.
    pub(crate) canceled: Arc<AtomicBool>,
    /// When the wall time is over.
    pub(crate) deadline: Arc<Deadline>,
    /// Receives progress.
    pub(crate) progress: Sender<Progress>,
    /// Rests while the guest waits for the host.
    pub(crate) ticker: Ticker,
}

impl CallContext {
    pub(crate) fn new(
        id: &AttemptId,
        limits: Limits,
        canceled: Arc<AtomicBool>,
        deadline: Arc<Deadline>,
        ticker: Ticker,
        progress: Sender<Progress>,
    ) -> Self {
        let to_progress = progress.clone();
        let kept_max = usize::try_from(limits.refusals).unwrap_or(usize::MAX);
        let refusals = RefusalLog::new(kept_max).on_refusal(move |refusal| {
            // Progress is a hint by contract.
            let _ = to_progress.try_send(Progress::Refused(refusal.clone()));
        });
        let (id, meter, refusals) = (id.clone(), Meter::new(&limits), Arc::new(refusals));
        Self { id, limits, meter, refusals, canceled, deadline, progress, ticker }
    }

    /// Returns the remaining wall time.
    pub(crate) fn remaining(&self) -> Duration {
        self.deadline.left()
    }

    /// Returns true once the run was canceled.
    pub(crate) fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }

    /// Ends the call if it was canceled or its time is over. To be called before the host uses a result it waited for.
    ///
    /// # Errors
    /// The [`Stop`] of a call that was canceled, or whose wall time is over.
    pub(crate) fn check_stop(&self) -> Result<()> {
        if self.is_canceled() {
            return Err(Error::new(Stop::Canceled));
        }
        match self.remaining().is_zero() {
            true => Err(Error::new(Stop::Limit(LimitName::WallMs))),
            false => Ok(()),
        }
    }

    /// Reports progress, unless the receiver is too slow.
    pub(crate) fn report(&self, progress: Progress) {
        // Progress may be lost. The report is the record.
        let _ = self.progress.try_send(progress);
    }

    /// Records a refusal with the grant that would allow it.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.refusals.record(refusal);
    }

    /// Waits for something that the host does for itself, and gives the guest that time back.
    pub(crate) fn wait_for_host<T>(&self, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let done = self.ticker.while_guest_waits(work);
        self.deadline.extend(begin.elapsed());
        done
    }

    /// Returns a jail, opening it for the first command. The time for that does not count as the guest's.
    ///
    /// # Errors
    /// The jail could not be opened.
    pub(crate) fn opened(&self, jail: &LazyJail) -> Result<Arc<Jail>> {
        self.wait_for_host(|| jail.get()).map_err(Error::new)
    }
}
