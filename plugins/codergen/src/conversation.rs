//! One conversation with the model, kept within the model's context: that of the stage, or of a subagent.
//!
//! It knows neither tools nor outcomes. What it removes to make room is kept beside the stage's record.

use crate::artifact::Artifact;
use crate::compaction::{self, COMPACTIONS_MAX, Room};
use glovebox_plugin_sdk::llm::{self, Error, Message, Request, Response};
use glovebox_plugin_sdk::{control, json, log};

/// The context of a model that says nothing of it, in tokens.
const CONTEXT_TOKENS: u64 = 131_072;

/// A conversation.
pub(crate) struct Conversation {
    pub(crate) request: Request,
    /// Where the message with the task stands.
    task: usize,
    /// How often it was made shorter.
    compactions: u32,
    context: ContextUse,
    /// What the names of the texts that it keeps begin with.
    prefix: String,
}

impl Conversation {
    /// A conversation whose task stands at a place.
    pub(crate) fn of(request: Request, task: usize, context: ContextUse) -> Self {
        Self { request, task, compactions: 0, context, prefix: String::new() }
    }

    /// The same, with the texts that it keeps named after a subagent.
    pub(crate) fn of_subagent(self, id: usize) -> Self {
        Self { prefix: format!("agent-{id}-"), ..self }
    }

    /// Asks, and makes the conversation shorter first if the last turn said that it is full. One that is too long for the model is made
    /// shorter and asked once more.
    ///
    /// # Errors
    /// Those of the model.
    pub(crate) fn ask(&mut self) -> Result<Response, Error> {
        if std::mem::take(&mut self.context.is_full) {
            self.compact(self.context.room());
        }
        let response = match llm::complete(&self.request) {
            Err(error) if error.kind == "context-length" && self.compact(self.context.room().least()) => {
                llm::complete(&self.request)
            }
            answered => answered,
        }?;
        self.context.note(response.usage.input.saturating_add(response.usage.output));
        Ok(response)
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.request.messages.push(message);
    }

    /// Makes the conversation shorter, unless nothing can go or it was done too often.
    fn compact(&mut self, room: Room) -> bool {
        if self.compactions >= COMPACTIONS_MAX {
            return false;
        }
        let Some(short) = compaction::compact(&self.request.messages, self.task, room) else { return false };
        self.compactions += 1;
        Artifact { name: &format!("{}compacted-{}.md", self.prefix, self.compactions), text: &short.removed }.keep();
        let count = short.count.to_string();
        log::info("the conversation was made shorter", &[("messages", &count)]);
        control::emit("compaction", &json!({ "messages": short.count }));
        (self.request.messages, self.task) = (short.messages, 1);
        true
    }
}

/// How much of the model's context a conversation fills.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ContextUse {
    tokens_max: Option<u64>,
    is_full: bool,
    has_warned: bool,
}

impl ContextUse {
    /// That of a model with so large a context; none is a model that says nothing of it.
    pub(crate) fn of(tokens_max: Option<u64>) -> Self {
        Self { tokens_max, ..Self::default() }
    }

    /// Full from 80 % on. Warns once (coding-agent-loop specification §5.5).
    fn note(&mut self, tokens: u64) {
        let Some(most) = self.tokens_max.filter(|most| tokens >= most / 5 * 4) else { return };
        self.is_full = true;
        if std::mem::replace(&mut self.has_warned, true) {
            return;
        }
        let (used, most) = (tokens.to_string(), most.to_string());
        log::warn("the conversation fills 80 % of the model's context", &[("tokens", &used), ("context", &most)]);
        control::emit("warning", &json!({ "context_tokens": tokens }));
    }

    /// What a conversation may keep when it is made shorter.
    fn room(self) -> Room {
        Room::of(self.tokens_max.unwrap_or(CONTEXT_TOKENS))
    }
}
