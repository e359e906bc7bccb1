//! The result of one tool call.

use crate::picture::Picture;

/// The answer of a tool to the model.
#[derive(Debug)]
pub(crate) struct ToolResult {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// The host's receipt of a command.
    pub(crate) evidence: Option<String>,
    /// The whole text, where the model gets only a part of it.
    pub(crate) whole: Option<String>,
    /// The picture that it shows beside its text.
    pub(crate) picture: Option<Picture>,
}

impl From<String> for ToolResult {
    fn from(text: String) -> Self {
        Self { text, is_error: false, evidence: None, whole: None, picture: None }
    }
}
