//! The inputs that the caller adds to a pipeline file: values, texts of other files, and whether hold-outs exist.

use std::collections::BTreeMap;

/// Texts of files, by the path in the pipeline file. For a file that could not be read, the error is the reason.
pub type Files = BTreeMap<String, Result<String, String>>;

/// The inputs that the caller adds to a pipeline file.
///
/// `--set key=value` replaces `$key` in the goal and in prompts, and the value of the graph attribute `key`. A key that the file
/// does not use is an error (`input_declared`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The values of `--set`, by key.
    pub set: BTreeMap<String, String>,
    /// The texts of the files that the pipeline refers to, which [`crate::ParsedFile::references`] lists. A missing text is an
    /// error.
    pub files: Files,
    /// True if the caller found a folder with hold-outs. A file may also name such a folder itself.
    pub scenarios_found: bool,
}
