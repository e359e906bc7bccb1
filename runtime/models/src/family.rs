//! The families of providers: one for each wire format, with the facts that are known before any request.

use glovebox_schema::Schema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// OpenAI's Responses API.
    Openai,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// The chat completions that many servers speak.
    OpenaiCompatible,
    /// Ollama's own API.
    Ollama,
}

impl Family {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Openai, Self::Anthropic, Self::Gemini, Self::OpenaiCompatible, Self::Ollama];

    /// Returns the word in glovebox.toml and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenaiCompatible => "openai-compatible",
            Self::Ollama => "ollama",
        }
    }

    /// Default endpoint of its provider, or `None` if each operator has a different one.
    pub fn endpoint(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Self::OpenaiCompatible => None,
            Self::Ollama => Some("http://127.0.0.1:11434"),
        }
    }

    /// Returns the environment variable that its provider's own tools read the key from, or `None` if no key is the rule.
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::OpenaiCompatible | Self::Ollama => None,
        }
    }

    /// Returns true if it has a schema mode in which tools may be called.
    pub fn has_schema_beside_tools(self) -> bool {
        matches!(self, Self::Openai | Self::Anthropic)
    }

    /// Returns true if its schema mode is on unless the operator says otherwise: many servers with chat completions have none.
    pub fn has_schema_mode(self) -> bool {
        self != Self::OpenaiCompatible
    }

    /// Returns true if its models take images unless the operator says otherwise: of other servers' models only some do.
    pub fn takes_images(self) -> bool {
        matches!(self, Self::Openai | Self::Anthropic | Self::Gemini)
    }

    /// Returns true if its schema mode supports this schema.
    pub fn takes(self, schema: &Schema) -> bool {
        self != Self::Anthropic || schema.closed_form().is_some()
    }

    /// Returns the kind of the parts that belong to it, and go back to it alone.
    pub(crate) fn opaque_kind(self) -> String {
        format!("opaque:{self}")
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
