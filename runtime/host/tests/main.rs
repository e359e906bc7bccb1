//! The suites of this crate in one test binary.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

#[path = "../../../tests/guests/mod.rs"]
#[allow(dead_code, reason = "the suites of several crates use it")]
mod guests;
mod world;

mod aot;
mod contract;
mod docs;
mod files;
mod inspect;
mod limits;
mod manifest;
mod wit;
