//! The facts of a run and where they are kept.
//!
//! A run is what its journal says: each [`event`] is appended before anything follows from it, and everything else is derived. The
//! vocabulary of events is the crate `glovebox-record`; this crate has the events themselves, their canonical text and the hash chain.
//! [`rewind`] says which records count after a resume went back to an earlier visit, and [`reading`] folds a journal a few records at a time.
//!
//! Where records are kept is behind four [`ports`]: the log, the blobs, the queue of work and the signals. [`memory`] is the adapter for
//! tests. With the feature `disk`, `sqlite` and `blobs` are those for one machine. This crate decides nothing.
//!
//! A blob is durable with the append after it: up to 64 KiB it is stored in the same transaction, a larger one is a file that is flushed
//! right before. So a stage costs one flush of the journal's log. The suite `ports` of the engine holds every adapter to the same promises.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(feature = "disk")]
pub mod blobs;
pub mod event;
mod lease;
pub mod memory;
pub mod ports;
mod queue_change;
pub mod reading;
pub mod rewind;
#[cfg(feature = "disk")]
pub mod sqlite;
