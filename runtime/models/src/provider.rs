//! The wire formats of model providers, one file each, behind one trait.
//!
//! An adapter writes a request as its provider reads it, and reads the events of the answer into a [`Draft`]. It opens no
//! connection and decides no retry. What it takes from a provider or a guest is bounded and taken field by field.

mod anthropic;
mod compatible;
mod draft;
mod events;
mod gemini;
mod ollama;
mod openai;
mod refusal;
mod wire;

pub use draft::Draft;
pub(crate) use events::{Event, Splitter};
pub(crate) use refusal::Refused;

use crate::chat::{ModelId, Request};
use crate::error::ModelError;
use crate::key::Key;
use crate::target::Target;
use glovebox_schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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

/// A header of a request.
#[derive(Debug)]
pub struct Header {
    /// Its name, in lower case.
    pub name: &'static str,
    /// Its value, one printable line.
    pub value: String,
}

/// How the events of an answer are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events whose data is JSON.
    ServerSentEvents,
    /// One JSON value on each line.
    Lines,
}

/// Whether an answer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More events follow.
    More,
    /// That was the last one.
    Last,
}

/// What one kind of provider expects and sends.
pub trait Provider: Sync {
    /// What follows the endpoint's path.
    fn path(&self, model: &ModelId) -> String;

    /// Headers beside those that every request has.
    fn headers(&self, key: Option<&Key>) -> Vec<Header>;

    /// The request as JSON, for a streamed answer.
    fn body(&self, target: &Target, request: &Request) -> Value;

    /// How events are told apart.
    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    /// A reader for one answer.
    fn reader(&self) -> Box<dyn Reader>;
}

/// Reads one answer.
pub trait Reader {
    /// Takes an event into the draft.
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<Step, ModelError>;

    /// True if the answer may end with the body, once its reason to finish is known: there is no last event.
    fn ends_with_body(&self) -> bool {
        false
    }
}

impl Family {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Openai, Self::Anthropic, Self::Gemini, Self::OpenaiCompatible, Self::Ollama];

    /// The word in glovebox.toml and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenaiCompatible => "openai-compatible",
            Self::Ollama => "ollama",
        }
    }

    /// Its adapter.
    pub fn provider(self) -> &'static dyn Provider {
        match self {
            Self::Openai => &openai::Openai,
            Self::Anthropic => &anthropic::Anthropic,
            Self::Gemini => &gemini::Gemini,
            Self::OpenaiCompatible => &compatible::Compatible,
            Self::Ollama => &ollama::Ollama,
        }
    }

    /// Where its provider is reached; none where every operator has their own.
    pub fn endpoint(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Self::OpenaiCompatible => None,
            Self::Ollama => Some("http://127.0.0.1:11434"),
        }
    }

    /// The environment variable that its provider's own tools read the key from; none where no key is the rule.
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::OpenaiCompatible | Self::Ollama => None,
        }
    }

    /// True if it has a schema mode in which tools may be called.
    pub fn has_schema_beside_tools(self) -> bool {
        matches!(self, Self::Openai | Self::Anthropic)
    }

    /// True if its schema mode is on unless the operator says otherwise: many servers with chat completions have none.
    pub fn has_schema_mode(self) -> bool {
        self != Self::OpenaiCompatible
    }

    /// True if its models take images unless the operator says otherwise: of other servers' models only some do.
    pub fn takes_images(self) -> bool {
        matches!(self, Self::Openai | Self::Anthropic | Self::Gemini)
    }

    /// True if its schema mode can be told this schema.
    pub fn takes(self, schema: &Schema) -> bool {
        self != Self::Anthropic || schema.closed_form().is_some()
    }

    /// The kind of the parts that belong to it, and go back to it alone.
    pub(crate) fn opaque_kind(self) -> String {
        format!("opaque:{self}")
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `authorization: Bearer KEY`.
fn bearer(key: Option<&Key>) -> Vec<Header> {
    key.map(|key| Header { name: "authorization", value: format!("Bearer {}", key.reveal()) }).into_iter().collect()
}
