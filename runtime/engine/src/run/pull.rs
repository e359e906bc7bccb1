//! Makes a run directory of this machine from a run whose stores several machines share.
//!
//! The new journal has the same records, with the same hashes, and the signatures of this user. Everything that the records
//! name is copied, and the workspace has the files with which the run ended.

use super::fork::{copy_blob, named};
use super::packs::{Contents, fetch_holdouts};
use super::restore::BASE_BYTES_MAX;
use super::session::JournalFold;
use super::{HOLDOUTS_DIR, RunDir, WORKSPACE_DIR};
use crate::driver::{Follow, RunError};
use crate::project::Projector;
use crate::stores::{self, OpenStores};
use glovebox_journal::event::{Digest, Event, Record, RunId};
use glovebox_journal::ports::{BlobStore, PortError, RunLog};
use glovebox_journal::rewind;
use glovebox_journal::sqlite::Owner;
use glovebox_pipeline::ir::Pipeline;
use glovebox_state::evidence::Replay;
use glovebox_workspace::flush::flush_all;
use glovebox_workspace::project::Base;
use glovebox_workspace::restore;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

/// A run directory that was pulled. While a machine drives the run, the value holds the lock of the directory, so that no
/// command takes the copy for a run whose process was killed.
pub struct Pulled {
    _held: Option<Owner>,
}

/// Copies the run with these records into an empty directory. `pipeline` is the one that the run executed. Without
/// `has_files`, the copy has no workspace.
///
/// # Errors
///
/// A blob is missing or rotten, the first record names files that no run has, a record has another hash than before, or the disk fails.
pub async fn pull<B: BlobStore>(
    dir: &RunDir,
    run: &RunId,
    records: &[Record],
    from: &B,
    pipeline: Arc<Pipeline>,
    has_files: bool,
) -> Result<Pulled, RunError> {
    let (OpenStores { journal, blobs, held, .. }, reserve) = stores::create(dir, run)?;
    let started = records.first().and_then(|first| first.event.run_started()).ok_or(RunError::NotStarted)?;
    let base: Base = serde_json::from_slice(&from.read_all(&started.workspace.base_digest, BASE_BYTES_MAX)?)
        .map_err(|error| RunError::Workspace(Box::new(error)))?;
    if let Some(fault) = base.fault() {
        return Err(RunError::Workspace(format!("the list of its files: {fault}").into()));
    }
    if started.run_id != *run {
        return Err(RunError::Workspace("its first record is that of another run".into()));
    }
    let holdouts = started.workspace.holdouts.as_ref().and_then(|sealed| sealed.packs_digest);
    // Events that were appended together are appended together again.
    for batch in records.chunk_by(|one, other| one.at == other.at) {
        let events: Vec<Event> = batch.iter().map(|record| record.event.clone()).collect();
        for value in events.iter().filter_map(|event| serde_json::to_value(event).ok()) {
            // The hold-outs have a folder of their own, which fewer readers may see.
            let named = named(&value).into_iter().filter(|digest| holdouts != Some(*digest));
            named.into_iter().try_for_each(|digest| copy_blob(from, &*blobs, &digest))?;
        }
        let at = batch.first().map_or(jiff::Timestamp::UNIX_EPOCH, |record| record.at);
        let stored = journal.append(run, &[], at, &events).await?;
        if let Some((record, stored)) = batch.iter().zip(stored).find(|(record, stored)| record.hash != stored.hash) {
            let (what, found) = (format!("record {}", record.seq), format!("it has the hash {} here", stored.hash));
            return Err(PortError::Corrupt { what, found }.into());
        }
    }
    let replay: Replay = rewind::after(rewind::before(records, u64::MAX));
    if has_files {
        if let Some(sealed) = &started.workspace.holdouts {
            let contents = tempfile::tempdir_in(&dir.path).map_err(|error| RunError::Workspace(Box::new(error)))?;
            fetch_holdouts(sealed, from, contents.path(), &dir.path.join(HOLDOUTS_DIR))?;
        }
        make_workspace(dir, started.workspace.packs_digest.as_ref(), &base, from, &*blobs, &replay)?;
    }
    journal.append(run, &[], jiff::Timestamp::now(), &[]).await?;
    let files = dir.dir.try_clone().map_err(|error| RunError::Project(Box::new(error)))?;
    let mut projector = Projector::new(files, Arc::clone(&blobs), pipeline);
    let mut fold = JournalFold::new(&mut projector);
    rewind::fold(records, &mut fold);
    fold.follower.appended(&[]).map_err(RunError::Project)?;
    projector.caught_up().map_err(|error| RunError::Project(Box::new(error)))?;
    drop(reserve);
    flush_all(&[&dir.path]).map_err(|error| RunError::Workspace(Box::new(error)))?;
    let is_driven = replay.state.verdict.is_none() && !replay.state.paused;
    Ok(Pulled { _held: is_driven.then_some(held) })
}

/// Creates the files with which the run ended, and stores the initial versions of files that it changed, which `diff` shows.
fn make_workspace<B: BlobStore>(
    dir: &RunDir,
    packs: Option<&Digest>,
    base: &Base,
    from: &B,
    to: &impl BlobStore,
    replay: &Replay,
) -> Result<(), RunError> {
    let disk = |error: io::Error| RunError::Workspace(Box::new(error));
    // On the disk of the run, so that the space that it needs is that of the run.
    let folder = tempfile::tempdir_in(&dir.path).map_err(disk)?;
    let contents = Contents::new(folder.path().to_owned());
    if let Some(packs) = packs {
        contents.fetch(base, packs, from)?;
    }
    let open = |digest: &Digest| -> io::Result<Box<dyn Read + Send>> {
        match contents.open(digest) {
            Err(error) if error.kind() == ErrorKind::NotFound => from.open_unverified(digest),
            found => Ok(Box::new(found?)),
        }
    };
    let changes = &replay.state.main().changes;
    for change in changes.values() {
        if let Some(fact) = base.files.get(change.path.as_str()) {
            to.put(&mut open(&fact.digest).map_err(disk)?)?;
        }
    }
    dir.dir.create_dir_all(WORKSPACE_DIR).map_err(disk)?;
    restore::restore(&dir.workspace(), base, changes.values(), &open)
        .map(drop)
        .map_err(|error| RunError::Workspace(Box::new(error)))
}
