//! Work queues on the stream: durable consumers, which several processes pull from.
//!
//! A message that was pulled is leased. If its holder does not extend the lease in time, the message is delivered again,
//! perhaps to another process. A lease saves work and decides nothing: who may append is decided by the journal.

use crate::jetstream::{JetStream, RequestError};
use crate::lease::Lease;
use bytes::Bytes;
use serde::Serialize;
use serde::de::IgnoredAny;
use std::time::Duration;
use tokio::time::Instant;

/// How long one request for a message stays on the server at most. A request that the server forgot is repeated after this time.
const PULL_WAIT_MAX: Duration = Duration::from_secs(5);
/// Additional time for the answer of a request.
const PULL_SLACK: Duration = Duration::from_secs(2);

/// A queue of messages.
#[derive(Debug, Clone)]
pub(crate) struct Consumer {
    name: String,
    lease: Lease,
}

/// A leased message of a queue.
#[derive(Debug, Clone)]
pub(crate) struct Leased {
    pub(crate) payload: Bytes,
    /// The subject of answers about the message.
    answers: String,
    /// Number of times that the message was delivered, this time included.
    pub(crate) deliveries: u64,
    /// When the message was asked for. Its lease began later.
    pub(crate) since: Instant,
}

#[cfg(test)]
impl Leased {
    /// Returns a message that no server has, and whose lease began at this time.
    pub(crate) fn for_test(since: Instant) -> Self {
        Self { payload: Bytes::new(), answers: String::new(), deliveries: 1, since }
    }
}

#[derive(Serialize)]
struct ConsumerRequest<'a> {
    stream_name: &'a str,
    config: ConsumerConfig<'a>,
}

#[derive(Serialize)]
struct ConsumerConfig<'a> {
    durable_name: &'a str,
    filter_subject: &'a str,
    ack_policy: &'a str,
    deliver_policy: &'a str,
    /// In nanoseconds.
    ack_wait: u64,
    max_deliver: i64,
    max_ack_pending: i64,
}

#[derive(Serialize)]
struct Pull {
    batch: u32,
    /// In nanoseconds.
    expires: u64,
}

impl JetStream {
    /// Opens the queue with the messages of subjects that match a pattern. It is created if it does not exist.
    /// Messages that were pulled from it have this lease.
    pub(crate) async fn consumer(&self, name: &str, filter: &str, lease: Lease) -> Result<Consumer, RequestError> {
        let stream = self.name.stream();
        let config = ConsumerConfig {
            durable_name: name,
            filter_subject: filter,
            ack_policy: "explicit",
            deliver_policy: "all",
            ack_wait: nanoseconds(lease.duration()),
            max_deliver: -1,
            max_ack_pending: -1,
        };
        let request = ConsumerRequest { stream_name: stream, config };
        let _created: IgnoredAny = self.call(&format!("CONSUMER.CREATE.{stream}.{name}.{filter}"), &request).await?;
        Ok(Consumer { name: name.to_owned(), lease })
    }

    /// Takes the next message of a queue. `None` if there was none for some seconds.
    pub(crate) async fn pull(&self, consumer: &Consumer) -> Result<Option<Leased>, RequestError> {
        let request = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", self.name.stream(), consumer.name);
        // Whoever asked long ago could have lost the lease already when the message arrives.
        let (since, wait) = (Instant::now(), consumer.lease.third().min(PULL_WAIT_MAX));
        let pull = Pull { batch: 1, expires: nanoseconds(wait) };
        let body = serde_json::to_vec(&pull).map_err(|error| RequestError::Refused(error.to_string()))?;
        let message = self.request_stored(request, body.into(), wait + PULL_SLACK).await?;
        let Some(answers) = message.reply.filter(|_| message.status.is_none()) else { return Ok(None) };
        // $JS.ACK.STREAM.CONSUMER.DELIVERIES.…, with two more tokens in front of the stream in some servers.
        let tokens: Vec<&str> = answers.split('.').collect();
        let at = if tokens.len() > 9 { 6 } else { 4 };
        let deliveries = tokens.get(at).and_then(|count| count.parse().ok()).unwrap_or(1);
        Ok(Some(Leased { payload: message.payload, answers: answers.to_string(), deliveries, since }))
    }

    /// Ends a lease for good: the message is not delivered again.
    pub(crate) async fn done(&self, leased: &Leased) -> Result<(), RequestError> {
        self.request(leased.answers.clone(), Bytes::from_static(b"+ACK"), self.answer_wait).await.map(drop)
    }

    /// Extends a lease. Returns an error if no server confirmed it.
    pub(crate) async fn extend(&self, leased: &Leased) -> Result<(), RequestError> {
        self.request(leased.answers.clone(), Bytes::from_static(b"+WPI"), self.answer_wait).await.map(drop)
    }

    /// Gives a message back: it is delivered again after `delay`.
    pub(crate) async fn give_back(&self, leased: &Leased, delay: Duration) -> Result<(), RequestError> {
        let text = format!("-NAK {{\"delay\": {}}}", nanoseconds(delay));
        self.request(leased.answers.clone(), text.into(), self.answer_wait).await.map(drop)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
