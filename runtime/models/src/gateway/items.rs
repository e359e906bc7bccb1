//! Allowed items of a conversation in OpenAI's Responses format, and allowed choices of tools.
//!
//! Items and choices are checked against lists of allowed values. An item without a type must be a message. An item with nothing but
//! an id would refer to content stored at the provider. Items of hosted tools are refused, because a request may not use such tools.

use super::denied;
use super::fields::{says_own, shortened};
use crate::error::ModelError;
use crate::family::Family;
use serde_json::Value;

/// Items that a program writes, or that it received in an answer and sends back.
const ITEMS: &[&str] = &[
    "additional_tools",
    "apply_patch_call",
    "apply_patch_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "function_call",
    "function_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "message",
    "reasoning",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
];
/// Fields with content. An item without any of them only refers to stored content.
const SUBSTANCE: &[&str] =
    &["action", "arguments", "content", "encrypted_content", "input", "operation", "output", "summary", "tools"];
/// Allowed tool choices that are texts.
const CHOICES: &[&str] = &["any", "auto", "none", "required"];
/// Types of tools that a choice may name. Their definitions are checked in the list of tools.
const CHOSEN: &[&str] =
    &["any", "apply_patch", "auto", "custom", "function", "local_shell", "none", "shell", "tool", "tool_search"];

/// Checks `input`.
pub(super) fn input(input: &Value) -> Result<(), ModelError> {
    match input {
        Value::String(_) => Ok(()),
        Value::Array(items) => items.iter().try_for_each(item),
        _ => Err(denied(format_args!("an `input` that is neither text nor a list"))),
    }
}

fn item(item: &Value) -> Result<(), ModelError> {
    let Some(fields) = item.as_object() else {
        return Err(denied(format_args!("an item of `input` that is not an object")));
    };
    let kind = match fields.get("type") {
        None if fields.get("role").is_some_and(Value::is_string) && fields.contains_key("content") => "message",
        None => {
            return Err(denied(format_args!(
                "an item without a `type`, which refers to content that the provider has stored"
            )));
        }
        Some(Value::String(kind)) => kind,
        Some(_) => return Err(denied(format_args!("an item of `input` whose `type` is not a string"))),
    };
    if kind == "item_reference" {
        return Err(denied(format_args!("a reference to content that the provider has stored")));
    }
    if !ITEMS.contains(&kind) {
        return Err(denied(format_args!("an item of type `{}` in `input`", shortened(kind))));
    }
    if fields.contains_key("container_id") {
        return Err(denied(format_args!("`container_id`, which names a container of the provider")));
    }
    if !SUBSTANCE.iter().any(|name| fields.get(*name).is_some_and(|value| !value.is_null())) {
        return Err(denied(format_args!(
            "an item of type `{kind}` without content, which refers to content that the provider has stored"
        )));
    }
    if let Some(environment) = fields.get("environment").filter(|value| !value.is_null()) {
        return if says_own("shell", item) {
            Ok(())
        } else {
            Err(denied(format_args!("the `environment` {}, expected one of type `local`", short(environment))))
        };
    }
    Ok(())
}

/// Checks `tool_choice`.
pub(super) fn choice(family: Family, choice: &Value) -> Result<(), ModelError> {
    let Value::Object(fields) = choice else {
        let is_word = choice.as_str().is_some_and(|word| CHOICES.contains(&word));
        return if is_word || choice.is_null() { Ok(()) } else { Err(unknown(choice)) };
    };
    let kind = fields.get("type").and_then(Value::as_str).ok_or_else(|| unknown(choice))?;
    if kind == "allowed_tools" && family != Family::Anthropic {
        // In the Responses format the list is here, in chat completions one level below.
        let list = fields.get("allowed_tools").unwrap_or(choice).get("tools").and_then(Value::as_array);
        let is_known = |tool: &Value| tool["type"].as_str().is_some_and(|kind| CHOSEN.contains(&kind));
        return list.filter(|tools| tools.iter().all(is_known)).map(drop).ok_or_else(|| unknown(choice));
    }
    if CHOSEN.contains(&kind) { Ok(()) } else { Err(unknown(choice)) }
}

fn unknown(choice: &Value) -> ModelError {
    denied(format_args!("the tool choice {}", short(choice)))
}

fn short(value: &Value) -> String {
    format!("`{}`", shortened(&value.to_string()))
}
