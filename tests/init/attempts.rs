//! `init --try`: each reason for a failure that can be produced without a network, and the setting that fixes it.

use super::{bare, commit, not_run, with_go};
use crate::workbench::{Answer, Workbench, is_on_this_machine};
use std::os::unix::fs::PermissionsExt;

/// Creates a project whose test is this shell text.
fn project(test: &str) -> Workbench {
    let bench = Workbench::new();
    bench.write("test.sh", test);
    bench.write("src/a.txt", "a\n");
    bench.write(".gitignore", "ignored/\n.env\n");
    bench
}

/// Tries a project without a terminal, and checks that a command succeeds in the end and that no second attempt changes
/// anything.
#[track_caller]
fn fixes(bench: &Workbench, says: &str, written: &str) {
    bare(bench, &["init", "--try"]).ends(0).says(says).says("fixed    ").says("works    ");
    let settings = bench.read("glovebox.toml");
    assert!(settings.contains(written) && settings.contains("# `glovebox init --try`: "), "{settings}");
    bare(bench, &["init", "--try"]).ends(0).never_says("fixed").says("works    ");
    assert_eq!(bench.read("glovebox.toml"), settings);
    bare(bench, &["run"]).ends(0);
}

/// Tries a project whose failure no setting fixes, or only one that a person has to agree to.
#[track_caller]
fn only_says(bench: &Workbench, code: i32, says: &[&str]) -> Answer {
    let answer = bare(bench, &["init", "--try"]);
    answer.ends(code).never_says("fixed").never_says("works    ");
    for text in says {
        answer.says(text);
    }
    assert!(!bench.read("glovebox.toml").contains("init --try"));
    answer
}

#[test]
fn a_project_that_works_is_left_as_it_is() {
    let bench = project("exit 0\n");
    bare(&bench, &["init"]).ends(0).says("glovebox init --try");
    let before = bench.snapshot();
    bare(&bench, &["init", "--try"]).ends(0).says("works    ").never_says("wrote    ");
    let is_run = |path: &str| path.starts_with(".glovebox/");
    let after: Vec<_> = bench.snapshot().into_iter().filter(|(path, _)| !is_run(path)).collect();
    assert_eq!(after, before);
    bare(&bench, &["init", "--try", "--print"]).ends(2);
}

#[test]
fn a_folder_that_a_build_deletes_is_no_cache_any_more() {
    let bench = project("rm -rf dist && mkdir dist && echo built > dist/a\n");
    bench.write("glovebox.toml", "[sandbox]\ncache = [\"dist/\", \"other/\"]\n");
    bench.write(".gitignore", "dist/\n");
    fixes(&bench, "which cannot be deleted while it is a cache folder", "cache = [\"other/\"]");
}

#[test]
fn a_program_gets_its_toolchain() {
    if ["/usr/bin/go", "/usr/local/bin/go", "/bin/go"].iter().any(|file| std::path::Path::new(file).exists()) {
        return not_run("go", "every command sees the `go` of this machine");
    }
    let bench = project("go test ./...\n");
    bench.write("glovebox.toml", "# of the user\n[exec]\ntoolchains = []\n");
    with_go(&bench, &["init", "--try"]).ends(0).says("fixed    `toolchains = [\"go\"]`").says("works    ");
    assert!(bench.read("glovebox.toml").contains("# of the user\n[exec]\n# `glovebox init --try`: "));
}

#[test]
fn a_program_in_the_home_is_only_proposed() {
    let bench = project("mine-x\n");
    let folder = bench.outside().join("home/bin");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mine-x"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(folder.join("mine-x"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = bench.bare(&["init", "--try"]);
    let answer = Answer::of(command.env("HOME", bench.outside().join("home")).env("PATH", path));
    let line = format!("if you agree, add `path = [\"{}\"]` under `[exec]`", folder.display());
    answer.ends(6).says(&line).says("which can contain private files").never_says("fixed");
    assert!(!bench.read("glovebox.toml").contains("path ="));
}

#[test]
fn a_program_that_is_nowhere_is_named() {
    only_says(&project("nowhere-x --version\n"), 1, &["`nowhere-x` is not on this machine"]);
}

#[test]
fn files_that_a_test_leaves_behind_are_scratch() {
    fixes(
        &project("mkdir -p out/deep && echo x > out/deep/a && echo y > out/b\n"),
        "the command leaves files in `out/`",
        "scratch = [\"out/\"]",
    );
    only_says(&project("echo x > src/a.o; echo y > src/b.o\n"), 6, &["beside the sources", ".gitignore"]);
}

#[test]
fn a_test_that_reads_the_history_gets_it_if_the_user_agrees() {
    let bench = project("git log --oneline HEAD~1..HEAD\n");
    bench.write("glovebox.toml", "[workspace]\ngit = \"commit\"\n");
    commit(&bench);
    bench.write("src/a.txt", "b\n");
    bench.write("src/b.txt", "b\n");
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    let mut git = std::process::Command::new("git");
    git.args(identity).args(["commit", "-qam", "second"]).current_dir(bench.project());
    assert!(git.status().unwrap().success());
    only_says(&bench, 6, &["the command reads the history", "git = \"history\"", "every commit"]);
}

#[test]
fn a_variable_gets_a_value_only_if_that_is_no_secret() {
    fixes(&project("set -u\necho \"$EDITOR\"\n"), "needs the variable EDITOR", "EDITOR = \"true\"");
    only_says(&project("set -u\necho \"$DATABASE_URL\"\n"), 1, &["env = { DATABASE_URL = \"…\" }"]);
}

#[test]
fn a_limit_that_was_too_small_is_raised() {
    let bench = project("sleep 2\n");
    bench.write("glovebox.toml", "[limits]\nwall_ms = \"1s\"\n");
    fixes(&bench, "exceeded the limit `wall_ms`", "wall_ms = 4000");
}

#[test]
fn several_causes_are_fixed_one_after_the_other() {
    let bench = project("set -u\necho \"$EDITOR\" && mkdir -p out && echo x > out/a\n");
    let answer = bare(&bench, &["init", "--try"]);
    answer.ends(0).says("try 3").says("EDITOR").says("scratch = [\"out/\"]").says("works    ");
}

/// A command that always needs another setting ends after a fixed number of attempts.
#[test]
fn the_number_of_attempts_is_limited() {
    let bench = project(
        "for name in TZ LANG LC_ALL TERM EDITOR CI; do eval \"value=\\${$name-}\"; \
                         [ \"$value\" ] || { echo \"$name must be set\" >&2; exit 1; }; done; mkdir -p o && echo x > o/x\n",
    );
    let answer = bare(&bench, &["init", "--try"]);
    assert!([0, 1].contains(&answer.code), "{}", answer.stderr);
    answer.never_says("try 6");
}

#[test]
fn network_and_ignored_files_are_only_proposed() {
    let host = "`network = { proxy = [\"api.example.com\"] }` under `[sandbox]`";
    let fetch = project("echo 'curl: (6) Could not resolve host: api.example.com' >&2; exit 6\n");
    only_says(&fetch, 6, &[host, "could send everything that they can read"]);
    let file = project("cat .env\n");
    file.write(".env", "TOKEN=1\n");
    commit(&file);
    only_says(&file, 6, &["`include = [\".env\"]` under `[workspace]`", "often contain secrets"]);
}

#[test]
fn what_no_setting_fixes_is_explained() {
    only_says(&project("echo '1 test failed'; exit 1\n"), 1, &["reason   not known"]);
    if !is_on_this_machine("python3") {
        return not_run("services", "`python3` is not on this machine");
    }
    let asks = "python3 -c \"import socket; socket.create_connection(('127.0.0.1', 5432))\"\n";
    only_says(&project(asks), 1, &["start the service in the command"]);
    let looks_up = "python3 -c \"import socket; socket.getaddrinfo('api.example.com', 443)\"\n";
    only_says(&project(looks_up), 1, &["commands have none"]);
}

/// The output of a command comes from the project. It must not choose a setting that opens anything.
#[test]
fn a_hostile_output_writes_nothing() {
    for output in [
        "Could not resolve host: x\\\"] }\\n[exec]\\npath=[\\\"/\\\"]",
        "sh: 1: ../../../../bin/evil: not found",
        "EBUSY: rmdir 'src'",
        "KeyError: 'X; rm -rf /'",
        "cat: ../secret: No such file or directory",
        "cat: /etc/shadow: No such file or directory",
    ] {
        let bench = project(&format!("printf '{}\\n' >&2; exit 1\n", output.replace('\'', "'\\''")));
        std::fs::write(bench.outside().join("secret"), "x").unwrap();
        let answer = bare(&bench, &["init", "--try"]);
        answer.never_says("fixed");
        assert!(!bench.read("glovebox.toml").contains("init --try"), "{output}");
    }
}

/// A link in place of `glovebox.toml` is not followed.
#[test]
fn settings_behind_a_link_are_not_changed() {
    let bench = project("mkdir -p out && echo x > out/a\n");
    let outside = bench.outside().join("settings.toml");
    std::fs::write(&outside, "").unwrap();
    std::os::unix::fs::symlink(&outside, bench.project().join("glovebox.toml")).unwrap();
    let answer = bare(&bench, &["init", "--try"]);
    assert_ne!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "");
}
