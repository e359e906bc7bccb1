//! The `llm` interface: asking the model bound to the node.
//!
//! The guest cannot choose a model and cannot go over its turns: the host counts them, and notes whether a success was
//! declared before a bound was reached (decision turn-limit-is-a-failure). What the model said is taken from here, never from the guest.

mod border;
mod hooks;
mod object;
mod program;
mod repeats;
mod steered;

use crate::attempt::Attempt;
use crate::bindings::chat::Message;
use crate::bindings::llm::{Error, Event, Host, HostCompletion, Request, Response};
use crate::budget::Account;
use crate::input::StageInput;
use crate::model::{Asking, DeclaredOutcome, Kept, Model, OUTCOME, Provider, TextGuard, without_bytes};
use crate::progress::Progress;
pub(crate) use border::answered_texts;
use border::{agent, asked_texts, check, request_bytes, response, streamed, told, within};
use glovebox_models::chat::{self, Answer, ModelId};
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_models::image::{checked_images, without_images};
use glovebox_models::patience::Patience;
use glovebox_record::session;
use glovebox_record::spend::{Money, Spend};
use glovebox_record::{Failure, FailureCode, Heard, LimitName, Refusal, Status, Tokens};
pub use hooks::HookSetting;
use hooks::Hooks;
use object::Checked;
pub(crate) use object::levels;
use repeats::{Found, Repeats};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use steered::Steered;
use wasmtime::Result;
use wasmtime::component::Resource;

/// Bytes of a transcript of one attempt from which on the bytes of exchanges are left out.
const EXCHANGED_BYTES_MAX: usize = 12 << 20;
/// Most bytes of it; later turns are not part of it.
const TRANSCRIPT_BYTES_MAX: usize = 16 << 20;
/// Answers in a row with tool calls that cannot be read, after which the stage fails.
const INVALID_CALLS_MAX: u32 = 3;

/// The state of `llm`.
#[derive(Debug, Default)]
pub(crate) struct LlmState {
    /// The model and what was asked of it.
    pub(crate) conversation: Conversation,
    /// The author's commands around the tool calls of the model.
    hooks: Hooks,
}

impl LlmState {
    pub(crate) fn new(model: Option<Model>, hooks: Option<HookSetting>, input: &StageInput) -> Self {
        Self { conversation: Conversation::new(model), hooks: Hooks::new(hooks, &input.run, &input.attempt) }
    }
}

/// A model and what was asked of it in this attempt.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    model: Option<Model>,
    /// Turns the model answered.
    pub(crate) turns: u32,
    /// Requests of a program that have no answer yet.
    pub(crate) waiting: u32,
    /// Tokens of these turns.
    pub(crate) tokens: Tokens,
    /// What these turns cost.
    pub(crate) cost: Money,
    /// True if some of both is estimated.
    pub(crate) is_estimated: bool,
    /// The bound on what a run or its node may spend that a turn would have crossed.
    pub(crate) overspent: Option<Failure>,
    /// Turns that asked for tools.
    pub(crate) tool_rounds: u32,
    /// Whether the last outcome that was declared in so many words is a success.
    pub(crate) declared_success: bool,
    /// The bound a request was refused for.
    pub(crate) limit_hit: Option<LimitName>,
    /// Why the last request was not answered.
    failed: Option<ModelError>,
    repeats: Repeats,
    /// The last answer, held against the schema of the stage.
    checked: Checked,
    /// What people said meanwhile.
    steered: Steered,
    /// Answers in a row that called a tool with arguments that cannot be read.
    invalid_calls: u32,
    /// The model, as its provider named it in the last answer.
    pub(crate) answered_by: Option<ModelId>,
    /// What was said, one line of JSON for each turn.
    transcript: Vec<u8>,
    /// What was found out to contain a hold-out; nothing is asked any more after that.
    pub(crate) leaked: Option<Side>,
    /// The last request and its answer, if they are kept.
    messages: Vec<Message>,
}

/// A streamed answer: events that were not yet fetched.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Completion {
    events: VecDeque<Event>,
    canceled: bool,
}

impl Conversation {
    fn new(model: Option<Model>) -> Self {
        Conversation { model, ..Conversation::default() }
    }

    /// Keeps a request in the place of the one before, with its answer. A request that was refused has none: then its results of tools
    /// are still worth keeping.
    fn keep(&mut self, request: Request, answer: Option<&Response>) {
        if self.model.as_ref().is_some_and(Model::keeps_conversation) {
            self.messages = request.messages;
            self.messages.extend(answer.map(|answer| answer.message.clone()));
        }
    }

    /// What became of each message of a person.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        let all = self.model.as_ref().map(|model| model.steering().all()).unwrap_or_default();
        self.steered.heard(&all, self.turns)
    }

    /// What is kept, in the record's words.
    pub(crate) fn kept(&mut self) -> Vec<session::Message> {
        let messages = std::mem::take(&mut self.messages).into_iter().filter(|_| self.leaked.is_none());
        messages.map(|message| without_images(border::recorded(&message))).collect()
    }

    /// What was said, unless it contains a hold-out.
    pub(crate) fn transcript(&mut self) -> Vec<u8> {
        let transcript = std::mem::take(&mut self.transcript);
        if self.leaked.is_some() { Vec::new() } else { transcript }
    }

    /// The failure of the model behind an attempt that failed, or that must fail.
    pub(crate) fn failure_of_model(&self, has_failed: bool) -> Option<Failure> {
        let error = self.failed.as_ref()?;
        let class = match error.kind {
            ErrorKind::NoObjectGenerated => self.checked.class(),
            kind => kind.row().class,
        };
        let code = match error.kind {
            ErrorKind::ScriptExhausted => FailureCode::SCRIPT_EXHAUSTED,
            // These have records of their own.
            ErrorKind::Canceled | ErrorKind::LimitExceeded | ErrorKind::BudgetExceeded => return None,
            ErrorKind::QuotaExceeded => FailureCode::PROVIDER_QUOTA,
            ErrorKind::Loop => "agent/loop".into(),
            kind => format!("provider/{kind}").into(),
        };
        (has_failed || is_final(error.kind)).then(|| Failure::new(class, code, error.message.as_str()))
    }

    /// The failure that ends the stage, whatever is answered later and whoever of its agents was answered.
    pub(crate) fn final_failure(&self) -> Option<&ModelError> {
        self.failed.as_ref().filter(|error| is_final(error.kind))
    }

    /// Keeps why the model did not answer, until it does. The first failure that ends the stage stays.
    pub(crate) fn fail(&mut self, error: ModelError) {
        if self.final_failure().is_none() {
            self.failed = Some(error);
        }
    }

    /// The model has answered again.
    pub(crate) fn succeed(&mut self) {
        if self.final_failure().is_none() {
            self.failed = None;
        }
    }

    /// Counts what was paid, and settles what was reserved for it.
    fn book(&mut self, paid: chat::Usage, reserved: Option<(Account, Spend)>) {
        self.tokens.add(paid.tokens());
        let Some((account, reserved)) = reserved else { return };
        let cost = account.cost(paid);
        self.cost = Money(self.cost.0.saturating_add(cost.0));
        account.settle(reserved, Spend::of(paid.tokens(), cost));
    }

    /// Counts what a provider was paid for in an attempt that was cut off, and that this one had no use for.
    pub(crate) fn close(&mut self) {
        let Some(model) = &mut self.model else { return };
        let (paid, account) = (model.close(), model.account().cloned());
        self.book(paid, account.zip(Some(Spend::default())));
    }

    /// Adds what people said to a question of the component.
    fn steer(&mut self, request: &mut Request) {
        let Some(model) = &mut self.model else { return };
        let all = model.steering().all();
        let count = self.steered.insert((&all, model.steered_before()), request, self.turns + 1);
        model.is_steered_by(count);
    }

    fn note_declared(&mut self, answer: &Answer) {
        for line in answer.text().lines() {
            match line.trim().strip_prefix("OUTCOME:").map(str::trim) {
                Some("SUCCESS" | "PASS") => self.declared_success = true,
                Some(_) => self.declared_success = false,
                None => {}
            }
        }
        let declared = answer.parts.iter().rfind(|part| part.kind == OUTCOME);
        if let Some(outcome) = declared.and_then(|part| serde_json::from_str::<DeclaredOutcome>(&part.text).ok()) {
            self.declared_success = matches!(outcome.status, Status::Success | Status::PartialSuccess);
        }
    }

    pub(crate) fn keep_line(&mut self, line: Vec<u8>) {
        let is_short = self.transcript.len() + line.len() <= EXCHANGED_BYTES_MAX;
        let line = if is_short { Some(line) } else { without_bytes(&line) };
        let fits = |line: &Vec<u8>| self.transcript.len() + line.len() <= TRANSCRIPT_BYTES_MAX;
        if let Some(line) = line.filter(fits) {
            self.transcript.extend_from_slice(&line);
        }
    }
}

impl Attempt {
    fn ask(&mut self, request: &Request) -> Result<Response, Error> {
        self.call.meter.carried(request_bytes(request));
        let Some(mut model) = self.llm.conversation.model.take() else { return Err(self.model_not_granted()) };
        let asked = self.ask_model(&mut model, request);
        let provider = model.provider();
        self.llm.conversation.model = Some(model);
        match asked {
            Ok(answer) => {
                self.llm.conversation.succeed();
                let mut response = response(answer, provider, request);
                let is_of_stage = agent(request).is_none() && within(request).is_none();
                let checked = self.llm.conversation.checked.told().filter(|_| is_of_stage);
                response.extra.extend(checked);
                self.refuse_unoffered(&response.message);
                Ok(response)
            }
            Err(error) => {
                let answer = told(&error);
                // A stage that can do without an answer does not fail for the want of it.
                if within(request).is_none() || is_final(error.kind) {
                    self.llm.conversation.fail(error);
                }
                Err(answer)
            }
        }
    }

    /// One turn: refused, or paid for, asked and checked.
    fn ask_model(&mut self, model: &mut Model, request: &Request) -> Result<Answer, ModelError> {
        check(request)?;
        if self.call.is_canceled() {
            return Err(ModelError::new(ErrorKind::Canceled, "the run was asked to stop"));
        }
        if let Some(error) = self.llm.conversation.final_failure() {
            return Err(error.clone());
        }
        if u64::from(self.llm.conversation.turns) >= self.call.limits.turns {
            return Err(self.over(LimitName::Turns, within(request)));
        }
        self.check_leak(model, Side::Prompt, || asked_texts(request))?;
        let mut question = border::question(request);
        self.check_images(model, &question)?;
        model.settle(&mut question);
        self.call.report(Progress::ModelTurn(self.llm.conversation.turns + 1));
        let (answer, kept) = self.charged(model, &question)?;
        self.llm.conversation.turns += 1;
        self.check_leak(model, Side::Response, || answered_texts(&answer))?;
        kept.into_iter().for_each(|kept| model.keep(kept));
        if answer.tool_calls().next().is_some() {
            if u64::from(self.llm.conversation.tool_rounds) >= self.call.limits.tool_rounds {
                return Err(self.over(LimitName::ToolRounds, within(request)));
            }
            self.llm.conversation.tool_rounds += 1;
        }
        self.llm.conversation.note_invalid(&answer)?;
        let answer = if model.provider() == Provider::Live { self.note_repeats(answer)? } else { answer };
        let is_own = question.agent.is_none();
        if is_own {
            self.llm.conversation.note_declared(&answer);
        }
        self.llm.conversation.answered_by.clone_from(&answer.model);
        if let Some((schema, _)) = model.schema().filter(|_| is_own && question.within.is_none()) {
            let how = (question.schema.is_some(), self.call.limits.outcome_bytes);
            self.llm.conversation.checked.note(schema, &answer, how)?;
        }
        Ok(answer)
    }

    /// A model in a circle would spend all that it may. Its calls are not made, and then the stage fails.
    fn note_repeats(&mut self, mut answer: Answer) -> Result<Answer, ModelError> {
        match self.llm.conversation.repeats.note(&answer) {
            Found::New => {}
            Found::Warn => border::add_problem(&mut answer, REPEATED),
            Found::Stop => {
                let message = "the model asked for the same tool calls again and again, also after it was told";
                return Err(ModelError::new(ErrorKind::Loop, message));
            }
        }
        Ok(answer)
    }

    /// The next answer. What it may cost is reserved before, and what it did not cost is put back.
    fn charged(
        &mut self,
        model: &mut Model,
        question: &chat::Request,
    ) -> Result<(Answer, Option<Box<Kept>>), ModelError> {
        let account = model.account().cloned();
        let reserved = account.as_ref().map(|account| account.reserve(model.next_usage(question))).transpose();
        let reserved = reserved.map_err(|failure| {
            let error = ModelError::new(ErrorKind::LimitExceeded, &failure.reason);
            self.llm.conversation.overspent = Some(failure).filter(|_| question.within.is_none());
            error
        })?;
        let canceled = std::sync::Arc::clone(&self.call.canceled);
        let left = self.call.remaining();
        let patience = Patience { canceled: &canceled, deadline: Instant::now() + left, idle: left };
        let progress = &self.call.progress;
        // Progress is a hint by contract.
        let mut on_wait = |error: &ModelError, wait| {
            let _ = progress.try_send(Progress::ModelWaits(error.kind.as_str(), wait));
        };
        let turn = model.answer(question, Asking { patience, on_wait: &mut on_wait });
        self.llm.conversation.keep_line(turn.transcript);
        self.llm.conversation.is_estimated |= turn.is_estimated;
        self.llm.conversation.book(turn.paid, account.zip(reserved));
        match turn.answered {
            Ok(answer) => Ok((answer, turn.kept)),
            // A question that was too long: an attempt that is made again is told so at once.
            Err(error) => {
                turn.kept.into_iter().for_each(|kept| model.keep(kept));
                Err(error)
            }
        }
    }

    /// One request, with the hooks of the calls that it answers and of those in its answer.
    fn exchange(&mut self, mut request: Request) -> Result<Result<Response, Error>> {
        let agent = agent(&request);
        self.after_calls(&request, agent.as_ref())?;
        if agent.is_none() {
            self.llm.conversation.steer(&mut request);
        }
        let mut answered = self.ask(&request);
        if let Ok(response) = &mut answered {
            self.before_calls(&mut response.message, agent.clone())?;
        }
        if agent.is_none() && (answered.is_ok() || within(&request).is_none()) {
            self.llm.conversation.keep(request, answered.as_ref().ok());
        }
        Ok(answered)
    }

    /// Lets no hold-out pass, in either direction.
    fn check_leak<'t>(
        &mut self,
        model: &Model,
        side: Side,
        texts: impl FnOnce() -> Vec<&'t str>,
    ) -> Result<(), ModelError> {
        let refusals = std::sync::Arc::clone(&self.call.refusals);
        self.llm.conversation.check_leak((model.guard(), side), texts, |refusal| refusals.record(refusal))
    }

    /// Lets no image pass that is not what it says, that the model does not take, or that is a hold-out.
    fn check_images(&mut self, model: &Model, question: &chat::Request) -> Result<(), ModelError> {
        let invalid = |problem: String| ModelError::new(ErrorKind::InvalidRequest, problem);
        let images = checked_images(&question.messages).map_err(invalid)?;
        if !images.is_empty() && !model.takes_images() {
            return Err(invalid(
                "the model takes no images; `images = true` in its table would say that it does".to_owned(),
            ));
        }
        let refusals = std::sync::Arc::clone(&self.call.refusals);
        let find = |guard: &TextGuard| guard.first_of_bytes(&images);
        self.llm.conversation.check_found((model.guard(), Side::Prompt), find, |refusal| refusals.record(refusal))
    }

    /// The same for what goes to a tool server or comes from it; true once a hold-out was found anywhere.
    pub(crate) fn has_leaked(&mut self, side: Side, texts: Vec<&str>) -> bool {
        let guard = self.llm.conversation.model.as_ref().and_then(Model::guard).cloned();
        let refusals = std::sync::Arc::clone(&self.call.refusals);
        self.llm.conversation.check_leak((guard.as_ref(), side), || texts, |refusal| refusals.record(refusal)).is_err()
    }

    fn model_not_granted(&self) -> Error {
        let help = "set `grants = { model = true }` in `glovebox.toml`, and `model` in the plugin's `wants`";
        self.call.refuse(Refusal::new("ask the model", "", "the stage may not ask a model", help));
        let message = "the stage may not ask a model; `grants = { model = true }` would allow it";
        told(&ModelError::new(ErrorKind::NotGranted, message))
    }

    /// The error of a question beyond a limit. The stage ran into the limit, unless it could do without the answer.
    fn over(&mut self, name: LimitName, within: Option<Duration>) -> ModelError {
        if within.is_none() {
            self.llm.conversation.limit_hit.get_or_insert(name);
        }
        let message = format!("limit `{name}` ({}) reached", self.call.limits.get(name));
        ModelError::new(ErrorKind::LimitExceeded, message)
    }
}

impl crate::bindings::chat::Host for Attempt {}

impl Host for Attempt {
    fn info(&mut self) -> Result<Vec<(String, String)>> {
        Ok(self.llm.conversation.model.as_ref().map(Model::info).unwrap_or_default())
    }

    fn complete(&mut self, request: Request) -> Result<Result<Response, Error>> {
        self.exchange(request)
    }

    fn start(&mut self, request: Request) -> Result<Result<Resource<Completion>, Error>> {
        match self.exchange(request)? {
            Ok(response) => Ok(Ok(self.wasi.table.push(Completion { events: streamed(response), canceled: false })?)),
            Err(error) => Ok(Err(error)),
        }
    }
}

impl HostCompletion for Attempt {
    fn next(&mut self, this: Resource<Completion>, max: u32, _wait_ms: u32) -> Result<Result<Vec<Event>, Error>> {
        let completion = self.wasi.table.get_mut(&this)?;
        if completion.canceled {
            return Ok(Err(told(&ModelError::new(ErrorKind::Canceled, "the completion was canceled"))));
        }
        if completion.events.is_empty() {
            return Ok(Err(told(&ModelError::new(ErrorKind::InvalidRequest, "the completion has already finished"))));
        }
        let count = usize::try_from(max).unwrap_or(usize::MAX).min(completion.events.len());
        Ok(Ok(completion.events.drain(..count).collect()))
    }

    fn cancel(&mut self, this: Resource<Completion>) -> Result<()> {
        let completion = self.wasi.table.get_mut(&this)?;
        completion.events.clear();
        completion.canceled = true;
        Ok(())
    }

    fn drop(&mut self, this: Resource<Completion>) -> Result<()> {
        self.wasi.table.delete(this)?;
        Ok(())
    }
}

/// True for a failure after which the model is not asked again: the stage has failed.
fn is_final(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::InvalidToolCall
            | ErrorKind::Loop
            | ErrorKind::NoObjectGenerated
            | ErrorKind::PinViolation
            | ErrorKind::ScriptExhausted
    )
}

/// What a model in a circle is told in the place of a tool's answer.
const REPEATED: &str = "this call was not made: the last calls repeat themselves. The answer would be the same as before. Try another way, or \
    end the stage and say what is in the way";

const LEAK_HELP: &str =
    "no grant allows it; to show a builder the hold-outs, set `codex.allow_read_scenarios=true` on its node";

/// A side of a conversation with the model.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    /// What the guest asks.
    Prompt,
    /// What the model answers.
    Response,
    /// What a tool server is asked.
    ToolCall,
    /// What a tool server answers.
    ToolAnswer,
}

impl Side {
    /// What was refused.
    pub(crate) fn act(self) -> &'static str {
        match self {
            Self::Prompt | Self::Response => "tell the model",
            Self::ToolCall | Self::ToolAnswer => "tell the tool server",
        }
    }

    /// Why an attempt ends whose conversation contained a hold-out; quotes nothing.
    pub(crate) fn leak_reason(self) -> &'static str {
        match self {
            Self::Prompt => "holdout_leak: the prompt contains text of a hold-out scenario",
            Self::ToolCall => "holdout_leak: a call of a tool server contains text of a hold-out scenario",
            Self::ToolAnswer => "holdout_leak: an answer of a tool server contains text of a hold-out scenario",
            Self::Response => "holdout_leak: the response contains text of a hold-out scenario",
        }
    }
}
