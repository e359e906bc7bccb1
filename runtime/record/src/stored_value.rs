//! The reference to a context value that is too large for the context and is stored as a blob of the run (spec §5.5).
//!
//! Checkpoints, traces and statuses show the reference like any other value. Only the engine knows which entries of a context are
//! references, so a handler cannot read a blob by writing text that looks like a reference.

use crate::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of characters of the value that the reference contains.
const HEAD_CHARS_MAX: usize = 200;

/// A reference to a stored value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredValue {
    /// Digest of the value's JSON text, which is a blob of the run.
    pub artifact: Digest,
    /// Length of the JSON text in bytes.
    pub bytes: u64,
    /// Beginning of the value: of the string itself if the value is a string, of the JSON text otherwise.
    pub head: String,
}

impl StoredValue {
    /// Creates a reference to a value, from its JSON and its text.
    pub fn new(json: &str, text: &str) -> Self {
        let head = text.chars().take(HEAD_CHARS_MAX).collect();
        Self { artifact: Digest::hash(json.as_bytes()), bytes: json.len() as u64, head }
    }

    /// Returns the JSON value that replaces the stored value in the context.
    pub fn reference(&self) -> Value {
        serde_json::json!({ "artifact": self.artifact, "bytes": self.bytes, "head": self.head })
    }

    /// Parses a reference. `None` for any other value.
    pub fn from_reference(reference: &Value) -> Option<Self> {
        Self::deserialize(reference).ok()
    }

    /// Returns the name of the file with the value, in the folder of the stage that set it.
    pub fn file_name(&self) -> String {
        let hex = self.artifact.hex();
        format!("context-{}.json", &hex[..16])
    }
}
