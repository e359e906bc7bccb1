//! A conversation of the stage or of a subagent with the model, which is kept within the model's context window.
//!
//! A conversation knows neither tools nor outcomes. Messages that are removed to make room are stored as an artifact of
//! the stage.

use crate::artifact::Artifact;
use crate::compaction::{self, COMPACTIONS_MAX, CompactionLimits};
use glovebox_plugin_sdk::llm::{self, Error, Message, Request, Response};
use glovebox_plugin_sdk::{control, json, log};

/// Context window of a model whose context window is unknown, in tokens.
const CONTEXT_TOKENS: u64 = 131_072;

/// A conversation.
pub(crate) struct Conversation {
    pub(crate) request: Request,
    /// Index of the message with the task.
    task: usize,
    /// Number of compactions so far.
    compactions: u32,
    context: ContextUse,
    /// Prefix of the names of artifacts.
    prefix: String,
}

impl Conversation {
    /// Creates a conversation. `task` is the index of the message with the task.
    pub(crate) fn new(request: Request, task: usize, context: ContextUse) -> Self {
        Self { request, task, compactions: 0, context, prefix: String::new() }
    }

    /// Sets a prefix for artifacts of a subagent.
    pub(crate) fn for_subagent(self, id: usize) -> Self {
        Self { prefix: format!("agent-{id}-"), ..self }
    }

    /// Asks the model. If the last turn filled the context, compacts the conversation first. If the model refuses it as too long,
    /// compacts it further and asks again.
    ///
    /// # Errors
    /// Errors of the model.
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

    /// Compacts the conversation. Returns false if nothing can be removed, or after too many compactions.
    fn compact(&mut self, room: CompactionLimits) -> bool {
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

/// How much of the model's context window a conversation uses.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ContextUse {
    tokens_max: Option<u64>,
    is_full: bool,
    has_warned: bool,
}

impl ContextUse {
    /// Creates the state for a context window of this size; `None` if the size is unknown.
    pub(crate) fn new(tokens_max: Option<u64>) -> Self {
        Self { tokens_max, ..Self::default() }
    }

    /// Records the size of the last turn. From 80 % on, the context is treated as full. Warns once (coding-agent-loop specification
    /// §5.5).
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

    /// Returns the maximum lengths after a compaction.
    fn room(self) -> CompactionLimits {
        CompactionLimits::for_context(self.tokens_max.unwrap_or(CONTEXT_TOKENS))
    }
}
