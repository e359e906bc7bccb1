//! The wasmtime engine: the WebAssembly features that guests may use, how guests are interrupted, and how memories are allocated.
//!
//! There is one engine for each host. Its memories are reused: after a call, only the pages that the guest wrote are reset, if the
//! kernel can list them.

use crate::aot::AotStore;
use crate::probe::{self, HostcallSizeError};
use crate::ticker::Ticker;
use std::io;
use std::sync::{Arc, OnceLock};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Result, WasmBacktraceDetails,
};

/// Components that one call of a stage can run at a time: its own, and the tool provider that it waits for.
const PER_CALL_COMPONENTS: u32 = 2;
/// Memories, tables and core instances that the pool reserves for each component. A component that needs more cannot be instantiated.
const PER_SLOT_MEMORIES: u32 = 4;
const PER_SLOT_TABLES: u32 = 16;
const PER_SLOT_INSTANCES: u32 = 64;
/// Maximum of `table_elements` if there is a pool.
const PER_TABLE_ELEMENTS: usize = 100_000;
/// Maximum size in bytes of a memory's written pages that stay mapped and are cleared between two calls. The next call has no page
/// faults for them.
const WRITTEN_KEPT_BYTES: usize = 4 << 20;
/// As [`WRITTEN_KEPT_BYTES`], if the kernel cannot list written pages: the whole beginning of the memory is cleared.
const BEGINNING_KEPT_BYTES: usize = 1 << 20;
const TABLE_KEPT_BYTES: usize = 64 << 10;

/// An engine on which the self-test of [`crate::probe`] has passed.
#[derive(Clone)]
pub(crate) struct HostEngine {
    pub(crate) engine: Engine,
    /// False if the pooling allocator does not work on this machine.
    pub(crate) pooled: bool,
    pub(crate) hostcall_size_error: HostcallSizeError,
    /// The ticker, which is started when the first guest runs.
    ticker: Arc<OnceLock<Ticker>>,
}

impl HostEngine {
    /// Returns the ticker of the engine, without which no guest may run.
    pub(crate) fn ticker(&self) -> io::Result<&Ticker> {
        if let Some(ticker) = self.ticker.get() {
            return Ok(ticker);
        }
        let started = Ticker::start(&self.engine)?;
        // If two threads start a ticker, the first one is used and the other one ends.
        Ok(self.ticker.get_or_init(|| started))
    }
}

/// How memories of the pool are reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemoryReset {
    /// The kernel lists the pages that a guest wrote (`PAGEMAP_SCAN`, Linux 6.7), and only these are cleared.
    WrittenPages,
    /// The beginning of the memory is cleared, and the rest is unmapped.
    Beginning,
}

/// Creates an engine with a pool if that works on this machine, and without one otherwise. `open` opens the store of compiled components.
pub(crate) fn prepare(
    slots: u32,
    open: &dyn Fn(&Engine) -> Option<AotStore>,
) -> Result<(HostEngine, Option<AotStore>)> {
    let pooled = |reset| {
        let engine = Engine::new(config().allocation_strategy(pool(slots, reset)));
        engine.and_then(|engine| try_out(engine, true, open))
    };
    let pooled = pooled(MemoryReset::WrittenPages).or_else(|problem| {
        tracing::debug!(%problem, "the kernel does not list written pages, or has no room for a pool");
        pooled(MemoryReset::Beginning)
    });
    pooled.or_else(|problem| {
        tracing::info!(%problem, "pooling allocator does not work here, instances are allocated on demand");
        try_out(Engine::new(&config())?, false, open)
    })
}

fn try_out(
    engine: Engine,
    pooled: bool,
    open: &dyn Fn(&Engine) -> Option<AotStore>,
) -> Result<(HostEngine, Option<AotStore>)> {
    let store = open(&engine);
    let hostcall_size_error = probe::run(&engine, store.as_ref())?;
    Ok((HostEngine { engine, pooled, hostcall_size_error, ticker: Arc::default() }, store))
}

/// Returns an engine that only compiles. Its code runs on the engines that [`prepare`] creates. It has no pool, which would take
/// terabytes of address space.
pub(crate) fn compiler() -> Result<Engine> {
    Engine::new(&config())
}

fn config() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true).concurrency_support(false);
    // All features that [`crate::inspect`] does not allow are off. Multiple memories are an exception: wasmtime itself generates code
    // that uses them for a call between two nested components.
    config.wasm_multi_memory(true).wasm_memory64(false).wasm_relaxed_simd(false);
    // Function names are enough. With file and line, the compiled code would contain debug sections.
    config.wasm_backtrace_details(WasmBacktraceDetails::Disable);
    config
}

fn pool(slots: u32, reset: MemoryReset) -> InstanceAllocationStrategy {
    let slots = slots.max(1).saturating_mul(PER_CALL_COMPONENTS);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots).total_stacks(slots);
    pool.total_memories(slots.saturating_mul(PER_SLOT_MEMORIES)).max_memories_per_component(PER_SLOT_MEMORIES);
    pool.total_tables(slots.saturating_mul(PER_SLOT_TABLES)).max_tables_per_component(PER_SLOT_TABLES);
    pool.max_tables_per_module(PER_SLOT_TABLES).table_elements(PER_TABLE_ELEMENTS);
    pool.total_core_instances(slots.saturating_mul(PER_SLOT_INSTANCES));
    pool.max_core_instances_per_component(PER_SLOT_INSTANCES);
    let (kept_bytes, scan) = match reset {
        MemoryReset::WrittenPages => (WRITTEN_KEPT_BYTES, Enabled::Yes),
        MemoryReset::Beginning => (BEGINNING_KEPT_BYTES, Enabled::No),
    };
    pool.linear_memory_keep_resident(kept_bytes).table_keep_resident(TABLE_KEPT_BYTES).pagemap_scan(scan);
    InstanceAllocationStrategy::Pooling(pool)
}
