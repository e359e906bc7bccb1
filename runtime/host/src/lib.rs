//! The host: loads components that are not trusted, applies grants and limits, and executes one call at a time.
//!
//! Only this crate uses `wasmtime`. It knows neither graphs nor journals nor retries. It gets a [`call::Call`] and returns a
//! [`call::Report`].

#![deny(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

// Input and output of calls.
pub mod call;
mod command_grant;
pub mod grants;
pub mod host_calls;
pub mod input;
pub mod revocation;

// From bytes to a component.
pub mod aot;
pub mod compile;
mod compiled_code;
pub mod component;
mod engine;
pub mod host;
pub mod inspect;
pub mod interfaces;
pub mod isolated;
pub mod judgement;
mod link;
mod load_error;
pub mod policy;
mod probe;
pub mod rules;
pub mod tool_provider;

// From a call to its report. `attempt` has a file for each WIT interface.
pub mod answer;
mod attempt;
mod bindings;
pub mod budget;
mod deadline;
mod ending;
mod limiter;
mod progress;
mod report;
mod run;
mod stdio;
mod stop;
mod ticker;

pub use attempt::exec::operator_in;
pub use attempt::files::READ_BYTES_MAX;
pub use attempt::{agents, llm, tools};
