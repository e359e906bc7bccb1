//! Ends a run that no process drives, for good.
//!
//! The run's plan is not needed, so a run can be canceled even if its settings or components no longer exist.

use super::session::Session;
use super::{RunDir, project_error};
use crate::attempt::sweep;
use crate::driver::RunError;
use crate::project::Projector;
use glovebox_journal::event::RunCanceled;
use glovebox_journal::sqlite::VerifiedJournal;
use glovebox_pipeline::ir::Pipeline;
use glovebox_plan::prepare::executor::Worker;
use std::sync::Arc;

/// Ends a run for good and rebuilds its files. Returns false if the run had already ended.
pub async fn cancel(
    dir: RunDir,
    worker: Worker,
    pipeline: Arc<Pipeline>,
    verified: &VerifiedJournal,
    canceled: RunCanceled,
) -> Result<bool, RunError> {
    let unread = Session::open(dir, worker, verified)?;
    let files = unread.dir.dir.try_clone().map_err(|error| RunError::Project(Box::new(error)))?;
    let mut projector = Projector::new(files, Arc::clone(&unread.blobs), Arc::clone(&pipeline));
    let (mut session, _) = unread.read_whole(&mut projector)?;
    let goes_on = !session.state().is_over();
    if goes_on {
        sweep(&session.dir);
        session.cancel(&pipeline, canceled, &mut projector).await?;
    }
    // Reading a long journal has begun to write the files, so they are completed in any case.
    projector.caught_up().map_err(project_error)?;
    Ok(goes_on)
}
