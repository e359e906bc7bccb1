//! The part of earlier conversations that the model of a stage gets, and the conversation that the stage continues (spec §5.4).
//!
//! Each attempt that may ask a model has a session in its record. The conversation itself is an artifact of the attempt:
//! the messages to and from the model, as the host saw them.

use crate::identity::AttemptId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

pub use crate::identity::ThreadId;

/// The schema version of [`Conversation`] as a file.
pub const CONVERSATION_SCHEMA_VERSION: u32 = 1;

/// The part of earlier conversations that the model of a stage gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Fidelity {
    /// The whole conversation of the thread.
    #[serde(rename = "full")]
    Full,
    /// Only the goal and the run's id.
    #[serde(rename = "truncate")]
    Truncate,
    /// The finished stages, their outcomes and the context.
    #[default]
    #[serde(rename = "compact")]
    Compact,
    /// A brief summary.
    #[serde(rename = "summary:low")]
    SummaryLow,
    /// A summary with the last outcomes and the context.
    #[serde(rename = "summary:medium")]
    SummaryMedium,
    /// A detailed summary.
    #[serde(rename = "summary:high")]
    SummaryHigh,
}

impl Fidelity {
    /// All fidelities, in the order of the specification.
    pub const ALL: [Self; 6] =
        [Self::Full, Self::Truncate, Self::Compact, Self::SummaryLow, Self::SummaryMedium, Self::SummaryHigh];

    /// Returns the name used in pipelines and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Truncate => "truncate",
            Self::Compact => "compact",
            Self::SummaryLow => "summary:low",
            Self::SummaryMedium => "summary:medium",
            Self::SummaryHigh => "summary:high",
        }
    }

    /// Parses a name. `None` if the text does not name a fidelity.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The earlier conversation that the model of one attempt got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The fidelity in force. If `full` was requested but is not possible, this is the fidelity that replaces it, and
    /// `degraded` has the reason.
    pub fidelity: Fidelity,
    /// The thread of a stage with `full`; absent for other fidelities, and for the first stage that asks a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The attempt whose conversation this attempt continues; absent if this attempt begins a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<AttemptId>,
    /// Why `full` was requested but is not in force; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
}

/// The messages between the model and one attempt, and those of the earlier stages of its thread. System messages are not included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "conversation.json")]
pub struct Conversation {
    /// Always 1.
    pub schema_version: u32,
    /// Number of messages that were left out. They belong to the oldest stages; the whole conversation would have been too long.
    pub left_out: u64,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// `user`, `assistant` or `tool`.
    pub role: String,
    /// The parts of the message.
    pub parts: Vec<MessagePart>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagePart {
    /// `text`, `tool-call`, `tool-result` or `outcome`.
    pub kind: String,
    /// The text.
    pub text: String,
    /// Pairs of name and value. A name may occur more than once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
}

impl Conversation {
    /// Creates the conversation of an attempt, with at most `bytes_max` bytes of JSON. Removes the oldest stages first, each as a
    /// whole, so that every tool call keeps its result. `None` if the last stage alone is too long.
    pub fn bounded(messages: Vec<Message>, bytes_max: usize) -> Option<Self> {
        let messages: Vec<Message> = messages.into_iter().filter(|message| message.role != "system").collect();
        let sizes: Vec<usize> = messages.iter().map(Message::bytes).collect();
        let mut begin = 0;
        let mut bytes: usize = sizes.iter().sum();
        while bytes > bytes_max {
            let next = messages[begin..].iter().skip(1).position(|message| message.role == "user")? + 1;
            bytes -= sizes[begin..begin + next].iter().sum::<usize>();
            begin += next;
        }
        let mut messages = messages;
        messages.drain(..begin);
        Some(Self { schema_version: CONVERSATION_SCHEMA_VERSION, left_out: begin as u64, messages }.closed())
    }

    /// Removes unanswered tool calls at the end. A provider would refuse a conversation that contains them.
    fn closed(mut self) -> Self {
        if let Some(last) = self.messages.last_mut().filter(|last| last.role == "assistant") {
            last.parts.retain(|part| part.kind != "tool-call");
            if last.parts.is_empty() {
                self.messages.pop();
            }
        }
        self
    }
}

impl Message {
    /// Returns the approximate length of the message as JSON, in bytes.
    fn bytes(&self) -> usize {
        let of_part = |part: &MessagePart| {
            let fields: usize = part.fields.iter().map(|(name, value)| name.len() + value.len() + 8).sum();
            part.kind.len() + part.text.len() + fields + 40
        };
        self.role.len() + 40 + self.parts.iter().map(of_part).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: &str, kind: &str, text: &str) -> Message {
        let parts = vec![MessagePart { kind: kind.to_owned(), text: text.to_owned(), fields: Vec::new() }];
        Message { role: role.to_owned(), parts }
    }

    #[test]
    fn words_come_back() {
        for mode in Fidelity::ALL {
            assert_eq!(Fidelity::parse(mode.as_str()), Some(mode));
            assert_eq!(serde_json::to_string(&mode).unwrap(), format!("\"{mode}\""));
        }
        assert_eq!((Fidelity::parse("Full"), Fidelity::default()), (None, Fidelity::Compact));
    }

    #[test]
    fn the_oldest_stages_are_left_out_whole() {
        let stage = |text: &str| {
            vec![
                message("user", "text", text),
                message("assistant", "tool-call", text),
                message("tool", "tool-result", text),
                message("assistant", "text", text),
            ]
        };
        let long = "x".repeat(100);
        let all = || [vec![message("system", "text", "rules")], stage(&long), stage(&long), stage("c")].concat();
        let whole = Conversation::bounded(all(), 1 << 20).unwrap();
        assert_eq!((whole.left_out, whole.messages.len()), (0, 12));
        let cut = Conversation::bounded(all(), 1300).unwrap();
        assert_eq!((cut.left_out, cut.messages.len(), cut.messages[0].role.as_str()), (4, 8, "user"));
        assert_eq!(Conversation::bounded(stage(&long), 300), None);
    }

    #[test]
    fn a_call_without_an_answer_is_left_out() {
        let said =
            Conversation::bounded(vec![message("user", "text", "a"), message("assistant", "tool-call", "{}")], 999);
        assert_eq!(said.unwrap().messages.len(), 1);
    }
}
