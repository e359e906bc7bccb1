//! Requests to JetStream over the core client: reads by the stream's leader, appends under a compare-and-set, and atomic
//! batches.
//!
//! Each function is one attempt. It says whether the server refused it or gave no usable answer, in which case it may or
//! may not have been executed. What follows from that is the caller's to decide; nothing here is repeated.

use crate::subjects::FleetName;
use async_nats::header::{
    NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL, NATS_BATCH_ID, NATS_BATCH_SEQUENCE,
    NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_EXPECTED_STREAM, NATS_SEQUENCE, NATS_TIME_STAMP,
};
use async_nats::{Client, HeaderMap, RequestErrorKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// The server has no message that was asked for.
const NO_MESSAGE: u32 = 10037;
/// The server has no such stream.
const NO_STREAM: u32 = 10059;
/// The head of the subject is not the expected one.
const WRONG_HEAD: [u32; 2] = [10071, 10164];
/// Most messages of a batch, the last one included.
pub(crate) const BATCH_MAX: usize = 1000;

/// Most messages of one read.
const READ_MAX: usize = 200;

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// No usable answer came. The request may or may not have been executed.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// Nobody receives the request: the stream does not exist or has no leader, or JetStream is off. Nothing was stored.
    #[error("no server has the stream")]
    NoReceiver,
    /// Another message is the head of the subject, and nothing was stored.
    #[error("the head of the subject has moved")]
    WrongHead,
    /// The stream does not exist.
    #[error("the stream does not exist")]
    NoStream,
    /// The user may not send the request, and nothing was stored.
    #[error("the server does not let this user do it: {0}")]
    Forbidden(String),
    /// The server refused the request, and nothing was stored.
    #[error("refused: {0}")]
    Refused(String),
}

/// The error in an answer of the server.
#[derive(Debug, Deserialize)]
struct ApiError {
    code: u16,
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

impl From<ApiError> for RequestError {
    fn from(error: ApiError) -> Self {
        let text = format!("{} (error {})", error.description, error.err_code);
        match error {
            ApiError { err_code: NO_STREAM, .. } => Self::NoStream,
            ApiError { err_code, .. } if WRONG_HEAD.contains(&err_code) => Self::WrongHead,
            // No leader, a head that is not decided yet, too many batches, a batch that lost a message: try again.
            ApiError { code: 408 | 503, .. } | ApiError { err_code: 10163 | 10176 | 10210, .. } => Self::NoAnswer(text),
            _ => Self::Refused(text),
        }
    }
}

/// An answer of the server: a result or an error.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer<T> {
    Refused { error: ApiError },
    Done(T),
}

/// A stored message.
#[derive(Debug)]
pub(crate) struct Message {
    /// Its sequence number in the stream.
    pub(crate) seq: u64,
    /// When the server stored it.
    pub(crate) time: Timestamp,
    /// Its content.
    pub(crate) payload: Vec<u8>,
}

#[derive(Deserialize)]
struct GetAnswer {
    message: RawMessage,
}

#[derive(Deserialize)]
struct RawMessage {
    seq: u64,
    time: Timestamp,
    #[serde(default)]
    data: String,
}

#[derive(Deserialize)]
struct PublishAnswer {
    seq: u64,
}

/// Selects the message of a read.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Select<'a> {
    Last { last_by_subj: &'a str },
    Next { seq: u64, next_by_subj: &'a str },
    At { seq: u64 },
    Batch { seq: u64, next_by_subj: &'a str, batch: usize },
}

/// A message to publish.
#[derive(Debug, Clone)]
pub(crate) struct Publish {
    pub(crate) subject: String,
    pub(crate) payload: Bytes,
}

/// One stream of a server.
#[derive(Clone)]
pub(crate) struct JetStream {
    client: Client,
    pub(crate) name: FleetName,
    /// The name of the stream on the server.
    pub(crate) stream: String,
    pub(crate) answer_wait: Duration,
    violation: Violation,
}

/// The last message that the server did not let this user publish. It has no answer: the server says so on the side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Violation(Arc<Mutex<Option<String>>>);

impl Violation {
    /// Notes what the server said.
    pub(crate) fn note(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    /// Returns what the server said if it was about this subject.
    fn of(&self, subject: &str) -> Option<String> {
        let quoted = format!("\"{}\"", subject.to_lowercase());
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        said.filter(|said| said.to_lowercase().contains(&quoted))
    }
}

impl JetStream {
    /// Uses the stream with the journals of a fleet. A request without an answer within `answer_wait` has none.
    pub(crate) fn new(client: Client, name: FleetName, answer_wait: Duration, violation: Violation) -> Self {
        let stream = name.stream().to_owned();
        Self { client, name, stream, answer_wait, violation }
    }

    /// Returns the stream with the messages of people to runs.
    pub(crate) fn mail(&self) -> Self {
        Self { stream: self.name.mail_stream(), ..self.clone() }
    }

    /// Returns the last message of a subject, as the stream's leader knows it.
    pub(crate) async fn last(&self, subject: &str) -> Result<Option<Message>, RequestError> {
        self.get(Select::Last { last_by_subj: subject }).await
    }

    /// Returns the first message of a subject whose sequence number is at least `seq`.
    pub(crate) async fn next(&self, subject: &str, seq: u64) -> Result<Option<Message>, RequestError> {
        self.get(Select::Next { seq, next_by_subj: subject }).await
    }

    /// Returns the message with a sequence number.
    pub(crate) async fn at(&self, seq: u64) -> Result<Option<Message>, RequestError> {
        self.get(Select::At { seq }).await
    }

    /// Returns messages of a subject in order, from number `from` of the stream on. A replica that is behind may answer: there
    /// may be more messages after the last one, but none is left out before it. An empty list means that none was received.
    pub(crate) async fn batch(&self, subject: &str, from: u64) -> Result<Vec<Message>, RequestError> {
        let no_answer = |error: &dyn std::error::Error| RequestError::NoAnswer(error.to_string());
        let query = Select::Batch { seq: from, next_by_subj: subject, batch: READ_MAX };
        let query = serde_json::to_vec(&query).map_err(|error| RequestError::Refused(error.to_string()))?;
        let inbox = self.client.new_inbox();
        let mut answers = self.client.subscribe(inbox.clone()).await.map_err(|error| no_answer(&error))?;
        let request = format!("$JS.API.DIRECT.GET.{}", self.stream);
        let sent = self.client.publish_with_reply(request, inbox, query.into()).await;
        sent.map_err(|error| no_answer(&error))?;
        let mut messages = Vec::new();
        // The last answer has a status instead of a message.
        while let Ok(Some(answer)) = timeout(self.answer_wait, answers.next()).await
            && answer.status.is_none()
        {
            let header = |name| answer.headers.as_ref().and_then(|headers| headers.get(name));
            let seq = header(NATS_SEQUENCE).and_then(|seq| seq.as_str().parse().ok());
            let time = header(NATS_TIME_STAMP).and_then(|time| time.as_str().parse().ok());
            let (Some(seq), Some(time)) = (seq, time) else { break };
            messages.push(Message { seq, time, payload: answer.payload.into() });
        }
        Ok(messages)
    }

    async fn get(&self, select: Select<'_>) -> Result<Option<Message>, RequestError> {
        // Only the leader of the stream answers this request. A direct get may be answered by a replica that is behind.
        let request = format!("STREAM.MSG.GET.{}", self.stream);
        let answer: Answer<GetAnswer> = self.api(&request, &select).await?;
        let message = match answer {
            Answer::Refused { error: ApiError { err_code: NO_MESSAGE, .. } } => return Ok(None),
            Answer::Refused { error } => return Err(error.into()),
            Answer::Done(answer) => answer.message,
        };
        let payload = STANDARD.decode(message.data);
        let payload = payload.map_err(|error| RequestError::NoAnswer(format!("a message is not base64: {error}")))?;
        Ok(Some(Message { seq: message.seq, time: message.time, payload }))
    }

    /// Sends a request to the JetStream API and returns the result, with the errors that every request may have.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        request: &str,
        body: &impl Serialize,
    ) -> Result<T, RequestError> {
        match self.api(request, body).await? {
            Answer::Refused { error } => Err(error.into()),
            Answer::Done(result) => Ok(result),
        }
    }

    async fn api<T: DeserializeOwned>(&self, request: &str, body: &impl Serialize) -> Result<T, RequestError> {
        let body = serde_json::to_vec(body).map_err(|error| RequestError::Refused(error.to_string()))?;
        self.ask(Publish { subject: format!("$JS.API.{request}"), payload: body.into() }, HeaderMap::new()).await
    }

    /// Stores messages in one atomic batch, and returns the number of the last one. With `head`, they are stored only if
    /// the last message on the subject of the last one is number `head` of the stream; 0 for a subject without messages.
    ///
    /// `batch` must be a new id for each call: a batch of an earlier call may still be open on the server.
    pub(crate) async fn append(
        &self,
        messages: &[Publish],
        head: Option<u64>,
        batch: &str,
    ) -> Result<u64, RequestError> {
        let nothing = || RequestError::Refused("a batch without messages".to_owned());
        let (last, before) = messages.split_last().ok_or_else(nothing)?;
        for (index, Publish { subject, payload }) in before.iter().cloned().enumerate() {
            let headers = in_batch(HeaderMap::new(), batch, index + 1);
            let sent = self.client.publish_with_headers(subject, headers, payload).await;
            sent.map_err(|error| RequestError::NoAnswer(error.to_string()))?;
        }
        let mut headers = HeaderMap::new();
        if !before.is_empty() {
            headers = in_batch(headers, batch, messages.len());
            headers.insert(NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL);
        }
        if let Some(head) = head {
            headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, head.to_string());
        }
        headers.insert(NATS_EXPECTED_STREAM, self.stream.as_str());
        self.publish(last.clone(), headers).await
    }

    async fn publish(&self, message: Publish, headers: HeaderMap) -> Result<u64, RequestError> {
        match self.ask(message, headers).await? {
            Answer::Refused { error } => Err(ApiError::into(error)),
            Answer::Done(PublishAnswer { seq }) => Ok(seq),
        }
    }

    async fn ask<T: DeserializeOwned>(&self, message: Publish, headers: HeaderMap) -> Result<T, RequestError> {
        let request = async_nats::Request::new().payload(message.payload).headers(headers);
        let answer = self.send(message.subject, request, self.answer_wait).await?;
        serde_json::from_slice(&answer.payload)
            .map_err(|error| RequestError::NoAnswer(format!("an answer that cannot be read: {error}")))
    }
}

impl JetStream {
    /// Removes a message from the stream.
    pub(crate) async fn delete(&self, seq: u64) -> Result<(), RequestError> {
        let request = format!("STREAM.MSG.DELETE.{}", self.stream);
        let _deleted: serde::de::IgnoredAny =
            self.call(&request, &serde_json::json!({ "seq": seq, "no_erase": true })).await?;
        Ok(())
    }

    /// Sends a message and returns the first answer to it.
    pub(crate) async fn request(
        &self,
        subject: String,
        payload: Bytes,
        wait: Duration,
    ) -> Result<async_nats::Message, RequestError> {
        self.send(subject, async_nats::Request::new().payload(payload), wait).await
    }

    /// As [`JetStream::request`], for an answer that keeps its own subject.
    pub(crate) async fn request_stored(
        &self,
        subject: String,
        payload: Bytes,
        wait: Duration,
    ) -> Result<async_nats::Message, RequestError> {
        let request = async_nats::Request::new().payload(payload).inbox(self.client.new_inbox());
        self.send(subject, request, wait).await
    }

    async fn send(
        &self,
        subject: String,
        request: async_nats::Request,
        wait: Duration,
    ) -> Result<async_nats::Message, RequestError> {
        let (request, asked) = (request.timeout(Some(wait)), subject.clone());
        self.client.send_request(subject, request).await.map_err(|error| match error.kind() {
            RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                RequestError::Refused(error.to_string())
            }
            RequestErrorKind::NoResponders => RequestError::NoReceiver,
            _ => match self.violation.of(&asked) {
                Some(said) => RequestError::Forbidden(said),
                None => RequestError::NoAnswer(error.to_string()),
            },
        })
    }
}

/// Returns the headers of message `number` of a batch.
fn in_batch(mut headers: HeaderMap, batch: &str, number: usize) -> HeaderMap {
    headers.insert(NATS_BATCH_ID, batch);
    headers.insert(NATS_BATCH_SEQUENCE, number.to_string());
    headers
}
