//! Forwards a request to the provider and reads the answer.
//!
//! The answer is read completely and checked before the program gets it. An answer of another model or a truncated answer is an error.
//! The request is sent only once, because the program's own client retries.

use super::{Question, whole};
use crate::ask::{AnswerReader, AskStep, Exchange, cleaned, estimated_tokens, lost_usage, read_refusal, without_key};
use crate::chat::{Answer, Usage};
use crate::deadline::CallDeadline;
use crate::error::{ErrorKind, ModelError};
use crate::http::{Post, Reply};
use crate::provider::Draft;
use crate::target::Target;
use glovebox_schema::document;
use std::time::Duration;

/// Maximum length of an answer, in bytes.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// The result of a forwarded request.
#[derive(Debug)]
pub struct ForwardResult {
    /// The bytes sent and received, without the key.
    pub exchange: Exchange,
    /// Wait that the provider asks for before the next request.
    pub retry_after: Option<Duration>,
    /// Estimated cost of a failed request.
    pub lost: Usage,
    /// The answer, or why there is none.
    pub answered: Result<Answer, ModelError>,
}

/// Forwards a request. `on_step` is called with each step of reading a streamed answer. If it returns false for received bytes, the
/// call ends.
pub fn forward(
    target: &Target,
    question: &Question,
    deadline: CallDeadline<'_>,
    mut on_step: impl FnMut(AskStep<'_>) -> bool,
) -> ForwardResult {
    let mut exchange = Exchange { sent: question.body(), ..Exchange::default() };
    let mut retry_after = None;
    let answered = target.check().and_then(|()| {
        let mut reply = send(target, question, &exchange.sent, deadline)?;
        retry_after = reply.retry_after;
        if reply.status != 200 {
            return Err(read_refusal(target, &mut reply, &mut exchange.received));
        }
        exchange.is_begun = true;
        let receiving = AnswerReader { target, provider: target.family.provider(), draft: Draft::default() };
        if question.is_streamed {
            return receiving.read(&mut reply.body, &mut exchange.received, ANSWER_BYTES_MAX, &mut on_step);
        }
        read_whole(target, &mut reply, &mut exchange.received)?;
        let json = document::read(&exchange.received);
        let json = json
            .map_err(|error| ModelError::new(ErrorKind::Stream, format_args!("the answer cannot be read: {error}")))?;
        receiving.read_events(whole::events(target.family, json))
    });
    let answered = answered.and_then(|answer| target.check_answered(answer.model.as_ref()).map(|()| answer));
    let answered = answered.map(|answer| if answer.is_estimated { estimated(answer, &exchange) } else { answer });
    let lost = match &answered {
        Err(_) if exchange.is_begun => {
            lost_usage(estimated_tokens(exchange.sent.len()), exchange.received.len(), question.output_tokens_max)
        }
        _ => Usage::default(),
    };
    exchange.received = cleaned(exchange.received, target);
    ForwardResult { exchange, retry_after, lost, answered: answered.map_err(|error| without_key(error, target)) }
}

fn send<'p>(
    target: &Target,
    question: &Question,
    body: &[u8],
    deadline: CallDeadline<'p>,
) -> Result<Reply<'p>, ModelError> {
    let provider = target.family.provider();
    let mut headers = provider.headers(target.key.as_ref());
    headers.extend(
        question
            .headers
            .iter()
            .map(|header| crate::provider::Header { name: header.name, value: header.value.to_owned() }),
    );
    let post = Post {
        endpoint: &target.endpoint,
        authorities: &target.authorities,
        path: question.path.to_owned(),
        headers,
        body,
    };
    post.send(CallDeadline { idle: target.timeout.min(deadline.idle), ..deadline })
}

fn read_whole(target: &Target, reply: &mut Reply<'_>, received: &mut Vec<u8>) -> Result<(), ModelError> {
    while reply.body.read(received)? {
        if received.len() > ANSWER_BYTES_MAX {
            let message = format!("the answer of `{}` is longer than {} MiB", target.model, ANSWER_BYTES_MAX >> 20);
            return Err(ModelError::new(ErrorKind::AnswerTooLarge, message));
        }
    }
    Ok(())
}

/// Returns the answer with estimated tokens if the provider did not count them.
fn estimated(answer: Answer, exchange: &Exchange) -> Answer {
    let output = answer.parts.iter().map(|part| part.text.len()).sum();
    let usage =
        Usage { input: estimated_tokens(exchange.sent.len()), output: estimated_tokens(output), ..answer.usage };
    Answer { usage, ..answer }
}
