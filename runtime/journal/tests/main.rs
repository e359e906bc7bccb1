//! The suites of this crate in one test binary.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod event;
mod golden;
mod journal;
