//! The result of one tool call.

use crate::picture::Picture;

/// The result of a tool call, for the model.
#[derive(Debug)]
pub(crate) struct ToolResult {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// Id of the host's receipt, if a command ran.
    pub(crate) evidence: Option<String>,
    /// The whole text, if the model gets only a part of it.
    pub(crate) whole: Option<String>,
    /// A picture that is shown in addition to the text.
    pub(crate) picture: Option<Picture>,
}

impl From<String> for ToolResult {
    fn from(text: String) -> Self {
        Self { text, is_error: false, evidence: None, whole: None, picture: None }
    }
}
