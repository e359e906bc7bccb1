//! Tests of changes to folders that are or become repositories.

use super::*;
use crate::project::Base;
use crate::project::FileFact;
use glovebox_record::path::ScopePath;

const REFERENCE: &str = "ref: refs/heads/main\n";

/// Creates a base with these entries. Folders end with a slash.
fn base(paths: &[&str]) -> Base {
    let mut base = Base::default();
    for path in paths {
        let mut above = path.trim_end_matches('/');
        if !path.ends_with('/') {
            let fact = FileFact { digest: Digest::hash(b""), bytes: 0, executable: false };
            base.files.insert((*path).to_owned(), fact);
            above = split(above).0;
        }
        while !above.is_empty() {
            base.directories.insert(above.to_owned());
            above = split(above).0;
        }
    }
    base
}

/// Parses a change: a leading `-` removes, a final slash creates a folder, `->` creates a link, and any other text
/// writes the text after `=`.
fn change(text: &str) -> FileChange {
    let (path, op) = match text {
        _ if text.starts_with('-') => (&text[1..], ChangeOp::Delete),
        _ if text.ends_with('/') => (text.trim_end_matches('/'), ChangeOp::Mkdir),
        _ if text.ends_with("->") => (text.trim_end_matches("->"), ChangeOp::Symlink),
        _ => (text.split('=').next().unwrap_or_default(), ChangeOp::Write),
    };
    let content = text.split_once('=').map_or("", |(_, content)| content);
    let digest = (op == ChangeOp::Write).then(|| Digest::hash(content.as_bytes()));
    FileChange { digest, ..FileChange::bare(ScopePath::parse(path).unwrap(), op) }
}

/// Returns the folders that are refused, and whether they were repositories before.
fn check(there: &[&str], changes: &[&str]) -> Vec<(String, bool)> {
    let changes: Vec<FileChange> = changes.iter().map(|text| change(text)).collect();
    let open = |digest: &Digest| {
        let known = [REFERENCE, "# Title\n", "0123456789012345678901234567890123456789\n"];
        Ok(known.iter().find(|text| Digest::hash(text.as_bytes()) == *digest).map(|text| text.as_bytes()))
    };
    let steps: Vec<RepositoryChange<'_>> =
        changes.iter().map(|change| RepositoryChange::recorded(change, &open)).collect();
    let faults = faults(&base(there), &steps).unwrap();
    faults.iter().for_each(|fault| assert!(fault.reason().contains("git repository"), "{}", fault.reason()));
    faults.into_iter().map(|fault| (fault.folder.join("/"), fault.was_there)).collect()
}

#[test]
fn both_halves_count_whoever_brought_them() {
    let head = format!("o/d/HEAD={REFERENCE}");
    let made = vec![("o/d".to_owned(), false)];
    let halves: &[(&[&str], &[&str])] = &[
        (&[], &[&head, "o/d/objects/", "o/d/refs/"]),
        (&[], &[&head, "o/d/objects/k", "o/d/refs/heads/x"]),
        (&["o/d/HEAD"], &["o/d/objects/k", "o/d/refs/k"]),
        (&["o/d/objects/k", "o/d/refs/"], &[&head]),
        (&["o/d/HEAD", "o/d/refs/x"], &["o/d/objects->"]),
        (&[], &[&head, "o/d/commondir"]),
        (&["o/d/commondir"], &["o/d/HEAD=text"]),
        (&["o/d/config"], &[&head]),
        (&["o/d/config"], &["o/d/HEAD=0123456789012345678901234567890123456789\n"]),
        (&["o/d/config"], &["o/d/HEAD->"]),
        (&["O/D/Config"], &[&head]),
        (&["o/D/head"], &["O/d/OBJECTS/k", "o/d/rEfs/"]),
        (&["o/d/head/", "o/d/refs/x"], &["-o/d/head", &head, "o/d/objects/"]),
    ];
    halves.iter().for_each(|(there, changes)| assert_eq!(check(there, changes), made, "{there:?} {changes:?}"));
    assert_eq!(check(&[], &["HEAD", "objects/k", "refs/k"]), [(String::new(), false)]);
}

#[test]
fn ordinary_folders_stay_free() {
    let free: &[(&[&str], &[&str])] = &[
        (&["HEAD"], &["config/a", "hooks/use.ts"]),
        (&["src/objects/a", "src/refs/a"], &["src/config", "src/hooks/x"]),
        (&["d/config"], &["d/HEAD=# Title\n"]),
        (&["d/HEAD", "d/objects/x"], &["-d/HEAD", "d/refs/x"]),
        (&["a/HEAD", "b/objects/x"], &["b/refs/x"]),
    ];
    free.iter().for_each(|(there, changes)| assert_eq!(check(there, changes), [], "{there:?} {changes:?}"));
}

#[test]
fn a_repository_of_the_project_stays_usable_but_for_what_names_programs() {
    let there = &["t/f.git/HEAD", "t/f.git/objects/a", "t/f.git/refs/heads/m", "t/f.git/config", "t/x"];
    let free = &["t/f.git/objects/b/", "t/f.git/refs/heads/n", "-t/f.git/config", "t/x", "t/f.git/description"];
    assert_eq!(check(there, free), []);
    for path in ["HEAD", "config", "hooks/pre-commit", "Hooks/x", "commondir", "config.worktree", "modules/m/config"] {
        let path = format!("t/F.git/{path}");
        assert_eq!(check(there, &[&path]), [("t/f.git".to_owned(), true)], "{path}");
    }
}
