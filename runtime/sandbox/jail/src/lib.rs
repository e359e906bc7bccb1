//! What a host and its jail helper say to each other: the policy of one jail, and the frames of its control socket.
//!
//! The library is types, the reading and writing of frames, and the look at one process, shared by `glovebox-sandbox` and the helper in `main.rs`.
//! Everything the helper does is told to it over the socket; its arguments and environment are empty, so that nothing of the
//! policy shows in `/proc`.

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod control;
pub mod policy;
#[cfg(target_os = "linux")]
pub mod process;
pub mod subject;
pub mod wire;
