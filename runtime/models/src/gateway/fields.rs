//! The fields of a request that are passed on, for each wire format.
//!
//! A list of what is allowed, not of what is forbidden: a provider's next feature may fetch addresses, run tools or turn to another
//! model. A tool that the program itself runs is its own matter, in its own sandbox.

use super::denied;
use crate::error::ModelError;
use crate::provider::Family;
use crate::target::Target;
use serde_json::{Map, Value};

/// What each format may have at the top of a request.
const OPENAI: &[&str] = &[
    "client_metadata",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
const ANTHROPIC: &[&str] = &[
    "cache_control",
    "context_management",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];
const COMPATIBLE: &[&str] = &[
    "chat_template_kwargs",
    "enable_thinking",
    "frequency_penalty",
    "include_reasoning",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "min_p",
    "model",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning",
    "reasoning_effort",
    "repetition_penalty",
    "response_format",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
    "usage",
    "user",
    "verbosity",
];
const GEMINI: &[&str] = &[
    "contents",
    "generationConfig",
    "labels",
    "safetySettings",
    "systemInstruction",
    "system_instruction",
    "toolConfig",
    "tool_config",
    "tools",
];

/// Tools of OpenAI and of chat completions that the program runs.
const OPENAI_TOOLS: &[&str] = &["apply_patch", "custom", "function", "local_shell", "namespace"];
/// Tools of Anthropic that the program runs, by how their types begin.
const ANTHROPIC_TOOLS: &[&str] = &["bash_", "computer_", "custom", "memory_", "text_editor_"];
/// Fields with an address or the id of a stored file, which the provider would fetch.
const FETCHED: &[&str] = &["fileUri", "file_id", "file_uri", "file_url", "image_url", "uri", "url"];
/// Prices of a call that are not the usual one.
const COSTLY: &[&str] = &["fast", "priority", "scale"];

/// Checks the fields of a request, bounds its answer, and returns the bound in tokens.
///
/// # Errors
/// [`crate::error::ErrorKind::NotGranted`] with the field.
pub(super) fn check(target: &Target, json: &mut Value) -> Result<u64, ModelError> {
    let allowed = match target.family {
        Family::Openai => OPENAI,
        Family::Anthropic => ANTHROPIC,
        Family::Gemini => GEMINI,
        Family::OpenaiCompatible | Family::Ollama => COMPATIBLE,
    };
    let Some(fields) = json.as_object_mut() else { return Err(denied(format_args!("a request that is no object"))) };
    if let Some(name) = fields.keys().find(|name| !allowed.contains(&name.as_str())) {
        let shown: String = name.chars().take(80).collect();
        return Err(denied(format_args!("the field `{shown}`")));
    }
    fields.get("tools").map_or(Ok(()), |tools| tools_of(target.family, tools))?;
    if target.family == Family::Openai {
        fields.get("input").map_or(Ok(()), tools_within)?;
    }
    for name in ["input", "instructions", "messages", "system", "contents", "systemInstruction", "system_instruction"] {
        fields.get(name).map_or(Ok(()), fetches_nothing)?;
    }
    if let Some(tier) = fields.get("service_tier").and_then(Value::as_str).filter(|tier| COSTLY.contains(tier)) {
        return Err(denied(format_args!("`service_tier` `{tier}`")));
    }
    if fields.get("n").is_some_and(|count| *count != 1) {
        return Err(denied(format_args!("a request for more than one answer")));
    }
    if target.family == Family::Openai || fields.contains_key("store") {
        fields.insert("store".to_owned(), Value::Bool(false));
    }
    bound(target, fields)
}

fn tools_of(family: Family, tools: &Value) -> Result<(), ModelError> {
    match tools {
        Value::Null => Ok(()),
        Value::Array(tools) => tools.iter().try_for_each(|tool| tool_of(family, tool)),
        _ => Err(denied(format_args!("`tools` that are no list"))),
    }
}

/// Checks the tools that OpenAI takes in the conversation: Codex lists all of its own there, and those that a search has found. Arguments
/// and results of calls are text in this format, so nothing else has the name.
fn tools_within(value: &Value) -> Result<(), ModelError> {
    match value {
        Value::Array(items) => items.iter().try_for_each(tools_within),
        Value::Object(fields) => {
            fields.get("tools").map_or(Ok(()), |tools| tools_of(Family::Openai, tools))?;
            fields.values().try_for_each(tools_within)
        }
        _ => Ok(()),
    }
}

fn tool_of(family: Family, tool: &Value) -> Result<(), ModelError> {
    if family == Family::Gemini {
        let other = tool.as_object().and_then(|tool| {
            tool.keys().find(|name| !matches!(name.as_str(), "functionDeclarations" | "function_declarations"))
        });
        return other.map_or(Ok(()), |name| Err(at_provider(name)));
    }
    let kind = tool["type"].as_str().unwrap_or("custom");
    let is_own = match family {
        Family::Anthropic => ANTHROPIC_TOOLS.iter().any(|start| kind.starts_with(start)),
        _ => OPENAI_TOOLS.contains(&kind) || says_own(kind, tool),
    };
    if !is_own {
        return Err(at_provider(kind));
    }
    tools_of(family, &tool["tools"])
}

/// Whether a tool of OpenAI that runs here or there says that it runs here.
fn says_own(kind: &str, tool: &Value) -> bool {
    match kind {
        "shell" => tool["environment"]["type"] == "local",
        "tool_search" => tool["execution"] == "client",
        _ => false,
    }
}

fn at_provider(tool: &str) -> ModelError {
    let shown: String = tool.chars().take(80).collect();
    denied(format_args!("the tool `{shown}`, which runs at the provider"))
}

/// Refuses what the provider would fetch. The arguments of a tool's call and its result are not fetched.
fn fetches_nothing(value: &Value) -> Result<(), ModelError> {
    match value {
        Value::Array(items) => items.iter().try_for_each(fetches_nothing),
        Value::Object(fields) => {
            let is_call = fields.get("type").is_some_and(|kind| *kind == "tool_use");
            if fields.get("type").is_some_and(|kind| *kind == "item_reference") {
                return Err(denied(format_args!("a reference to what the provider has stored")));
            }
            for (name, inner) in fields {
                if FETCHED.contains(&name.as_str()) && inner.as_str().is_some_and(|text| !text.starts_with("data:")) {
                    return Err(denied(format_args!("`{name}`, which the provider would fetch")));
                }
                let is_of_tool = matches!(name.as_str(), "args" | "response") || (is_call && name == "input");
                if !is_of_tool {
                    fetches_nothing(inner)?;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Bounds the tokens of the answer by those of the table in glovebox.toml.
fn bound(target: &Target, fields: &mut Map<String, Value>) -> Result<u64, ModelError> {
    let most = target.output_tokens_max;
    let (fields, name) = match target.family {
        Family::Openai => (fields, "max_output_tokens"),
        Family::Anthropic => (fields, "max_tokens"),
        Family::OpenaiCompatible | Family::Ollama if fields.contains_key("max_completion_tokens") => {
            fields.remove("max_tokens");
            (fields, "max_completion_tokens")
        }
        Family::OpenaiCompatible | Family::Ollama => (fields, "max_tokens"),
        Family::Gemini => {
            let tuning = fields.entry("generationConfig").or_insert_with(|| Value::Object(Map::new()));
            let Some(tuning) = tuning.as_object_mut() else {
                return Err(denied(format_args!("a `generationConfig` that is no object")));
            };
            if tuning.get("candidateCount").is_some_and(|count| *count != 1) {
                return Err(denied(format_args!("a request for more than one answer")));
            }
            (tuning, "maxOutputTokens")
        }
    };
    let asked = fields.get(name).and_then(Value::as_u64).unwrap_or(most).min(most);
    fields.insert(name.to_owned(), asked.into());
    Ok(asked)
}
