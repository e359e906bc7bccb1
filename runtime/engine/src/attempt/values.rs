//! Stored values of the context: converted to blobs when a stage sets them, and read for the stages that get them.
//!
//! Must be called with a result that is already reduced to what may be recorded. A handler gets the whole values as
//! long as they take only a small part of its memory. Otherwise it gets the references, so that no stage can fill the
//! memory of another stage.

use super::{AttemptError, Workbench};
use glovebox_host::input::StageInput;
use glovebox_journal::event::{Artifact, Ending, StageFinished};
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_plan::plan::Binding;
use glovebox_record::StoredValue;
use glovebox_state::context::{Context, ContextKey, STORED_VALUE_BYTES_MAX, VALUE_BYTES_MAX};
use glovebox_state::run_state::Branch;

/// All whole values together may take the handler's memory limit divided by this number.
const MEMORY_PART: u64 = 8;

impl<B: BlobStore + 'static> Workbench<B> {
    /// Stores the large values that a stage sets, and replaces them with references. A value that is too large for a
    /// stored value is refused later. The values of a branch under `ANSWER_KEYS` are stored too, for the results of its
    /// parallel node.
    pub(super) fn store_values(&self, fact: &mut StageFinished, branch: &Branch) -> Result<(), PortError> {
        if fact.ending != Ending::Returned {
            return Ok(());
        }
        for (key, value) in &mut fact.outcome.context_updates {
            let json = value.to_string();
            let is_small = key.len() + json.len() <= VALUE_BYTES_MAX;
            let is_answer = branch.origin.is_some() && ContextKey(key).is_answer_of(&fact.handler);
            if is_small && !is_answer || json.len() > STORED_VALUE_BYTES_MAX || ContextKey(key).is_reserved() {
                continue;
            }
            let stored = StoredValue::new(&json, value.as_str().unwrap_or(&json));
            let (digest, bytes) = self.store(json.as_bytes())?;
            let (name, media_type) = (stored.file_name(), "application/json".to_owned());
            if fact.files.artifacts.iter().all(|artifact| artifact.name != name) {
                fact.files.artifacts.push(Artifact { name, media_type, digest, bytes });
            }
            if is_small {
                continue;
            }
            *value = stored.reference();
            fact.files.stored_values.insert(key.to_owned());
        }
        Ok(())
    }

    /// Replaces the references with the stored values, if the handler has the memory for all of them.
    pub(super) fn whole_values(
        &self,
        input: &mut StageInput,
        binding: &Binding,
        context: &Context,
    ) -> Result<(), AttemptError> {
        let stored = input.context.iter_mut().filter_map(|(key, value)| Some((context.stored(key)?, value)));
        let stored: Vec<_> = stored.collect();
        let bytes: u64 = stored.iter().map(|(stored, _)| stored.bytes).sum();
        if bytes > binding.limits.memory_bytes / MEMORY_PART {
            return Ok(());
        }
        for (stored, value) in stored {
            let json = self.blobs.read_all(&stored.artifact, STORED_VALUE_BYTES_MAX as u64)?;
            *value = serde_json::from_slice(&json).map_err(|error| PortError::Corrupt {
                what: format!("blob {}", stored.artifact),
                found: format!("it is not JSON: {error}"),
            })?;
        }
        Ok(())
    }
}
