//! A stage's copy, what is found in it and what reaches the workspace. Witnesses stand outside the copy.

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
