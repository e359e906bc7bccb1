//! Files that another process changed while a stage worked on them.

use super::bench::{Bench, put, scope, snapshot};
use super::upper::{Upper, commit, lines, look, overlay};
use glovebox_workspace::change::Verdict;
use glovebox_workspace::stage::{ViewOverrides, WorkspaceView};
use std::fs;
use std::time::Duration;

const FILES: &[(&str, &str)] = &[("src/a", "a"), ("src/b", "b"), ("src/d/x", "x"), ("src/e", "e")];

/// Checks a stage that changes everything it may while another process changes some of the same files.
fn check(overlaid: bool, expected: &[&str]) {
    let made = Bench::new(FILES);
    let scope = scope(&["./"], &["./"], &[]);
    let view = match overlaid {
        true => overlay(&made, &scope, &ViewOverrides::default()),
        false => {
            WorkspaceView::copy(&made.workspace(), &made.dir.path().join("attempt"), &scope, &ViewOverrides::default())
                .unwrap()
        }
    };
    // A change in the same clock tick in which the view was created cannot be detected.
    std::thread::sleep(Duration::from_millis(50));
    let theirs = |path: &str| put(&made.workspace().join(path), "theirs");
    theirs("src/a");
    theirs("src/d/x");
    theirs("src/new");
    fs::remove_file(made.workspace().join("src/e")).unwrap();
    theirs("src/e");
    match view.root() {
        Some(root) => {
            put(&root.join("src/a"), "mine");
            put(&root.join("src/b"), "mine");
            put(&root.join("src/new"), "mine");
            fs::remove_file(root.join("src/e")).unwrap();
            fs::remove_dir_all(root.join("src/d")).unwrap();
            put(&root.join("src/d"), "mine");
        }
        None => {
            let upper = Upper::of(&view);
            upper.file("src/a", "mine").file("src/b", "mine").file("src/new", "mine").gone("src/e");
            upper.file("src/d", "mine");
        }
    }
    let found = look(&view);
    assert_eq!(lines(&found), expected);
    let reasons = found.iter().filter_map(|change| match &change.verdict {
        Verdict::Disallowed(reason) if change.path != "src/d" => Some(reason.as_str()),
        _ => None,
    });
    reasons.for_each(|reason| assert_eq!(reason, "the workspace changed at this path after the stage began"));
    let mut before = snapshot(&made.workspace());
    commit(&made, &view);
    before.insert("src/b".to_owned(), "false mine".to_owned());
    assert_eq!(snapshot(&made.workspace()), before);
    view.remove().unwrap();
}

#[test]
fn a_file_somebody_else_changed_is_not_overwritten() {
    let expected = [
        "!write src/a",
        "write src/b",
        "rmdir src/d",
        "!write src/d",
        "!delete src/d/x",
        "!delete src/e",
        "!write src/new",
    ];
    check(false, &expected);
    check(true, &expected);
}

#[test]
fn what_the_stage_before_committed_is_not_somebody_elses() {
    let made = Bench::new(FILES);
    for turn in 0..20 {
        let view = overlay(&made, &scope(&["./"], &["./"], &[]), &ViewOverrides::default());
        Upper::of(&view).file("src/a", &format!("turn {turn}")).file("src/b", &format!("turn {turn}"));
        // If a file's time is read between two changes, the file gets a more precise time than the coarse clock.
        fs::metadata(made.workspace().join("src/a")).unwrap();
        commit(&made, &view);
        assert_eq!(fs::read_to_string(made.workspace().join("src/a")).unwrap(), format!("turn {turn}"));
        view.remove().unwrap();
    }
}
