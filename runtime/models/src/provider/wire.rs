//! Functions that several wire formats share: system texts, schemas and arguments as JSON, and opaque parts.

use crate::chat::{FieldName, Request, TEXT, TOOL_CALL, Tool};
use crate::family::Family;
use glovebox_record::session::{Message, MessagePart};
use glovebox_schema::document;
use serde_json::{Map, Value, json};

/// Name of a schema where the format requires one.
pub(super) const SCHEMA_NAME: &str = "answer";

/// The side that a message comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
    Tool,
}

impl Speaker {
    pub(super) fn from_message(message: &Message) -> Self {
        match message.role.as_str() {
            "system" => Self::System,
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            _ => Self::User,
        }
    }
}

/// Returns every system text, in one.
pub(super) fn system(request: &Request) -> String {
    let messages = request.messages.iter().filter(|message| Speaker::from_message(message) == Speaker::System);
    messages.map(text).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Returns the messages that are not the system's.
pub(super) fn talk(request: &Request) -> impl Iterator<Item = &Message> {
    request.messages.iter().filter(|message| Speaker::from_message(message) != Speaker::System)
}

/// Returns the text of a message.
pub(super) fn text(message: &Message) -> String {
    message.parts.iter().filter(|part| part.kind == TEXT).map(|part| part.text.as_str()).collect()
}

/// Returns the schema of a tool's parameters; an object without properties if it is no JSON object.
pub(super) fn schema(tool: &Tool) -> Value {
    let schema = document::read(tool.parameters.as_bytes()).ok().filter(Value::is_object);
    schema.unwrap_or_else(|| json!({"type": "object", "properties": {}}))
}

/// Returns the arguments of a call as an object. A model may have written invalid JSON; the providers accept objects only.
pub(super) fn arguments(call: &MessagePart) -> Value {
    let found = document::read(call.text.as_bytes()).ok().filter(Value::is_object);
    found.unwrap_or_else(|| Value::Object(Map::new()))
}

/// Returns the tool that a result is of: its call has the name.
pub(super) fn tool_of<'r>(request: &'r Request, result: &MessagePart) -> &'r str {
    let id = FieldName::CallId.value_in(result);
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let mut calls = parts.filter(|part| part.kind == TOOL_CALL);
    calls.find(|call| FieldName::Id.value_in(call) == id).map_or("", |call| FieldName::Name.value_in(call))
}

/// Returns the JSON of an opaque part of this family, or `None` for any other part. A guest hands these parts back, so its adapter takes out of
/// them only the fields it knows.
pub(super) fn opaque(part: &MessagePart, family: Family) -> Option<Value> {
    if part.kind != family.opaque_kind() {
        return None;
    }
    document::read(part.text.as_bytes()).ok()
}

/// Returns an object of these fields of `value`, or `None` unless its `type` is one of `types`.
pub(super) fn taken(value: &Value, types: &[&str], fields: &[&str]) -> Option<Value> {
    let is_known = value["type"].as_str().is_some_and(|kind| types.contains(&kind));
    let present = fields.iter().filter(|field| !value[**field].is_null());
    let object = present.map(|field| ((*field).to_owned(), value[*field].to_owned())).collect();
    is_known.then_some(Value::Object(object))
}

/// Returns a number of tokens, 0 if it is not there.
pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Sets a field, where there is a value for it.
pub(super) fn set(body: &mut Value, field: &'static str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body[field] = value.into();
    }
}
