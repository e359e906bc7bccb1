//! Gateway for programs that ask their model themselves. It checks their requests and forwards them to the provider.
//!
//! [`IncomingRequest`] is a request as the program sent it, and [`InFlight`] limits the memory of all requests together. [`check`]
//! accepts only allowed requests to the program's model. [`forward`] sends a request with the key, and reads the whole answer before
//! the program gets any of it. This module knows neither the program's credential nor its budget. The caller checks both.

mod fields;
mod forward;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
mod in_flight;
mod incoming;
mod items;
mod refusal;
mod whole;

pub use forward::{ForwardResult, forward};
pub use in_flight::{BODIES_BYTES_MAX, InFlight, Reservation};
pub use incoming::{IncomingRequest, ReadError};
pub use refusal::refusal;

use crate::chat::text_part;
use crate::error::{ErrorKind, ModelError};
use crate::family::Family;
use crate::provider::Header;
use crate::target::Target;
use glovebox_record::session::Message;
use glovebox_schema::document::{self, DocumentError};
use serde_json::{Value, json};

/// Maximum length of the names of API features that are forwarded, in bytes.
const FEATURES_BYTES_MAX: usize = 4 << 10;
/// Features of Anthropic's API that are forwarded, by the beginning of their names. The fields that they allow in a body are checked
/// separately. Other features are removed from the request, so that the provider uses its default behavior.
const FEATURES: &[&str] = &[
    "adaptive-thinking-",
    "advanced-tool-use-",
    "claude-code-",
    "computer-use-",
    "context-management-",
    "effort-",
    "extended-cache-ttl-",
    "fine-grained-tool-streaming-",
    "interleaved-thinking-",
    "mid-conversation-system-",
    "model-context-window-exceeded-",
    "oauth-",
    "output-128k-",
    "prompt-caching-",
    "redact-thinking-",
    "structured-outputs-",
    "task-budgets-",
    "thinking-token-count-",
    "token-counting-",
    "token-efficient-tools-",
    "tool-examples-",
    "tool-search-tool-",
];
/// Features that cost more than the amount that is reserved.
const COSTLY_FEATURES: &[&str] = &["context-1m", "fast-mode"];

/// A request of a program that was checked.
#[derive(Debug)]
pub enum CheckedRequest {
    /// A request for an answer of the model.
    Answer(Box<Question>),
    /// A request for the list of models. The gateway answers it with the one model.
    Models,
}

/// A request to the model that may be forwarded.
#[derive(Debug)]
pub struct Question {
    /// Path that is appended to the path of the endpoint's URL.
    path: String,
    headers: Vec<Header>,
    json: Value,
    /// True if the answer is a stream of events.
    pub is_streamed: bool,
    /// Maximum number of tokens of the answer.
    pub output_tokens_max: u64,
}

impl Question {
    /// Returns the JSON that is sent to the provider.
    pub fn body(&self) -> Vec<u8> {
        self.json.to_string().into_bytes()
    }

    /// Returns the number of messages that the program has presumably sent before: all but the last one.
    pub fn repeated(&self) -> usize {
        self.messages().len().saturating_sub(1)
    }

    /// Returns the texts of the last message as a message of the record.
    pub fn last(&self) -> Vec<Message> {
        let Some(last) = self.messages().last() else { return Vec::new() };
        let role = last["role"].as_str().unwrap_or("tool");
        let mut texts = Vec::new();
        conversation_texts(last, &mut texts);
        vec![Message { role: role.to_owned(), parts: vec![text_part(texts.join("\n"))] }]
    }

    fn messages(&self) -> &[Value] {
        let lists = ["messages", "input", "contents"].into_iter().map(|name| &self.json[name]);
        lists.filter_map(Value::as_array).map(Vec::as_slice).next().unwrap_or_default()
    }

    /// Returns every text of the request: first the texts of its messages in order, then all names and values.
    pub fn texts(&self) -> Vec<&str> {
        let mut texts = Vec::new();
        conversation_texts(&self.json, &mut texts);
        collect(&self.json, &mut texts);
        texts
    }
}

/// Collects the texts of messages, without names and ids.
fn conversation_texts<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| conversation_texts(item, texts)),
        Value::Object(fields) => fields.iter().for_each(|(name, item)| match (name.as_str(), item) {
            ("text" | "content" | "output" | "arguments", Value::String(text)) => texts.push(text),
            (_, Value::Array(_) | Value::Object(_)) => conversation_texts(item, texts),
            _ => {}
        }),
        _ => {}
    }
}

fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields.iter().for_each(|(name, item)| {
            texts.push(name);
            collect(item, texts);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Checks whether a request may be forwarded. Denied: other paths, other models, more values than a request may have, tools that run
/// at the provider, files and addresses that the provider would fetch, conversations that the provider has stored, and every field
/// that is not known to be harmless.
///
/// # Errors
/// [`ErrorKind::PinViolation`] for another model, and [`ErrorKind::NotGranted`] for everything else that is denied.
pub fn check(
    target: &Target,
    incoming: &IncomingRequest,
    room: &mut Reservation<'_>,
) -> Result<CheckedRequest, ModelError> {
    let path = unversioned(&incoming.path);
    if incoming.method == "GET" && path == "/models" {
        return Ok(CheckedRequest::Models);
    }
    let (own, is_streamed) = match target.family {
        Family::Openai => ("/responses".to_owned(), None),
        Family::Anthropic => ("/messages".to_owned(), None),
        Family::OpenaiCompatible => ("/chat/completions".to_owned(), None),
        Family::Gemini => return gemini(target, room, incoming, path),
        Family::Ollama => {
            return Err(denied(format_args!("requests to `{}`, expected a model of another provider", target.family)));
        }
    };
    if incoming.method != "POST" || path != own {
        return Err(denied(format_args!("`{} {}`, expected `POST {own}`", incoming.method, incoming.path)));
    }
    let mut json = object(incoming, room)?;
    pinned(target, json["model"].as_str())?;
    let is_streamed = is_streamed.unwrap_or(json["stream"] == true);
    let output_tokens_max = fields::check(target, &mut json)?;
    let query = if target.family == Family::Anthropic && incoming.query == "beta=true" { "?beta=true" } else { "" };
    let headers = features(target.family, incoming)?;
    let path = format!("{own}{query}");
    Ok(CheckedRequest::Answer(Box::new(Question { path, headers, json, is_streamed, output_tokens_max })))
}

/// Checks a request in Gemini's format, which has the model and the kind of answer in the path.
fn gemini(
    target: &Target,
    room: &mut Reservation<'_>,
    incoming: &IncomingRequest,
    path: &str,
) -> Result<CheckedRequest, ModelError> {
    let call = path.strip_prefix("/models/").and_then(|rest| rest.rsplit_once(':'));
    let (model, is_streamed) = match (incoming.method.as_str(), call) {
        ("POST", Some((model, "streamGenerateContent"))) => (model, true),
        ("POST", Some((model, "generateContent"))) => (model, false),
        _ => {
            return Err(denied(format_args!(
                "`{} {}`, expected `POST /models/MODEL:generateContent`",
                incoming.method, incoming.path
            )));
        }
    };
    pinned(target, Some(model))?;
    let mut json = object(incoming, room)?;
    let output_tokens_max = fields::check(target, &mut json)?;
    let (call, query) = if is_streamed { ("streamGenerateContent", "?alt=sse") } else { ("generateContent", "") };
    let path = format!("/models/{}:{call}{query}", target.model);
    Ok(CheckedRequest::Answer(Box::new(Question { path, headers: Vec::new(), json, is_streamed, output_tokens_max })))
}

/// Returns the list of models with the one model, in the format of the family.
pub fn models(target: &Target) -> Value {
    let model = &target.model;
    match target.family {
        Family::Gemini => json!({ "models": [{ "name": format!("models/{model}"), "displayName": model,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent"] }] }),
        _ => json!({ "object": "list", "has_more": false,
            "data": [{ "id": model, "object": "model", "type": "model", "display_name": model }] }),
    }
}

/// Returns the path without the version of the API, because the endpoint in glovebox.toml contains the version.
fn unversioned(path: &str) -> &str {
    ["/v1beta", "/v1alpha", "/v1"].iter().find_map(|version| path.strip_prefix(version)).unwrap_or(path)
}

fn object(incoming: &IncomingRequest, room: &mut Reservation<'_>) -> Result<Value, ModelError> {
    let not_json = "the body of the request is not a JSON object";
    match document::read_within(&incoming.body, &mut || room.take_portion()) {
        Ok(json) if json.is_object() => Ok(json),
        Ok(_) | Err(DocumentError::NotJson(_)) => Err(ModelError::new(ErrorKind::InvalidRequest, not_json)),
        Err(error @ DocumentError::TooManyValues) => {
            Err(ModelError::new(ErrorKind::InvalidRequest, format_args!("the body of the request: {error}")))
        }
        // Memory that other requests have reserved is released after they are answered, and the program's client retries.
        Err(error @ DocumentError::NoRoom) => Err(ModelError::new(ErrorKind::RateLimit, error)),
    }
}

fn pinned(target: &Target, asked: Option<&str>) -> Result<(), ModelError> {
    match asked {
        Some(model) if model == target.model.as_str() => Ok(()),
        Some(model) => {
            let shown: String = model.chars().take(80).collect();
            let message = format!("the program asked for model `{shown}`, expected `{}`", target.model);
            Err(ModelError::new(ErrorKind::PinViolation, message))
        }
        None => Err(ModelError::new(ErrorKind::PinViolation, "the request of the program names no model")),
    }
}

/// Returns the header with the requested API features that are allowed.
fn features(family: Family, incoming: &IncomingRequest) -> Result<Vec<Header>, ModelError> {
    if family != Family::Anthropic || incoming.features.is_empty() {
        return Ok(Vec::new());
    }
    let value = incoming.features.join(",");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_,. ".contains(&byte);
    if value.len() > FEATURES_BYTES_MAX || !value.bytes().all(is_plain) {
        return Err(denied(format_args!("a header `anthropic-beta` that is not a list of names")));
    }
    let names = || value.split(',').map(str::trim);
    if let Some(name) = names().find(|name| COSTLY_FEATURES.iter().any(|start| name.starts_with(start))) {
        return Err(denied(format_args!(
            "the feature `{}`, whose price differs from the reserved price",
            fields::shortened(name)
        )));
    }
    let known = names().filter(|name| FEATURES.iter().any(|start| name.starts_with(start)));
    let value = known.collect::<Vec<_>>().join(",");
    let header = (!value.is_empty()).then_some(Header { name: "anthropic-beta", value });
    Ok(header.into_iter().collect())
}

fn denied(what: std::fmt::Arguments<'_>) -> ModelError {
    ModelError::new(ErrorKind::NotGranted, format_args!("the gateway does not forward {what}"))
}

#[cfg(test)]
mod tests;
