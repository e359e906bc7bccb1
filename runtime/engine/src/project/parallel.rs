//! The files of parallel nodes and fan-ins: how each ended, and the changes in which branches conflict.

use super::run_files::task_folder;
use super::status::{Owner, encode};
use super::{Content, ProjectError, Projector};
use crate::run_dir::QUARANTINE_DIR;
use glovebox_journal::event::{BranchId, FanInFinished, NodeId, ParallelJoined, Task};
use glovebox_journal::ports::BlobStore;
use glovebox_record::Outcome;

/// Maximum number of characters of a name in the quarantine.
const NAME_CHARS_MAX: usize = 64;

impl<B: BlobStore> Projector<B> {
    pub(super) fn joined(&mut self, joined: &ParallelJoined) -> Result<(), ProjectError> {
        let outcome = Outcome::ended(joined.status, joined.failure.as_ref());
        self.settled(joined.generation, &joined.branch, &joined.node, joined.visit, &outcome)
    }

    pub(super) fn fan_in(&mut self, finished: &FanInFinished) -> Result<(), ProjectError> {
        let notes = finished.best.as_ref().map(|best| format!("Selected best candidate: {best}")).unwrap_or_default();
        let outcome = Outcome { notes, ..Outcome::ended(finished.status, finished.failure.as_ref()) };
        let (branch, node, visit) = (&finished.branch, &finished.node, finished.visit);
        self.settled(finished.generation, branch, node, visit, &outcome)?;
        for (number, conflict) in finished.conflicts.iter().enumerate() {
            self.totals.quarantined += conflict.sides.len() as u64;
            for side in &conflict.sides {
                let Some(digest) = side.change.digest else { continue };
                let folder = format!("{QUARANTINE_DIR}/{node}-{visit}-{}", side.branch);
                let name = format!("{:04}-{}", number + 1, shown(conflict.path.name().unwrap_or_default()));
                self.hold(&folder, &name, Content::Blob(digest));
            }
        }
        Ok(())
    }

    fn settled(
        &mut self,
        generation: u32,
        branch: &BranchId,
        node: &NodeId,
        visit: u32,
        outcome: &Outcome,
    ) -> Result<(), ProjectError> {
        let task = Task::for_handler(generation, branch, node, visit);
        self.file(&task_folder(&task), "status.json", &encode(outcome, Owner { task: &task, attempt: None }))
    }
}

/// Returns the name of a file in a form that can be part of a file name in the quarantine.
fn shown(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).take(NAME_CHARS_MAX).collect()
}
