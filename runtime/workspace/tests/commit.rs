//! Tests of a stage's copy, the changes that are found in it, and the changes that reach the workspace. Witnesses are
//! outside of the copy.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

#[path = "commit/applying.rs"]
mod applying;
#[path = "commit/bench.rs"]
mod bench;
#[path = "commit/search.rs"]
mod search;
#[path = "commit/setting_aside.rs"]
mod setting_aside;
#[path = "commit/verdict.rs"]
mod verdict;
