//! A message to a run as a file: JSON with a MAC of the user's key, bound to the run.
//!
//! A stage cannot reach the folder. The MAC is a second protection: a message of a process that can write there but does not
//! have the key is ignored.

use super::GivenSteering;
use cap_std::fs::Dir;
use glovebox_journal::event::{AnsweredBy, QuestionId, RunId};
use glovebox_record::Digest;
use glovebox_workspace::regular_file;
use glovebox_workspace::user_key::UserKey;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::io::Read;

/// The folder of messages in the run directory.
pub const INBOX_DIR: &str = "inbox";
const PURPOSE: &str = "glovebox 2026 message to a run v1";
const MESSAGE_BYTES_MAX: u64 = 256 * 1024;
const STOP_FILE: &str = "stop.json";
const PAUSE_FILE: &str = "pause.json";
const CANCEL_FILE: &str = "cancel.json";

/// A message to the process that drives a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Message {
    /// An answer to a question.
    Answer(GivenAnswer),
    /// A message for the agents of a node.
    Steer(GivenSteering),
    /// Asks the run to stop now. A resume continues it.
    Stop {
        /// The signal that the process that follows the run got.
        signal: StopSignal,
    },
    /// Stops the run after the stage in progress. A resume continues it.
    Pause {
        /// The name of the person.
        by: String,
    },
    /// Stops the run for good.
    Cancel {
        /// The name of the person.
        by: String,
    },
}

/// A signal that stops a run so that a resume can continue it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopSignal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM, or a reason of the process itself.
    Terminate,
}

impl StopSignal {
    /// Returns the signal as the record of the stop names it.
    pub const fn recorded(self) -> &'static str {
        match self {
            Self::Interrupt => "signal INT",
            Self::Terminate => "signal TERM",
        }
    }
}

impl Message {
    /// Returns false for an answer that names a source which writes no messages.
    pub(super) fn is_of_a_person(&self) -> bool {
        match self {
            Self::Answer(given) => matches!(given.how, AnsweredBy::Command | AnsweredBy::Http | AnsweredBy::Mcp),
            Self::Steer(_) | Self::Stop { .. } | Self::Pause { .. } | Self::Cancel { .. } => true,
        }
    }
}

/// An answer, as a person gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenAnswer {
    /// The id of the question.
    pub question: QuestionId,
    /// The text of the answer.
    pub value: String,
    /// The comment of the person. May be empty.
    pub text: String,
    /// The name of the person.
    pub by: String,
    /// How the answer was given. A message in the folder has [`AnsweredBy::Command`], [`AnsweredBy::Http`] or
    /// [`AnsweredBy::Mcp`]; one with another value is ignored.
    pub how: AnsweredBy,
    /// When the answer was given.
    pub at: Timestamp,
}

impl GivenAnswer {
    /// Creates an empty answer to a question.
    pub fn none(question: &QuestionId, how: AnsweredBy, at: Timestamp) -> Self {
        Self { question: question.clone(), value: String::new(), text: String::new(), by: String::new(), how, at }
    }
}

/// Returns the name of the file with the answer to a question.
pub fn answer_file_name(question: &QuestionId) -> String {
    format!("answer-{}.json", Digest::hash(question.as_str().as_bytes()).hex())
}

/// Returns the name of a message's file. Two answers to one question have the same name, so only one of them can be in the folder.
pub fn file_name(message: &Message) -> String {
    match message {
        Message::Answer(given) => answer_file_name(&given.question),
        Message::Steer(given) => given.file_name(),
        Message::Stop { .. } => STOP_FILE.to_owned(),
        Message::Pause { .. } => PAUSE_FILE.to_owned(),
        Message::Cancel { .. } => CANCEL_FILE.to_owned(),
    }
}

/// Removes requests to an earlier process of the run. Answers are kept.
pub(crate) fn forget_requests(run: &Dir) {
    for name in [STOP_FILE, PAUSE_FILE, CANCEL_FILE] {
        let _not_there = run.remove_file(format!("{INBOX_DIR}/{name}"));
    }
}

/// Returns the content of a message's file.
pub fn seal(message: &Message, run: &RunId, key: &UserKey) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(message)?;
    Ok(format!("{}\n{text}\n", mac(&text, run, key)))
}

/// Reads a message. `None` if its form or its MAC is not valid, or if the file does not have the name of the message.
pub(super) fn open(folder: &Dir, name: &str, run: &RunId, key: Option<&UserKey>) -> Option<Message> {
    // A symbolic link is refused, and so is a named pipe, which would block the reader.
    if !folder.symlink_metadata(name).ok()?.is_file() {
        return None;
    }
    let file = regular_file::open_in(folder, name).ok()?;
    let mut content = String::new();
    file.take(MESSAGE_BYTES_MAX).read_to_string(&mut content).ok()?;
    let (found, text) = content.trim_end().split_once('\n')?;
    // The comparison takes constant time.
    let is_own = blake3::Hash::from_hex(found).ok()? == mac(text, run, key?);
    let message = serde_json::from_str(text).ok().filter(|_| is_own)?;
    (file_name(&message) == name).then_some(message)
}

fn mac(text: &str, run: &RunId, key: &UserKey) -> blake3::Hash {
    key.mac(PURPOSE, format!("{run}\n{text}").as_bytes())
}
