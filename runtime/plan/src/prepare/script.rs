//! The script that answers model calls in place of a model.

use super::refusal::{Class, Refusal};
use super::source;
use glovebox_host::llm::Script;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A model script that was read from a file.
pub struct ScriptFile {
    /// The text of the script, for the journal.
    pub text: String,
    /// The parsed script.
    pub script: Arc<Script>,
}

/// Reads a model script. A script that cannot be parsed is refused, with the line of the error.
pub fn read_script(file: &Path) -> Result<ScriptFile, Refusal> {
    let text = source::read_text(file)?;
    parse_script(text, file.display())
}

/// Parses a model script that was read from `name`.
pub fn parse_script(text: String, name: impl fmt::Display) -> Result<ScriptFile, Refusal> {
    let script = Script::parse(&text).map_err(|error| {
        Refusal::new(Class::Invalid, format!("script `{name}` line {}: {}", error.line, error.problem))
    })?;
    Ok(ScriptFile { text, script: Arc::new(script) })
}
