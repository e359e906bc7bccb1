//! The agent loop: asks the model, executes its tool calls and returns the results, until an answer has no tool call.
//!
//! The loop does not count turns: the host refuses a turn that exceeds the limit. A stage that reaches the limit fails, unless the
//! model declared success before (decision turn-limit-is-a-failure).

use crate::artifact::Artifact;
use crate::conversation::{ContextUse, Conversation};
use crate::documents::{self, ModelProvider, Visibility};
use crate::ending::{self, Declaration, StageAnswer};
use crate::planned::{self, PlanInAnswer};
use crate::prompt;
use crate::questions::{Question, Questions};
use crate::subagents::Subagents;
use crate::thread;
use crate::tool_calls::ToolCalls;
use crate::toolbox::Toolbox;
use glovebox_plugin_sdk::llm::{self, Error, Message, Part, Request, Response};
use glovebox_plugin_sdk::{Outcome, Stage, Status, Value, control, log};
use std::path::Path;

/// Executes the stage.
pub(crate) fn run(stage: &Stage) -> Outcome {
    let mut talk = AgentLoop::begin(stage);
    let outcome = talk.hold();
    Artifact { name: "response.md", text: &talk.said }.keep();
    StageAnswer { stage, response: &talk.said }.beside(outcome)
}

/// The conversation of one attempt.
struct AgentLoop<'a> {
    stage: &'a Stage,
    tool_calls: ToolCalls,
    subagents: Subagents,
    conversation: Conversation,
    /// Text of the last answer that contained any.
    said: String,
    /// The last outcome that the model declared.
    declared: Option<Declaration>,
    /// True if the last answer was empty.
    was_silent: bool,
    /// True if the provider gets the schema only with requests that offer no tools.
    corrects_alone: bool,
}

impl<'a> AgentLoop<'a> {
    fn begin(stage: &'a Stage) -> Self {
        let asked = prompt::user(stage);
        Artifact { name: "prompt.md", text: &asked }.keep();
        let properties = llm::properties();
        let property = |name: &str| properties.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let maker = ModelProvider(property("provider").unwrap_or_default());
        let context = ContextUse::new(property("context-window").and_then(|text| text.parse().ok()));
        let mut toolbox = Toolbox::for_stage(stage, maker, property("images") != Some("false"));
        let earlier = thread::earlier(stage);
        toolbox.remember(&earlier);
        let notes = documents::section(Path::new("."), Visibility::from_stage(stage), maker);
        let system = prompt::system(stage, property("output-schema")) + &notes;
        let subagents = Subagents::new(stage.write_scope().clone(), notes, context);
        let tool_calls = ToolCalls::for_stage(toolbox);
        let mut messages = vec![Message::text("system", system)];
        messages.extend(earlier);
        let task = messages.len();
        messages.push(Message::text("user", asked));
        let request = Request {
            messages,
            tools: tool_calls.definitions().into_iter().chain(Subagents::definitions()).collect(),
            options: Vec::new(),
        };
        let conversation = Conversation::new(request, task, context);
        let corrects_alone = property("output-schema-mode") == Some("without-tools");
        let (said, declared, was_silent) = (String::new(), None, false);
        Self { stage, tool_calls, subagents, conversation, said, declared, was_silent, corrects_alone }
    }

    fn hold(&mut self) -> Outcome {
        loop {
            if control::canceled() {
                return Outcome::fail("agent/canceled", "the run was canceled").class("canceled");
            }
            let response = match self.conversation.ask() {
                Ok(response) => response,
                Err(error) => return self.unanswered(error),
            };
            let calls: Vec<Part> = calls(&response.message).cloned().collect();
            let verdict = Verdict::from_response(&response);
            match self.listen(&response.message, verdict) {
                _ if matches!(verdict, Verdict::Wrong(_)) && !self.gives_up() => {}
                // An answer with tool calls may quote anything in its text. The outcome of the last answer must be readable.
                Err(reason) if calls.is_empty() || ending::is_explicit(&response.message) => {
                    return Outcome::fail("agent/outcome-syntax", reason).class("contract");
                }
                Err(reason) => {
                    log::warn("the outcome in an answer with tool calls could not be read", &[("reason", &reason)])
                }
                Ok(()) => {}
            }
            match verdict {
                Verdict::Wrong(problem) if !self.gives_up() => {
                    let asked = prompt::correction(problem);
                    self.correct(response.message, asked);
                    continue;
                }
                _ if self.is_silent(&response) && !std::mem::replace(&mut self.was_silent, true) => {
                    self.conversation.push(Message::text("user", prompt::SILENT));
                    continue;
                }
                _ if calls.is_empty() => return self.close(response),
                _ => self.conversation.push(response.message),
            }
            self.was_silent = false;
            let (subagents, before) = (&mut self.subagents, &self.conversation.request.messages);
            let results = self.tool_calls.results(&calls, before, &mut |toolbox, call| match Subagents::has(call) {
                true => subagents.call(call, toolbox),
                false => toolbox.call(call),
            });
            self.conversation.push(results);
        }
    }

    /// Returns true for an answer without text and tool calls, if no outcome was declared before. The first such answer does not end
    /// the stage.
    fn is_silent(&self, response: &Response) -> bool {
        let is_nothing = |part: &Part| match part.kind.as_str() {
            "text" => part.text.trim().is_empty(),
            kind => !matches!(kind, "tool-call" | "outcome"),
        };
        let is_cut = matches!(response.finish.as_str(), "length" | "content-filter");
        self.declared.is_none() && !is_cut && response.message.parts.iter().all(is_nothing)
    }

    /// Asks for an answer that matches the schema. The host limits how often.
    fn correct(&mut self, answer: Message, asked: String) {
        self.declared = None;
        self.conversation.push(answer);
        self.conversation.push(Message::text("user", asked));
        if self.corrects_alone {
            self.conversation.request.tools.clear();
        }
    }

    /// Returns true if the model has declared that it will not succeed.
    fn gives_up(&self) -> bool {
        self.declared.as_ref().is_some_and(Declaration::gives_up)
    }

    /// Records the text and the declaration of an answer. The text of an object that matches the stage's schema contains no markers.
    fn listen(&mut self, message: &Message, verdict: Verdict<'_>) -> Result<(), String> {
        let text = message.whole_text();
        if !text.trim().is_empty() {
            self.said = text;
        }
        let declared = match verdict {
            Verdict::Valid if !ending::is_explicit(message) => Ok(None),
            _ => ending::declared(message),
        };
        match declared {
            Ok(Some(declaration)) => self.declared = Some(declaration),
            Ok(None) => {}
            Err(reason) => {
                self.declared = None;
                return Err(reason);
            }
        }
        Ok(())
    }

    /// Ends the stage with an answer that has no tool calls. A truncated answer fails the stage, even if it declares
    /// success.
    fn close(&mut self, response: Response) -> Outcome {
        match response.finish.as_str() {
            "length" => {
                Outcome::fail("llm/length", "the model's answer was cut off at its length limit").class("budget")
            }
            "content-filter" => {
                Outcome::fail("llm/content-filter", "the provider's filter withheld the model's answer")
            }
            _ if self.is_silent(&response) => {
                Outcome::fail("agent/empty-answer", "the model returned two empty answers").class("transient")
            }
            _ => {
                let found = self.found();
                let plan = self.plan(found, response.message);
                self.outcome(plan)
            }
        }
    }

    /// Returns the plan that was declared, or else the one in the last answer.
    fn found(&mut self) -> PlanInAnswer {
        let declared = self.declared.as_mut().and_then(|declared| declared.plan.take());
        declared.map_or_else(|| planned::from_answer(&self.said), PlanInAnswer::Plan)
    }

    /// Returns the plan for the verification stages. If none of them could run it, asks the model for a better one, as often as the
    /// engine allows.
    fn plan(&mut self, mut found: PlanInAnswer, answer: Message) -> Option<Value> {
        let Some(questions) = Questions::for_stage(self.stage).filter(|_| !self.gives_up()) else {
            return found.into_plan();
        };
        self.conversation.push(answer);
        let mut before = None;
        for _ in 0..questions.count_max {
            let Some(question) = questions.about(&found).filter(|_| !control::canceled() && !self.gives_up()) else {
                break;
            };
            match self.ask_for_plan(question) {
                Ok(better) => before = std::mem::replace(&mut found, better).into_plan().or(before),
                Err(error) if error.kind == LATE => {
                    log::warn("the model wrote no verification plan in time", &[("reason", &error.message)])
                }
                Err(error) => {
                    log::warn(
                        "the model did not answer the question about the verification plan",
                        &[("reason", &error.message)],
                    );
                    break;
                }
            }
        }
        found.into_plan().or(before)
    }

    /// Asks one question about the plan. The answer does not end the stage, unless the model gives up.
    fn ask_for_plan(&mut self, question: Question) -> Result<PlanInAnswer, Error> {
        log::info("the model is asked for a verification plan", &[("question", &question.text)]);
        let request = &mut self.conversation.request;
        request.messages.push(Message::text("user", question.text));
        request.options = vec![(ANSWER_WITHIN.to_owned(), question.seconds.to_string())];
        let answered = llm::complete(request);
        request.options.clear();
        let message = match answered {
            Ok(response) => response.message,
            Err(error) => {
                request.messages.pop();
                return Err(error);
            }
        };
        let declared = ending::declared(&message).ok().flatten();
        let text = message.whole_text();
        let refused = refused_calls(&message);
        request.messages.push(message);
        request.messages.extend(refused);
        let plan = match declared {
            Some(declared) if declared.gives_up() => {
                self.declared = Some(declared);
                None
            }
            Some(declared) => declared.plan,
            None => None,
        };
        Ok(plan.map_or_else(|| planned::from_answer(&text), PlanInAnswer::Plan))
    }

    fn outcome(&mut self, plan: Option<Value>) -> Outcome {
        let declared = self.declared.take().unwrap_or_default();
        let outcome = declared.into_outcome(StageAnswer { stage: self.stage, response: &self.said });
        planned::hand_on(self.stage, plan, outcome)
    }

    /// Ends the stage without an answer. If a limit was reached and success was declared before, the stage succeeds. In any other case
    /// it fails.
    fn unanswered(&mut self, error: Error) -> Outcome {
        if error.kind != "limit-exceeded" {
            let class = class_of(&error);
            return Outcome::fail(format!("llm/{}", error.kind), error.message).class(class);
        }
        let succeeded = |declared: &Declaration| matches!(declared.status, Status::Success | Status::PartialSuccess);
        match &self.declared {
            Some(declared) if succeeded(declared) => {
                let plan = self.found().into_plan();
                self.outcome(plan)
            }
            _ => Outcome::fail("agent/turn-limit", error.message).class("budget"),
        }
    }
}

/// The result of the host's check of an answer against a schema.
#[derive(Debug, Clone, Copy)]
enum Verdict<'a> {
    /// The answer was not checked: the node has no schema, or the answer calls tools.
    None,
    /// The answer matches.
    Valid,
    /// The answer does not match, for this reason.
    Wrong(&'a str),
}

impl<'a> Verdict<'a> {
    fn from_response(response: &'a Response) -> Self {
        let said = |name: &str| response.extra.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        match (said("output"), said("output-problem")) {
            (_, Some(problem)) => Self::Wrong(problem),
            (Some(_), None) => Self::Valid,
            (None, None) => Self::None,
        }
    }
}

fn calls(message: &Message) -> impl Iterator<Item = &Part> {
    message.parts.iter().filter(|part| part.kind == "tool-call")
}

/// Option that sets a time limit for a request. The answer to such a request does not end the stage.
const ANSWER_WITHIN: &str = "answer-within";
/// Kind of the error if an answer did not arrive in time.
const LATE: &str = "request-timeout";

/// Returns refusals of the tool calls in an answer that must not have any.
fn refused_calls(message: &Message) -> Option<Message> {
    let refused = |call: &Part| {
        let result = Part::new("tool-result", "not executed: answer with the verification plan, without tool calls");
        result.with("call-id", call.field("id").unwrap_or_default()).with("is-error", "true")
    };
    let parts: Vec<Part> = calls(message).map(refused).collect();
    (!parts.is_empty()).then(|| Message { role: "tool".to_owned(), parts })
}

fn class_of(error: &Error) -> &'static str {
    match error.kind.as_str() {
        "canceled" | "abort" => "canceled",
        "not-granted" | "pin-violation" => "scope",
        "context-length" | "quota-exceeded" | "budget-exceeded" => "budget",
        _ if error.retryable => "transient",
        _ => "deterministic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_at_the_class_of_a_model_error() {
        let check = |kind: &str, retryable: bool, class: &str| {
            let error = Error { kind: kind.to_owned(), message: String::new(), retryable };
            assert_eq!(class_of(&error), class);
        };
        check("rate-limit", true, "transient");
        check("script-exhausted", false, "deterministic");
        check("canceled", true, "canceled");
        check("not-granted", false, "scope");
        check("context-length", false, "budget");
    }
}
