//! Ollama's own API, whose answer is one JSON value on each line.
//!
//! Tool calls have no ids in this API, and results name the tool. Without a context length, Ollama silently cuts a long prompt, so a
//! length is always sent.

use super::wire::{self, Speaker};
use super::{Draft, EventFraming, Header, Provider, ProviderRefusal, Reader, Step, bearer, compatible};
use crate::chat::{FieldName, Finish, ModelId, Request, TOOL_CALL, TOOL_RESULT, Usage};
use crate::error::ModelError;
use crate::family::Family;
use crate::image::Image;
use crate::key::Key;
use crate::target::Target;
use glovebox_record::session::{Message, MessagePart};
use serde_json::{Value, json};

/// Adapter of Ollama's API.
pub(super) struct Ollama;

impl Provider for Ollama {
    fn path(&self, _model: &ModelId) -> String {
        "/api/chat".to_owned()
    }

    fn headers(&self, key: Option<&Key>) -> Vec<Header> {
        bearer(key)
    }

    fn body(&self, target: &Target, request: &Request) -> Value {
        let settings = request.settings;
        let mut options = json!({ "num_predict": target.output_tokens(&settings), "num_ctx": target.context_tokens });
        wire::set(&mut options, "temperature", settings.temperature);
        wire::set(&mut options, "top_p", settings.top_p);
        let mut body =
            json!({ "model": target.model, "messages": messages(request), "stream": true, "options": options });
        wire::set(&mut body, "think", settings.effort.map(|effort| effort.as_str()));
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(compatible::tool).collect();
        }
        wire::set(&mut body, "format", request.schema.as_ref().map(|schema| schema.value().to_owned()));
        body
    }

    fn framing(&self) -> EventFraming {
        EventFraming::Lines
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(OllamaReader::default())
    }
}

fn messages(request: &Request) -> Vec<Value> {
    let system = wire::system(request);
    let system = (!system.is_empty()).then(|| json!({ "role": "system", "content": system }));
    let talk = wire::talk(request).flat_map(|message| match Speaker::from_message(message) {
        Speaker::Assistant => vec![assistant(message)],
        Speaker::Tool => results(request, message),
        Speaker::System | Speaker::User => vec![json!({ "role": "user", "content": wire::text(message) })],
    });
    system.into_iter().chain(talk).collect()
}

fn assistant(message: &Message) -> Value {
    let mut written = json!({ "role": "assistant", "content": wire::text(message) });
    let call = |part: &MessagePart| json!({ "function": { "name": FieldName::Name.value_in(part), "arguments": wire::arguments(part) } });
    let calls: Vec<Value> = message.parts.iter().filter(|part| part.kind == TOOL_CALL).map(call).collect();
    wire::set(&mut written, "tool_calls", (!calls.is_empty()).then_some(calls));
    let kept = message.parts.iter().find_map(|part| wire::opaque(part, Family::Ollama));
    let thinking = kept.map(|mut kept| kept["thinking"].take()).filter(Value::is_string);
    wire::set(&mut written, "thinking", thinking);
    written
}

fn results(request: &Request, message: &Message) -> Vec<Value> {
    let results = message.parts.iter().filter(|part| part.kind == TOOL_RESULT);
    let result =
        |part: &MessagePart| json!({ "role": "tool", "tool_name": wire::tool_of(request, part), "content": part.text });
    let picture =
        |(text, image): (String, Image<'_>)| json!({ "role": "user", "content": text, "images": [image.data] });
    results.map(result).chain(compatible::pictures(message).map(picture)).collect()
}

/// Reader of an answer of Ollama's API.
#[derive(Default)]
struct OllamaReader {
    thinking: String,
}

impl Reader for OllamaReader {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<Step, ModelError> {
        if !event["error"].is_null() {
            return Err(ProviderRefusal::in_stream(event));
        }
        draft.answered_by(&event["model"]);
        let message = &event["message"];
        let thought = message["thinking"].as_str().unwrap_or_default();
        draft.grow_by(thought.len())?;
        self.thinking.push_str(thought);
        draft.add_text(&message["content"])?;
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            draft.call(&call["id"], &function["name"], function["arguments"].to_string())?;
        }
        if event["done"] != true {
            return Ok(Step::More);
        }
        if !self.thinking.is_empty() {
            let kept = json!({ "thinking": std::mem::take(&mut self.thinking) });
            draft.keep(Family::Ollama, kept.to_string())?;
        }
        draft.finish = Some(match event["done_reason"].as_str() {
            Some("length") => Finish::Length,
            _ if draft.calls_tools() => Finish::ToolCalls,
            Some("stop") | None => Finish::Stop,
            Some(_) => Finish::Other,
        });
        draft.usage = event["eval_count"].is_u64().then(|| Usage {
            input: wire::count(&event["prompt_eval_count"]),
            output: wire::count(&event["eval_count"]),
            ..Usage::default()
        });
        Ok(Step::Last)
    }
}
