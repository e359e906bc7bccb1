//! Functions that several wire formats share: system texts, schemas and arguments as JSON, and opaque parts.

use crate::chat::{FieldName, Request, TEXT, TOOL_CALL, Tool};
use crate::family::Family;
use glovebox_record::session::{Message, MessagePart};
use glovebox_schema::document;
use serde_json::{Map, Value, json};

/// Name of the schema in formats that require one.
pub(super) const SCHEMA_NAME: &str = "answer";

/// The role of a message's author.
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

/// Returns all system texts as one text.
pub(super) fn system(request: &Request) -> String {
    let messages = request.messages.iter().filter(|message| Speaker::from_message(message) == Speaker::System);
    messages.map(text).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Returns all messages except system messages.
pub(super) fn talk(request: &Request) -> impl Iterator<Item = &Message> {
    request.messages.iter().filter(|message| Speaker::from_message(message) != Speaker::System)
}

/// Returns the text of a message.
pub(super) fn text(message: &Message) -> String {
    message.parts.iter().filter(|part| part.kind == TEXT).map(|part| part.text.as_str()).collect()
}

/// Returns the schema of a tool's parameters, or a schema without properties if the text is not a JSON object.
pub(super) fn schema(tool: &Tool) -> Value {
    let schema = document::read(tool.parameters.as_bytes()).ok().filter(Value::is_object);
    schema.unwrap_or_else(|| json!({"type": "object", "properties": {}}))
}

/// Returns the arguments of a call as an object. Invalid JSON of a model becomes an empty object, because providers accept only objects.
pub(super) fn arguments(call: &MessagePart) -> Value {
    let found = document::read(call.text.as_bytes()).ok().filter(Value::is_object);
    found.unwrap_or_else(|| Value::Object(Map::new()))
}

/// Returns the name of the tool that produced a result: the name in the call with the same id.
pub(super) fn tool_of<'r>(request: &'r Request, result: &MessagePart) -> &'r str {
    let id = FieldName::CallId.value_in(result);
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let mut calls = parts.filter(|part| part.kind == TOOL_CALL);
    calls.find(|call| FieldName::Id.value_in(call) == id).map_or("", |call| FieldName::Name.value_in(call))
}

/// Returns the JSON of an opaque part of this family, or `None` for any other part. A guest sends these parts back, so an adapter
/// reads only known fields from them.
pub(super) fn opaque(part: &MessagePart, family: Family) -> Option<Value> {
    if part.kind != family.opaque_kind() {
        return None;
    }
    document::read(part.text.as_bytes()).ok()
}

/// Returns an object with these fields of `value`, or `None` if its `type` is not one of `types`.
pub(super) fn taken(value: &Value, types: &[&str], fields: &[&str]) -> Option<Value> {
    let is_known = value["type"].as_str().is_some_and(|kind| types.contains(&kind));
    let present = fields.iter().filter(|field| !value[**field].is_null());
    let object = present.map(|field| ((*field).to_owned(), value[*field].to_owned())).collect();
    is_known.then_some(Value::Object(object))
}

/// Returns a number of tokens, or 0 if there is none.
pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Sets a field if there is a value for it.
pub(super) fn set(body: &mut Value, field: &'static str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body[field] = value.into();
    }
}
