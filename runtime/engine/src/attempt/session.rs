//! The session of an attempt: the fidelity, the thread, and what the attempt's model gets of the earlier stages
//! (spec §5.4).
//!
//! A conversation is continued only by a stage that can read everything that the earlier stages could read. The conversation
//! of a stage that can read hold-outs is never continued. If a conversation cannot be continued, the stage gets a summary,
//! and the record says why.

use super::Workbench;
use super::branch_answers;
use super::input::{FAILURE_KEYS, HOLDOUT_KEYS};
use super::preamble::Before;
use crate::assignment::Assignment;
use glovebox_journal::event::Artifact;
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_pipeline::ir::Node;
use glovebox_plan::plan::Binding;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Access;
use glovebox_record::session::{Conversation, Message};
use glovebox_record::{Fidelity, Session, ThreadId};
use glovebox_state::run_state::{CONVERSATION_FILE, LastConversation};

/// Maximum number of bytes of a conversation that is continued. The oldest stages are left out first.
pub const CONVERSATION_BYTES_MAX: usize = 256 << 10;
/// Maximum number of bytes that are read of a stored conversation. It is larger than [`CONVERSATION_BYTES_MAX`],
/// because the JSON contains escapes.
const STORED_BYTES_MAX: u64 = 4 << 20;

/// A session, and the conversation that it continues as JSON.
pub(super) struct SessionStart {
    pub(super) session: Session,
    conversation: Option<String>,
}

impl<B: BlobStore + 'static> Workbench<B> {
    /// Returns the session of an attempt whose component may ask a model.
    pub(super) fn session(&self, node: &Node, assignment: &Assignment) -> SessionStart {
        let conversations = &assignment.branch.conversations;
        let edge = conversations.edge_into(&node.id);
        let fidelity = self.plan.pipeline.fidelity(edge, node);
        let begins = |fidelity, thread| Session { fidelity, thread, continues: None, degraded: None };
        if fidelity != Fidelity::Full {
            return SessionStart { session: begins(fidelity, None), conversation: None };
        }
        let named = self.plan.pipeline.thread(edge, node);
        let last = named.map_or_else(|| conversations.last(), |thread| conversations.of_thread(thread));
        let thread = named.cloned().or_else(|| last.map(|last| ThreadId::from(last.node.as_str())));
        let Some(last) = last else { return SessionStart { session: begins(fidelity, thread), conversation: None } };
        match self.conversation(last, node) {
            Ok(text) => {
                let session = Session { continues: Some(last.attempt.clone()), ..begins(fidelity, thread) };
                SessionStart { session, conversation: Some(text) }
            }
            Err(reason) => {
                let session = Session { degraded: Some(reason), ..begins(Fidelity::SummaryHigh, thread) };
                SessionStart { session, conversation: None }
            }
        }
    }

    /// Returns the input entries of the session: `conversation` or `preamble`, or both if branches have ended since the
    /// conversation.
    pub(super) fn told(&self, node: &Node, binding: &Binding, assignment: &Assignment) -> Vec<(String, String)> {
        let SessionStart { session, conversation } = self.session(node, assignment);
        let answers = branch_answers::section(&assignment.branch);
        if let Some(text) = conversation {
            let is_new = |answers: &String| !text.contains(&*branch_answers::in_json(answers));
            let told = answers.filter(is_new).map(|answers| ("preamble".to_owned(), answers));
            return told.into_iter().chain([("conversation".to_owned(), text)]).collect();
        }
        let is_visible = |path: &ScopePath| !matches!(binding.scope.access(path), Access::Absent | Access::Hidden);
        let failed = assignment.branch.last_failed.as_ref();
        let of_failure = FAILURE_KEYS.iter().filter(|_| failed.is_some_and(|failed| self.is_withheld(&failed.stage())));
        let hidden_keys: Vec<&str> =
            HOLDOUT_KEYS.iter().filter(|_| binding.is_builder()).chain(of_failure).copied().collect();
        let before = Before {
            pipeline: &self.plan.pipeline,
            run: &assignment.run.run_id,
            branch: &assignment.branch,
            is_withheld: &|id| {
                self.holdouts.is_some() && (self.is_withheld(id) || self.plan.withholds(&id.verification()))
            },
            is_visible: &is_visible,
            hidden_keys: &hidden_keys,
        };
        let told = before.preamble(session.fidelity).into_iter().chain(answers).collect::<String>();
        Some(told).filter(|told| !told.is_empty()).map(|told| ("preamble".to_owned(), told)).into_iter().collect()
    }

    /// Stores the conversation, so that later stages can continue it. `None` if it is empty or too long.
    pub(super) fn keep_conversation(&self, messages: Vec<Message>) -> Result<Option<Artifact>, PortError> {
        if messages.is_empty() {
            return Ok(None);
        }
        let Some(conversation) = Conversation::bounded(messages, CONVERSATION_BYTES_MAX) else { return Ok(None) };
        let text = serde_json::to_vec(&conversation).map_err(|error| PortError::Unavailable(error.to_string()))?;
        let (digest, bytes) = self.store(&text)?;
        let (name, media_type) = (CONVERSATION_FILE.to_owned(), "application/json".to_owned());
        Ok(Some(Artifact { name, media_type, digest, bytes }))
    }

    fn conversation(&self, last: &LastConversation, node: &Node) -> Result<String, String> {
        let from = &last.node;
        if self.is_withheld(from) {
            return Err(format!("stage `{from}` can read hold-outs, so no other stage continues its conversation"));
        }
        if !self.plan.reads_all_of(&node.id, from) {
            return Err(format!("stage `{from}` can read what `{}` cannot", node.id));
        }
        let Some(digest) = &last.digest else {
            return Err(format!(
                "the conversation of `{from}` was not kept: it is longer than {CONVERSATION_BYTES_MAX} bytes"
            ));
        };
        let read = self.blobs.read_all(digest, STORED_BYTES_MAX).map_err(|error| error.to_string());
        let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()));
        text.map_err(|error| format!("the conversation of `{from}` cannot be read: {error}"))
    }
}
