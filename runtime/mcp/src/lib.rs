//! The server of `glovebox mcp`: runs for a coding agent, over the Model Context Protocol on two streams.
//!
//! [`TOOLS`](tool::TOOLS) lists every tool with the right that it needs. A call becomes the same [`Read`] or [`Act`] as a
//! request over HTTP, with the same checks: `call` maps its arguments to a route of `glovebox_serve`. `pages` cuts an
//! answer into pages and marks it as data. `session` knows what this client has seen, because a start needs a plan
//! and an apply needs changes that were shown. `stream` reads and writes lines; `rmcp` has the protocol.
//!
//! The client is an agent, so it sees what builders see ([`Sight::Builder`]), whatever else it may do.
//!
//! This crate opens no file, no socket and no process.
//!
//! [`Read`]: glovebox_serve::desk::Read
//! [`Act`]: glovebox_serve::desk::Act
//! [`Sight::Builder`]: glovebox_serve::right::Sight::Builder
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod server;
pub mod stream;
pub mod tool;

mod call;
mod pages;
mod session;
mod wait;
