//! The `llm` interface: requests to the model that is bound to the node.
//!
//! The guest cannot choose a model and cannot use more turns than its limit. The host counts the turns, and records whether a success was declared
//! before a limit was reached (decision turn-limit-is-a-failure). The host records the model's answers here and never takes them from
//! the guest.

mod access;
mod conversation;
mod convert;
mod hooks;
mod model;
mod object;
mod observer;
mod policy;
mod repeats;
mod steering;

pub(crate) use access::{ModelAccess, Side};
pub use conversation::{ConversationSetting, ExchangeKeeper, ExchangeLog};
pub(crate) use conversation::{NewMessages, ProviderExchange};
pub(crate) use convert::answered_texts;
pub use hooks::HookSetting;
pub use model::{
    DeclaredOutcome, Live, Model, Provider, Script, ScriptError, TEST_PREFIX, TestAnswers, TestAttributeError,
    TextGuard, is_of_another_model,
};
pub(crate) use object::levels;
pub use observer::LiveAnswer;
pub(crate) use observer::ShownAnswer;
pub use policy::PolicySetting;
pub use steering::Steering;

use crate::attempt::Attempt;
use crate::bindings::llm::{Error, Event, Host, HostCompletion, Request, Response};
use crate::input::StageInput;
use crate::judgement::Denial;
use crate::progress::Progress;
use access::is_final;
use conversation::{StoredExchange, Turn};
use convert::{agent, asked_texts, check, guest_error, request_bytes, response, streamed, within};
use glovebox_models::ask::AskStep;
use glovebox_models::chat::{self, Answer};
use glovebox_models::deadline::CallDeadline;
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_models::image::checked_images;
use glovebox_record::{LimitName, Refusal};
use hooks::Hooks;
use model::AskOptions;
use observer::ModelObserver;
use policy::CallPolicy;
use repeats::RepeatAction;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::Result;
use wasmtime::component::Resource;

/// The state of `llm`.
#[derive(Debug, Default)]
pub(crate) struct LlmState {
    /// The model, its bounds and its conversation.
    pub(crate) access: ModelAccess,
    /// The pipeline author's commands before and after the tool calls of the model.
    hooks: Hooks,
    /// The operator's policies over the tool calls of the model. `None` if there are none.
    policy: Option<Arc<CallPolicy>>,
    /// Why a policy could not judge a call. The attempt then fails.
    pub(crate) policy_fault: Option<Denial>,
}

impl LlmState {
    pub(crate) fn new(
        model: Option<Model>,
        conversation: ConversationSetting,
        hooks: Option<HookSetting>,
        policy: Option<PolicySetting>,
        input: &StageInput,
    ) -> Self {
        let access = ModelAccess::new(model, conversation);
        let policy = policy.map(|setting| Arc::new(CallPolicy::new(setting, input)));
        Self { access, hooks: Hooks::new(hooks, &input.run, &input.attempt), policy, policy_fault: None }
    }
}

/// A streamed answer: the events that the guest has not fetched yet.
#[derive(Debug)]
pub struct Completion {
    events: VecDeque<Event>,
    canceled: bool,
}

impl Attempt {
    fn ask(&mut self, request: &Request) -> Result<Response, Error> {
        self.call.meter.record_bytes(request_bytes(request));
        let Some(mut model) = self.llm.access.model.take() else { return Err(self.model_not_granted()) };
        let asked = self.ask_model(&mut model, request);
        let provider = model.provider();
        self.llm.access.model = Some(model);
        match asked {
            Ok(answer) => {
                self.llm.access.succeed();
                let mut response = response(answer, provider, request);
                let is_of_stage = agent(request).is_none() && within(request).is_none();
                let checked = self.llm.access.object.field().filter(|_| is_of_stage);
                response.extra.extend(checked);
                self.refuse_unoffered(&response.message);
                Ok(response)
            }
            Err(error) => {
                let answer = guest_error(&error);
                // A failed optional request (`answer-within`) does not fail the stage.
                if within(request).is_none() || is_final(error.kind) {
                    self.llm.access.fail(error);
                }
                Err(answer)
            }
        }
    }

    /// Executes one turn: checks the request, reserves its cost, asks the model and checks the answer.
    fn ask_model(&mut self, model: &mut Model, request: &Request) -> Result<Answer, ModelError> {
        check(request)?;
        if self.call.is_canceled() {
            return Err(ModelError::new(ErrorKind::Canceled, "the run was asked to stop"));
        }
        if let Some(error) = self.llm.access.final_failure() {
            return Err(error.clone());
        }
        if u64::from(self.llm.access.turns) >= self.call.limits.turns {
            return Err(self.over(LimitName::Turns, within(request)));
        }
        self.check_leak(model, Side::Prompt, || asked_texts(request))?;
        let mut question = convert::question(request);
        self.check_images(model, &question)?;
        model.settle(&mut question);
        // A simulated answer and one of `test.*` attributes come from no model.
        if matches!(model.provider(), Provider::Live | Provider::Scripted) {
            self.call.report(Progress::ModelTurn(self.llm.access.turns + 1));
        }
        let (answer, exchange) = self.charged(model, &question)?;
        self.llm.access.turns += 1;
        self.check_leak(model, Side::Response, || answered_texts(&answer))?;
        exchange.into_iter().for_each(|exchange| self.llm.access.conversation.store(exchange));
        if answer.tool_calls().next().is_some() {
            if u64::from(self.llm.access.tool_rounds) >= self.call.limits.tool_rounds {
                return Err(self.over(LimitName::ToolRounds, within(request)));
            }
            self.llm.access.tool_rounds += 1;
        }
        self.llm.access.note_invalid(&answer)?;
        let answer = if model.provider() == Provider::Live { self.note_repeats(answer)? } else { answer };
        let is_own = question.agent.is_none();
        if is_own {
            self.llm.access.note_declared(&answer);
        }
        self.llm.access.answered_by.clone_from(&answer.model);
        if let Some((schema, _)) = model.schema().filter(|_| is_own && question.within.is_none()) {
            let bytes_max = self.call.limits.outcome_bytes;
            self.llm.access.object.note(schema, &answer, question.schema.is_some(), bytes_max)?;
        }
        Ok(answer)
    }

    /// Detects a model that repeats the same tool calls and would spend its whole budget. First its calls are not executed; if it
    /// continues, the stage fails.
    fn note_repeats(&mut self, mut answer: Answer) -> Result<Answer, ModelError> {
        match self.llm.access.repeats.note(&answer) {
            RepeatAction::New => {}
            RepeatAction::Warn => convert::add_problem(&mut answer, REPEATED),
            RepeatAction::Stop => {
                let message = "the model asked for the same tool calls again and again, even after a warning";
                return Err(ModelError::new(ErrorKind::Loop, message));
            }
        }
        Ok(answer)
    }

    /// Asks for the next answer. Reserves the maximum cost before the request, and releases the difference afterwards.
    fn charged(
        &mut self,
        model: &mut Model,
        question: &chat::Request,
    ) -> Result<(Answer, Option<Box<StoredExchange>>), ModelError> {
        let account = model.account().cloned();
        let reserved = account.as_ref().map(|account| account.reserve(model.next_usage(question))).transpose();
        let reserved = reserved.map_err(|failure| {
            let error = ModelError::new(ErrorKind::LimitExceeded, &failure.reason);
            self.llm.access.overspent = Some(failure).filter(|_| question.within.is_none());
            error
        })?;
        let canceled = Arc::clone(&self.call.canceled);
        let left = self.call.remaining();
        let deadline = CallDeadline { canceled: &canceled, at: Instant::now() + left, idle: left };
        let mut observer = ModelObserver::new(&self.call.observer, model.watcher());
        let mut on_step = |step: AskStep<'_>| observer.observe(&step);
        let options = AskOptions { deadline, on_step: &mut on_step };
        let access = &mut self.llm.access;
        let Turn { answered, paid, is_estimated, line, exchange } = access.conversation.turn(model, question, options);
        // An unfinished answer is taken back before the finished one is stored, so that nobody sees both.
        drop(observer);
        access.conversation.add_line(line);
        access.is_estimated |= is_estimated;
        access.book(paid, account.zip(reserved));
        match answered {
            Ok(answer) => Ok((answer, exchange)),
            // If a repeated attempt must get the same error without a request, the error is stored: for example, the request was too long.
            Err(error) => {
                exchange.into_iter().for_each(|exchange| access.conversation.store(exchange));
                Err(error)
            }
        }
    }

    /// Executes one request. Runs the post hooks of the calls whose results it contains, and judges the calls in the answer: first by the
    /// policies, then by the pre hooks.
    fn exchange(&mut self, mut request: Request) -> Result<Result<Response, Error>> {
        let agent = agent(&request);
        self.after_calls(&request, agent.as_ref())?;
        if agent.is_none() {
            self.llm.access.steer(&mut request);
        }
        let mut answered = self.ask(&request);
        if let Ok(response) = &mut answered {
            self.judge_calls(&mut response.message)?;
            self.before_calls(&mut response.message, agent.clone())?;
        }
        if agent.is_none() && (answered.is_ok() || within(&request).is_none()) {
            let answer = answered.as_ref().ok().map(|response| &response.message);
            self.llm.access.conversation.keep_messages(request.messages, answer);
        }
        Ok(answered)
    }

    /// Checks texts of a conversation for hold-outs.
    fn check_leak<'t>(
        &mut self,
        model: &Model,
        side: Side,
        texts: impl FnOnce() -> Vec<&'t str>,
    ) -> Result<(), ModelError> {
        let refusals = Arc::clone(&self.call.refusals);
        self.llm.access.check_leak(model.guard(), side, texts, |refusal| refusals.record(refusal))
    }

    /// Checks the images of a request: each must have its declared type, be accepted by the model, and contain no hold-out.
    fn check_images(&mut self, model: &Model, question: &chat::Request) -> Result<(), ModelError> {
        let invalid = |problem: String| ModelError::new(ErrorKind::InvalidRequest, problem);
        let images = checked_images(&question.messages).map_err(invalid)?;
        if !images.is_empty() && !model.takes_images() {
            return Err(invalid(
                "the model takes no images; if it does, set `images = true` in its table under `[models]` in glovebox.toml".to_owned(),
            ));
        }
        let refusals = Arc::clone(&self.call.refusals);
        let find = |guard: &TextGuard| guard.first_of_bytes(&images);
        self.llm.access.check_found(model.guard(), Side::Prompt, find, |refusal| refusals.record(refusal))
    }

    /// As [`check_leak`](Self::check_leak), but for a tool server's requests and answers. Returns true if a hold-out was found, now or
    /// earlier.
    pub(crate) fn has_leaked(&mut self, side: Side, texts: Vec<&str>) -> bool {
        let guard = self.llm.access.model.as_ref().and_then(Model::guard).cloned();
        let refusals = Arc::clone(&self.call.refusals);
        self.llm.access.check_leak(guard.as_ref(), side, || texts, |refusal| refusals.record(refusal)).is_err()
    }

    fn model_not_granted(&self) -> Error {
        let help = "set `grants = { model = true }` in `glovebox.toml`, and `model` in the plugin's `wants`";
        self.call.refuse(Refusal::new("ask the model", "", "the stage may not ask a model", help));
        let message = "the stage may not ask a model; `grants = { model = true }` would allow it";
        guest_error(&ModelError::new(ErrorKind::NotGranted, message))
    }

    /// Returns the error of a request that exceeds a limit. Also records that the stage reached the limit, unless the
    /// request was optional.
    fn over(&mut self, name: LimitName, within: Option<Duration>) -> ModelError {
        if within.is_none() {
            self.llm.access.limit_hit.get_or_insert(name);
        }
        let message = format!("limit `{name}` ({}) reached", self.call.limits.get(name));
        ModelError::new(ErrorKind::LimitExceeded, message)
    }
}

impl crate::bindings::chat::Host for Attempt {}

impl Host for Attempt {
    fn info(&mut self) -> Result<Vec<(String, String)>> {
        self.call.observer.called("llm.info", |call| call);
        Ok(self.llm.access.model.as_ref().map(Model::info).unwrap_or_default())
    }

    fn complete(&mut self, request: Request) -> Result<Result<Response, Error>> {
        self.call.observer.called("llm.complete", |call| call.record(&request));
        self.exchange(request)
    }

    fn start(&mut self, request: Request) -> Result<Result<Resource<Completion>, Error>> {
        self.call.observer.called("llm.start", |call| call.record(&request));
        match self.exchange(request)? {
            Ok(response) => Ok(Ok(self.wasi.table.push(Completion { events: streamed(response), canceled: false })?)),
            Err(error) => Ok(Err(error)),
        }
    }
}

impl HostCompletion for Attempt {
    fn next(&mut self, this: Resource<Completion>, max: u32, _wait_ms: u32) -> Result<Result<Vec<Event>, Error>> {
        self.call.observer.called("llm.next", |call| call.number(u64::from(max)));
        let completion = self.wasi.table.get_mut(&this)?;
        if completion.canceled {
            return Ok(Err(guest_error(&ModelError::new(ErrorKind::Canceled, "the completion was canceled"))));
        }
        if completion.events.is_empty() {
            return Ok(Err(guest_error(&ModelError::new(
                ErrorKind::InvalidRequest,
                "the completion has already finished",
            ))));
        }
        let count = usize::try_from(max).unwrap_or(usize::MAX).min(completion.events.len());
        Ok(Ok(completion.events.drain(..count).collect()))
    }

    fn cancel(&mut self, this: Resource<Completion>) -> Result<()> {
        self.call.observer.called("llm.cancel", |call| call);
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

/// The result of a repeated tool call that was not executed, for the model.
const REPEATED: &str = "this call was not made: the last calls repeat themselves. The answer would be the same as before. Try another \
    approach, or end the stage and say what prevents progress";
