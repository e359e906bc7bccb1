//! Asks language models: one kind of request and answer, and an adapter for each wire format.
//!
//! In reading order: [`chat`] is what is asked and answered, [`error`] the table of what can go wrong, [`family`] the kinds of providers, [`target`] where a model is
//! reached, [`image`] an image in a tool's result, [`ask`] one call with its checks and retries, [`provider`] the wire formats, and
//! `http` the little HTTP that they need.
//! [`gateway`] is the border of programs that ask by themselves.
//! Calls block and end early when they are canceled. This crate knows no guest, no pipeline and no file: keys and certificates are
//! handed to it as values.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod ask;
pub mod chat;
pub mod error;
pub mod family;
pub mod gateway;
mod http;
pub mod image;
pub mod key;
pub mod patience;
pub mod provider;
pub mod target;
