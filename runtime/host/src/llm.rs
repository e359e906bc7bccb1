//! The `llm` interface: asking the model bound to the node.
//!
//! The guest cannot choose a model and cannot go over its turns: the host counts them, and notes whether a success was
//! declared before a bound was reached (seed 0, fix 2). What the model said is taken from here, never from the guest.

use crate::attempt::Attempt;
use crate::bindings::chat::{Message, Part, Usage};
use crate::bindings::llm::{Error, Event, Host, HostCompletion, Request, Response};
use crate::call::Progress;
use crate::model::{Answer, Model, ModelError, Provider};
use glovebox_record::{LimitName, Refusal, Status, Tokens};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use wasmtime::Result;
use wasmtime::component::Resource;

/// A model and what was asked of it in this attempt.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    model: Option<Model>,
    /// Turns the model answered.
    pub(crate) turns: u32,
    /// Tokens of these turns.
    pub(crate) tokens: Tokens,
    /// Turns that asked for tools.
    pub(crate) tool_rounds: u32,
    /// Whether the last outcome that was declared in so many words is a success.
    pub(crate) declared_success: bool,
    /// The bound a request was refused for.
    pub(crate) limit_hit: Option<LimitName>,
    /// What a script that ran dry had to say.
    pub(crate) exhausted: Option<String>,
    /// What was found out to contain a hold-out; nothing is asked any more after that.
    pub(crate) leaked: Option<Side>,
}

/// A streamed answer: events that were not yet fetched.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Completion {
    events: VecDeque<Event>,
    canceled: bool,
}

impl Conversation {
    pub(crate) fn new(model: Option<Model>) -> Self {
        Conversation { model, ..Conversation::default() }
    }

    fn note_declared(&mut self, answer: &Answer) {
        for line in answer.text.lines() {
            match line.trim().strip_prefix("OUTCOME:").map(str::trim) {
                Some("SUCCESS" | "PASS") => self.declared_success = true,
                Some(_) => self.declared_success = false,
                None => {}
            }
        }
        if let Some(outcome) = &answer.outcome {
            self.declared_success = matches!(outcome.status, Status::Success | Status::PartialSuccess);
        }
    }
}

impl Attempt {
    fn ask(&mut self, request: &Request) -> Result<Response, Error> {
        self.meter.carried(request_bytes(request));
        if self.conversation.model.is_none() {
            return Err(self.model_not_granted());
        }
        check(request)?;
        if self.is_canceled() {
            return Err(error(Kind::Canceled, "the run was asked to stop"));
        }
        if u64::from(self.conversation.turns) >= self.limits.turns {
            return Err(self.over(LimitName::Turns));
        }
        self.check_leak(Side::Prompt, || asked_texts(request))?;
        self.report(Progress::ModelTurn(self.conversation.turns + 1));
        let Some(model) = &mut self.conversation.model else {
            return Err(self.model_not_granted());
        };
        let provider = model.provider();
        let answer = match model.answer() {
            Ok(answer) => answer,
            Err(problem @ ModelError::ScriptExhausted { .. }) => {
                self.conversation.exhausted = Some(problem.to_string());
                return Err(error(Kind::ScriptExhausted, problem));
            }
        };
        self.conversation.turns += 1;
        self.conversation.tokens.add(Tokens { input: answer.usage.input, output: answer.usage.output });
        self.check_leak(Side::Response, || answered_texts(&answer))?;
        if !answer.tool_calls.is_empty() {
            if u64::from(self.conversation.tool_rounds) >= self.limits.tool_rounds {
                return Err(self.over(LimitName::ToolRounds));
            }
            self.conversation.tool_rounds += 1;
        }
        self.conversation.note_declared(&answer);
        Ok(response(answer, provider, request))
    }

    /// Lets no hold-out pass, in either direction. Neither side learns where in the hold-outs its text stands.
    fn check_leak<'t>(&mut self, side: Side, texts: impl FnOnce() -> Vec<Cow<'t, str>>) -> Result<(), Error> {
        let Some(guard) = self.conversation.model.as_ref().and_then(Model::guard) else { return Ok(()) };
        let found = match self.conversation.leaked {
            Some(_) => None,
            None => guard.first(texts().iter().map(AsRef::as_ref)),
        };
        if let Some(place) = found {
            self.conversation.leaked = Some(side);
            self.refuse(Refusal::new("tell the model", &place, side.leak_reason(), LEAK_HELP));
        }
        match self.conversation.leaked {
            Some(side) => Err(error(Kind::HoldoutLeak, side.leak_reason())),
            None => Ok(()),
        }
    }

    fn model_not_granted(&self) -> Error {
        let help = "set `grants = { model = true }` in `glovebox.toml`, and `model` in the plugin's `wants`";
        self.refuse(Refusal::new("ask the model", "", "the stage may not ask a model", help));
        error(Kind::NotGranted, "the stage may not ask a model; `grants = { model = true }` would allow it")
    }

    fn over(&mut self, name: LimitName) -> Error {
        self.conversation.limit_hit.get_or_insert(name);
        error(Kind::LimitExceeded, format_args!("limit `{name}` ({}) reached", self.limits.get(name)))
    }
}

impl Host for Attempt {
    fn info(&mut self) -> Result<Vec<(String, String)>> {
        Ok(self.conversation.model.as_ref().map(Model::info).unwrap_or_default())
    }

    fn complete(&mut self, request: Request) -> Result<Result<Response, Error>> {
        Ok(self.ask(&request))
    }

    fn start(&mut self, request: Request) -> Result<Result<Resource<Completion>, Error>> {
        match self.ask(&request) {
            Ok(response) => Ok(Ok(self.table.push(Completion { events: streamed(response), canceled: false })?)),
            Err(error) => Ok(Err(error)),
        }
    }
}

impl HostCompletion for Attempt {
    fn next(&mut self, this: Resource<Completion>, max: u32, _wait_ms: u32) -> Result<Result<Vec<Event>, Error>> {
        let completion = self.table.get_mut(&this)?;
        if completion.canceled {
            return Ok(Err(error(Kind::Canceled, "the completion was canceled")));
        }
        if completion.events.is_empty() {
            return Ok(Err(error(Kind::Stream, "the completion has already finished")));
        }
        let count = usize::try_from(max).unwrap_or(usize::MAX).min(completion.events.len());
        Ok(Ok(completion.events.drain(..count).collect()))
    }

    fn cancel(&mut self, this: Resource<Completion>) -> Result<()> {
        let completion = self.table.get_mut(&this)?;
        completion.events.clear();
        completion.canceled = true;
        Ok(())
    }

    fn drop(&mut self, this: Resource<Completion>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

const LEAK_HELP: &str =
    "no grant allows it; to show a builder the hold-outs, set `codex.allow_read_scenarios=true` on its node";

/// A side of a conversation with the model.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    /// What the guest asks.
    Prompt,
    /// What the model answers.
    Response,
}

impl Side {
    /// Why an attempt ends whose conversation contained a hold-out; quotes nothing.
    pub(crate) fn leak_reason(self) -> &'static str {
        match self {
            Self::Prompt => "holdout_leak: the prompt contains text of a hold-out scenario",
            Self::Response => "holdout_leak: the response contains text of a hold-out scenario",
        }
    }
}

/// The kinds of errors that a guest gets.
#[derive(Clone, Copy)]
enum Kind {
    Canceled,
    HoldoutLeak,
    InvalidRequest,
    LimitExceeded,
    NotGranted,
    ScriptExhausted,
    Stream,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Canceled => "canceled",
            Self::HoldoutLeak => "holdout-leak",
            Self::InvalidRequest => "invalid-request",
            Self::LimitExceeded => "limit-exceeded",
            Self::NotGranted => "not-granted",
            Self::ScriptExhausted => "script-exhausted",
            Self::Stream => "stream",
        }
    }
}

/// Every text of a request that a guest can choose.
fn asked_texts(request: &Request) -> Vec<Cow<'_, str>> {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let texts = parts.flat_map(|part| {
        let fields = part.fields.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        std::iter::once(part.text.as_str()).chain(fields)
    });
    let tools = request.tools.iter().flat_map(|tool| [&*tool.name, &*tool.description, &*tool.parameters]);
    texts.chain(tools).map(Cow::Borrowed).collect()
}

/// Every text of an answer.
fn answered_texts(answer: &Answer) -> Vec<Cow<'_, str>> {
    let calls = answer.tool_calls.iter().flat_map(|call| [call.name.as_str(), call.arguments.as_str()]);
    let declared = answer.outcome.as_ref().and_then(|outcome| serde_json::to_string(outcome).ok());
    let texts = std::iter::once(answer.text.as_str()).chain(calls).map(Cow::Borrowed);
    texts.chain(declared.map(Cow::Owned)).collect()
}

/// An error that stays one however often the guest tries.
fn error(kind: Kind, message: impl fmt::Display) -> Error {
    Error { kind: kind.as_str().to_owned(), message: message.to_string(), retryable: false }
}

fn response(answer: Answer, provider: Provider, request: &Request) -> Response {
    let finish = if answer.tool_calls.is_empty() { "stop" } else { "tool-calls" };
    let mut parts = Vec::new();
    if !answer.text.is_empty() {
        parts.push(Part { kind: "text".to_owned(), text: answer.text, fields: Vec::new() });
    }
    for call in answer.tool_calls {
        let mut fields = vec![("id".to_owned(), call.id)];
        if !request.tools.iter().any(|tool| tool.name == call.name) {
            let offered = request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
            let offered = if offered.is_empty() { "none".to_owned() } else { offered };
            let problem = format!("no tool `{}` was offered; the tools are {offered}", call.name);
            fields.push(("problem".to_owned(), problem));
        }
        fields.push(("name".to_owned(), call.name));
        parts.push(Part { kind: "tool-call".to_owned(), text: call.arguments, fields });
    }
    if let Some(text) = answer.outcome.and_then(|outcome| serde_json::to_string(&outcome).ok()) {
        parts.push(Part { kind: "outcome".to_owned(), text, fields: Vec::new() });
    }
    Response {
        message: Message { role: "assistant".to_owned(), parts },
        finish: finish.to_owned(),
        usage: Usage { input: answer.usage.input, output: answer.usage.output, extra: Vec::new() },
        model: provider.as_str().to_owned(),
        extra: Vec::new(),
    }
}

fn streamed(response: Response) -> VecDeque<Event> {
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

fn check(request: &Request) -> Result<(), Error> {
    let invalid = |problem: String| Err(error(Kind::InvalidRequest, problem));
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

/// Checks the tuning that a guest asks for, and returns what is expected instead of a wrong value.
fn problem_of((name, value): &(String, String)) -> Option<&'static str> {
    let within = |low: f64, high: f64| value.parse::<f64>().is_ok_and(|number| (low..=high).contains(&number));
    let (good, expected) = match name.as_str() {
        "max-tokens" => (value.parse::<u32>().is_ok_and(|tokens| tokens > 0), "a number of tokens"),
        "temperature" => (within(0.0, 2.0), "a number from 0 to 2"),
        "top-p" => (within(0.0, 1.0), "a number from 0 to 1"),
        "reasoning-effort" => (matches!(value.as_str(), "low" | "medium" | "high"), "`low`, `medium` or `high`"),
        _ => (false, "a known option: `max-tokens`, `temperature`, `top-p`, `reasoning-effort`"),
    };
    (!good).then_some(expected)
}

fn request_bytes(request: &Request) -> usize {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.map(|part| part.text.len()).sum::<usize>()
        + request.tools.iter().map(|tool| tool.parameters.len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::chat::ToolDef;
    use crate::model::ToolCall;

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
        assert!(!good("max-tokens", "0") && !good("temperature", "NaN") && !good("top-p", "2"));
        let refused = check(&request(&[("model", "other")])).unwrap_err();
        assert_eq!((refused.kind.as_str(), refused.retryable), ("invalid-request", false));
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
        let call =
            |name: &str| ToolCall { id: "call-1-1".to_owned(), name: name.to_owned(), arguments: "{}".to_owned() };
        let answer = Answer { tool_calls: vec![call("glob"), call("rm")], ..Answer::default() };
        let response = response(answer, Provider::Scripted, &request(&[]));
        let problems: Vec<bool> =
            response.message.parts.iter().map(|part| part.fields.iter().any(|(name, _)| name == "problem")).collect();
        assert_eq!((problems, response.finish.as_str()), (vec![false, true], "tool-calls"));
        let kinds: Vec<String> = streamed(response).into_iter().map(|event| event.kind).collect();
        assert_eq!(kinds, ["tool-call", "tool-call", "finish"]);
    }
}
