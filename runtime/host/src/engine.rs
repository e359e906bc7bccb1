//! The wasmtime engine: which language guests may use, how they are interrupted, where their memories come from.
//!
//! One engine per host and one ticker thread per engine. The ticker holds a weak handle, so it ends with the engine.

use crate::probe::{self, CarriedTooMuch};
use std::time::Duration;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Result, WasmBacktraceDetails};

/// Time between two looks at a running guest: the precision of the wall limit and of cancellation.
const TICK: Duration = Duration::from_millis(10);

/// Memories, tables and core instances the pool keeps ready for each slot; a component that needs more does not link.
const PER_SLOT_MEMORIES: u32 = 4;
const PER_SLOT_TABLES: u32 = 16;
const PER_SLOT_INSTANCES: u32 = 64;
/// The most `table_elements` can be raised to where there is a pool.
const PER_TABLE_ELEMENTS: usize = 100_000;

/// An engine that has been tried out.
pub(crate) struct Prepared {
    pub(crate) engine: Engine,
    /// False when the pooling allocator did not work here.
    pub(crate) pooled: bool,
    pub(crate) carried_too_much: CarriedTooMuch,
}

/// Makes an engine with a pool if one works on this machine, else without.
pub(crate) fn prepare(slots: u32) -> Result<Prepared> {
    let pooled = Engine::new(config().allocation_strategy(pool(slots))).and_then(|engine| {
        let carried_too_much = probe::run(&engine)?;
        Ok(Prepared { engine, pooled: true, carried_too_much })
    });
    let prepared = pooled.or_else(|problem| {
        tracing::info!(%problem, "pooling allocator does not work here, instances are allocated on demand");
        let engine = Engine::new(&config())?;
        let carried_too_much = probe::run(&engine)?;
        Ok::<_, wasmtime::Error>(Prepared { engine, pooled: false, carried_too_much })
    })?;
    start_ticking(&prepared.engine)?;
    Ok(prepared)
}

/// An engine that only compiles, for the engines that [`prepare`] makes: same code, no pool, which would take terabytes of address space.
pub(crate) fn compiler() -> Result<Engine> {
    Engine::new(&config())
}

fn config() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true).concurrency_support(false);
    // Everything outside the language `inspect` validates is off; see there. Several memories are in the code that wasmtime makes
    // for a call between two nested components.
    config.wasm_multi_memory(true).wasm_memory64(false).wasm_relaxed_simd(false);
    // Names of functions are enough; file and line would make the compiled code carry debug sections.
    config.wasm_backtrace_details(WasmBacktraceDetails::Disable);
    config
}

fn pool(slots: u32) -> InstanceAllocationStrategy {
    let slots = slots.max(1);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots).total_stacks(slots);
    pool.total_memories(slots.saturating_mul(PER_SLOT_MEMORIES)).max_memories_per_component(PER_SLOT_MEMORIES);
    pool.total_tables(slots.saturating_mul(PER_SLOT_TABLES)).max_tables_per_component(PER_SLOT_TABLES);
    pool.max_tables_per_module(PER_SLOT_TABLES).table_elements(PER_TABLE_ELEMENTS);
    pool.total_core_instances(slots.saturating_mul(PER_SLOT_INSTANCES));
    pool.max_core_instances_per_component(PER_SLOT_INSTANCES);
    pool.linear_memory_keep_resident(1 << 20).table_keep_resident(64 << 10);
    InstanceAllocationStrategy::Pooling(pool)
}

fn start_ticking(engine: &Engine) -> Result<()> {
    let weak = engine.weak();
    let tick = move || {
        while let Some(engine) = weak.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    };
    std::thread::Builder::new().name("glovebox-epoch".to_owned()).spawn(tick)?;
    Ok(())
}
