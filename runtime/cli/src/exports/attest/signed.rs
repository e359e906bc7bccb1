//! A statement that was read from an attestation, with every field that a statement of this version always has.
//!
//! A missing field is an error that names it, even if Glovebox does not use the field, because a reader of the statement may rely on
//! it. Optional fields may be missing, and a later version may add fields.

use glovebox_journal::event::{QuestionAnswered, Refusal};
use glovebox_plan::plan::PlanCapabilities;
use glovebox_record::SandboxRecord;
use glovebox_record::{Digest, DigestedFile, Failure, FileChange, NodeId, Receipt};
use glovebox_state::evidence::JournalHead;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// The required fields of a statement.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
pub struct Signed {
    #[serde(rename = "_type")]
    statement_type: String,
    subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    /// The attested facts of the run.
    pub predicate: Predicate,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
struct Subject {
    name: String,
    digest: SubjectDigest,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
struct SubjectDigest {
    blake3: String,
}

/// The attested facts of a run.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
pub struct Predicate {
    schema_version: u32,
    /// The result of the run.
    pub run: Run,
    grants: PlanCapabilities,
    answers: Vec<QuestionAnswered>,
    /// Every file of the record.
    pub files: Vec<File>,
}

/// A file of the record.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
pub struct File {
    /// Path and digest of the file.
    #[serde(flatten)]
    pub file: DigestedFile,
    executable: bool,
}

/// The result of a run that has ended.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
pub struct Run {
    document: String,
    schema_version: u32,
    #[serde(deserialize_with = "nullable")]
    started: Option<String>,
    #[serde(deserialize_with = "nullable")]
    finished: Option<String>,
    /// The exit of the run.
    pub exit: RunExit,
    /// Id of the run.
    pub run_id: String,
    pipeline: String,
    /// Status of the run: `success` or `fail`.
    pub status: String,
    model: String,
    #[serde(deserialize_with = "nullable")]
    failure: Option<Failure>,
    #[serde(deserialize_with = "nullable")]
    failed_node: Option<NodeId>,
    visited: Vec<Visit>,
    receipts: Vec<Command>,
    unverified: Vec<Unverified>,
    refused: Vec<Refused>,
    /// Net changes of the run, one entry for each path.
    pub changed: Vec<FileChange>,
    quarantined: Vec<Quarantined>,
    duration_ms: u64,
    engine_version: String,
    source_dir: String,
    sandbox_tier: String,
    #[serde(deserialize_with = "nullable")]
    sandbox: Option<SandboxRecord>,
    components: BTreeMap<String, Digest>,
    pipeline_digest: Digest,
    plan_digest: Digest,
    base_digest: Digest,
    #[serde(deserialize_with = "nullable")]
    script_digest: Option<Digest>,
    #[serde(deserialize_with = "nullable")]
    holdouts_root: Option<Digest>,
    /// The head of the journal.
    pub journal: JournalHead,
}

/// The exit of a run.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
pub struct RunExit {
    /// The exit code.
    pub code: u8,
    name: String,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
struct Visit {
    node: NodeId,
    visit: u32,
    attempts: u32,
    status: String,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
struct Command {
    node: NodeId,
    handler: String,
    verified: bool,
    #[serde(deserialize_with = "nullable")]
    isolation: Option<Value>,
    #[serde(flatten)]
    receipt: Receipt,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
struct Unverified {
    node: NodeId,
    handler: String,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
struct Refused {
    node: NodeId,
    times: usize,
    #[serde(flatten)]
    refusal: Refusal,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "the fields are read only to require that they are present")]
struct Quarantined {
    number: u64,
    node: NodeId,
    path: String,
    reason: String,
}

/// Reads a value that may be null but must not be missing.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}
