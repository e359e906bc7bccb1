//! The bytes of components: where they come from, and why a component may not run.
//!
//! This module opens no file: the caller passes bytes. The binder and the rule set decide which components are loaded.

pub mod admission;

use self::admission::Admission;
use glovebox_record::Digest;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All components that a plan can use, as bytes.
#[derive(Default)]
pub struct Catalog {
    /// The built-in components, by handler type.
    pub builtins: BTreeMap<String, Builtin>,
    /// The plugins of `[plugins]`, by handler type.
    pub plugins: BTreeMap<String, PluginFile>,
    /// The policies of `[policy]`, by name.
    pub policies: BTreeMap<String, PluginFile>,
    /// Which of them may run.
    pub admission: Admission,
}

/// A built-in component, which was validated when the program was built.
#[derive(Debug, Clone)]
pub struct Builtin {
    /// The digest of the bytes. It is computed when the program is built, so that a `check` reads few of the bytes.
    pub digest: Digest,
    /// The bytes of the component.
    pub bytes: Cow<'static, [u8]>,
}

impl From<Vec<u8>> for Builtin {
    fn from(bytes: Vec<u8>) -> Self {
        Self { digest: Digest::hash(&bytes), bytes: bytes.into() }
    }
}

/// The bytes of a plugin, or why they could not be read.
pub struct PluginFile {
    /// The path of the file or the reference, for messages.
    pub path: String,
    /// The bytes, or why they could not be read.
    pub bytes: Result<Arc<[u8]>, ReadProblem>,
    /// The files of its signatures, of which one that counts is enough, or why they could not be read. Empty if there are none, and in
    /// a project that trusts no keys, whose signatures are not read.
    pub signatures: Result<Vec<Vec<u8>>, String>,
}

/// Why the bytes of a plugin could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadProblem {
    /// The reason, which fits after a colon.
    pub reason: String,
    /// What the operator can do. `None` for a file: the operator builds it, or names another path.
    pub help: Option<String>,
}

impl From<String> for ReadProblem {
    fn from(reason: String) -> Self {
        Self { reason, help: None }
    }
}

impl PluginFile {
    /// Returns the bytes, or why they could not be read.
    pub fn content(&self) -> Result<&Arc<[u8]>, ReadProblem> {
        self.bytes.as_ref().map_err(ReadProblem::clone)
    }
}

/// A plugin that may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginProblem {
    /// The handler type of the plugin.
    pub name: String,
    /// What is wrong, where, and what is expected.
    pub message: String,
    /// What the operator can do about it.
    pub help: Option<String>,
}
