//! Compares the matcher with git: it must agree with `git check-ignore`.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

use super::*;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn git(at: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git").current_dir(at).args(arguments).output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

fn write(at: &Path, path: &str, text: &str) {
    fs::create_dir_all(at.join(path).parent().unwrap()).unwrap();
    fs::write(at.join(path), text).unwrap();
}

fn tracked(project: &Path) -> Vec<String> {
    tracked_files(&index_of(project)).map(str::to_owned).collect()
}

fn ask(ignored: &IgnoreMatcher, text: &str) -> Option<String> {
    let (path, kind) = match text.strip_suffix('/') {
        Some(folder) => (folder, EntryKind::Directory),
        None => (text, EntryKind::File),
    };
    ignored.covers(&ScopePath::parse(path).unwrap(), kind).map(|end| path[..end].to_owned())
}

/// Creates a repository with rules in each place that git reads, and the project in a folder of the repository.
fn project() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    git(root, &["init", "-q"]);
    write(root, ".gitignore", "*.log\n/app/dist/\nsecret\n");
    write(root, ".git/info/exclude", "notes.txt\n");
    write(root, "app/.gitignore", "# build\ntarget/\n__pycache__/\n!keep.log\nbuild/*\n!build/keep/\n");
    write(root, "app/web/.gitignore", "node_modules\n");
    write(root, "app/src/main.rs", "");
    write(root, "app/target/tracked", "");
    let app = root.join("app");
    (dir, app)
}

#[test]
fn git_and_the_rules_agree() {
    let (_dir, app) = project();
    let rules = IgnoreRules::read(&app, ["src", "web"].into_iter()).unwrap();
    let ignored = IgnoreMatcher::new(&rules);
    for (path, expected) in [
        ("target/", Some("target")),
        ("target/debug/x", Some("target")),
        ("src/main.rs", None),
        ("src/__pycache__/a.pyc", Some("src/__pycache__")),
        ("a.log", Some("a.log")),
        ("keep.log", None),
        ("dist/x", Some("dist")),
        ("web/dist/x", None),
        ("secret", Some("secret")),
        ("notes.txt", Some("notes.txt")),
        ("web/node_modules/a/b", Some("web/node_modules")),
        ("node_modules/a", None),
        ("build/a", Some("build/a")),
        ("build/keep/a", None),
        ("target", None),
    ] {
        assert_eq!(ask(&ignored, path).as_deref(), expected, "{path}");
        let asked = git(&app, &["check-ignore", "--no-index", path]);
        let is_folder_only = path == "target";
        assert!(is_folder_only || asked.trim().is_empty() == expected.is_none(), "{path}: git says {asked:?}");
    }
}

#[test]
fn what_the_run_began_with_is_not_ignored() {
    let (_dir, app) = project();
    let mut rules = IgnoreRules::read(&app, std::iter::empty()).unwrap();
    rules.keep(["target/tracked", "src/main.rs"].into_iter());
    let again: IgnoreRules = serde_json::from_str(&serde_json::to_string(&rules).unwrap()).unwrap();
    let ignored = IgnoreMatcher::new(&again);
    assert_eq!(ask(&ignored, "target/tracked"), None);
    assert_eq!(ask(&ignored, "target/other").as_deref(), Some("target"));
}

#[test]
fn every_version_of_the_index_is_read() {
    let (_dir, app) = project();
    git(&app, &["add", "-f", "."]);
    for version in ["2", "3", "4"] {
        git(&app, &["update-index", "--index-version", version]);
        let found = tracked(&app);
        assert_eq!(found, [".gitignore", "src/main.rs", "target/tracked", "web/.gitignore"], "version {version}");
        let above = tracked(app.parent().unwrap());
        assert!(above.contains(&"app/src/main.rs".to_owned()));
    }
    fs::write(app.parent().unwrap().join(".git/index"), b"DIRC\0\0\0\x02\xff\xff\xff\xffgarbage").unwrap();
    assert!(tracked(&app).is_empty());
}

#[test]
fn rules_are_read_up_to_a_bound_of_all_files_together() {
    let dir = tempfile::tempdir().unwrap();
    let read = || IgnoreRules::read(dir.path(), ["a", "b"].into_iter()).map(|rules| IgnoreMatcher::new(&rules));
    write(dir.path(), "a/.gitignore", &"x\n".repeat(12_000));
    write(dir.path(), "b/.gitignore", &"# remark\n\nx\n".repeat(8_000));
    assert_eq!(ask(&read().unwrap(), "b/x").unwrap(), "b/x");
    write(dir.path(), ".gitignore", "one more\n");
    assert!(read().unwrap_err().to_string().contains("at `b/.gitignore`"));
    write(dir.path(), "b/.gitignore", &"y".repeat(200 << 10));
    assert!(read().is_ok());
    write(dir.path(), "a/.gitignore", &"y".repeat(100 << 10));
    assert!(read().unwrap_err().to_string().contains("256 KiB"));
    write(dir.path(), "a/.gitignore", &"#".repeat((1 << 20) + 1));
    assert!(read().unwrap_err().to_string().contains("at `a/.gitignore`"));
}
