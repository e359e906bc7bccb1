//! The messages of people to a run, on JetStream.
//!
//! Each message is signed by its sender, who must be admitted to begin or to drive runs. A message stays in the stream until a
//! driver has recorded it or has found that it has no effect; one that is not signed so is removed. The first answer to a
//! question is stored, a later one is refused. Whoever sends a message also points to the run, because a run that waits has no
//! driver.

use crate::fleet::Fleet;
use crate::jetstream::{JetStream, Message as Stored, Publish, RequestError};
use crate::repetition::patiently;
use crate::roster::Place;
use crate::run_key::{Secrecy, TextKind};
use crate::statement::Role;
use crate::wire::Pointer;
use futures_util::StreamExt as _;
use glovebox_engine::driver::Fault;
use glovebox_engine::inbox::{Mail, Message, StopSignal, file_name};
use glovebox_journal::event::RunId;
use glovebox_journal::ports::PortError;
use glovebox_signing::envelope::PayloadType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::AbortHandle;

/// Who may send messages to runs.
const SENDERS: &[Role] = &[Role::Submit, Role::Drive];
/// The name of the request to continue a run that failed or was paused.
const RESUME_FILE: &str = "resume.json";
/// Time between two looks for messages whose notice was lost.
const LOOK: Duration = Duration::from_secs(5);
/// Maximum number of messages that are read at a time.
const MESSAGES_MAX: usize = 1000;

/// What a sender signs.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Letter {
    /// The id of the fleet.
    fleet: String,
    run: RunId,
    content: Content,
}

/// The content of a letter.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Content {
    /// A message for the driver.
    Message(Message),
    /// Continue the run, whose last record has this number. A letter that is stored again later names an earlier one.
    Resume(u64),
    /// One of these, encrypted with the key of the run.
    Encrypted(String),
}

/// The letters to a run.
#[derive(Default)]
struct MailList {
    /// The messages, with their numbers in the stream.
    messages: Vec<(u64, Message)>,
    /// The last record that the sender of a request to continue knew.
    resumes_after: Option<u64>,
}

/// The messages to a run, on the stream of a fleet.
pub struct NatsMail {
    fleet: Fleet,
    jetstream: JetStream,
    run: RunId,
    secrecy: Secrecy,
    found: UnboundedReceiver<Vec<(u64, Message)>>,
    looking: AbortHandle,
    /// The messages that are not ended, by name, with their numbers in the stream.
    open: BTreeMap<String, (u64, Message)>,
    arrived: Option<Vec<(u64, Message)>>,
    /// The last record that the sender of a request to continue knew. `None` if nobody asks to continue the run.
    resumes_after: Option<u64>,
    /// True if there were messages when this was opened.
    pub(crate) has_messages: bool,
}

impl Drop for NatsMail {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

impl NatsMail {
    /// Opens the messages to a run that this process begins.
    ///
    /// # Errors
    ///
    /// No server answers.
    pub async fn begin(fleet: &Fleet, run: &RunId) -> Result<Self, Fault> {
        Self::open(fleet, run, fleet.keys.checked(run).unwrap_or(Secrecy::Open)).await
    }

    /// Opens the messages to a run.
    pub(crate) async fn open(fleet: &Fleet, run: &RunId, secrecy: Secrecy) -> Result<Self, Fault> {
        let jetstream = fleet.jetstream.mail();
        let subjects = jetstream.name.mails(run);
        let mut notices = fleet.client.subscribe(subjects.clone()).await?;
        let MailList { messages: first, resumes_after } =
            patiently(fleet.patience, || read(fleet, run, &secrecy)).await?;
        let has_messages = !first.is_empty();
        let (sender, found) = unbounded_channel();
        let _open = sender.send(first);
        let (reader, of, secret) = (fleet.clone(), run.clone(), secrecy.clone());
        let looking = tokio::spawn(async move {
            loop {
                let _notice = tokio::time::timeout(LOOK, notices.next()).await;
                let Ok(MailList { messages, .. }) = read(&reader, &of, &secret).await else { continue };
                if sender.send(messages).is_err() {
                    return;
                }
            }
        });
        let (open, arrived, run, looking) = (BTreeMap::new(), None, run.clone(), looking.abort_handle());
        Ok(Self {
            fleet: fleet.clone(),
            jetstream,
            run,
            secrecy,
            found,
            looking,
            open,
            arrived,
            resumes_after,
            has_messages,
        })
    }

    /// Returns true if a person asks to continue the run, whose last record has this number.
    pub fn resumes(&self, last: u64) -> bool {
        self.resumes_after == Some(last)
    }

    /// Removes the request to continue the run, and requests to stop an earlier driver. Answers are kept.
    pub async fn forget_requests(&mut self) {
        let by = String::new;
        let requests = [
            Message::Stop { signal: StopSignal::Terminate },
            Message::Pause { by: by() },
            Message::Cancel { by: by() },
        ];
        for name in requests.iter().map(file_name).chain([RESUME_FILE.to_owned()]) {
            let subject = self.jetstream.name.mail(&self.run, &name);
            if let Ok(Some(Stored { seq, .. })) = self.jetstream.last(&subject).await {
                let _again = self.jetstream.delete(seq).await;
            }
        }
        if let Ok(MailList { messages, .. }) = read(&self.fleet, &self.run, &self.secrecy).await {
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

/// Reads all letters to a run. Those that nobody signed who may are removed, so that they keep no other one away.
async fn read(fleet: &Fleet, run: &RunId, secrecy: &Secrecy) -> Result<MailList, RequestError> {
    let jetstream = fleet.jetstream.mail();
    let subjects = jetstream.name.mails(run);
    let (mut letters, mut from) = (MailList::default(), 1);
    while letters.messages.len() < MESSAGES_MAX
        && let Some(Stored { seq, payload, .. }) = jetstream.next(&subjects, from).await?
    {
        from = seq + 1;
        match letter(fleet, run, secrecy, &payload).await {
            Ok(Content::Message(message)) => letters.messages.push((seq, message)),
            Ok(Content::Resume(last)) => letters.resumes_after = letters.resumes_after.max(Some(last)),
            // The servers may be away; the letter is read again.
            Err(PortError::Unavailable(_) | PortError::Ambiguous(_)) => {}
            Ok(Content::Encrypted(_)) => {
                tracing::warn!(%run, "a message to the run that is encrypted twice was removed");
                let _again = jetstream.delete(seq).await;
            }
            Err(error) => {
                tracing::warn!(%run, %error, "a message to the run was removed");
                let _again = jetstream.delete(seq).await;
            }
        }
    }
    Ok(letters)
}

/// Opens a letter to a run.
async fn letter(fleet: &Fleet, run: &RunId, secrecy: &Secrecy, payload: &[u8]) -> Result<Content, PortError> {
    let corrupt = |found: String| PortError::Corrupt { what: "a message".to_owned(), found };
    let signed = fleet.open(PayloadType::FLEET_MESSAGE, payload, Place::now(), SENDERS, 0).await?;
    let Letter { fleet: of_fleet, run: of, content } =
        serde_json::from_slice(&signed.payload).map_err(|error| corrupt(error.to_string()))?;
    if of_fleet != fleet.id()? || of != *run {
        return Err(corrupt(format!("it is one to run `{of}`, or of another fleet")));
    }
    match (secrecy.key(), content) {
        (None, content) => Ok(content),
        (Some(key), Content::Encrypted(text)) => {
            let opened = key.decrypt_text(TextKind::Message, &text).map_err(|error| corrupt(error.to_string()))?;
            serde_json::from_slice(&opened).map_err(|error| corrupt(error.to_string()))
        }
        (Some(_), _) => Err(corrupt("it is not encrypted, and its run is".to_owned())),
    }
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
        self.post(run, &file_name(message), Content::Message(message.clone())).await
    }

    /// Asks to continue a run that failed or was paused, whose last record has the number `last`.
    ///
    /// # Errors
    ///
    /// As [`Fleet::send`].
    pub async fn resume(&self, run: &RunId, last: u64) -> Result<Sent, RequestErrorText> {
        self.post(run, RESUME_FILE, Content::Resume(last)).await
    }

    async fn post(&self, run: &RunId, name: &str, content: Content) -> Result<Sent, RequestErrorText> {
        let failed = |error: &dyn std::error::Error| RequestErrorText(error.to_string());
        let fleet = self.id().map_err(|error| failed(&error))?.to_owned();
        let secrecy = self.keys.kept(run);
        let unknown =
            || RequestErrorText(format!("run `{run}` was not read, so it is not known whether it is encrypted"));
        let content = match secrecy.ok_or_else(unknown)?.key() {
            None => content,
            Some(key) => {
                let text = serde_json::to_vec(&content).map_err(|error| failed(&error))?;
                Content::Encrypted(key.encrypt_text(TextKind::Message, &text))
            }
        };
        let letter = Letter { fleet, run: run.clone(), content };
        let letter = serde_json::to_vec(&letter).map_err(|error| failed(&error))?;
        let payload = self.sign(PayloadType::FLEET_MESSAGE, &letter).map_err(|error| failed(&error))?.into();
        let letter = [Publish { subject: self.jetstream.name.mail(run, name), payload }];
        let sent = match self.jetstream.mail().append(&letter, Some(0), "").await {
            Ok(_) => Sent::Stored,
            Err(RequestError::WrongHead) => Sent::Earlier,
            Err(error) => return Err(failed(&error)),
        };
        let pointer = Pointer::new(run, 1, None);
        let pointer = [Publish { subject: self.jetstream.name.drive(run), payload: pointer.payload() }];
        self.jetstream.append(&pointer, None, "").await.map_err(|error| failed(&error))?;
        Ok(sent)
    }
}

/// Why the servers did not accept a message.
#[derive(Debug, thiserror::Error)]
#[error("the servers did not accept the message: {0}")]
pub struct RequestErrorText(String);
