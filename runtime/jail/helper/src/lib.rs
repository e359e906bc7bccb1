//! The protocol between a host and its jail helper: the policy of one jail, and the frames of its control socket.
//!
//! The library contains types, functions that read and write frames, and the inspection of one process. `glovebox-jail`
//! and the helper in `main.rs` share it. The helper gets all requests over the socket. Its arguments and environment
//! are empty, so that `/proc` shows no part of the policy.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(target_os = "linux")]
pub mod control;
pub mod policy;
#[cfg(target_os = "linux")]
pub mod process;
pub mod subject;
pub mod wire;
