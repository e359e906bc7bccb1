//! What names and texts of strangers may do to those who read them: tables that every other crate shares.
//!
//! [`visible`] says which characters could deceive a reader or drive a terminal, and shows them; [`protected`] says which files make
//! programs run by being there, [`repository`] which names together do; [`shell`] quotes them for a
//! command line. All are pure: no file, no terminal and no grant is known here. The crate depends on nothing, so that the pipeline, the
//! sandbox and the command line can have the same answer.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod protected;
pub mod repository;
pub mod shell;
pub mod visible;
