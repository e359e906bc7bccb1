//! One call in progress: everything a guest's imports act on. It is the store's data and lives as long as one call.
//!
//! Each interface of the contract has one file or folder here, and one state. [`Attempt`] is the list of them; what all of them need is
//! in `call_context`. It refuses to know wasmtime's engine and how the call ends.

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

/// The data of one store.
pub(crate) struct Attempt {
    /// Identity, bounds, time and progress of the call, for all interfaces.
    pub(crate) call: CallContext,
    /// `wasi:*`, but for the file system.
    pub(crate) wasi: WasiState,
    /// `files`, and the file system of `wasi`.
    pub(crate) files: FileState,
    /// `control`.
    pub(crate) control: ControlState,
    /// `exec`.
    pub(crate) exec: ExecState,
    /// `agents`.
    pub(crate) agents: AgentState,
    /// `llm`.
    pub(crate) llm: LlmState,
    /// `tools`.
    pub(crate) tools: ToolState,
}

impl types::Host for Attempt {}
