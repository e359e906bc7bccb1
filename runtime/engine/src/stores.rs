//! The stores of a run: its journal, its blobs, and the lease of the process that drives it.
//!
//! [`Embedded`] is the set for one machine: a database, files and a lock in the run directory. The rest of the crate names
//! only [`Stores`].

use crate::driver::RunError;
use crate::inbox::{FolderMail, Mail};
use crate::reserve::Reserve;
use crate::run_dir::{OWNER_FILE, RunDir};
use cap_std::fs::Dir;
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::RunId;
use glovebox_journal::ports::{BlobStore, ClaimQueue, Leases, PortError, RunLog};
use glovebox_journal::sqlite::{Owner, OwnerFile, SqliteLog};
use glovebox_workspace::run_folder::JOURNAL_FILE;
use std::sync::Arc;

/// A set of adapters.
pub trait Stores: 'static {
    /// The journal and the queue.
    type Log: RunLog + ClaimQueue;
    /// The blobs.
    type Blobs: BlobStore + 'static;
    /// The lease of the process that drives a run.
    type Lease: Leases;
    /// The messages of people.
    type Mail: Mail;

    /// Prepares a journal for many appends. Called by the process that drives the run.
    fn lengthen(_journal: &Self::Log, _run: &Dir) -> Result<(), PortError> {
        Ok(())
    }
}

/// The open stores of a run. The lease is dropped last: no other process may open the stores before they are closed.
pub struct OpenStores<S: Stores> {
    /// The journal of the run.
    pub journal: S::Log,
    /// The blobs of the run.
    pub blobs: Arc<S::Blobs>,
    /// The messages to the run.
    pub mail: S::Mail,
    /// Keeps the lease of the run.
    pub lease: S::Lease,
    /// The lease of the run.
    pub held: <S::Lease as Leases>::Held,
}

/// The stores of one machine, in the run directory.
pub struct Embedded;

impl Stores for Embedded {
    type Log = SqliteLog;
    type Blobs = DirBlobs;
    type Lease = OwnerFile;
    type Mail = FolderMail;

    fn lengthen(journal: &SqliteLog, run: &Dir) -> Result<(), PortError> {
        journal.lengthen(run)
    }
}

/// Creates the stores of a run in its directory, and the space for its end. The lock comes first, because no store of a run may
/// be opened for writing without it.
pub(crate) fn create(dir: &RunDir, run: &RunId) -> Result<(OpenStores<Embedded>, Reserve), RunError> {
    let lease = lease(dir);
    let held = Owner::acquire(&lease.0)?;
    SqliteLog::create_in(&dir.dir)?;
    let journal = SqliteLog::open_signed(&dir.path.join(JOURNAL_FILE), run.clone(), dir.key.clone())?;
    let blobs = Arc::new(journal.blobs(&dir.dir)?);
    Embedded::lengthen(&journal, &dir.dir)?;
    let reserve = Reserve::keep(dir).map_err(|error| RunError::Project(Box::new(error)))?;
    let mail = mail(dir, run)?;
    Ok((OpenStores { journal, blobs, mail, lease, held }, reserve))
}

/// Returns the folder of messages in a run directory.
pub(crate) fn mail(dir: &RunDir, run: &RunId) -> Result<FolderMail, RunError> {
    let folder = dir.dir.try_clone().map_err(|error| RunError::Project(Box::new(error)))?;
    Ok(FolderMail::new(folder, run.clone(), dir.key.clone()))
}

/// Returns the lock of a run directory.
pub(crate) fn lease(dir: &RunDir) -> OwnerFile {
    OwnerFile(dir.path.join(OWNER_FILE))
}
