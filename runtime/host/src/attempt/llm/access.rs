//! Access to the model of an attempt within its bounds: turns, money, hold-outs and failures. Components and agent programs both use it.
//!
//! The access reserves money before each request and settles it afterwards. Both directions of the conversation are searched for
//! hold-outs. After the first final failure, the model is not asked again.

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
use jiff::Timestamp;

/// Number of successive answers with unreadable tool calls after which the stage fails.
const INVALID_CALLS_MAX: u32 = 3;

/// The model of an attempt and its limits: the conversation, the cost, and the failure after which the model is not asked again.
#[derive(Debug, Default)]
pub(crate) struct ModelAccess {
    pub(super) model: Option<Model>,
    /// The conversation.
    pub(crate) conversation: Conversation,
    /// Number of turns that the model has answered.
    pub(crate) turns: u32,
    /// Number of an agent program's requests that have no answer yet.
    pub(crate) waiting: u32,
    /// Tokens of the answered turns.
    pub(crate) tokens: Tokens,
    /// Cost of the answered turns.
    pub(crate) cost: Money,
    /// True if tokens or cost are partly estimated.
    pub(crate) is_estimated: bool,
    /// The budget failure that stopped the last request.
    pub(crate) overspent: Option<Failure>,
    /// Number of turns whose answers called tools.
    pub(crate) tool_rounds: u32,
    /// True if the last declared outcome is a success.
    pub(crate) declared_success: bool,
    /// The limit because of which a request was refused.
    pub(crate) limit_hit: Option<LimitName>,
    /// Why the last request has no answer.
    failed: Option<ModelError>,
    pub(super) repeats: Repeats,
    /// The last final answer, checked against the schema of the stage.
    pub(super) object: ObjectCheck,
    /// Number of successive answers with unreadable arguments of a tool call.
    invalid_calls: u32,
    /// The model that answered last, as its provider names it.
    pub(crate) answered_by: Option<ModelId>,
    /// The side on which a hold-out was found. No request is sent after that.
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

    /// Returns the last request and its answer, if they are kept and contain no hold-out.
    pub(crate) fn take_messages(&mut self) -> Vec<session::Message> {
        let messages = self.conversation.take_messages();
        if self.leaked.is_some() { Vec::new() } else { messages }
    }

    /// Returns the transcript, unless it contains a hold-out.
    pub(crate) fn take_transcript(&mut self) -> Vec<u8> {
        let transcript = self.conversation.take_transcript();
        if self.leaked.is_some() { Vec::new() } else { transcript }
    }

    /// Returns the failure of the model if the attempt has failed, or if the failure must fail the attempt.
    pub(crate) fn failure_of_model(&self, has_failed: bool) -> Option<Failure> {
        let error = self.failed.as_ref()?;
        let class = match error.kind {
            ErrorKind::NoObjectGenerated => self.object.class(),
            kind => kind.row().class,
        };
        let code = match error.kind {
            ErrorKind::ScriptExhausted => FailureCode::SCRIPT_EXHAUSTED,
            // These errors are recorded elsewhere.
            ErrorKind::Canceled | ErrorKind::LimitExceeded | ErrorKind::BudgetExceeded => return None,
            ErrorKind::QuotaExceeded => FailureCode::PROVIDER_QUOTA,
            ErrorKind::Loop => "agent/loop".into(),
            kind => format!("provider/{kind}").into(),
        };
        (has_failed || is_final(error.kind)).then(|| Failure::new(class, code, error.message.as_str()))
    }

    /// Returns the time at which the provider's quota resumes. `None` if the last request did not fail because of a quota,
    /// or if the provider named no time.
    pub(crate) fn resume_at(&self) -> Option<Timestamp> {
        self.failed.as_ref().filter(|error| error.kind == ErrorKind::QuotaExceeded)?.resume_at
    }

    /// Returns the failure that ends the stage, even if a later request or another agent of the stage gets an answer.
    pub(crate) fn final_failure(&self) -> Option<&ModelError> {
        self.failed.as_ref().filter(|error| is_final(error.kind))
    }

    /// Keeps the error of the last request until the model answers again. The first error that fails the stage is never replaced.
    pub(crate) fn fail(&mut self, error: ModelError) {
        if self.final_failure().is_none() {
            self.failed = Some(error);
        }
    }

    /// Clears the error of the last request, because the model has answered again.
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

    /// Counts the cost of stored answers of an interrupted attempt that this attempt did not use.
    pub(crate) fn close(&mut self) {
        let Some(model) = &self.model else { return };
        let (paid, account) = (self.conversation.close(), model.account().cloned());
        self.book(paid, account.zip(Some(Spend::default())));
    }

    /// Adds steering messages to a request of the component.
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

    /// Reserves the maximum cost of a request.
    pub(crate) fn reserve(&mut self, most: Usage) -> Result<Option<Spend>, ModelError> {
        let account = self.model.as_ref().and_then(Model::account);
        account.map(|account| account.reserve(most)).transpose().map_err(|failure| {
            let error = ModelError::new(ErrorKind::BudgetExceeded, &failure.reason);
            self.overspent = Some(failure);
            error
        })
    }

    /// Settles the cost of a request.
    pub(crate) fn book_paid(&mut self, paid: Usage, reserved: Option<Spend>) {
        let account = self.model.as_ref().and_then(Model::account).cloned();
        self.book(paid, account.zip(reserved));
    }

    /// Stores an answer, so that its cost is counted even if the attempt is interrupted.
    pub(crate) fn keep_answer(&mut self, sent: &[u8], answer: &Answer, line: &[u8]) {
        self.conversation.store_for_program(sent, answer, line);
    }

    /// Updates the state after an answer to an agent program: tool calls, unreadable arguments and a declared outcome.
    pub(crate) fn note_answer(&mut self, answer: &Answer) -> Result<(), ModelError> {
        self.tool_rounds += u32::from(answer.tool_calls().next().is_some());
        self.note_invalid(answer)?;
        self.note_declared(answer);
        self.answered_by.clone_from(&answer.model);
        Ok(())
    }

    /// Counts successive answers with unreadable arguments. Without this limit, a model that cannot write arguments
    /// would never end.
    pub(super) fn note_invalid(&mut self, answer: &Answer) -> Result<(), ModelError> {
        self.invalid_calls = if convert::has_invalid_call(answer) { self.invalid_calls + 1 } else { 0 };
        if self.invalid_calls < INVALID_CALLS_MAX {
            return Ok(());
        }
        let message =
            format!("the model called tools with unreadable arguments in {INVALID_CALLS_MAX} answers in a row");
        Err(ModelError::new(ErrorKind::InvalidToolCall, message))
    }

    /// Checks texts for hold-outs. The error does not say which part of a hold-out was found.
    pub(crate) fn check_leak<'t>(
        &mut self,
        guard: Option<&TextGuard>,
        side: Side,
        texts: impl FnOnce() -> Vec<&'t str>,
        refuse: impl FnOnce(Refusal),
    ) -> Result<(), ModelError> {
        self.check_found(guard, side, |guard| guard.first(texts()), refuse)
    }

    /// As [`check_leak`](Self::check_leak), for content of any kind: `find` returns the place of the hold-out.
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

/// Returns true for a failure that fails the stage. The model is not asked again after it.
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

/// A direction of a conversation with a model, a tool server or a tool provider.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    /// A request of the guest to the model.
    Prompt,
    /// An answer of the model.
    Response,
    /// A request to a tool server or a tool provider.
    ToolCall,
    /// An answer of a tool server or a tool provider.
    ToolAnswer,
}

impl Side {
    /// Returns the action that is refused after a leak.
    pub(crate) fn act(self) -> &'static str {
        match self {
            Self::Prompt | Self::Response => "exchange with the model",
            Self::ToolCall | Self::ToolAnswer => "exchange with the tool server or plugin",
        }
    }

    /// Returns why the attempt ends after a hold-out was found. The text does not quote the hold-out.
    pub(crate) fn leak_reason(self) -> &'static str {
        match self {
            Self::Prompt => "holdout_leak: the prompt contains text of a hold-out scenario",
            Self::ToolCall => "holdout_leak: a call of a tool server or plugin contains text of a hold-out scenario",
            Self::ToolAnswer => {
                "holdout_leak: an answer of a tool server or plugin contains text of a hold-out scenario"
            }
            Self::Response => "holdout_leak: the response contains text of a hold-out scenario",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conversation::ExchangeLog;
    use super::super::model::Provider;
    use super::super::steering::Steering;
    use super::*;
    use crate::budget::{Budget, SpendingLimit};
    use cap_std::ambient_authority;
    use cap_std::fs::{Dir, OpenOptions};
    use glovebox_models::chat::{call_part, text_part};
    use glovebox_record::session::MessagePart;
    use glovebox_record::spend::SpendBounds;
    use glovebox_record::{FailureClass, SteeringMessage};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    const FINAL: [ErrorKind; 5] = [
        ErrorKind::InvalidToolCall,
        ErrorKind::Loop,
        ErrorKind::NoObjectGenerated,
        ErrorKind::PinViolation,
        ErrorKind::ScriptExhausted,
    ];

    fn error(kind: ErrorKind) -> ModelError {
        ModelError::new(kind, kind)
    }

    fn answer(parts: Vec<MessagePart>) -> Answer {
        Answer { parts, ..Answer::default() }
    }

    #[test]
    fn a_final_failure_stays_and_any_other_ends_with_the_next_answer() {
        for kind in FINAL {
            let mut access = ModelAccess::default();
            access.fail(error(ErrorKind::Server));
            assert!(access.final_failure().is_none() && access.failure_of_model(false).is_none());
            assert_eq!(access.failure_of_model(true).unwrap().code.as_str(), "provider/server");
            access.succeed();
            assert!(access.failure_of_model(true).is_none(), "the model has answered again");
            access.fail(error(kind));
            access.fail(error(ErrorKind::Server));
            access.succeed();
            assert_eq!(access.final_failure().map(|error| error.kind), Some(kind));
            assert!(access.failure_of_model(false).is_some_and(|failure| failure.reason == kind.to_string()));
        }
    }

    #[test]
    fn codes_name_the_kind_and_what_is_recorded_elsewhere_has_none() {
        for (kind, expected) in [
            (ErrorKind::ScriptExhausted, Some(("script/exhausted", kind_class(ErrorKind::ScriptExhausted)))),
            (ErrorKind::QuotaExceeded, Some(("provider/quota-exceeded", FailureClass::Budget))),
            (ErrorKind::Loop, Some(("agent/loop", FailureClass::Deterministic))),
            (ErrorKind::Network, Some(("provider/network", FailureClass::Transient))),
            (ErrorKind::NoObjectGenerated, Some(("provider/no-object-generated", FailureClass::Contract))),
            (ErrorKind::Canceled, None),
            (ErrorKind::LimitExceeded, None),
            (ErrorKind::BudgetExceeded, None),
        ] {
            let mut access = ModelAccess::default();
            access.fail(error(kind));
            let failure = access.failure_of_model(true);
            assert_eq!(failure.as_ref().map(|failure| (failure.code.as_str(), failure.class)), expected, "{kind}");
        }
    }

    fn kind_class(kind: ErrorKind) -> FailureClass {
        kind.row().class
    }

    #[test]
    fn what_was_paid_is_counted_and_settled() {
        let budget = Arc::new(Budget::new(None, SpendingLimit::default(), BTreeMap::new()));
        let account = budget.account(&"n".into());
        let usage = |input: u64, cost: u64| Usage { input, output: 1, cost_usd: Some(Money(cost)), ..Usage::default() };
        let mut access = ModelAccess::default();
        for (most, paid) in [(usage(99, 99), usage(10, 7)), (usage(50, 50), usage(20, 5))] {
            let reserved = account.reserve(most).unwrap();
            access.book(paid, Some((account.clone(), reserved)));
        }
        assert_eq!((access.tokens, access.cost), (Tokens { input: 30, output: 2 }, Money(12)));
        assert_eq!(budget.spent_by_run(), Spend { tokens: 32, cost: Money(12) });
        access.book(usage(1, 1), None);
        assert_eq!((access.tokens.input, access.cost), (31, Money(12)), "without an account only tokens are counted");
    }

    #[test]
    fn three_unreadable_answers_in_a_row_are_too_many() {
        let (bad, good) = (answer(vec![call_part("1", "glob", "{")]), answer(vec![call_part("1", "glob", "{}")]));
        let mut access = ModelAccess::default();
        for answer in [&bad, &bad, &good, &bad, &bad] {
            access.note_answer(answer).unwrap();
        }
        assert_eq!(access.note_answer(&bad).unwrap_err().kind, ErrorKind::InvalidToolCall);
        access.note_answer(&answer(vec![text_part("done")])).unwrap();
        assert_eq!(access.tool_rounds, 6, "an answer without a tool call is no round");
    }

    #[test]
    fn the_last_declared_outcome_counts() {
        let declared = |text: &str| MessagePart { kind: OUTCOME.to_owned(), text: text.to_owned(), fields: Vec::new() };
        let mut access = ModelAccess::default();
        for (part, expected) in [
            (text_part("OUTCOME: SUCCESS"), true),
            (text_part("no word of it"), true),
            (text_part("x\n OUTCOME:FAIL \ny"), false),
            (text_part("OUTCOME:PASS"), true),
            (declared(r#"{"status":"fail"}"#), false),
            (declared(r#"{"status":"partial_success"}"#), true),
            (declared(r#"{"status":"retry"}"#), false),
            (declared(r#"{"status":"success"}"#), true),
            (declared("torn"), true),
        ] {
            let said = format!("{part:?}");
            access.note_answer(&answer(vec![part])).unwrap();
            assert_eq!(access.declared_success, expected, "{said}");
        }
    }

    #[test]
    fn after_a_leak_nothing_is_sent_and_nothing_is_kept() {
        let guard = TextGuard::new(|text| text.contains("secret").then(|| "a.txt:1".to_owned()));
        for (side, action) in [
            (Side::Prompt, "exchange with the model"),
            (Side::Response, "exchange with the model"),
            (Side::ToolCall, "exchange with the tool server or plugin"),
            (Side::ToolAnswer, "exchange with the tool server or plugin"),
        ] {
            let (mut access, mut refused) = (ModelAccess::default(), Vec::new());
            access.check_leak(None, side, || vec!["secret"], |_| unreachable!("without hold-outs")).unwrap();
            access.check_leak(Some(&guard), side, || vec!["fine"], |_| unreachable!("no leak")).unwrap();
            for (now, text) in [(side, "a secret"), (Side::Prompt, "fine"), (Side::Prompt, "a secret")] {
                let error = access.check_leak(Some(&guard), now, || vec![text], |one| refused.push(one)).unwrap_err();
                assert_eq!((error.kind, error.message.as_str()), (ErrorKind::HoldoutLeak, side.leak_reason()));
            }
            let listed: Vec<_> = refused.iter().map(|one| (one.operation.as_str(), one.path.as_str())).collect();
            assert_eq!(listed, [(action, "a.txt:1")], "a leak is listed once");
            assert!(side.leak_reason().starts_with("holdout_leak: "));
        }
    }

    /// Returns access to a simulated model. Its conversation is logged like one with a provider.
    fn asking(setting: ConversationSetting, account: Option<Account>) -> ModelAccess {
        let model = Model::bind(&"n".into(), &[], None, 0, 0).unwrap();
        let model = match account {
            Some(account) => model.charged_to(account),
            None => model,
        };
        let conversation = Conversation::new(setting, Some(Provider::Live));
        ModelAccess { model: Some(model), conversation, ..ModelAccess::default() }
    }

    #[test]
    fn a_steering_message_is_part_of_the_next_question_to_a_model() {
        let steering = Steering::default();
        steering.push(SteeringMessage { id: "1".to_owned().into(), text: "faster".to_owned() });
        let setting = || ConversationSetting { steering: steering.clone(), ..ConversationSetting::default() };
        let question = || Request { messages: Vec::new(), tools: Vec::new(), options: Vec::new() };
        let mut access = ModelAccess { turns: 4, ..asking(setting(), None) };
        let mut asked = question();
        access.steer(&mut asked);
        assert_eq!(asked.messages.len(), 1);
        let turn = |access: &ModelAccess| access.deliveries().iter().map(|one| one.turn).collect::<Vec<_>>();
        assert_eq!(turn(&access), [None], "the question has no answer yet");
        access.turns += 1;
        assert_eq!(turn(&access), [Some(5)]);
        let mut alone = ModelAccess::new(None, setting());
        let mut asked = question();
        alone.steer(&mut asked);
        assert!(asked.messages.is_empty());
        assert!(alone.model().is_none() && access.model().is_some());
        assert_eq!(turn(&alone), [None]);
    }

    #[test]
    fn messages_and_transcript_are_taken_unless_a_holdout_leaked() {
        for leaked in [None, Some(Side::Prompt)] {
            let setting = ConversationSetting { keeps_messages: true, ..ConversationSetting::default() };
            let mut access = ModelAccess { leaked, ..asking(setting, None) };
            access.conversation.keep_program("do it", "done");
            access.conversation.add_line(b"{}\n".to_vec());
            let taken = (access.take_messages().len(), access.take_transcript().len());
            assert_eq!(taken, if leaked.is_some() { (0, 0) } else { (2, 3) });
        }
    }

    #[test]
    fn stored_answers_that_are_not_repeated_are_paid() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let logged = || {
            let file = folder.open_with("x", OpenOptions::new().read(true).append(true).create(true)).unwrap();
            ConversationSetting { exchanges: Some(ExchangeLog::open(file).unwrap()), ..ConversationSetting::default() }
        };
        let usage = Usage { input: 10, output: 1, cost_usd: Some(Money(7)), ..Usage::default() };
        asking(logged(), None).keep_answer(b"{}", &Answer { usage, ..Answer::default() }, b"{}\n");
        let budget = Arc::new(Budget::new(None, SpendingLimit::default(), BTreeMap::new()));
        let mut again = asking(logged(), Some(budget.account(&"n".into())));
        again.close();
        assert_eq!((again.tokens, again.cost), (Tokens { input: 10, output: 1 }, Money(7)));
        assert_eq!(budget.spent_by_run(), Spend { tokens: 11, cost: Money(7) });
    }

    #[test]
    fn a_request_over_the_budget_is_refused_and_a_paid_one_is_settled() {
        let most = SpendBounds { tokens_max: Some(10), cost_max: None };
        let limit = SpendingLimit { most, spent: Spend::default() };
        let budget = Arc::new(Budget::new(None, limit, BTreeMap::new()));
        let usage = |input| Usage { input, ..Usage::default() };
        let mut access = asking(ConversationSetting::default(), Some(budget.account(&"n".into())));
        assert_eq!(access.reserve(usage(11)).unwrap_err().kind, ErrorKind::BudgetExceeded);
        assert_eq!(access.overspent.take().unwrap().code, FailureCode::RUN_TOKENS);
        let reserved = access.reserve(usage(9)).unwrap();
        assert_eq!((reserved, access.overspent.is_none()), (Some(Spend { tokens: 9, ..Spend::default() }), true));
        access.book_paid(usage(4), reserved);
        assert_eq!((access.tokens.input, budget.spent_by_run().tokens), (4, 4));
        for mut unlimited in [asking(ConversationSetting::default(), None), ModelAccess::default()] {
            assert_eq!(unlimited.reserve(usage(11)).unwrap(), None);
        }
    }

    #[test]
    fn the_model_that_answered_last_is_named() {
        let mut access = ModelAccess::default();
        for name in ["one", "other"] {
            let model: Option<ModelId> = Some(name.into());
            access.note_answer(&Answer { model: model.clone(), ..Answer::default() }).unwrap();
            assert_eq!(access.answered_by, model);
        }
    }
}
