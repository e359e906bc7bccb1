//! Rule plugins: components that get a graph, return findings or a changed graph, and can reach nothing else.
//!
//! The world has no imports: a component that imports any function, whether of WASI or of Glovebox, is not loaded. Every call gets a
//! new store with a deadline and with bounds on memory and on the length of the result. Texts of a rule plugin are untrusted, and the
//! caller checks them.

use crate::component::LoadError;
use crate::host::Host;
use crate::inspect::Inspection;
pub use crate::isolated::CallFault as RuleFault;
use crate::isolated::{self, IsolatedCall, IsolatedComponent, IsolatedStart};
use contract::Rules;
use glovebox_record::{LimitSettings, Limits};
use wasmtime::Store;

#[allow(unreachable_pub, clippy::all, unused_qualifications)]
mod contract {
    wasmtime::component::bindgen!({ path: "../../wit", world: "glovebox:plugin/rules" });
}

/// A finding of a rule plugin, not yet checked.
pub use contract::exports::glovebox::plugin::graph_rules::Finding;

/// The interface that a rule plugin exports.
const EXPORTED: &str = "graph-rules";

/// Wall time of one call, unless the operator's limit is lower.
const WALL_MS: u64 = 10_000;
/// Maximum length of the result of one call, in bytes.
const ANSWER_BYTES: u64 = 4 << 20;
/// Maximum growth of a graph by a transform, as a factor, unless [`ANSWER_BYTES`] is higher.
const GROWTH_MAX: u64 = 2;

/// A rule plugin that was checked and compiled.
pub struct RuleComponent(IsolatedComponent);

impl Host {
    /// Loads a rule plugin of at most `component_bytes`. Refuses one that imports any function before it is compiled.
    pub fn load_rules(&self, bytes: &[u8], component_bytes: u64) -> Result<RuleComponent, LoadError> {
        Ok(RuleComponent(self.load_isolated(bytes, component_bytes, check)?))
    }
}

/// Checks that a component exports rules and imports no function.
pub fn check(inspection: &Inspection) -> Result<(), LoadError> {
    isolated::check(inspection, EXPORTED, LoadError::RulesImport, LoadError::NoRules)
}

impl RuleComponent {
    /// Returns the result of inspecting the bytes.
    pub fn inspection(&self) -> &Inspection {
        &self.0.inspection
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
        ask: impl FnOnce(&Rules, &mut Store<IsolatedCall>) -> wasmtime::Result<T>,
    ) -> Result<T, RuleFault> {
        let mut limits = Limits { wall_ms: WALL_MS, hostcall_bytes: answer_bytes, ..Limits::default() };
        limits.lower(operator);
        self.0.call(&limits, |IsolatedStart { store, code, linker, started }| {
            let rules = Rules::instantiate(&mut *store, code, linker)?;
            *started = true;
            ask(&rules, store)
        })
    }
}
