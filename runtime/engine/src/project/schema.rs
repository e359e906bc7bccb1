//! The JSON Schemas of everything that a run writes and a plan prints, generated from the types that are written.
//!
//! They are published under `docs/schemas`, and a test keeps them current.

use super::checkpoint::CheckpointFile;
use super::manifest::{FinalFile, ManifestFile};
use super::stage::ReceiptsFile;
use super::status::StatusFile;
use super::trace::TraceLine;
use glovebox_journal::event::Record;
use glovebox_journal::liveness::LivenessLine;
use glovebox_plan::plan::PlanFile;
use glovebox_record::hook::HookInput;
use glovebox_record::session::Conversation;
use glovebox_state::evidence::VerdictFile;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, schema_for};

/// Returns the schema of a document that is only written: a field that is always written is required.
pub fn written<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// Returns all schemas, each with the name of its document.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("checkpoint", schema_for!(CheckpointFile)),
        ("conversation", schema_for!(Conversation)),
        ("final", schema_for!(FinalFile<'_>)),
        ("liveness", schema_for!(LivenessLine)),
        ("manifest", schema_for!(ManifestFile<'_>)),
        ("plan", schema_for!(PlanFile<'_>)),
        ("receipts", schema_for!(ReceiptsFile<'_>)),
        ("record", schema_for!(Record)),
        ("status", schema_for!(StatusFile<'_>)),
        ("tool-hook", written::<HookInput<'_>>()),
        ("trace", schema_for!(TraceLine<'_>)),
        ("verdict", written::<VerdictFile<'_>>()),
    ]
}
