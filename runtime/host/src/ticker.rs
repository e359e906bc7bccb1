//! The ticker: advances an engine's epoch while guest code runs, so that a running guest is interrupted at every tick.
//!
//! There is one thread for each engine. It sleeps while no guest runs, so a stage that waits for a command or a model causes no
//! wakeups. It stays awake for a few ticks after the last guest, so that short successive stages do not have to wake it. It ends when
//! the last handle is dropped.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wasmtime::Engine;

/// Time between two ticks, which is the precision of the wall-time limit and of cancellation.
const TICK: Duration = Duration::from_millis(10);
/// Number of ticks without a guest after which the thread sleeps.
const IDLE_TICKS_MAX: u32 = 10;

/// A handle of the ticker's thread.
#[derive(Clone)]
pub(crate) struct Ticker(Arc<Owner>);

/// Ends the thread when the last handle is dropped.
struct Owner(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<GuestCount>,
    changed: Condvar,
}

#[derive(Default)]
struct GuestCount {
    /// Number of guests whose code is running.
    guests: usize,
    /// True while the thread sleeps because no guest runs.
    is_waiting: bool,
    has_ended: bool,
}

impl Ticker {
    /// Starts the ticker thread of an engine.
    pub(crate) fn start(engine: &Engine) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (ticking, engine) = (Arc::clone(&shared), engine.clone());
        let tick = move || ticking.run(&mut || engine.increment_epoch());
        std::thread::Builder::new().name("glovebox-epoch".to_owned()).spawn(tick)?;
        Ok(Self(Arc::new(Owner(shared))))
    }

    /// Executes work in which guest code runs.
    pub(crate) fn while_guest_runs<T>(&self, work: impl FnOnce() -> T) -> T {
        let shared = &self.0.0;
        shared.count(|guests| guests.saturating_add(1));
        let _leaving = OnDrop(|| shared.count(|guests| guests.saturating_sub(1)));
        work()
    }

    /// Executes work of the host while the guest waits for it.
    pub(crate) fn while_guest_waits<T>(&self, work: impl FnOnce() -> T) -> T {
        let shared = &self.0.0;
        shared.count(|guests| guests.saturating_sub(1));
        let _returning = OnDrop(|| shared.count(|guests| guests.saturating_add(1)));
        work()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, GuestCount> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut state = self.lock();
        state.guests = change(state.guests);
        if state.guests > 0 && state.is_waiting {
            self.changed.notify_one();
        }
    }

    fn run(&self, tick: &mut dyn FnMut()) {
        while self.wait_for_guest() {
            let mut idle_ticks = 0;
            while idle_ticks < IDLE_TICKS_MAX {
                std::thread::sleep(TICK);
                tick();
                let state = self.lock();
                if state.has_ended {
                    return;
                }
                idle_ticks = if state.guests == 0 { idle_ticks + 1 } else { 0 };
            }
        }
    }

    /// Waits until a guest runs. Returns false after the last handle was dropped.
    fn wait_for_guest(&self) -> bool {
        let mut state = self.lock();
        state.is_waiting = true;
        while state.guests == 0 && !state.has_ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_waiting = false;
        !state.has_ended
    }
}

/// Calls a function when it is dropped, also during a panic.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    /// Creates a ticker that only counts its ticks.
    fn counting() -> (Ticker, Arc<AtomicU32>, std::thread::JoinHandle<()>) {
        let (shared, ticks) = (Arc::new(Shared::default()), Arc::new(AtomicU32::new(0)));
        let (ticking, counted) = (Arc::clone(&shared), Arc::clone(&ticks));
        let thread = std::thread::spawn(move || {
            ticking.run(&mut || {
                counted.fetch_add(1, Ordering::Relaxed);
            });
        });
        (Ticker(Arc::new(Owner(shared))), ticks, thread)
    }

    fn wait_until(what: impl Fn() -> bool) {
        let begin = Instant::now();
        while !what() {
            assert!(begin.elapsed() < Duration::from_secs(20), "not within 20 s");
            std::thread::sleep(TICK);
        }
    }

    #[test]
    fn it_ticks_only_while_a_guest_runs() {
        let (ticker, ticks, thread) = counting();
        let count = || ticks.load(Ordering::Relaxed);
        let is_waiting = || ticker.0.0.lock().is_waiting;
        wait_until(is_waiting);
        assert_eq!(count(), 0);
        ticker.while_guest_runs(|| {
            wait_until(|| count() > IDLE_TICKS_MAX * 2);
            // A guest that waits for the host is not a running guest.
            ticker.while_guest_waits(|| {
                wait_until(is_waiting);
                let before = count();
                std::thread::sleep(TICK * 5);
                assert_eq!(count(), before);
            });
            let before = count();
            wait_until(|| count() > before + IDLE_TICKS_MAX * 2);
        });
        wait_until(is_waiting);
        drop(ticker);
        thread.join().unwrap();
    }

    #[test]
    fn a_panic_of_the_work_counts_as_its_end() {
        let (ticker, _, thread) = counting();
        let panics = || ticker.while_guest_runs(|| panic!("guest"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(ticker.0.0.lock().guests, 0);
        drop(ticker);
        thread.join().unwrap();
    }
}
