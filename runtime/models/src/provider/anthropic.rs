//! Anthropic's Messages API.
//!
//! Thinking parts are sent back unchanged, with their signature. The beginning of the prompt and the end of the conversation are
//! marked for the provider's cache, so that a turn pays the full price only for new content.

use super::draft::Slot;
use super::wire::{self, Speaker};
use super::{Draft, Header, Provider, ProviderRefusal, Reader, Step};
use crate::chat::{Effort, FieldName, Finish, ModelId, Request, TEXT, TOOL_CALL, TOOL_RESULT, Usage};
use crate::error::ModelError;
use crate::family::Family;
use crate::image::{Image, images_of};
use crate::key::Key;
use crate::target::Target;
use glovebox_record::session::{Message, MessagePart};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Adapter of the Messages API.
pub(super) struct Anthropic;

/// Minimum number of thinking tokens that the provider accepts.
const THINKING_MIN: u64 = 1024;

impl Provider for Anthropic {
    fn path(&self, _model: &ModelId) -> String {
        "/messages".to_owned()
    }

    fn headers(&self, key: Option<&Key>) -> Vec<Header> {
        let version = Header { name: "anthropic-version", value: "2023-06-01".to_owned() };
        let key = key.map(|key| Header { name: "x-api-key", value: key.reveal().to_owned() });
        std::iter::once(version).chain(key).collect()
    }

    fn body(&self, target: &Target, request: &Request) -> Value {
        let tokens_max = target.output_tokens(&request.settings);
        let mut body = json!({ "model": target.model, "max_tokens": tokens_max, "stream": true,
            "messages": messages(request) });
        let system = wire::system(request);
        if !system.is_empty() {
            body["system"] = json!([{ "type": "text", "text": system, "cache_control": { "type": "ephemeral" } }]);
        }
        if !request.tools.is_empty() {
            let tool = |tool| {
                let schema = wire::schema(tool);
                json!({ "name": tool.name, "description": tool.description, "input_schema": schema })
            };
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        if let Some(schema) = request.schema.as_ref().and_then(|schema| schema.closed_form()) {
            body["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema } });
        }
        match request.settings.effort.and_then(|effort| thinking(effort, tokens_max)) {
            // The provider refuses a temperature together with thinking.
            Some(tokens) => body["thinking"] = json!({ "type": "enabled", "budget_tokens": tokens }),
            None => {
                wire::set(&mut body, "temperature", request.settings.temperature.map(|heat| heat.min(1.0)));
                wire::set(&mut body, "top_p", request.settings.top_p);
            }
        }
        body
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(AnthropicReader::default())
    }
}

/// Returns the number of thinking tokens, at most half of the answer, or `None` if that is fewer than the minimum.
fn thinking(effort: Effort, tokens_max: u64) -> Option<u64> {
    let wanted = match effort {
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        Effort::High => 24_576,
    };
    Some(wanted.min(tokens_max / 2)).filter(|tokens| *tokens >= THINKING_MIN)
}

/// Returns the conversation. Consecutive messages of the same role become one message.
fn messages(request: &Request) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in wire::talk(request) {
        let role = if Speaker::from_message(message) == Speaker::Assistant { "assistant" } else { "user" };
        let blocks = blocks(message);
        match messages.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    messages.retain(|(_, blocks)| !blocks.is_empty());
    if let Some(("user", blocks)) = messages.last_mut().map(|(role, blocks)| (*role, blocks))
        && let Some(last) = blocks.last_mut()
    {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
    messages.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn blocks(message: &Message) -> Vec<Value> {
    let block = |part: &MessagePart| match part.kind.as_str() {
        TEXT => (!part.text.trim().is_empty()).then(|| json!({ "type": "text", "text": part.text })),
        TOOL_CALL => Some(
            json!({ "type": "tool_use", "id": FieldName::Id.value_in(part), "name": FieldName::Name.value_in(part),
            "input": wire::arguments(part) }),
        ),
        TOOL_RESULT => Some(json!({ "type": "tool_result", "tool_use_id": FieldName::CallId.value_in(part),
            "content": tool_result(message, part), "is_error": FieldName::IsError.value_in(part) == "true" })),
        _ => thought(&wire::opaque(part, Family::Anthropic)?),
    };
    message.parts.iter().filter_map(block).collect()
}

/// Returns the result of a tool as a text, or as blocks if it has images.
fn tool_result(message: &Message, result: &MessagePart) -> Value {
    let image = |image: Image<'_>| {
        let source = json!({ "type": "base64", "media_type": image.media_type.as_str(), "data": image.data });
        json!({ "type": "image", "source": source })
    };
    let images: Vec<Value> = images_of(message, result).map(image).collect();
    if images.is_empty() {
        return json!(result.text);
    }
    let text = (!result.text.trim().is_empty()).then(|| json!({ "type": "text", "text": result.text }));
    text.into_iter().chain(images).collect()
}

/// Returns a thinking block with only the fields that are sent back.
fn thought(block: &Value) -> Option<Value> {
    wire::taken(block, &["thinking", "redacted_thinking"], &["type", "thinking", "signature", "data"])
}

/// Reader of an answer of the Messages API.
#[derive(Default)]
struct AnthropicReader {
    blocks: BTreeMap<u64, Block>,
}

/// A content block that is being received.
enum Block {
    /// Text, or the arguments of a tool call.
    Open(Slot),
    /// A thinking block, which is stored when it is complete.
    Thinking(Value),
    /// A block of another type, which is ignored.
    Unknown,
}

impl Reader for AnthropicReader {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<Step, ModelError> {
        let index = wire::count(&event["index"]);
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                draft.answered_by(&event["message"]["model"]);
                draft.usage = usage(&event["message"]["usage"], draft.usage);
            }
            "content_block_start" => {
                let block = begin(&event["content_block"], draft)?;
                self.blocks.insert(index, block);
            }
            "content_block_delta" => {
                if let Some(block) = self.blocks.get_mut(&index) {
                    block.add(&event["delta"], draft)?;
                }
            }
            "content_block_stop" => {
                if let Some(Block::Thinking(block)) = self.blocks.remove(&index) {
                    draft.keep(Family::Anthropic, block.to_string())?;
                }
            }
            "message_delta" => {
                draft.usage = usage(&event["usage"], draft.usage);
                draft.finish = event["delta"]["stop_reason"].as_str().map(finish);
            }
            "message_stop" => return Ok(Step::Last),
            "error" => return Err(ProviderRefusal::in_stream(event)),
            _ => {}
        }
        Ok(Step::More)
    }
}

fn begin(block: &Value, draft: &mut Draft) -> Result<Block, ModelError> {
    Ok(match block["type"].as_str().unwrap_or_default() {
        "text" => Block::Open(draft.push(crate::chat::text_part(block["text"].as_str().unwrap_or_default()))?),
        "tool_use" => Block::Open(draft.call(&block["id"], &block["name"], String::new())?),
        "thinking" | "redacted_thinking" => thought(block).map_or(Block::Unknown, Block::Thinking),
        _ => Block::Unknown,
    })
}

impl Block {
    fn add(&mut self, delta: &Value, draft: &mut Draft) -> Result<(), ModelError> {
        let text = |field: &str| delta[field].as_str().unwrap_or_default();
        match (self, delta["type"].as_str().unwrap_or_default()) {
            (Self::Open(slot), "text_delta") => draft.extend(*slot, text("text")),
            (Self::Open(slot), "input_json_delta") => draft.extend(*slot, text("partial_json")),
            (Self::Thinking(block), "thinking_delta") => {
                append(&mut block["thinking"], text("thinking"));
                draft.grow_by(text("thinking").len())
            }
            (Self::Thinking(block), "signature_delta") => {
                append(&mut block["signature"], text("signature"));
                draft.grow_by(text("signature").len())
            }
            _ => Ok(()),
        }
    }
}

fn append(value: &mut Value, more: &str) {
    match value {
        Value::String(text) => text.push_str(more),
        other => *other = more.into(),
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::ContentFilter,
        _ => Finish::Other,
    }
}

/// Returns the tokens so far. The provider counts cached tokens separately; they are added here.
fn usage(usage: &Value, before: Option<Usage>) -> Option<Usage> {
    if !usage.is_object() {
        return before;
    }
    let before = before.unwrap_or_default();
    let or = |field: &str, before: u64| usage[field].as_u64().unwrap_or(before);
    let cache_read = or("cache_read_input_tokens", before.cache_read);
    let cache_write = or("cache_creation_input_tokens", before.cache_write);
    let fresh = before.input.saturating_sub(before.cache_read).saturating_sub(before.cache_write);
    let input = or("input_tokens", fresh).saturating_add(cache_read).saturating_add(cache_write);
    Some(Usage { input, output: or("output_tokens", before.output), cache_read, cache_write, ..before })
}
