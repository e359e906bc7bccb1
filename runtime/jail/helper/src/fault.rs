//! The failure of a set-up step: the step's name and the system's error.
#![forbid(unsafe_code)]

use glovebox_jail_helper::wire::Failure;
use std::io;

/// Names the step at which a call of the system failed.
pub(crate) trait At<T> {
    /// The value, or the failure of this step.
    fn at(self, step: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, step: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| {
            let error = error.into();
            Failure { step: step.into(), errno: error.raw_os_error().unwrap_or(0), text: error.to_string() }
        })
    }
}

/// A failure that is not a system error.
pub(crate) fn refused(step: impl Into<String>, text: impl Into<String>) -> Failure {
    Failure { step: step.into(), errno: 0, text: text.into() }
}
