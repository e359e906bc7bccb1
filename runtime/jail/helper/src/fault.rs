//! The failure of a set-up step: the name of the step and the error of the system.
#![forbid(unsafe_code)]

use glovebox_jail_helper::wire::Failure;
use std::io;

/// Adds the name of the step to the error of a system call.
pub(crate) trait At<T> {
    /// Returns the value, or the failure of this step.
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

/// Creates a failure that is not a system error.
pub(crate) fn refused(step: impl Into<String>, text: impl Into<String>) -> Failure {
    Failure { step: step.into(), errno: 0, text: text.into() }
}
