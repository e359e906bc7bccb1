//! Operations on their way through a directory that a thread of the host swaps for links into forbidden places.

use crate::fixture::{Fixture, SECRET, path};
use crate::swap::Swapping;
use glovebox_sandbox::view::{OpenOptions, View};
use std::sync::Arc;
use std::time::{Duration, Instant};

const RACE_TIME: Duration = Duration::from_millis(1200);
/// As long may it take on a busy machine until each of the operations has been lucky once.
const LUCK_TIME: Duration = Duration::from_secs(60);

fn race(prepare: impl Fn(View) -> View) {
    let fixture = Fixture::new();
    let before = fixture.witness(&["out", "park"]);
    let view = Arc::new(prepare(fixture.view()));
    let swapping = Swapping::start(&fixture);
    let (mut read, mut written, mut listed) = (0, 0, 0);
    let target = path("out/d/h.toml");
    let start = Instant::now();
    let is_lucky = |counts: [u64; 3]| counts.iter().all(|count| *count > 0) && swapping.count() > 100;
    while start.elapsed() < RACE_TIME || !is_lucky([read, written, listed]) && start.elapsed() < LUCK_TIME {
        if let Ok(content) = view.read_file(&target, 0, 100) {
            assert!(!content.starts_with(SECRET), "leaked");
            read += 1;
        }
        if let Ok(file) = view.open_file(&target, OpenOptions::REPLACE) {
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
    let swaps = swapping.finish();
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
