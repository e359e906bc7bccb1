//! The model of an attempt under its bounds: turns, money, hold-outs and failures. A component and an agent program use the same.
//!
//! Both reserve money before a request and book it after, have both sides of the conversation searched for hold-outs, and stop at the first
//! final failure.

use super::conversation::{Conversation, ConversationSetting};
use super::convert;
use super::model::{DeclaredOutcome, Model, OUTCOME, TextGuard};
use super::object::ObjectCheck;
use super::repeats::Repeats;
use crate::bindings::llm::Request;
use crate::budget::Account;
use glovebox_models::chat::{Answer, ModelId, Usage};
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_record::session;
use glovebox_record::spend::{Money, Spend};
use glovebox_record::{Failure, FailureCode, LimitName, Refusal, Status, SteeringDelivery, Tokens};

/// Answers in a row with tool calls that cannot be read, after which the stage fails.
const INVALID_CALLS_MAX: u32 = 3;

/// The model of an attempt with its limits: the conversation, its cost, and the failure after which the model is not asked again.
#[derive(Debug, Default)]
pub(crate) struct ModelAccess {
    pub(super) model: Option<Model>,
    /// The conversation.
    pub(crate) conversation: Conversation,
    /// Turns the model answered.
    pub(crate) turns: u32,
    /// Requests of a program that have no answer yet.
    pub(crate) waiting: u32,
    /// Tokens of these turns.
    pub(crate) tokens: Tokens,
    /// Cost of these turns.
    pub(crate) cost: Money,
    /// True if some of both is estimated.
    pub(crate) is_estimated: bool,
    /// The budget failure that stopped the last request.
    pub(crate) overspent: Option<Failure>,
    /// Turns that asked for tools.
    pub(crate) tool_rounds: u32,
    /// True if the last explicitly declared outcome is a success.
    pub(crate) declared_success: bool,
    /// The bound a request was refused for.
    pub(crate) limit_hit: Option<LimitName>,
    /// Why the last request was not answered.
    failed: Option<ModelError>,
    pub(super) repeats: Repeats,
    /// The last answer, held against the schema of the stage.
    pub(super) object: ObjectCheck,
    /// Answers in a row that called a tool with arguments that cannot be read.
    invalid_calls: u32,
    /// The model, as its provider named it in the last answer.
    pub(crate) answered_by: Option<ModelId>,
    /// The side on which a hold-out was found. After that no request is sent.
    pub(crate) leaked: Option<Side>,
}

impl ModelAccess {
    pub(super) fn new(model: Option<Model>, conversation: ConversationSetting) -> Self {
        let conversation = Conversation::new(conversation, model.as_ref().map(Model::provider));
        Self { model, conversation, ..Self::default() }
    }

    /// Returns the delivery of each steering message.
    pub(crate) fn deliveries(&self) -> Vec<SteeringDelivery> {
        self.conversation.deliveries(self.turns)
    }

    /// Returns the last question and its answer, if they are kept and contain no hold-out.
    pub(crate) fn take_messages(&mut self) -> Vec<session::Message> {
        let messages = self.conversation.take_messages();
        if self.leaked.is_some() { Vec::new() } else { messages }
    }

    /// Returns the transcript, unless it contains a hold-out.
    pub(crate) fn take_transcript(&mut self) -> Vec<u8> {
        let transcript = self.conversation.take_transcript();
        if self.leaked.is_some() { Vec::new() } else { transcript }
    }

    /// Returns the failure of the model behind an attempt that failed, or that must fail.
    pub(crate) fn failure_of_model(&self, has_failed: bool) -> Option<Failure> {
        let error = self.failed.as_ref()?;
        let class = match error.kind {
            ErrorKind::NoObjectGenerated => self.object.class(),
            kind => kind.row().class,
        };
        let code = match error.kind {
            ErrorKind::ScriptExhausted => FailureCode::SCRIPT_EXHAUSTED,
            // These two have their own records.
            ErrorKind::Canceled | ErrorKind::LimitExceeded | ErrorKind::BudgetExceeded => return None,
            ErrorKind::QuotaExceeded => FailureCode::PROVIDER_QUOTA,
            ErrorKind::Loop => "agent/loop".into(),
            kind => format!("provider/{kind}").into(),
        };
        (has_failed || is_final(error.kind)).then(|| Failure::new(class, code, error.message.as_str()))
    }

    /// Returns the failure that ends the stage, even if a later request or another agent of the stage gets an answer.
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

    /// Counts the cost of a request and settles its reservation.
    pub(super) fn book(&mut self, paid: Usage, reserved: Option<(Account, Spend)>) {
        self.tokens.add(paid.tokens());
        let Some((account, reserved)) = reserved else { return };
        let cost = account.cost(paid);
        self.cost = Money(self.cost.0.saturating_add(cost.0));
        account.settle(reserved, Spend::new(paid.tokens(), cost));
    }

    /// Counts the cost of answers that an interrupted attempt got and that this attempt did not use.
    pub(crate) fn close(&mut self) {
        let Some(model) = &self.model else { return };
        let (paid, account) = (self.conversation.close(), model.account().cloned());
        self.book(paid, account.zip(Some(Spend::default())));
    }

    /// Adds steering messages to a question of the component.
    pub(super) fn steer(&mut self, request: &mut Request) {
        if self.model.is_some() {
            self.conversation.steer(request, self.turns + 1);
        }
    }

    pub(super) fn note_declared(&mut self, answer: &Answer) {
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

    /// Returns the model.
    pub(crate) fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    /// Reserves the most that a request may cost.
    pub(crate) fn reserve(&mut self, most: Usage) -> Result<Option<Spend>, ModelError> {
        let account = self.model.as_ref().and_then(Model::account);
        account.map(|account| account.reserve(most)).transpose().map_err(|failure| {
            let error = ModelError::new(ErrorKind::BudgetExceeded, &failure.reason);
            self.overspent = Some(failure);
            error
        })
    }

    /// Books the cost of a request.
    pub(crate) fn book_paid(&mut self, paid: Usage, reserved: Option<Spend>) {
        let account = self.model.as_ref().and_then(Model::account).cloned();
        self.book(paid, account.zip(reserved));
    }

    /// Stores an answer, so that its cost is counted even if the attempt is interrupted.
    pub(crate) fn keep_answer(&mut self, sent: &[u8], answer: &Answer, line: &[u8]) {
        self.conversation.store_for_program(sent, answer, line);
    }

    /// Looks at an answer: calls that cannot be read, a model in a circle, a declared outcome.
    pub(crate) fn note_answer(&mut self, answer: &Answer) -> Result<(), ModelError> {
        self.tool_rounds += u32::from(answer.tool_calls().next().is_some());
        self.note_invalid(answer)?;
        self.note_declared(answer);
        self.answered_by.clone_from(&answer.model);
        Ok(())
    }

    /// A model that cannot write arguments would go on for ever.
    pub(super) fn note_invalid(&mut self, answer: &Answer) -> Result<(), ModelError> {
        self.invalid_calls = if convert::has_invalid_call(answer) { self.invalid_calls + 1 } else { 0 };
        if self.invalid_calls < INVALID_CALLS_MAX {
            return Ok(());
        }
        let message =
            format!("the model called tools with unreadable arguments in {INVALID_CALLS_MAX} answers in a row");
        Err(ModelError::new(ErrorKind::InvalidToolCall, message))
    }

    /// Checks texts for hold-outs. The error does not name the place of the match in the hold-outs.
    pub(crate) fn check_leak<'t>(
        &mut self,
        guard: Option<&TextGuard>,
        side: Side,
        texts: impl FnOnce() -> Vec<&'t str>,
        refuse: impl FnOnce(Refusal),
    ) -> Result<(), ModelError> {
        self.check_found(guard, side, |guard| guard.first(texts()), refuse)
    }

    /// As [`check_leak`](Self::check_leak), for a hold-out that the guard has found in any content.
    pub(super) fn check_found(
        &mut self,
        guard: Option<&TextGuard>,
        side: Side,
        find: impl FnOnce(&TextGuard) -> Option<String>,
        refuse: impl FnOnce(Refusal),
    ) -> Result<(), ModelError> {
        let Some(guard) = guard else { return Ok(()) };
        let found = match self.leaked {
            Some(_) => None,
            None => find(guard),
        };
        if let Some(place) = found {
            self.leaked = Some(side);
            refuse(Refusal::new(side.act(), &place, side.leak_reason(), LEAK_HELP));
        }
        match self.leaked {
            Some(side) => Err(ModelError::new(ErrorKind::HoldoutLeak, side.leak_reason())),
            None => Ok(()),
        }
    }
}

/// Returns true for a failure after which the model is not asked again: the stage has failed.
pub(super) fn is_final(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::InvalidToolCall
            | ErrorKind::Loop
            | ErrorKind::NoObjectGenerated
            | ErrorKind::PinViolation
            | ErrorKind::ScriptExhausted
    )
}

const LEAK_HELP: &str =
    "no grant allows it; to show a builder the hold-outs, set `codex.allow_read_scenarios=true` on its node";

/// A side of a conversation with the model.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    /// A question of the guest.
    Prompt,
    /// An answer of the model.
    Response,
    /// A request to a tool server.
    ToolCall,
    /// An answer of a tool server.
    ToolAnswer,
}

impl Side {
    /// Returns the refused action.
    pub(crate) fn act(self) -> &'static str {
        match self {
            Self::Prompt | Self::Response => "tell the model",
            Self::ToolCall | Self::ToolAnswer => "tell the tool server",
        }
    }

    /// Returns the reason of an attempt that ends because of a hold-out in its conversation; quotes nothing.
    pub(crate) fn leak_reason(self) -> &'static str {
        match self {
            Self::Prompt => "holdout_leak: the prompt contains text of a hold-out scenario",
            Self::ToolCall => "holdout_leak: a call of a tool server contains text of a hold-out scenario",
            Self::ToolAnswer => "holdout_leak: an answer of a tool server contains text of a hold-out scenario",
            Self::Response => "holdout_leak: the response contains text of a hold-out scenario",
        }
    }
}
