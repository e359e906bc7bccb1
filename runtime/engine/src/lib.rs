//! Runs a pipeline: plan, schedule, journal, attempts, artifacts.
//!
//! `Plan -run-> Event* -fold-> RunState -project-> files`. The journal is written first and everything else is derived from
//! it. Reading order: [`event`] (the facts), [`ports`] (where they are kept).

#![forbid(unsafe_code)]

pub mod event;
pub mod outcome;
pub mod ports;
