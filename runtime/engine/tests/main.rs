//! The suites of this crate in one test binary. Only `memory` has a process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that is surprised stops there")]

mod components;
#[path = "../../../tests/guests/mod.rs"]
#[allow(dead_code, reason = "the suites of several crates use it")]
mod guests;
#[path = "../../../tests/workbench/nats.rs"]
#[allow(dead_code, reason = "the suites of several crates use it")]
mod nats;
#[path = "../../../tests/workbench/not_run.rs"]
mod not_run;

mod attempt;
mod bind;
mod holdouts;
mod ports;
mod projections;
mod schemas;
mod session;
