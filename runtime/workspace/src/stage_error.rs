//! Why the files of a stage could not be made, read or changed.

use crate::tree::{self, WalkError};
use std::io;
use std::path::Path;

/// Why a stage's files could not be made or examined.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The stage left more than a limit allows.
    #[error("the stage reached `limits.{limit}` ({max}) at `{path}`")]
    Limit {
        /// Name of the limit.
        limit: &'static str,
        /// Its value.
        max: u64,
        /// The path, with unprintable characters escaped.
        path: String,
    },
    /// The operating system refused.
    #[error("could not read the stage's files at `{path}`: {source}")]
    Io {
        /// Path at which it happened.
        path: String,
        /// The system's answer.
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
