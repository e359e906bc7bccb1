//! The `llm` interface: asking the model bound to the node.
//!
//! The guest cannot choose a model and cannot go over its turns: the host counts them, and notes whether a success was
//! declared before a bound was reached (seed 0, fix 2). What the model said is taken from here, never from the guest.

use crate::attempt::Attempt;
use crate::bindings::chat::{Message, Part, Usage};
use crate::bindings::llm::{Error, Event, Host, HostCompletion, Request, Response};
use crate::call::Progress;
use crate::model::{Answer, Model, ModelError};
use crate::outcome::Status;
use std::collections::VecDeque;
use wasmtime::Result;
use wasmtime::component::Resource;

/// A model and what was asked of it in this attempt.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    model: Option<Model>,
    /// Turns the model answered.
    pub(crate) turns: u32,
    /// Turns that asked for tools.
    pub(crate) tool_rounds: u32,
    /// Whether the last outcome that was declared in so many words is a success.
    pub(crate) declared_success: bool,
    /// The bound a request was refused for.
    pub(crate) limit_hit: Option<&'static str>,
    /// What a script that ran dry had to say.
    pub(crate) exhausted: Option<String>,
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
            return Err(error("canceled", "the run was told to stop", false));
        }
        if u64::from(self.conversation.turns) >= self.limits.turns {
            return Err(self.over("turns", self.limits.turns));
        }
        self.tell(Progress::ModelTurn(self.conversation.turns + 1));
        let Some(model) = &mut self.conversation.model else {
            return Err(self.model_not_granted());
        };
        let provider = model.provider();
        let answer = match model.answer() {
            Ok(answer) => answer,
            Err(problem @ ModelError::ScriptExhausted { .. }) => {
                self.conversation.exhausted = Some(problem.to_string());
                return Err(error("script-exhausted", &problem.to_string(), false));
            }
        };
        self.conversation.turns += 1;
        if !answer.tool_calls.is_empty() {
            if u64::from(self.conversation.tool_rounds) >= self.limits.tool_rounds {
                return Err(self.over("tool_rounds", self.limits.tool_rounds));
            }
            self.conversation.tool_rounds += 1;
        }
        self.conversation.note_declared(&answer);
        Ok(response(answer, provider, request))
    }

    fn model_not_granted(&self) -> Error {
        let help = "grants = { model = true } in `glovebox.toml`, and `model` among the plugin's wants";
        self.refuse("ask the model", "", "the stage has no model", help);
        error("not-granted", "the stage has no model; `grants = { model = true }` would allow it", false)
    }

    fn over(&mut self, name: &'static str, bound: u64) -> Error {
        self.conversation.limit_hit.get_or_insert(name);
        error("limit-exceeded", &format!("limit `{name}` ({bound}) reached"), false)
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
            return Ok(Err(error("canceled", "the completion was canceled", false)));
        }
        if completion.events.is_empty() {
            return Ok(Err(error("stream", "the completion has already finished", false)));
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

fn error(kind: &str, message: &str, retryable: bool) -> Error {
    Error { kind: kind.to_owned(), message: message.to_owned(), retryable }
}

fn part(kind: &str, text: String, fields: Vec<(String, String)>) -> Part {
    Part { kind: kind.to_owned(), text, fields }
}

fn response(answer: Answer, provider: &str, request: &Request) -> Response {
    let finish = if answer.tool_calls.is_empty() { "stop" } else { "tool-calls" };
    let mut parts = Vec::new();
    if !answer.text.is_empty() {
        parts.push(part("text", answer.text, Vec::new()));
    }
    for call in answer.tool_calls {
        let mut fields = vec![("id".to_owned(), call.id)];
        if !request.tools.iter().any(|tool| tool.name == call.name) {
            fields.push(("problem".to_owned(), format!("no tool `{}` was offered", call.name)));
        }
        fields.push(("name".to_owned(), call.name));
        parts.push(part("tool-call", call.arguments, fields));
    }
    if let Some(text) = answer.outcome.and_then(|outcome| serde_json::to_string(&outcome).ok()) {
        parts.push(part("outcome", text, Vec::new()));
    }
    Response {
        message: Message { role: "assistant".to_owned(), parts },
        finish: finish.to_owned(),
        usage: Usage { input: answer.usage.input, output: answer.usage.output, extra: Vec::new() },
        model: provider.to_owned(),
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
    let invalid = |problem: String| Err(error("invalid-request", &problem, false));
    for (name, value) in &request.options {
        if let Err(expected) = check_option(name, value) {
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

/// The tuning a guest may ask for; what is wrong is answered with what would be right.
fn check_option(name: &str, value: &str) -> Result<(), &'static str> {
    let within = |low: f64, high: f64| value.parse::<f64>().is_ok_and(|number| (low..=high).contains(&number));
    let (good, expected) = match name {
        "max-tokens" => (value.parse::<u32>().is_ok_and(|tokens| tokens > 0), "a number of tokens"),
        "temperature" => (within(0.0, 2.0), "a number from 0 to 2"),
        "top-p" => (within(0.0, 1.0), "a number from 0 to 1"),
        "reasoning-effort" => (matches!(value, "low" | "medium" | "high"), "`low`, `medium` or `high`"),
        _ => (false, "no such option: the known ones are `max-tokens`, `temperature`, `top-p`, `reasoning-effort`"),
    };
    if good { Ok(()) } else { Err(expected) }
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
        let response = response(answer, "scripted", &request(&[]));
        let problems: Vec<bool> =
            response.message.parts.iter().map(|part| part.fields.iter().any(|(name, _)| name == "problem")).collect();
        assert_eq!((problems, response.finish.as_str()), (vec![false, true], "tool-calls"));
        let kinds: Vec<String> = streamed(response).into_iter().map(|event| event.kind).collect();
        assert_eq!(kinds, ["tool-call", "tool-call", "finish"]);
    }
}
