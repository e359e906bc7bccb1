//! WASI without files: live resource handles, standard output, clocks and random bytes.
//!
//! Denied: arguments, environment, standard input, sockets.

use super::Attempt;
use crate::stdio::GuestOutput;
use glovebox_record::Limits;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// Maximum number of random bytes that a guest gets in one call.
const RANDOM_BYTES_MAX: u64 = 1 << 20;

/// The state of `wasi:*`, except the file system.
pub(crate) struct WasiState {
    /// Live resource handles of all interfaces. Their number is bounded by the limit `resources`.
    pub(crate) table: ResourceTable,
    /// Maximum number of live handles that was observed.
    pub(crate) handles_peak: u64,
    /// State of wasmtime's implementation of these interfaces.
    pub(crate) ctx: WasiCtx,
    /// Standard output.
    pub(crate) stdout: GuestOutput,
    /// Standard error.
    pub(crate) stderr: GuestOutput,
}

impl WasiState {
    pub(crate) fn new(limits: &Limits) -> Self {
        let (stdout, stderr) = (GuestOutput::new(limits.output_bytes), GuestOutput::new(limits.output_bytes));
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(limits.resources).unwrap_or(usize::MAX));
        let mut builder = WasiCtx::builder();
        builder.stdout(stdout.clone()).stderr(stderr.clone());
        // A file operation on another thread would cost five times as much.
        builder.allow_blocking_current_thread(true).max_random_size(RANDOM_BYTES_MAX);
        Self { table, handles_peak: 0, ctx: builder.build(), stdout, stderr }
    }

    /// Updates the maximum number of live handles.
    pub(crate) fn count_handles(&mut self) {
        let live = self.table.iter_mut().count() as u64;
        self.handles_peak = self.handles_peak.max(live);
    }
}

impl WasiView for Attempt {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi.ctx, table: &mut self.wasi.table }
    }
}
