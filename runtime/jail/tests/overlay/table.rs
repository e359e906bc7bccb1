//! Every kind of entry that an overlay can contain, and the change that it stands for.

use super::bench::{Bench, entries, put, scope, snapshot};
use super::upper::{Upper, commit, lines, look, overlay};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::stage::ViewOverrides;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const FILES: &[(&str, &str)] = &[
    ("main.go", "main"),
    ("src/a", "a"),
    ("src/b", "b"),
    ("src/d/x", "x"),
    ("src/d/e/y", "y"),
    ("src/d/secret", "s"),
    ("docs/r", "r"),
];

fn usual() -> Scope {
    scope(&["./"], &["src/", "main.go", "go.mod"], &["src/d/secret", "hold/"])
}

fn check(build: impl Fn(&Upper) -> &Upper, expected: &[&str]) {
    check_in(&usual(), &ViewOverrides::default(), build, expected);
}

fn check_in(scope: &Scope, overrides: &ViewOverrides, build: impl Fn(&Upper) -> &Upper, expected: &[&str]) {
    let made = Bench::new(FILES);
    let view = overlay(&made, scope, overrides);
    build(&Upper::of(&view));
    let before = snapshot(&made.workspace());
    assert_eq!(lines(&look(&view)), expected);
    commit(&made, &view);
    if scope.is_hidden(&ScopePath::parse("src/d/secret").unwrap()) {
        assert_eq!(fs::read_to_string(made.workspace().join("src/d/secret")).unwrap(), "s");
    }
    if expected.iter().all(|line| line.starts_with('!')) {
        assert_eq!(snapshot(&made.workspace()), before);
    }
    let twice = snapshot(&made.workspace());
    commit(&made, &view);
    assert_eq!(snapshot(&made.workspace()), twice, "applied again");
    view.remove().unwrap();
    assert!(!made.dir.path().join("attempt").exists());
}

#[test]
fn files() {
    check(|u| u, &[]);
    check(|u| u.file("src/a", "other"), &["write src/a"]);
    check(|u| u.file("src/a", "A"), &["write src/a"]);
    check(|u| u.file("src/n/m/new", "n"), &["mkdir src/n", "mkdir src/n/m", "write src/n/m/new"]);
    check(|u| u.file("src/a", "a"), &[]);
    check(|u| u.file("docs/r", "r").file("docs/s", "s"), &["!write docs/s"]);
    check(
        |u: &Upper| {
            u.file("src/a", "a");
            fs::set_permissions(u.at("src/a"), fs::Permissions::from_mode(0o755)).unwrap();
            u
        },
        &["write+x src/a"],
    );
    check(
        |u| u.file("main.go", "m").file("go.mod", "g").file("go.sum", "s"),
        &["write go.mod", "!write go.sum", "write main.go"],
    );
    check(|u| u.gone("main.go").gone("docs/r"), &["!delete docs/r", "delete main.go"]);
    check(|u| u.gone("nothing").gone("src/nothing").gone("hold"), &[]);
}

#[test]
fn directories() {
    // Entries that the stage could not see are neither listed nor removed with the folder.
    check(|u| u.gone("src/d"), &["rmdir src/d", "rmdir src/d/e", "delete src/d/e/y", "delete src/d/x"]);
    check(|u| u.opaque("src/d").file("src/d/x", "x"), &["rmdir src/d/e", "delete src/d/e/y"]);
    check(
        |u| u.opaque("src/d").file("src/d/e/z", "z").file("src/d/x", "2"),
        &["delete src/d/e/y", "write src/d/e/z", "write src/d/x"],
    );
    check(|u| u.opaque("docs"), &["!delete docs/r"]);
    check(|u| u.gone("docs"), &["!rmdir docs", "!delete docs/r"]);
    check(|u| u.folder("src/d/e"), &[]);
    check(|u| u.opaque("src/new").gone("src/new/x").folder("out"), &["!mkdir out", "mkdir src/new"]);
    // Entries whose kind changes.
    check(|u| u.file("src/a/x", "x"), &["delete src/a", "mkdir src/a", "write src/a/x"]);
    check(|u| u.file("src/d/e", "file"), &["rmdir src/d/e", "write src/d/e", "delete src/d/e/y"]);
    check(
        |u| u.file("src/d", "file"),
        &["rmdir src/d", "!write src/d", "rmdir src/d/e", "delete src/d/e/y", "delete src/d/x"],
    );
    check(|u| u.file("docs/r/x", "x"), &["!delete docs/r", "!write docs/r/x"]);
}

#[test]
fn what_was_hidden_and_written_over_is_refused() {
    check(|u| u.file("src/d/secret", "mine"), &["!write src/d/secret"]);
    check(|u| u.opaque("src/d/secret").file("src/d/secret/x", "mine"), &["!write src/d/secret/x"]);
    check(|u| u.opaque("hold").file("hold/x", "mine"), &["!write hold/x"]);
    let narrow = scope(&["main.go"], &["src/d/x", "other/new"], &[]);
    check_in(
        &narrow,
        &ViewOverrides::default(),
        |u| u.file("src/d/x", "2").file("src/a", "mine"),
        &["!write src/a", "write src/d/x"],
    );
    check_in(
        &narrow,
        &ViewOverrides::default(),
        |u| u.file("docs/r", "mine").file("other/new", "n"),
        &["!write docs/r", "mkdir other", "write other/new"],
    );
}

#[test]
fn links_and_special_files() {
    check(
        |u| u.folder("src").link("src/l", "a").link("src/out", "/etc/passwd").link("src/up", "../../x"),
        &["symlink src/l", "!symlink src/out", "!symlink src/up"],
    );
    check(
        |u| u.folder("src/d").link("src/d/p", "secret").link("src/g", "../.git/config"),
        &["!symlink src/d/p", "!symlink src/g"],
    );
    check(|u| u.folder("src").link("src/a", "b"), &["symlink src/a"]);
    check(
        |u: &Upper| {
            u.folder("src/d");
            let fifo = |path: &str| rustix::fs::mkfifoat(rustix::fs::CWD, u.at(path), rustix::fs::Mode::RWXU).unwrap();
            fifo("src/a");
            fifo("src/d/e");
            drop(std::os::unix::net::UnixListener::bind(u.at("src/s")).unwrap());
            u
        },
        &["!special src/a", "rmdir src/d/e", "!special src/d/e", "delete src/d/e/y", "!special src/s"],
    );
}

#[test]
fn protected_paths_win_over_every_grant() {
    let whole = scope(&["./"], &["./"], &[]).with_scratch(entries(&["src/tmp/"]));
    fn build(u: &Upper) -> &Upper {
        for path in [".git/config", ".GitHub/workflows/x.yml", "src/.envrc", ".claude/settings.json", "glovebox.toml"] {
            u.file(path, "x");
        }
        u.file(".gitignore", "x").file(".factory/bin/x", "x").file("src/tmp/.git/hooks/x", "x")
    }
    let expected = [
        "mkdir .GitHub",
        "!write .GitHub/workflows/x.yml",
        "!write .claude/settings.json",
        "mkdir .factory",
        "mkdir .factory/bin",
        "write .factory/bin/x",
        "!write .git/config",
        "write .gitignore",
        "!write glovebox.toml",
        "!write src/.envrc",
        "!write src/tmp/.git/hooks/x",
    ];
    check_in(&whole, &ViewOverrides::default(), build, &expected);
}

#[test]
fn scratch_is_dropped_without_a_word() {
    let scope =
        usual().with_scratch(entries(&["node_modules/.cache/", "src/tmp/", "one.db", "src/d/secret", "docs/r"]));
    fn build(u: &Upper) -> &Upper {
        u.file("node_modules/.cache/a/b", "x").file("src/tmp/x", "x").file("one.db", "x").gone("docs/r");
        u.file("src/d/secret", "mine").file("src/real", "x").file("one.db2", "x");
        rustix::fs::mkfifoat(rustix::fs::CWD, u.at("src/tmp/fifo"), rustix::fs::Mode::RWXU).unwrap();
        let sparse = fs::File::create(u.at("src/tmp/huge")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        u
    }
    check_in(&scope, &ViewOverrides::default(), build, &["!write one.db2", "!write src/d/secret", "write src/real"]);
    // A directory is not replaced while it contains scratch files of the workspace.
    let scope = scope_with_scratch_below();
    check_in(
        &scope,
        &ViewOverrides::default(),
        |u| u.file("src/d", "file"),
        &["rmdir src/d", "!write src/d", "rmdir src/d/e", "delete src/d/secret", "delete src/d/x"],
    );
}

fn scope_with_scratch_below() -> Scope {
    scope(&["./"], &["./"], &[]).with_scratch(entries(&["src/d/e/y"]))
}

#[test]
fn a_directory_is_not_replaced_while_something_in_it_must_stay() {
    let exact = scope(&["./"], &["src/d", "src/d/x", "src/d/e", "src/d/secret"], &[]);
    check_in(
        &exact,
        &ViewOverrides::default(),
        |u| u.file("src/d", "file"),
        &["rmdir src/d", "!write src/d", "rmdir src/d/e", "!delete src/d/e/y", "delete src/d/secret", "delete src/d/x"],
    );
}

#[test]
fn mount_points_take_nothing() {
    let extra = ViewOverrides {
        mount_points: vec![ScopePath::parse("scripts/scenarios").unwrap()],
        ..ViewOverrides::default()
    };
    let everything = scope(&["./"], &["./"], &["src/d/secret"]);
    check_in(
        &everything,
        &extra,
        |u| u.file("scripts/scenarios/x", "x").file("scripts/new", "n"),
        &["write scripts/new", "!write scripts/scenarios/x"],
    );
}

#[test]
fn a_layer_is_seen_and_judged_like_the_workspace() {
    let layer = tempfile::tempdir().unwrap();
    put(&layer.path().join("scripts/scenarios/one"), "1");
    put(&layer.path().join("src/gen"), "g");
    let extra = ViewOverrides { layers: vec![layer.path().to_owned()], ..ViewOverrides::default() };
    check_in(&usual(), &extra, |u| u.file("src/gen", "g").file("scripts/scenarios/one", "1"), &[]);
    check_in(
        &usual(),
        &extra,
        |u| u.gone("scripts").gone("src/gen"),
        &["!rmdir scripts", "!rmdir scripts/scenarios", "!delete scripts/scenarios/one", "delete src/gen"],
    );
    let protected = Protected::new(&["scripts/scenarios/"]);
    let made = Bench::new(FILES);
    let view = overlay(&made, &scope(&["./"], &["./"], &[]), &extra);
    Upper::of(&view).file("scripts/scenarios/one", "2");
    assert_eq!(lines(&view.changes(&Default::default(), &protected).unwrap()), ["!write scripts/scenarios/one"]);
}

#[test]
fn set_id_bits_write_permission_for_others_and_attributes_do_not_survive() {
    let made = Bench::new(FILES);
    let view = overlay(&made, &usual(), &ViewOverrides::default());
    let upper = Upper::of(&view);
    upper.file("src/s", "s").mark("src/s", "user.evil", "x").file("src/closed/f", "f");
    let mode = |path: &str, mode: u32| fs::set_permissions(upper.at(path), fs::Permissions::from_mode(mode)).unwrap();
    fs::hard_link(upper.at("src/s"), upper.at("src/t")).unwrap();
    mode("src/s", 0o6777);
    mode("src/closed/f", 0);
    mode("src/closed", 0);
    commit(&made, &view);
    let is = |path: &str| fs::metadata(made.workspace().join(path)).unwrap();
    let mode = |path: &str| is(path).permissions().mode() & 0o7777;
    assert_eq!((mode("src/s"), mode("src/t"), mode("src/closed"), mode("src/closed/f")), (0o755, 0o755, 0o700, 0o400));
    assert_eq!(std::os::unix::fs::MetadataExt::nlink(&is("src/s")), 1);
    let mut names = [0_u8; 256];
    let length = rustix::fs::listxattr(made.workspace().join("src/s"), &mut names[..]).unwrap();
    assert!(!String::from_utf8_lossy(&names[..length]).contains("user.evil"));
    view.remove().unwrap();
}
