//! The fields of a request that may be forwarded, for each wire format.
//!
//! There is a list of allowed fields and none of forbidden fields, because a new feature of a provider could fetch
//! addresses, run tools or use another model. Tools that run in the program are not restricted here, because the
//! program's sandbox confines them.

use super::{denied, items};
use crate::error::ModelError;
use crate::family::Family;
use crate::target::Target;
use serde_json::{Map, Value};

/// Allowed top-level fields of each format.
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

/// Tools of the OpenAI and chat completion formats that run in the program.
const OPENAI_TOOLS: &[&str] = &["apply_patch", "custom", "function", "local_shell", "namespace"];
/// Tools of the Anthropic format that run in the program, by the beginning of their types.
const ANTHROPIC_TOOLS: &[&str] = &["bash_", "computer_", "custom", "memory_", "text_editor_"];
/// Fields with an address or the id of a stored file, which the provider would fetch.
const FETCHED: &[&str] = &["fileUri", "file_id", "file_uri", "file_url", "image_url", "uri", "url"];
/// Service tiers that cost no more than the default.
const TIERS: &[&str] = &["auto", "default", "flex", "on_demand", "standard", "standard_only"];
/// Top-level fields that contain the conversation.
const CONVERSATION_FIELDS: &[&str] =
    &["input", "instructions", "messages", "system", "contents", "systemInstruction", "system_instruction"];

/// Checks the fields of a request, limits the length of its answer, and returns that limit in tokens.
///
/// # Errors
/// [`crate::error::ErrorKind::NotGranted`], which names the field.
pub(super) fn check(target: &Target, json: &mut Value) -> Result<u64, ModelError> {
    let allowed = match target.family {
        Family::Openai => OPENAI,
        Family::Anthropic => ANTHROPIC,
        Family::Gemini => GEMINI,
        Family::OpenaiCompatible | Family::Ollama => COMPATIBLE,
    };
    let Some(fields) = json.as_object_mut() else {
        return Err(denied(format_args!("a request that is not an object")));
    };
    if let Some(name) = fields.keys().find(|name| !allowed.contains(&name.as_str())) {
        return Err(denied(format_args!("the field `{}`", shortened(name))));
    }
    expected_types(fields)?;
    fields.get("tools").map_or(Ok(()), |tools| tools_of(target.family, tools))?;
    if target.family == Family::Openai {
        fields.get("input").map_or(Ok(()), items::input)?;
        fields.get("input").map_or(Ok(()), tools_within)?;
    }
    fields.get("tool_choice").map_or(Ok(()), |choice| items::choice(target.family, choice))?;
    for name in ["toolConfig", "tool_config"] {
        fields.get(name).map_or(Ok(()), gemini_choice)?;
    }
    for name in CONVERSATION_FIELDS {
        fields.get(*name).map_or(Ok(()), fetches_nothing)?;
    }
    if let Some(tier) = fields.get("service_tier").filter(|tier| !tier.is_null()) {
        let is_usual = tier.as_str().is_some_and(|name| TIERS.contains(&name));
        let shown = shortened(tier.as_str().unwrap_or("not a string"));
        is_usual.then_some(()).ok_or_else(|| {
            denied(format_args!("the `service_tier` `{shown}`, which may cost more than the default"))
        })?;
    }
    if fields.get("n").is_some_and(|count| *count != 1) {
        return Err(denied(format_args!("a request for more than one answer")));
    }
    if target.family == Family::Openai || fields.contains_key("store") {
        fields.insert("store".to_owned(), Value::Bool(false));
    }
    bound(target, fields)
}

/// Checks that each inspected field has the expected type. A provider could interpret a field of another type differently from the check.
fn expected_types(fields: &Map<String, Value>) -> Result<(), ModelError> {
    for (name, value) in fields {
        let fits = match name.as_str() {
            "stream" | "store" => value.is_boolean() || value.is_null(),
            "messages" | "contents" => value.is_array(),
            "instructions" => value.is_string() || value.is_null(),
            "system" => value.is_string() || value.is_array() || value.is_null(),
            "generationConfig" => value.is_object(),
            "max_tokens" | "max_output_tokens" | "max_completion_tokens" => value.is_u64() || value.is_null(),
            _ => true,
        };
        if !fits {
            return Err(denied(format_args!("the field `{name}`, whose type differs from the format of the API")));
        }
    }
    Ok(())
}

/// Allows the settings for the choice of functions in Gemini's format, and no settings of hosted tools.
fn gemini_choice(config: &Value) -> Result<(), ModelError> {
    let is_known = |name: &String| matches!(name.as_str(), "functionCallingConfig" | "function_calling_config");
    match config.as_object() {
        Some(fields) if fields.keys().all(is_known) => Ok(()),
        _ => Err(denied(format_args!("`toolConfig` with another field than `functionCallingConfig`"))),
    }
}

/// Returns the beginning of a program's text, for a message.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

fn tools_of(family: Family, tools: &Value) -> Result<(), ModelError> {
    match tools {
        Value::Null => Ok(()),
        Value::Array(tools) => tools.iter().try_for_each(|tool| tool_of(family, tool)),
        _ => Err(denied(format_args!("`tools` that are not a list"))),
    }
}

/// Checks the tools that OpenAI accepts within a conversation. Codex lists its own tools there, and those that a search has found. In
/// this format, arguments and results of calls are text, so no other field is named `tools`.
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
        let Some(tool) = tool.as_object() else { return Err(denied(format_args!("a tool that is not an object"))) };
        let is_other = |name: &&String| !matches!(name.as_str(), "functionDeclarations" | "function_declarations");
        return tool.keys().find(is_other).map_or(Ok(()), |name| Err(at_provider(name)));
    }
    let kind = match tool.get("type") {
        Some(Value::String(kind)) => kind,
        // Only Anthropic's format has tools without a type. They run in the program.
        None | Some(Value::Null) if tool.is_object() && family == Family::Anthropic => "custom",
        _ => return Err(denied(format_args!("a tool whose `type` is not a string"))),
    };
    let is_own = match family {
        Family::Anthropic => ANTHROPIC_TOOLS.iter().any(|start| kind.starts_with(start)),
        _ => OPENAI_TOOLS.contains(&kind) || says_own(kind, tool),
    };
    if !is_own {
        return Err(at_provider(kind));
    }
    tools_of(family, &tool["tools"])
}

/// Returns true if a tool that can run in the program or at the provider is marked to run in the program.
pub(super) fn says_own(kind: &str, tool: &Value) -> bool {
    match kind {
        "shell" => {
            // An environment with other fields (files or skills) would come from the provider.
            let environment = tool["environment"].as_object();
            environment
                .is_some_and(|fields| fields.len() == 1 && fields.get("type").is_some_and(|kind| kind == "local"))
        }
        "tool_search" => tool["execution"] == "client",
        _ => false,
    }
}

fn at_provider(tool: &str) -> ModelError {
    denied(format_args!("the tool `{}`, which runs at the provider", shortened(tool)))
}

/// Refuses content that the provider would fetch. Arguments and results of tool calls are allowed, because they are not fetched.
fn fetches_nothing(value: &Value) -> Result<(), ModelError> {
    match value {
        Value::Array(items) => items.iter().try_for_each(fetches_nothing),
        Value::Object(fields) => {
            let kind = match fields.get("type") {
                None => "",
                Some(Value::String(kind)) => kind,
                Some(_) => return Err(denied(format_args!("a part of the conversation whose `type` is not a string"))),
            };
            if kind == "item_reference" {
                return Err(denied(format_args!("a reference to content that the provider has stored")));
            }
            for (name, inner) in fields {
                let is_safe = match inner {
                    Value::Null => true,
                    Value::String(text) => text.starts_with("data:"),
                    // In chat completions, the address of an image is inside an object.
                    Value::Object(_) => name == "image_url",
                    _ => false,
                };
                if FETCHED.contains(&name.as_str()) && !is_safe {
                    return Err(denied(format_args!("`{name}`, whose content the provider would fetch")));
                }
                // Tools are checked separately. Property names in their schemas do not matter.
                let is_of_tool = match name.as_str() {
                    "args" | "response" | "tools" => true,
                    "input" => kind == "tool_use",
                    "arguments" => kind == "tool_search_call",
                    _ => false,
                };
                if !is_of_tool {
                    fetches_nothing(inner)?;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Limits the tokens of the answer to the value in glovebox.toml.
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
                return Err(denied(format_args!("a `generationConfig` that is not an object")));
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
