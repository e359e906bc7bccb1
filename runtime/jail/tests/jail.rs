//! Host programs in a jail. Every claim has a witness outside: a file that must not appear, or a process that must be
//! dead.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

#[path = "../../../tests/workbench/not_run.rs"]
#[allow(unreachable_pub, reason = "each suite includes this file")]
mod not_run;

#[path = "jail/cached.rs"]
mod cached;
#[path = "jail/commands.rs"]
mod commands;
#[path = "jail/ends.rs"]
mod ends;
#[path = "jail/fixture.rs"]
mod fixture;
#[path = "jail/limits.rs"]
mod limits;
#[path = "jail/probed.rs"]
mod probed;
#[path = "jail/proxied.rs"]
mod proxied;
#[path = "jail/settings.rs"]
mod settings;
