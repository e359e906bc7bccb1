//! Keys of `extra` that host and guests both know.

/// Key in `extra` of a command and of its exit. The value says why a command that passed is not a proof.
pub(crate) const NO_PROOF: &str = "no-proof";
/// Key in `extra` of a command, without a value. Before the command runs, the files are reset to their state at the beginning of the
/// attempt.
pub(crate) const START_OVER: &str = "start-over";
