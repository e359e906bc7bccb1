//! Which folders are dependencies, and what of the machine they bring along.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

use super::store::{linked, may_be_shown};
use super::*;
use std::os::unix::fs::symlink;

fn make(at: &Path, files: &[&str]) {
    for file in files {
        fs::create_dir_all(at.join(file).parent().unwrap()).unwrap();
        fs::write(at.join(file), "").unwrap();
    }
}

fn names(found: &[Entry]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn kinds_name_their_folders_at_every_depth() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), &["package.json", "node_modules/a/package.json", "packages/b/package.json", "api/pyproject.toml"]);
    let found = names(&by_kind(dir.path()));
    for folder in ["node_modules/", "packages/b/node_modules/", "api/.venv/"] {
        assert!(found.contains(&folder.to_owned()), "{found:?}");
    }
    assert!(!found.iter().any(|folder| folder.starts_with("node_modules/a")), "{found:?}");
}

#[test]
fn links_bring_stores_and_interpreters_and_never_the_users_own() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let home = root.join("home");
    make(
        &home,
        &[
            "py/bin/python3",
            "py/lib/python3.12/os.py",
            ".cache/uv/archive-v0/x/a.py",
            ".ssh/id",
            "notes/secret",
            "pnpm/store/v/i",
        ],
    );
    let venv = root.join("project/.venv");
    make(&venv, &["lib/python3.12/site-packages/own.py"]);
    fs::write(venv.join("pyvenv.cfg"), format!("home = {}/py/bin\n", home.display())).unwrap();
    fs::create_dir(venv.join("bin")).unwrap();
    for (link, to) in [
        ("bin/python", "py/bin/python3"),
        ("lib/python3.12/site-packages/a.py", ".cache/uv/archive-v0/x/a.py"),
        ("lib/python3.12/site-packages/key", ".ssh/id"),
        ("lib/python3.12/site-packages/notes", "notes"),
        ("lib/python3.12/site-packages/home", ""),
        ("lib/python3.12/site-packages/store", "pnpm/store/v"),
    ] {
        symlink(home.join(to), venv.join(link)).unwrap();
    }
    let mut targets = BTreeSet::new();
    linked(&venv, &root.join("project"), &mut targets);
    let shown = |never: &[PathBuf]| -> Vec<PathBuf> {
        targets.iter().filter(|target| may_be_shown(target, Some(&home), never)).cloned().collect()
    };
    assert_eq!(shown(&[]), [home.join(".cache/uv/archive-v0"), home.join("pnpm/store"), home.join("py")]);
    assert_eq!(shown(&[home.join("pnpm/store/key")]), [home.join(".cache/uv/archive-v0"), home.join("py")]);
}

#[test]
fn an_interpreter_in_the_system_or_the_home_itself_is_not_shown() {
    assert!(!may_be_shown(Path::new("/usr"), None, &[]));
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    make(&home, &["bin/python3", "lib/python3.12/os.py"]);
    assert!(may_be_shown(&home, None, &[]) && !may_be_shown(&home, Some(&home), &[]));
    assert!(!may_be_shown(&home, Some(&home.join("user")), &[]));
}
