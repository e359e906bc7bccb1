//! The HTTP server of `glovebox serve`: runs and their records, for programs and for the page in a browser.
//!
//! The server decides and keeps nothing. Each answer is a document that a command prints, made by the same function: the
//! program implements [`Desk`](desk::Desk) with these functions. [`ROUTES`](route::ROUTES) lists every route with the
//! right that it needs; the router, the OpenAPI document, the page of the documentation and the tests all use this list.
//!
//! A request passes [`guard`], which compares its `Host` and `Origin` with the names of this server, then a
//! [`Token`](token::Tokens) gives it [`Rights`](right::Rights), then [`parse`] makes a [`Read`](desk::Read) or
//! [`Act`](desk::Act) from path, query and body. `stream` sends records as they are appended. [`connection`] limits the
//! number of connections, and the time of every step of a request.
//!
//! This crate opens no file, no socket and no process: the program gives it accepted connections.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod connection;
pub mod desk;
pub mod guard;
pub mod openapi;
pub mod parse;
pub mod right;
pub mod route;
pub mod server;
pub mod token;

mod answer;
mod output;
mod page;
mod place;
mod stream;
mod watcher;
