//! Tests that applying to the user's project replaces no obstacle: an existing file stays, and the change is refused.

use super::*;
use std::fs;

/// Applies one change in a folder of the user and returns the error.
fn refused(folder: &Path, change: FileChange) -> CommitError {
    let tree = Tree::open(folder).unwrap();
    let open_blob = |_: &Digest| Ok(&b"new"[..]);
    let writer = ChangeWriter { tree: &tree, obstacle: Obstacle::Refuse, open_blob: &open_blob };
    writer.all(&[change]).expect_err("something is in the way")
}

fn write(path: &str) -> FileChange {
    let bare = FileChange::bare(ScopePath::parse(path).unwrap(), ChangeOp::Write);
    FileChange { digest: Some(Digest::hash(b"new")), bytes: 3, ..bare }
}

#[test]
fn a_file_of_the_user_stays_where_a_folder_is_needed() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("n"), "mine").unwrap();
    assert!(matches!(refused(place.path(), write("n/x")), CommitError::InTheWay { .. }));
    assert_eq!(fs::read_to_string(place.path().join("n")).unwrap(), "mine");
}

#[test]
fn a_folder_of_the_user_stays_where_a_file_is_needed() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("d")).unwrap();
    fs::write(place.path().join("d/x"), "mine").unwrap();
    assert!(matches!(refused(place.path(), write("d")), CommitError::InTheWay { .. }));
    let names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["d"], "nothing unfinished is left");
    assert_eq!(fs::read_to_string(place.path().join("d/x")).unwrap(), "mine");
}
