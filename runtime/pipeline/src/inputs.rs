//! The inputs that the caller adds to a file: values, texts of other files, and whether hold-outs exist.

use std::collections::BTreeMap;

/// Texts of files by the path that refers to them; for a file that could not be read, the reason.
pub type Files = BTreeMap<String, Result<String, String>>;

/// The inputs of a file from its caller.
///
/// `--set key=value` replaces `$key` in the goal and in prompts, and the value of the graph attribute `key`. A key that the file does not
/// use is an error (`input_declared`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The values by key.
    pub set: BTreeMap<String, String>,
    /// The texts of the files that the pipeline refers to, which [`crate::ParsedFile::references`] lists. A missing text is an error.
    pub files: Files,
    /// True if the caller found a folder with hold-outs. A file may also name one itself.
    pub scenarios_found: bool,
}
