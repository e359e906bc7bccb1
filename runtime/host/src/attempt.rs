//! One call in progress: everything a guest's imports act on. It is the store's data and lives as long as one call.
//!
//! Each import has its own file; what they share is here: the bounds, the counters, and the record that becomes the report.
//! It refuses to know wasmtime's engine and how the call ends.

pub mod agents;
mod control;
pub(crate) mod exec;
pub(crate) mod files;
mod gateway;
pub(crate) mod hooks;
pub(crate) mod llm;
pub mod tools;
pub(crate) mod wasi_files;

use crate::bindings::types;
use crate::commands::CommandSetting;
use crate::deadline::Deadline;
use crate::grants::FileTier;
use crate::limiter::Meter;
use crate::progress::{Artifact, LogLine, Progress};
use crate::stdio::Output;
use crate::ticker::Ticker;
use agents::{ProgramSetting, Running};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Access;
use glovebox_record::{AttemptId, Limits, Receipt, Refusal};
use glovebox_workspace::refusal::RefusalLog;
use glovebox_workspace::view::{Kind, View};
use hooks::Hooks;
use llm::Conversation;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tools::Tools;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// The data of one store.
pub(crate) struct Attempt {
    /// Live handles; bounded by `resources`.
    pub(crate) table: ResourceTable,
    /// The part of WASI that is not the file system.
    pub(crate) wasi: WasiCtx,
    /// How files are reached.
    pub(crate) tier: FileTier,
    /// The files themselves; none when the call was given none.
    pub(crate) view: Option<Arc<View>>,
    /// Commands; none when the call was given none.
    pub(crate) commands: Option<Arc<CommandSetting>>,
    /// The agent program of the node; none when it names none.
    pub(crate) program: Option<ProgramSetting>,
    /// That program, while it runs.
    pub(crate) running: Option<Running>,
    /// The model and what was asked of it.
    pub(crate) conversation: Conversation,
    /// What runs around the tool calls of the model.
    pub(crate) hooks: Hooks,
    /// Tools of other programs.
    pub(crate) tools: Tools,
    /// Bounds of the call.
    pub(crate) limits: Limits,
    /// Memory, tables and the other counters.
    pub(crate) meter: Meter,
    /// What was refused, shared with the view.
    pub(crate) refusals: Arc<RefusalLog>,
    /// Evidence of commands.
    pub(crate) receipts: Vec<Receipt>,
    /// Kept bytes.
    pub(crate) artifacts: Vec<Artifact>,
    /// Kept log lines.
    pub(crate) log: Vec<LogLine>,
    /// Standard output.
    pub(crate) stdout: Output,
    /// Standard error.
    pub(crate) stderr: Output,
    /// The attempt's id, from which receipts get theirs.
    pub(crate) attempt_id: AttemptId,
    /// The run was canceled.
    pub(crate) canceled: Arc<AtomicBool>,
    /// When the wall time is over.
    pub(crate) deadline: Arc<Deadline>,
    /// Where progress goes.
    pub(crate) progress: Sender<Progress>,
    /// Rests while the guest waits for a command.
    pub(crate) ticker: Ticker,
}

impl Attempt {
    /// What is left of the wall time.
    pub(crate) fn remaining(&self) -> Duration {
        self.deadline.left()
    }

    /// True once the run was canceled.
    pub(crate) fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }

    /// Reports progress, unless the receiver is too slow.
    pub(crate) fn report(&self, progress: Progress) {
        // Progress is a hint by contract: the record is what the report says.
        let _ = self.progress.try_send(progress);
    }

    /// Notes how many handles are live.
    pub(crate) fn count_handles(&mut self) {
        let live = self.table.iter_mut().count() as u64;
        self.meter.resources_peak = self.meter.resources_peak.max(live);
    }

    /// True for a file this attempt was allowed to write and that is there.
    pub(crate) fn wrote(&self, path: &ScopePath) -> bool {
        let Some(view) = &self.view else { return false };
        view.scope().access(path) == Access::Write && view.stat(path).is_ok_and(|found| found.kind == Kind::File)
    }

    /// Records a refusal with the grant that would allow it.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.refusals.record(refusal);
    }
}

impl WasiView for Attempt {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl types::Host for Attempt {}
impl crate::bindings::chat::Host for Attempt {}
