//! The JSON Schemas of everything a run writes and a plan prints, made from the types that are written.
//!
//! They are published under `docs/schemas`; a test keeps them current.

use super::checkpoint::CheckpointFile;
use super::manifest::{FinalFile, ManifestFile};
use super::stage::ReceiptsFile;
use super::status::StatusFile;
use super::trace::TraceLine;
use crate::event::Record;
use crate::plan::PlanFile;
use schemars::{Schema, schema_for};

/// Every schema with the name of what it describes.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("checkpoint", schema_for!(CheckpointFile)),
        ("final", schema_for!(FinalFile<'_>)),
        ("manifest", schema_for!(ManifestFile<'_>)),
        ("plan", schema_for!(PlanFile<'_>)),
        ("receipts", schema_for!(ReceiptsFile<'_>)),
        ("record", schema_for!(Record)),
        ("status", schema_for!(StatusFile<'_>)),
        ("trace", schema_for!(TraceLine<'_>)),
    ]
}
