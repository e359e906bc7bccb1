//! Restores the workspace of a run to the state in its record.
//!
//! Every file is hashed, because equal times and sizes do not prove equal content: any process of the same user can set
//! them. Entries that differ are created again, and unknown entries are removed. No symbolic link is followed.

use crate::commit::{ChangeWriter, CommitError, Obstacle, digest_of, fold};
use crate::project::Base;
use crate::tree::{self, Owner, Tree, WalkEntry, WalkError};
use glovebox_record::path::ScopePath;
use glovebox_record::{ChangeOp, Digest, FileChange};
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;

/// Permissions that the owner of a directory needs to work in it.
const OWNER_ALL: u32 = 0o700;

/// Differences from the record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Number of paths that were restored.
    pub made: usize,
    /// Number of paths that were removed, because the record does not have them or because they differed.
    pub removed: usize,
}

/// Compares the workspace with its base and all later changes, and repairs it. `open` returns the content with a digest.
///
/// # Errors
/// [`CommitError`]. If content is missing, the error has the kind [`io::ErrorKind::NotFound`] or is [`CommitError::Corrupt`].
pub fn restore<'a, R: Read>(
    workspace: &Path,
    base: &Base,
    changes: impl Iterator<Item = &'a FileChange>,
    open: &dyn Fn(&Digest) -> io::Result<R>,
) -> Result<RestoreReport, CommitError> {
    let failed = |error: WalkError| CommitError::io(error.path, error.source);
    let tree = Tree::open(workspace).map_err(|source| CommitError::io(workspace, source))?;
    let mut missing = expected(base, changes)?;
    let mut restored = RestoreReport::default();
    let visit = &mut |entry: &WalkEntry<'_>| {
        let path = entry.path.to_str().unwrap_or_default();
        if missing.get(path).is_some_and(|change| is_as(entry, change)) {
            missing.remove(path);
            return Ok(true);
        }
        restored.removed += 1;
        let removed = tree::remove(entry.directory, entry.name);
        removed.map(|()| false).map_err(|source| WalkError { path: entry.path.to_owned(), source })
    };
    tree::walk(&tree, visit).map_err(failed)?;
    restored.made = missing.len();
    let missing: Vec<FileChange> = missing.into_values().collect();
    ChangeWriter { tree: &tree, obstacle: Obstacle::Replace, open_blob: open }.all(&fold(&missing))?;
    Ok(restored)
}

/// Compares the workspace with its base and all later changes, without repairing it. Returns the paths that differ, in
/// order, with unprintable characters escaped.
///
/// # Errors
/// [`CommitError`] if the workspace cannot be read.
pub fn differing<'a>(
    workspace: &Path,
    base: &Base,
    changes: impl Iterator<Item = &'a FileChange>,
) -> Result<BTreeSet<String>, CommitError> {
    let failed = |error: WalkError| CommitError::io(error.path, error.source);
    let tree = Tree::open(workspace).map_err(|source| CommitError::io(workspace, source))?;
    let mut missing = expected(base, changes)?;
    let mut differing = BTreeSet::new();
    let visit = &mut |entry: &WalkEntry<'_>| {
        let path = entry.path.to_str().unwrap_or_default();
        let is_there = missing.get(path).is_some_and(|change| is_as(entry, change));
        match is_there {
            true => _ = missing.remove(path),
            false => _ = differing.insert(tree::shown(entry.path)),
        }
        Ok(is_there)
    };
    tree::walk(&tree, visit).map_err(failed)?;
    differing.extend(missing.keys().map(|path| tree::shown(Path::new(path))));
    Ok(differing)
}

/// Returns the expected entry of each path, as the change that creates it. All parent folders of an entry are expected too.
fn expected<'a>(
    base: &Base,
    changes: impl Iterator<Item = &'a FileChange>,
) -> Result<BTreeMap<String, FileChange>, CommitError> {
    let bare = |path: &String, op| {
        let parsed = ScopePath::parse(path);
        let parsed =
            parsed.map_err(|problem| CommitError::Path { path: path.to_owned(), problem: problem.to_string() })?;
        Ok::<_, CommitError>(FileChange::bare(parsed, op))
    };
    let mut expected = BTreeMap::new();
    for path in &base.directories {
        expected.insert(path.to_owned(), bare(path, ChangeOp::Mkdir)?);
    }
    for (path, fact) in &base.files {
        let (digest, bytes, executable) = (Some(fact.digest), fact.bytes, fact.executable);
        expected.insert(path.to_owned(), FileChange { digest, bytes, executable, ..bare(path, ChangeOp::Write)? });
    }
    for (path, target) in &base.symlinks {
        let target = Some(target.to_owned());
        expected.insert(path.to_owned(), FileChange { target, ..bare(path, ChangeOp::Symlink)? });
    }
    for change in changes {
        match change.op.removes() {
            true => expected.remove(change.path.as_str()),
            false => expected.insert(change.path.to_string(), change.clone()),
        };
    }
    let folders = expected.values().filter_map(|change| change.path.parent());
    let folders: Vec<ScopePath> =
        folders.flat_map(|folder| std::iter::successors(Some(folder), ScopePath::parent)).collect();
    for folder in folders.into_iter().filter(|folder| !folder.is_root()) {
        let name = folder.to_string();
        expected.entry(name).or_insert_with(|| FileChange::bare(folder, ChangeOp::Mkdir));
    }
    Ok(expected)
}

/// Returns true if an entry is the result of the change. An unreadable entry is not.
fn is_as(entry: &WalkEntry<'_>, change: &FileChange) -> bool {
    match (entry.kind(), change.op) {
        (FileType::Directory, ChangeOp::Mkdir) => entry.stat.st_mode & OWNER_ALL == OWNER_ALL,
        (FileType::Symlink, ChangeOp::Symlink) => {
            entry.target().is_ok_and(|target| Some(target.as_os_str()) == change.target.as_deref().map(AsRef::as_ref))
        }
        (FileType::RegularFile, ChangeOp::Write) => {
            let is_alike = tree::length(&entry.stat) == change.bytes
                && tree::is_executable(&entry.stat) == change.executable
                // The file could be changed later through another hard link.
                && entry.stat.st_nlink == 1;
            let found = || tree::open_regular(entry.directory, entry.name, Owner::Other).and_then(digest_of);
            is_alike && found().is_ok_and(|found| Some(found) == change.digest)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::FileFact;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Creates a workspace with a file, a link, an empty folder and a change. Returns it with its base and changes.
    fn workspace() -> (tempfile::TempDir, Base, Vec<FileChange>) {
        let place = tempfile::tempdir().unwrap();
        for folder in ["src", "empty"] {
            fs::create_dir(place.path().join(folder)).unwrap();
        }
        fs::write(place.path().join("src/a"), "one").unwrap();
        fs::write(place.path().join("src/b"), "two").unwrap();
        symlink("src/a", place.path().join("link")).unwrap();
        let mut base = Base::default();
        let fact = |text: &str| FileFact {
            digest: Digest::hash(text.as_bytes()),
            bytes: text.len() as u64,
            executable: false,
        };
        base.files.extend([("src/a".to_owned(), fact("one")), ("src/b".to_owned(), fact("old"))]);
        base.files.insert("gone".to_owned(), fact("gone"));
        base.symlinks.insert("link".to_owned(), "src/a".to_owned());
        base.directories.extend(["src".to_owned(), "empty".to_owned()]);
        let path = |text: &str| ScopePath::parse(text).unwrap();
        let two = FileChange::bare(path("src/b"), ChangeOp::Write);
        let two = FileChange { digest: Some(Digest::hash(b"two")), bytes: 3, ..two };
        (place, base, vec![two, FileChange::bare(path("gone"), ChangeOp::Delete)])
    }

    fn content(digest: &Digest) -> io::Result<&'static [u8]> {
        let known = ["one", "two"].into_iter().find(|text| Digest::hash(text.as_bytes()) == *digest);
        known.map(str::as_bytes).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    #[test]
    fn whatever_was_changed_is_as_it_was() {
        type Case<'c> = (&'c str, &'c dyn Fn(&Path));
        let cases: [Case<'_>; 12] = [
            ("nothing", &|_| {}),
            ("another content of this length and time", &|at| {
                let file = at.join("src/a");
                let times = fs::metadata(&file).unwrap().modified().unwrap();
                fs::write(&file, "ono").unwrap();
                fs::File::options().write(true).open(&file).unwrap().set_modified(times).unwrap();
            }),
            ("a stage's file", &|at| fs::write(at.join("src/b"), "tow").unwrap()),
            ("a mode", &|at| fs::set_permissions(at.join("src/a"), PermissionsExt::from_mode(0o755)).unwrap()),
            ("an extra file", &|at| fs::write(at.join("src/extra"), "x").unwrap()),
            ("an extra folder", &|at| fs::create_dir_all(at.join("more/and/more")).unwrap()),
            ("a removed file", &|at| fs::write(at.join("gone"), "gone").unwrap()),
            ("another link", &|at| {
                fs::remove_file(at.join("link")).unwrap();
                symlink("/etc", at.join("link")).unwrap();
            }),
            ("a link in place of a file", &|at| {
                fs::rename(at.join("src/a"), at.join("empty/a")).unwrap();
                symlink("../empty/a", at.join("src/a")).unwrap();
            }),
            ("a link in place of a folder", &|at| {
                fs::rename(at.join("src"), at.join("moved")).unwrap();
                symlink("moved", at.join("src")).unwrap();
            }),
            ("a second name", &|at| fs::hard_link(at.join("src/a"), at.join("empty/a")).unwrap()),
            ("a closed folder", &|at| fs::set_permissions(at.join("empty"), PermissionsExt::from_mode(0o000)).unwrap()),
        ];
        for (what, attack) in cases {
            let (place, base, changes) = workspace();
            attack(place.path());
            let differing = differing(place.path(), &base, changes.iter()).unwrap();
            assert_eq!(differing.is_empty(), what == "nothing", "{what}: {differing:?}");
            let restored = restore(place.path(), &base, changes.iter(), &content).unwrap();
            assert_eq!(restored == RestoreReport::default(), what == "nothing", "{what}: {restored:?}");
            let read = |path: &str| fs::read_to_string(place.path().join(path)).unwrap();
            assert_eq!((read("src/a"), read("src/b")), ("one".to_owned(), "two".to_owned()), "{what}");
            let again = restore(place.path(), &base, changes.iter(), &content).unwrap();
            assert_eq!(again, RestoreReport::default(), "{what}");
            let mut names: Vec<_> =
                fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            assert_eq!(names, ["empty", "link", "src"], "{what}");
        }
    }

    #[test]
    fn content_that_is_not_there_any_more_is_an_error() {
        let (place, base, changes) = workspace();
        fs::write(place.path().join("src/a"), "ono").unwrap();
        let nothing = |_: &Digest| Err::<&[u8], _>(io::ErrorKind::NotFound.into());
        let found = restore(place.path(), &base, changes.iter(), &nothing);
        assert!(matches!(found, Err(CommitError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound));
    }
}
