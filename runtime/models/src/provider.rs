//! The wire formats of model providers, one file each, behind one trait.
//!
//! An adapter writes a request as its provider reads it, and reads the events of the answer into a [`Draft`]. It opens no
//! connection and decides no retry. Data from a provider or a guest is bounded, and read field by field.

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

/// A header of a request.
#[derive(Debug)]
pub struct Header {
    /// Its name, in lower case.
    pub name: &'static str,
    /// Its value, one printable line.
    pub value: String,
}

/// The rule that separates the events of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFraming {
    /// Server-sent events whose data is JSON.
    ServerSentEvents,
    /// One JSON value on each line.
    Lines,
}

/// Whether more events are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More events follow.
    More,
    /// That was the last one.
    Last,
}

/// Wire format of one kind of provider.
pub trait Provider: Sync {
    /// Returns the path behind the endpoint's path.
    fn path(&self, model: &ModelId) -> String;

    /// Headers beside those that every request has.
    fn headers(&self, key: Option<&Key>) -> Vec<Header>;

    /// Returns the request as JSON, for a streamed answer.
    fn body(&self, target: &Target, request: &Request) -> Value;

    /// Returns the rule that separates events.
    fn framing(&self) -> EventFraming {
        EventFraming::ServerSentEvents
    }

    /// Returns a reader for one answer.
    fn reader(&self) -> Box<dyn Reader>;
}

/// Reads one answer.
pub trait Reader {
    /// Takes an event into the draft.
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<Step, ModelError>;

    /// Returns true if the answer may end with the body, once its reason to finish is known: there is no last event.
    fn ends_with_body(&self) -> bool {
        false
    }
}

impl Family {
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
}

/// `authorization: Bearer KEY`.
fn bearer(key: Option<&Key>) -> Vec<Header> {
    key.map(|key| Header { name: "authorization", value: format!("Bearer {}", key.reveal()) }).into_iter().collect()
}
