//! Names of the entries of `extra` on which host and guests agree.

/// Of a command and its exit: the reason for which a command that passed proves nothing.
pub(crate) const NO_PROOF: &str = "no-proof";
/// Of a command: it begins with the files of the attempt's beginning.
pub(crate) const START_OVER: &str = "start-over";
