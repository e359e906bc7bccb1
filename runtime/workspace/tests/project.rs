//! The run's copy of a project, and applying changes to the user's project.

use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use glovebox_record::{ChangeOp, Digest, FileChange};
use glovebox_workspace::apply::{self, ApplyError};
use glovebox_workspace::exposure::Exposure;
use glovebox_workspace::project::{self, Base, Include, ProjectError};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new(files: &[(&str, &str)]) -> Self {
        let made = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(made.user()).unwrap();
        fs::create_dir(made.dir.path().join("blobs")).unwrap();
        files.iter().for_each(|(path, content)| made.put(path, content));
        made
    }

    fn user(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    fn copied(&self) -> PathBuf {
        self.dir.path().join("copied")
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.user().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn copy(&self, include: &Include) -> Base {
        project::copy(&self.user(), &self.copied(), include).unwrap()
    }

    fn write(&self, path: &str, content: &str) -> FileChange {
        let digest = Digest::hash(content.as_bytes());
        fs::write(self.dir.path().join("blobs").join(digest.hex()), content).unwrap();
        FileChange { digest: Some(digest), bytes: content.len() as u64, ..change(path, ChangeOp::Write) }
    }

    fn blob(&self, digest: &Digest) -> io::Result<File> {
        File::open(self.dir.path().join("blobs").join(digest.hex()))
    }

    fn apply(&self, base: &Base, changes: &[FileChange]) -> Result<(), ApplyError> {
        let plan = apply::plan(base, changes, &self.user(), &|digest| self.blob(digest)).unwrap();
        apply::perform(&plan, base, &self.user(), &|digest| self.blob(digest))
    }
}

fn change(path: &str, op: ChangeOp) -> FileChange {
    FileChange {
        path: ScopePath::parse(path).unwrap(),
        op,
        digest: None,
        bytes: 0,
        executable: false,
        mode: None,
        target: None,
    }
}

fn snapshot(root: &Path) -> BTreeMap<String, String> {
    fn go(root: &Path, at: &Path, into: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                into.insert(name, "dir".to_owned());
                go(root, &path, into);
            } else if meta.is_symlink() {
                into.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
            } else {
                into.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    go(root, root, &mut all);
    all
}

fn keys(map: &BTreeMap<String, String>) -> Vec<&str> {
    map.keys().map(String::as_str).collect()
}

#[test]
fn ignored_files_stay_behind_and_hidden_ones_come_along() {
    let files = [
        (".gitignore", "target/\n*.log\n"),
        (".env.example", "e"),
        (".git/config", "g"),
        (".glovebox/runs/x/secret", "s"),
        ("sub/.gitignore", "local\n!keep.log\n"),
        ("sub/local", "l"),
        ("sub/keep.log", "k"),
        ("sub/.git/config", "g"),
        ("target/out", "o"),
        ("a.log", "a"),
        ("src/main.rs", "m"),
    ];
    let made = Bench::new(&files);
    fs::create_dir(made.user().join("empty")).unwrap();
    fs::set_permissions(made.user().join("src/main.rs"), fs::Permissions::from_mode(0o4755)).unwrap();
    let base = made.copy(&Include::default());
    let copied = snapshot(&made.copied());
    let expected =
        [".env.example", ".gitignore", "empty", "src", "src/main.rs", "sub", "sub/.gitignore", "sub/keep.log"];
    assert_eq!(keys(&copied), expected);
    let recorded: Vec<&str> = base.files.keys().chain(&base.directories).map(String::as_str).collect();
    assert_eq!(recorded.len(), expected.len());
    let main = &base.files["src/main.rs"];
    assert_eq!((main.digest, main.bytes, main.executable), (Digest::hash(b"m"), 1, true));
    let mode = fs::metadata(made.copied().join("src/main.rs")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755, "no set-id bit is copied");
    let read: Base = serde_json::from_str(&serde_json::to_string(&base).unwrap()).unwrap();
    assert_eq!(read, base);
}

#[test]
fn included_paths_come_along_and_nothing_else_of_their_folder() {
    let files =
        [(".gitignore", "big/\n"), ("big/one", "1"), ("big/two", "2"), ("big/deep/three", "3"), ("big/.git/x", "x")];
    let check = |include: &[&str], leave_out: &[&str], expected: &[&str]| {
        let made = Bench::new(&files);
        let mut include = Include::parse(include).unwrap();
        include.leave_out = leave_out.iter().map(|text| Entry::parse(text).unwrap()).collect();
        made.copy(&include);
        assert_eq!(keys(&snapshot(&made.copied())), expected);
    };
    check(&["big/one"], &[], &[".gitignore", "big", "big/one"]);
    check(&["big/deep/"], &[], &[".gitignore", "big", "big/deep", "big/deep/three"]);
    check(&["big/"], &["big/two"], &[".gitignore", "big", "big/deep", "big/deep/three", "big/one"]);
    let made = Bench::new(&files);
    let missing = project::copy(&made.user(), &made.copied(), &Include::parse(&["big/none"]).unwrap());
    assert!(matches!(missing, Err(ProjectError::IncludeMissing(entry)) if entry == "big/none"));
}

#[test]
fn what_is_never_copied_cannot_be_included() {
    for entry in [".git/", ".git/config", ".glovebox/runs/", "sub/.git/config"] {
        let made = Bench::new(&[(".git/config", "token"), (".glovebox/runs/x", "x"), ("sub/.git/config", "token")]);
        let refused = project::copy(&made.user(), &made.copied(), &Include::parse(&[entry]).unwrap());
        assert!(matches!(refused, Err(ProjectError::IncludeNever(named)) if named == entry), "{entry}");
        assert!(!made.copied().join(entry).exists(), "{entry}");
    }
}

#[test]
fn ignore_files_above_the_project_count_only_within_its_repository() {
    let check = |repository: Option<&str>, expected: &[&str]| {
        let made = Bench::new(&[("a", "1"), ("made.log", "2")]);
        fs::write(made.dir.path().join(".gitignore"), "*.log\n").unwrap();
        repository.iter().for_each(|at| fs::create_dir_all(made.dir.path().join(at)).unwrap());
        let base = made.copy(&Include::default());
        assert_eq!(base.files.keys().collect::<Vec<_>>(), expected, "{repository:?}");
    };
    check(Some(".git"), &["a"]);
    check(None, &["a", "made.log"]);
    check(Some("user/.git"), &["a", "made.log"]);
}

#[test]
fn links_and_special_files_are_no_way_out() {
    let made = Bench::new(&[("src/a", "a"), (".git/config", "g")]);
    let user = made.user();
    fs::write(made.dir.path().join("secret"), "s").unwrap();
    for (link, target) in [
        ("fine", "src/a"),
        ("up", "../secret"),
        ("absolute", "/etc/passwd"),
        ("folder", ".."),
        ("repository", ".git/config"),
    ] {
        symlink(target, user.join(link)).unwrap();
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, user.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    fs::write(user.join(std::ffi::OsStr::from_bytes(b"bad\xff")), "x").unwrap();
    fs::write(user.join("es\u{1b}c"), "x").unwrap();
    let base = made.copy(&Include::default());
    let copied = snapshot(&made.copied());
    assert_eq!(keys(&copied), ["absolute", "fine", "folder", "repository", "src", "src/a", "up"]);
    let targets = ["absolute", "fine", "folder", "repository", "up"].map(|link| copied[link].as_str());
    assert_eq!(targets, ["-> /etc/passwd", "-> src/a", "-> ..", "-> .git/config", "-> ../secret"], "links stay links");
    let skipped: Vec<&str> = base.skipped.iter().map(|skipped| skipped.path.as_str()).collect();
    assert_eq!(skipped, ["bad\\xff", "es\\x1bc", "pipe"]);
}

#[test]
fn files_keep_their_permissions_in_the_copy() {
    use std::os::unix::fs::PermissionsExt;
    let made = Bench::new(&[("key", "k"), ("fixed", "f"), ("tool", "t")]);
    let modes = [("key", 0o600), ("fixed", 0o444), ("tool", 0o755)];
    let permissions = |mode| fs::Permissions::from_mode(mode);
    modes.iter().for_each(|(name, mode)| fs::set_permissions(made.user().join(name), permissions(*mode)).unwrap());
    made.copy(&Include::default());
    for (name, mode) in modes {
        assert_eq!(fs::metadata(made.copied().join(name)).unwrap().permissions().mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn the_caps_of_a_copy_are_named() {
    let check = |include: Include, expected: &str| {
        let made = Bench::new(&[("a", "aaaa"), ("b", "bbbb"), ("c", "cccc")]);
        match project::copy(&made.user(), &made.copied(), &include) {
            Err(ProjectError::Limit { limit, .. }) => assert_eq!(limit, expected),
            other => panic!("{other:?}"),
        }
    };
    check(Include { files_max: 2, ..Include::default() }, "project_files");
    check(Include { bytes_max: 11, ..Include::default() }, "project_bytes");
    let made = Bench::new(&[("a", "aaaa"), ("b", "bbbb"), ("c", "cccc")]);
    made.copy(&Include { files_max: 3, bytes_max: 12, ..Include::default() });
}

#[test]
fn a_copy_inside_the_project_does_not_copy_itself() {
    let made = Bench::new(&[("a", "a")]);
    let to = made.user().join("copies");
    project::copy(&made.user(), &to, &Include::parse(&["./"]).unwrap()).unwrap();
    assert_eq!(keys(&snapshot(&to)), ["a"]);
}

#[test]
fn apply_brings_the_final_state_and_may_be_repeated() {
    let made = Bench::new(&[("a", "1"), ("b", "2"), ("d/x", "x"), ("d/y", "y"), ("run", "r"), ("e", "e")]);
    let base = made.copy(&Include::default());
    let twice = [made.write("a", "first"), made.write("a", "second")];
    let changes = [
        &twice[..],
        &[change("b", ChangeOp::Delete), change("d/x", ChangeOp::Delete), change("d/y", ChangeOp::Delete)],
        &[change("d", ChangeOp::Rmdir), made.write("d", "now a file"), made.write("n/m/o", "new")],
        &[change("e", ChangeOp::Delete), change("e", ChangeOp::Mkdir), made.write("e/f", "f")],
        &[FileChange { executable: true, ..made.write("run", "r") }],
        &[made.write("gone", "g"), change("gone", ChangeOp::Delete)],
        &[FileChange { target: Some("a".to_owned()), ..change("l", ChangeOp::Symlink) }],
    ]
    .concat();
    made.apply(&base, &changes).unwrap();
    let expected = snapshot(&made.user());
    assert_eq!(keys(&expected), ["a", "d", "e", "e/f", "l", "n", "n/m", "n/m/o", "run"]);
    assert_eq!((expected["a"].as_str(), expected["d"].as_str()), ("second", "now a file"));
    assert_eq!(fs::metadata(made.user().join("run")).unwrap().permissions().mode() & 0o777, 0o755);
    made.apply(&base, &changes).unwrap();
    assert_eq!(snapshot(&made.user()), expected);
    let paths: Vec<String> =
        apply::differences(&base, &changes).into_iter().map(|difference| difference.path).collect();
    assert_eq!(paths, ["a", "b", "d", "d/x", "d/y", "e", "e/f", "l", "n/m/o", "run"]);
}

#[test]
fn one_conflict_and_nothing_is_written() {
    let check = |disturb: &dyn Fn(&Bench), expected: &[&str]| {
        let made = Bench::new(&[("a", "1"), ("b", "2"), ("d/x", "x"), ("other", "o")]);
        let base = made.copy(&Include::default());
        let changes = [
            change("d/x", ChangeOp::Delete),
            change("d", ChangeOp::Rmdir),
            made.write("d", "file"),
            made.write("a", "new"),
            change("b", ChangeOp::Delete),
            made.write("n/new", "n"),
        ];
        let ready = apply::plan(&base, &changes, &made.user(), &|digest| made.blob(digest)).unwrap();
        assert_eq!(ready.conflicts, []);
        disturb(&made);
        let before = snapshot(&made.user());
        let plan = apply::plan(&base, &changes, &made.user(), &|digest| made.blob(digest)).unwrap();
        let paths: Vec<&str> = plan.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
        assert_eq!(paths, expected, "{:?}", plan.conflicts);
        // Neither the new plan, which contains the conflict, nor the earlier one is applied.
        for plan in [plan, ready] {
            let refused = apply::perform(&plan, &base, &made.user(), &|digest| made.blob(digest));
            assert!(matches!(refused, Err(ApplyError::Conflicts(_))), "{refused:?}");
            assert_eq!(snapshot(&made.user()), before);
        }
    };
    check(&|made| made.put("a", "edited"), &["a"]);
    check(&|made| fs::remove_file(made.user().join("a")).unwrap(), &["a"]);
    check(&|made| fs::set_permissions(made.user().join("b"), fs::Permissions::from_mode(0o755)).unwrap(), &["b"]);
    check(&|made| made.put("n/new", "mine"), &["n/new"]);
    check(&|made| made.put("n", "mine"), &["n/new"]);
    check(&|made| made.put("d/ignored", "mine"), &["d"]);
    check(&|made| symlink(made.dir.path(), made.user().join("n")).unwrap(), &["n/new"]);
}

#[test]
fn what_the_run_did_not_touch_may_change() {
    let made = Bench::new(&[("a", "1"), ("other", "o")]);
    let base = made.copy(&Include::default());
    made.put("other", "edited");
    made.put("more", "new");
    made.apply(&base, &[made.write("a", "2")]).unwrap();
    let after = snapshot(&made.user());
    assert_eq!((after["a"].as_str(), after["other"].as_str(), after["more"].as_str()), ("2", "edited", "new"));
}

#[test]
fn a_forged_record_cannot_reach_protected_paths_or_leave_the_project() {
    let made = Bench::new(&[("a", "1"), (".git/config", "g")]);
    let base = made.copy(&Include::default());
    let before = snapshot(&made.user());
    for path in ["../out", "/etc/x", "a/../../out"] {
        assert!(ScopePath::parse(path).is_err(), "a record cannot name {path}");
    }
    for path in [".git/config", ".git/hooks/post-checkout", "glovebox.toml", ""] {
        assert!(matches!(made.apply(&base, &[made.write(path, "evil")]), Err(ApplyError::Conflicts(_))), "{path}");
    }
    let out = FileChange { target: Some("../../out".to_owned()), ..change("l", ChangeOp::Symlink) };
    assert!(made.apply(&base, &[out]).is_err());
    assert_eq!(snapshot(&made.user()), before);
    assert!(!made.dir.path().join("out").exists());
}

#[test]
fn the_file_before_is_read_without_following_links() {
    let made = Bench::new(&[("a", "1")]);
    symlink("/etc/passwd", made.user().join("l")).unwrap();
    assert!(apply::open_before(&made.user(), "a").is_ok());
    for path in ["l", "../x", "missing", "."] {
        assert!(apply::open_before(&made.user(), path).is_err(), "{path}");
    }
}

#[test]
fn a_plan_lists_what_it_makes_and_what_it_removes_and_differences_name_both_sides() {
    let made = Bench::new(&[("a", "1"), ("b", "2"), ("same", "s")]);
    let base = made.copy(&Include::default());
    let changes =
        [made.write("a", "new"), change("b", ChangeOp::Delete), made.write("n", "n"), made.write("same", "s")];
    let plan = apply::plan(&base, &changes, &made.user(), &|digest| made.blob(digest)).unwrap();
    let paths = |changes: &[FileChange]| changes.iter().map(|change| change.path.to_string()).collect::<Vec<_>>();
    assert_eq!((paths(&plan.writes), paths(&plan.deletes)), (vec!["a".into(), "n".into()], vec!["b".into()]));
    let sides: Vec<(String, bool, bool)> = apply::differences(&base, &changes)
        .into_iter()
        .map(|one| (one.path, one.before.is_some(), one.after.is_some()))
        .collect();
    assert_eq!(sides, [("a".to_owned(), true, true), ("b".to_owned(), true, false), ("n".to_owned(), false, true)]);
}

#[test]
fn a_conflict_says_what_happened_to_the_file_meanwhile() {
    let made = Bench::new(&[("changed", "1"), ("removed", "2")]);
    let base = made.copy(&Include::default());
    let changes = ["changed", "created", "removed"].map(|path| made.write(path, "of the run"));
    made.put("changed", "mine");
    made.put("created", "mine");
    fs::remove_file(made.user().join("removed")).unwrap();
    let plan = apply::plan(&base, &changes, &made.user(), &|digest| made.blob(digest)).unwrap();
    let reasons: Vec<(&str, &str)> =
        plan.conflicts.iter().map(|conflict| (conflict.path.as_str(), conflict.reason.as_str())).collect();
    let expected = ["changed", "created", "removed"].map(|path| match path {
        "removed" => (path, "it was removed from the project after the run started"),
        "created" => (path, "it was created in the project after the run started"),
        _ => (path, "it was changed in the project after the run started"),
    });
    assert_eq!(reasons, expected);
}

#[test]
fn no_folder_of_the_project_becomes_a_repository() {
    let made = Bench::new(&[("r/config", "c"), ("r/other", "o")]);
    let base = made.copy(&Include::default());
    let changes = [
        change("r/config", ChangeOp::Delete),
        made.write("r/HEAD", "ref: refs/heads/main\n"),
        change("r/objects", ChangeOp::Mkdir),
        change("r/refs", ChangeOp::Mkdir),
        made.write("other", "x"),
    ];
    let plan = apply::plan(&base, &changes, &made.user(), &|digest| made.blob(digest)).unwrap();
    let paths: Vec<&str> = plan.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
    assert_eq!(paths, ["r/HEAD", "r/objects", "r/refs"], "what was brought, and not what was removed");
    assert!(plan.conflicts[0].reason.contains("`r` would have the shape of a git repository"), "{:?}", plan.conflicts);
    assert!(matches!(made.apply(&base, &changes), Err(ApplyError::Conflicts(_))));
}

#[test]
fn only_a_link_is_judged_by_its_target() {
    let to = |op: ChangeOp, target: &str| FileChange { target: Some(target.to_owned()), ..change("l", op) };
    assert!(apply::fault(&to(ChangeOp::Symlink, "../../out")).is_some());
    assert_eq!(apply::fault(&to(ChangeOp::Symlink, "a")), None);
    assert_eq!(apply::fault(&to(ChangeOp::Write, "../../out")), None);
}

#[test]
fn a_folder_has_what_a_change_left_or_something_else() {
    let made = Bench::new(&[("f", "content"), ("longer", "content!"), ("setuid", "content"), ("d/x", "x")]);
    fs::set_permissions(made.user().join("setuid"), fs::Permissions::from_mode(0o4644)).unwrap();
    symlink("f", made.user().join("l")).unwrap();
    symlink("d", made.user().join("way")).unwrap();
    let link = |path: &str, target: &str| FileChange { target: Some(target.into()), ..change(path, ChangeOp::Symlink) };
    let missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    for (change, is_as_left) in [
        (made.write("f", "content"), Some(true)),
        (made.write("f", "CONTENT"), Some(false)),
        (made.write("longer", "content"), Some(false)),
        (made.write("setuid", "content"), Some(false)),
        (FileChange { executable: true, ..made.write("f", "content") }, Some(false)),
        (made.write("d", "content"), Some(false)),
        (made.write("absent", "content"), None),
        (made.write("way/x", "x"), None),
        (change("absent", ChangeOp::Delete), Some(true)),
        (change("way/x", ChangeOp::Delete), Some(true)),
        (change("f", ChangeOp::Delete), Some(false)),
        (change("d", ChangeOp::Mkdir), Some(true)),
        (change("f", ChangeOp::Mkdir), Some(false)),
        (change("absent", ChangeOp::Mkdir), None),
        (link("l", "f"), Some(true)),
        (link("l", "d"), Some(false)),
    ] {
        let found = apply::is_as_left(&made.user(), &change, &mut Exposure::default());
        assert_eq!(found.map_err(missing), is_as_left.ok_or(true), "{change:?}");
    }
    // Mode bits that no run sets are only checked for files.
    fs::set_permissions(made.user().join("d"), fs::Permissions::from_mode(0o1755)).unwrap();
    let folder = change("d", ChangeOp::Mkdir);
    assert!(apply::is_as_left(&made.user(), &folder, &mut Exposure::default()).unwrap());
}

#[test]
fn the_link_in_the_way_to_a_path_is_named() {
    let made = Bench::new(&[("d/e/x", "x"), ("f", "f")]);
    symlink("e", made.user().join("d/way")).unwrap();
    let above = |path: &str| {
        let found = apply::link_above(&made.user(), &ScopePath::parse(path).unwrap()).unwrap();
        found.map(|link| link.to_string())
    };
    assert_eq!(above("d/way/x").as_deref(), Some("d/way"));
    assert_eq!(above("d/way/y/z").as_deref(), Some("d/way"));
    assert_eq!((above("d/way"), above("d/e/x"), above("absent/x"), above("x")), (None, None, None, None));
}
