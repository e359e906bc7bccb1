//! What is known of a run, and what follows from it.
//!
//! `Event* -fold-> RunState -decide-> Event*`. [`run_state`] is the fold of a journal, with the [`context`] of each branch. [`decide`] gives the
//! events that follow from it. The engine appends them, and a resumed run decides the same from the same records.
//!
//! Two more folds read the same journal for people: [`evidence`] is what a run came to and what proves it, [`why`] is how it came to that.
//! [`evidence::Replay`] folds state and summary together, [`refused_writes`] groups refused writes, [`failure_signature`] tells whether two failures are the same.
//!
//! A decision is about the branch of its event. What a parallel node does next depends on all its branches: `decide::next_step` looks at the state
//! alone. So a resume needs only the last event of each branch, whose decisions may be missing (`run_state::PendingDecisions`).
//!
//! Everything here is pure: no file, no clock, no process, no runtime. So a test of a decision takes milliseconds.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod context;
pub mod decide;
pub mod evidence;
pub mod failure_signature;
pub mod refused_writes;
pub mod run_state;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
pub mod why;
