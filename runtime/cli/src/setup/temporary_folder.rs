//! A folder below the system's folder for temporary files, removed on drop.

use crate::exit::Exit;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Maximum number of attempts to remove a folder into which another thread writes.
const REMOVALS_MAX: usize = 20;
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// A temporary folder of this process.
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder whose name contains `purpose`. Its path contains no symbolic links, because the sandbox bind-mounts it by file
    /// descriptor.
    pub fn new(purpose: &str) -> io::Result<Self> {
        let parent = std::fs::canonicalize(std::env::temp_dir())?;
        let folder = parent.join(format!("glovebox-{purpose}-{}", ulid::Ulid::generate()));
        std::fs::create_dir(&folder)?;
        Ok(Self(folder))
    }

    /// As [`Self::new`]. SIGINT and SIGTERM remove the folder and end the process. For commands that do not wait for signals themselves.
    ///
    /// # Errors
    ///
    /// The folder cannot be created, or signals cannot be received.
    pub fn removed_by_signals(purpose: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listening = runtime.enter();
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        drop(listening);
        let created = Self::new(purpose)?;
        let folder = created.0.clone();
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let exit = runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => Exit::Interrupted,
                    _ = terminate.recv() => Exit::Terminated,
                }
            });
            // Another thread may be writing into the folder. Under another name it gets no new files, but files that are being
            // written may remain after one attempt.
            let removed = folder.with_extension("removed");
            for _ in 0..REMOVALS_MAX {
                let _renamed_before = std::fs::rename(&folder, &removed);
                let _has_files = std::fs::remove_dir_all(&removed);
                if !removed.exists() && !folder.exists() {
                    break;
                }
                thread::sleep(PAUSE);
            }
            std::process::exit(i32::from(exit.code()));
        })?;
        Ok(created)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}
