//! Google's Gemini API.
//!
//! A function call may have a `thoughtSignature`, which identifies the model's thoughts. It is stored as a part before the call and
//! sent back with the call.

use super::wire::{self, Speaker};
use super::{Draft, Header, Provider, ProviderRefusal, Reader, Step};
use crate::chat::{Effort, FieldName, Finish, ModelId, Request, TEXT, TOOL_CALL, TOOL_RESULT, Usage};
use crate::error::{ErrorKind, ModelError};
use crate::family::Family;
use crate::image::{Image, images_of};
use crate::key::Key;
use crate::target::Target;
use glovebox_record::session::{Message, MessagePart};
use serde_json::{Value, json};

/// Adapter of the Gemini API.
pub(super) struct Gemini;

impl Provider for Gemini {
    fn path(&self, model: &ModelId) -> String {
        format!("/models/{model}:streamGenerateContent?alt=sse")
    }

    fn headers(&self, key: Option<&Key>) -> Vec<Header> {
        key.map(|key| Header { name: "x-goog-api-key", value: key.reveal().to_owned() }).into_iter().collect()
    }

    fn body(&self, target: &Target, request: &Request) -> Value {
        let settings = request.settings;
        let mut tuning = json!({ "maxOutputTokens": target.output_tokens(&settings) });
        wire::set(&mut tuning, "temperature", settings.temperature);
        wire::set(&mut tuning, "topP", settings.top_p);
        wire::set(
            &mut tuning,
            "thinkingConfig",
            settings.effort.map(|effort| json!({ "thinkingBudget": thinking(effort) })),
        );
        if let Some(schema) = &request.schema {
            tuning["responseMimeType"] = json!("application/json");
            tuning["responseJsonSchema"] = schema.plain_form();
        }
        let mut body = json!({ "contents": contents(&target.model, request), "generationConfig": tuning });
        let system = wire::system(request);
        if !system.is_empty() {
            body["systemInstruction"] = json!({ "parts": [{ "text": system }] });
        }
        if !request.tools.is_empty() {
            let tool = |tool| {
                let schema = wire::schema(tool);
                json!({ "name": tool.name, "description": tool.description, "parametersJsonSchema": schema })
            };
            let declared: Vec<Value> = request.tools.iter().map(tool).collect();
            body["tools"] = json!([{ "functionDeclarations": declared }]);
        }
        body
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(GeminiReader)
    }
}

/// Returns the number of thinking tokens.
fn thinking(effort: Effort) -> u64 {
    match effort {
        Effort::Low => 1_024,
        Effort::Medium => 8_192,
        Effort::High => 24_576,
    }
}

/// Returns the conversation. Consecutive messages of the same role become one `Content` object.
fn contents(model: &ModelId, request: &Request) -> Vec<Value> {
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in wire::talk(request) {
        let role = if Speaker::from_message(message) == Speaker::Assistant { "model" } else { "user" };
        let parts = parts(model, request, message);
        match contents.last_mut() {
            Some((last, all)) if *last == role => all.extend(parts),
            _ => contents.push((role, parts)),
        }
    }
    contents.retain(|(_, parts)| !parts.is_empty());
    contents.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

fn parts(model: &ModelId, request: &Request, message: &Message) -> Vec<Value> {
    let (mut parts, mut beside) = (Vec::new(), Vec::new());
    let nests = nests_images(model);
    let mut signature = None;
    for part in &message.parts {
        let mut written = match part.kind.as_str() {
            TEXT if !part.text.is_empty() => json!({ "text": part.text }),
            TOOL_CALL => {
                json!({ "functionCall": { "name": FieldName::Name.value_in(part), "args": wire::arguments(part) } })
            }
            TOOL_RESULT => {
                let image = |image: Image<'_>| json!({ "inlineData": { "mimeType": image.media_type.as_str(), "data": image.data } });
                let images: Vec<Value> = images_of(message, part).map(image).collect();
                let mut written = result(request, part);
                match nests {
                    true if !images.is_empty() => written["functionResponse"]["parts"] = images.into(),
                    _ => beside.extend(images),
                }
                written
            }
            _ => {
                let kept = wire::opaque(part, Family::Gemini);
                signature = kept.map(|mut kept| kept["thoughtSignature"].take()).filter(Value::is_string);
                continue;
            }
        };
        wire::set(&mut written, "thoughtSignature", signature.take());
        parts.push(written);
    }
    parts.extend(beside);
    parts
}

/// Returns true for a model that takes images inside of a function response. Gemini 3 and later models do, and refuse
/// images next to the function response. A model with another name is treated like Gemini 3.
fn nests_images(model: &ModelId) -> bool {
    let rest = model.as_str().trim_start_matches("models/").strip_prefix("gemini-");
    let version = rest.and_then(|rest| rest.split(|letter: char| !letter.is_ascii_digit()).next());
    version.and_then(|version| version.parse::<u32>().ok()).is_none_or(|version| version >= 3)
}

fn result(request: &Request, part: &MessagePart) -> Value {
    let field = if FieldName::IsError.value_in(part) == "true" { "error" } else { "output" };
    json!({ "functionResponse": { "name": wire::tool_of(request, part), "response": { field: part.text } } })
}

/// Reader of an answer of the Gemini API.
struct GeminiReader;

impl Reader for GeminiReader {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<Step, ModelError> {
        if event["error"].is_object() {
            return Err(ProviderRefusal::in_stream(event));
        }
        draft.answered_by(&event["modelVersion"]);
        if let Some(reason) = event["promptFeedback"]["blockReason"].as_str() {
            let message = format!("the provider's filter refused the prompt: {reason}");
            return Err(ModelError::new(ErrorKind::ContentFilter, message));
        }
        draft.usage = usage(&event["usageMetadata"]).or(draft.usage);
        let candidate = &event["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            take_part(part, draft)?;
        }
        draft.finish = candidate["finishReason"].as_str().map(|reason| finish(reason, draft)).or(draft.finish);
        Ok(Step::More)
    }

    fn ends_with_body(&self) -> bool {
        true
    }
}

fn take_part(part: &Value, draft: &mut Draft) -> Result<(), ModelError> {
    if part["thoughtSignature"].is_string() {
        draft.keep(Family::Gemini, json!({ "thoughtSignature": part["thoughtSignature"] }).to_string())?;
    }
    let call = &part["functionCall"];
    if call.is_object() {
        let arguments = if call["args"].is_null() { "{}".to_owned() } else { call["args"].to_string() };
        draft.call(&call["id"], &call["name"], arguments)?;
    } else if part["thought"] != true {
        draft.add_text(&part["text"])?;
    }
    Ok(())
}

fn finish(reason: &str, draft: &Draft) -> Finish {
    match reason {
        "STOP" if draft.calls_tools() => Finish::ToolCalls,
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => Finish::ContentFilter,
        _ => Finish::Other,
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    let reasoning = wire::count(&usage["thoughtsTokenCount"]);
    usage.is_object().then(|| Usage {
        input: wire::count(&usage["promptTokenCount"]),
        output: wire::count(&usage["candidatesTokenCount"]).saturating_add(reasoning),
        cache_read: wire::count(&usage["cachedContentTokenCount"]),
        reasoning,
        ..Usage::default()
    })
}
