//! The status files of an attempt: reads what the stage left at the three places, and settles the outcome
//! (decision status-files).
//!
//! Everything in a file was chosen by the stage. The file is read after every process of the stage has ended. The outcome in it
//! is checked like the value that a component returns, and passes the same leak check and the same redaction.

use super::AttemptError;
use super::paths::AttemptPaths;
use glovebox_host::answer::{check_bounds, shortened};
use glovebox_jail::status_drop::StatusDrop;
use glovebox_journal::event::{Artifact, StageFinished, StatusCopy, StatusFound, StatusIngested, StatusPlace};
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_pipeline::ir::{HandlerKind, Node};
use glovebox_plan::plan::{Binding, HoldoutAccess};
use glovebox_record::scope::Scope;
use glovebox_record::{Outcome, Status};
use glovebox_state::status_file::{FoundStatus, StatusDecision, StatusVerdict, decide, decode, settle};
use glovebox_workspace::left_file::{LeftFile, hide_before};
use glovebox_workspace::stage::{StageChanges, ViewOverrides, WorkspaceView};

/// Maximum length of a status file, in bytes. `limits.outcome_bytes` of the stage can lower it.
const STATUS_BYTES_MAX: u64 = 64 << 10;
/// The artifact with the bytes of the file that decided.
pub(super) const COPY_FILE: &str = "status.source.json";

/// What Glovebox does with status files that a stage leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusRule {
    /// The stage answers by a status file.
    Answer,
    /// The stage starts a program whose author may expect that its status file is read, but the node has no `status_file=true`.
    Ignore,
    /// A component returns the outcome.
    Return,
}

impl StatusRule {
    /// Returns the rule for a node.
    pub(super) fn for_node(node: &Node, binding: &Binding) -> Self {
        let starts_program = node.handler.kind() == HandlerKind::Tool || binding.program.is_some();
        match starts_program && binding.runs_commands() {
            true if node.routing.status_file => Self::Answer,
            true => Self::Ignore,
            false => Self::Return,
        }
    }
}

/// The places in the workspace.
const FALLBACKS: [StatusPlace; 2] = [StatusPlace::Workspace, StatusPlace::WorkspaceAi];

/// Returns the scope of the stage's view, in which older files at the places in the workspace are hidden from a stage that answers
/// by a file. Otherwise an earlier stage could decide whether a write of this stage is a difference, and so whether its answer
/// counts.
pub(super) fn hide_old(
    paths: &AttemptPaths,
    mut scope: Scope,
    overrides: &mut ViewOverrides,
) -> Result<Scope, AttemptError> {
    if paths.answering.is_some() {
        let places = FALLBACKS.map(StatusPlace::path);
        hide_before(&places, &paths.workspace, &mut scope, overrides).map_err(AttemptError::Folder)?;
    }
    Ok(scope)
}

/// What the engine needs to know about a stage to ingest its status files.
pub(super) struct StatusSetting {
    rule: StatusRule,
    /// The scope of the stage, which decides about files that are not the answer.
    scope: Scope,
    /// True if the stage can read hold-outs.
    reads_holdouts: bool,
    /// `limits.outcome_bytes` of the stage.
    outcome_bytes_max: u64,
}

impl StatusSetting {
    /// Returns the setting of a stage.
    pub(super) fn for_stage(node: &Node, binding: &Binding) -> Self {
        Self {
            rule: StatusRule::for_node(node, binding),
            scope: binding.scope.clone(),
            reads_holdouts: binding.holdouts == HoldoutAccess::ReadOnly,
            outcome_bytes_max: binding.limits.outcome_bytes,
        }
    }

    /// Follows the rule of the stage after its end. Returns the decision about a stage that answers by a file.
    pub(super) fn apply(
        &self,
        drop: Option<&StatusDrop>,
        view: &WorkspaceView,
        changes: &mut StageChanges,
        fact: &mut StageFinished,
        blobs: &impl BlobStore,
    ) -> Result<Option<Box<StatusIngested>>, AttemptError> {
        match self.rule {
            StatusRule::Answer => {
                let files = StatusFiles { setting: self, drop, view };
                files.ingest(changes, fact, blobs).map(|ingested| Some(Box::new(ingested)))
            }
            StatusRule::Ignore => {
                fact.files.unread_status = unread(changes);
                Ok(None)
            }
            StatusRule::Return => Ok(None),
        }
    }
}

/// The places of an attempt's status files.
struct StatusFiles<'a> {
    setting: &'a StatusSetting,
    /// The drop folder. `None` if the stage has none.
    drop: Option<&'a StatusDrop>,
    /// The stage's view of the workspace, in which [`hide_old`] has hidden older files.
    view: &'a WorkspaceView,
}

impl StatusFiles<'_> {
    /// Settles the outcome of an attempt whose stage answers by a file. The file that decides is no change of the project, so it
    /// is removed from `changes`, with usable files at later places. Any other file stays an ordinary change.
    fn ingest(
        &self,
        changes: &mut StageChanges,
        fact: &mut StageFinished,
        blobs: &impl BlobStore,
    ) -> Result<StatusIngested, AttemptError> {
        let left = StatusPlace::ALL.map(|place| (place, self.left(place, changes)));
        let found = left.each_ref().map(|(_, left)| parsed(left));
        let StatusDecision { searched, mut verdict, unused } = decide(found, &fact.attempt);
        let source = match &verdict {
            StatusVerdict::NoFile => None,
            StatusVerdict::Accepted(place, _) => Some(*place),
            StatusVerdict::Refused(_) => Some(StatusPlace::Drop),
        };
        let copy = left.iter().find(|(place, _)| Some(*place) == source).map(|(_, left)| copied(left, fact, blobs));
        for place in FALLBACKS {
            match source == Some(place) || unused.contains(&place) {
                true => changes.remove(place.path()),
                false => changes.unhide(place.path(), self.view, &self.setting.scope).map_err(AttemptError::Folder)?,
            }
        }
        if let StatusVerdict::Accepted(_, stated) = &mut verdict
            && self.setting.reads_holdouts
        {
            // Code of builders that such a stage runs can write the file. It must not choose an edge by what it has read.
            stated.preferred_label = None;
            stated.suggested_next_ids.clear();
            stated.context_updates.clear();
        }
        let own = std::mem::replace(&mut fact.outcome, Outcome::new(Status::Fail));
        let (outcome, effect) = settle(own, verdict);
        fact.outcome = shortened(outcome);
        Ok(StatusIngested {
            attempt: fact.attempt.clone(),
            searched,
            source,
            effect,
            copy: copy.transpose()?.flatten(),
        })
    }

    fn left(&self, place: StatusPlace, changes: &StageChanges) -> LeftFile {
        let bytes_max = self.setting.outcome_bytes_max.min(STATUS_BYTES_MAX);
        match place {
            StatusPlace::Drop => {
                self.drop.map_or(LeftFile::Missing, |drop| drop.read(StatusPlace::Drop.path(), bytes_max))
            }
            StatusPlace::Workspace | StatusPlace::WorkspaceAi => match changes.left_at(place.path()) {
                Some(change) => LeftFile::of_change(self.view, &change, bytes_max),
                None => LeftFile::Missing,
            },
        }
    }
}

/// Returns the paths of the status files that a stage left in the workspace although nothing reads them.
fn unread(changes: &StageChanges) -> Vec<String> {
    FALLBACKS
        .map(StatusPlace::path)
        .into_iter()
        .filter(|path| changes.left_at(path).is_some())
        .map(str::to_owned)
        .collect()
}

/// Removes the copy from the event if a leak check has removed its artifact.
pub(super) fn forget_removed_copy(ingested: Option<&mut StatusIngested>, fact: &StageFinished) {
    let has = |copy: &mut StatusCopy| fact.files.artifacts.iter().any(|artifact| artifact.name == copy.artifact);
    if let Some(ingested) = ingested {
        ingested.copy = ingested.copy.take_if(|copy| has(copy));
    }
}

fn parsed(left: &LeftFile) -> FoundStatus {
    let bytes = match left {
        LeftFile::Missing => return FoundStatus::Missing,
        LeftFile::NotAFile(kind) => {
            return FoundStatus::Unusable(StatusFound::NotAFile, format!("expected a file, found {kind}"));
        }
        LeftFile::TooLong(error) => return FoundStatus::Unusable(StatusFound::TooLong, error.to_string()),
        LeftFile::Unreadable(error) => return FoundStatus::Unusable(StatusFound::Unreadable, error.to_string()),
        LeftFile::Bytes(bytes) => bytes,
    };
    let stated = match decode(bytes) {
        Ok(stated) => stated,
        Err(error) => return FoundStatus::Unusable(error.found(), error.to_string()),
    };
    match check_bounds(&stated.outcome) {
        Ok(()) => FoundStatus::Parsed(Box::new(stated)),
        Err(problem) => FoundStatus::Unusable(StatusFound::OutOfBounds, problem),
    }
}

/// Stores the bytes of the file that decided. `None` if it could not be read.
fn copied(left: &LeftFile, fact: &mut StageFinished, blobs: &impl BlobStore) -> Result<Option<StatusCopy>, PortError> {
    let LeftFile::Bytes(bytes) = left else { return Ok(None) };
    let digest = blobs.put(&mut &bytes[..])?;
    let (artifact, media_type, bytes) = (COPY_FILE.to_owned(), "application/json".to_owned(), bytes.len() as u64);
    fact.files.artifacts.push(Artifact { name: artifact.clone(), media_type, digest, bytes });
    Ok(Some(StatusCopy { artifact, digest, bytes }))
}
