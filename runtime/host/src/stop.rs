//! Why the host ended a call. It is passed through wasmtime as a typed error and recognized by its type, never by text.

use glovebox_record::LimitName;
use std::fmt;

/// Why the host ended a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A limit was reached.
    Limit(LimitName),
    /// The run was canceled.
    Canceled,
    /// The component was revoked.
    Revoked,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Limit(name) => write!(f, "limit `{name}` reached"),
            Stop::Canceled => f.write_str("the run was asked to stop"),
            Stop::Revoked => f.write_str("the component was revoked"),
        }
    }
}

impl std::error::Error for Stop {}
