//! Names of entries of `extra` that host and guests both know.

/// Entry of a command and of its exit: why a command that passed is not a proof.
pub(crate) const NO_PROOF: &str = "no-proof";
/// Entry of a command: the files are reset to those at the beginning of the attempt.
pub(crate) const START_OVER: &str = "start-over";
