//! A jail that is opened when its stage first runs a command, so that a stage without commands costs nothing.
//!
//! The jail is opened once, and again each time the stage is restarted. If opening fails, it is not tried again, and the
//! error is returned when the stage ends.

use crate::jail::{Jail, ResourceUsage};
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of restarts of a stage. Descriptors of each jail stay open until the stage ends.
pub const START_OVERS_MAX: usize = 32;

/// Why a jail could not be opened.
pub type OpenError = Box<dyn Error + Send + Sync>;

/// Opens a jail.
type OpenJail = Box<dyn FnOnce() -> Result<Jail, OpenError> + Send>;
/// Restores the files from the start of the stage, and opens another jail.
type ReopenJail = Box<dyn FnMut() -> Result<Jail, OpenError> + Send>;

/// A jail that is open, or a function that opens it.
#[derive(Debug)]
pub struct LazyJail(Mutex<LazyState>);

struct LazyState {
    state: JailState,
    /// `None` for a stage that cannot be restarted.
    again: Option<ReopenJail>,
    /// Resource usage of the earlier jails.
    used: Vec<ResourceUsage>,
}

enum JailState {
    Waiting(OpenJail),
    Opened(Arc<Jail>),
    Failed(NoJail, OpenError),
    /// The jail is being opened, or opening panicked.
    Gone,
}

impl fmt::Debug for LazyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            JailState::Waiting(_) => "Waiting",
            JailState::Opened(_) => "Opened",
            JailState::Failed(..) => "Failed",
            JailState::Gone => "Gone",
        })
    }
}

/// Why a stage has no jail. [`LazyJail::into_jail`] returns the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoJail {
    /// The first jail could not be opened.
    #[error("the sandbox of the stage's commands could not be opened")]
    NotOpened,
    /// A step of the restart of the stage failed.
    #[error(
        "the stage could not be restarted: ending its sandbox, restoring its files or opening another sandbox failed"
    )]
    NotStartedOver,
}

/// Why a stage was not restarted.
#[derive(Debug, thiserror::Error)]
pub enum StartOverError {
    /// The stage was already restarted [`START_OVERS_MAX`] times.
    #[error("a stage can be restarted at most {START_OVERS_MAX} times")]
    TooOften,
    /// The files of the stage cannot be restored.
    #[error("the stage cannot be restarted, because its files cannot be restored")]
    Impossible,
    /// The jail is still in use. It stays open.
    #[error("the stage cannot be restarted while something uses its sandbox")]
    InUse,
    /// There is no jail left.
    #[error(transparent)]
    NoJail(#[from] NoJail),
}

impl LazyJail {
    /// Creates a jail that is opened when it is first needed.
    pub fn new(open: impl FnOnce() -> Result<Jail, OpenError> + Send + 'static) -> Self {
        Self::from_state(JailState::Waiting(Box::new(open)))
    }

    /// Wraps a jail that is already open.
    pub fn opened(jail: Jail) -> Self {
        Self::from_state(JailState::Opened(Arc::new(jail)))
    }

    fn from_state(state: JailState) -> Self {
        Self(Mutex::new(LazyState { state, again: None, used: Vec::new() }))
    }

    /// Makes it possible to restart the stage: `again` restores the files from the start of the stage, and opens another
    /// jail.
    #[must_use]
    pub fn starting_over(self, again: impl FnMut() -> Result<Jail, OpenError> + Send + 'static) -> Self {
        self.held().again = Some(Box::new(again));
        self
    }

    /// Returns the jail, and opens it if necessary. Blocks for milliseconds.
    ///
    /// # Errors
    /// Returns [`NoJail`], in this and every later call.
    pub fn get(&self) -> Result<Arc<Jail>, NoJail> {
        let mut held = self.held();
        held.state = match std::mem::replace(&mut held.state, JailState::Gone) {
            JailState::Waiting(open) => opened(open(), NoJail::NotOpened),
            other => other,
        };
        match &held.state {
            JailState::Opened(jail) => Ok(Arc::clone(jail)),
            JailState::Failed(why, _) => Err(*why),
            JailState::Waiting(_) | JailState::Gone => Err(NoJail::NotOpened),
        }
    }

    /// Ends the jail with all its processes, restores the files from the start of the stage, and opens another jail.
    /// Blocks for milliseconds, or for the time that copying the files takes.
    ///
    /// # Errors
    /// Returns a [`StartOverError`]. After [`StartOverError::NoJail`], there is no jail left.
    pub fn reset(&self) -> Result<(), StartOverError> {
        let mut held = self.held();
        let LazyState { state, again, used } = &mut *held;
        let again = again.as_mut().ok_or(StartOverError::Impossible)?;
        if used.len() >= START_OVERS_MAX {
            return Err(StartOverError::TooOften);
        }
        let spent = match std::mem::replace(state, JailState::Gone) {
            JailState::Waiting(_) => ResourceUsage::default(),
            JailState::Opened(jail) => match Arc::try_unwrap(jail).map(Jail::end) {
                Ok(Ok(spent)) => spent,
                Ok(Err(error)) => {
                    *state = JailState::Failed(NoJail::NotStartedOver, error.into());
                    return Err(NoJail::NotStartedOver.into());
                }
                Err(in_use) => {
                    *state = JailState::Opened(in_use);
                    return Err(StartOverError::InUse);
                }
            },
            JailState::Failed(why, error) => {
                *state = JailState::Failed(why, error);
                return Err(why.into());
            }
            JailState::Gone => return Err(NoJail::NotOpened.into()),
        };
        used.push(spent);
        *state = opened(again(), NoJail::NotStartedOver);
        if matches!(state, JailState::Opened(_)) { Ok(()) } else { Err(NoJail::NotStartedOver.into()) }
    }

    /// Returns the jail if it is open.
    pub fn if_opened(&self) -> Option<Arc<Jail>> {
        match &self.held().state {
            JailState::Opened(jail) => Some(Arc::clone(jail)),
            JailState::Waiting(_) | JailState::Failed(..) | JailState::Gone => None,
        }
    }

    /// Returns the resource usage of the jails that ended because the stage was restarted.
    pub fn used_before(&self) -> Vec<ResourceUsage> {
        std::mem::take(&mut self.held().used)
    }

    /// Returns the jail, or `None` if it was never opened. Nothing else may use the jail any more.
    ///
    /// # Errors
    /// Returns the reason why the jail could not be opened, or an error if something still uses it.
    pub fn into_jail(self) -> Result<Option<Jail>, OpenError> {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner).state {
            JailState::Waiting(_) => Ok(None),
            JailState::Opened(jail) => Arc::into_inner(jail).map(Some).ok_or_else(|| "it is still in use".into()),
            JailState::Failed(_, error) => Err(error),
            JailState::Gone => Err(NoJail::NotOpened.into()),
        }
    }

    fn held(&self) -> MutexGuard<'_, LazyState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn opened(jail: Result<Jail, OpenError>, otherwise: NoJail) -> JailState {
    jail.map_or_else(|error| JailState::Failed(otherwise, error), |jail| JailState::Opened(Arc::new(jail)))
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
        assert!(matches!(jail.reset(), Err(StartOverError::Impossible)));
        assert_eq!(jail.into_jail().unwrap_err().to_string(), "no namespaces");
    }

    #[test]
    fn a_stage_that_could_not_start_over_is_told_from_one_whose_jail_could_not_be_opened() {
        let opened = "the sandbox of the stage's commands could not be opened";
        let over = "the stage could not be restarted: ending its sandbox, restoring its files or opening another sandbox failed";
        let lazy = || LazyJail::new(|| Err("no namespaces".into())).starting_over(|| Err("no space".into()));
        let jail = lazy();
        assert_eq!(jail.get().unwrap_err().to_string(), opened);
        assert_eq!(jail.reset().unwrap_err().to_string(), opened);
        assert_eq!(jail.into_jail().unwrap_err().to_string(), "no namespaces");
        let jail = lazy();
        assert_eq!(jail.reset().unwrap_err().to_string(), over);
        assert_eq!(jail.get().unwrap_err().to_string(), over);
        assert_eq!(jail.reset().unwrap_err().to_string(), over);
        assert_eq!(jail.into_jail().unwrap_err().to_string(), "no space");
        let jail = LazyJail::new(|| Err("no namespaces".into()));
        assert_eq!(
            jail.reset().unwrap_err().to_string(),
            "the stage cannot be restarted, because its files cannot be restored"
        );
    }
}
