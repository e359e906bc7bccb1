//! The state of one call in progress, which the guest's imports use. It is the data of the wasmtime store and lives as
//! long as the call.
//!
//! Each WIT interface has one file or folder here, and one state. [`Attempt`] lists these states; `call_context` has
//! the state that all of them need. This module knows neither wasmtime's engine nor how a call ends.

pub mod agents;
pub(crate) mod call_context;
pub(crate) mod control;
pub(crate) mod exec;
pub(crate) mod files;
pub mod llm;
pub mod tools;
pub(crate) mod wasi;
pub(crate) mod wasi_files;

use crate::bindings::types;
use agents::AgentState;
use call_context::CallContext;
use control::ControlState;
use exec::ExecState;
use files::FileState;
use llm::LlmState;
use tools::ToolState;
use wasi::WasiState;

/// The data of one wasmtime store.
pub(crate) struct Attempt {
    /// Identity, bounds, time and progress of the call, for all interfaces.
    pub(crate) call: CallContext,
    /// State of `wasi:*`, except the file system.
    pub(crate) wasi: WasiState,
    /// State of `files` and of the file system of `wasi`.
    pub(crate) files: FileState,
    /// State of `control`.
    pub(crate) control: ControlState,
    /// State of `exec`.
    pub(crate) exec: ExecState,
    /// State of `agents`.
    pub(crate) agents: AgentState,
    /// State of `llm`.
    pub(crate) llm: LlmState,
    /// State of `tools`.
    pub(crate) tools: ToolState,
}

impl types::Host for Attempt {}
