//! Errors of creating, reading and changing the files of a stage.

use crate::tree::{self, WalkError};
use std::io;
use std::path::Path;

/// Why a stage's files could not be created or examined.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The stage's changes exceed a limit.
    #[error("the stage reached `limits.{limit}` ({max}) at `{path}`")]
    Limit {
        /// Name of the limit.
        limit: &'static str,
        /// Value of the limit.
        max: u64,
        /// The path, with unprintable characters escaped.
        path: String,
    },
    /// The operating system refused.
    #[error("could not read the stage's files at `{path}`: {source}")]
    Io {
        /// Path on which it failed.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

impl StageError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: tree::shown(path), source }
    }
}

impl From<WalkError> for StageError {
    fn from(error: WalkError) -> Self {
        Self::io(&error.path, error.source)
    }
}
