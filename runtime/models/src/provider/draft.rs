//! An answer while it is being received.
//!
//! Enforces the limits of an answer, however much a provider sends.

use crate::chat::{Answer, Finish, ModelId, Usage, call_part, text_part};
use crate::error::{ErrorKind, ModelError};
use crate::family::Family;
use crate::key::Key;
use glovebox_record::session::MessagePart;
use serde_json::Value;

/// Maximum length of the text, arguments and opaque parts of an answer, in bytes.
pub(crate) const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Maximum number of parts of an answer.
const PARTS_MAX: usize = 1024;

/// An answer while it is being received.
#[derive(Debug, Default)]
pub struct Draft {
    parts: Vec<MessagePart>,
    bytes: usize,
    /// Text of an item that the provider sends again when the item is complete. It is no part of the answer.
    preview: String,
    /// Why the answer ended; `None` until the provider has said so.
    pub finish: Option<Finish>,
    /// Tokens, as the provider counts them; `None` if it has not stated them.
    pub usage: Option<Usage>,
    /// The model that answers; `None` until the provider has named it.
    pub model: Option<ModelId>,
}

/// Index of a part in a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(usize);

impl Draft {
    /// Adds a part.
    pub fn push(&mut self, part: MessagePart) -> Result<Slot, ModelError> {
        self.grow_by(
            part.text.len() + part.fields.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>(),
        )?;
        if self.parts.len() >= PARTS_MAX {
            return Err(too_large());
        }
        self.parts.push(part);
        Ok(Slot(self.parts.len() - 1))
    }

    /// Appends text to the last part if that is a text, and adds a new part otherwise.
    pub fn add_text(&mut self, text: &Value) -> Result<(), ModelError> {
        match (text.as_str().unwrap_or_default(), self.parts.last()) {
            ("", _) => Ok(()),
            (text, Some(last)) if last.kind == crate::chat::TEXT => self.extend(Slot(self.parts.len() - 1), text),
            (text, _) => self.push(text_part(text)).map(drop),
        }
    }

    /// Appends text to a part.
    pub fn extend(&mut self, slot: Slot, text: &str) -> Result<(), ModelError> {
        self.grow_by(text.len())?;
        if let Some(part) = self.parts.get_mut(slot.0) {
            part.text.push_str(text);
        }
        Ok(())
    }

    /// Appends text that the provider sends again with [`add_text`](Self::add_text). The caller limits its length.
    pub fn preview(&mut self, text: &str) {
        self.preview.push_str(text);
    }

    /// Forgets the preview, because its item is complete.
    pub fn end_preview(&mut self) {
        self.preview.clear();
    }

    /// Returns the number of bytes so far, also of parts that are no text.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.preview.len()
    }

    /// Returns the text so far, with a line break between its parts. It never has more than the finished answer: the key is
    /// removed from each part, and also an end with which the key could begin.
    pub(crate) fn text(&self, key: Option<&Key>) -> String {
        let is_text = |part: &&MessagePart| part.kind == crate::chat::TEXT;
        let mut texts: Vec<String> = self.parts.iter().filter(is_text).map(|part| part.text.clone()).collect();
        match self.parts.last().filter(is_text).and(texts.last_mut()) {
            Some(last) => last.push_str(&self.preview),
            None => texts.push(self.preview.clone()),
        }
        texts.retain(|text| !text.is_empty());
        let shown = texts.into_iter().map(|text| match key {
            Some(key) => key.removed_from_prefix(text),
            None => text,
        });
        shown.collect::<Vec<_>>().join("\n")
    }

    /// Adds a tool call. A missing id is filled in later.
    pub fn call(&mut self, id: &Value, name: &Value, arguments: String) -> Result<Slot, ModelError> {
        self.push(call_part(id.as_str().unwrap_or_default(), name.as_str().unwrap_or_default(), arguments))
    }

    /// Adds a part that only the provider understands.
    pub fn keep(&mut self, family: Family, content: String) -> Result<Slot, ModelError> {
        self.push(MessagePart { kind: family.opaque_kind(), text: content, fields: Vec::new() })
    }

    /// Returns the part at this index.
    pub fn part_mut(&mut self, slot: Slot) -> Option<&mut MessagePart> {
        self.parts.get_mut(slot.0)
    }

    /// Returns true if the answer calls tools.
    pub fn calls_tools(&self) -> bool {
        self.parts.iter().any(|part| part.kind == crate::chat::TOOL_CALL)
    }

    /// Sets the model, if the provider names it.
    pub fn answered_by(&mut self, name: &Value) {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            self.model = Some(name.into());
        }
    }

    /// Returns the answer. If the provider has given no finish reason, that is an error.
    pub(crate) fn finished(self) -> Result<Answer, ModelError> {
        let Some(finish) = self.finish else {
            return Err(ModelError::new(ErrorKind::Stream, "the answer ended without a finish reason"));
        };
        let is_estimated = self.usage.is_none();
        let usage = self.usage.unwrap_or_default();
        let parts = self.parts.into_iter().filter(|part| !part.text.is_empty() || !part.fields.is_empty()).collect();
        Ok(Answer { parts, finish, usage, is_estimated, model: self.model })
    }

    /// Counts bytes of the answer, and returns an error if it becomes too long.
    pub fn grow_by(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ANSWER_BYTES_MAX { Err(too_large()) } else { Ok(()) }
    }
}

pub(crate) fn too_large() -> ModelError {
    let message = format!("the answer is larger than {} MiB", ANSWER_BYTES_MAX >> 20);
    ModelError::new(ErrorKind::AnswerTooLarge, message)
}
