//! Runs of a fleet: started from this machine, made on this machine, and pulled to this machine.

pub mod machine;
pub mod pull;
pub mod remote;
pub mod start;
