//! Operations through a directory while a thread of the host swaps it for symbolic links to forbidden places.

use super::fixture::{Fixture, SECRET, path, scope};
use super::swap::Swapping;
use glovebox_workspace::view::{OpenOptions, View};
use std::sync::Arc;
use std::time::{Duration, Instant};

const RACE_TIME: Duration = Duration::from_millis(1200);
/// Maximum time until each of the operations has succeeded once on a busy machine.
const LUCK_TIME: Duration = Duration::from_secs(60);

/// Counts of the operations that succeeded while the directory was swapped.
#[derive(Default)]
struct Lucky {
    read: u64,
    written: u64,
    listed: u64,
}

impl Lucky {
    /// Tries every operation once on a view.
    fn turn(&mut self, view: &Arc<View>) {
        let target = path("out/d/h.toml");
        if let Ok(content) = view.read_file(&target, 0, 100) {
            assert!(!content.starts_with(SECRET), "leaked");
            self.read += 1;
        }
        if let Ok(file) = view.open_file(&target, OpenOptions { truncate: false, read: true, ..OpenOptions::REPLACE }) {
            let mut content = [0; 100];
            let count = file.read_at(&mut content, 0).unwrap();
            assert!(!content[..count].starts_with(SECRET), "copied");
        }
        if let Ok(file) = view.open_file(&target, OpenOptions::REPLACE) {
            self.written += u64::from(file.write_at(b"mine", 0).is_ok());
        }
        if let Ok(entries) = view.list(&path("out/d")) {
            assert!(entries.iter().all(|entry| ["h.toml", "made"].contains(&entry.name.as_str())), "{entries:?}");
            self.listed += 1;
        }
        let _ = view.unlink(&path("out/d/lib.rs"));
        let _ = view.make_directory(&path("out/d/made"));
        let _ = view.remove_directory(&path("out/d/made"));
        if view.rename(&path("out/d"), &path("out/moved")).is_ok() {
            let _ = view.rename(&path("out/moved"), &path("out/d"));
        }
    }

    fn is_complete(&self) -> bool {
        [self.read, self.written, self.listed].iter().all(|count| *count > 0)
    }
}

/// Runs turns on views of a tree in which the directory is swapped. `next` returns the view of the next turn.
fn race(fixture: &Fixture, mut next: impl FnMut() -> Arc<View>, outside: &[&str]) {
    let before = fixture.witness(outside);
    let swapping = Swapping::start(fixture);
    let mut lucky = Lucky::default();
    let start = Instant::now();
    let is_enough = |lucky: &Lucky| lucky.is_complete() && swapping.count() > 100;
    while start.elapsed() < RACE_TIME || !is_enough(&lucky) && start.elapsed() < LUCK_TIME {
        lucky.turn(&next());
    }
    let swaps = swapping.finish();
    assert_eq!(fixture.witness(outside), before, "something outside changed");
    assert!(swaps > 100 && lucky.is_complete(), "{swaps} swaps, {} read, {} written", lucky.read, lucky.written);
}

const OUTSIDE: &[&str] = &["out", "park"];

#[test]
fn swapping_a_directory_for_links_leaks_nothing() {
    let fixture = Fixture::new();
    // The scope forbids moving `out/d`, because a move would also move the directory that is swapped.
    let view = Arc::new(fixture.view_with(fixed_scope(), Default::default()));
    race(&fixture, || Arc::clone(&view), OUTSIDE);
}

#[test]
fn swapping_leaks_nothing_without_openat2() {
    let fixture = Fixture::new();
    let view = Arc::new(fixture.view_with(fixed_scope(), Default::default()).without_openat2());
    race(&fixture, || Arc::clone(&view), OUTSIDE);
}

#[test]
fn swapping_below_a_layer_leaks_nothing_and_copies_nothing_else() {
    for openat2 in [true, false] {
        let fixture = Fixture::new();
        // Each turn has a new layer, because a layer does not read a file again after it copied it.
        let next = || {
            let view = fixture.layered();
            Arc::new(if openat2 { view } else { view.without_openat2() })
        };
        race(&fixture, next, &["out/d", "park"]);
    }
}

/// Returns the usual scope, but `out/d` itself cannot be renamed.
fn fixed_scope() -> glovebox_record::scope::Scope {
    scope(&["./"], &["out/d/", "src/main.rs"], &["scenarios/holdout/"])
}
