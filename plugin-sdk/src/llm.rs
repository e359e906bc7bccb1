//! The model that the operator bound to this node. A plugin cannot choose a provider or a model.
//!
//! The host counts turns and tool rounds. If a limit is exceeded, [`complete`] returns `limit-exceeded`.

use crate::bindings::glovebox::plugin::{chat, llm};
use crate::imports::llm as host;

pub use chat::{Message, Part, ToolDef, Usage};
pub use llm::{Error, Request, Response};

/// Asks the model and waits for the answer.
///
/// The option `answer-within` sets a time limit for the answer in seconds, from 1 to 3600. Such a request is optional: its answer is
/// not checked against the stage's schema, and the stage does not fail if the model does not answer.
///
/// # Errors
/// `request-timeout` after `answer-within`, or `limit-exceeded`, `script-exhausted`, `not-granted`, or an error of the provider in
/// [`Error::kind`].
pub fn complete(request: &Request) -> Result<Response, Error> {
    host::complete(request)
}

/// Returns the properties of the model: `provider`, `model`, `context-window`.
pub fn properties() -> Vec<(String, String)> {
    host::info()
}

impl Message {
    /// Creates a message with one text part. `role` is `system`, `user`, `assistant` or `tool`.
    pub fn text(role: impl Into<String>, text: impl Into<String>) -> Self {
        Self { role: role.into(), parts: vec![Part::new("text", text)] }
    }

    /// Returns the text parts of the message as one text.
    pub fn whole_text(&self) -> String {
        self.parts.iter().filter(|part| part.kind == "text").map(|part| part.text.as_str()).collect()
    }
}

impl Part {
    /// Creates a part without fields.
    pub fn new(kind: impl Into<String>, text: impl Into<String>) -> Self {
        Self { kind: kind.into(), text: text.into(), fields: Vec::new() }
    }

    /// Adds a field.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Returns the value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
