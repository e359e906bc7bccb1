//! A loaded component: what its bytes say, and the code made from them.
//!
//! It can be called any number of times at once; every call gets a fresh instance.

use crate::attempt::Attempt;
use crate::bindings::ProvidedPre;
use crate::inspect::Inspection;
use crate::interfaces::ImportState;
pub use crate::load_error::LoadError;
use glovebox_record::{Digest, Limits};

/// A component that was checked, compiled and linked.
pub struct Component {
    pub(crate) inspection: Inspection,
    pub(crate) pre: ProvidedPre<Attempt>,
    pub(crate) needs: Needs,
}

/// Totals that its core modules declare.
pub(crate) struct Needs {
    pub(crate) memories: u64,
    pub(crate) tables: u64,
}

impl Component {
    /// BLAKE3 of its bytes, which identifies it.
    pub fn digest(&self) -> Digest {
        self.inspection.digest
    }

    /// Returns the count that the limit `instances` bounds: its instances, or its memories or tables if there are more of those.
    pub(crate) fn instances(&self) -> u64 {
        self.inspection.core_instances.max(self.needs.memories).max(self.needs.tables)
    }

    /// Returns the result of inspecting its bytes.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }
}

/// Checks from its bytes alone that a component is a handler this host can run: imports, instances and the exported stage. All
/// missing imports are reported together.
pub fn check_handler(inspection: &Inspection) -> Result<(), LoadError> {
    let refused: Vec<_> = inspection.imports.iter().filter(|i| i.state != ImportState::Provided).cloned().collect();
    if !refused.is_empty() {
        return Err(LoadError::Imports(refused));
    }
    let limit = Limits::default().instances;
    if inspection.core_instances > limit {
        return Err(LoadError::TooManyInstances { count: inspection.core_instances, limit });
    }
    if !inspection.exports.iter().any(|export| export.starts_with("glovebox:plugin/stage@")) {
        return Err(LoadError::NoStage(inspection.exports.clone()));
    }
    Ok(())
}
