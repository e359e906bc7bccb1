//! Takes a run over from the stores that several machines share.
//!
//! The attempts in progress are on other machines, so nothing of them is removed here. An attempt in a process that died is
//! abandoned by a resume instead.

use super::RunDir;
use super::session::{JournalFold, Session};
use crate::driver::{Follow, RunError};
use crate::stores::{OpenStores, Stores};
use glovebox_journal::event::{Record, RunId};
use glovebox_journal::ports::RunLog;
use glovebox_journal::rewind;
use glovebox_pipeline::ir::Pipeline;
use glovebox_plan::prepare::executor::Worker;
use std::sync::Arc;

/// Number of records that are read at a time.
const PAGE_RECORDS: usize = 256;

impl<S: Stores> Session<S> {
    /// Reads the journal of a run from its stores, without verifying it, and keeps its fold. `follower` gets every record in
    /// order.
    pub async fn read_from(
        dir: RunDir,
        stores: OpenStores<S>,
        run: &RunId,
        worker: Worker,
        follower: &mut impl Follow,
    ) -> Result<Self, RunError> {
        let mut records: Vec<Record> = Vec::new();
        loop {
            let from = records.last().map_or(1, |last| last.seq + 1);
            let page = stores.journal.read(run, from, PAGE_RECORDS).await?;
            if page.is_empty() {
                break;
            }
            records.extend(page);
        }
        let mut fold = JournalFold::new(follower);
        rewind::fold(&records, &mut fold);
        fold.follower.appended(&[]).map_err(RunError::Project)?;
        Self::from_fold(Arc::new(dir), stores, worker, fold)
    }

    /// Drives the run without a workspace on this machine, because other machines make the attempts.
    #[must_use]
    pub fn without_workspace(self) -> Self {
        Self { has_workspace: false, ..self }
    }

    /// Takes the messages to the run, for the inbox of its driver.
    pub fn take_mail(&mut self) -> Option<S::Mail> {
        self.mail.take()
    }

    /// Takes the run over from a driver that does not drive it any more. Attempts in progress continue, unlike at a resume.
    /// The workspace is restored to the state in the journal.
    pub async fn take_over(
        &mut self,
        pipeline: &Pipeline,
        follower: &mut impl Follow,
    ) -> Result<Vec<Record>, RunError> {
        if self.has_workspace {
            self.restore_workspace().await?;
        }
        let last = std::mem::take(&mut self.last);
        let (run, replay, pending) = self.position();
        let follower = self.updating_workspace(follower);
        let mut driver = self.driver(pipeline, &(), follower, run, replay, pending);
        let taken = driver.take_over(last).await;
        let takeover = driver.takeover.take();
        (self.replay, self.pending) = driver.into_parts();
        self.takeover = takeover;
        taken
    }
}
