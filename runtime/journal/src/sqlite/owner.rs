//! The lock that keeps two processes from driving one run.
//!
//! The lock is a second database with an exclusive transaction that stays open as long as the owner lives. The kernel
//! holds the lock (`fcntl` record locks) and releases it as soon as the process ends, even by SIGKILL. So a run whose
//! driver died can be resumed immediately. Child processes do not inherit the lock, so an orphaned command cannot keep
//! a run locked.

use super::{guard, port_error};
use crate::event::RunId;
use crate::ports::{Leases, PortError};
use rusqlite::{Connection, OpenFlags};
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lock of a run that is driven. It is released on drop.
pub struct Owner {
    _connection: Connection,
}

/// The lock at a path as the lease of a run. The kernel keeps it as long as the process lives.
pub struct OwnerFile(pub PathBuf);

impl Leases for OwnerFile {
    type Held = Owner;

    async fn take(&self, _run: &RunId) -> Result<Owner, PortError> {
        Owner::acquire(&self.0)
    }

    async fn keep(&self, _held: &Owner) -> PortError {
        pending().await
    }
}

/// Maximum time for which [`Owner::acquire`] waits. A process that drives the run holds the lock for much longer, but
/// [`Owner::is_held`] of another process holds a shared lock while it reads.
const LOOK_MAX: Duration = Duration::from_millis(250);

impl Owner {
    /// Takes the lock at `path` (`owner.sqlite` in the run directory). Returns an error if another process holds it.
    pub fn acquire(path: &Path) -> Result<Self, PortError> {
        guard::check_files(path)?;
        let connection = Connection::open(path).map_err(port_error)?;
        connection.busy_timeout(LOOK_MAX).map_err(port_error)?;
        connection.execute_batch("BEGIN EXCLUSIVE").map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                PortError::Unavailable(format!("another process drives this run and holds `{}`", path.display()))
            }
            _ => port_error(error),
        })?;
        Ok(Self { _connection: connection })
    }

    /// Returns true if another process holds the lock at `path`. The check only reads, and holds no lock after it
    /// returns.
    pub fn is_held(path: &Path) -> bool {
        if guard::check_files(path).is_err() {
            return false;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let Ok(connection) = Connection::open_with_flags(path, flags) else { return false };
        let asked = connection
            .busy_timeout(Duration::ZERO)
            .and_then(|()| connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0)));
        asked.is_err_and(|error| error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy))
    }
}
