//! The families of providers, one for each wire format, with the properties that are known before any request.

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
    /// Chat completions, which many servers support.
    OpenaiCompatible,
    /// Ollama's own API.
    Ollama,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 5] = [Self::Openai, Self::Anthropic, Self::Gemini, Self::OpenaiCompatible, Self::Ollama];

    /// Returns the name in glovebox.toml and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenaiCompatible => "openai-compatible",
            Self::Ollama => "ollama",
        }
    }

    /// Returns the default endpoint, or `None` if there is no common one.
    pub fn endpoint(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Self::OpenaiCompatible => None,
            Self::Ollama => Some("http://127.0.0.1:11434"),
        }
    }

    /// Returns the environment variable from which the provider's own tools read the key, or `None` if a key is usually not needed.
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::OpenaiCompatible | Self::Ollama => None,
        }
    }

    /// Returns true if the schema mode allows tools in the same request.
    pub fn has_schema_beside_tools(self) -> bool {
        matches!(self, Self::Openai | Self::Anthropic)
    }

    /// Returns true if the schema mode is on by default. It is off for chat completions, because many servers do not support it.
    pub fn has_schema_mode(self) -> bool {
        self != Self::OpenaiCompatible
    }

    /// Returns true if models accept images by default. For other servers it depends on the model.
    pub fn takes_images(self) -> bool {
        matches!(self, Self::Openai | Self::Anthropic | Self::Gemini)
    }

    /// Returns true if the schema mode supports this schema.
    pub fn takes(self, schema: &Schema) -> bool {
        self != Self::Anthropic || schema.closed_form().is_some()
    }

    /// Returns the kind of the parts that only this family understands and gets back.
    pub(crate) fn opaque_kind(self) -> String {
        format!("opaque:{self}")
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
