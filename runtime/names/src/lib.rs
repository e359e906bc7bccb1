//! Tables of names and characters that are dangerous in untrusted input, shared by all other crates.
//!
//! [`visible`] lists the characters that could deceive a reader or control a terminal, and escapes them. [`protected`]
//! lists the files that make programs run merely because they exist, and [`repository`] lists the names that make git
//! treat a folder as a repository. [`shell`] quotes arguments for a command line. All modules are pure: they know no
//! files, terminals or grants. The crate depends on nothing, so that the pipeline, the sandbox and the command line use
//! the same tables.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod protected;
pub mod repository;
pub mod shell;
pub mod visible;
