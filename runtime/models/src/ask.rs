//! One call of a model: sends the request, reads and checks the answer as it arrives, and retries if the table of errors allows it.
//!
//! A call never switches to another model or provider. An answer is accepted only if it is complete and comes from the requested
//! model.

use crate::chat::{Answer, Request, TOOL_CALL, Usage};
use crate::deadline::CallDeadline;
use crate::error::{ErrorKind, ModelError};
use crate::http::{Body, Post, Reply};
use crate::image::IMAGE_TOKENS;
use crate::key::Key;
use crate::provider::{Draft, Event, Provider, ProviderRefusal, Reader, Splitter, Step};
use crate::target::Target;
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Number of retries of a call (unified-llm specification §6.6).
pub const RETRIES_MAX: u32 = 2;
/// Wait before the first retry. It doubles with each retry.
const RETRY_BASE: Duration = Duration::from_secs(1);
/// Maximum number of bytes received for one answer. A stream is many times longer than the text that it contains.
const WIRE_BYTES_MAX: usize = 32 << 20;
/// Maximum number of bytes read of a refusal.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// Minimum number of bytes of a stream per token.
const EVENT_BYTES_PER_TOKEN: u64 = 16;
/// Maximum number of received bytes that are kept of an exchange.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// The bytes of one try.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// The JSON that was sent.
    pub sent: Vec<u8>,
    /// Received bytes, cut to 8 MiB and without the key.
    pub received: Vec<u8>,
    /// True if the provider began an answer, which may cost money.
    pub is_begun: bool,
}

/// The result of a call, after all its tries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskResult {
    /// The last try.
    pub exchange: Exchange,
    /// Number of tries.
    pub tries: u32,
    /// Estimated cost of failed tries.
    pub lost: Usage,
    /// The answer, or the error of the last try.
    pub answered: Result<Answer, ModelError>,
}

/// Returns a request as the JSON that is sent.
pub fn body(target: &Target, request: &Request) -> Vec<u8> {
    target.family.provider().body(target, request).to_string().into_bytes()
}

/// A step of a call, as its observer gets it.
#[derive(Debug)]
pub enum AskStep<'a> {
    /// A try begins.
    Try,
    /// A piece of the answer with this many bytes arrived.
    Received(usize),
    /// The answer so far: after each piece, and about ten times a second while the provider sends nothing.
    Unfinished(UnfinishedAnswer<'a>),
    /// The try failed with this error, and the next one begins after this wait.
    Wait(&'a ModelError, Duration),
}

/// An answer that is being received. It was not checked yet, and may be discarded.
#[derive(Debug, Clone, Copy)]
pub struct UnfinishedAnswer<'a> {
    draft: &'a Draft,
    key: Option<&'a Key>,
}

impl UnfinishedAnswer<'_> {
    /// Returns a number that grows with the answer.
    pub fn bytes(&self) -> usize {
        self.draft.bytes()
    }

    /// Returns the text so far, without thoughts and tool calls. The key is removed, and so is an end with which the key could
    /// begin: until it is known how the text continues, it is left out.
    pub fn text(&self) -> String {
        self.draft.text(self.key)
    }
}

/// Asks a model, and retries if the table of errors allows it. `on_step` is called with each step.
pub fn ask(
    target: &Target,
    request: &Request,
    deadline: CallDeadline<'_>,
    on_step: &mut dyn FnMut(AskStep<'_>),
) -> AskResult {
    let (mut tries, mut lost) = (0, Usage::default());
    loop {
        tries += 1;
        on_step(AskStep::Try);
        let (exchange, answered) = ask_once(target, request, deadline, on_step);
        if answered.is_err() && exchange.is_begun {
            let most = target.output_tokens(&request.settings);
            lost = lost.plus(lost_usage(estimated_input(request), exchange.received.len(), most));
        }
        let answered = match answered {
            Err(error) if error.is_retried() && tries <= RETRIES_MAX => {
                let wait = error.retry_after.unwrap_or_else(|| pause(tries));
                on_step(AskStep::Wait(&error, wait));
                match deadline.sleep(wait) {
                    Ok(()) => continue,
                    Err(ended) => Err(ended),
                }
            }
            answered => answered,
        };
        return AskResult { exchange, tries, lost, answered };
    }
}

/// Returns the estimated cost of a failed try.
pub(crate) fn lost_usage(sent: u64, received: usize, output_tokens_max: u64) -> Usage {
    let output = (received as u64).div_ceil(EVENT_BYTES_PER_TOKEN).min(output_tokens_max);
    Usage { input: sent, output, ..Usage::default() }
}

/// Returns the wait before a retry. Up to half of it is random, so that many callers do not retry at the same time.
fn pause(tries: u32) -> Duration {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    let chance = f64::from(nanos % 1_000_000) / 1e6;
    (RETRY_BASE * 2_u32.pow(tries - 1)).mul_f64(0.5 + chance / 2.0)
}

/// Executes one try.
fn ask_once(
    target: &Target,
    request: &Request,
    deadline: CallDeadline<'_>,
    on_step: &mut dyn FnMut(AskStep<'_>),
) -> (Exchange, Result<Answer, ModelError>) {
    let provider = target.family.provider();
    let mut exchange = Exchange { sent: body(target, request), ..Exchange::default() };
    let answered = target.check().and_then(|()| send(target, provider, &mut exchange, deadline, on_step));
    let answered = answered.and_then(|answer| checked(answer, target, request));
    exchange.received = cleaned(exchange.received, target);
    (exchange, answered.map_err(|error| without_key(error, target)))
}

fn send(
    target: &Target,
    provider: &dyn Provider,
    exchange: &mut Exchange,
    deadline: CallDeadline<'_>,
    on_step: &mut dyn FnMut(AskStep<'_>),
) -> Result<Answer, ModelError> {
    let post = Post {
        endpoint: &target.endpoint,
        authorities: &target.authorities,
        path: provider.path(&target.model),
        headers: provider.headers(target.key.as_ref()),
        body: &exchange.sent,
    };
    let mut reply = post.send(CallDeadline { idle: target.timeout.min(deadline.idle), ..deadline })?;
    if reply.status != 200 {
        return Err(read_refusal(target, &mut reply, &mut exchange.received));
    }
    exchange.is_begun = true;
    let reader = AnswerReader { target, provider, draft: Draft::default() };
    reader.read(&mut reply.body, &mut exchange.received, KEPT_BYTES_MAX, &mut |step| {
        on_step(step);
        true
    })
}

/// Reads the provider's reason for refusing a request.
pub(crate) fn read_refusal(target: &Target, reply: &mut Reply<'_>, received: &mut Vec<u8>) -> ModelError {
    *received = reply.body.read_cut(REFUSAL_BYTES_MAX);
    let answer = glovebox_schema::document::read(received);
    let answer = answer.unwrap_or_else(|_| Value::String(String::from_utf8_lossy(received).into_owned()));
    let (status, retry_after, quotas) = (Some(reply.status), reply.retry_after, std::mem::take(&mut reply.quotas));
    ProviderRefusal { status, retry_after, quotas, answer }.to_error(target)
}

/// Reads an answer while it is being received.
pub(crate) struct AnswerReader<'a> {
    pub(crate) target: &'a Target,
    pub(crate) provider: &'a dyn Provider,
    pub(crate) draft: Draft,
}

impl AnswerReader<'_> {
    /// Reads a stream, and keeps up to `kept_bytes_max` of its bytes. `on_step` is called with each step; if it returns false for
    /// received bytes, the call ends.
    pub(crate) fn read(
        mut self,
        body: &mut Body<'_>,
        received: &mut Vec<u8>,
        kept_bytes_max: usize,
        on_step: &mut dyn FnMut(AskStep<'_>) -> bool,
    ) -> Result<Answer, ModelError> {
        let mut reader = self.provider.reader();
        let mut splitter = Splitter::new(self.provider.framing());
        let mut total = 0_usize;
        loop {
            while !body.is_ready()? {
                on_step(self.so_far());
            }
            let before = splitter.pending.len();
            let is_more = body.read(&mut splitter.pending)?;
            let piece = &splitter.pending[before..];
            let piece_bytes = piece.len();
            total = total.saturating_add(piece_bytes);
            received.extend_from_slice(&piece[..piece.len().min(kept_bytes_max.saturating_sub(received.len()))]);
            if total > WIRE_BYTES_MAX {
                let message = format!("the stream of the answer is longer than {} MiB", WIRE_BYTES_MAX >> 20);
                return Err(ModelError::new(ErrorKind::AnswerTooLarge, message));
            }
            if !on_step(AskStep::Received(piece_bytes)) {
                return Err(ModelError::new(
                    ErrorKind::Canceled,
                    "the agent program closed its connection before the answer was complete",
                ));
            }
            for event in if is_more { splitter.events()? } else { splitter.rest()? } {
                if self.take(&mut *reader, event)? == Step::Last {
                    return self.draft.finished();
                }
            }
            if !is_more {
                return self.ended(&*reader);
            }
            on_step(self.so_far());
        }
    }

    fn so_far(&self) -> AskStep<'_> {
        AskStep::Unfinished(UnfinishedAnswer { draft: &self.draft, key: self.target.key.as_ref() })
    }

    /// Reads the events of an answer that was not streamed.
    pub(crate) fn read_events(mut self, events: Vec<Value>) -> Result<Answer, ModelError> {
        let mut reader = self.provider.reader();
        for event in events {
            if self.take(&mut *reader, Event::Data(event))? == Step::Last {
                return self.draft.finished();
            }
        }
        self.ended(&*reader)
    }

    fn take(&mut self, reader: &mut dyn Reader, event: Event) -> Result<Step, ModelError> {
        let step = match event {
            Event::Data(data) => reader.read(&data, &mut self.draft)?,
            Event::Done => Step::Last,
        };
        // An answer of another model is detected at its first event, so that the rest is not paid for.
        if self.draft.model.is_some() {
            self.target.check_answered(self.draft.model.as_ref())?;
        }
        Ok(step)
    }

    fn ended(self, reader: &dyn Reader) -> Result<Answer, ModelError> {
        match reader.ends_with_body() {
            true => self.draft.finished(),
            false => Err(ModelError::new(ErrorKind::Stream, "the answer ended without its last event")),
        }
    }
}

/// Returns the answer if it comes from the requested model. Gives an id to every tool call, and removes the key from all parts.
fn checked(mut answer: Answer, target: &Target, request: &Request) -> Result<Answer, ModelError> {
    target.check_answered(answer.model.as_ref())?;
    let turn = request.messages.len();
    for (at, part) in answer.parts.iter_mut().enumerate() {
        if part.kind == TOOL_CALL {
            let id = part.fields.iter_mut().find(|(name, value)| name == "id" && value.is_empty());
            id.into_iter().for_each(|(_, value)| *value = format!("call-{turn}-{at}"));
        }
        if let Some(key) = &target.key {
            part.text = key.removed_from(std::mem::take(&mut part.text));
            for (_, value) in &mut part.fields {
                *value = key.removed_from(std::mem::take(value));
            }
        }
    }
    if answer.is_estimated {
        answer.usage = estimate(request, &answer);
    }
    Ok(answer)
}

/// Lower bound of the average number of bytes per token. In most texts, the average is four.
const TOKEN_BYTES: u64 = 3;

/// Returns an upper estimate of the tokens in a text of `bytes`.
pub fn estimated_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(TOKEN_BYTES)
}

/// Returns the estimated tokens of a request: an upper estimate for its texts, and [`IMAGE_TOKENS`] for each image.
pub fn estimated_input(request: &Request) -> u64 {
    estimated_tokens(request.bytes()).saturating_add(request.images().saturating_mul(IMAGE_TOKENS))
}

/// Returns the estimated tokens of an exchange whose provider does not count them.
fn estimate(request: &Request, answer: &Answer) -> Usage {
    let answered = answer.parts.iter().map(|part| part.text.len()).sum();
    Usage { input: estimated_input(request), output: estimated_tokens(answered), ..answer.usage }
}

pub(crate) fn without_key(error: ModelError, target: &Target) -> ModelError {
    match &target.key {
        Some(key) => ModelError { message: key.removed_from(error.message), ..error },
        None => error,
    }
}

/// Returns the received bytes without the key, which a dishonest or careless provider could send back.
pub(crate) fn cleaned(received: Vec<u8>, target: &Target) -> Vec<u8> {
    let Some(key) = &target.key else { return received };
    match String::from_utf8(received) {
        Ok(text) => key.removed_from(text).into_bytes(),
        Err(error) => key.removed_from(String::from_utf8_lossy(error.as_bytes()).into_owned()).into_bytes(),
    }
}
