//! The verdict of a run as one document: for auditors, who identify it by the hash of the journal's last record, and
//! for other programs.
//!
//! The document has the content of the summary for people, and adds the inputs of the run. Digests have the prefix
//! `blake3:`. Times are in UTC with milliseconds.

use super::configuration::NewConfiguration;
use super::{ExitClass, RunStatus, RunSummary};
use glovebox_journal::event::{Digest, RunStarted, time_format};
use glovebox_record::{NodeId, SandboxRecord, Traffic};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// The output of `show --json`, and the last line of `run --json` and `resume --json`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "verdict.json")]
pub struct VerdictFile<'a> {
    /// Always `verdict`. No record of the journal has this field.
    pub document: &'static str,
    /// Version of this document.
    pub schema_version: u32,
    /// Time at which the run started.
    #[serde(with = "time_format::option")]
    #[schemars(with = "Option<String>")]
    pub started: Option<Timestamp>,
    /// Time at which the run ended; null if it has not ended.
    #[serde(with = "time_format::option")]
    #[schemars(with = "Option<String>")]
    pub finished: Option<Timestamp>,
    /// The exit code; null if the run has not ended.
    #[schemars(with = "Option<ExitShape>")]
    pub exit: Option<ExitClass>,
    /// The summary of the run.
    #[serde(flatten)]
    pub summary: &'a RunSummary,
    /// Version of the program that started the run.
    pub engine_version: &'a str,
    /// The project that the run copied.
    pub source_dir: &'a str,
    /// Tier of the sandbox for commands at the start: `full`, `bwrap`, `landlock`, `unconfined`, or `none` if no stage
    /// runs commands.
    pub sandbox_tier: &'a str,
    /// The requested sandbox, and what this machine enforces of it; null if no stage runs commands.
    pub sandbox: Option<&'a SandboxRecord>,
    /// Digests of the components by handler; empty if the run uses no component.
    pub components: &'a BTreeMap<String, Digest>,
    /// Digest of the text of the pipeline file.
    pub pipeline_digest: Digest,
    /// Digest of the plan: components, grants and limits.
    pub plan_digest: Digest,
    /// Digest of the list of files at the start of the run.
    pub base_digest: Digest,
    /// Digest of the script; null if the run has no script.
    pub script_digest: Option<Digest>,
    /// Commitment to the hold-outs; null if no hold-outs were sealed.
    pub holdouts_root: Option<Digest>,
    /// New files and folders from which programs take settings or code, sorted by path; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_configuration: Vec<NewConfiguration>,
    /// The head of the journal. Its hash covers every record.
    pub journal: JournalHead,
}

/// The last record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalHead {
    /// Number of records.
    pub records: u64,
    /// Hash of the last record.
    pub hash: Digest,
}

impl Default for JournalHead {
    fn default() -> Self {
        Self { records: 0, hash: Digest::ZERO }
    }
}

/// The schema of an exit code with its name.
#[derive(JsonSchema)]
pub struct ExitShape {
    /// The exit code.
    pub code: u8,
    /// The name of the exit code.
    pub name: String,
}

/// The requests of one node's commands to the proxy.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeTraffic<'a> {
    /// The node.
    pub node: &'a NodeId,
    /// The requests by host.
    #[serde(flatten)]
    pub traffic: &'a Traffic,
}

impl<'a> VerdictFile<'a> {
    /// Creates the document of a run. The caller must set `new_configuration`, because it depends on the files of the
    /// project.
    pub fn new(summary: &'a RunSummary, started: &'a RunStarted) -> Self {
        let has_ended = matches!(summary.status, RunStatus::Success | RunStatus::Fail);
        Self {
            document: "verdict",
            schema_version: 1,
            started: summary.started_at,
            finished: summary.end.finished_at,
            exit: has_ended.then_some(summary.end.exit),
            summary,
            engine_version: &started.engine_version,
            source_dir: &started.workspace.source_dir,
            sandbox_tier: &started.commands.tier,
            sandbox: started.commands.sandbox.as_ref(),
            components: &started.plan.components,
            pipeline_digest: started.pipeline.digest,
            plan_digest: started.plan.digest,
            base_digest: started.workspace.base_digest,
            script_digest: started.model.script_digest,
            holdouts_root: started.workspace.holdouts.as_ref().map(|sealed| sealed.root),
            new_configuration: Vec::new(),
            journal: summary.head,
        }
    }
}

/// Serializes the traffic as a list of nodes.
pub(super) fn by_node<S: Serializer>(traffic: &BTreeMap<NodeId, Traffic>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(traffic.len()))?;
    for (node, traffic) in traffic {
        list.serialize_element(&NodeTraffic { node, traffic })?;
    }
    list.end()
}
