//! Converts requests and answers between their WIT types and the types of `glovebox_models`, and checks requests.
//!
//! Pure. Only this module converts types of the guest to types of the record.

use super::model::Provider;
use crate::bindings::chat::{Message, Part, Usage};
use crate::bindings::llm::{Error, Event, Request, Response};
use glovebox_models::chat::{self, AgentId, Answer, Effort, FieldName, Settings, TOOL_CALL, Tool};
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_record::session;
use std::collections::VecDeque;
use std::time::Duration;

/// Converts an error to its WIT type.
pub(super) fn guest_error(error: &ModelError) -> Error {
    Error { kind: error.kind.to_string(), message: error.to_string(), retryable: error.is_retried() }
}

/// Converts a request to the type that adapters of providers read.
pub(super) fn question(request: &Request) -> chat::Request {
    let tool = |tool: &crate::bindings::chat::ToolDef| Tool {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        parameters: tool.parameters.to_owned(),
    };
    chat::Request {
        messages: request.messages.iter().map(recorded).collect(),
        tools: request.tools.iter().map(tool).collect(),
        settings: settings(request),
        schema: None,
        agent: agent(request),
        within: within(request),
    }
}

/// Returns the subagent that asks, or `None` for the stage itself.
pub(super) fn agent(request: &Request) -> Option<AgentId> {
    request.options.iter().find(|(name, _)| name == AGENT).and_then(|(_, value)| AgentId::parse(value))
}

/// Returns the time limit of an optional request, or `None` for a required one. The answer to an optional request is
/// not the stage's own answer. If it does not arrive in time, the stage continues without it.
pub(super) fn within(request: &Request) -> Option<Duration> {
    let named = request.options.iter().find(|(name, _)| name == ANSWER_WITHIN);
    named.and_then(|(_, value)| value.parse().ok()).map(Duration::from_secs)
}

/// Option with the time limit of an optional request, in seconds.
const ANSWER_WITHIN: &str = "answer-within";
/// Maximum of [`ANSWER_WITHIN`], in seconds.
const ANSWER_SECONDS_MAX: u64 = 3600;

/// Option that names a subagent. Each subagent has its own conversation.
const AGENT: &str = "agent";

/// Converts a message to the type of the record.
pub(super) fn recorded(message: &Message) -> session::Message {
    let part = |part: &Part| session::MessagePart {
        kind: part.kind.to_owned(),
        text: part.text.to_owned(),
        fields: part.fields.to_vec(),
    };
    session::Message { role: message.role.to_owned(), parts: message.parts.iter().map(part).collect() }
}

/// As [`recorded`], but without a copy.
pub(super) fn into_record(message: Message) -> session::Message {
    let part = |part: Part| session::MessagePart { kind: part.kind, text: part.text, fields: part.fields };
    session::Message { role: message.role, parts: message.parts.into_iter().map(part).collect() }
}

/// Returns the tuning options of a checked request.
fn settings(request: &Request) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in &request.options {
        match name.as_str() {
            "max-tokens" => settings.output_tokens_max = value.parse().ok(),
            "temperature" => settings.temperature = value.parse().ok(),
            "top-p" => settings.top_p = value.parse().ok(),
            AGENT | ANSWER_WITHIN => {}
            _ => settings.effort = Effort::ALL.into_iter().find(|effort| effort.as_str() == value),
        }
    }
    settings
}

/// Returns every text of a request that a guest can choose. The texts of the parts are in the order in which the model reads them.
pub(super) fn asked_texts(request: &Request) -> Vec<&str> {
    let parts = || request.messages.iter().flat_map(|message| &message.parts);
    let fields = parts().flat_map(|part| &part.fields).flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    let tools = request.tools.iter().flat_map(|tool| [&*tool.name, &*tool.description, &*tool.parameters]);
    parts().map(|part| part.text.as_str()).chain(fields).chain(tools).collect()
}

/// Returns every text of an answer. The texts of the parts are in their order.
pub(crate) fn answered_texts(answer: &Answer) -> Vec<&str> {
    let fields = answer.parts.iter().flat_map(|part| &part.fields).map(|(_, value)| value.as_str());
    answer.parts.iter().map(|part| part.text.as_str()).chain(fields).collect()
}

/// Field of a tool call that must not be executed.
const PROBLEM: &str = "problem";

/// Returns why a tool call cannot be executed, or `None` if it can.
fn problem(call: &session::MessagePart, request: &Request) -> Option<String> {
    let name = FieldName::Name.value_in(call);
    if !request.tools.iter().any(|tool| tool.name == name) {
        let offered = request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
        let offered = if offered.is_empty() { "none".to_owned() } else { offered };
        return Some(format!("no tool `{name}` was offered; the tools are {offered}"));
    }
    let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&call.text).is_ok();
    (!is_object).then(|| format!("the arguments of `{name}` are not a JSON object"))
}

/// Returns true if an answer calls a tool with unreadable arguments.
pub(super) fn has_invalid_call(answer: &Answer) -> bool {
    let is_object = |text: &str| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok();
    answer.tool_calls().any(|call| !is_object(&call.text))
}

/// Marks every tool call of an answer as not to be executed.
pub(super) fn add_problem(answer: &mut Answer, problem: &str) {
    for call in answer.parts.iter_mut().filter(|part| part.kind == TOOL_CALL) {
        call.fields.push((PROBLEM.to_owned(), problem.to_owned()));
    }
}

/// Converts an answer to its WIT type.
pub(super) fn response(answer: Answer, provider: Provider, request: &Request) -> Response {
    let part = |part: session::MessagePart| {
        let has_problem = part.fields.iter().any(|(name, _)| name == PROBLEM);
        let found = if part.kind == TOOL_CALL && !has_problem { problem(&part, request) } else { None };
        let problem = found.map(|problem| (PROBLEM.to_owned(), problem));
        let fields = part.fields.into_iter().chain(problem).collect();
        Part { kind: part.kind, text: part.text, fields }
    };
    let usage = answer.usage;
    let counted =
        [("cache-read", usage.cache_read), ("cache-write", usage.cache_write), ("reasoning", usage.reasoning)];
    let counted = counted.into_iter().filter(|(_, tokens)| *tokens > 0);
    Response {
        finish: answer.finish.as_str().to_owned(),
        usage: Usage {
            input: usage.input,
            output: usage.output,
            extra: counted.map(|(name, tokens)| (name.to_owned(), tokens)).collect(),
        },
        model: answer.model.map_or_else(|| provider.as_str().to_owned(), |model| model.to_string()),
        message: Message { role: "assistant".to_owned(), parts: answer.parts.into_iter().map(part).collect() },
        extra: Vec::new(),
    }
}

/// Returns an answer as the events of a stream.
pub(super) fn streamed(response: Response) -> VecDeque<Event> {
    let event = |kind: &str, text: String, part, response| Event { kind: kind.to_owned(), text, part, response };
    let mut events = VecDeque::new();
    for part in &response.message.parts {
        match part.kind.as_str() {
            "text" => events.push_back(event("text-delta", part.text.clone(), None, None)),
            "tool-call" => events.push_back(event("tool-call", String::new(), Some(part.clone()), None)),
            _ => {}
        }
    }
    events.push_back(event("finish", String::new(), None, Some(response)));
    events
}

/// Checks a request before the model is asked.
pub(super) fn check(request: &Request) -> Result<(), ModelError> {
    let invalid = |problem: String| Err(ModelError::new(ErrorKind::InvalidRequest, problem));
    for option in &request.options {
        if let Some(expected) = problem_of(option) {
            let (name, value) = option;
            return invalid(format!("option `{name}` has the value `{value}`, expected {expected}"));
        }
    }
    if let Some(message) =
        request.messages.iter().find(|m| !matches!(m.role.as_str(), "system" | "user" | "assistant" | "tool"))
    {
        return invalid(format!("role `{}`, expected `system`, `user`, `assistant` or `tool`", message.role));
    }
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    match request.tools.iter().find(|tool| !is_json(&tool.parameters)) {
        Some(tool) => invalid(format!("the parameters of tool `{}` are not JSON", tool.name)),
        None => Ok(()),
    }
}

/// Checks one tuning option. If the value is wrong, returns a description of the expected value.
fn problem_of((name, value): &(String, String)) -> Option<&'static str> {
    let within = |low: f64, high: f64| value.parse::<f64>().is_ok_and(|number| (low..=high).contains(&number));
    let (good, expected) = match name.as_str() {
        "max-tokens" => (value.parse::<u32>().is_ok_and(|tokens| tokens > 0), "a number of tokens"),
        "temperature" => (within(0.0, 2.0), "a number from 0 to 2"),
        "top-p" => (within(0.0, 1.0), "a number from 0 to 1"),
        "reasoning-effort" => (matches!(value.as_str(), "low" | "medium" | "high"), "`low`, `medium` or `high`"),
        AGENT => (AgentId::parse(value).is_some(), "1 to 32 letters, digits and `-`"),
        ANSWER_WITHIN => {
            let is_bound = value.parse().is_ok_and(|seconds| (1..=ANSWER_SECONDS_MAX).contains(&seconds));
            (is_bound, "1 to 3600 seconds")
        }
        _ => (
            false,
            "a known option: `max-tokens`, `temperature`, `top-p`, `reasoning-effort`, `agent`, `answer-within`",
        ),
    };
    (!good).then_some(expected)
}

/// Returns the length of a guest's request, in bytes.
pub(super) fn request_bytes(request: &Request) -> usize {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let of_part = |part: &Part| part.text.len() + part.fields.iter().map(|(_, value)| value.len()).sum::<usize>();
    parts.map(of_part).sum::<usize>() + request.tools.iter().map(|tool| tool.parameters.len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::chat::ToolDef;
    use glovebox_models::chat::call_part;

    fn request(options: &[(&str, &str)]) -> Request {
        let tool =
            |name: &str| ToolDef { name: name.to_owned(), description: String::new(), parameters: "{}".to_owned() };
        Request {
            messages: Vec::new(),
            tools: vec![tool("glob")],
            options: options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        }
    }

    #[test]
    fn tuning_is_known_or_refused() {
        let good = |name, value| check(&request(&[(name, value)])).is_ok();
        assert!(good("max-tokens", "100") && good("temperature", "0.5") && good("reasoning-effort", "high"));
        assert!(good("answer-within", "3600") && !good("answer-within", "0") && !good("answer-within", "3601"));
        assert!(!good("max-tokens", "0") && !good("temperature", "NaN") && !good("top-p", "2"));
        let refused = check(&request(&[("model", "other")])).unwrap_err();
        assert_eq!((refused.kind.as_str(), guest_error(&refused).retryable), ("invalid-request", false));
        assert!(refused.message.contains("option `model`"), "{}", refused.message);
    }

    #[test]
    fn every_text_of_a_request_is_listened_to() {
        let mut asked = request(&[]);
        asked.tools[0].description = "c".to_owned();
        let fields = vec![("d".to_owned(), "e".to_owned())];
        asked.messages.push(Message {
            role: "tool".to_owned(),
            parts: vec![Part { kind: "text".to_owned(), text: "b".to_owned(), fields }],
        });
        let mut texts = asked_texts(&asked);
        texts.sort();
        assert_eq!(texts, ["b", "c", "d", "e", "glob", "{}"]);
    }

    #[test]
    fn roles_and_schemas_are_checked() {
        let mut asked = request(&[]);
        asked.messages.push(Message { role: "root".to_owned(), parts: Vec::new() });
        assert!(check(&asked).unwrap_err().message.contains("role `root`"));
        let mut asked = request(&[]);
        asked.tools[0].parameters = "{".to_owned();
        assert!(check(&asked).unwrap_err().message.contains("tool `glob`"));
    }

    #[test]
    fn a_call_of_a_tool_that_was_not_offered_has_a_problem() {
        let parts = vec![call_part("1", "glob", "{}"), call_part("2", "rm", "{}"), call_part("3", "glob", "[")];
        let answer = Answer { parts, finish: chat::Finish::ToolCalls, ..Answer::default() };
        assert!(has_invalid_call(&answer));
        let response = response(answer, Provider::Scripted, &request(&[]));
        let problems: Vec<bool> =
            response.message.parts.iter().map(|part| part.fields.iter().any(|(name, _)| name == "problem")).collect();
        assert_eq!((problems, response.finish.as_str()), (vec![false, true, true], "tool-calls"));
        let kinds: Vec<String> = streamed(response).into_iter().map(|event| event.kind).collect();
        assert_eq!(kinds, ["tool-call", "tool-call", "tool-call", "finish"]);
    }
}
