//! The status files of an attempt: reads what the stage left at the three places, and settles the outcome
//! (decision status-files).
//!
//! Everything in a file was chosen by the stage. The file is read after every process of the stage has ended. The outcome in it
//! is checked like the value that a component returns, and passes the same leak check and the same redaction.

use glovebox_host::answer::check_bounds;
use glovebox_jail::status_drop::StatusDrop;
use glovebox_journal::event::{Artifact, StageFinished, StatusCopy, StatusFound, StatusIngested, StatusPlace};
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_pipeline::ir::{HandlerKind, Node};
use glovebox_plan::plan::Binding;
use glovebox_record::{Outcome, Status};
use glovebox_state::status_file::{FoundStatus, StatusDecision, StatusVerdict, decide, decode, settle};
use glovebox_workspace::left_file::LeftFile;
use glovebox_workspace::stage::{StageChanges, WorkspaceView};

/// Maximum length of a status file, in bytes. `limits.outcome_bytes` of the stage can lower it.
const STATUS_BYTES_MAX: u64 = 64 << 10;
/// The artifact with the bytes of the file that decided.
const COPY_FILE: &str = "status.source.json";

/// What the status files of a stage mean.
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

/// The places of an attempt's status files.
pub(super) struct StatusFiles<'a> {
    /// The drop folder. `None` if the stage has none.
    pub(super) drop: Option<&'a StatusDrop>,
    /// The stage's view of the workspace.
    pub(super) view: &'a WorkspaceView,
    /// `limits.outcome_bytes` of the stage.
    pub(super) outcome_bytes_max: u64,
}

impl StatusFiles<'_> {
    /// Settles the outcome of an attempt whose stage answers by a file. The file that decides is no change of the project, so it
    /// is removed from `changes`. Any other file stays an ordinary change.
    pub(super) fn ingest(
        &self,
        changes: &mut StageChanges,
        fact: &mut StageFinished,
        blobs: &impl BlobStore,
    ) -> Result<StatusIngested, PortError> {
        let left = StatusPlace::ALL.map(|place| (place, self.left(place, changes)));
        let found = left.each_ref().map(|(_, left)| parsed(left));
        let StatusDecision { searched, verdict } = decide(found, &fact.attempt);
        let source = match &verdict {
            StatusVerdict::NoFile => None,
            StatusVerdict::Accepted(place, _) => Some(*place),
            StatusVerdict::Refused(_) => Some(StatusPlace::Drop),
        };
        let copy = left.iter().find(|(place, _)| Some(*place) == source).map(|(_, left)| copied(left, fact, blobs));
        if let Some(place) = source.filter(|place| *place != StatusPlace::Drop) {
            changes.remove(place.path());
        }
        let own = std::mem::replace(&mut fact.outcome, Outcome::new(Status::Fail));
        let (outcome, effect) = settle(own, verdict);
        fact.outcome = outcome;
        Ok(StatusIngested {
            attempt: fact.attempt.clone(),
            searched,
            source,
            effect,
            copy: copy.transpose()?.flatten(),
        })
    }

    fn left(&self, place: StatusPlace, changes: &StageChanges) -> LeftFile {
        let bytes_max = self.outcome_bytes_max.min(STATUS_BYTES_MAX);
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
pub(super) fn unread(changes: &StageChanges) -> Vec<String> {
    let places = [StatusPlace::Workspace, StatusPlace::WorkspaceAi].map(StatusPlace::path);
    places.into_iter().filter(|path| changes.left_at(path).is_some()).map(str::to_owned).collect()
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
