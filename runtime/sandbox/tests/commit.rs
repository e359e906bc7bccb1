//! A stage's copy, what is found in it and what reaches the workspace. Witnesses stand outside the copy.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

use glovebox_sandbox::commit::{self, ChangeOp, FileChange};
use glovebox_sandbox::found::{Found, Limits, Op, Verdict};
use glovebox_sandbox::protect::Protected;
use glovebox_sandbox::quarantine::{self, Caps};
use glovebox_sandbox::scope::{Entry, Scope};
use glovebox_sandbox::stage::{Copy, StageError};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = Self { dir };
        fs::create_dir(made.workspace()).unwrap();
        fs::create_dir(made.blobs()).unwrap();
        for (path, content) in files {
            put(&made.workspace().join(path), content);
        }
        made
    }

    fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    fn blobs(&self) -> PathBuf {
        self.dir.path().join("blobs")
    }

    fn copy(&self, scope: &Scope) -> Copy {
        Copy::create(&self.workspace(), &self.dir.path().join("copy"), scope).unwrap()
    }

    fn store(&self, found: &[Found], copy: &Copy) -> Vec<FileChange> {
        let blobs = self.blobs();
        let mut keep = |content: &mut dyn Read| -> io::Result<String> {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            let digest = blake3::hash(&bytes).to_hex().to_string();
            fs::write(blobs.join(&digest), &bytes)?;
            Ok(format!("blake3:{digest}"))
        };
        commit::store(found, copy, &mut keep).unwrap()
    }

    fn apply(&self, changes: &[FileChange]) -> Result<(), commit::CommitError> {
        commit::apply(&self.workspace(), changes, &|digest| self.blob(digest))
    }

    fn blob(&self, digest: &str) -> io::Result<File> {
        File::open(self.blobs().join(digest.trim_start_matches("blake3:")))
    }

    /// Runs a shell in the copy, looks, commits, and returns the disallowed paths.
    fn round(&self, scope: &Scope, script: &str) -> Vec<String> {
        let copy = self.copy(scope);
        sh(copy.root(), script);
        let found = look(&copy);
        let changes = self.store(&found, &copy);
        self.apply(&changes).unwrap();
        copy.remove().unwrap();
        assert!(!self.dir.path().join("copy").exists());
        found.iter().filter(|change| !change.is_allowed()).map(|change| change.path.clone()).collect()
    }
}

fn put(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn sh(at: &Path, script: &str) {
    let done = Command::new("/bin/sh").args(["-ec", script]).current_dir(at).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

fn look(copy: &Copy) -> Vec<Found> {
    copy.changes(&Limits::default(), &Protected::default()).unwrap()
}

fn entries(texts: &[&str]) -> Vec<Entry> {
    texts.iter().map(|text| Entry::parse(text).unwrap()).collect()
}

fn scope(read: &[&str], write: &[&str], hidden: &[&str]) -> Scope {
    Scope::new(entries(read), entries(write), entries(hidden))
}

/// Everything below a folder: path to content, `dir` or link target, with the executable bit.
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
                let executable = meta.permissions().mode() & 0o100 != 0;
                into.insert(name, format!("{executable} {}", String::from_utf8_lossy(&fs::read(&path).unwrap())));
            }
        }
    }
    let mut all = BTreeMap::new();
    go(root, root, &mut all);
    all
}

#[test]
fn an_exact_entry_works_for_every_way_of_writing() {
    let check = |script: &str, expected: Option<&str>| {
        let made = Bench::new(&[("main.go", "old\n"), ("other.go", "other\n")]);
        let refused = made.round(&scope(&["./"], &["main.go", "go.mod"], &[]), script);
        assert_eq!(refused, Vec::<String>::new(), "{script}");
        assert_eq!(fs::read_to_string(made.workspace().join("main.go")).ok().as_deref(), expected, "{script}");
        assert_eq!(fs::read_to_string(made.workspace().join("other.go")).unwrap(), "other\n");
    };
    check("echo new > main.go", Some("new\n"));
    check("echo new > main.go.tmp && mv main.go.tmp main.go", Some("new\n"));
    check("sed -i s/old/new/ main.go", Some("new\n"));
    check("rm main.go", None);
    check("set -C; echo module > go.mod", Some("old\n"));
    check("ln other.go go.mod", Some("old\n"));

    let made = Bench::new(&[("main.go", "old\n")]);
    assert!(made.round(&scope(&["./"], &["main.go"], &[]), "chmod +x main.go").is_empty());
    assert_eq!(fs::metadata(made.workspace().join("main.go")).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn what_is_outside_the_write_scope_never_reaches_the_workspace() {
    let check = |script: &str, expected: &[&str]| {
        let files = [("src/a.rs", "a"), ("README.md", "r"), (".git/config", "g"), ("secret/key", "k")];
        let made = Bench::new(&files);
        let before = snapshot(&made.workspace());
        assert_eq!(made.round(&scope(&["./"], &["src/"], &["secret/"]), script), expected, "{script}");
        assert_eq!(snapshot(&made.workspace()), before, "{script}");
    };
    check("echo x > README.md", &["README.md"]);
    check("ln -f README.md .cargo", &[".cargo"]);
    check("mv README.md src/../moved", &["README.md", "moved"]);
    check("rm README.md", &["README.md"]);
    check("chmod +x README.md", &["README.md"]);
    check("echo x > new; mkdir -p d/e", &["d/e", "new"]);
    check("mkdir -p d/e; echo x > d/e/f", &["d/e/f"]);
    check("mkdir secret; echo x > secret/key", &["secret/key"]);
    check("echo x >> .git/config", &[".git/config"]);
    check("mkdir -p src/.GIT/hooks; echo x > src/.GIT/hooks/post-checkout", &["src/.GIT/hooks/post-checkout"]);
    check("mkdir -p .github/workflows; echo x > .github/workflows/ci.yml", &[".github/workflows/ci.yml"]);
}

#[test]
fn odd_files_are_reported_and_nothing_hangs() {
    let made = Bench::new(&[("src/a", "a"), ("src/b", "b"), ("src/d/c", "c")]);
    let script = "rm src/a; mkfifo src/a; ln -s /etc/passwd src/out; ln -s ../../x src/up; ln -s b src/fine; mkfifo pipe; \
                  printf x > \"$(printf 'src/new\\nline')\"; printf x > \"$(printf 'src/esc\\033[2J')\"; \
                  printf x > \"$(printf 'src/bad\\377')\"; ln -s d/../../../x src/twisted";
    let refused = made.round(&scope(&["./"], &["src/"], &[]), script);
    let expected =
        ["pipe", "src/a", "src/bad\\xff", "src/esc\\u{1b}[2J", "src/new\\u{a}line", "src/out", "src/twisted", "src/up"];
    assert_eq!(refused, expected);
    let after = snapshot(&made.workspace());
    assert_eq!(after.get("src/fine").map(String::as_str), Some("-> b"));
    assert_eq!(after.get("src/a").map(String::as_str), Some("false a"));
    assert_eq!(after.len(), 6);
}

#[test]
fn hidden_and_ungranted_paths_do_not_exist_in_the_copy() {
    let made = Bench::new(&[("src/a", "a"), ("src/secret/k", "k"), ("docs/d", "d"), ("other/o", "o"), ("top", "t")]);
    symlink("secret/k", made.workspace().join("src/way")).unwrap();
    let copy = made.copy(&scope(&["src/", "docs/d"], &["out/"], &["src/secret/"]));
    assert_eq!(snapshot(copy.root()).into_keys().collect::<Vec<_>>(), ["docs", "docs/d", "src", "src/a"]);
}

#[test]
fn a_directory_that_holds_more_than_the_stage_sees_is_never_replaced() {
    let made = Bench::new(&[("src/d/a", "a"), ("src/d/secret", "s"), ("src/e", "e")]);
    let scope = scope(&[], &["src/"], &["src/d/secret"]);
    assert_eq!(made.round(&scope, "rm -r src/d; echo x > src/d"), ["src/d"]);
    assert_eq!(fs::read_to_string(made.workspace().join("src/d/secret")).unwrap(), "s");
    assert!(made.round(&scope, "rm -rf src/d").is_empty());
    assert_eq!(fs::read_to_string(made.workspace().join("src/d/secret")).unwrap(), "s");
    assert_eq!(made.round(&scope, "mkdir -p src/d; echo mine > src/d/secret"), ["src/d/secret"]);
    assert_eq!(fs::read_to_string(made.workspace().join("src/d/secret")).unwrap(), "s");
}

#[test]
fn a_file_outside_the_scope_does_not_give_way_to_a_folder_inside() {
    let made = Bench::new(&[("a", "file")]);
    let refused = made.round(&scope(&["./"], &["a/x"], &[]), "rm a; mkdir a; echo x > a/x");
    assert_eq!(refused, ["a", "a/x"]);
    assert_eq!(fs::read_to_string(made.workspace().join("a")).unwrap(), "file");
    // The same without being able to see the file.
    let refused = made.round(&scope(&[], &["a/x"], &[]), "mkdir a; echo x > a/x");
    assert_eq!(refused, ["a/x"]);
    assert_eq!(fs::read_to_string(made.workspace().join("a")).unwrap(), "file");
}

#[test]
fn set_id_bits_and_closed_permissions_do_not_survive() {
    let made = Bench::new(&[("src/a", "a")]);
    let script =
        "echo x > src/s; chmod 6777 src/s; mkdir src/closed; echo y > src/closed/f; chmod 000 src/closed/f src/closed";
    assert!(made.round(&scope(&["./"], &["src/"], &[]), script).is_empty());
    let mode = |path: &str| fs::metadata(made.workspace().join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("src/s"), mode("src/closed"), mode("src/closed/f")), (0o755, 0o755, 0o644));
    assert_eq!(fs::read_to_string(made.workspace().join("src/closed/f")).unwrap(), "y\n");
}

#[test]
fn a_change_that_sets_its_times_back_is_found() {
    let made = Bench::new(&[("src/a", "aaaa"), ("src/b", "bbbb")]);
    let copy = made.copy(&scope(&["./"], &["src/"], &[]));
    // At once, in the same clock tick as the copy if there were no wait.
    let path = copy.root().join("src/a");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "AAAA").unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    // Touched only: no change.
    File::options().write(true).open(copy.root().join("src/b")).unwrap().set_modified(modified).unwrap();
    let found = look(&copy);
    assert_eq!(found.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["src/a"]);
    assert_eq!(found[0].op, Op::Write { bytes: 4, executable: false });
    assert_eq!(found[0].verdict, Verdict::Allowed);
}

#[test]
fn each_limit_is_named() {
    let check = |limits: Limits, script: &str, expected: &str| {
        let made = Bench::new(&[("a", "a")]);
        let copy = made.copy(&Scope::everything());
        sh(copy.root(), script);
        match copy.changes(&limits, &Protected::default()) {
            Err(StageError::Limit { limit, .. }) => assert_eq!(limit, expected, "{script}"),
            other => panic!("{script}: {other:?}"),
        }
        copy.remove().unwrap();
    };
    let small = Limits { write_entries: 20, ..Limits::default() };
    check(small, "for i in $(seq 30); do : > f$i; done", "write_entries");
    check(Limits::default(), "truncate -s 1T sparse", "write_bytes");
    check(Limits::default(), &format!("mkdir -p {}", "d/".repeat(140)), "depth");
    let name = "n".repeat(200);
    check(Limits { name_bytes: 100, ..Limits::default() }, &format!("touch {name}"), "name_bytes");
}

#[test]
fn a_tree_of_five_thousand_levels_is_refused_and_removed() {
    let made = Bench::new(&[]);
    let copy = made.copy(&Scope::everything());
    deepen(copy.root(), "d", 5_000);
    deepen(copy.root(), &"n".repeat(200), 30);
    let check = |depth: u32, expected: &str| match copy
        .changes(&Limits { depth, ..Limits::default() }, &Protected::default())
    {
        Err(StageError::Limit { limit, .. }) => assert_eq!(limit, expected),
        other => panic!("{other:?}"),
    };
    check(128, "depth");
    check(10_000, "path_bytes");
    copy.remove().unwrap();
    assert!(!made.dir.path().join("copy").exists());
}

fn deepen(at: &Path, name: &str, levels: u32) {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let mut here = File::open(at).unwrap().into();
    for _ in 0..levels {
        mkdirat(&here, name, Mode::RWXU).unwrap();
        here = openat(&here, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
}

#[test]
fn applying_twice_or_again_after_any_interruption_gives_the_same_tree() {
    let files = [("keep", "k"), ("a", "file"), ("d/x", "x"), ("d/y", "y"), ("gone/deep/z", "z"), ("run.sh", "#!")];
    let script =
        "rm a; mkdir a; echo new > a/b; rm -r d; echo d > d; rm -r gone; chmod +x run.sh; mkdir -p n/m; ln -s keep l";
    let second = "rm -r a; echo again > a; rm d; mkdir d; echo y2 > d/y; rm l";
    let made = Bench::new(&files);
    let mut stages = Vec::new();
    let mut states = vec![snapshot(&made.workspace())];
    for script in [script, second] {
        let copy = made.copy(&Scope::everything());
        sh(copy.root(), script);
        let changes = made.store(&look(&copy), &copy);
        let expected = snapshot(copy.root());
        copy.remove().unwrap();
        made.apply(&changes).unwrap();
        assert_eq!(snapshot(&made.workspace()), expected);
        states.push(expected);
        stages.push(changes);
    }
    let all: Vec<FileChange> = stages.concat();
    let last = states.last().unwrap();
    // Applied to the finished tree, as one list and stage by stage.
    made.apply(&all).unwrap();
    assert_eq!(&snapshot(&made.workspace()), last);
    for changes in &stages {
        made.apply(changes).unwrap();
    }
    assert_eq!(&snapshot(&made.workspace()), last);
    // Interrupted before every blob it needs, then applied again, from the very beginning.
    let steps = all.iter().filter(|change| change.op == ChangeOp::Write).count();
    for stop in 0..=steps {
        let fresh = Bench::new(&files);
        for (name, _) in fs::read_dir(made.blobs()).unwrap().map(|e| (e.unwrap().file_name(), ())) {
            fs::copy(made.blobs().join(&name), fresh.blobs().join(&name)).unwrap();
        }
        let opened = std::cell::Cell::new(0);
        let interrupted = stages.iter().try_for_each(|changes| {
            commit::apply(&fresh.workspace(), changes, &|digest| {
                opened.set(opened.get() + 1);
                if opened.get() > stop { Err(io::Error::other("interrupted")) } else { fresh.blob(digest) }
            })
        });
        assert_eq!(interrupted.is_err(), stop < steps, "{stop}");
        fresh.apply(&all).unwrap();
        assert_eq!(&snapshot(&fresh.workspace()), last, "{stop}");
    }
}

#[test]
fn what_an_interrupted_write_left_is_gone_after_the_next() {
    let made = Bench::new(&[("a", "old")]);
    let copy = made.copy(&Scope::everything());
    sh(copy.root(), "echo new > a");
    let changes = made.store(&look(&copy), &copy);
    // A blob whose content is not what it is called: refused, and the workspace keeps what it had.
    let digest = changes[0].digest.clone().unwrap();
    let forged = commit::apply(&made.workspace(), &changes, &|_| {
        let path = made.dir.path().join("forged");
        fs::write(&path, "evil").unwrap();
        File::open(path)
    });
    assert!(matches!(forged, Err(commit::CommitError::Corrupt { .. })), "{digest}");
    assert_eq!(snapshot(&made.workspace()).into_values().collect::<Vec<_>>(), ["false old"]);
    // A part left by a crash has a fixed name, so the next try replaces it.
    let name = format!(".glovebox-part-{}", &blake3::hash(b"a").to_hex()[..16]);
    fs::write(made.workspace().join(name), "half").unwrap();
    made.apply(&changes).unwrap();
    assert_eq!(snapshot(&made.workspace()).into_values().collect::<Vec<_>>(), ["false new\n"]);
}

#[test]
fn changes_with_paths_that_lead_out_are_refused() {
    let made = Bench::new(&[]);
    let outside = made.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, made.workspace().join("way")).unwrap();
    let write = |path: &str| FileChange {
        path: path.to_owned(),
        op: ChangeOp::Write,
        digest: Some(blake3::hash(b"x").to_hex().to_string()),
        bytes: 1,
        executable: false,
        target: None,
    };
    fs::write(made.blobs().join(blake3::hash(b"x").to_hex().as_str()), "x").unwrap();
    for path in ["../x", "/etc/x", "a/../../x", "", "a//b"] {
        assert!(made.apply(&[write(path)]).is_err(), "{path:?}");
    }
    let link = FileChange { op: ChangeOp::Symlink, target: Some("../../x".to_owned()), digest: None, ..write("a/l") };
    assert!(made.apply(&[link]).is_err());
    // A link on the way gives way; nothing is written behind it.
    made.apply(&[write("way/x")]).unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(made.workspace().join("way/x").is_file());
}

#[test]
fn a_swapped_directory_never_lets_a_commit_out() {
    let made = Bench::new(&[("d/f", "0"), ("d/sub/g", "0")]);
    let outside = made.dir.path().join("outside");
    fs::create_dir_all(outside.join("sub")).unwrap();
    fs::write(outside.join("f"), "canary").unwrap();
    let workspace = made.workspace();
    symlink(&outside, workspace.join("link")).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (mut done, mut failed) = (0, 0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = renameat_with(CWD, workspace.join("d"), CWD, workspace.join("link"), RenameFlags::EXCHANGE);
            }
        });
        let end = std::time::Instant::now() + std::time::Duration::from_secs(3);
        let mut turn = 0_u32;
        while std::time::Instant::now() < end {
            turn += 1;
            let content = turn.to_string();
            let digest = blake3::hash(content.as_bytes()).to_hex().to_string();
            let blob = made.blobs().join("blob");
            fs::write(&blob, &content).unwrap();
            let change = |path: &str| FileChange {
                path: path.to_owned(),
                op: ChangeOp::Write,
                digest: Some(digest.clone()),
                bytes: content.len() as u64,
                executable: false,
                target: None,
            };
            let gone = FileChange { op: ChangeOp::Delete, digest: None, ..change("d/f") };
            let list = if turn.is_multiple_of(3) {
                vec![gone]
            } else {
                vec![change("d/f"), change("d/sub/g"), change("d/n/h")]
            };
            match commit::apply(&workspace, &list, &|_| File::open(&blob)) {
                Ok(()) => done += 1,
                Err(_) => failed += 1,
            }
            if !workspace.join("link").is_symlink() && !workspace.join("d").is_symlink() {
                // The commit removed the link, as it may; plant it again.
                let _ = fs::remove_dir_all(workspace.join("link"));
                let _ = symlink(&outside, workspace.join("link"));
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(done > 50, "{done} commits, {failed} refused");
    let expected: BTreeMap<String, String> =
        [("f".to_owned(), "false canary".to_owned()), ("sub".to_owned(), "dir".to_owned())].into();
    assert_eq!(snapshot(&outside), expected);
}

#[test]
fn quarantine_keeps_everything_and_nothing_of_it_can_act() {
    let made = Bench::new(&[("src/a", "a")]);
    let copy = made.copy(&scope(&["./"], &["src/"], &[]));
    let script = "mkdir -p .git/hooks; printf '#!/bin/sh' > .git/hooks/pre-commit; chmod 4755 .git/hooks/pre-commit; \
                  echo out > .envrc; mkfifo p; ln -s /etc/passwd l; echo fine > src/b; rm src/a; echo big > big";
    sh(copy.root(), script);
    let found = look(&copy);
    let into = made.dir.path().join("quarantine");
    let report = quarantine::quarantine(&copy, &found, &into, &Caps { files_max: 2, ..Caps::default() }).unwrap();
    let listed: Vec<(&str, bool)> =
        report.kept.iter().map(|kept| (kept.path.as_str(), kept.stored_as.is_some())).collect();
    let expected = [(".envrc", true), (".git/hooks/pre-commit", true), ("big", false), ("l", false), ("p", false)];
    assert_eq!(listed, expected);
    for entry in fs::read_dir(&into).unwrap() {
        let meta = entry.unwrap().path().symlink_metadata().unwrap();
        assert!(meta.is_file() && meta.permissions().mode() & 0o7777 == 0o600);
    }
    let stored = report.kept[1].stored_as.clone().unwrap();
    assert_eq!(fs::read_to_string(into.join(stored)).unwrap(), "#!/bin/sh");
    let read: quarantine::Report =
        serde_json::from_str(&fs::read_to_string(into.join("report.json")).unwrap()).unwrap();
    assert_eq!(read, report);
}

#[test]
fn an_untouched_copy_of_five_thousand_files_is_not_read() {
    let made = Bench::new(&[]);
    for n in 0..5_000 {
        put(&made.workspace().join(format!("d{}/f{n}", n % 50)), "some content");
    }
    let copy = made.copy(&Scope::everything());
    // The witness: reading would fail, since what would be compared with is gone.
    for n in 0..50 {
        fs::remove_dir_all(made.workspace().join(format!("d{n}"))).unwrap();
    }
    let begin = std::time::Instant::now();
    assert_eq!(look(&copy), []);
    eprintln!("changes() on 5,000 untouched files: {:?}", begin.elapsed());
}
