//! A run's hold-outs: sealed before anything else, and opened by each process that drives the run.
//!
//! The sealed hold-outs are beside the workspace in the run directory, never inside the workspace. When they are
//! opened, they are first compared with the journal: a run continues only with the hold-outs with which it began.

use crate::driver::RunError;
use crate::run_dir::{HOLDOUTS_DIR, RunDir};
use glovebox_journal::event::HoldoutsSealed;
use glovebox_journal::ports::BlobStore;
use glovebox_plan::plan::HoldoutPlan;
use glovebox_record::Digest;
use glovebox_record::path::ScopePath;
use glovebox_state::run_state::RunState;
use glovebox_workspace::holdout::canary::{Canary, PublicSummary};
use glovebox_workspace::holdout::{self, COPY_BYTES_MIN, Seal, SealError};
use glovebox_workspace::project::{Base, Include};
use glovebox_workspace::repository::SealedText;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Why the hold-outs of a run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HoldoutError {
    /// The hold-outs could not be sealed or opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The sealed copy cannot be opened again.
    #[error(transparent)]
    Reopen(SealError),
    /// The sealed hold-outs differ from those with which the run began.
    #[error(
        "the sealed hold-outs differ from what the journal says in {0} places, expected none; `glovebox holdout verify` names them"
    )]
    Differs(usize),
    /// The workspace contains copies of hold-outs.
    #[error("{}", copied(.0))]
    Copied(Vec<OpenCopy>),
}

/// A file of the workspace that is byte for byte equal to a hold-out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCopy {
    /// The path of the hold-out.
    pub holdout: String,
    /// The path of the copy, which every stage can read.
    pub copy: String,
}

/// Maximum size of a stored pipeline that is read, in bytes.
const SOURCE_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of copies that a message names.
const COPIES_NAMED_MAX: usize = 10;

fn copied(copies: &[OpenCopy]) -> String {
    let named =
        copies.iter().take(COPIES_NAMED_MAX).map(|open| format!("`{}` is a copy of `{}`", open.copy, open.holdout));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match copies.len().saturating_sub(COPIES_NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the workspace contains copies of hold-outs, which every stage can read: {named}{more}")
}

/// Returns the files of the initial workspace that are byte for byte equal to a sealed hold-out.
pub(super) fn open_copies(run: &RunDir, base: &Base) -> Result<Vec<OpenCopy>, HoldoutError> {
    let seal = Seal::open(&run.path.join(HOLDOUTS_DIR))?;
    let sealed: HashMap<&Digest, &str> = seal.leaves().iter().map(|leaf| (&leaf.digest, leaf.path.as_str())).collect();
    let long = base.files.iter().filter(|(_, fact)| fact.bytes >= COPY_BYTES_MIN);
    let copies = long.filter_map(|(path, fact)| {
        let holdout = (*sealed.get(&fact.digest)?).to_owned();
        Some(OpenCopy { holdout, copy: path.clone() })
    });
    Ok(copies.collect())
}

/// The hold-outs of a run in progress.
#[derive(Debug)]
pub struct Holdouts {
    seal: Seal,
    canary: Canary,
}

impl Holdouts {
    /// Opens the run's hold-outs and compares them with the journal. `None` if the run has none. `source` is the pipeline's
    /// text. Texts that are in the pipeline, in the run's inputs or in the initial workspace are not secret.
    pub fn open(run: &RunDir, state: &RunState, source: &str) -> Result<Option<Self>, HoldoutError> {
        let Some(started) = &state.run else { return Ok(None) };
        let Some(sealed) = &started.workspace.holdouts else { return Ok(None) };
        let seal = Seal::open(&run.path.join(HOLDOUTS_DIR)).map_err(HoldoutError::Reopen)?;
        let deviations = seal.verify(&sealed.root, &seal.files()).map_err(HoldoutError::Reopen)?;
        if !deviations.is_empty() {
            return Err(HoldoutError::Differs(deviations.len()));
        }
        let inputs = started.pipeline.inputs.values().map(String::as_str);
        let texts = [source, started.pipeline.goal.as_str()].into_iter().chain(inputs).collect();
        // A resumed run has changes of its stages in the workspace. They must not decide which texts are public.
        let written = state.main().changes.keys().map(ScopePath::as_str).collect();
        let canary = Canary::for_seal(&seal, &PublicSummary { texts, folder: Some(&run.workspace()), written })
            .map_err(HoldoutError::Reopen)?;
        Ok(Some(Self { seal, canary }))
    }

    /// Returns the path of a folder's sealed copy, which is mounted read-only at the folder's path in the workspace.
    pub fn source(&self, folder: &ScopePath) -> PathBuf {
        self.seal.files().join(folder.as_str())
    }

    /// Returns the folder that contains all sealed copies, each at its original path.
    pub fn files(&self) -> PathBuf {
        self.seal.files()
    }

    /// Returns the sealed files and their fragments, to find their text in earlier versions of files.
    pub fn sealed_text(&self) -> SealedText<'_> {
        SealedText { seal: &self.seal, canary: &self.canary }
    }

    /// Returns a digest of a text that reveals nothing about the text: its key is the salt of the seal.
    pub fn keyed_digest(&self, text: &str) -> Digest {
        self.seal.keyed_digest(text.as_bytes())
    }

    /// Returns the fragments of the hold-outs for which the leak check searches.
    pub fn canary(&self) -> &Canary {
        &self.canary
    }
}

/// Opens the hold-outs of a run. `None` if it has none.
pub(super) fn open(dir: &RunDir, state: &RunState, blobs: &impl BlobStore) -> Result<Option<Holdouts>, RunError> {
    let Some(started) = &state.run else { return Err(RunError::NotStarted) };
    let source = blobs.read_all(&started.pipeline.digest, SOURCE_BYTES_MAX)?;
    let source = String::from_utf8_lossy(&source);
    Holdouts::open(dir, state, &source).map_err(|error| RunError::Holdouts(Box::new(error)))
}

/// Opens the hold-outs that [`seal`] sealed.
pub(super) fn sealed(dir: &RunDir) -> Result<Seal, RunError> {
    Seal::open(&dir.path.join(HOLDOUTS_DIR)).map_err(|error| RunError::Holdouts(Box::new(HoldoutError::from(error))))
}

/// Seals the hold-outs of the plan, off the executor's threads, and excludes them from the workspace.
pub(super) async fn seal(
    dir: &RunDir,
    project: &Path,
    plan: &HoldoutPlan,
    include: &mut Include,
) -> Result<Option<HoldoutsSealed>, RunError> {
    if plan.is_empty() {
        return Ok(None);
    }
    let failed = |error: SealError| RunError::Holdouts(Box::new(HoldoutError::from(error)));
    let folders = holdout::entries(&plan.folders).map_err(failed)?;
    include.leave_out.extend(folders.iter().cloned());
    let (project, into) = (project.to_owned(), dir.path.join(HOLDOUTS_DIR));
    let sealed = tokio::task::spawn_blocking(move || holdout::seal(&project, &folders, &into)).await;
    let seal = sealed.map_err(|panic| RunError::Workspace(Box::new(panic)))?.map_err(failed)?;
    Ok(Some(HoldoutsSealed {
        folders: seal.folders().to_vec(),
        root: seal.root(),
        files: seal.leaves().len() as u64,
        bytes: seal.bytes(),
        reach: plan.reach.clone(),
        packs_digest: None,
        opt_outs: plan.opt_outs.clone(),
    }))
}
