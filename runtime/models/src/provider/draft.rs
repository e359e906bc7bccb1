//! An answer in progress.
//!
//! It enforces the bounds of an answer, however much a provider sends.

use crate::chat::{Answer, Finish, ModelId, Usage, call_part, text_part};
use crate::error::{ErrorKind, ModelError};
use crate::family::Family;
use glovebox_record::session::MessagePart;
use serde_json::Value;

/// Maximum number of bytes of text, arguments and opaque parts of an answer.
pub(crate) const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Maximum number of parts of an answer.
const PARTS_MAX: usize = 1024;

/// An answer under construction.
#[derive(Debug, Default)]
pub struct Draft {
    parts: Vec<MessagePart>,
    bytes: usize,
    /// Why it ended, once that is known.
    pub finish: Option<Finish>,
    /// Tokens, as the provider counts them.
    pub usage: Option<Usage>,
    /// The model, once it is known.
    pub model: Option<ModelId>,
}

/// The place of a part in a draft.
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

    /// Adds text to the last part if that is text, else as a new part.
    pub fn add_text(&mut self, text: &Value) -> Result<(), ModelError> {
        match (text.as_str().unwrap_or_default(), self.parts.last()) {
            ("", _) => Ok(()),
            (text, Some(last)) if last.kind == crate::chat::TEXT => self.extend(Slot(self.parts.len() - 1), text),
            (text, _) => self.push(text_part(text)).map(drop),
        }
    }

    /// Adds to the text of a part.
    pub fn extend(&mut self, slot: Slot, text: &str) -> Result<(), ModelError> {
        self.grow_by(text.len())?;
        if let Some(part) = self.parts.get_mut(slot.0) {
            part.text.push_str(text);
        }
        Ok(())
    }

    /// Adds a call of a tool. Without an id it gets one.
    pub fn call(&mut self, id: &Value, name: &Value, arguments: String) -> Result<Slot, ModelError> {
        self.push(call_part(id.as_str().unwrap_or_default(), name.as_str().unwrap_or_default(), arguments))
    }

    /// Adds a part that belongs to the provider: JSON, or a text that only it understands.
    pub fn keep(&mut self, family: Family, content: String) -> Result<Slot, ModelError> {
        self.push(MessagePart { kind: family.opaque_kind(), text: content, fields: Vec::new() })
    }

    /// Returns the part at a place.
    pub fn part_mut(&mut self, slot: Slot) -> Option<&mut MessagePart> {
        self.parts.get_mut(slot.0)
    }

    /// Returns true if it calls a tool.
    pub fn calls_tools(&self) -> bool {
        self.parts.iter().any(|part| part.kind == crate::chat::TOOL_CALL)
    }

    /// Takes note of the model, if the provider names it here.
    pub fn answered_by(&mut self, name: &Value) {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            self.model = Some(name.into());
        }
    }

    /// Returns the answer, if it has come to its end.
    pub(crate) fn finished(self) -> Result<Answer, ModelError> {
        let Some(finish) = self.finish else {
            return Err(ModelError::new(ErrorKind::Stream, "the answer ended without a reason to finish"));
        };
        let is_estimated = self.usage.is_none();
        let usage = self.usage.unwrap_or_default();
        let parts = self.parts.into_iter().filter(|part| !part.text.is_empty() || !part.fields.is_empty()).collect();
        Ok(Answer { parts, finish, usage, is_estimated, model: self.model })
    }

    /// Counts bytes that will be part of the answer.
    pub fn grow_by(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ANSWER_BYTES_MAX { Err(too_large()) } else { Ok(()) }
    }
}

pub(crate) fn too_large() -> ModelError {
    let message = format!("the answer is larger than {} MiB", ANSWER_BYTES_MAX >> 20);
    ModelError::new(ErrorKind::AnswerTooLarge, message)
}
