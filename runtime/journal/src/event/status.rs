//! The event of a status file: where the engine searched for the answer of a stage, and what it did with the file.
//!
//! The event contains no text of the file, because the stage chose it. The bytes are an artifact of the attempt, which the
//! event names by digest.

use super::{Attempt, Digest};
use glovebox_record::status_place::FALLBACKS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The engine searched the places of status files after a stage with `status_file=true` had ended by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusIngested {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The places that were searched, in order. The search ends at the file that decides.
    pub searched: Vec<SearchedStatus>,
    /// The place of the file that decides; absent if no place has a file that may decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<StatusPlace>,
    /// What the engine did with the file.
    pub effect: StatusEffect,
    /// The stored copy of the file; absent if no file decides, or if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<StatusCopy>,
}

impl StatusIngested {
    /// Returns the place and the copy of the file from which the outcome of the attempt was taken. `None` if it was taken from
    /// no file.
    pub fn accepted(&self) -> Option<(StatusPlace, Option<&StatusCopy>)> {
        let place = self.source.filter(|_| self.effect == StatusEffect::Accepted)?;
        Some((place, self.copy.as_ref()))
    }
}

/// A place at which a stage may leave a status file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusPlace {
    /// The drop folder of the attempt, whose path is in `GLOVEBOX_STATUS_DIR`.
    Drop,
    /// `status.json` in the workspace.
    Workspace,
    /// `.ai/status.json` in the workspace.
    WorkspaceAi,
}

impl StatusPlace {
    /// All places, in the order in which they are searched.
    pub const ALL: [Self; 3] = [Self::Drop, Self::Workspace, Self::WorkspaceAi];

    /// Returns the name in files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Workspace => "workspace",
            Self::WorkspaceAi => "workspace-ai",
        }
    }

    /// Returns the path of the file: relative to the drop folder or to the workspace.
    pub fn path(self) -> &'static str {
        match self {
            Self::Drop | Self::Workspace => FALLBACKS[0],
            Self::WorkspaceAi => FALLBACKS[1],
        }
    }

    /// Returns the path of the file as messages name it.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Drop => "$GLOVEBOX_STATUS_DIR/status.json",
            Self::Workspace | Self::WorkspaceAi => self.path(),
        }
    }
}

/// A place that was searched, and what was found there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchedStatus {
    /// The place.
    pub place: StatusPlace,
    /// The path of the file: below `$GLOVEBOX_STATUS_DIR`, or in the workspace.
    pub path: String,
    /// What was found.
    pub found: StatusFound,
    /// To whom the file belongs; absent if no status was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<StatusOwnership>,
}

/// What was found at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusFound {
    /// No file. A file that was in the workspace before the attempt is hidden from the stage and counts as no file.
    Missing,
    /// A status.
    Parsed,
    /// A link, a folder, a FIFO or another entry that is no regular file.
    NotAFile,
    /// A file that is longer than the limit.
    TooLong,
    /// A file that could not be read.
    Unreadable,
    /// A text that is not a JSON object.
    NotJson,
    /// An object without `outcome` and without `status`.
    NoOutcome,
    /// An object with a key that occurs twice.
    DuplicateKey,
    /// A field with different values under its two names.
    Contradiction,
    /// An outcome that does not exist.
    UnknownOutcome,
    /// A field of the wrong type.
    WrongType,
    /// A label, an id or a context value outside of the bounds of every outcome.
    OutOfBounds,
}

/// To whom a status belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusOwnership {
    /// Its owner fields name this attempt.
    Named,
    /// It has no owner fields, and only this attempt can have written at its path.
    ByPath,
    /// Its owner fields name another attempt.
    Foreign,
}

/// What the engine did with the file that decides. The write scope, claims and hold-outs are checked afterwards, and can still
/// replace the outcome by a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusEffect {
    /// No file decides, so the outcome of the stage stands.
    None,
    /// The outcome of the stage was taken from the file, within the limits of decision status-files.
    Accepted,
    /// The stage failed, and the file claims that it did not. Nothing was taken from the file.
    Overruled,
    /// The file in the drop folder is unusable or belongs to another attempt, so the attempt fails.
    Refused,
}

/// The stored copy of a status file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusCopy {
    /// The name of the artifact.
    pub artifact: String,
    /// The digest of the bytes.
    pub digest: Digest,
    /// The length in bytes.
    pub bytes: u64,
}
