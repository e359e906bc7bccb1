//! The wire formats of model providers: one file for each, behind one trait.
//!
//! An adapter converts a request to the provider's format, and reads the events of the answer into a [`Draft`]. It opens no
//! connections and does not decide about retries. Data from a provider or a guest is limited in length, and only known fields are
//! read.

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
pub(crate) use refusal::ProviderRefusal;

use crate::chat::{ModelId, Request};
use crate::error::ModelError;
use crate::family::Family;
use crate::key::Key;
use crate::target::Target;
use serde_json::Value;

/// A header of an HTTP request.
#[derive(Debug)]
pub struct Header {
    /// Name in lower case.
    pub name: &'static str,
    /// Value, which is one printable line.
    pub value: String,
}

/// How the events of an answer are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFraming {
    /// Server-sent events with JSON data.
    ServerSentEvents,
    /// One JSON value on each line.
    Lines,
}

/// Whether more events are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More events follow.
    More,
    /// This was the last event.
    Last,
}

/// The wire format of one kind of provider.
pub trait Provider: Sync {
    /// Returns the path that is appended to the path of the endpoint's URL.
    fn path(&self, model: &ModelId) -> String;

    /// Returns the headers in addition to those of every request.
    fn headers(&self, key: Option<&Key>) -> Vec<Header>;

    /// Returns the JSON of a request for a streamed answer.
    fn body(&self, target: &Target, request: &Request) -> Value;

    /// Returns how the events are separated.
    fn framing(&self) -> EventFraming {
        EventFraming::ServerSentEvents
    }

    /// Returns a reader for one answer.
    fn reader(&self) -> Box<dyn Reader>;
}

/// Reads one answer.
pub trait Reader {
    /// Reads an event into the draft.
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<Step, ModelError>;

    /// Returns true if an answer with a finish reason is complete when its body ends, because the provider may send no last event.
    fn ends_with_body(&self) -> bool {
        false
    }
}

impl Family {
    /// Returns the adapter of the family.
    pub fn provider(self) -> &'static dyn Provider {
        match self {
            Self::Openai => &openai::Openai,
            Self::Anthropic => &anthropic::Anthropic,
            Self::Gemini => &gemini::Gemini,
            Self::OpenaiCompatible => &compatible::Compatible,
            Self::Ollama => &ollama::Ollama,
        }
    }
}

/// Returns the header `authorization: Bearer KEY`.
fn bearer(key: Option<&Key>) -> Vec<Header> {
    key.map(|key| Header { name: "authorization", value: format!("Bearer {}", key.reveal()) }).into_iter().collect()
}
