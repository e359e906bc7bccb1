//! A jail that is opened when its stage first runs a command: a stage that never does pays for none.
//!
//! The jail is opened once. If that fails it is not tried again, and the error is what remains of it when the stage ends.

use crate::jail::Jail;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why a jail could not be opened.
pub type OpenError = Box<dyn Error + Send + Sync>;

/// Opens a jail.
type Open = Box<dyn FnOnce() -> Result<Jail, OpenError> + Send>;

/// A jail, or how to open it.
#[derive(Debug)]
pub struct LazyJail(Mutex<State>);

enum State {
    Waiting(Open),
    Opened(Arc<Jail>),
    Failed(OpenError),
    /// It is being opened, or opening panicked.
    Gone,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting(_) => "Waiting",
            Self::Opened(_) => "Opened",
            Self::Failed(_) => "Failed",
            Self::Gone => "Gone",
        })
    }
}

/// The jail of a stage could not be opened; [`LazyJail::into_jail`] has the reason.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox of the stage's commands could not be opened")]
pub struct NoJail;

impl LazyJail {
    /// A jail that is opened when it is first needed.
    pub fn new(open: impl FnOnce() -> Result<Jail, OpenError> + Send + 'static) -> Self {
        Self(Mutex::new(State::Waiting(Box::new(open))))
    }

    /// A jail that is open already.
    pub fn opened(jail: Jail) -> Self {
        Self(Mutex::new(State::Opened(Arc::new(jail))))
    }

    /// Returns the jail, opened if it was not. Blocks for milliseconds.
    ///
    /// # Errors
    /// [`NoJail`], now and each time after.
    pub fn get(&self) -> Result<Arc<Jail>, NoJail> {
        let mut state = self.state();
        *state = match std::mem::replace(&mut *state, State::Gone) {
            State::Waiting(open) => open().map_or_else(State::Failed, |jail| State::Opened(Arc::new(jail))),
            other => other,
        };
        match &*state {
            State::Opened(jail) => Ok(Arc::clone(jail)),
            State::Waiting(_) | State::Failed(_) | State::Gone => Err(NoJail),
        }
    }

    /// Returns the jail if it is open.
    pub fn if_opened(&self) -> Option<Arc<Jail>> {
        match &*self.state() {
            State::Opened(jail) => Some(Arc::clone(jail)),
            State::Waiting(_) | State::Failed(_) | State::Gone => None,
        }
    }

    /// Returns the jail once nothing else uses it; none if it never was opened.
    ///
    /// # Errors
    /// Why it could not be opened, or that something still uses it.
    pub fn into_jail(self) -> Result<Option<Jail>, OpenError> {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            State::Waiting(_) => Ok(None),
            State::Opened(jail) => Arc::into_inner(jail).map(Some).ok_or_else(|| "it is still in use".into()),
            State::Failed(error) => Err(error),
            State::Gone => Err(NoJail.into()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_jail_that_is_not_needed_is_not_opened_and_one_that_fails_is_tried_once() {
        let tried = Arc::new(AtomicU32::new(0));
        let lazy = || {
            let tried = Arc::clone(&tried);
            LazyJail::new(move || {
                tried.fetch_add(1, Ordering::Relaxed);
                Err("no namespaces".into())
            })
        };
        assert!(lazy().into_jail().unwrap().is_none());
        assert_eq!(tried.load(Ordering::Relaxed), 0);
        let jail = lazy();
        assert!(jail.if_opened().is_none() && jail.get().is_err() && jail.get().is_err());
        assert_eq!(tried.load(Ordering::Relaxed), 1);
        assert_eq!(jail.into_jail().unwrap_err().to_string(), "no namespaces");
    }
}
