//! The suites of this crate in one test binary.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod images;
mod providers;
mod whole_answers;
