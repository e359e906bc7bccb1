//! Untrusted components: load, digest, grants, limits, one call at a time.
//!
//! `wasmtime` appears only here. This crate knows no graph, no journal and no retry; it is handed a [`call::Call`] and gives
//! back a [`call::Report`].

#![deny(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

// What others hand in and get back.
pub mod call;
pub mod grants;
pub mod input;
pub mod model;
pub mod steering;

// From bytes to a component.
pub mod aot;
pub mod compile;
mod complexity;
pub mod component;
mod engine;
pub mod host;
pub mod inspect;
mod instance_count;
mod link;
mod probe;
pub mod provided;
pub mod refused_bytes;
pub mod rules;

// From a call to its report.
mod answer;
mod attempt;
mod deadline;
mod ending;
mod limiter;
mod report;
mod run;
mod stdio;
mod stop;
mod ticker;

// The contract, one file per interface.
pub mod agents;
mod bindings;
pub mod budget;
mod control;
mod exec;
mod files;
mod gateway;
mod hooks;
mod llm;
pub mod tools;
mod wasi_files;
pub use exec::operator_in;
pub use files::READ_BYTES_MAX;
