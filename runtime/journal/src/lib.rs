//! The events of a run and their storage.
//!
//! The journal is the source of truth of a run: each [`event`] is appended before anything follows from it, and
//! everything else is derived from the journal. The crate `glovebox-record` has the types that events use. This crate
//! has the events, their canonical text and the hash chain. [`rewind`] selects the records that are in force after a
//! resume rewound the run to an earlier visit, and [`reading`] folds a journal page by page. [`liveness`] has the lines of
//! the stream beside the journal.
//!
//! Storage is behind [`ports`]: the log, the blobs, the claim queue, the leases and the signals. [`memory`] is the adapter for
//! tests. With the feature `disk`, `sqlite` and `blobs` are the adapters for one machine. This crate makes no decisions
//! about a run.
//!
//! The next append makes a blob durable. A blob of up to 64 KiB is stored in the same transaction; a larger one is a
//! file that is flushed right before. So a stage costs one flush of the write-ahead log. The suite `ports` of the
//! engine runs the same tests against every adapter. Each adapter folds its [`queue`] with the same code.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(feature = "disk")]
pub mod blobs;
pub mod event;
pub mod lease;
pub mod liveness;
pub mod memory;
pub mod ports;
pub mod queue;
mod queue_change;
pub mod reading;
pub mod rewind;
#[cfg(feature = "disk")]
pub mod sqlite;
