//! The published schemas of the documents that commands print with `--json`, generated from the types that are printed.
//!
//! `UPDATE_SCHEMAS=1` writes them. `tests/schemas.rs` checks that real outputs conform to them.

use crate::commands::answer::AnswerFile;
use crate::commands::apply::ApplyFile;
use crate::commands::control::ControlFile;
use crate::commands::desk::Health;
use crate::commands::desk::logs::LogLine;
use crate::commands::desk::output::OutputEvent;
use crate::commands::desk::program::StartFile;
use crate::commands::diff::DiffFile;
use crate::commands::evidence::EvidenceFile;
use crate::commands::gates::GatesFile;
use crate::commands::holdout::{Status, Verified};
use crate::commands::logs::OutputLine;
use crate::commands::ls::RunList;
use crate::commands::models::{ModelsFile, ModelsTestFile};
use crate::commands::plan::of_run::RunPlanFile;
use crate::commands::plugin::outdated::PluginAge;
use crate::commands::plugin::revocations::ListState;
use crate::commands::plugin::signature::VerifyFile;
use crate::commands::plugin::standing::Standing;
use crate::commands::serve::ServeFile;
use crate::commands::steer::SteerFile;
use crate::commands::tasks::{TaskFile, TaskList};
use crate::commands::tokens::TokensFile;
use crate::commands::transcript::TurnLine;
use crate::commands::trust::TrustFile;
use crate::commands::version::Version;
use crate::exports::attest::statement::Statement;
use crate::exports::git_branch::Branch;
use crate::runs::removed::Removed;
use glovebox_contract::report::TestReport;
use glovebox_contract::stage_file::StageFile;
use glovebox_engine::project::schema::written;
use glovebox_host::judgement::{JudgedCall, JudgedEdge};
use glovebox_journal::event::{Digest, Record};
use glovebox_plan::lock::LockedPlugin;
use glovebox_serve::desk::Problem;
use glovebox_serve::server::Session;
use glovebox_signing::envelope::Envelope;
use glovebox_signing::plugin::PluginStatement;
use glovebox_signing::provenance::ProvenanceStatement;
use glovebox_signing::revocation::RevocationFile;
use glovebox_state::named_events::NamedEvent;
use glovebox_state::why::Why;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The document that `plugin inspect --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "plugin-inspect.json")]
struct InspectFile {
    /// Digest of the component's bytes.
    digest: Digest,
    /// Size of the component in bytes.
    bytes: u64,
    /// `handler`, `agent`, `verifier`, `tool-provider`, `rules`, `policy`, or `unknown`.
    world: String,
    /// Imports, in the order of the binary.
    imports: Vec<ImportRow>,
    /// Names of the exports.
    exports: Vec<String>,
    /// Number of core instances that are created when the component is instantiated.
    core_instances: u64,
    /// The component's manifest; null if it has none.
    manifest: Option<Manifest>,
    /// What the standard sections of `wasm-metadata` say about the component.
    standard: StandardSections,
    /// All other custom sections, by name.
    custom_sections: Vec<CustomSections>,
    /// Signatures and revocations.
    #[serde(flatten)]
    standing: Standing,
}

/// The standard sections of a component. Absent sections are absent here.
#[derive(Serialize, JsonSchema)]
struct StandardSections {
    /// Name of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Version of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Description of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The authors.
    #[serde(skip_serializing_if = "Option::is_none")]
    authors: Option<String>,
    /// Licence, as an SPDX expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    licenses: Option<String>,
    /// Address of the source code.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Address of a page about the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    /// Revision of the source code.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    /// The tools that made the component; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    producers: Option<Vec<Producer>>,
}

/// A tool that made the component.
#[derive(Serialize, JsonSchema)]
struct Producer {
    /// `language`, `processed-by` or `sdk`.
    field: String,
    /// Name of the tool.
    name: String,
    /// Version of the tool.
    version: String,
}

/// Custom sections of one name.
#[derive(Serialize, JsonSchema)]
struct CustomSections {
    /// Name of the sections.
    name: String,
    /// Number of sections.
    count: u64,
    /// Length of all of them, in bytes.
    bytes: u64,
}

/// One import.
#[derive(Serialize, JsonSchema)]
struct ImportRow {
    /// Name of the import, as written in the component.
    name: String,
    /// `provided`, `other-version`, `denied` or `unknown`.
    state: String,
    /// The version that this host provides, for an import of another version; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    provided: Option<String>,
    /// Why the import is never provided; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The manifest of a plugin.
#[derive(Serialize, JsonSchema)]
struct Manifest {
    /// Name of the plugin, which is the `type` of its nodes.
    name: String,
    /// Version of the plugin.
    version: String,
    /// Description of the plugin in one line.
    description: String,
    /// Licence, as an SPDX expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    licenses: Option<String>,
    /// Address of the source code.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Revision of the source code.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    /// The authors.
    #[serde(skip_serializing_if = "Option::is_none")]
    authors: Option<String>,
    /// Address of a page about the plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    /// Documentation in Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    docs: Option<String>,
    /// What the plugin asks for.
    wants: BTreeMap<String, serde_json::Value>,
    /// The node attributes that the plugin reads, by name; absent if it declares none.
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<BTreeMap<String, Attribute>>,
}

/// A node attribute that a plugin declares.
#[derive(Serialize, JsonSchema)]
struct Attribute {
    /// `string`, `integer`, `number`, `boolean`, `duration`, `enum` or `path`.
    #[serde(rename = "type")]
    kind: String,
    /// Lowest value of an `integer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<i64>,
    /// Highest value of an `integer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<i64>,
    /// The allowed values of an `enum`.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<String>>,
    /// Purpose of the attribute; absent if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
    /// True if every node must have the attribute; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<bool>,
    /// The value that a node without the attribute gets; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("answer", written::<AnswerFile<'_>>()),
        ("apply", written::<ApplyFile<'_>>()),
        ("attestation", written::<Envelope>()),
        ("branch", written::<Branch>()),
        ("control", written::<ControlFile<'_>>()),
        ("diff", written::<DiffFile>()),
        #[cfg(feature = "fleet")]
        ("doctor-fleet", written::<crate::commands::doctor::fleet::FleetReport>()),
        ("evidence", written::<EvidenceFile<'_>>()),
        #[cfg(feature = "fleet")]
        ("fleet", written::<glovebox_fleet::settings::FleetSettings>()),
        #[cfg(feature = "fleet")]
        ("fleet-frame", written::<glovebox_fleet::frame::Header>()),
        #[cfg(feature = "fleet")]
        ("fleet-ls", written::<crate::commands::fleet::FleetMachines>()),
        #[cfg(feature = "fleet")]
        ("fleet-machine", written::<glovebox_fleet::statement::Statement>()),
        ("gates", written::<GatesFile>()),
        ("holdout-status", written::<Status<'_>>()),
        ("holdout-verify", written::<Verified<'_>>()),
        ("ls", written::<RunList>()),
        ("logs", written::<OutputLine<'_>>()),
        ("models", written::<ModelsFile>()),
        ("models-test", written::<ModelsTestFile>()),
        ("plugin-inspect", written::<InspectFile>()),
        ("plugin-provenance", written::<ProvenanceStatement>()),
        ("plugin-revocations", written::<Vec<ListState>>()),
        ("plugin-statement", written::<PluginStatement>()),
        ("plugin-verify", written::<VerifyFile>()),
        ("revocations", written::<RevocationFile>()),
        ("plugin-lock", written::<Vec<LockedPlugin>>()),
        ("plugin-outdated", written::<Vec<PluginAge>>()),
        ("plugin-stage", written::<StageFile>()),
        ("policy-call", written::<JudgedCall<'_>>()),
        ("policy-edge", written::<JudgedEdge<'_>>()),
        ("plugin-test", written::<TestReport>()),
        ("removed", written::<Removed>()),
        ("show-node", written::<Vec<Record>>()),
        ("statement", written::<Statement<'_>>()),
        ("log-line", written::<LogLine>()),
        ("run-plan", written::<RunPlanFile>()),
        ("serve", written::<ServeFile>()),
        ("serve-event", written::<NamedEvent>()),
        ("serve-health", written::<Health<'_>>()),
        ("serve-output", written::<OutputEvent<'_>>()),
        ("serve-problem", written::<Problem>()),
        ("serve-session", written::<Session<'_>>()),
        ("serve-start", written::<StartFile>()),
        ("task", written::<TaskFile>()),
        ("tasks", written::<TaskList>()),
        ("tokens", written::<TokensFile>()),
        ("trust", written::<TrustFile>()),
        ("steer", written::<SteerFile<'_>>()),
        ("transcript", written::<TurnLine<'_>>()),
        ("version", written::<Version>()),
        ("why", written::<Why>()),
    ]
}

#[test]
fn published_schemas_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let mut stale = Vec::new();
    for (name, schema) in schemas() {
        let file = folder.join(format!("{name}.schema.json"));
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&file, &text).unwrap();
        } else if std::fs::read_to_string(&file).unwrap_or_default() != text {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "run `UPDATE_SCHEMAS=1 cargo test --workspace schemas`: {stale:?} differ");
}
