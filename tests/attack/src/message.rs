//! The messages between `glovebox` and `glovebox-attack`. Both programs use these types.
//!
//! One request as a command line argument, one answer on standard output, both JSON. [`AttackRow`] is also a part of the published
//! document `attacks.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Asks for the whole battery against one tier.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackRequest {
    /// The version of glovebox; another one is refused.
    pub version: String,
    /// The tier to attack.
    pub tier: String,
    /// An empty folder for everything that is laid out. The caller removes it.
    pub folder: PathBuf,
    /// The folder with compiled components, if there is one.
    pub cache_dir: Option<PathBuf>,
    /// Most bytes that are kept there.
    pub cache_bytes_max: u64,
    /// The program that compiles, and its first arguments.
    pub compiler: (PathBuf, Vec<String>),
    /// Most bytes of memory for compiling a component.
    pub compile_memory_bytes: u64,
    /// Most processor time for compiling a component.
    pub compile_cpu_seconds: u64,
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttackAnswer {
    /// One result per row of the table, in its order.
    Rows(Vec<RowResult>),
    /// The reason why the battery did not run.
    Failed(String),
}

/// The result of one row.
#[derive(Debug, Serialize, Deserialize)]
pub struct RowResult {
    /// True for something that must work, which is not an attack.
    pub must_work: bool,
    /// The published part of it.
    pub row: AttackRow,
}

/// One attack.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct AttackRow {
    /// Stable name.
    pub id: String,
    /// The collection it comes from, and its row there.
    pub source: String,
    /// The attempted action.
    pub attack: String,
    /// The layer that has to stop it in the highest tier.
    pub stopped_by: String,
    /// `blocked`, `through`, `known-gap`, `works` or `broken`.
    pub result: String,
    /// The error that the attack met, or how it ended.
    pub answer: String,
    /// The observation from outside.
    pub witness: String,
    /// The reason why the tier does not stop it, for a known gap.
    pub gap: Option<String>,
}
