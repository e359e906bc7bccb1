//! The conversation of an attempt with its model, in memory and on disk.
//!
//! This module does not know bounds, money or hold-outs. The caller checks a request before it is passed to this module, and an
//! answer before it is stored.

mod exchange_log;
mod steering_places;
mod thread;
mod transcript;

pub(super) use exchange_log::StoredExchange;
pub use exchange_log::{ExchangeKeeper, ExchangeLog};
pub(crate) use transcript::{NewMessages, ProviderExchange};

use super::convert::into_record;
use super::model::{AskOptions, Model, Provider, Reply};
use super::steering::Steering;
use crate::bindings::chat::Message;
use crate::bindings::llm::Request;
use glovebox_models::ask;
use glovebox_models::chat::{self, AgentId, Answer, Usage, text_part};
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_models::image::{without_data, without_images};
use glovebox_record::{SteeringDelivery, session};
use std::collections::BTreeMap;
use steering_places::SteeringPlaces;
use thread::Thread;
use transcript::{TurnSource, without_bytes};

/// Length of a transcript, in bytes, above which the raw bytes of exchanges are left out.
const EXCHANGED_BYTES_MAX: usize = 12 << 20;
/// Maximum length of a transcript, in bytes. Later turns are left out.
const TRANSCRIPT_BYTES_MAX: usize = 16 << 20;

/// How a conversation is stored. By default only the transcript outlives the attempt.
#[derive(Debug, Default)]
pub struct ConversationSetting {
    /// True if the report contains the last request to the model and its answer.
    pub keeps_messages: bool,
    /// The log from which a repeated attempt gets its answers. It is used only if a provider answers.
    pub exchanges: Option<ExchangeLog>,
    /// Steering messages for the attempt.
    pub steering: Steering,
}

/// The conversation of an attempt with its model, and the conversations of its subagents.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The messages so far, by subagent. The key of the stage's own conversation is `None`.
    threads: BTreeMap<Option<AgentId>, Thread>,
    /// The last request of the stage and its answer, if messages are kept.
    messages: Vec<session::Message>,
    keeps_messages: bool,
    /// The transcript: one line of JSON for each turn.
    transcript: Vec<u8>,
    /// The log on disk, written before the component gets an answer.
    exchanges: Option<ExchangeLog>,
    steering: Steering,
    /// Places of the steering messages in the conversation.
    places: SteeringPlaces,
}

/// A turn with its answer and its cost.
pub(super) struct Turn {
    /// The answer, or why there is none.
    pub(super) answered: Result<Answer, ModelError>,
    /// Cost of the answer, of failed tries, and of an earlier attempt's answers that were not used.
    pub(super) paid: Usage,
    /// True if part of the cost is estimated.
    pub(super) is_estimated: bool,
    /// Line of the turn in the transcript.
    pub(super) line: Vec<u8>,
    /// The exchange to store after the answer was checked.
    pub(super) exchange: Option<Box<StoredExchange>>,
}

impl Conversation {
    /// Begins a conversation. Only answers of a provider are written to the log.
    pub(super) fn new(setting: ConversationSetting, provider: Option<Provider>) -> Self {
        let ConversationSetting { keeps_messages, exchanges, steering } = setting;
        let exchanges = exchanges.filter(|_| provider == Some(Provider::Live));
        let keeps_messages = keeps_messages && provider.is_some();
        Self { keeps_messages, exchanges, steering, ..Self::default() }
    }

    /// Asks the model, unless the log has the answer of an earlier attempt to the same request.
    pub(super) fn turn(&mut self, model: &mut Model, request: &chat::Request, options: AskOptions<'_>) -> Turn {
        let repeated = self.threads.entry(request.agent.clone()).or_default().ask(&request.messages);
        let stored = self.stored(model, request);
        let unused = self.exchanges.as_mut().map(ExchangeLog::take_dropped).unwrap_or_default();
        let mut turn = match stored {
            Some(stored) => Turn::from_stored(stored),
            None => self.new_turn(model, request, repeated, options),
        };
        if let Err(error) = &turn.answered
            && error.kind == ErrorKind::QuotaExceeded
            && turn.paid != Usage::default()
        {
            self.store_refused(turn.paid);
        }
        turn.paid = turn.paid.plus(unused);
        if let Ok(answer) = &turn.answered {
            self.threads.entry(request.agent.clone()).or_default().add_answer(answer);
        }
        turn
    }

    /// Returns the stored exchange of an earlier attempt for this request.
    fn stored(&mut self, model: &Model, request: &chat::Request) -> Option<StoredExchange> {
        let (exchanges, target) = (self.exchanges.as_mut()?, model.target()?);
        exchanges.next(&ask::body(target, request))
    }

    fn new_turn(&self, model: &mut Model, request: &chat::Request, repeated: usize, options: AskOptions<'_>) -> Turn {
        let provider = model.provider();
        let Reply { answered, lost, exchanged } = model.answer(request, options);
        let (account, agent) = (model.account(), request.agent.as_ref());
        let new = NewMessages { repeated, new: &request.messages[repeated..], account, agent };
        let (line, exchange) = match model.target().zip(exchanged) {
            Some((target, exchanged)) => {
                let shown = without_data(&exchanged.exchange.sent, &request.messages);
                let (sent, exchange, tries) = (&*shown, &exchanged.exchange, exchanged.tries);
                let line = ProviderExchange { sent, exchange, tries, lost, answered: &answered }.line(target, new);
                let is_optional = request.within.is_some();
                let stored = self
                    .exchanges
                    .as_ref()
                    .and_then(|_| StoredExchange::from_turn(&exchange.sent, &answered, is_optional, lost, &line));
                (line, stored)
            }
            None => {
                let mut line = new.line(TurnSource::local(provider.as_str()), &answered);
                line.push(b'\n');
                (line, None)
            }
        };
        let answer = answered.as_ref().ok();
        let is_estimated = lost != Usage::default() || answer.is_some_and(|answer| answer.is_estimated);
        let paid = answer.map(|answer| answer.usage).unwrap_or_default().plus(lost);
        Turn { answered, paid, is_estimated, line, exchange }
    }

    /// Stores a checked exchange. If it cannot be stored and the attempt is interrupted, the answer must be paid for again.
    pub(super) fn store(&mut self, exchange: Box<StoredExchange>) {
        if let Some(exchanges) = &mut self.exchanges
            && let Err(error) = exchanges.keep(exchange)
        {
            tracing::warn!(%error, "an answered exchange was not stored");
            self.exchanges = None;
        }
    }

    /// Stores the cost of a request that a quota refused.
    fn store_refused(&mut self, lost: Usage) {
        if let Some(exchanges) = &mut self.exchanges
            && let Err(error) = exchanges.keep_refused(lost)
        {
            tracing::warn!(%error, "the cost of a refused request was not stored");
        }
    }

    /// Stores an exchange of an agent program. A repeated attempt cannot use its answer, but counts its cost.
    pub(super) fn store_for_program(&mut self, sent: &[u8], answer: &Answer, line: &[u8]) {
        self.store(StoredExchange::for_program(sent, answer, line));
    }

    /// Drops the stored exchanges that this attempt did not repeat, and returns their cost.
    pub(super) fn close(&mut self) -> Usage {
        self.exchanges.as_mut().map(ExchangeLog::close).unwrap_or_default()
    }

    /// Adds a line to the transcript if it fits.
    pub(crate) fn add_line(&mut self, line: Vec<u8>) {
        let is_short = self.transcript.len() + line.len() <= EXCHANGED_BYTES_MAX;
        let line = if is_short { Some(line) } else { without_bytes(&line) };
        let fits = |line: &Vec<u8>| self.transcript.len() + line.len() <= TRANSCRIPT_BYTES_MAX;
        if let Some(line) = line.filter(fits) {
            self.transcript.extend_from_slice(&line);
        }
    }

    /// Adds steering messages to a request of the stage. `turn` is the turn that begins with the request.
    pub(super) fn steer(&mut self, request: &mut Request, turn: u32) {
        let all = self.steering.all();
        let before = self.exchanges.as_ref().and_then(ExchangeLog::steered);
        let count = self.places.insert(&all, before, request, turn);
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.is_steered_by(count);
        }
    }

    /// Returns the delivery of each steering message, given the number of answered turns.
    pub(super) fn deliveries(&self, turns: u32) -> Vec<SteeringDelivery> {
        self.places.deliveries(&self.steering.all(), turns)
    }

    /// Replaces the kept messages by those of a request and its answer. A refused request has no answer, but its tool results are
    /// still kept.
    pub(super) fn keep_messages(&mut self, asked: Vec<Message>, answer: Option<&Message>) {
        if self.keeps_messages {
            self.messages = asked.into_iter().chain(answer.cloned()).map(into_record).collect();
        }
    }

    /// Keeps the prompt of an agent program and its final message, for stages that continue the conversation.
    pub(crate) fn keep_program(&mut self, prompt: &str, message: &str) {
        if self.keeps_messages {
            let of_role =
                |role: &str, text: &str| session::Message { role: role.to_owned(), parts: vec![text_part(text)] };
            self.messages = vec![of_role("user", prompt), of_role("assistant", message)];
        }
    }

    /// Takes the kept messages, without images.
    pub(super) fn take_messages(&mut self) -> Vec<session::Message> {
        std::mem::take(&mut self.messages).into_iter().map(without_images).collect()
    }

    /// Takes the transcript.
    pub(super) fn take_transcript(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.transcript)
    }
}

impl Turn {
    /// Creates a turn from an earlier attempt's exchange. A cost that is already in a record is not counted again.
    fn from_stored(stored: StoredExchange) -> Self {
        let StoredExchange { answer, too_long, late, lost, transcript, is_booked, .. } = stored;
        let is_estimated = answer.is_estimated || lost != Usage::default();
        let paid = if is_booked { Usage::default() } else { answer.usage.plus(lost) };
        let refused = too_long.map(|reason| ModelError::new(ErrorKind::ContextLength, reason));
        let refused = refused.or(late.map(|reason| ModelError::new(ErrorKind::RequestTimeout, reason)));
        let answered = refused.map_or(Ok(answer), Err);
        Self { answered, paid, is_estimated, line: transcript.into_bytes(), exchange: None }
    }
}
