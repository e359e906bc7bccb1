//! Which folders are dependencies, and which folders of the machine are shown because of them.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

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

/// Returns the folder that is shown for a link to each of these paths of a home folder.
fn shown(home: &Path, private: &[PathBuf], links: &[&str]) -> Vec<Option<PathBuf>> {
    let variable = |name: &str| (name == "HOME").then(|| home.to_owned());
    let places = Places::new(variable, private.iter().cloned());
    links.iter().map(|link| places.shown(&home.join(link).canonicalize().unwrap())).collect()
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
            ".local/share/pnpm/store/v/i",
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
        ("lib/python3.12/site-packages/store", ".local/share/pnpm/store/v"),
    ] {
        symlink(home.join(to), venv.join(link)).unwrap();
    }
    let mut targets = BTreeMap::new();
    store::linked(&venv, &root.join("project"), &mut targets);
    let found: Vec<&str> = targets.keys().map(|target| target.strip_prefix(&home).unwrap().to_str().unwrap()).collect();
    let store = home.join(".local/share/pnpm/store");
    let expected = [
        ("", None),
        (".cache/uv/archive-v0/x/a.py", Some(home.join(".cache/uv/archive-v0"))),
        (".local/share/pnpm/store/v", Some(store.clone())),
        (".ssh/id", None),
        ("notes", None),
        ("py/bin", Some(home.join("py"))),
        ("py/bin/python3", Some(home.join("py"))),
    ];
    assert_eq!(found, expected.each_ref().map(|(target, _)| *target));
    assert_eq!(shown(&home, &[], &found), expected.map(|(_, folder)| folder));
    assert_eq!(shown(&home, &[store.join("v/i")], &[".local/share/pnpm/store/v"]), [None]);
}

#[test]
fn what_lies_beside_stores_and_in_other_checkouts_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let hidden = [
        ".local/share/uv/credentials",
        ".cache/uv/simple-v15/index",
        ".local/share/pnpm/rc",
        "work/uv/cache/proj/.env",
        "work/yarn/v6/.env",
        ".yarn/switch/x",
        ".local/share/virtualenvs/none/x",
        "project/env/bin/python3",
        "work/.pnpm-store/v3/x",
    ];
    let visible = [
        (".local/share/uv/python/cpython/x", ".local/share/uv/python"),
        (".local/share/virtualenvs/a/x", ".local/share/virtualenvs/a"),
        (".pyenv/versions/3/bin/python3", ".pyenv/versions/3"),
        (".bun/install/cache/x", ".bun/install/cache"),
    ];
    make(&home, &hidden);
    make(&home, &visible.map(|(link, _)| link));
    let others = [
        "project/env/lib/python3.12/os.py",
        ".pyenv/versions/3/lib/python3/os.py",
        ".local/share/virtualenvs/a/pyvenv.cfg",
    ];
    make(&home, &others);
    make(&home, &["project/.git/HEAD", ".pyenv/.git/HEAD", ".git/HEAD"]);
    assert_eq!(shown(&home, &[], &hidden), hidden.map(|_| None));
    let folders = visible.map(|(_, folder)| Some(home.join(folder)));
    assert_eq!(shown(&home, &[], &visible.map(|(link, _)| link)), folders);
    // The environment sets other places.
    let variable = |name: &str| match name {
        "UV_CACHE_DIR" => Some(home.join(".cache/uv")),
        "XDG_DATA_HOME" => Some(home.join("work")),
        "PNPM_HOME" => Some(PathBuf::from("relative")),
        _ => None,
    };
    let places = Places::new(variable, []);
    assert_eq!(places.shown(&home.join("work/uv/cache/proj")), None, "{places:?}");
    fs::remove_dir_all(home.join(".git")).unwrap();
    assert_eq!(places.shown(&home.join("work/uv/cache/proj")), Some(home.join("work/uv/cache")));
    make(&home, &["work/uv/cache/proj/.git"]);
    assert_eq!(places.shown(&home.join("work/uv/cache/proj")), None);
}

#[test]
fn an_interpreter_in_the_system_or_around_the_users_folders_is_not_shown() {
    let none = Places::new(|_| None, []);
    assert_eq!(none.shown(Path::new("/usr")), None);
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    make(&home, &["bin/python3", "lib/python3.12/os.py", ".local/bin/python3", ".local/lib/python3.12/os.py"]);
    assert_eq!(none.shown(&home), Some(home.clone()));
    assert_eq!(shown(&home, &[], &["", "bin/python3", ".local/bin/python3"]), [None, None, None]);
    assert_eq!(shown(&home.join(".local"), &[], &["../bin/python3"]), [None]);
}
