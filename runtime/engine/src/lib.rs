//! Starts and drives a run.
//!
//! `Plan -run-> Event* -project-> files`. [`run`] makes a run's folder, or opens that of a run that is resumed. [`driver`] is the loop: it takes
//! what is ready, claims it, has [`attempt`] execute it, and appends the result with every decision that follows (crate `glovebox-state`)
//! to the journal (crate `glovebox-journal`). [`inbox`] brings in what people say, [`signals`] a request to stop. [`project`] writes the files of a run
//! from its records, [`merge_check`] says what branches may do together, [`disk`] how much of the disk a run has taken.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod attempt;
pub mod disk;
pub mod driver;
pub mod inbox;
pub mod merge_check;
pub mod project;
pub mod run;
pub mod signals;
