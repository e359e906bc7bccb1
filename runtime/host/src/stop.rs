//! The reason why the host ended a call. It travels as a typed error through wasmtime and is found again by its type, never by text.

use glovebox_record::LimitName;
use std::fmt;

/// The host's reason to end a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A named limit.
    Limit(LimitName),
    /// The run was canceled.
    Canceled,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Limit(name) => write!(f, "limit `{name}` reached"),
            Stop::Canceled => f.write_str("the run was asked to stop"),
        }
    }
}

impl std::error::Error for Stop {}
