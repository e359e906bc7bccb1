//! Components as bytes: where they come from, and why one may not run.
//!
//! Reads nothing: bytes come in. Which of them are loaded, and with which grants, is decided by the binder and by the rules.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The components at hand, as bytes.
#[derive(Default)]
pub struct Catalog {
    /// What came with the binary, by handler type.
    pub builtins: BTreeMap<String, Arc<[u8]>>,
    /// What `[plugins]` names, by handler type.
    pub plugins: BTreeMap<String, PluginFile>,
}

/// A plugin's file, read or not.
pub struct PluginFile {
    /// Where it lies, for messages.
    pub path: String,
    /// Its bytes, or why it could not be read.
    pub bytes: Result<Arc<[u8]>, String>,
}

/// A plugin that may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginProblem {
    /// The handler type.
    pub name: String,
    /// The thing, the place, the expected.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
}
