//! The verdicts on allowed and disallowed changes.

use super::bench::{Bench, look, scope, sh, snapshot};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

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

/// Only changes that a wider write scope alone would allow may be proposed to a person.
#[test]
fn only_plain_writes_that_nothing_else_forbids_can_be_granted() {
    let check = |script: &str, expected: &[&str]| {
        let made = Bench::new(&[("src/a.rs", "a"), ("README.md", "r"), ("notes", "n"), ("secret/key", "k")]);
        let copy = made.copy(&scope(&["./"], &["src/"], &["secret/"]));
        sh(copy.root(), script);
        let found = look(&copy);
        let granted = found.iter().filter(|change| change.is_grantable());
        assert_eq!(granted.map(|change| change.path.as_str()).collect::<Vec<_>>(), expected, "{script}");
        copy.remove().unwrap();
    };
    check("echo x > README.md; echo x > new", &["README.md", "new"]);
    check("echo x > src/b.rs", &[]);
    check("rm README.md", &[]);
    check("echo x > new; chmod +x new", &[]);
    check("mkdir secret; echo x > secret/key", &[]);
    check("ln -s README.md link", &[]);
    // The existing file would have to be removed as well, and the question does not include that.
    check("rm notes; mkdir notes; echo x > notes/today", &[]);
    check("mkdir .git; echo x > .git/config", &[]);
}

#[test]
fn odd_files_are_reported_and_nothing_hangs() {
    let made = Bench::new(&[("src/a", "a"), ("src/b", "b"), ("src/d/c", "c")]);
    let script = "rm src/a; mkfifo src/a; ln -s /etc/passwd src/out; ln -s ../../x src/up; ln -s b src/fine; mkfifo pipe; \
                  printf x > \"$(printf 'src/new\\nline')\"; printf x > \"$(printf 'src/esc\\033[2J')\"; \
                  printf x > \"$(printf 'src/bad\\377')\"; ln -s d/../../../x src/twisted; \
                  ln -s ../holdout/x src/peek; ln -s ../.git/config src/conf";
    let refused = made.round(&scope(&["./"], &["src/"], &["holdout/"]), script);
    let expected = [
        "pipe",
        "src/a",
        "src/bad\\xff",
        "src/conf",
        "src/esc\\x1b[2J",
        "src/new\\nline",
        "src/out",
        "src/peek",
        "src/twisted",
        "src/up",
    ];
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
    // The same change by a stage that cannot see the file.
    let refused = made.round(&scope(&[], &["a/x"], &[]), "mkdir a; echo x > a/x");
    assert_eq!(refused, ["a/x"]);
    assert_eq!(fs::read_to_string(made.workspace().join("a")).unwrap(), "file");
}

#[test]
fn set_id_bits_do_not_survive_and_the_workspace_stays_open_to_its_owner() {
    let made = Bench::new(&[("src/a", "a")]);
    let script =
        "echo x > src/s; chmod 6777 src/s; mkdir src/closed; echo y > src/closed/f; chmod 000 src/closed/f src/closed";
    assert!(made.round(&scope(&["./"], &["src/"], &[]), script).is_empty());
    let mode = |path: &str| fs::metadata(made.workspace().join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("src/s"), mode("src/closed"), mode("src/closed/f")), (0o755, 0o700, 0o400));
    assert_eq!(fs::read_to_string(made.workspace().join("src/closed/f")).unwrap(), "y\n");
}

#[test]
fn the_names_of_unfinished_files_cannot_be_taken() {
    let made = Bench::new(&[("src/a.rs", "old\n")]);
    let part = format!("src/.glovebox-part-{}", &blake3::hash(b"src/a.rs").to_hex()[..16]);
    let script = format!("echo new > src/a.rs; mkdir {part}; echo x > {part}/x");
    let refused = made.round(&scope(&["./"], &["src/"], &[]), &script);
    assert!(refused.iter().all(|path| path.starts_with(&part)) && !refused.is_empty(), "{refused:?}");
    assert_eq!(fs::read_to_string(made.workspace().join("src/a.rs")).unwrap(), "new\n");
}
