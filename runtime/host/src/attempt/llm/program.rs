//! The conversation of a stage whose program asks the model itself: the same bounds and the same record.

use super::{Conversation, INVALID_CALLS_MAX, LEAK_HELP, Side, border};
use crate::bindings::chat::{Message, Part};
use crate::model::{Kept, Model, TextGuard};
use glovebox_models::chat::{Answer, Usage};
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_record::Refusal;
use glovebox_record::spend::Spend;

impl Conversation {
    /// The model.
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

    /// Books what a request did cost.
    pub(crate) fn book_paid(&mut self, paid: Usage, reserved: Option<Spend>) {
        let account = self.model.as_ref().and_then(Model::account).cloned();
        self.book(paid, account.zip(reserved));
    }

    /// Keeps an answer for an attempt that is cut off: what it cost is counted all the same.
    pub(crate) fn keep_answer(&mut self, sent: &[u8], answer: &Answer, line: &[u8]) {
        if let Some(model) = &mut self.model {
            model.keep(Kept::of_program(sent, answer, line));
        }
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
        self.invalid_calls = if border::has_invalid_call(answer) { self.invalid_calls + 1 } else { 0 };
        if self.invalid_calls < INVALID_CALLS_MAX {
            return Ok(());
        }
        let message =
            format!("the model called tools with unreadable arguments in {INVALID_CALLS_MAX} answers in a row");
        Err(ModelError::new(ErrorKind::InvalidToolCall, message))
    }

    /// Keeps what the stage asked its program and what the program said last, for stages that continue the conversation.
    pub(crate) fn keep_program(&mut self, prompt: &str, said: &str) {
        if self.model.as_ref().is_some_and(Model::keeps_conversation) {
            let message = |role: &str, text: &str| Message {
                role: role.to_owned(),
                parts: vec![Part { kind: "text".to_owned(), text: text.to_owned(), fields: Vec::new() }],
            };
            self.messages = vec![message("user", prompt), message("assistant", said)];
        }
    }

    /// Lets no hold-out pass. Neither side learns where in the hold-outs its text stands.
    pub(crate) fn check_leak<'t>(
        &mut self,
        (guard, side): (Option<&TextGuard>, Side),
        texts: impl FnOnce() -> Vec<&'t str>,
        refuse: impl FnOnce(Refusal),
    ) -> Result<(), ModelError> {
        self.check_found((guard, side), |guard| guard.first(texts()), refuse)
    }

    /// The same for whatever a guard finds a hold-out in.
    pub(super) fn check_found(
        &mut self,
        (guard, side): (Option<&TextGuard>, Side),
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
