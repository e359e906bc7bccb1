//! The end of a run that cannot continue because of an error of the machine or of Glovebox
//! (decision final-json-at-every-end).
//!
//! If the disk is full, the space in reserve is given back and the end is recorded, so that a resume continues where the
//! run stopped. After every other error the journal stays as it is, and only `final.json` tells the end.

use super::{Run, RunError, project_error};
use crate::reserve;
use crate::stores::Stores;
use glovebox_journal::event::{Record, whole_milliseconds};
use glovebox_journal::ports::PortError;
use glovebox_record::{Failure, FailureClass, FailureCode};
use std::error::Error;
use std::io::{self, ErrorKind};

impl<S: Stores> Run<S> {
    /// Completes the files of a run that has stopped, and returns the records that this added. `driven` is the result of
    /// driving it.
    pub(super) async fn complete(&mut self, driven: &Result<(), RunError>) -> Result<Vec<Record>, RunError> {
        // The files of the attempt may be gone, and with them the lack of space: then only the error tells it.
        let is_full = driven.as_ref().is_err_and(|error| reserve::is_full(&self.session.dir.dir) || lacks_space(error));
        self.session.reserve = None;
        let Err(error) = driven else { return Ok(Vec::new()) };
        if !writes_final_file(error) {
            return Ok(Vec::new());
        }
        let failure = failure(error, is_full);
        let has_ended = self.session.verdict().is_some();
        let ended = match is_full && !has_ended {
            true => {
                let pipeline = &self.executor.plan.pipeline;
                let ended = self.session.end(pipeline, failure.clone(), &mut self.projector).await;
                ended.unwrap_or_else(|error| {
                    tracing::warn!(%error, "the end of the run was not recorded");
                    Vec::new()
                })
            }
            false => Vec::new(),
        };
        let now = whole_milliseconds(self.session.clock.now());
        self.projector.write_end(self.session.state(), now, failure).map_err(project_error)?;
        Ok(ended)
    }
}

/// Returns true if the error ends the run here. False if another process may drive the run, and for a journal that is not trusted.
fn writes_final_file(error: &RunError) -> bool {
    match error {
        RunError::Port(PortError::Unavailable(_)) => true,
        RunError::Execute { .. } | RunError::Project(_) | RunError::Workspace(_) | RunError::NothingReady(_) => true,
        RunError::Port(_) | RunError::Holdouts(_) | RunError::Ended { .. } | RunError::Canceled { .. } => false,
        RunError::LimitReached(_) | RunError::NotStarted | RunError::TakenOver { .. } => false,
    }
}

/// Returns true if the error, or one that caused it, is that of a full disk or of a used up quota.
pub fn lacks_space(error: &RunError) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if matches!(kind, Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded)) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn failure(error: &RunError, is_full: bool) -> Failure {
    let (mut reason, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    match error {
        _ if is_full => {
            let reason = format!("no space is left on the disk of the run: {reason}");
            Failure::new(FailureClass::Transient, FailureCode::RUN_DISK_FULL, reason)
        }
        RunError::NothingReady(_) => Failure::new(FailureClass::Internal, FailureCode::HOST_FAULT, reason),
        _ => Failure::new(FailureClass::Transient, FailureCode::HOST_FAULT, reason),
    }
}
