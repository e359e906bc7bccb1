//! The state of a run, and the decisions that follow from it.
//!
//! `Event* -fold-> RunState -decide-> Event*`. [`run_state`] is the fold of a journal, with the [`context`] of each
//! branch. [`decide`] returns the events that follow from an event. The engine appends these events, and a resumed run
//! decides the same from the same records.
//!
//! Two more folds read the same journal for people: [`evidence`] shows the result of a run and what proves it, [`why`]
//! explains each step. [`evidence::Replay`] folds state and summary together, [`refused_writes`] groups refused writes,
//! [`failure_signature`] decides whether two failures are the same, [`stall`] whether a run makes no progress, [`status_file`]
//! which file of a stage is its answer. [`tasks`] shows each visit of a stage, and [`named_events`] the events of the
//! Attractor specification.
//!
//! A decision concerns the branch of its event. What a parallel node does next depends on all its branches, so
//! `decide::next_step` looks only at the state. A resume therefore needs only the last event of each branch, whose
//! decisions may be missing (`run_state::PendingDecisions`).
//!
//! Everything in this crate is pure: no file, no clock, no process, no async runtime. A test of a decision takes
//! milliseconds.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod context;
pub mod decide;
pub mod evidence;
pub mod failure_signature;
pub mod named_events;
pub mod refused_writes;
pub mod run_state;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
pub mod stall;
pub mod status_file;
pub mod tasks;
pub mod why;
