//! Starts and drives a run.
//!
//! `Plan -run-> Event* -project-> files`. [`run`] creates a run directory, or opens that of a run that is resumed. [`driver`]
//! is the loop: it takes a ready attempt, claims it, has [`attempt`] execute it, and appends the result with every
//! decision that follows (crate `glovebox-state`) to the journal (crate `glovebox-journal`). [`inbox`] receives messages of
//! people, and [`signals`] requests to stop. [`executors`] says where attempts are made. [`project`] writes the files of a run from its records, which it gets through
//! [`follow`]; [`live`] passes on the output of commands while they run, and [`liveness`] signs of life. [`clock`] is
//! the time of a driven run. [`merge_check`] refuses a merge of branches that
//! together create a repository, and [`disk`] measures the disk space of a run. [`stores`] has the adapters of one machine.
//!
//! A `stage.ready` event is also a queue entry. A claim appends `stage.started` on the condition that no other worker has
//! done so. The sequence number of that record is the fencing token, which the commit expects. A worker that was suspended
//! past its lease finds another head, and its result is discarded: of two attempts only one commits. The driver decides on a
//! copy of the state, which shares its maps with the original, so a decision costs the same in a long run. Stored records are
//! applied to the run itself, one by one.
//!
//! An attempt that starts no process and asks no provider runs in the driver's own task, if it is on the main branch.
//! Every other attempt runs on a thread.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod assignment;
pub mod attempt;
pub mod clock;
pub mod disk;
pub mod driver;
pub mod edge_check;
pub mod executors;
pub mod follow;
pub mod holdouts;
pub mod inbox;
pub mod live;
pub mod liveness;
pub mod merge_check;
pub mod project;
pub mod reserve;
pub mod run;
pub mod run_dir;
pub mod signals;
pub mod stores;
