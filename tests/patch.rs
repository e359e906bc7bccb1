//! `git apply` of the output of `diff` gives the same tree as `apply`, whatever a run changed.
//!
//! Git itself is the witness. Each case is a separate project, so that one kind of change cannot hide another.

use crate::workbench::{self, Workbench};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns path, mode and content of everything except folders. The folder of Glovebox is left out.
fn tree(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let stat = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if matches!(name.as_str(), ".glovebox" | ".git") {
                continue;
            }
            if stat.is_dir() {
                pending.push(path);
            } else if stat.is_symlink() {
                let target = std::fs::read_link(&path).unwrap().to_str().unwrap().to_owned();
                found.insert(name, (0o120_000, target.into_bytes()));
            } else {
                found.insert(name, (stat.permissions().mode() & 0o100, std::fs::read(&path).unwrap()));
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
    let _never_made = std::fs::remove_dir_all(to.join(".glovebox"));
}

fn git(folder: &Path, words: &[&str], input: &[u8]) -> (bool, String) {
    let mut command = Command::new("git");
    command.args(words).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap());
    command.env("GIT_COMMITTER_NAME", "c").env("GIT_COMMITTER_EMAIL", "c@localhost");
    command.env("GIT_AUTHOR_NAME", "A U Thor").env("GIT_AUTHOR_EMAIL", "a@localhost");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Creates a project in which a stage runs `script`.
fn project(script: &str, prepare: &dyn Fn(&Workbench)) -> Workbench {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         t [shape=parallelogram, tool_command=\"sh change.sh\"]\n start -> t -> done }",
    );
    bench.write("change.sh", &format!("set -e\n{script}\n"));
    prepare(&bench);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--quiet"]).ends(0);
    bench
}

fn check(name: &str, script: &str, prepare: &dyn Fn(&Workbench), parts: &[&str]) {
    let bench = project(script, prepare);
    let output = bench.command(&["diff", "r"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let patch = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in parts {
        assert!(patch.contains(part), "{name}: {part:?} is not in\n{patch}");
    }
    let (by_git, by_apply) = (bench.outside().join("by-git"), bench.outside().join("by-apply"));
    copy(&bench.project(), &by_git);
    copy(&bench.project(), &by_apply);
    let (passed, said) = git(&by_git, &["apply", "--whitespace=nowarn", "-"], &output.stdout);
    assert!(passed, "{name}: git apply: {said}\n{patch}");
    bench.glovebox(&["apply", "r", "--workdir", by_apply.to_str().unwrap()]).ends(0);
    assert_eq!(tree(&by_git), tree(&by_apply), "{name}:\n{patch}");
    assert_ne!(tree(&by_apply), tree(&bench.project()), "{name}: the run changed something");
    // When git 2.47 reverses a patch that removed a symbolic link, it creates a regular file, also for patches that git
    // itself made.
    if !patch.contains("deleted file mode 120000") {
        let (passed, said) = git(&by_git, &["apply", "-R", "--whitespace=nowarn", "-"], &output.stdout);
        assert!(passed, "{name}: git apply -R: {said}\n{patch}");
        assert_eq!(tree(&by_git), tree(&bench.project()), "{name}: and back");
    }
    // The patch stays the same if the project changes.
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(bench.command(&["diff", "r"]).output().unwrap().stdout, output.stdout, "{name}");
}

/// Returns a function that writes a file of the project.
fn write(path: &'static str, text: &'static str) -> impl Fn(&Workbench) {
    move |bench: &Workbench| bench.write(path, text)
}

/// Writes a file of 40 lines.
fn long(bench: &Workbench) {
    let lines: String = (0..40).map(|line| format!("line {line}\n")).collect();
    bench.write("long.txt", &lines);
}

#[test]
fn git_apply_brings_the_lines_of_a_diff() {
    check(
        "content",
        "sed -i 's/^line 20$/twenty/; s/^line 3$/three/' long.txt",
        &long,
        &["@@ -1,7 +1,7 @@", "-line 20\n"],
    );
    check("crlf", "printf 'a\\r\\nc\\r\\n' > dos.txt", &write("dos.txt", "a\r\nb\r\n"), &["-b\r\n+c\r\n"]);
    check("to lf", "printf 'a\\nb\\n' > dos.txt", &write("dos.txt", "a\r\nb\r\n"), &["-a\r\n"]);
    check(
        "lone cr",
        "printf 'a\\rb\\n\\033[2J\\007\\f\\n' > cr",
        &write("cr", "a\rc\n"),
        &["+a\rb\n+\u{1b}[2J\u{7}\u{c}\n"],
    );
    check("not utf-8", "printf 'a\\377\\n' > latin", &write("latin", "a\n"), &["--- a/latin"]);
    check("no newline", "printf 'a\\nb' > end", &write("end", "a\nc"), &["\\ No newline at end of file"]);
    check("newline added", "printf 'a\\n' > end", &write("end", "a"), &["-a\n\\ No newline at end of file\n+a\n"]);
}

#[test]
fn git_apply_brings_modes_and_files_without_lines() {
    check(
        "empty new",
        ": > empty",
        &|_| {},
        &["new file mode 100644\nindex 0000000000000000000000000000000000000000..e69de29"],
    );
    check("emptied", ": > full", &write("full", "a\n"), &["@@ -1 +0,0 @@"]);
    check("empty deleted", "rm empty", &write("empty", ""), &["deleted file mode 100644"]);
    check("filled", "echo a > empty", &write("empty", ""), &["@@ -0,0 +1 @@"]);
    check("new program", "printf '#!/bin/sh\\n' > x; chmod +x x", &|_| {}, &["new file mode 100755"]);
    check("mode", "chmod +x x.sh", &write("x.sh", "true\n"), &["old mode 100644\nnew mode 100755\n"]);
    check(
        "mode and content",
        "chmod +x x.sh; echo 2 >> x.sh",
        &write("x.sh", "1\n"),
        &["new mode 100755\nindex ", "+2"],
    );
    check("deleted", "rm gone", &write("gone", "a\nb\n"), &["deleted file mode 100644", "+++ /dev/null"]);
    check(
        "deleted folder",
        "rm -r d",
        &|bench| {
            bench.write("d/a", "1\n");
            bench.write("d/e/b", "2\n");
        },
        &["a/d/e/b"],
    );
}

#[test]
fn git_apply_brings_moved_and_binary_files() {
    check(
        "renamed",
        "mkdir n; mv long.txt n/",
        &long,
        &["similarity index 100%\nrename from long.txt\nrename to n/long.txt\n"],
    );
    check(
        "renamed, changed",
        "mv long.txt new.txt; sed -i '1d' new.txt",
        &long,
        &["similarity index 97%", "-line 0\n"],
    );
    check("renamed, mode", "mv long.txt new; chmod +x new", &long, &["new mode 100755\nsimilarity index 100%"]);
    check("copied", "cp long.txt copy", &long, &["new file mode"]);
    check(
        "swapped",
        "mv a t; mv b a; mv t b",
        &|bench| {
            bench.write("a", "1\n");
            bench.write("b", "2\n");
        },
        &["-1\n+2\n"],
    );
    check(
        "binary new",
        "head -c 3000 /dev/urandom > bin",
        &|_| {},
        &["GIT binary patch\nliteral 3000\n", "literal 0\n"],
    );
    check("binary", "printf 'b\\0c' > bin", &write("bin", "a\0b"), &["GIT binary patch\nliteral 3\n"]);
    check("binary deleted", "rm bin", &write("bin", "a\0b"), &["GIT binary patch\nliteral 0\n"]);
    check("binary moved", "mv bin box", &write("bin", "a\0b"), &["rename to box"]);
}

#[test]
fn git_apply_brings_links_and_folders() {
    check("link new", "ln -s change.sh way", &|_| {}, &["new file mode 120000", "+change.sh\n\\ No newline"]);
    let linked = |bench: &Workbench| std::os::unix::fs::symlink("change.sh", bench.project().join("way")).unwrap();
    check("link moved on", "ln -sfn f2 way", &linked, &["-change.sh", "+f2"]);
    check("link deleted", "rm way", &linked, &["deleted file mode 120000"]);
    check("link to file", "rm way; echo a > way", &linked, &["deleted file mode 120000", "new file mode 100644"]);
    check(
        "file to link",
        "rm f; ln -s change.sh f",
        &write("f", "a\n"),
        &["deleted file mode 100644", "new file mode 120000"],
    );
    check("file to folder", "rm f; mkdir f; echo b > f/g", &write("f", "a\n"), &["b/f/g"]);
    check("folder to file", "rm -r f; echo b > f", &write("f/g", "a\n"), &["a/f/g"]);
}

#[test]
fn git_apply_reads_every_name() {
    check(
        "space",
        "echo 2 >> 'a b'; echo 1 > 'c  d'",
        &write("a b", "1\n"),
        &["diff --git a/a b b/a b\n", "--- a/a b\t\n"],
    );
    check("space moved", "mv 'a b' 'c d'", &write("a b", "1\n"), &["rename from a b\nrename to c d\n"]);
    check("unicode", "echo 2 >> größe; echo 1 > 日本", &write("größe", "1\n"), &["--- a/größe\n", "+++ b/日本\n"]);
    check(
        "quotes",
        "echo 2 >> 'say \"hi\"'; echo 1 > 'back\\slash'",
        &write("say \"hi\"", "1\n"),
        &["\"a/say \\\"hi\\\"\""],
    );
    check("marks", "printf -- '-- a/x\\n+++ b/x\\n@@ -1 +1 @@\\n' > m", &write("m", "-- b\n"), &["+-- a/x\n"]);
    check("long line", "head -c 200000 /dev/zero | tr '\\0' x > wide", &write("wide", "x\n"), &["-x\n"]);
}

#[test]
fn what_a_patch_cannot_bring_is_named() {
    let bench = project("mkdir hollow; rm kept/a", &|bench| bench.write("kept/a", "1\n"));
    let diff = bench.glovebox(&["diff", "r"]);
    diff.ends(0).says("a patch cannot contain an empty directory: `hollow/` differs").says("`kept/` differs");
}

#[test]
fn an_old_version_that_is_nowhere_left_is_an_error_and_not_a_shorter_patch() {
    let bench = project("echo 2 >> f; echo 1 > g", &|bench| bench.write("f", "1\n"));
    let journal = rusqlite::Connection::open(bench.run_folder("r").join("journal.sqlite")).unwrap();
    let removed = journal.execute("DELETE FROM blob WHERE bytes = ?1", [b"1\n"]).unwrap();
    assert_eq!(removed, 1, "one copy of the old bytes was kept");
    drop(journal);
    // `f` and `g` have the same old content. The project still has it in `g`, so nothing is missing yet.
    bench.write("g", "1\n");
    bench.glovebox(&["diff", "r", "--", "f"]).ends(0).says("+2");
    bench.write("f", "other\n");
    bench.glovebox(&["diff", "r", "--", "f"]).ends(6).says("no copy of the old version of `f`");
}

#[test]
fn apply_brings_only_what_is_named() {
    let bench = project("echo 2 >> f; mkdir d; echo 1 > d/g", &|bench| bench.write("f", "1\n"));
    bench.glovebox(&["apply", "--", "nothing"]).ends(2).says("the run did not change `nothing`");
    bench
        .glovebox(&["apply", "--", "d/g"])
        .ends(0)
        .says("wrote   d/g")
        .says("1 of 2 changed files")
        .never_says("wrote   f");
    assert_eq!((bench.read("f"), bench.read("d/g")), ("1\n".to_owned(), "1\n".to_owned()));
    bench.glovebox(&["apply"]).ends(0).says("wrote   f").never_says("d/g");
    assert_eq!(bench.read("f"), "1\n2\n");
    let patch = bench.glovebox(&["diff", "--", "d"]).ends(0).stdout.clone();
    assert!(patch.contains("d/g") && !patch.contains("a/f"));
}

/// Creates a repository with one commit, in which the stages `one` and `two` change files. Every hook and setting that
/// could start a program leaves a mark.
fn repository() -> Workbench {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         one [shape=parallelogram, tool_command=\"echo 2 >> f; mkdir 'd e'; printf 'a\\\\0' > 'd e/ü'; chmod +x x.sh\"]\n\
         idle [shape=parallelogram, tool_command=\"true\"]\n\
         two [shape=parallelogram, tool_command=\"rm gone; ln -s f way; echo 3 >> f\"]\n\
         start -> one -> idle -> two -> done }",
    );
    for (path, text) in [("f", "1\n"), ("gone", "x\n"), ("x.sh", "true\n"), (".gitattributes", "gone filter=evil\n")] {
        bench.write(path, text);
    }
    let folder = bench.project();
    for words in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "base"]] {
        assert!(git(&folder, words, b"").0, "{words:?}");
    }
    let mark = bench.outside().join("mark");
    let evil = format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display());
    let hooks =
        ["pre-commit", "post-commit", "post-index-change", "reference-transaction", "post-checkout", "commit-msg"];
    for path in hooks.map(|name| format!(".git/hooks/{name}")).iter().map(String::as_str).chain([".git/evil"]) {
        bench.write(path, &evil);
        std::fs::set_permissions(folder.join(path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let evil = folder.join(".git/evil").to_str().unwrap().to_owned();
    for name in
        ["core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "gpg.program", "core.editor", "core.sshCommand"]
    {
        assert!(git(&folder, &["config", name, &evil], b"").0);
    }
    assert!(git(&folder, &["config", "commit.gpgSign", "true"], b"").0);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--quiet"]).ends(0);
    let _marked_by_git_itself = std::fs::remove_file(mark);
    bench
}

/// Runs `apply r --branch NAME` with an identity that git accepts.
fn branch(bench: &Workbench, name: &str, further: &[&str]) -> workbench::Answer {
    let mut command = bench.command(&[&["apply", "r", "--branch", name], further].concat());
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "A U Thor")
        .env("GIT_AUTHOR_EMAIL", "a@localhost");
    workbench::Answer::of(command.env("GIT_COMMITTER_NAME", "c").env("GIT_COMMITTER_EMAIL", "c@localhost"))
}

#[test]
fn a_branch_has_one_commit_for_each_stage_and_nothing_else_changes() {
    let bench = repository();
    let (folder, before, index) = (bench.project(), tree(&bench.project()), bench.outside().join("project/.git/index"));
    let index_before = std::fs::read(&index).unwrap();
    let head = git(&folder, &["rev-parse", "HEAD"], b"").1;
    branch(&bench, "gb/r", &[]).ends(0).says(" one: success").says(" two: success").says("branch `gb/r`: 2 commits on");
    assert!(!bench.outside().join("mark").exists(), "no program of the repository was started");
    assert_eq!((tree(&folder), std::fs::read(&index).unwrap()), (before.clone(), index_before));
    assert_eq!(git(&folder, &["symbolic-ref", "HEAD"], b"").1, "refs/heads/main\n");
    let log =
        git(&folder, &["log", "--format=%an|%s|%(trailers:key=Glovebox-Run,valueonly,separator=)", "main..gb/r"], b"")
            .1;
    assert_eq!(log, "A U Thor|two: success|r\nA U Thor|one: success|r\n");
    assert_eq!(git(&folder, &["rev-parse", "gb/r~2"], b"").1, head);
    // The tree of the branch equals the project after `apply`.
    let (by_git, by_apply) = (bench.outside().join("by-git"), bench.outside().join("by-apply"));
    let clone = ["-c", "core.hooksPath=/dev/null", "clone", "-q", "-b", "gb/r", "project", "by-git"];
    assert!(git(bench.outside(), &clone, b"").0);
    copy(&folder, &by_apply);
    bench.glovebox(&["apply", "r", "--workdir", by_apply.to_str().unwrap()]).ends(0);
    assert_eq!(tree(&by_git), tree(&by_apply));
    let some = branch(&bench, "some", &["--json", "--", "f"]).ends(0).json();
    assert_eq!((&some["name"], some["commits"].as_array().unwrap().len()), (&"some".into(), 2));
    assert_eq!(git(&folder, &["diff", "--name-only", "main", "some"], b"").1, "f\n");
    let mut nobody = bench.command(&["apply", "r", "--branch", "new"]);
    let answer = workbench::Answer::of(nobody.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1"));
    answer.ends(2).says("git config user.name");
}

#[test]
fn a_branch_is_refused_where_it_would_not_be_what_the_run_made() {
    let bench = repository();
    let folder = bench.project();
    for bad in ["-f", "a..b", "../../x", "@{-1}", "a b", "x.lock", ""] {
        let mut command = bench.command(&["apply", "r", &format!("--branch={bad}")]);
        workbench::Answer::of(&mut command).ends(2).says("not a valid name");
    }
    branch(&bench, "main", &[]).ends(2).says("exists already");
    // HEAD has a new commit that changed a path that the run changed.
    bench.write("f", "other\n");
    let plain = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "filter.evil.clean=cat"];
    let commit = [&plain[..], &["commit", "-q", "--no-gpg-sign", "-a", "-m", "later"]].concat();
    assert!(git(&folder, &commit, b"").0);
    branch(&bench, "b", &[]).ends(6).says("conflict: f: HEAD has another version").says("nothing was written");
    // A branch can be made of the paths that HEAD has not changed.
    branch(&bench, "b", &["--", "gone", "x.sh"]).ends(0);
    assert!(git(&folder, &["rev-parse", "--verify", "refs/heads/b"], b"").0);
    let none = Workbench::with_pipeline(workbench::LINEAR);
    none.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--quiet"]).ends(0);
    branch(&none, "b", &[]).ends(2).says("is not in a git repository");
}

#[test]
fn files_that_were_never_committed_are_no_base_for_a_branch() {
    let bench = project("echo 2 >> f; echo 1 > new", &|bench| {
        bench.write("kept", "1\n");
        for words in [&["init", "-q", "-b", "main"][..], &["add", "kept"], &["commit", "-q", "-m", "base"]] {
            assert!(git(&bench.project(), words, b"").0);
        }
        bench.write("f", "1\n");
    });
    branch(&bench, "b", &[]).ends(6).says("conflict: f: it was in the project, but it is not in HEAD: commit it first");
    branch(&bench, "b", &["--", "new"]).ends(0).says("1 commit on");
}

#[test]
fn a_link_that_becomes_a_folder_is_applied_and_can_become_a_link_again() {
    let bench = |more: &str| {
        let bench = Workbench::with_pipeline(&format!(
            "digraph g {{ start; exit\n\
             a [shape=parallelogram, tool_command=\"rm src/l; mkdir -p src/l/d; echo q > src/l/d/q\", allowed_write_paths=\"src/\"]\n\
             b [shape=parallelogram, tool_command=\"{more}\", allowed_write_paths=\"src/\"]\n\
             start -> a -> b -> exit }}",
        ));
        bench.write("src/f", "text\n");
        std::os::unix::fs::symlink("f", bench.project().join("src/l")).unwrap();
        bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
        bench
    };
    bench("rm -r src/l; ln -s f src/l; cat src/l").glovebox(&["diff", "r"]).ends(0).says("changed nothing");
    let folder = bench("true");
    folder.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(folder.read("src/l/d/q"), "q\n");
    assert_eq!(folder.read("src/f"), "text\n");
}
