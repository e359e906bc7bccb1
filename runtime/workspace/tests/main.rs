//! The suites of this crate in one test binary.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod alarm;
mod commit;
mod holdout;
mod mutations;
mod project;
mod view;
