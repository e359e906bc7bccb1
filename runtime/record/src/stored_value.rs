//! The reference to a context value that is too large for the context: a blob of the run (spec §5.5).
//!
//! The reference is data like any other value, so checkpoints, traces and statuses show it. Which entries of a context are references is
//! the engine's knowledge: text that a handler wrote never opens a blob.

use crate::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Characters of the value in its reference.
const HEAD_CHARS_MAX: usize = 200;

/// A reference to a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredValue {
    /// Digest of its JSON text, a blob of the run.
    pub artifact: Digest,
    /// Length of that.
    pub bytes: u64,
    /// Its beginning: of a text the text, of another value its JSON.
    pub head: String,
}

impl StoredValue {
    /// A reference to a value, from its JSON and its text.
    pub fn new(json: &str, text: &str) -> Self {
        let head = text.chars().take(HEAD_CHARS_MAX).collect();
        Self { artifact: Digest::hash(json.as_bytes()), bytes: json.len() as u64, head }
    }

    /// The value that stands for it in the context.
    pub fn reference(&self) -> Value {
        serde_json::json!({ "artifact": self.artifact, "bytes": self.bytes, "head": self.head })
    }

    /// Reads a reference; none for another value.
    pub fn from_reference(reference: &Value) -> Option<Self> {
        Self::deserialize(reference).ok()
    }

    /// The file with the value beside the status of the stage that set it.
    pub fn file_name(&self) -> String {
        let hex = self.artifact.hex();
        format!("context-{}.json", &hex[..16])
    }
}
