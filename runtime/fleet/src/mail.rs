//! The messages of people to a run, on JetStream.
//!
//! A message stays in the stream until a driver has recorded it or has found that it has no effect. The first answer to a
//! question is stored, a later one is refused. Whoever sends a message also points to the run, because a run that waits has no
//! driver.

use crate::fleet::Fleet;
use crate::jetstream::{JetStream, Message as Stored, Publish, RequestError};
use crate::wire::Pointer;
use futures_util::StreamExt as _;
use glovebox_engine::driver::Fault;
use glovebox_engine::inbox::{Mail, Message, file_name};
use glovebox_journal::event::RunId;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::AbortHandle;

/// Time between two looks for messages whose notice was lost.
const LOOK: Duration = Duration::from_secs(5);
/// Maximum number of messages that are read at a time.
const MESSAGES_MAX: usize = 1000;

/// The messages to a run, on the stream of a fleet.
pub struct NatsMail {
    jetstream: JetStream,
    run: RunId,
    found: UnboundedReceiver<Vec<(u64, Message)>>,
    looking: AbortHandle,
    /// The messages that are not ended, by name, with their numbers in the stream.
    open: BTreeMap<String, (u64, Message)>,
    arrived: Option<Vec<(u64, Message)>>,
}

impl Drop for NatsMail {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

impl NatsMail {
    /// Opens the messages to a run.
    ///
    /// # Errors
    ///
    /// No server answers.
    pub async fn open(fleet: &Fleet, run: &RunId) -> Result<Self, Fault> {
        let jetstream = fleet.jetstream.mail();
        let subjects = jetstream.name.mails(run);
        let mut notices = fleet.client.subscribe(subjects.clone()).await?;
        let first = read(&jetstream, &subjects).await?;
        let (sender, found) = unbounded_channel();
        let _open = sender.send(first);
        let reader = jetstream.clone();
        let looking = tokio::spawn(async move {
            loop {
                let _notice = tokio::time::timeout(LOOK, notices.next()).await;
                let Ok(messages) = read(&reader, &subjects).await else { continue };
                if sender.send(messages).is_err() {
                    return;
                }
            }
        });
        let (open, arrived, run) = (BTreeMap::new(), None, run.clone());
        Ok(Self { jetstream, run, found, looking: looking.abort_handle(), open, arrived })
    }

    /// Removes requests to pause and to cancel an earlier driver. Answers are kept.
    pub async fn forget_requests(&mut self) {
        let by = String::new;
        for name in [Message::Stop { by: by() }, Message::Pause { by: by() }, Message::Cancel { by: by() }] {
            let subject = self.jetstream.name.mail(&self.run, &file_name(&name));
            if let Ok(Some(Stored { seq, .. })) = self.jetstream.last(&subject).await {
                let _again = self.jetstream.delete(seq).await;
            }
        }
        if let Ok(messages) = read(&self.jetstream, &self.jetstream.name.mails(&self.run)).await {
            while self.found.try_recv().is_ok() {}
            self.arrived = Some(messages);
        }
    }

    fn take(&mut self, messages: Vec<(u64, Message)>) {
        self.open = messages.into_iter().map(|(seq, message)| (file_name(&message), (seq, message))).collect();
    }
}

impl Mail for NatsMail {
    async fn arrival(&mut self) {
        if self.arrived.is_some() {
            return;
        }
        match self.found.recv().await {
            Some(messages) => self.arrived = Some(messages),
            None => std::future::pending().await,
        }
    }

    fn messages(&mut self) -> Vec<Message> {
        let mut latest = self.arrived.take();
        while let Ok(messages) = self.found.try_recv() {
            latest = Some(messages);
        }
        if let Some(messages) = latest {
            self.take(messages);
        }
        self.open.values().map(|(_, message)| message.clone()).collect()
    }

    fn done(&mut self, name: &str) {
        if let Some((seq, _)) = self.open.remove(name) {
            let jetstream = self.jetstream.clone();
            tokio::spawn(async move { jetstream.delete(seq).await });
        }
    }
}

/// Reads all messages to a run. Those of another form are left out.
async fn read(jetstream: &JetStream, subjects: &str) -> Result<Vec<(u64, Message)>, RequestError> {
    let (mut messages, mut from) = (Vec::new(), 1);
    while messages.len() < MESSAGES_MAX
        && let Some(Stored { seq, payload, .. }) = jetstream.next(subjects, from).await?
    {
        messages.extend(serde_json::from_slice(&payload).ok().map(|message| (seq, message)));
        from = seq + 1;
    }
    Ok(messages)
}

/// The result of sending a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    /// The message is stored, and a driver gets it.
    Stored,
    /// A message with the same name is there already, such as the first answer to a question.
    Earlier,
}

impl Fleet {
    /// Sends a message to a run, and has the run driven.
    ///
    /// # Errors
    ///
    /// No server answers, or the stream does not exist.
    pub async fn send(&self, run: &RunId, message: &Message) -> Result<Sent, RequestErrorText> {
        let payload = serde_json::to_vec(message).map_err(|error| RequestErrorText(error.to_string()))?;
        let subject = self.jetstream.name.mail(run, &file_name(message));
        let stored = self.jetstream.mail().append(&[Publish { subject, payload: payload.into() }], Some(0), "").await;
        let sent = match stored {
            Ok(_) => Sent::Stored,
            Err(RequestError::WrongHead) => Sent::Earlier,
            Err(error) => return Err(RequestErrorText(error.to_string())),
        };
        self.point(run, false).await?;
        Ok(sent)
    }

    /// Has a run driven. With `resumes`, a run that failed or was paused is continued.
    ///
    /// # Errors
    ///
    /// As [`Fleet::send`].
    pub async fn point(&self, run: &RunId, resumes: bool) -> Result<(), RequestErrorText> {
        let pointer = Pointer { resumes, ..Pointer::new(run, 1, None) };
        let message = Publish { subject: self.jetstream.name.drive(run), payload: pointer.payload() };
        let pointed = self.jetstream.append(&[message], None, "").await;
        pointed.map(drop).map_err(|error| RequestErrorText(error.to_string()))
    }
}

/// Why the servers did not accept a message.
#[derive(Debug, thiserror::Error)]
#[error("the servers did not accept the message: {0}")]
pub struct RequestErrorText(String);
