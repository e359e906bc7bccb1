//! Rule plugins: components that get a graph, return findings or a changed graph, and can reach nothing else.
//!
//! The world has no imports: a component that imports any function, whether of WASI or of Glovebox, is not loaded. Every call gets a
//! new store with a deadline and with bounds on memory and on the length of the result. Texts of a rule plugin are untrusted, and the
//! caller checks them.

use crate::component::{LoadError, refuse_newer};
use crate::ending::{self, ErrorContext};
use crate::host::Host;
use crate::inspect::Inspection;
use crate::interfaces::is_export;
use crate::limiter::Meter;
use crate::probe::HostcallSizeError;
use crate::stop::Stop;
use crate::ticker::Ticker;
use contract::Rules;
use glovebox_record::{LimitName, LimitSettings, Limits};
use std::time::{Duration, Instant};
use wasmtime::component::{Component, Linker};
use wasmtime::{Error, Store, UpdateDeadline};

#[allow(unreachable_pub, clippy::all, unused_qualifications)]
mod contract {
    wasmtime::component::bindgen!({ path: "../../wit", world: "glovebox:plugin/rules" });
}

/// A finding of a rule plugin, not yet checked.
pub use contract::exports::glovebox::plugin::graph_rules::Finding;

/// The interface that a rule plugin exports.
const EXPORTED: &str = "graph-rules";
/// The only interface that a rule plugin may import: types, without a function.
const TYPES: &str = "glovebox:plugin/types@0.1.0";

/// Wall time of one call, unless the operator's limit is lower.
const WALL_MS: u64 = 10_000;
/// Maximum length of the result of one call, in bytes.
const ANSWER_BYTES: u64 = 4 << 20;
/// Maximum growth of a graph by a transform, as a factor, unless [`ANSWER_BYTES`] is higher.
const GROWTH_MAX: u64 = 2;

/// A rule plugin that was checked and compiled.
pub struct RuleComponent {
    inspection: Inspection,
    code: Component,
    carried: HostcallSizeError,
    ticker: Ticker,
}

/// Why a call of a rule plugin returned no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RuleFault(String);

struct RuleCall {
    meter: Meter,
}

impl Host {
    /// Loads a rule plugin of at most `component_bytes`. Refuses one that imports any function before it is compiled.
    pub fn load_rules(&self, bytes: &[u8], component_bytes: u64) -> Result<RuleComponent, LoadError> {
        if bytes.len() as u64 > component_bytes {
            return Err(LoadError::TooLarge { bytes: bytes.len() as u64, limit: component_bytes });
        }
        let (inspection, stored) = self.read(bytes)?;
        check(&inspection)?;
        let code = self.code(&inspection, bytes, stored)?;
        let ticker = self.prepared.ticker().map_err(|problem| LoadError::Compiler(problem.to_string()))?.clone();
        let carried = self.prepared.hostcall_size_error.clone();
        Ok(RuleComponent { inspection, code, carried, ticker })
    }
}

/// Checks that a component exports rules and imports no function.
pub fn check(inspection: &Inspection) -> Result<(), LoadError> {
    refuse_newer(inspection)?;
    let imports = inspection.imports.iter().map(|import| &import.name);
    let imports: Vec<String> = imports.filter(|name| *name != TYPES).cloned().collect();
    if !imports.is_empty() {
        return Err(LoadError::RulesImport(imports));
    }
    let limit = Limits::default().instances;
    if inspection.core_instances > limit {
        return Err(LoadError::TooManyInstances { count: inspection.core_instances, limit });
    }
    if !inspection.exports.iter().any(|export| is_export(export, EXPORTED)) {
        return Err(LoadError::NoRules(inspection.exports.clone()));
    }
    Ok(())
}

impl RuleComponent {
    /// Returns the result of inspecting the bytes.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// Asks for findings about a graph, given as JSON. `operator` lowers the limits. Blocks for at most `wall_ms`.
    pub fn lint(&self, graph: &str, operator: &LimitSettings) -> Result<Vec<Finding>, RuleFault> {
        self.call(operator, ANSWER_BYTES, |rules, store| {
            rules.glovebox_plugin_graph_rules().call_lint(store, &graph.to_owned())
        })
    }

    /// Asks for a changed graph; `None` if the graph stays as it is. The inner error is one that the component returned.
    pub fn transform(
        &self,
        graph: &str,
        operator: &LimitSettings,
    ) -> Result<Result<Option<String>, String>, RuleFault> {
        let answer_bytes = ANSWER_BYTES.max((graph.len() as u64).saturating_mul(GROWTH_MAX));
        self.call(operator, answer_bytes, |rules, store| {
            rules.glovebox_plugin_graph_rules().call_transform(store, &graph.to_owned())
        })
    }

    fn call<T>(
        &self,
        operator: &LimitSettings,
        answer_bytes: u64,
        ask: impl FnOnce(&Rules, &mut Store<RuleCall>) -> wasmtime::Result<T>,
    ) -> Result<T, RuleFault> {
        let mut limits = Limits { wall_ms: WALL_MS, hostcall_bytes: answer_bytes, ..Limits::default() };
        limits.lower(operator);
        let mut store = self.store(&limits);
        let mut started = false;
        let answer = self.linker().and_then(|linker| {
            self.ticker.while_guest_runs(|| {
                let rules = Rules::instantiate(&mut store, &self.code, &linker)?;
                started = true;
                ask(&rules, &mut store)
            })
        });
        answer.map_err(|error| {
            let circumstances =
                ErrorContext { limits: &limits, hostcall_size_error: &self.carried, stderr_tail: "", started };
            let failure = ending::to_host_failure(&error, &circumstances).outcome.failure;
            RuleFault(failure.map_or_else(|| error.to_string(), |failure| failure.reason))
        })
    }

    fn linker(&self) -> wasmtime::Result<Linker<RuleCall>> {
        let mut linker = Linker::new(self.code.engine());
        linker.instance(TYPES)?;
        Ok(linker)
    }

    fn store(&self, limits: &Limits) -> Store<RuleCall> {
        let mut store = Store::new(self.code.engine(), RuleCall { meter: Meter::new(limits) });
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
