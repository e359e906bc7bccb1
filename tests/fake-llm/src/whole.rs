//! Answers that are not streamed, in each wire format: one JSON object.

use super::frames::Answer;
use glovebox_models::family::Family;
use serde_json::{Value, json};

/// Returns the complete answer.
pub(super) fn body(family: Family, said: &Answer<'_>) -> Value {
    match family {
        Family::Openai => openai(said),
        Family::Anthropic => anthropic(said),
        Family::Gemini => gemini(said),
        Family::OpenaiCompatible => compatible(said),
        Family::Ollama => ollama(said),
    }
}

fn openai(said: &Answer<'_>) -> Value {
    let mut response = said.openai_response();
    response["object"] = "response".into();
    response["status"] = if said.turn.length { "incomplete" } else { "completed" }.into();
    response
}

fn anthropic(said: &Answer<'_>) -> Value {
    let mut content = Vec::new();
    if let Some(thought) = &said.turn.thinking {
        content.push(json!({ "type": "thinking", "thinking": thought, "signature": "signed" }));
    }
    if !said.text.is_empty() {
        content.push(json!({ "type": "text", "text": said.text }));
    }
    content.extend(
        said.calls()
            .map(|(id, call)| json!({ "type": "tool_use", "id": id, "name": call.name, "input": call.arguments() })),
    );
    let mut message = said.anthropic_message();
    message["content"] = content.into();
    message["stop_reason"] = said.anthropic_reason().into();
    message["stop_sequence"] = Value::Null;
    message["usage"]["output_tokens"] = said.turn.usage.output.into();
    message
}

fn gemini(said: &Answer<'_>) -> Value {
    let mut answer = said.gemini_last();
    let texts = (!said.text.is_empty()).then(|| json!({ "text": said.text }));
    let parts: Vec<Value> = texts.into_iter().chain(said.gemini_calls()).collect();
    answer["candidates"][0]["content"]["parts"] = parts.into();
    answer
}

fn compatible(said: &Answer<'_>) -> Value {
    let text = if said.text.is_empty() && !said.turn.tool.is_empty() { Value::Null } else { said.text.as_str().into() };
    let mut message = json!({ "role": "assistant", "content": text });
    if let Some(thought) = &said.turn.thinking {
        message["reasoning_content"] = thought.as_str().into();
    }
    let calls = said.calls().map(|(id, call)| {
        json!({ "id": id, "type": "function", "function": { "name": call.name, "arguments": call.written() } })
    });
    let calls: Vec<Value> = calls.collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({ "id": "c1", "object": "chat.completion", "model": said.model, "usage": said.compatible_usage(),
        "choices": [{ "index": 0, "message": message, "finish_reason": said.compatible_reason() }] })
}

fn ollama(said: &Answer<'_>) -> Value {
    let mut message = json!({ "role": "assistant", "content": said.text });
    if let Some(thought) = &said.turn.thinking {
        message["thinking"] = thought.as_str().into();
    }
    let calls = said.turn.tool.iter();
    let calls = calls.map(|call| json!({ "function": { "name": call.name, "arguments": call.arguments() } }));
    let calls: Vec<Value> = calls.collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut answer = said.ollama_last();
    answer["message"] = message;
    answer
}
