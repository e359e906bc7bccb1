//! A run's hold-outs: sealed before anything else, and opened again by whoever drives it.
//!
//! They lie beside the workspace and are never in it. Whoever opens them compares them with the journal first: a run goes on
//! only with the hold-outs it began with.

use super::RunDir;
use crate::driver::RunError;
use crate::event::{HoldoutsSealed, RunStarted};
use crate::plan::HoldoutPlan;
use glovebox_sandbox::holdout::canary::Canary;
use glovebox_sandbox::holdout::{self, Root, Seal, SealError};
use glovebox_sandbox::project::Include;
use std::path::{Path, PathBuf};

/// Folder of the sealed hold-outs in a run directory.
pub const HOLDOUTS_DIR: &str = "holdouts";

/// Why a run has no hold-outs to go on with.
#[derive(Debug, thiserror::Error)]
pub enum HoldoutError {
    /// They could not be sealed or opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// They are not those the run began with.
    #[error(
        "the sealed hold-outs differ from what the journal says in {0} places, expected none; `glovebox holdout verify` names them"
    )]
    Differs(usize),
}

/// Hold-outs of a run in progress.
#[derive(Debug)]
pub struct Holdouts {
    seal: Seal,
    canary: Canary,
}

impl Holdouts {
    /// Opens the run's hold-outs, if it has any, and compares them with the journal. `source` is the pipeline's text: what it
    /// and the workspace show anyhow is no secret.
    pub fn open(run: &RunDir, started: &RunStarted, source: &str) -> Result<Option<Self>, HoldoutError> {
        let Some(sealed) = &started.holdouts else { return Ok(None) };
        let seal = Seal::open(&run.path.join(HOLDOUTS_DIR))?;
        let deviations = seal.verify(&Root::of(&sealed.root), &seal.files())?;
        if !deviations.is_empty() {
            return Err(HoldoutError::Differs(deviations.len()));
        }
        let canary = Canary::of(&seal, &[source])?.less_folder(&run.workspace())?;
        Ok(Some(Self { seal, canary }))
    }

    /// Where the sealed copy of a folder lies: what is mounted read-only at that path of the workspace.
    pub fn source(&self, folder: &glovebox_sandbox::path::ScopePath) -> PathBuf {
        self.seal.files().join(folder.as_str())
    }

    /// The folder they are all kept in, each at its own path below.
    pub fn files(&self) -> PathBuf {
        self.seal.files()
    }

    /// Their lines, to be looked for.
    pub fn canary(&self) -> &Canary {
        &self.canary
    }
}

/// Seals what the plan names, off the executor's threads, and leaves it out of the workspace.
pub(super) async fn seal(
    dir: &RunDir,
    project: &Path,
    plan: &HoldoutPlan,
    include: &mut Include,
) -> Result<Option<HoldoutsSealed>, RunError> {
    if plan.is_empty() {
        return Ok(None);
    }
    let failed = |error: SealError| RunError::Holdouts(error.into());
    let folders = holdout::entries(&plan.folders).map_err(failed)?;
    include.leave_out.extend(folders.iter().cloned());
    let (project, into) = (project.to_owned(), dir.path.join(HOLDOUTS_DIR));
    let sealed = tokio::task::spawn_blocking(move || holdout::seal(&project, &folders, &into)).await;
    let seal = sealed.map_err(|panic| RunError::Workspace(Box::new(panic)))?.map_err(failed)?;
    Ok(Some(HoldoutsSealed {
        folders: seal.folders().to_vec(),
        root: seal.root().to_string(),
        files: seal.leaves().len() as u64,
        bytes: seal.bytes(),
        reach: plan.reach.clone(),
        opt_outs: plan.opt_outs.clone(),
    }))
}
