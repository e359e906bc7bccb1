//! Messages of the Model Context Protocol: requests to a server, and answers of a server that is not trusted.
//!
//! Pure. Every text of a server is bounded here before it is used. A message that violates the protocol is an error of the server.

use glovebox_names::visible;
use glovebox_schema::document;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The protocol version that the client requests.
const VERSION: &str = "2025-06-18";
/// Supported protocol versions. They do not differ in the parts that are used here.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", VERSION, "2025-11-25"];
/// Maximum length of a tool's name with its prefix, in bytes: the lowest limit of all providers.
pub(crate) const NAME_BYTES_MAX: usize = 64;
/// Maximum length of a tool's description, in bytes.
pub(crate) const DESCRIPTION_BYTES_MAX: usize = 4 << 10;
/// Maximum length of the schema of a tool's arguments, in bytes.
pub(crate) const SCHEMA_BYTES_MAX: usize = 32 << 10;
/// Maximum length of a server's text in a message to people, in characters.
const ERROR_CHARS_MAX: usize = 500;

/// A request to a server.
#[derive(Debug)]
pub(crate) enum ServerRequest<'a> {
    Initialize,
    List { cursor: Option<&'a str> },
    Call { tool: &'a str, arguments: Value },
}

impl ServerRequest<'_> {
    /// Returns the line to send to the server.
    pub(crate) fn line(self, id: u64) -> String {
        let (method, params) = match self {
            ServerRequest::Initialize => {
                let client = json!({ "name": "glovebox", "version": env!("CARGO_PKG_VERSION") });
                ("initialize", json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": client }))
            }
            ServerRequest::List { cursor: None } => ("tools/list", json!({})),
            ServerRequest::List { cursor: Some(cursor) } => ("tools/list", json!({ "cursor": cursor })),
            ServerRequest::Call { tool, arguments } => ("tools/call", json!({ "name": tool, "arguments": arguments })),
        };
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    }
}

/// Returns the notification that completes the handshake.
pub(crate) fn initialized() -> String {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()
}

/// A message of a server.
#[derive(Debug, PartialEq)]
pub(crate) enum ServerMessage {
    /// The answer to a request, or the error that the server returned.
    Answer(Result<Value, String>),
    /// A request of the server. The text is the reply to it.
    Request(String),
    /// A notification, which needs no answer.
    Notification,
}

/// Reads a line that arrived while the request `id` was pending.
pub(crate) fn read(line: &[u8], id: u64) -> Result<ServerMessage, String> {
    let mut message = document::read(line)
        .map_err(|_| "it wrote a line on its standard output that is not a message of the protocol".to_owned())?;
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err("it wrote a message that is not JSON-RPC 2.0".to_owned());
    }
    let own = message.get("id").filter(|own| !own.is_null());
    if let Some(method) = message.get("method").and_then(Value::as_str) {
        return Ok(own.map_or(ServerMessage::Notification, |own| ServerMessage::Request(reply(own, method))));
    }
    if own.and_then(Value::as_u64) != Some(id) {
        return Err("it answered another request than the pending one".to_owned());
    }
    let result = message.get_mut("result").map(Value::take);
    match (result, message.get("error")) {
        (Some(result), None) => Ok(ServerMessage::Answer(Ok(result))),
        (None, Some(error)) => {
            let text = error.get("message").and_then(Value::as_str).unwrap_or("its error has no message");
            Ok(ServerMessage::Answer(Err(short(text))))
        }
        _ => Err("it wrote an answer that does not have exactly one of `result` and `error`".to_owned()),
    }
}

/// Returns the reply to a request of the server. The client answers only `ping`; any other method is unknown.
fn reply(id: &Value, method: &str) -> String {
    let answer = match method {
        "ping" => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        _ => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "method not found" } }),
    };
    answer.to_string()
}

/// Checks the protocol version in the answer to the handshake.
pub(crate) fn check_version(answer: &Value) -> Result<(), String> {
    let version = answer.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    if VERSIONS.contains(&version) {
        return Ok(());
    }
    Err(format!("it speaks the protocol version `{}`, expected one of {}", short(version), VERSIONS.join(", ")))
}

/// A tool as its server describes it, within the bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tool {
    /// Name of the tool at its server.
    pub(crate) name: String,
    pub(crate) description: String,
    /// JSON Schema of the arguments.
    pub(crate) parameters: String,
}

/// A page of a server's tools, and the cursor of the next page. A tool that cannot be offered is an error with the tool's name.
#[derive(Debug, Default)]
pub(crate) struct ToolPage {
    pub(crate) tools: Vec<Result<Tool, String>>,
    pub(crate) next: Option<String>,
}

/// Reads a page of at most `tools_max` tools.
pub(crate) fn page(answer: &Value, tools_max: usize) -> Result<ToolPage, String> {
    let Some(list) = answer.get("tools").and_then(Value::as_array) else {
        return Err("the `tools` in its answer are not a list".to_owned());
    };
    if list.len() > tools_max {
        return Err(format!("it lists more than {} tools", super::TOOLS_MAX));
    }
    let next = answer.get("nextCursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty());
    Ok(ToolPage { tools: list.iter().map(tool).collect(), next: next.map(str::to_owned) })
}

/// Reads the description of a tool.
pub(crate) fn tool(described: &Value) -> Result<Tool, String> {
    let text = |name| described.get(name).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    let shown = short(name);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        return Err(format!(
            "the name of the tool `{shown}` must have 1 to {NAME_BYTES_MAX} letters, digits, `_` or `-`"
        ));
    }
    let mut parameters = described.get("inputSchema").cloned().unwrap_or_else(|| json!({ "type": "object" }));
    if parameters.get("type").and_then(Value::as_str) != Some("object") {
        return Err(format!("the schema of the tool `{shown}` is not an object schema"));
    }
    if !made_visible(&mut parameters) {
        return Err(format!(
            "the schema of the tool `{shown}` has a name or a value with an invisible or deceptive character"
        ));
    }
    let parameters = parameters.to_string();
    if parameters.len() > SCHEMA_BYTES_MAX {
        return Err(format!("the schema of the tool `{shown}` has more than {SCHEMA_BYTES_MAX} bytes"));
    }
    let mut description = visible::block(text("description").unwrap_or_default()).into_owned();
    if description.len() > DESCRIPTION_BYTES_MAX {
        description.truncate(description.floor_char_boundary(DESCRIPTION_BYTES_MAX));
        description.push('…');
    }
    Ok(Tool { name: name.to_owned(), description, parameters })
}

/// Escapes deceptive characters in the descriptions of a schema. Returns false if a name or a value contains such a character, because
/// those cannot be changed.
fn made_visible(schema: &mut Value) -> bool {
    let is_visible = |text: &str| visible::block(text) == text;
    match schema {
        Value::String(text) => is_visible(text),
        Value::Array(items) => items.iter_mut().all(made_visible),
        Value::Object(fields) => fields.iter_mut().all(|(name, value)| match (name.as_str(), value) {
            ("description" | "title", Value::String(text)) => {
                *text = visible::block(text).into_owned();
                true
            }
            (name, value) => is_visible(name) && made_visible(value),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolResult {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

impl ToolResult {
    /// Returns the result with its text cut to [`ANSWER_BYTES_MAX`](super::ANSWER_BYTES_MAX).
    pub(crate) fn cut(mut self) -> Self {
        let end = self.text.floor_char_boundary(super::ANSWER_BYTES_MAX);
        let more = self.text.len() - end;
        if more > 0 {
            self.text.truncate(end);
            self.text.push_str(&format!("\n[{more} bytes left out]"));
        }
        self
    }
}

/// Reads the texts of the answer to a call. Content of any other kind is replaced by a note.
pub(crate) fn read_result(answer: &Value) -> Result<ToolResult, String> {
    let parts = answer.get("content").and_then(Value::as_array);
    let structured = answer.get("structuredContent").filter(|value| !value.is_null());
    let mut texts: Vec<String> = match (parts, structured) {
        (Some(parts), _) => parts.iter().map(part).collect(),
        (None, Some(_)) => Vec::new(),
        (None, None) => return Err("its answer to a call has no content".to_owned()),
    };
    if let Some(structured) = structured.filter(|_| texts.is_empty()) {
        texts.push(visible::json(&structured.to_string()).into_owned());
    }
    let is_error = answer.get("isError").and_then(Value::as_bool).unwrap_or_default();
    Ok(ToolResult { text: texts.join("\n"), is_error })
}

fn part(part: &Value) -> String {
    let text = |name| part.get(name).and_then(Value::as_str);
    let kind = text("type").unwrap_or_default();
    let resource = part.get("resource").and_then(|resource| resource.get("text")).and_then(Value::as_str);
    match (kind, text("text"), resource) {
        ("text", Some(text), _) | ("resource", _, Some(text)) => visible::block(text).into_owned(),
        ("resource_link", ..) => format!("[resource {}]", short(text("uri").unwrap_or_default())),
        _ => format!("[a part of the kind `{}` is left out]", short(kind)),
    }
}

/// Returns a short text of a server as one line that is safe to print.
pub(crate) fn short(text: &str) -> String {
    let cut: String = text.chars().take(ERROR_CHARS_MAX).collect();
    visible::line(&cut).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_answer_to_what_was_asked_or_the_server_lies() {
        let check = |line: &str, expected: Result<ServerMessage, &str>| {
            assert_eq!(read(line.as_bytes(), 7), expected.map_err(str::to_owned), "{line}");
        };
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#, Ok(ServerMessage::Answer(Ok(json!({"a":1})))));
        check(r#"{"jsonrpc":"2.0","id":7,"error":{"message":"no\u001b[2J"}}"#, {
            Ok(ServerMessage::Answer(Err("no\\x1b[2J".to_owned())))
        });
        check(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, Ok(ServerMessage::Notification));
        let other = "it answered another request than the pending one";
        check(r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, Err(other));
        check(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, Err(other));
        check(r#"{"jsonrpc":"2.0","result":{}}"#, Err(other));
        check(r#"{"id":7,"result":{}}"#, Err("it wrote a message that is not JSON-RPC 2.0"));
        check(
            "listening on port 80",
            Err("it wrote a line on its standard output that is not a message of the protocol"),
        );
        let both = r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{}}"#;
        check(both, Err("it wrote an answer that does not have exactly one of `result` and `error`"));
        let Ok(ServerMessage::Request(reply)) =
            read(br#"{"jsonrpc":"2.0","id":"a","method":"sampling/createMessage"}"#, 7)
        else {
            panic!("a request is answered")
        };
        assert!(reply.contains("-32601") && reply.contains("\"id\":\"a\""));
    }

    #[test]
    fn a_tool_is_offered_within_bounds_or_not_at_all() {
        let check = |tool: Value, expected: Result<(), &str>| {
            let found = page(&json!({ "tools": [tool] }), 1).unwrap().tools.remove(0);
            match (found, expected) {
                (Ok(_), Ok(())) => {}
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, _) => panic!("{found:?}, expected {expected:?}"),
            }
        };
        check(json!({ "name": "echo", "inputSchema": { "type": "object" } }), Ok(()));
        check(json!({ "name": "echo" }), Ok(()));
        check(json!({ "name": "a\u{1b}[2J" }), Err("`a\\x1b[2J`"));
        check(json!({ "name": "a.b" }), Err("letters"));
        check(json!({ "name": "" }), Err("letters"));
        check(json!({ "name": "x".repeat(65) }), Err("letters"));
        check(json!({ "name": "a", "inputSchema": [] }), Err("not an object schema"));
        check(json!({ "name": "a", "inputSchema": { "type": "object", "x": "y".repeat(SCHEMA_BYTES_MAX) } }), {
            Err("more than 32768 bytes")
        });
        let of_schema =
            |fields: Value| json!({ "name": "a", "inputSchema": { "type": "object", "properties": fields } });
        check(of_schema(json!({ "a": { "title": "b\u{202e}", "enum": ["\n"] } })), Ok(()));
        check(of_schema(json!({ "a\u{200b}": {} })), Err("an invisible or deceptive character"));
        check(of_schema(json!({ "a": { "enum": ["b\u{e0041}"] } })), Err("an invisible or deceptive character"));
        let long = json!({ "tools": [{ "name": "a", "description": "d\u{202e}".repeat(9000) }] });
        let tool = page(&long, 1).unwrap().tools.remove(0).unwrap();
        assert!(tool.description.len() < DESCRIPTION_BYTES_MAX + 4 && !tool.description.contains('\u{202e}'));
        assert!(page(&json!({ "tools": [{}, {}] }), 1).unwrap_err().contains("more than"));
    }

    #[test]
    fn an_answer_is_its_texts() {
        let check = |answer: Value, text: &str, is_error: bool| {
            assert_eq!(read_result(&answer).unwrap(), ToolResult { text: text.to_owned(), is_error });
        };
        let text = |text: &str| json!({ "type": "text", "text": text });
        check(json!({ "content": [text("a"), text("b")] }), "a\nb", false);
        check(json!({ "content": [text("a")], "isError": true }), "a", true);
        check(
            json!({ "content": [{ "type": "image", "data": "x" }] }),
            "[a part of the kind `image` is left out]",
            false,
        );
        check(json!({ "content": [], "structuredContent": { "a": 1 } }), r#"{"a":1}"#, false);
        assert!(read_result(&json!({})).is_err() && read_result(&json!([])).is_err());
        assert!(check_version(&json!({ "protocolVersion": "2025-03-26" })).is_ok());
        assert!(check_version(&json!({ "protocolVersion": "1.0" })).is_err() && check_version(&json!({})).is_err());
    }
}
