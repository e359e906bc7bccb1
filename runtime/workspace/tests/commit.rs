//! Tests of a stage's copy, the changes that are found in it, and the changes that reach the workspace. Witnesses are
//! outside of the copy.

mod applying;
mod bench;
mod search;
mod setting_aside;
mod verdict;
