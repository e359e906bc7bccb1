//! Lets one process at a time change the files of a folder.

use super::shown;
use crate::exit::{Exit, Stop};
use glovebox_workspace::regular_file;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time to wait for another process.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Time between two attempts to take the lock.
const POLL: Duration = Duration::from_millis(20);

/// Waits until no other process changes the folder, and keeps others out until the value is dropped. The folder itself is locked, so that
/// no file is left behind.
///
/// # Errors
///
/// Exit 9 if another process holds the folder for too long.
pub fn lock(folder: &Path) -> Result<File, Stop> {
    let failed = |error: &io::Error| Stop::io(format!("open the folder `{}`", shown(folder)), error);
    let guard = regular_file::open_folder(folder).map_err(|error| failed(&error))?;
    let begin = Instant::now();
    loop {
        match guard.try_lock() {
            Ok(()) => return Ok(guard),
            Err(TryLockError::WouldBlock) if begin.elapsed() < WAIT_MAX => thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process holds the folder `{}`", shown(folder));
                return Err(Stop::new(Exit::Transient, message).with_help("repeat the command when it has ended"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
    }
}
