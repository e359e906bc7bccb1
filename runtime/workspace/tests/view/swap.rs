//! A thread of the host that repeatedly swaps `out/d` for symbolic links to forbidden places.

use super::fixture::Fixture;
use rustix::fs::{CWD, RenameFlags};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The thread. It ends when this value is dropped, even if a test fails.
pub(crate) struct Swapping {
    told: Arc<SwapControl>,
    thread: Option<JoinHandle<()>>,
}

/// Stop flag and counter of the thread.
#[derive(Default)]
struct SwapControl {
    stop: AtomicBool,
    swaps: AtomicU64,
}

impl Swapping {
    /// Creates links to the hidden directory and to `src` in `park/`, and starts the thread. Only `out` and `park` may
    /// differ afterwards.
    pub(crate) fn start(fixture: &Fixture) -> Self {
        let root = fixture.root().to_owned();
        fs::create_dir(root.join("park")).unwrap();
        symlink("../scenarios/holdout", root.join("park/to_holdout")).unwrap();
        symlink("../src", root.join("park/to_src")).unwrap();
        let told = Arc::new(SwapControl::default());
        let heard = Arc::clone(&told);
        Self { told, thread: Some(std::thread::spawn(move || swap(&root, &heard))) }
    }

    /// Returns the number of swaps so far.
    pub(crate) fn count(&self) -> u64 {
        self.told.swaps.load(Ordering::Relaxed)
    }

    /// Stops the thread and returns the number of swaps.
    pub(crate) fn finish(mut self) -> u64 {
        self.told.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.count()
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.told.stop.store(true, Ordering::Relaxed);
    }
}

/// Exchanges the directory with one link and back, then with the other link and back.
fn swap(root: &Path, told: &SwapControl) {
    let link = |name: &str| -> PathBuf { root.join("park").join(name) };
    while !told.stop.load(Ordering::Relaxed) {
        for other in [link("to_holdout"), link("to_src")] {
            for _ in 0..2 {
                rustix::fs::renameat_with(CWD, root.join("out/d"), CWD, &other, RenameFlags::EXCHANGE).unwrap();
                told.swaps.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
