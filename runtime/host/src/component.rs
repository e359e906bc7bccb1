//! A loaded component: what its bytes declare, and its compiled code.
//!
//! A component can be called any number of times concurrently. Every call gets a new instance.

use crate::attempt::Attempt;
use crate::bindings::ProvidedPre;
use crate::inspect::Inspection;
use crate::interfaces::{ImportState, is_export, newer_export, release};
pub use crate::load_error::LoadError;
use glovebox_record::{Digest, LimitName, Limits};
use wasmtime::component::Component as Code;

/// A component that was checked, compiled and linked.
pub struct Component {
    pub(crate) inspection: Inspection,
    pub(crate) pre: ProvidedPre<Attempt>,
    pub(crate) needs: Needs,
}

/// Totals that the component's core modules declare.
pub(crate) struct Needs {
    memories: u64,
    tables: u64,
}

impl Needs {
    pub(crate) fn of_code(code: &Code) -> Self {
        let required = code.resources_required();
        Self {
            memories: required.as_ref().map_or(0, |required| u64::from(required.num_memories)),
            tables: required.as_ref().map_or(0, |required| u64::from(required.num_tables)),
        }
    }

    /// Returns the number that the limit `instances` bounds: the largest of the numbers of instances, memories and tables.
    pub(crate) fn instances(&self, inspection: &Inspection) -> u64 {
        inspection.core_instances.max(self.memories).max(self.tables)
    }

    /// Returns the limit that the component's binary itself exceeds, if there is one.
    pub(crate) fn over(&self, inspection: &Inspection, limits: &Limits) -> Option<LimitName> {
        if inspection.bytes > limits.component_bytes {
            return Some(LimitName::ComponentBytes);
        }
        (self.instances(inspection) > limits.instances).then_some(LimitName::Instances)
    }
}

impl Component {
    /// Returns the BLAKE3 hash of the bytes, which identifies the component.
    pub fn digest(&self) -> Digest {
        self.inspection.digest
    }

    /// Returns the number that the limit `instances` bounds: the largest of the numbers of instances, memories and tables.
    pub(crate) fn instances(&self) -> u64 {
        self.needs.instances(&self.inspection)
    }

    /// Returns the result of inspecting the bytes.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }
}

/// Checks that a component is a handler that this host can run: its imports, its number of instances and the exported stage. Only the
/// bytes are used. All missing imports are reported together.
pub fn check_handler(inspection: &Inspection) -> Result<(), LoadError> {
    refuse_newer(inspection)?;
    let refused: Vec<_> = inspection.imports.iter().filter(|i| i.state != ImportState::Provided).cloned().collect();
    if !refused.is_empty() {
        return Err(LoadError::Imports(refused));
    }
    let limit = Limits::default().instances;
    if inspection.core_instances > limit {
        return Err(LoadError::TooManyInstances { count: inspection.core_instances, limit });
    }
    if !inspection.exports.iter().any(|export| is_export(export, "stage")) {
        return Err(LoadError::NoStage(inspection.exports.clone()));
    }
    Ok(())
}

/// Refuses a component that was built against a later version of the plugin interface. Names the latest version that it needs.
pub(crate) fn refuse_newer(inspection: &Inspection) -> Result<(), LoadError> {
    let imports = inspection.imports.iter().filter_map(|import| match &import.state {
        ImportState::Newer { needed, .. } => Some(needed.as_str()),
        _ => None,
    });
    let exports = inspection.exports.iter().filter_map(|export| newer_export(export));
    match imports.chain(exports).max_by_key(|version| release(version)) {
        Some(needed) => Err(LoadError::TooNew { needed: needed.to_owned() }),
        None => Ok(()),
    }
}
