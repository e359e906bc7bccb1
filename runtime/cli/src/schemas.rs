//! The published schemas of what commands print with `--json`, made from the types that are printed.
//!
//! `UPDATE_SCHEMAS=1` writes them anew. That real outputs conform to them is `tests/schemas.rs`.

use crate::commands::answer::AnswerFile;
use crate::commands::apply::ApplyFile;
use crate::commands::control::ControlFile;
use crate::commands::diff::DiffFile;
use crate::commands::evidence::EvidenceFile;
use crate::commands::gates::GatesFile;
use crate::commands::holdout::{Status, Verified};
use crate::commands::logs::OutputLine;
use crate::commands::ls::RunList;
use crate::commands::models::{ModelsFile, ModelsTestFile};
use crate::commands::steer::SteerFile;
use crate::commands::transcript::TurnLine;
use crate::commands::trust::TrustFile;
use crate::commands::version::Version;
use crate::exports::attest::envelope::Envelope;
use crate::exports::attest::statement::Statement;
use crate::exports::git_branch::Branch;
use crate::runs::removed::Removed;
use glovebox_engine::project::schema::written;
use glovebox_journal::event::{Digest, Record};
use glovebox_plan::lock::LockedPlugin;
use glovebox_state::why::Why;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What `plugin inspect --json` prints of a component.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "plugin-inspect.json")]
struct InspectFile {
    /// Digest of the bytes.
    digest: Digest,
    /// Their number.
    bytes: u64,
    /// `handler`, `agent`, `verifier`, `tool-provider`, `rules`, or `unknown`.
    world: String,
    /// In the order of the binary.
    imports: Vec<ImportRow>,
    /// Names of its exports.
    exports: Vec<String>,
    /// Instances that it makes when it is instantiated.
    core_instances: u64,
    /// Its own description; null if it carries none.
    manifest: Option<Manifest>,
}

/// One import.
#[derive(Serialize, JsonSchema)]
struct ImportRow {
    /// As written.
    name: String,
    /// `provided`, `other-version`, `denied` or `unknown`.
    state: String,
    /// The version that there is, for another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    provided: Option<String>,
    /// Why it is never given.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A plugin's own description.
#[derive(Serialize, JsonSchema)]
struct Manifest {
    /// Its handler type.
    name: String,
    /// Its version.
    version: String,
    /// One line for people.
    description: String,
    /// What it asks for.
    wants: BTreeMap<String, serde_json::Value>,
}

fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("answer", written::<AnswerFile<'_>>()),
        ("apply", written::<ApplyFile<'_>>()),
        ("attestation", written::<Envelope>()),
        ("branch", written::<Branch>()),
        ("control", written::<ControlFile<'_>>()),
        ("diff", written::<DiffFile>()),
        ("evidence", written::<EvidenceFile<'_>>()),
        ("gates", written::<GatesFile>()),
        ("holdout-status", written::<Status<'_>>()),
        ("holdout-verify", written::<Verified<'_>>()),
        ("ls", written::<RunList>()),
        ("logs", written::<OutputLine<'_>>()),
        ("models", written::<ModelsFile>()),
        ("models-test", written::<ModelsTestFile>()),
        ("plugin-inspect", written::<InspectFile>()),
        ("plugin-lock", written::<Vec<LockedPlugin>>()),
        ("removed", written::<Removed>()),
        ("show-node", written::<Vec<Record>>()),
        ("statement", written::<Statement<'_>>()),
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
