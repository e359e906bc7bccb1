//! Components that import no function: rule plugins and policies. A call can only compute.
//!
//! Every call gets a new store with a deadline and with bounds on memory and on the length of the result. Nothing remains for the next
//! call, so the same input always gives the same result, unless a bound is reached.

use crate::component::{LoadError, refuse_newer};
use crate::ending::{self, ErrorContext};
use crate::host::Host;
use crate::inspect::Inspection;
use crate::interfaces::is_export;
use crate::limiter::Meter;
use crate::probe::HostcallSizeError;
use crate::stop::Stop;
use crate::ticker::Ticker;
use glovebox_record::{LimitName, Limits};
use std::time::{Duration, Instant};
use wasmtime::component::{Component, Linker};
use wasmtime::{Error, Result, Store, UpdateDeadline};

/// The only interface that such a component may import: types, without a function.
const TYPES: &str = "glovebox:plugin/types@0.1.0";

/// A component without imports that was checked and compiled.
pub(crate) struct IsolatedComponent {
    pub(crate) inspection: Inspection,
    code: Component,
    carried: HostcallSizeError,
    ticker: Ticker,
}

/// The data of the store of one call.
pub(crate) struct IsolatedCall {
    meter: Meter,
}

/// Everything that a call needs to begin: the store, the code and the linker.
pub(crate) struct IsolatedStart<'a> {
    pub(crate) store: &'a mut Store<IsolatedCall>,
    pub(crate) code: &'a Component,
    pub(crate) linker: &'a Linker<IsolatedCall>,
    /// To be set after the component was instantiated.
    pub(crate) started: &'a mut bool,
}

/// Why a call returned no result, as text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallFault(String);

impl Host {
    /// Loads a component of at most `component_bytes`. `check` decides from its bytes whether it may be compiled.
    pub(crate) fn load_isolated(
        &self,
        bytes: &[u8],
        component_bytes: u64,
        check: impl FnOnce(&Inspection) -> Result<(), LoadError>,
    ) -> Result<IsolatedComponent, LoadError> {
        if bytes.len() as u64 > component_bytes {
            return Err(LoadError::TooLarge { bytes: bytes.len() as u64, limit: component_bytes });
        }
        let (inspection, stored) = self.read(bytes)?;
        check(&inspection)?;
        let code = self.code(&inspection, bytes, stored)?;
        let ticker = self.prepared.ticker().map_err(|problem| LoadError::Compiler(problem.to_string()))?.clone();
        let carried = self.prepared.hostcall_size_error.clone();
        Ok(IsolatedComponent { inspection, code, carried, ticker })
    }
}

/// Checks that a component exports this interface and imports no function.
pub(crate) fn check(
    inspection: &Inspection,
    exported: &str,
    imports_error: fn(Vec<String>) -> LoadError,
    exports_error: fn(Vec<String>) -> LoadError,
) -> Result<(), LoadError> {
    refuse_newer(inspection)?;
    let imports = inspection.imports.iter().map(|import| &import.name);
    let imports: Vec<String> = imports.filter(|name| *name != TYPES).cloned().collect();
    if !imports.is_empty() {
        return Err(imports_error(imports));
    }
    let limit = Limits::default().instances;
    if inspection.core_instances > limit {
        return Err(LoadError::TooManyInstances { count: inspection.core_instances, limit });
    }
    match inspection.exports.iter().any(|export| is_export(export, exported)) {
        true => Ok(()),
        false => Err(exports_error(inspection.exports.clone())),
    }
}

impl IsolatedComponent {
    /// Executes one call. Blocks for at most `wall_ms`.
    pub(crate) fn call<T>(
        &self,
        limits: &Limits,
        ask: impl FnOnce(IsolatedStart<'_>) -> Result<T>,
    ) -> Result<T, CallFault> {
        let mut store = self.store(limits);
        let mut started = false;
        let answer = self.linker().and_then(|linker| {
            let (store, started) = (&mut store, &mut started);
            self.ticker.while_guest_runs(|| ask(IsolatedStart { store, code: &self.code, linker: &linker, started }))
        });
        answer.map_err(|error| {
            let circumstances = ErrorContext { limits, hostcall_size_error: &self.carried, stderr_tail: "", started };
            let failure = ending::to_host_failure(&error, &circumstances).outcome.failure;
            CallFault(failure.map_or_else(|| error.to_string(), |failure| failure.reason))
        })
    }

    fn linker(&self) -> Result<Linker<IsolatedCall>> {
        let mut linker = Linker::new(self.code.engine());
        linker.instance(TYPES)?;
        Ok(linker)
    }

    fn store(&self, limits: &Limits) -> Store<IsolatedCall> {
        let mut store = Store::new(self.code.engine(), IsolatedCall { meter: Meter::new(limits) });
        store.limiter(|call| &mut call.meter);
        store.set_hostcall_fuel(usize::try_from(limits.hostcall_bytes).unwrap_or(usize::MAX));
        let deadline = Instant::now() + Duration::from_millis(limits.wall_ms);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| match Instant::now() >= deadline {
            true => Err(Error::new(Stop::Limit(LimitName::WallMs))),
            false => Ok(UpdateDeadline::Continue(1)),
        });
        store
    }
}
