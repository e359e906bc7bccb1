//! The model of an attempt: which provider or script answers, the position in its script, the budget that pays for it,
//! and the guard of its input.

use super::{AttemptError, Workbench, exchanges, input, leak_check};
use crate::assignment::Assignment;
use crate::live;
use glovebox_host::llm::{ConversationSetting, Live, Model};
use glovebox_journal::event::{Artifact, AskedModel, StageFinished};
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_pipeline::ir::{Node, NodeId};
use glovebox_plan::plan::{HoldoutAccess, PlannedModel};
use std::fmt::Display;
use std::sync::Arc;

/// The file with the transcript of a stage's model calls.
pub const TRANSCRIPT_FILE: &str = "transcript.ndjson";

impl<B: BlobStore + 'static> Workbench<B> {
    pub(super) fn model(&self, node: &Node, assignment: &Assignment) -> Result<Model, AttemptError> {
        let account = self.budget.account(&node.id).priced(self.plan.price_of(&node.id));
        if self.replays_answers(&node.id) {
            self.held.refund(&assignment.attempt, &account);
        }
        let model = input::model(node, &self.plan, &assignment.branch)?.charged_to(account);
        let model = self.live(node)?.into_iter().fold(model, Model::or_live);
        let schema = node.agent.output_schema.as_ref().map(|schema| (Arc::clone(schema), node.own_name().to_owned()));
        let model = model.answering(schema);
        Ok(match &self.holdouts {
            Some(holdouts) if self.plan.is_leak_checked(&node.id) => leak_check::guarded(model, holdouts),
            // Nothing of a stage that can read hold-outs is shown while it runs.
            _ if self.bound_now(assignment)?.1.holdouts == HoldoutAccess::ReadOnly => model,
            _ => model.watched(live::draft::watcher(Arc::clone(&self.run), assignment.attempt.id.clone())),
        })
    }

    /// Returns true if an attempt that is executed again gets its earlier answers from the log, which charges them at once. An agent
    /// program starts over, and its earlier answers are charged when it has ended.
    fn replays_answers(&self, node: &NodeId) -> bool {
        self.plan.bindings.get(node).is_none_or(|binding| binding.program.is_none())
    }

    /// Notes what an attempt has spent, if it waits for a quota.
    pub(super) fn hold_spending(&self, node: &NodeId, fact: &StageFinished) {
        if !self.replays_answers(node) {
            self.held.refund(&fact.attempt, &self.budget.account(node).priced(self.plan.price_of(node)));
        }
        self.held.note(fact);
    }

    /// Returns the settings of an attempt's conversation with its model, including the log of exchanges.
    pub(super) fn conversation_setting(
        &self,
        node: &Node,
        assignment: &Assignment,
    ) -> Result<ConversationSetting, AttemptError> {
        let asks_provider = self.plan.models.by_node.contains_key(&node.id);
        let exchanges =
            asks_provider.then(|| exchanges::open(&self.run, &assignment.attempt, self.handed_on.as_ref())).transpose();
        Ok(ConversationSetting {
            keeps_messages: self.plan.pipeline.keeps_conversations,
            exchanges: exchanges.map_err(AttemptError::Folder)?,
            steering: assignment.steering.clone(),
        })
    }

    /// Returns the model of a stage for its record, with the model name in the provider's answer.
    pub(super) fn asked_model(&self, id: &NodeId, answered_by: Option<impl Display>) -> Option<AskedModel> {
        let PlannedModel { name, access, .. } = &*self.plan.models.by_node.get(id)?.model;
        Some(AskedModel {
            name: name.to_owned(),
            provider: access.family.to_string(),
            model: access.model.to_string(),
            answered_by: answered_by.map(|model| model.to_string()),
        })
    }

    /// Stores the transcript of the model calls, turn by turn. `None` if it is empty.
    pub(super) fn keep_transcript(&self, transcript: &[u8]) -> Result<Option<Artifact>, PortError> {
        if transcript.is_empty() {
            return Ok(None);
        }
        let (digest, bytes) = self.store(transcript)?;
        let (name, media_type) = (TRANSCRIPT_FILE.to_owned(), "application/x-ndjson".to_owned());
        Ok(Some(Artifact { name, media_type, digest, bytes }))
    }

    /// Returns the provider's model if the plan has one for the node. It is never replaced by a simulated model.
    fn live(&self, node: &Node) -> Result<Option<Live>, AttemptError> {
        let Some(chosen) = self.plan.models.by_node.get(&node.id) else { return Ok(None) };
        let name = &chosen.model.name;
        let target = self.targets.get(name).ok_or_else(|| AttemptError::Unreachable(name.to_owned()))?;
        Ok(Some(Live { target: Arc::clone(target), effort: chosen.effort }))
    }
}
