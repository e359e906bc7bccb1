//! The host: loads components and executes calls.
//!
//! A component is compiled once and identified by its digest. Every call gets a new wasmtime store, so that no state remains for the
//! next call. A call runs on its own thread or in the caller's task. The host knows neither graphs nor retries.

use crate::aot::{self, AotCounts, AotStore, TrustedCode};
use crate::attempt::Attempt;
use crate::bindings::ProvidedPre;
use crate::call::{Call, Report};
use crate::compile::Compiler;
use crate::component::{Component, LoadError, Needs, check_handler};
use crate::engine::{self, HostEngine};
use crate::inspect::{InspectError, Inspection, code_digest, inspect, read_validated};
use crate::{link, run};
use futures_util::FutureExt;
use glovebox_record::{Digest, Limits};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::{Component as Code, Linker};

/// Failure reason of a call whose thread panicked.
const LOST: &str = "the thread of the call panicked";
const CLOSED: &str = "the host is closed";

/// Configuration of a host.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Folder for compiled components, never inside a workspace; `None` if each process compiles them.
    pub cache_dir: Option<PathBuf>,
    /// Maximum size of that folder, in bytes. The least recently used components are removed.
    pub cache_bytes_max: u64,
    /// The process that compiles components which are not in the folder.
    pub compiler: Compiler,
    /// Maximum number of concurrent calls, at least 1. Further calls wait.
    pub pool_slots: u32,
    /// Called for each compilation. It must call the work that it gets.
    pub while_compiling: WhileCompiling,
}

/// Executes a compilation. It can show progress while the work is done.
pub type WhileCompiling = fn(&Compilation<'_>, work: &mut dyn FnMut());

/// A component that is being compiled.
#[derive(Debug, Clone, Copy)]
pub struct Compilation<'a> {
    /// Name in the component's manifest, if there is one.
    pub name: Option<&'a str>,
    /// Length of the component in bytes.
    pub bytes: u64,
}

impl HostConfig {
    /// Returns a configuration for tests and benches that compiles in this process and without bounds.
    pub fn in_process(cache_dir: Option<PathBuf>, pool_slots: u32) -> Self {
        let (cache_bytes_max, compiler) = (aot::BYTES_MAX, Compiler::InProcess);
        Self { cache_dir, cache_bytes_max, compiler, pool_slots, while_compiling: |_, work| work() }
    }
}

/// Why a host could not be created.
#[derive(Debug, thiserror::Error)]
#[error("the WebAssembly engine cannot start: {0}")]
pub struct HostError(String);

/// Loads and executes components.
///
/// Denied to every component, whatever its grants are: network, environment variables, arguments, standard input,
/// processes, files other than through the interfaces in `wit/`, and memory of other calls.
pub struct Host {
    pub(crate) prepared: HostEngine,
    pub(crate) linker: Linker<Attempt>,
    aot: Option<AotStore>,
    compiler: Compiler,
    while_compiling: WhileCompiling,
    read: Mutex<HashMap<Digest, (Inspection, Option<Code>)>>,
    loaded: Mutex<HashMap<Digest, Arc<Component>>>,
    slots: Semaphore,
}

impl Host {
    /// Starts an engine. If the cache folder cannot be used or trusted, a warning is logged and the folder is not used.
    pub fn new(config: HostConfig) -> Result<Host, HostError> {
        let slots = config.pool_slots.max(1);
        let open = |engine: &Engine| open_store(config.cache_dir.as_deref()?, engine, config.cache_bytes_max);
        let (prepared, aot) = engine::prepare(slots, &open).map_err(|problem| HostError(problem.to_string()))?;
        let linker = link::linker(&prepared.engine).map_err(|problem| HostError(problem.to_string()))?;
        let slots = Semaphore::new(usize::try_from(slots).unwrap_or(Semaphore::MAX_PERMITS));
        let HostConfig { compiler, while_compiling, .. } = config;
        let (read, loaded) = Default::default();
        Ok(Host { prepared, linker, aot, compiler, while_compiling, read, loaded, slots })
    }

    /// As [`Host::load_within`], with the default of the limit `component_bytes`.
    pub fn load(&self, bytes: &[u8]) -> Result<Arc<Component>, LoadError> {
        self.load_within(bytes, Limits::default().component_bytes)
    }

    /// Loads a component of at most `component_bytes`. Size, imports and exports are checked before anything is compiled, and all
    /// missing imports are reported together. Compiling blocks the caller for a limited time.
    pub fn load_within(&self, bytes: &[u8], component_bytes: u64) -> Result<Arc<Component>, LoadError> {
        if bytes.len() as u64 > component_bytes {
            return Err(LoadError::TooLarge { bytes: bytes.len() as u64, limit: component_bytes });
        }
        let digest = Digest::hash(bytes);
        if let Some(component) = self.loaded().get(&digest) {
            return Ok(Arc::clone(component));
        }
        let (inspection, stored) = self.read_of(bytes, digest)?;
        check_handler(&inspection)?;
        let code = self.code(&inspection, bytes, stored)?;
        let pre = self.linker.instantiate_pre(&code).and_then(ProvidedPre::new);
        let pre = pre.map_err(|problem| LoadError::Link(format!("{problem:#}")))?;
        let component = Arc::new(Component { inspection, pre, needs: Needs::of_code(&code) });
        self.loaded().insert(digest, Arc::clone(&component));
        Ok(component)
    }

    /// Executes one call on its own thread and returns its report. No component can make this fail. Needs a tokio runtime with time
    /// enabled.
    ///
    /// Waits for a free slot. The wait is not part of the wall time. Dropping the future does not stop the call. To stop
    /// it, set [`Call::canceled`]: the report follows within a few ticks, and no part of the call runs after that.
    pub async fn execute(&self, component: &Arc<Component>, call: Call) -> Report {
        let Ok(_slot) = self.slots.acquire().await else {
            return run::fault(&call.limits, CLOSED);
        };
        let (component, prepared) = (Arc::clone(component), self.prepared.clone());
        let lost = run::fault(&call.limits, LOST);
        let runtime = tokio::runtime::Handle::current();
        let call = move || runtime.block_on(run::run(&component, call, &prepared));
        tokio::task::spawn_blocking(call).await.unwrap_or(lost)
    }

    /// As [`Host::execute`], but on the current thread, which is blocked and must belong to a tokio runtime.
    pub fn execute_here(&self, component: &Component, call: Call) -> Report {
        tokio::runtime::Handle::current().block_on(self.execute_in_turn(component, call))
    }

    /// As [`Host::execute`], but in the caller's task. The guest yields at every tick. Work of the host for the guest blocks the task.
    pub async fn execute_in_turn(&self, component: &Component, call: Call) -> Report {
        let limits = call.limits;
        let called = async {
            let Ok(_slot) = self.slots.acquire().await else {
                return run::fault(&limits, CLOSED);
            };
            run::run(component, call, &self.prepared).await
        };
        AssertUnwindSafe(called).catch_unwind().await.unwrap_or_else(|_| run::fault(&limits, LOST))
    }

    /// Returns true if instances come from a pool, and false if a pool does not work on this machine.
    pub fn is_pooled(&self) -> bool {
        self.prepared.pooled
    }

    /// Returns the counts of the store of compiled components, or `None` if there is no store.
    pub fn aot_counts(&self) -> Option<AotCounts> {
        self.aot.as_ref().map(AotStore::counts)
    }

    /// Inspects bytes without compiling them. Bytes whose code is in the store are not validated again.
    pub fn inspect(&self, bytes: &[u8]) -> Result<Inspection, InspectError> {
        self.read(bytes).map(|(inspection, _)| inspection)
    }

    pub(crate) fn read(&self, bytes: &[u8]) -> Result<(Inspection, Option<Code>), InspectError> {
        self.read_of(bytes, Digest::hash(bytes))
    }

    /// Inspects bytes, and returns their code if the store has it. Only inspected components are stored, so a stored
    /// component with a valid MAC is not validated again. The store knows the sections that are compiled, and the custom sections are
    /// read each time. The result is cached by digest.
    fn read_of(&self, bytes: &[u8], digest: Digest) -> Result<(Inspection, Option<Code>), InspectError> {
        if let Some(known) = locked(&self.read).get(&digest) {
            return Ok(known.clone());
        }
        let stored = self.aot.as_ref().and_then(|store| store.load(&self.prepared.engine, code_digest(bytes)));
        let inspection = if stored.is_some() { read_validated(digest, bytes)? } else { inspect(bytes)? };
        locked(&self.read).insert(digest, (inspection.clone(), stored.clone()));
        Ok((inspection, stored))
    }

    /// Returns the stored code, or compiles the component and stores the result.
    pub(crate) fn code(&self, inspection: &Inspection, bytes: &[u8], stored: Option<Code>) -> Result<Code, LoadError> {
        if let Some(code) = stored {
            return Ok(code);
        }
        let engine = &self.prepared.engine;
        let name = inspection.manifest.as_ref().map(|manifest| manifest.name.as_str());
        let mut compiled = Err(LoadError::Compiler("the compiler was not started".to_owned()));
        let mut work = || compiled = self.compiler.compile(engine, bytes);
        (self.while_compiling)(&Compilation { name, bytes: inspection.bytes }, &mut work);
        let compiled = compiled?;
        let code = aot::revive(engine, &TrustedCode::fresh(&compiled));
        let code =
            code.map_err(|problem| LoadError::Compiler(format!("its machine code cannot be used: {problem}")))?;
        if let Some(store) = &self.aot {
            store.store(code_digest(bytes), &compiled);
        }
        Ok(code)
    }

    fn loaded(&self) -> MutexGuard<'_, HashMap<Digest, Arc<Component>>> {
        locked(&self.loaded)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_store(dir: &Path, engine: &Engine, bytes_max: u64) -> Option<AotStore> {
    let opened = AotStore::open(dir, engine, bytes_max);
    opened
        .inspect_err(|problem| {
            tracing::warn!(
                "compiled components are not kept in `{}`: {problem}; each command compiles them again until \
                 GLOVEBOX_CACHE_DIR names a folder of your own",
                dir.display()
            );
        })
        .ok()
}
