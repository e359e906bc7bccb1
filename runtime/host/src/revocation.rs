//! Says during a call whether its component was revoked.
//!
//! This module knows no list: the caller passes a function that looks at the lists. It looks before the call, and then at most
//! once in each [`INTERVAL`]. A component that was found to be revoked stays revoked for the call.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time between two looks during a call.
pub const INTERVAL: Duration = Duration::from_millis(50);

/// Says whether the component of one call was revoked. Clones share what was found.
#[derive(Clone)]
pub struct RevocationCheck(Arc<Check>);

struct Check {
    /// Returns why the component must not run. `None` if it may run.
    find: Box<dyn Fn() -> Option<String> + Send + Sync>,
    found: OnceLock<String>,
    /// When the next look is due.
    due: Mutex<Instant>,
}

impl RevocationCheck {
    /// Creates the check of one component. `find` returns why the component must not run. It is called often, and must be quick.
    pub fn new(find: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Check { find: Box::new(find), found: OnceLock::new(), due: Mutex::new(Instant::now()) }))
    }

    /// Returns why the component must not run, after a look.
    pub fn look(&self) -> Option<&str> {
        *self.0.due.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + INTERVAL;
        if self.found().is_none()
            && let Some(reason) = (self.0.find)()
        {
            // Another thread may have found it at the same time.
            let _ = self.0.found.set(reason);
        }
        self.found()
    }

    /// Returns why the component must not run, after a look if one is due.
    pub fn look_if_due(&self) -> Option<&str> {
        let is_due = Instant::now() >= *self.0.due.lock().unwrap_or_else(PoisonError::into_inner);
        if is_due { self.look() } else { self.found() }
    }

    /// Returns why the component must not run, if that was found. Does not look.
    pub fn found(&self) -> Option<&str> {
        self.0.found.get().map(String::as_str)
    }
}

impl fmt::Debug for RevocationCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RevocationCheck").field(&self.found()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn it_looks_at_intervals_and_remembers_what_it_found() {
        let looks = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&looks);
        let check =
            RevocationCheck::new(move || (counted.fetch_add(1, Ordering::Relaxed) == 1).then(|| "it leaks".to_owned()));
        assert_eq!(check.found(), None);
        let begin = Instant::now();
        assert_eq!(check.look_if_due(), None);
        while check.look_if_due().is_none() {
            assert!(begin.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(begin.elapsed() >= INTERVAL);
        assert_eq!((check.look(), check.clone().found()), (Some("it leaks"), Some("it leaks")));
        assert_eq!(looks.load(Ordering::Relaxed), 2);
    }
}
