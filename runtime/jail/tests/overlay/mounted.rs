//! Tests that run the same scripts in a copy and in an overlay that the kernel mounted, both in a jail, and find the
//! same changes.

use super::bench::{Bench, entries, scope, snapshot};
use super::upper::{commit, lines, look, overlay};
use glovebox_jail::exec::{Command, Program};
use glovebox_jail::jail::ExecPolicy;
use glovebox_jail::jail::{Jail, JailSetting};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use glovebox_record::{CommandEnding, Limits, Network, Tier};
use glovebox_workspace::stage::{ViewOverrides, WorkspaceView};
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(crate) fn open(made: &Bench, view: &WorkspaceView) -> Jail {
    let base = made.dir.path().canonicalize().unwrap();
    let (inside, folder) = (base.join("project"), base.join("scratch"));
    [&inside, &folder].into_iter().for_each(|path| fs::create_dir_all(path).unwrap());
    let setting = JailSetting {
        tier: Tier::Full,
        policy: ExecPolicy::default(),
        network: Network::None,
        limits: Limits::default(),
        hidden: vec![inside.clone()],
        inside,
        inner: Vec::new(),
        kept: Vec::new(),
        folder,
        pulse: glovebox_jail::pulse::Pulse::default(),
    };
    Jail::open(&setting, view.source().unwrap()).unwrap()
}

/// Runs a script, which must succeed.
pub(crate) fn run(jail: &Jail, script: &str) {
    let program = Program::Shell(format!("set -e\n{script}"));
    let timeout = Duration::from_secs(60);
    let command = Command { program, cwd: ScopePath::root(), env: Vec::new(), stdin: None, timeout };
    let exit = jail.run(&command, &AtomicBool::new(false)).unwrap();
    let said = String::from_utf8_lossy(&exit.stderr.head).into_owned();
    assert_eq!((exit.how, exit.code), (CommandEnding::Exited, Some(0)), "{script}: {said}");
}

/// Runs a script in a jail over the view. Returns the resulting tree as the jail sees it.
fn jailed(made: &Bench, view: &WorkspaceView, script: &str) -> BTreeMap<String, String> {
    let jail = open(made, view);
    run(&jail, script);
    let seen = snapshot(&jail.root());
    jail.end().unwrap();
    seen
}

/// The changes that one kind of view finds after a script, the tree of the stage, and the workspace after the commit.
pub(crate) type Round = (Vec<String>, BTreeMap<String, String>, BTreeMap<String, String>);

pub(crate) fn copied(files: &[(&str, &str)], scope: &Scope, script: &str) -> Round {
    let made = Bench::new(files);
    let at = made.dir.path().join("attempt");
    let view = WorkspaceView::copy(&made.workspace(), &at, scope, &ViewOverrides::default()).unwrap();
    let seen = jailed(&made, &view, script);
    after(&made, view, seen)
}

pub(crate) fn overlaid(files: &[(&str, &str)], scope: &Scope, script: &str) -> Round {
    let made = Bench::new(files);
    let view = overlay(&made, scope, &ViewOverrides::default());
    let before = snapshot(&made.workspace());
    let seen = jailed(&made, &view, script);
    assert_eq!(snapshot(&made.workspace()), before, "{script}: the workspace is only read");
    after(&made, view, seen)
}

fn after(made: &Bench, view: WorkspaceView, seen: BTreeMap<String, String>) -> Round {
    let found = lines(&look(&view));
    commit(made, &view);
    view.remove().unwrap();
    (found, seen, snapshot(&made.workspace()))
}

fn check(files: &[(&str, &str)], scope: &Scope, script: &str, expected: &[&str]) {
    let copy = copied(files, scope, script);
    assert_eq!(copy.0, expected, "{script}: copy");
    assert_eq!(overlaid(files, scope, script), copy, "{script}: overlay and copy");
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
    // An exact entry covers only a file.
    check("rm main.go; mkdir main.go; echo x > main.go/x", &["delete main.go", "!write main.go/x"]);
    check("rm main.go; mkdir main.go", &["delete main.go", "!mkdir main.go"]);
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
    let files = [("src/d/x", "x"), ("src/a", "a"), ("secret/k", "k")];
    let scope = scope(&["./"], &["src/"], &["secret/"]);
    let set = "import os\nfor p in ['src/d', 'src/a']:\n for n, v in [('opaque', b'y'), ('redirect', b'/secret'), \
               ('metacopy', b'')]:\n  try: os.setxattr(p, 'user.overlay.' + n, v)\n  except OSError: pass";
    let script = format!("if command -v python3 >/dev/null; then python3 -c \"{set}\"; fi; touch src/a src/d/x");
    let (found, _, workspace) = overlaid(&files, &scope, &script);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(workspace.len(), 6);
}

#[test]
fn the_end_of_an_overlay_flushes_nothing_and_its_layers_are_mounted_again() {
    let made = Bench::new(&[("f", "f")]);
    let scope = scope(&["./"], &["./"], &[]);
    let view = overlay(&made, &scope, &ViewOverrides::default());
    for script in ["printf one >a", "test \"$(cat a)\" = one\nprintf two >b", "test \"$(cat a b)\" = onetwo"] {
        let jail = open(&made, &view);
        run(&jail, &format!("grep -q ' - overlay .*volatile' /proc/self/mountinfo\n{script}"));
        jail.end().unwrap();
    }
    assert_eq!(lines(&look(&view)).len(), 2, "the kernel's own folders are no change");
    view.remove().unwrap();
    assert_eq!(fs::read_to_string(made.workspace().join("f")).unwrap(), "f");
}
