//! Errors that are no error responses: an answer, or a connection, from which the caller has to find out the error.

use super::listen::Request;
use super::script::{Call, Cut, Turn};
use glovebox_models::error::ErrorKind;
use glovebox_models::family::Family;
use serde_json::{Map, Value, json};

/// A model that no request asks for.
const ANOTHER_MODEL: &str = "another-model";
/// Arguments that are not a JSON object. Where arguments are a part of the answer's JSON, they must be JSON.
const UNREADABLE: &str = "{\"";
const NOT_AN_OBJECT: &str = "[1]";
/// Errors that a caller finds without a provider: in its own limits, grants, hold-outs or script, or because it does not
/// send the request.
const OF_CALLERS: [ErrorKind; 7] = [
    ErrorKind::Canceled,
    ErrorKind::UnsupportedToolChoice,
    ErrorKind::BudgetExceeded,
    ErrorKind::LimitExceeded,
    ErrorKind::NotGranted,
    ErrorKind::HoldoutLeak,
    ErrorKind::ScriptExhausted,
];

/// How an error is shown to the caller.
pub(super) enum Misbehavior {
    /// As an error response of the provider.
    Response,
    /// The connection is closed before the answer.
    Close,
    /// This answer is sent.
    Answer(Box<Turn>),
}

/// Returns true if a provider can cause the error.
pub(super) fn is_of_provider(kind: ErrorKind) -> bool {
    !OF_CALLERS.contains(&kind)
}

/// Returns how the error of a turn is shown. `None` if the error needs a tool and the request offers none.
pub(super) fn misbehavior(kind: ErrorKind, family: Family, turn: &Turn, asking: &Request) -> Option<Misbehavior> {
    let answer = Turn { error: None, ..turn.clone() };
    let say = |answer| Some(Misbehavior::Answer(Box::new(answer)));
    let call = |arguments: Map<String, Value>, raw_arguments| {
        let (name, _) = first_tool(family, &asking.json())?;
        say(Turn { tool: vec![Call { name, arguments, raw_arguments }], ..answer.clone() })
    };
    match kind {
        ErrorKind::Network => Some(Misbehavior::Close),
        ErrorKind::Stream => say(Turn { cut: Some(Cut::Connection), ..answer }),
        ErrorKind::PinViolation => say(Turn { model: Some(ANOTHER_MODEL.to_owned()), ..answer }),
        ErrorKind::AnswerTooLarge => say(Turn { endless: true, ..answer }),
        ErrorKind::NoObjectGenerated => say(Turn { text: "this is no object".to_owned(), ..answer }),
        ErrorKind::InvalidToolCall => {
            let is_json = matches!(family, Family::Gemini | Family::Ollama);
            call(Map::new(), Some(if is_json { NOT_AN_OBJECT } else { UNREADABLE }.to_owned()))
        }
        ErrorKind::Loop => call(first_tool(family, &asking.json())?.1, None),
        _ => Some(Misbehavior::Response),
    }
}

/// Returns the name of the first tool that a request offers, and arguments with a value for each required property.
fn first_tool(family: Family, request: &Value) -> Option<(String, Map<String, Value>)> {
    let tool = match family {
        Family::Openai | Family::Anthropic => &request["tools"][0],
        Family::Gemini => &request["tools"][0]["functionDeclarations"][0],
        Family::OpenaiCompatible | Family::Ollama => &request["tools"][0]["function"],
    };
    let schema = [&tool["parameters"], &tool["input_schema"], &tool["parametersJsonSchema"]];
    let schema = schema.into_iter().find(|schema| schema.is_object()).unwrap_or(&Value::Null);
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let arguments = required.map(|name| (name.to_owned(), value(&schema["properties"][name])));
    Some((tool["name"].as_str()?.to_owned(), arguments.collect()))
}

/// Returns a value of the type that a schema names.
fn value(schema: &Value) -> Value {
    match schema["type"].as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
        "integer" | "number" => json!(1),
        "boolean" => json!(false),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!("x"),
    }
}
