//! What one stage adds to the result of a run: its failure, its changes, its refused requests, and its files that git
//! ignores.

use super::{
    CommandEvidence, DroppedChecks, QuarantinedFile, RefusedRequest, RunSummary, UnmatchedEntry, UnreadReason,
    UnreadStatus,
};
use glovebox_journal::event::{
    BranchId, FileChange, IgnoredFiles, Refusal, RefusedChange, StageFinished, StatusFound, StatusIngested,
    StatusOwnership, StatusPlace,
};
use glovebox_record::{Failure, Network, NodeId};
use std::collections::BTreeSet;

/// Maximum number of names of ignored files and folders in a summary.
const IGNORED_NAMES_MAX: usize = 4;

impl RunSummary {
    /// Returns true if a verifier ran a command.
    pub fn has_pipeline_command(&self) -> bool {
        self.proof.receipts.iter().any(|command| command.is_of_verifier)
    }

    /// Returns true if the commands could reach every host.
    pub fn has_full_network(&self) -> bool {
        self.access.network == Some(Network::Full)
    }

    /// Returns the nodes with a command that passed before a builder last changed files, and that builder.
    pub fn outdated(&self) -> Option<(BTreeSet<NodeId>, &NodeId)> {
        let (at, by) = self.files.changed_last.as_ref()?;
        let is_older =
            |evidence: &&CommandEvidence| evidence.verified && !evidence.not_taken && evidence.ended_at < *at;
        let nodes: BTreeSet<NodeId> =
            self.proof.receipts.iter().filter(is_older).map(|evidence| evidence.node.clone()).collect();
        Some((nodes, by)).filter(|(nodes, _)| !nodes.is_empty())
    }

    pub(super) fn note_end(
        &mut self,
        node: &NodeId,
        failure: Option<Failure>,
        quarantined: impl IntoIterator<Item = RefusedChange>,
    ) {
        for RefusedChange { path, reason } in quarantined {
            self.files.quarantined_total += 1;
            let number = self.files.quarantined_total;
            self.files.quarantined.push(QuarantinedFile { number, node: node.clone(), path, reason });
        }
        if let Some(failure) = failure {
            self.end.last_failure = Some((node.to_owned(), failure));
        }
    }

    pub(super) fn note_misses(&mut self, stage: &StageFinished) {
        self.note_dropped(stage);
        let node = &stage.attempt.task.node;
        match stage.commands.misses_holdouts {
            true => _ = self.proof.misses_holdouts.insert(node.clone()),
            false => _ = self.proof.misses_holdouts.remove(node),
        }
        self.proof.unmatched.retain(|known| known.node != *node);
        let unmatched = stage.files.unmatched.iter().cloned();
        self.proof.unmatched.extend(unmatched.map(|unmatched| UnmatchedEntry { node: node.clone(), unmatched }));
    }

    /// Replaces the unread status files of a node that does not answer by a file with those of its last attempt.
    pub(super) fn note_unread_status(&mut self, stage: &StageFinished) {
        let node = &stage.attempt.task.node;
        self.proof.unread_status.retain(|known| known.node != *node || known.reason != UnreadReason::NotAsked);
        let unread = stage.files.unread_status.iter().cloned();
        let unread = unread.map(|path| UnreadStatus { node: node.clone(), path, reason: UnreadReason::NotAsked });
        self.proof.unread_status.extend(unread);
    }

    /// Replaces the unread status files of a node that answers by a file with those that its last attempt left in the workspace and
    /// that could not decide.
    pub(super) fn note_status(&mut self, StatusIngested { attempt, searched, .. }: &StatusIngested) {
        let node = &attempt.task.node;
        self.proof.unread_status.retain(|known| known.node != *node);
        let in_workspace = searched.iter().filter(|one| one.place != StatusPlace::Drop);
        let unread = in_workspace.filter_map(|one| {
            let reason = match (one.found, one.owner) {
                (StatusFound::Missing, _) => return None,
                (StatusFound::Parsed, Some(StatusOwnership::Foreign)) => UnreadReason::Foreign,
                (StatusFound::Parsed, _) => return None,
                _ => UnreadReason::Unusable,
            };
            Some(UnreadStatus { node: node.clone(), path: one.path.clone(), reason })
        });
        self.proof.unread_status.extend(unread);
    }

    /// Replaces the skipped commands of a node with those of its last attempt.
    fn note_dropped(&mut self, stage: &StageFinished) {
        let task = &stage.attempt.task;
        let branch = Some(&task.branch).filter(|branch| **branch != BranchId::main()).cloned();
        self.proof.dropped_checks.retain(|dropped| dropped.node != task.node || dropped.branch != branch);
        if !stage.commands.dropped_checks.is_empty() {
            let (node, commands) = (task.node.clone(), stage.commands.dropped_checks.clone());
            self.proof.dropped_checks.push(DroppedChecks { node, branch, commands });
        }
    }

    pub(super) fn note_changes(&mut self, changes: impl IntoIterator<Item = FileChange>) {
        self.files.changed.extend(changes.into_iter().map(|change| (change.path.clone(), change)));
    }

    pub(super) fn add_ignored(&mut self, more: IgnoredFiles) {
        let IgnoredFiles { files, bytes, names } = more;
        let all = self.files.ignored.get_or_insert_with(|| IgnoredFiles { files: 0, bytes: 0, names: Vec::new() });
        (all.files, all.bytes) = (all.files.saturating_add(files), all.bytes.saturating_add(bytes));
        for name in names {
            if all.names.len() < IGNORED_NAMES_MAX && !all.names.contains(&name) {
                all.names.push(name);
            }
        }
    }

    pub(super) fn add_refusal(&mut self, node: &NodeId, refusal: Refusal) {
        let is_same = |known: &&mut RefusedRequest| {
            known.node == *node && known.refusal.operation == refusal.operation && known.refusal.path == refusal.path
        };
        match self.access.refused.iter_mut().find(is_same) {
            Some(known) => known.times += 1,
            None => self.access.refused.push(RefusedRequest { node: node.clone(), times: 1, refusal }),
        }
    }
}
