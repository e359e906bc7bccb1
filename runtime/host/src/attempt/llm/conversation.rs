//! The conversation of an attempt with its model, in memory and on disk.
//!
//! It knows nothing of bounds, money and hold-outs: the caller checks a question before this module gets it, and an answer before this module
//! stores it.

mod exchange_log;
mod steering_places;
mod thread;
mod transcript;

pub use exchange_log::ExchangeLog;
pub(super) use exchange_log::StoredExchange;
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

/// Bytes of a transcript of one attempt from which on the bytes of exchanges are left out.
const EXCHANGED_BYTES_MAX: usize = 12 << 20;
/// Maximum number of bytes of it; later turns are not part of it.
const TRANSCRIPT_BYTES_MAX: usize = 16 << 20;

/// Storage of a conversation. By default only the transcript outlives the attempt.
#[derive(Debug, Default)]
pub struct ConversationSetting {
    /// True if the report is to contain the last question and its answer.
    pub keeps_messages: bool,
    /// The log from which a repeated attempt gets its answers, for a model of a provider.
    pub exchanges: Option<ExchangeLog>,
    /// Steering messages for the attempt.
    pub steering: Steering,
}

/// The conversation of an attempt with its model, and those of its subagents.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The messages so far, by who asks; the stage itself is none.
    threads: BTreeMap<Option<AgentId>, Thread>,
    /// The last question of the stage and its answer, if they are kept.
    messages: Vec<session::Message>,
    keeps_messages: bool,
    /// One line of JSON for each turn.
    transcript: Vec<u8>,
    /// The same on disk, before the component gets an answer.
    exchanges: Option<ExchangeLog>,
    steering: Steering,
    /// Positions of steering messages.
    places: SteeringPlaces,
}

/// A turn with its answer and its cost.
pub(super) struct Turn {
    /// The answer, or why there is none.
    pub(super) answered: Result<Answer, ModelError>,
    /// Its cost: the answer, failed tries, and unused answers of an earlier attempt.
    pub(super) paid: Usage,
    /// True if some of that is estimated.
    pub(super) is_estimated: bool,
    /// Its line of the transcript.
    pub(super) line: Vec<u8>,
    /// The exchange to store once the answer was checked.
    pub(super) exchange: Option<Box<StoredExchange>>,
}

impl Conversation {
    /// Begins a conversation. Only answers of a provider are logged.
    pub(super) fn new(setting: ConversationSetting, provider: Option<Provider>) -> Self {
        let ConversationSetting { keeps_messages, exchanges, steering } = setting;
        let exchanges = exchanges.filter(|_| provider == Some(Provider::Live));
        let keeps_messages = keeps_messages && provider.is_some();
        Self { keeps_messages, exchanges, steering, ..Self::default() }
    }

    /// Asks the model, unless an earlier attempt asked the same and was answered.
    pub(super) fn turn(&mut self, model: &mut Model, request: &chat::Request, options: AskOptions<'_>) -> Turn {
        let repeated = self.threads.entry(request.agent.clone()).or_default().ask(&request.messages);
        let stored = self.stored(model, request);
        let unused = self.exchanges.as_mut().map(ExchangeLog::take_dropped).unwrap_or_default();
        let mut turn = match stored {
            Some(stored) => Turn::from_stored(stored),
            None => self.new_turn(model, request, repeated, options),
        };
        turn.paid = turn.paid.plus(unused);
        if let Ok(answer) = &turn.answered {
            self.threads.entry(request.agent.clone()).or_default().add_answer(answer);
        }
        turn
    }

    /// Returns the stored exchange of an earlier attempt for this question.
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

    /// Stores an exchange that was checked. One that cannot be stored is paid for again if the attempt is cut off.
    pub(super) fn store(&mut self, exchange: Box<StoredExchange>) {
        if let Some(exchanges) = &mut self.exchanges
            && let Err(error) = exchanges.keep(exchange)
        {
            tracing::warn!(%error, "an answered exchange was not stored");
            self.exchanges = None;
        }
    }

    /// Stores an exchange of an agent program. A repeated attempt cannot use its answer, but counts its cost.
    pub(super) fn store_for_program(&mut self, sent: &[u8], answer: &Answer, line: &[u8]) {
        self.store(StoredExchange::for_program(sent, answer, line));
    }

    /// Drops stored exchanges that a repeated attempt did not ask again. Returns their cost.
    pub(super) fn close(&mut self) -> Usage {
        self.exchanges.as_mut().map(ExchangeLog::close).unwrap_or_default()
    }

    /// Adds a line to the transcript, as long as there is room for it.
    pub(crate) fn add_line(&mut self, line: Vec<u8>) {
        let is_short = self.transcript.len() + line.len() <= EXCHANGED_BYTES_MAX;
        let line = if is_short { Some(line) } else { without_bytes(&line) };
        let fits = |line: &Vec<u8>| self.transcript.len() + line.len() <= TRANSCRIPT_BYTES_MAX;
        if let Some(line) = line.filter(fits) {
            self.transcript.extend_from_slice(&line);
        }
    }

    /// Adds steering messages to a question of the stage; `turn` is the turn that the question begins.
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

    /// Keeps the messages of a request in the place of those before, with its answer. A request that was refused has none: then its results
    /// of tools are still worth keeping.
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

    /// Returns the messages that are kept, without images.
    pub(super) fn take_messages(&mut self) -> Vec<session::Message> {
        std::mem::take(&mut self.messages).into_iter().map(without_images).collect()
    }

    /// Returns the transcript.
    pub(super) fn take_transcript(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.transcript)
    }
}

impl Turn {
    /// Creates the turn of an earlier attempt. A cost that is already in a record is not counted again.
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
