//! Converts an answer that is one JSON value to the events that the adapters read.

use crate::family::Family;
use serde_json::{Value, json};

/// Returns the events of an answer that was not streamed.
pub(super) fn events(family: Family, mut answer: Value) -> Vec<Value> {
    match family {
        Family::Openai => {
            let items = answer["output"].as_array().cloned().unwrap_or_default();
            let item = |item| json!({ "type": "response.output_item.done", "item": item });
            let last = json!({ "type": "response.completed", "response": answer });
            items.into_iter().map(item).chain([last]).collect()
        }
        Family::Anthropic => {
            let content = answer["content"].take();
            let (reason, usage) = (answer["stop_reason"].clone(), answer["usage"].clone());
            let blocks = content.as_array().cloned().unwrap_or_default().into_iter().enumerate();
            let block =
                |(index, block)| json!({ "type": "content_block_start", "index": index, "content_block": block });
            let begin = json!({ "type": "message_start", "message": answer });
            let end = json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": usage });
            let blocks: Vec<Value> = blocks.map(block).collect();
            [begin].into_iter().chain(blocks).chain([end, json!({ "type": "message_stop" })]).collect()
        }
        Family::OpenaiCompatible | Family::Ollama => {
            for choice in answer["choices"].as_array_mut().into_iter().flatten() {
                choice["delta"] = choice["message"].take();
            }
            vec![answer]
        }
        Family::Gemini => vec![answer],
    }
}
