//! Starts and drives a run.
//!
//! `Plan -run-> Event* -project-> files`. [`run`] makes a run's folder, or opens that of a run that is resumed. [`driver`] is the loop: it
//! takes what is ready, claims it, has [`attempt`] execute it, and appends the result with every decision that follows (crate
//! `glovebox-state`) to the journal (crate `glovebox-journal`). [`inbox`] brings in what people say, [`signals`] a request to stop.
//! [`project`] writes the files of a run from its records, which it gets through [`follow`]. [`merge_check`] refuses what branches make only
//! together, [`disk`] measures the disk space of a run.
//!
//! `stage.ready` is an event and a queue entry in one. A claim appends `stage.started` on the condition that nobody else has; its sequence
//! number is the fencing token, which the commit expects. A worker that was suspended past its lease finds another head, and its result is
//! dropped: of two attempts only one commits. The driver decides on a copy of the state, which shares its maps with the original, so it
//! costs the same in a long run. Records that are stored are applied to the run itself, one by one.
//!
//! An attempt that starts no process and asks no provider runs in the driver's own task; every other one has a thread.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod assignment;
pub mod attempt;
pub mod disk;
pub mod driver;
pub mod follow;
pub mod holdouts;
pub mod inbox;
pub mod merge_check;
pub mod project;
pub mod run;
pub mod run_dir;
pub mod signals;
