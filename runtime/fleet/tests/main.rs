//! The adapters against real NATS servers on loopback. The ports' own suite is in `runtime/engine/tests/ports`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that is surprised stops there")]

#[path = "../../../tests/workbench/nats.rs"]
mod nats;
#[path = "../../../tests/workbench/not_run.rs"]
mod not_run;

mod bench;
mod checks;
mod faults;
mod log;
mod proxy;
mod s3;
mod secrecy;
mod trust;
