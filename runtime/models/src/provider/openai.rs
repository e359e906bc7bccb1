//! OpenAI's Responses API, without state at the provider.
//!
//! The provider stores nothing. Therefore encrypted reasoning is requested and sent back with the calls to which it led.

use super::draft::{ANSWER_BYTES_MAX, too_large};
use super::wire::{self, Speaker};
use super::{Draft, Header, Provider, ProviderRefusal, Reader, Step, bearer};
use crate::chat::{FieldName, Finish, ModelId, Request, TEXT, TOOL_CALL, TOOL_RESULT, Usage};
use crate::error::ModelError;
use crate::family::Family;
use crate::image::{Image, images_of};
use crate::key::Key;
use crate::target::Target;
use glovebox_record::session::{Message, MessagePart};
use serde_json::{Value, json};

/// Adapter of the Responses API.
pub(super) struct Openai;

/// Models that refuse requests for encrypted reasoning, by the beginning of their names. All later models support
/// reasoning.
const WITHOUT_REASONING: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt-4"];

impl Provider for Openai {
    fn path(&self, _model: &ModelId) -> String {
        "/responses".to_owned()
    }

    fn headers(&self, key: Option<&Key>) -> Vec<Header> {
        bearer(key)
    }

    fn body(&self, target: &Target, request: &Request) -> Value {
        let input: Vec<Value> = wire::talk(request).flat_map(items).collect();
        let mut body = json!({ "model": target.model, "input": input, "stream": true, "store": false });
        let instructions = wire::system(request);
        wire::set(&mut body, "instructions", (!instructions.is_empty()).then_some(instructions));
        let settings = request.settings;
        body["max_output_tokens"] = target.output_tokens(&settings).into();
        wire::set(&mut body, "temperature", settings.temperature);
        wire::set(&mut body, "top_p", settings.top_p);
        wire::set(&mut body, "reasoning", settings.effort.map(|effort| json!({ "effort": effort })));
        if !WITHOUT_REASONING.iter().any(|start| target.model.as_str().starts_with(start)) {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        if !request.tools.is_empty() {
            let tool = |tool| {
                let parameters = wire::schema(tool);
                json!({ "type": "function", "name": tool.name, "description": tool.description,
                    "parameters": parameters, "strict": false })
            };
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        if let Some(schema) = &request.schema {
            body["text"] = json!({ "format": { "type": "json_schema", "name": wire::SCHEMA_NAME,
                "schema": schema.value(), "strict": schema.is_strict() } });
        }
        body
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(OpenaiReader::default())
    }
}

/// Returns a message as items of the Responses API.
fn items(message: &Message) -> Vec<Value> {
    let is_assistant = Speaker::from_message(message) == Speaker::Assistant;
    let (role, text_type) = if is_assistant { ("assistant", "output_text") } else { ("user", "input_text") };
    let item = |part: &MessagePart| match part.kind.as_str() {
        TEXT if part.text.is_empty() => None,
        TEXT => Some(json!({ "role": role, "content": [{ "type": text_type, "text": part.text }] })),
        TOOL_CALL => Some(json!({ "type": "function_call", "call_id": FieldName::Id.value_in(part),
            "name": FieldName::Name.value_in(part), "arguments": wire::arguments(part).to_string() })),
        TOOL_RESULT => Some(json!({ "type": "function_call_output", "call_id": FieldName::CallId.value_in(part),
            "output": tool_result(message, part) })),
        _ => reasoning(&wire::opaque(part, Family::Openai)?),
    };
    message.parts.iter().filter_map(item).collect()
}

/// Returns the result of a tool as a text, or as a list if it has images.
fn tool_result(message: &Message, result: &MessagePart) -> Value {
    let image = |image: Image<'_>| json!({ "type": "input_image", "image_url": image.data_url() });
    let images: Vec<Value> = images_of(message, result).map(image).collect();
    if images.is_empty() {
        return json!(result.text);
    }
    let text = (!result.text.is_empty()).then(|| json!({ "type": "input_text", "text": result.text }));
    text.into_iter().chain(images).collect()
}

/// Returns a reasoning item with only the fields that are sent back, or `None` without encrypted content, since the item would then be
/// useless.
fn reasoning(item: &Value) -> Option<Value> {
    let taken = wire::taken(item, &["reasoning"], &["type", "id", "summary", "encrypted_content"])?;
    taken["encrypted_content"].is_string().then_some(taken)
}

/// Reader of an answer of the Responses API. Finished items contain everything, so the deltas before them are only a
/// preview.
#[derive(Default)]
struct OpenaiReader {
    /// Number of bytes of the deltas.
    streamed: usize,
}

impl Reader for OpenaiReader {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<Step, ModelError> {
        draft.answered_by(&event["response"]["model"]);
        self.streamed = self.streamed.saturating_add(event["delta"].as_str().map_or(0, str::len));
        if self.streamed > ANSWER_BYTES_MAX {
            return Err(too_large());
        }
        match event["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => {
                draft.preview(event["delta"].as_str().unwrap_or_default());
            }
            "response.output_item.done" => {
                draft.end_preview();
                take_item(&event["item"], draft)?;
            }
            "response.completed" | "response.incomplete" => {
                let response = &event["response"];
                draft.usage = usage(&response["usage"]);
                draft.finish = Some(match response["incomplete_details"]["reason"].as_str() {
                    Some("max_output_tokens") => Finish::Length,
                    Some("content_filter") => Finish::ContentFilter,
                    Some(_) => Finish::Other,
                    None if draft.calls_tools() => Finish::ToolCalls,
                    None => Finish::Stop,
                });
                return Ok(Step::Last);
            }
            "response.failed" | "error" => return Err(ProviderRefusal::in_stream(event)),
            _ => {}
        }
        Ok(Step::More)
    }
}

fn take_item(item: &Value, draft: &mut Draft) -> Result<(), ModelError> {
    match item["type"].as_str().unwrap_or_default() {
        "message" => {
            for content in item["content"].as_array().into_iter().flatten() {
                draft.add_text(&content["text"])?;
                draft.add_text(&content["refusal"])?;
            }
        }
        "function_call" => {
            let arguments = item["arguments"].as_str().unwrap_or_default().to_owned();
            draft.call(&item["call_id"], &item["name"], arguments)?;
        }
        "reasoning" => {
            if let Some(kept) = reasoning(item) {
                draft.keep(Family::Openai, kept.to_string())?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn usage(usage: &Value) -> Option<Usage> {
    usage.is_object().then(|| Usage {
        input: wire::count(&usage["input_tokens"]),
        output: wire::count(&usage["output_tokens"]),
        cache_read: wire::count(&usage["input_tokens_details"]["cached_tokens"]),
        reasoning: wire::count(&usage["output_tokens_details"]["reasoning_tokens"]),
        ..Usage::default()
    })
}
