//! The messages between `glovebox` and `glovebox-attack`. Both programs use these types.
//!
//! There is one request, as a command line argument, and one answer, on standard output. Both are JSON. [`AttackRow`]
//! is also a part of the published document `attacks.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Requests the whole battery against one tier.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackRequest {
    /// The version of glovebox. A request of another version is refused.
    pub version: String,
    /// The tier to attack.
    pub tier: String,
    /// An empty folder for all files of the battery. The caller removes it.
    pub folder: PathBuf,
    /// The folder with compiled components, if there is one.
    pub cache_dir: Option<PathBuf>,
    /// Maximum number of bytes in that folder.
    pub cache_bytes_max: u64,
    /// The program that compiles components, and its first arguments.
    pub compiler: (PathBuf, Vec<String>),
    /// Maximum memory for compiling a component, in bytes.
    pub compile_memory_bytes: u64,
    /// Maximum processor time for compiling a component, in seconds.
    pub compile_cpu_seconds: u64,
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttackAnswer {
    /// One result per row: programs first, then components.
    Rows(Vec<RowResult>),
    /// Why the battery did not run.
    Failed(String),
}

/// The result of one row.
#[derive(Debug, Serialize, Deserialize)]
pub struct RowResult {
    /// True for an operation that must work, which is not an attack.
    pub must_work: bool,
    /// The published part of the result.
    pub row: AttackRow,
}

/// One attack.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct AttackRow {
    /// Stable name.
    pub id: String,
    /// The collection that the attack comes from, and its number in the collection.
    pub source: String,
    /// What the attack tries to do.
    pub attack: String,
    /// The layer that must stop the attack in the highest tier.
    pub stopped_by: String,
    /// The verdict: `blocked`, `through`, `known-gap`, `works` or `broken`.
    pub result: String,
    /// The error that the attack got, or how it ended.
    pub answer: String,
    /// What the witnesses outside of the sandbox observed.
    pub witness: String,
    /// For a known gap, why the tier does not stop the attack.
    pub gap: Option<String>,
}
