//! A model that a provider answers for. Every request of every component goes through here.
//!
//! What crossed the border is handed on for the record: it has no key, and the caller has searched it for hold-outs.

use super::Turn;
use super::exchanges::{Exchanges, Kept};
use super::transcript::{self, Question};
use glovebox_models::ask::{self, Asked, Exchange, estimated_input};
use glovebox_models::chat::{Answer, Effort, Request, Usage};
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_models::image::without_data;
use glovebox_models::patience::Patience;
use glovebox_models::target::Target;
use glovebox_schema::Schema;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A model and how it is asked.
#[derive(Debug)]
pub struct Live {
    /// Where it is.
    pub target: Arc<Target>,
    /// How hard it thinks.
    pub effort: Option<Effort>,
    /// What was answered already, and where answers are kept; none keeps nothing.
    pub exchanges: Option<Exchanges>,
}

/// The provider is told the schema in every question.
const WITH_TOOLS: &str = "with-tools";
/// It is told the schema in questions that offer no tools.
const WITHOUT_TOOLS: &str = "without-tools";
/// It is not told.
pub(super) const OFF: &str = "off";

/// Under which circumstances a turn is asked for.
pub(crate) struct Asking<'a> {
    pub(crate) patience: Patience<'a>,
    /// Gets the error and the wait before a retry.
    pub(crate) on_wait: &'a mut dyn FnMut(&ModelError, Duration),
}

impl Live {
    /// The most that a turn may use: its text, counted rather too high, and the longest answer.
    pub(super) fn most(&self, request: &Request) -> Usage {
        let input = estimated_input(request);
        Usage { input, output: self.target.output_tokens(&request.settings), ..Usage::default() }
    }

    pub(super) fn info(&self) -> Vec<(String, String)> {
        let Target { family, model, context_tokens, images, .. } = &*self.target;
        let pairs = [
            ("provider", family.to_string()),
            ("model", model.to_string()),
            ("context-window", context_tokens.to_string()),
            ("images", images.to_string()),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    pub(super) fn settle(&self, request: &mut Request, schema: Option<&Arc<Schema>>) {
        request.settings.effort = request.settings.effort.or(self.effort);
        // Only the stage's own answer is its object.
        let schema = schema.filter(|_| request.agent.is_none() && request.within.is_none());
        request.schema = schema
            .filter(|schema| match self.schema_mode(schema) {
                WITH_TOOLS => true,
                mode => mode == WITHOUT_TOOLS && request.tools.is_empty(),
            })
            .map(Arc::clone);
    }

    /// When the provider is told a schema: always, in questions without tools, or never.
    pub(super) fn schema_mode(&self, schema: &Schema) -> &'static str {
        match self.target.family {
            family if !self.target.schema_mode || !family.takes(schema) => OFF,
            family if family.has_schema_beside_tools() => WITH_TOOLS,
            _ => WITHOUT_TOOLS,
        }
    }

    /// Asks, unless the same was asked and answered before.
    pub(super) fn turn(&mut self, request: &Request, question: Question<'_>, asking: Asking<'_>) -> Turn {
        let known = self.exchanges.as_mut().and_then(|exchanges| exchanges.next(&ask::body(&self.target, request)));
        let unused = self.exchanges.as_mut().map(Exchanges::take_dropped).unwrap_or_default();
        if let Some(Kept { answer, too_long, late, lost, transcript, is_booked, .. }) = known {
            let is_estimated = answer.is_estimated || lost != Usage::default();
            let paid = if is_booked { Usage::default() } else { answer.usage.plus(lost) };
            let transcript = transcript.into_bytes();
            let refused = too_long.map(|reason| ModelError::new(ErrorKind::ContextLength, reason));
            let refused = refused.or(late.map(|reason| ModelError::new(ErrorKind::RequestTimeout, reason)));
            let answered = refused.map_or(Ok(answer), Err);
            return Turn { answered, paid: paid.plus(unused), is_estimated, transcript, kept: None };
        }
        let asked = ask_within(&self.target, request, asking);
        let shown = without_data(&asked.exchange.sent, &request.messages);
        let (exchange, answered) = (&asked.exchange, &asked.answered);
        let transcript = Crossed { sent: &shown, exchange, tries: asked.tries, lost: asked.lost, answered }
            .line(&self.target, question);
        let answer = asked.answered.as_ref().ok();
        let (sent, beside) = (&asked.exchange.sent, (asked.lost, &*transcript));
        let kept = match &asked.answered {
            _ if self.exchanges.is_none() => None,
            Ok(answer) => Some(Kept::of(sent, answer, beside)),
            Err(error) if error.kind == ErrorKind::ContextLength => {
                Some(Kept::too_long(sent, error.message.clone(), beside))
            }
            Err(error) if error.kind == ErrorKind::RequestTimeout && request.within.is_some() => {
                Some(Kept::late(sent, error.message.clone(), beside))
            }
            Err(_) => None,
        };
        let is_estimated = asked.lost != Usage::default() || answer.is_some_and(|answer| answer.is_estimated);
        let paid = answer.map(|answer| answer.usage).unwrap_or_default().plus(asked.lost).plus(unused);
        Turn { answered: asked.answered, paid, is_estimated, transcript, kept }
    }

    /// Keeps an exchange that was checked. One that cannot be kept is paid for again if the attempt is cut off.
    pub(super) fn keep(&mut self, kept: Box<Kept>) {
        if let Some(exchanges) = &mut self.exchanges
            && let Err(error) = exchanges.keep(kept)
        {
            tracing::warn!(%error, "an answered exchange was not kept");
            self.exchanges = None;
        }
    }

    /// What it cost to ask what was not asked again.
    pub(super) fn close(&mut self) -> Usage {
        self.exchanges.as_mut().map(Exchanges::close).unwrap_or_default()
    }
}

/// Asks. An answer that is not there in its own time counts as none, also when it comes a moment later; what it cost is paid.
fn ask_within(target: &Target, request: &Request, asking: Asking<'_>) -> Asked {
    let Asking { patience, on_wait } = asking;
    let Some(within) = request.within else { return ask::ask(target, request, patience, on_wait) };
    let own = Instant::now() + within;
    let mut asked = ask::ask(target, request, Patience { deadline: own.min(patience.deadline), ..patience }, on_wait);
    let has_passed = Instant::now() >= own && own < patience.deadline;
    let is_late = match &asked.answered {
        Ok(answer) => {
            let paid = answer.usage;
            asked.lost = if has_passed { asked.lost.plus(paid) } else { asked.lost };
            has_passed
        }
        Err(error) => has_passed && error.kind == ErrorKind::LimitExceeded,
    };
    if is_late {
        let message = format!("the answer did not come within {} s", within.as_secs());
        asked.answered = Err(ModelError::new(ErrorKind::RequestTimeout, message));
    }
    asked
}

/// An exchange that crossed the border to a provider.
pub(crate) struct Crossed<'a> {
    /// What was sent, as the record has it.
    pub(crate) sent: &'a [u8],
    pub(crate) exchange: &'a Exchange,
    pub(crate) tries: u32,
    /// What tries without an answer may have cost.
    pub(crate) lost: Usage,
    pub(crate) answered: &'a Result<Answer, ModelError>,
}

impl Crossed<'_> {
    /// Its line of the transcript. What was sent is JSON already, and stays as it was, but for a key that a file of the project had.
    pub(crate) fn line(&self, target: &Target, question: Question<'_>) -> Vec<u8> {
        let who = transcript::Asked {
            provider: target.family.as_str(),
            model: Some(&target.model),
            tries: Some(self.tries),
            lost: self.lost,
        };
        let mut text = question.line(who, self.answered);
        text.pop();
        text.extend_from_slice(b",\"received\":");
        let received = Value::String(String::from_utf8_lossy(&self.exchange.received).into_owned());
        text.extend_from_slice(received.to_string().as_bytes());
        text.extend_from_slice(b",\"sent\":");
        text.extend_from_slice(self.sent);
        text.extend_from_slice(b"}\n");
        match &target.key {
            Some(key) => key.removed_from(String::from_utf8_lossy(&text).into_owned()).into_bytes(),
            None => text,
        }
    }
}
