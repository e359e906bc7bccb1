//! A thread of the host that keeps swapping `out/d` for links into forbidden places.

use crate::fixture::Fixture;
use rustix::fs::{CWD, RenameFlags};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The thread; it ends with this value, also when a test fails.
pub(crate) struct Swapping {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Swapping {
    /// Puts links to the hidden directory and to `src` into `park/` and begins. Only `out` and `park` may differ afterwards.
    pub(crate) fn start(fixture: &Fixture) -> Self {
        let root = fixture.root().to_owned();
        fs::create_dir(root.join("park")).unwrap();
        symlink("../scenarios/holdout", root.join("park/to_holdout")).unwrap();
        symlink("../src", root.join("park/to_src")).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        Self { stop, thread: Some(std::thread::spawn(move || swap(&root, &told))) }
    }

    /// Ends it; returns the number of swaps.
    pub(crate) fn finish(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Exchanges the directory with one link, back, with the other, back.
fn swap(root: &Path, stop: &AtomicBool) -> u64 {
    let link = |name: &str| -> PathBuf { root.join("park").join(name) };
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        for other in [link("to_holdout"), link("to_src")] {
            for _ in 0..2 {
                rustix::fs::renameat_with(CWD, root.join("out/d"), CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
        }
    }
    swaps
}
