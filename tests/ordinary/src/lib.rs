//! The battery of ordinary behaviours of `glovebox doctor --ordinary`: what developers' tools do every day, as small
//! programs that must succeed in the sandbox.
//!
//! A [`behaviour`] is a shell script with a reason and a public source. The [`table`] lists all of them. Each runs in a
//! [`project`] of its own, in a [`place`]: in the sandbox of a glovebox program, or under another command. The
//! [`runner`] runs many [`trial`]s at a time. This crate knows nothing of pipelines' plans, journals and jails: it
//! starts the program as a user does.

#![forbid(unsafe_code)]

pub mod behaviour;
mod glovebox;
pub mod place;
mod process;
pub mod project;
pub mod runner;
pub mod table;
pub mod trial;
