//! Tests of the built helper over its protocol, as root and as an ordinary user.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that is surprised stops there")]

#[path = "jail/bounds.rs"]
mod bounds;
#[path = "jail/commands.rs"]
mod commands;
#[path = "jail/fixture.rs"]
mod fixture;
#[path = "jail/renames.rs"]
mod renames;
#[path = "jail/selftest.rs"]
mod selftest;
#[path = "jail/view.rs"]
mod view;
