//! State that every interface of a call needs: the attempt, the bounds and the deadline, and where refusals and progress are sent.

use crate::deadline::Deadline;
use crate::limiter::Meter;
use crate::progress::{CallObserver, Progress};
use crate::stop::Stop;
use crate::ticker::Ticker;
use glovebox_jail::jail::Jail;
use glovebox_jail::lazy_jail::LazyJail;
use glovebox_record::{AttemptId, LimitName, Limits, Refusal, WaitKind};
use glovebox_workspace::refusal::RefusalLog;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wasmtime::{Error, Result};

/// State that every interface of a call needs.
pub(crate) struct CallContext {
    /// Id of the attempt. Ids of receipts are derived from it.
    pub(crate) id: AttemptId,
    /// Bounds of the call.
    pub(crate) limits: Limits,
    /// Counters of memory, tables and bytes between guest and host.
    pub(crate) meter: Meter,
    /// Refusals so far, shared with the view of the files.
    pub(crate) refusals: Arc<RefusalLog>,
    /// True if the run was canceled.
    pub(crate) canceled: Arc<AtomicBool>,
    /// When the wall time ends.
    pub(crate) deadline: Arc<Deadline>,
    /// Gets what the host observes.
    pub(crate) observer: CallObserver,
    /// Interrupts the guest at intervals, except while the guest waits for the host.
    pub(crate) ticker: Ticker,
}

impl CallContext {
    pub(crate) fn new(
        id: &AttemptId,
        limits: Limits,
        canceled: Arc<AtomicBool>,
        deadline: Arc<Deadline>,
        ticker: Ticker,
        observer: CallObserver,
    ) -> Self {
        let of_refusals = observer.clone();
        let kept_max = usize::try_from(limits.refusals).unwrap_or(usize::MAX);
        let refusals = RefusalLog::new(kept_max).on_refusal(move |refusal| {
            of_refusals.report(Progress::Refused(refusal.clone()));
        });
        let (id, meter, refusals) = (id.clone(), Meter::new(&limits), Arc::new(refusals));
        Self { id, limits, meter, refusals, canceled, deadline, observer, ticker }
    }

    /// Returns the remaining wall time.
    pub(crate) fn remaining(&self) -> Duration {
        self.deadline.left()
    }

    /// Returns true once the run was canceled.
    pub(crate) fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }

    /// Ends the call if it was canceled or its time is over. The host must call this after each wait, before it uses the result.
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

    /// Reports progress, which may be lost. The report of the call is the record.
    pub(crate) fn report(&self, progress: Progress) {
        self.observer.report(progress);
    }

    /// Records a refusal with the grant that would allow it.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.refusals.record(refusal);
    }

    /// Waits for the host to make or restore the sandbox, and extends the deadline by the time that took.
    pub(crate) fn wait_for_host<T>(&self, work: impl FnOnce() -> T) -> T {
        let _wait = self.observer.pulse().wait(WaitKind::Sandbox);
        let begin = Instant::now();
        let done = self.ticker.while_guest_waits(work);
        self.deadline.extend(begin.elapsed());
        done
    }

    /// Returns a jail, and opens it for the first command. Opening the jail is not part of the wall time of the guest.
    ///
    /// # Errors
    /// The jail could not be opened.
    pub(crate) fn opened(&self, jail: &LazyJail) -> Result<Arc<Jail>> {
        self.wait_for_host(|| jail.get()).map_err(Error::new)
    }
}
