//! The same scripts in a copy and in an overlay the kernel mounted: both find the same. Where this user may not mount, only
//! the copy is tried.

use super::bench::{Bench, entries, scope, sh, snapshot};
use super::upper::{commit, lines, look, overlay, parts};
use glovebox_sandbox::scope::Scope;
use glovebox_sandbox::stage::{Extra, WorkspaceView};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Runs a shell where the overlay is mounted at `$1`, in namespaces of its own.
fn mounted(view: &WorkspaceView, at: &Path, script: &str) -> Output {
    let (lower, upper, work) = parts(view);
    let lower = lower.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(":");
    let options = format!(
        "userxattr,redirect_dir=nofollow,metacopy=off,index=off,xino=off,lowerdir={lower},upperdir={},workdir={}",
        upper.display(),
        work.display()
    );
    fs::create_dir_all(at).unwrap();
    let line = format!("mount -t overlay overlay -o \"$2\" \"$1\"; cd \"$1\"; {script}");
    let arguments = ["--user", "--map-root-user", "--mount", "/bin/sh", "-ec", &line, "sh"];
    Command::new("unshare").args(arguments).arg(at).arg(options).output().unwrap()
}

/// True when this user may mount an overlay in namespaces of its own.
pub(crate) fn can_mount() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let made = Bench::new(&[("a", "a")]);
        let view = overlay(&made, &Scope::everything(), &Extra::default());
        let can = mounted(&view, &made.dir.path().join("merged"), "echo b > a").status.success();
        if !can {
            eprintln!("no overlay can be mounted by this user here: its half of the test is left out");
        }
        can
    })
}

/// What one kind of view finds after a script, the tree the stage had, and the workspace after the commit.
pub(crate) type Round = (Vec<String>, BTreeMap<String, String>, BTreeMap<String, String>);

pub(crate) fn copied(files: &[(&str, &str)], scope: &Scope, script: &str) -> Round {
    let made = Bench::new(files);
    let at = made.dir.path().join("attempt");
    let view = WorkspaceView::copy(&made.workspace(), &at, scope, &Extra::default()).unwrap();
    sh(&at, script);
    let seen = snapshot(&at);
    let found = lines(&look(&view));
    commit(&made, &view);
    view.remove().unwrap();
    (found, seen, snapshot(&made.workspace()))
}

pub(crate) fn overlaid(files: &[(&str, &str)], scope: &Scope, script: &str) -> Round {
    let made = Bench::new(files);
    let view = overlay(&made, scope, &Extra::default());
    let before = snapshot(&made.workspace());
    let (merged, seen) = (made.dir.path().join("merged"), made.dir.path().join("seen"));
    let done = mounted(&view, &merged, &format!("{script}\ncd \"$1\"; cp -a . {}", seen.display()));
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(snapshot(&made.workspace()), before, "{script}: the workspace is only read");
    let found = lines(&look(&view));
    commit(&made, &view);
    view.remove().unwrap();
    let tree = snapshot(&seen);
    sh(made.dir.path(), "chmod -R u+rwX seen");
    (found, tree, snapshot(&made.workspace()))
}

fn check(files: &[(&str, &str)], scope: &Scope, script: &str, expected: &[&str]) {
    let copy = copied(files, scope, script);
    assert_eq!(copy.0, expected, "{script}: copy");
    if can_mount() {
        let overlay = overlaid(files, scope, script);
        assert_eq!(overlay, copy, "{script}: overlay and copy");
    }
}

#[test]
fn an_exact_entry_works_for_every_way_of_writing() {
    let files = [("main.go", "old\n"), ("other.go", "other\n"), ("dir/deep/f", "f")];
    let scope = scope(&["./"], &["main.go", "go.mod", "dir/deep/f"], &[]);
    let check = |script: &str, expected: &[&str]| check(&files, &scope, script, expected);
    check("echo new > main.go", &["write main.go"]);
    check("echo more >> main.go", &["write main.go"]);
    check("echo module > go.mod", &["write go.mod"]);
    check("set -C; echo module > go.mod", &["write go.mod"]);
    check("echo new > .tmp; mv .tmp main.go", &["write main.go"]);
    check("sed -i s/old/new/ main.go", &["write main.go"]);
    check("set -C; echo new > main.go.lock; mv main.go.lock main.go", &["write main.go"]);
    check("rm main.go", &["delete main.go"]);
    check("rm main.go; echo old > main.go", &[]);
    check("chmod +x main.go", &["write+x main.go"]);
    check("chmod 600 main.go; touch main.go", &[]);
    check("ln other.go go.mod", &["write go.mod"]);
    check("ln -f other.go main.go; echo x > main.go", &["write main.go", "!write other.go"]);
    check("mv main.go go.mod", &["write go.mod", "delete main.go"]);
    check("mv other.go go.mod", &["write go.mod", "!delete other.go"]);
    check("rm -r dir; mkdir -p dir/deep; echo g > dir/deep/f", &["write dir/deep/f"]);
    check("rm -r dir", &["delete dir/deep/f"]);
    check("rm main.go; mkdir main.go; echo x > main.go/x", &["delete main.go", "mkdir main.go", "!write main.go/x"]);
    check("rm main.go; ln -s other.go main.go", &["symlink main.go"]);
    check("rm main.go; ln -s /etc/passwd main.go", &["!symlink main.go"]);
    check("rm main.go; mkfifo main.go", &["!special main.go"]);
    check("cp -a main.go other.go; touch new", &["!write new", "!write other.go"]);
}

#[test]
fn hidden_things_do_not_exist_and_are_not_taken_along() {
    let files = [("src/a", "a"), ("src/d/secret", "s"), ("src/d/x", "x"), ("hold/out", "h"), ("docs/r", "r")];
    let scope = scope(&["src/"], &["src/", "out/"], &["src/d/secret", "hold/"]).with_scratch(entries(&["tmp/"]));
    let check = |script: &str, expected: &[&str]| check(&files, &scope, script, expected);
    check(
        "test ! -e hold; test ! -e docs; test ! -e src/d/secret; test \"$(ls src/d)\" = x; test \"$(ls)\" = src",
        &[],
    );
    check("! cat src/d/secret; ! mv src/d/secret src/got", &[]);
    check("rm -r src/d", &["rmdir src/d", "delete src/d/x"]);
    check("rm -r src/d; mkdir src/d; echo y > src/d/y", &["delete src/d/x", "write src/d/y"]);
    check("cp -a src/d src/e; rm -r src/d", &["rmdir src/d", "delete src/d/x", "mkdir src/e", "write src/e/x"]);
    check("echo mine > src/d/secret; mkdir hold; echo mine > hold/out", &["!write hold/out", "!write src/d/secret"]);
    check("mkdir docs; echo x > docs/r; mkdir tmp; echo x > tmp/x", &["!write docs/r"]);
    check("mkdir -p out/deep; echo x > out/deep/x", &["mkdir out", "mkdir out/deep", "write out/deep/x"]);
    check("rm -r src/d; echo x > src/d", &["rmdir src/d", "!write src/d", "delete src/d/x"]);
}

#[test]
fn attributes_programs_set_are_no_marks_of_the_overlay() {
    if !can_mount() {
        return;
    }
    let files = [("src/d/x", "x"), ("src/a", "a"), ("secret/k", "k")];
    let scope = scope(&["./"], &["src/"], &["secret/"]);
    let set = "import os\nfor p in ['src/d', 'src/a']:\n  for n, v in [('opaque', b'y'), ('redirect', b'/secret'), ('metacopy', b'')]:\n    \
               os.setxattr(p, 'user.overlay.' + n, v)";
    if Command::new("python3").arg("-c").arg("").status().is_ok() {
        let (found, _, workspace) = overlaid(&files, &scope, &format!("python3 -c \"{set}\" || true"));
        assert_eq!(found, Vec::<String>::new());
        assert_eq!(workspace.len(), 6);
    }
}
