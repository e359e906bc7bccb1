//! The paths in the workspace at which a stage can leave its status file (decision status-files).
//!
//! The drop folder of an attempt is not among them: it is outside of the workspace.

/// The paths, in the order in which they are searched.
pub const FALLBACKS: [&str; 2] = ["status.json", ".ai/status.json"];
