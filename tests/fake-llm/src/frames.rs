//! The events of a streamed answer in each wire format, as documented by the providers.

use super::script::{Call, Turn};
use glovebox_models::family::Family;
use serde_json::{Value, json};

/// Maximum length of a piece of text, in characters.
const PIECE_CHARACTERS: usize = 4096;

/// Returns all events of an answer in order.
pub(super) fn events(family: Family, said: &Answer<'_>) -> Vec<String> {
    match family {
        Family::Openai => said.openai(),
        Family::Anthropic => said.anthropic(),
        Family::Gemini => said.gemini(),
        Family::OpenaiCompatible => said.compatible(),
        Family::Ollama => said.ollama(),
    }
}

/// Returns an event with JSON data.
pub(super) fn json_event(data: &Value) -> String {
    format!("data: {data}")
}

/// Returns an event with JSON data. The event's name is the `type` of the data.
fn named(data: &Value) -> String {
    format!("event: {}\ndata: {data}", data["type"].as_str().unwrap_or_default())
}

/// Returns an event with additional text.
pub(super) fn more_text(family: Family, text: &str, model: &str) -> String {
    let data = match family {
        Family::Openai => json!({ "type": "response.output_text.delta", "output_index": 0, "delta": text }),
        Family::Anthropic => {
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } })
        }
        Family::Gemini => {
            json!({ "candidates": [{ "content": { "parts": [{ "text": text }] } }], "modelVersion": model })
        }
        Family::OpenaiCompatible => {
            json!({ "model": model, "choices": [{ "index": 0, "delta": { "content": text } }] })
        }
        Family::Ollama => json!({ "model": model, "message": { "role": "assistant", "content": text }, "done": false }),
    };
    json_event(&data)
}

/// An answer and the name of its model.
pub(super) struct Answer<'a> {
    pub(super) turn: &'a Turn,
    pub(super) model: &'a str,
    asked_bytes: usize,
    pub(super) text: String,
}

impl<'a> Answer<'a> {
    /// Creates the answer of a turn to a request of this length. The ids of calls contain the length, so no two turns
    /// of a conversation share an id.
    pub(super) fn new(turn: &'a Turn, model: &'a str, asked_bytes: usize) -> Self {
        let mut text = turn.text.to_owned() + &turn.pieces.concat();
        text.extend(std::iter::repeat_n('x', turn.fill_bytes));
        Self { turn, model, asked_bytes, text }
    }
}

impl Answer<'_> {
    fn pieces(&self) -> Vec<String> {
        let cut = |text: &str| -> Vec<String> {
            let characters: Vec<char> = text.chars().collect();
            characters.chunks(PIECE_CHARACTERS).map(String::from_iter).collect()
        };
        let first = cut(&self.turn.text);
        let rest = cut(&"x".repeat(self.turn.fill_bytes));
        [first, self.turn.pieces.clone(), rest].concat()
    }

    /// Returns the calls, each with its id.
    pub(super) fn calls(&self) -> impl Iterator<Item = (String, &Call)> {
        self.turn.tool.iter().enumerate().map(|(at, call)| (format!("call_{}_{at}", self.asked_bytes), call))
    }

    fn openai(&self) -> Vec<String> {
        let mut frames = vec![named(&json!({ "type": "response.created",
            "response": { "id": "resp_1", "model": self.model, "status": "in_progress" } }))];
        if !self.text.is_empty() {
            let index = usize::from(self.turn.thinking.is_some());
            let begun = json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [] });
            frames.push(named(&json!({ "type": "response.output_item.added", "output_index": index, "item": begun })));
            let delta = |text: String| {
                named(&json!({ "type": "response.output_text.delta", "item_id": "msg_1", "output_index": index,
                    "content_index": 0, "delta": text }))
            };
            frames.extend(self.pieces().into_iter().map(delta));
        }
        let response = self.openai_response();
        let items = response["output"].as_array().into_iter().flatten();
        let done = |(at, item)| json!({ "type": "response.output_item.done", "output_index": at, "item": item });
        frames.extend(items.enumerate().map(done).map(|event| named(&event)));
        let kind = if self.turn.length { "response.incomplete" } else { "response.completed" };
        frames.push(named(&json!({ "type": kind, "response": response })));
        frames
    }

    /// Returns the complete response, as it is at the end of the stream.
    pub(super) fn openai_response(&self) -> Value {
        let mut items = Vec::new();
        if let Some(thought) = &self.turn.thinking {
            items.push(json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": thought }));
        }
        if !self.text.is_empty() {
            let content = json!([{ "type": "output_text", "text": self.text, "annotations": [] }]);
            items.push(json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": content }));
        }
        items.extend(self.calls().map(|(id, call)| {
            json!({ "type": "function_call", "id": format!("fc_{id}"), "status": "completed", "call_id": id,
                "name": call.name, "arguments": call.written() })
        }));
        let usage = self.turn.usage;
        let details = if self.turn.length { json!({ "reason": "max_output_tokens" }) } else { Value::Null };
        json!({ "id": "resp_1", "model": self.model, "incomplete_details": details, "output": items, "usage": {
            "input_tokens": usage.input, "input_tokens_details": { "cached_tokens": usage.cache_read },
            "output_tokens": usage.output, "output_tokens_details": { "reasoning_tokens": usage.reasoning },
            "total_tokens": usage.input + usage.output } })
    }

    fn anthropic(&self) -> Vec<String> {
        let start = json!({ "type": "message_start", "message": self.anthropic_message() });
        let mut frames = vec![named(&start), named(&json!({ "type": "ping" }))];
        let mut blocks = Vec::new();
        if let Some(thought) = &self.turn.thinking {
            let deltas = vec![
                json!({ "type": "thinking_delta", "thinking": thought }),
                json!({ "type": "signature_delta", "signature": "signed" }),
            ];
            blocks.push((json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas));
        }
        if !self.text.is_empty() {
            let deltas = self.pieces().into_iter().map(|text| json!({ "type": "text_delta", "text": text }));
            blocks.push((json!({ "type": "text", "text": "" }), deltas.collect()));
        }
        for (id, call) in self.calls() {
            let delta = json!({ "type": "input_json_delta", "partial_json": call.written() });
            blocks.push((json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} }), vec![delta]));
        }
        for (index, (block, deltas)) in blocks.into_iter().enumerate() {
            frames.push(named(&json!({ "type": "content_block_start", "index": index, "content_block": block })));
            let delta = |delta| named(&json!({ "type": "content_block_delta", "index": index, "delta": delta }));
            frames.extend(deltas.into_iter().map(delta));
            frames.push(named(&json!({ "type": "content_block_stop", "index": index })));
        }
        frames.push(named(&json!({ "type": "message_delta", "delta": { "stop_reason": self.anthropic_reason() },
            "usage": { "output_tokens": self.turn.usage.output } })));
        frames.push(named(&json!({ "type": "message_stop" })));
        frames
    }

    /// Returns the message as it is at the beginning of the stream.
    pub(super) fn anthropic_message(&self) -> Value {
        let usage = self.turn.usage;
        let fresh = usage.input.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write);
        json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "content": [],
            "usage": { "input_tokens": fresh, "output_tokens": 1, "cache_read_input_tokens": usage.cache_read,
                "cache_creation_input_tokens": usage.cache_write } })
    }

    pub(super) fn anthropic_reason(&self) -> &'static str {
        if self.turn.length { "max_tokens" } else { self.word("tool_use", "end_turn") }
    }

    fn gemini(&self) -> Vec<String> {
        let mut parts: Vec<Vec<Value>> = vec![Vec::new()];
        parts.extend(self.pieces().into_iter().map(|text| vec![json!({ "text": text })]));
        parts.extend(self.gemini_calls().map(|part| vec![part]));
        let chunks = parts.into_iter().map(|parts| self.gemini_chunk(parts)).chain([self.gemini_last()]);
        chunks.map(|chunk| json_event(&chunk)).collect()
    }

    fn gemini_chunk(&self, parts: Vec<Value>) -> Value {
        json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }],
            "modelVersion": self.model })
    }

    pub(super) fn gemini_calls(&self) -> impl Iterator<Item = Value> {
        self.calls().enumerate().map(|(at, (_, call))| {
            let mut part = json!({ "functionCall": { "name": call.name, "args": call.arguments() } });
            if let (0, Some(thought)) = (at, &self.turn.thinking) {
                part["thoughtSignature"] = thought.as_str().into();
            }
            part
        })
    }

    /// Returns the last event, without content.
    pub(super) fn gemini_last(&self) -> Value {
        let usage = self.turn.usage;
        let mut last = self.gemini_chunk(Vec::new());
        last["candidates"][0]["finishReason"] = if self.turn.length { "MAX_TOKENS" } else { "STOP" }.into();
        last["usageMetadata"] = json!({ "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
            "thoughtsTokenCount": usage.reasoning, "cachedContentTokenCount": usage.cache_read });
        last
    }

    fn compatible(&self) -> Vec<String> {
        let chunk = |delta: Value, reason: Value| {
            json_event(&json!({ "id": "c1", "object": "chat.completion.chunk", "model": self.model,
                "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] }))
        };
        let mut frames = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
        let thoughts = self.turn.thinking.iter();
        frames.extend(thoughts.map(|thought| chunk(json!({ "reasoning_content": thought }), Value::Null)));
        frames.extend(self.pieces().into_iter().map(|text| chunk(json!({ "content": text }), Value::Null)));
        for (index, (id, call)) in self.calls().enumerate() {
            let function = json!({ "name": call.name, "arguments": "" });
            let begun =
                json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] });
            frames.push(chunk(begun, Value::Null));
            let more = json!({ "tool_calls": [{ "index": index, "function": { "arguments": call.written() } }] });
            frames.push(chunk(more, Value::Null));
        }
        frames.push(chunk(json!({}), self.compatible_reason().into()));
        frames.push(json_event(&json!({ "model": self.model, "choices": [], "usage": self.compatible_usage() })));
        frames.push("data: [DONE]".to_owned());
        frames
    }

    pub(super) fn compatible_reason(&self) -> &'static str {
        if self.turn.length { "length" } else { self.word("tool_calls", "stop") }
    }

    pub(super) fn compatible_usage(&self) -> Value {
        let usage = self.turn.usage;
        json!({ "prompt_tokens": usage.input, "prompt_tokens_details": { "cached_tokens": usage.cache_read },
            "completion_tokens": usage.output, "completion_tokens_details": { "reasoning_tokens": usage.reasoning } })
    }

    fn ollama(&self) -> Vec<String> {
        let line = |message: Value| json_event(&json!({ "model": self.model, "message": message, "done": false }));
        let say = |text: String| line(json!({ "role": "assistant", "content": text }));
        let mut frames = vec![say(String::new())];
        let thoughts = self.turn.thinking.iter();
        frames.extend(thoughts.map(|thought| line(json!({ "role": "assistant", "content": "", "thinking": thought }))));
        frames.extend(self.pieces().into_iter().map(say));
        frames.extend(self.turn.tool.iter().map(|call| {
            let calls = json!([{ "function": { "name": call.name, "arguments": call.arguments() } }]);
            line(json!({ "role": "assistant", "content": "", "tool_calls": calls }))
        }));
        frames.push(json_event(&self.ollama_last()));
        frames
    }

    /// Returns the last event, without text.
    pub(super) fn ollama_last(&self) -> Value {
        let usage = self.turn.usage;
        let reason = if self.turn.length { "length" } else { "stop" };
        json!({ "model": self.model, "message": { "role": "assistant", "content": "" },
            "done": true, "done_reason": reason, "prompt_eval_count": usage.input, "eval_count": usage.output })
    }

    /// Returns the finish reason: `with_calls` if the answer has calls, and `without` otherwise.
    fn word<'w>(&self, with_calls: &'w str, without: &'w str) -> &'w str {
        if self.turn.tool.is_empty() { without } else { with_calls }
    }
}
