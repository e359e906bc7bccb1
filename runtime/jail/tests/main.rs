//! The suites of this crate in one test binary. `attacks` and `template` have processes of their own: the first uses the
//! whole machine, the second inspects the helpers of its process.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

#[path = "../../../tests/workbench/not_run.rs"]
mod not_run;

mod bwrap;
mod jail;
mod overlay;
mod reach;
mod subject;
