//! A thread of the host swaps a directory for links into forbidden places while operations are on their way through it.

use crate::fixture::{Fixture, SECRET, path};
use glovebox_sandbox::view::{View, Wish};
use rustix::fs::{CWD, RenameFlags};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const RACE_TIME: Duration = Duration::from_millis(1200);

/// Tells the swapping thread to stop, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Exchanges the directory with one link, back, with the other, back, until told to stop; returns the number of exchanges.
fn swap(root: &Path, stop: &AtomicBool) -> u64 {
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        for link in ["to_holdout", "to_src"] {
            for _ in 0..2 {
                rustix::fs::renameat_with(
                    CWD,
                    root.join("out/d"),
                    CWD,
                    root.join("park").join(link),
                    RenameFlags::EXCHANGE,
                )
                .unwrap();
                swaps += 1;
            }
        }
    }
    swaps
}

fn race(prepare: impl Fn(View) -> View) {
    let fixture = Fixture::new();
    let root = fixture.root().to_owned();
    fs::create_dir(root.join("park")).unwrap();
    symlink("../scenarios/holdout", root.join("park/to_holdout")).unwrap();
    symlink("../src", root.join("park/to_src")).unwrap();
    let before = fixture.witness(&["out", "park"]);
    let view = Arc::new(prepare(fixture.view()));
    let stop = AtomicBool::new(false);
    let (mut read, mut written, mut listed) = (0, 0, 0);
    let swaps = std::thread::scope(|threads| {
        let swapping = threads.spawn(|| swap(&root, &stop));
        let stopping = Stop(&stop);
        let target = path("out/d/h.toml");
        let start = Instant::now();
        while start.elapsed() < RACE_TIME {
            if let Ok(content) = view.read_file(&target, 0, 100) {
                assert!(!content.starts_with(SECRET), "leaked");
                read += 1;
            }
            if let Ok(file) = view.open_file(&target, Wish::REPLACE) {
                written += u64::from(file.write_at(b"mine", 0).is_ok());
            }
            if let Ok(entries) = view.list(&path("out/d")) {
                assert!(entries.iter().all(|entry| ["h.toml", "made"].contains(&entry.name.as_str())), "{entries:?}");
                listed += 1;
            }
            let _ = view.unlink(&path("out/d/lib.rs"));
            let _ = view.make_directory(&path("out/d/made"));
            let _ = view.remove_directory(&path("out/d/made"));
        }
        drop(stopping);
        swapping.join().unwrap()
    });
    assert_eq!(fixture.witness(&["out", "park"]), before, "something outside changed");
    assert!(swaps > 100 && read > 0 && written > 0 && listed > 0, "{swaps} swaps, {read} read, {written} written");
}

#[test]
fn swapping_a_directory_for_links_leaks_nothing() {
    race(|view| view);
}

#[test]
fn swapping_leaks_nothing_without_openat2() {
    race(View::without_openat2);
}
