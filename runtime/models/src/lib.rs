//! Client for language models: one type of request and answer, and an adapter for each wire format.
//!
//! In reading order: [`chat`] defines requests and answers, [`error`] the table of errors, [`family`] the families of providers,
//! [`target`] the address and key of a model, [`image`] images in tool results, [`ask`] one call with its checks and retries,
//! [`provider`] the wire formats, `quota` the time at which a used up quota resumes, and `http` a small HTTP client. [`gateway`] forwards the requests of programs that ask their model
//! themselves. Calls block, and end early if they are canceled. This crate does not know guests, pipelines or files: keys and
//! certificates are passed to it as values.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod ask;
pub mod chat;
pub mod deadline;
pub mod error;
pub mod family;
pub mod gateway;
mod http;
pub mod image;
pub mod key;
pub mod provider;
mod quota;
pub mod target;
