//! The first record of a run: its pipeline, plan, workspace, model and bounds.

use super::{ForkedFrom, HoldoutsSealed, RunResumed};
use glovebox_pipeline::ir::{HandlerKind, Role};
use glovebox_pipeline::transform::RuleRecord;
use glovebox_record::scope::Entry;
use glovebox_record::{Digest, GitHead, MissingFiles, NodeId, RunBounds, RunId, SandboxRecord, VerifyLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The run was created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunStarted {
    /// Version of the event vocabulary: [`SCHEMA_VERSION`](super::SCHEMA_VERSION).
    pub schema_version: u32,
    /// Version of the program that wrote the record.
    pub engine_version: String,
    /// The run's id.
    pub run_id: RunId,
    /// The run from which this run was forked; absent if it is not a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Box<ForkedFrom>>,
    /// Number of the generation, counted from 0 (decision run-generations).
    pub generation: u32,
    /// The first node of the run; absent if that is the start node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeId>,
    /// Labels that the user chose, for people and for finding the run again.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The pipeline as it was checked.
    #[serde(flatten)]
    pub pipeline: StartedPipeline,
    /// The bound plan.
    #[serde(flatten)]
    pub plan: StartedPlan,
    /// The initial workspace.
    #[serde(flatten)]
    pub workspace: StartedWorkspace,
    /// The source of model answers.
    #[serde(flatten)]
    pub model: StartedModel,
    /// The sandbox of commands.
    #[serde(flatten)]
    pub commands: StartedSandbox,
    /// The settings that every machine reads from the shared blobs; absent for a run of one machine, which reads those of the
    /// project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Box<StartedSettings>>,
    /// The bounds of the whole run.
    #[serde(flatten)]
    pub bounds: RunBounds,
}

/// The pipeline of a run: the source and the values that were inserted into it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedPipeline {
    /// The graph's name.
    #[serde(rename = "pipeline_name")]
    pub name: String,
    /// The goal, with inputs expanded.
    pub goal: String,
    /// Graph attributes; the context mirrors them as `graph.<key>` (spec §3.1).
    #[serde(default)]
    pub graph: BTreeMap<String, String>,
    /// The values of `--set`.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// The path of the pipeline file, for messages.
    #[serde(rename = "pipeline_path")]
    pub path: String,
    /// Blob with the pipeline's source.
    #[serde(rename = "pipeline_digest")]
    pub digest: Digest,
    /// Blobs with the files that the source refers to, by path; absent if it refers to none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Digest>,
    /// The rule plugins of the project that checked the graph, in order, with the changes that each one made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleRecord>,
    /// Blob with the pipeline after all transforms, which is executed; absent if no transform changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformed_digest: Option<Digest>,
}

/// The plan of a run: components, roles and grants.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedPlan {
    /// Digest of the plan: bindings, grants and limits.
    #[serde(rename = "plan_digest")]
    pub digest: Digest,
    /// Blob with the capabilities of the plan.
    pub capabilities_digest: Digest,
    /// The components that the nodes are bound to: digest of the bytes, by handler. Absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, Digest>,
    /// Write scopes of the nodes whose `allowed_write_paths` the grants narrowed; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub narrowed_scopes: BTreeMap<NodeId, Vec<Entry>>,
    /// Plugins that the operator bound as verifiers, by handler type.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub verifiers: BTreeSet<String>,
    /// Maximum numbers of repetitions of work after a failed verification; absent if the operator has no `[verify]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_retry: Option<VerifyLimits>,
}

/// The initial files of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedWorkspace {
    /// Blob with the list of the initial files of the workspace.
    pub base_digest: Digest,
    /// Blob with the list of the packs that have the contents of these files; absent for a run of one machine, which has them in
    /// its directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packs_digest: Option<Digest>,
    /// Folder from which the workspace was copied, for `apply` and for people.
    pub source_dir: String,
    /// The sealed hold-outs; absent if the run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdouts: Option<HoldoutsSealed>,
    /// The earlier run whose build caches the verifiers without hold-outs in reach began with; absent if they began with empty ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches_from: Option<RunId>,
    /// HEAD of the project's repository; absent if the project has none that Glovebox can read.
    #[serde(default, skip_serializing_if = "GitHead::is_unknown")]
    pub git: GitHead,
    /// Files of the project whose content was missing when the run copied it; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingFiles>,
}

/// The source of a run's model answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedModel {
    /// The provider: `scripted`, `live` or `simulated`.
    #[serde(rename = "model")]
    pub provider: String,
    /// Nodes with simulated answers; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub simulated: BTreeSet<NodeId>,
    /// Blob with the script of a scripted model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_digest: Option<Digest>,
}

/// The sandbox of a run's commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedSandbox {
    /// Tier of the sandbox for commands: `full`, `bwrap`, `landlock`, `unconfined`, or `none` if no stage runs commands.
    #[serde(rename = "sandbox_tier")]
    pub tier: String,
    /// The requested sandbox and what this machine enforces of it; absent if no stage runs commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRecord>,
}

/// The settings of a run on many machines, which no machine reads from the project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedSettings {
    /// Blob with the text of `glovebox.toml`; absent if the project has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_digest: Option<Digest>,
    /// Blob with the text of `glovebox.lock`; absent if the project has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_digest: Option<Digest>,
    /// The components of plugins and policies, by `plugins.NAME` and `policies.NAME`; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugins: BTreeMap<String, StartedPlugin>,
    /// Blobs with further files that the settings name, by their path beside `glovebox.toml`; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub setting_files: BTreeMap<String, Digest>,
}

/// A component of a run on many machines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedPlugin {
    /// Blob with the component.
    pub digest: Digest,
    /// Blobs with the files of its signatures; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<Digest>,
}

impl RunStarted {
    /// Returns the role of a handler in this run.
    pub fn role(&self, handler: &str) -> Role {
        match self.plan.verifiers.contains(handler) {
            true => Role::Verifier,
            false => HandlerKind::from_name(handler).role().unwrap_or_default(),
        }
    }

    /// Returns the start record with the changes of a resume.
    #[must_use]
    pub fn resumed(mut self, resumed: &RunResumed) -> Self {
        self.bounds.steps_max = resumed.steps_max.unwrap_or(self.bounds.steps_max);
        self.bounds.wall_max_ms = resumed.wall_max_ms.or(self.bounds.wall_max_ms);
        self.bounds.spend_max = resumed.spend_max.or(self.bounds.spend_max);
        self.bounds.stall = resumed.stall.or(self.bounds.stall);
        self.model.script_digest = resumed.script_digest.or(self.model.script_digest);
        if let Some(replanned) = &resumed.replanned {
            self.plan.digest = replanned.plan_digest;
            self.plan.components.clone_from(&replanned.components);
            self.plan.narrowed_scopes.clone_from(&replanned.narrowed_scopes);
            self.plan.capabilities_digest = replanned.capabilities_digest;
        }
        self
    }
}
