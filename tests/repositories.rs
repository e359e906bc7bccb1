//! Folders that git would take for a repository because of their content. They are refused in the merged result, even
//! if different stages or branches wrote the parts.

use crate::workbench::{Answer, Workbench};
use std::fs;
use std::path::Path;
use std::process::Command;

const ENDS: &str = "start [shape=Mdiamond]; done [shape=Msquare]";
/// Git settings whose file monitor leaves a mark if an attack succeeds.
const CONFIG: &str = "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = wt\\n\\tfsmonitor = \"touch PWNED; false\"\\n' > config; mkdir -p wt; echo x > wt/k";
const HEAD: &str = "echo ref: refs/heads/m > HEAD";
const HALVES: &str = "mkdir -p objects refs; echo x > objects/k; echo x > refs/k";
const REFUSED: &str = "the shape of a git repository";

/// Creates a project in which these stages run their scripts one after the other.
fn stages(scripts: &[(&str, &str)]) -> Workbench {
    let nodes: String = scripts.iter().map(|(name, _)| tool(name)).collect();
    let names: Vec<&str> = scripts.iter().map(|(name, _)| *name).collect();
    let bench =
        Workbench::with_pipeline(&format!("digraph g {{ {ENDS}\n{nodes}start -> {} -> done }}", names.join(" -> ")));
    scripts.iter().for_each(|(name, script)| bench.write(&format!("{name}.sh"), &format!("set -e\n{script}\n")));
    bench
}

fn tool(name: &str) -> String {
    format!("{name} [shape=parallelogram, tool_command=\"sh {name}.sh\", allowed_write_paths=\"./\"]\n")
}

fn run(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
}

/// Runs `git status` in a folder, as a shell prompt does. Returns true if this ran the program that the settings of the
/// folder name.
fn runs_a_program(folder: &Path) -> bool {
    let mut git = Command::new("git");
    git.arg("status").current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    git.output().unwrap();
    ["PWNED", "wt/PWNED"].iter().any(|path| folder.join(path).exists())
}

/// Copies the workspace of a run, as a user does who ignores that the run failed.
fn forced(bench: &Workbench, folder: &str) -> std::path::PathBuf {
    let copy = bench.outside().join("forced");
    assert!(
        Command::new("cp")
            .arg("-r")
            .arg(bench.run_folder("r").join("workspace"))
            .arg(&copy)
            .status()
            .unwrap()
            .success()
    );
    copy.join(folder)
}

#[test]
fn no_stage_leaves_a_repository_under_any_name() {
    let moved =
        format!("mkdir -p out/o; cd out/o; {CONFIG}; mkdir a b; {HEAD}; mv a objects; mv b refs; cd ..; mv o docs");
    let cased = format!("mkdir -p out/docs; cd out/docs; {CONFIG}; mkdir Objects REFS; {HEAD}; mv HEAD head");
    let table = [
        ("nested", format!("mkdir -p out/docs; cd out/docs; {CONFIG}; {HEAD}; {HALVES}"), "out/docs"),
        ("at the root", format!("{CONFIG}; {HEAD}; {HALVES}"), ""),
        ("renamed", moved, "out/docs"),
        ("other case", cased, "out/docs"),
        ("without objects", format!("mkdir -p out/docs; cd out/docs; {CONFIG}; {HEAD}"), "out/docs"),
        ("shared", format!("mkdir -p out/docs; cd out/docs; {HEAD}; echo ../x > commondir"), "out/docs"),
    ];
    for (name, script, folder) in table {
        let bench = stages(&[("t", &script)]);
        let shown = if folder.is_empty() { "the top folder".to_owned() } else { format!("`{folder}`") };
        run(&bench).ends(6).says(&format!("{shown} {REFUSED}").replace(" the shape", " would have the shape"));
        assert!(!runs_a_program(&forced(&bench, folder)), "{name}");
        assert!(bench.run_folder("r").join("quarantine").exists(), "{name}");
    }
}

#[test]
fn the_stage_that_brings_the_second_half_fails() {
    let bench = stages(&[
        ("one", &format!("mkdir -p out/docs; cd out/docs; {HEAD}; mkdir -p objects")),
        ("two", "mkdir -p out/docs/refs; echo x > out/docs/refs/k"),
    ]);
    run(&bench).ends(6).says("`out/docs` would have the shape of a git repository");
    let workspace = bench.run_folder("r").join("workspace/out/docs");
    assert!(workspace.join("HEAD").exists() && !workspace.join("refs").exists());
}

/// Creates a parallel node whose branches run these scripts, and a fan-in that merges the changes of both.
fn branches(one: &str, two: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ {ENDS}\nf [shape=component]; j [shape=tripleoctagon, merge=all]\n{}{}start -> f; f -> one -> j; f -> two -> j; \
         j -> done }}",
        tool("one"),
        tool("two")
    ));
    bench.write("one.sh", &format!("set -e\nmkdir -p out/docs; cd out/docs\n{one}\n"));
    bench.write("two.sh", &format!("set -e\nmkdir -p out/docs; cd out/docs\n{two}\n"));
    bench
}

#[test]
fn branches_that_bring_one_half_each_are_not_merged() {
    let table = [(HEAD.to_owned(), HALVES), (CONFIG.to_owned(), HEAD), (HEAD.to_owned(), "echo ../x > commondir")];
    for (one, two) in table {
        let bench = branches(&one, two);
        run(&bench).ends(1).says("`out/docs` would have the shape of a git repository");
        assert_eq!(bench.run_json("r", "checkpoint.json")["context"]["parallel.success_count"], 2);
        assert!(!runs_a_program(&forced(&bench, "out/docs")), "{one} and {two}");
        assert!(!bench.run_folder("r").join("workspace/out/docs/HEAD").exists(), "{one} and {two}");
        bench.glovebox(&["verify", "r"]).ends(0);
    }
}

#[test]
fn what_the_project_has_counts_when_branches_are_merged() {
    let bench = branches(HEAD, "mkdir objects; echo x > objects/k");
    bench.write("out/docs/refs/k", "x");
    run(&bench).ends(1).says("`out/docs` would have the shape of a git repository");
    let bench = branches("mkdir objects; echo x > objects/k", "mkdir hooks; echo x > hooks/use.ts");
    bench.write("out/docs/refs/k", "x");
    run(&bench).ends(0);
}

#[test]
fn apply_looks_at_what_the_project_has_beside_the_changes() {
    let bench = stages(&[(
        "t",
        "mkdir -p out/docs; cd out/docs; mkdir objects refs; echo x > objects/k; echo y > refs/k; echo z > z",
    )]);
    run(&bench).ends(0);
    bench.write("out/docs/HEAD", "ref: refs/heads/m\n");
    let before = bench.snapshot();
    let refused = bench.glovebox(&["apply", "r"]);
    refused.ends(6).says("conflict: out/docs/objects: ").says("`out/docs` would have the shape of a git repository");
    assert_eq!(bench.snapshot(), before);
    bench.glovebox(&["apply", "r", "--", "out/docs/z", "out/docs/objects/k"]).ends(0);
    bench.glovebox(&["apply", "r"]).ends(6).says("conflict: out/docs/refs: ");
    fs::remove_file(bench.project().join("out/docs/HEAD")).unwrap();
    bench.glovebox(&["apply", "r"]).ends(0);
}

fn git(bench: &Workbench, line: &str) -> String {
    let mut command = Command::new("git");
    command.args(line.split(' ')).current_dir(bench.project()).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for person in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{person}_NAME"), "A").env(format!("GIT_{person}_EMAIL"), "a@localhost");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_branch_is_not_made_if_a_commit_of_it_would_have_a_repository() {
    let bench =
        stages(&[("t", "mkdir -p sub/docs; cd sub/docs; mkdir objects refs; echo x > objects/k; echo y > refs/k")]);
    bench.write("sub/docs/HEAD", "ref: refs/heads/m\n");
    git(&bench, "init -q");
    git(&bench, "add -A");
    git(&bench, "commit -qm all");
    // The file is missing in the run's copy of the project but exists in HEAD.
    fs::remove_file(bench.project().join("sub/docs/HEAD")).unwrap();
    run(&bench).ends(0);
    let refused = bench.glovebox(&["apply", "r", "--branch", "b"]);
    refused.ends(6).says("conflict: sub/docs/objects: ").says("`sub/docs` would have the shape of a git repository");
    assert_eq!(git(&bench, "branch --list b"), "");
    git(&bench, "rm -q --cached sub/docs/HEAD");
    git(&bench, "commit -qm without");
    bench.glovebox(&["apply", "r", "--branch", "b"]).ends(0);
}

#[test]
fn an_attested_change_holds_in_no_tree_that_makes_it_a_repository() {
    let bench =
        stages(&[("t", "mkdir -p out/docs; cd out/docs; mkdir objects refs; echo x > objects/k; echo y > refs/k")]);
    run(&bench).ends(0);
    let (key, public) = (bench.outside().join("key"), bench.outside().join("key.pub"));
    let pem = |kind: &str, body: &str| format!("-----BEGIN {kind} KEY-----\n{body}\n-----END {kind} KEY-----\n");
    fs::write(&key, pem("PRIVATE", "MC4CAQAwBQYDK2VwBCIEILYWTS/jDw2BSLRXIwAS5/gWeRgLAb7DQyJUWbVCXM2i")).unwrap();
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fs::write(&public, pem("PUBLIC", "MCowBQYDK2VwAyEAPvXABKNddNDkOwpJwU25iF8YdM33KdFh0Y5qXSX/WZk=")).unwrap();
    let file = bench.outside().join("r.json");
    let (key, public, file) = (key.to_str().unwrap(), public.to_str().unwrap(), file.to_str().unwrap());
    bench.glovebox(&["attest", "r", "--key", key, "--output", file]).ends(0);
    bench.glovebox(&["apply", "r"]).ends(0);
    let words = ["verify-run", file, "--key", public, "--signature-only", "--tree", "."];
    bench.glovebox(&words).ends(0);
    bench.write("out/docs/HEAD", "ref: refs/heads/m\n");
    bench.glovebox(&words).ends(11).says("`out/docs` has the shape of a git repository");
}

#[test]
fn a_repository_of_the_project_stays_usable_but_for_what_names_programs() {
    let works = "cd tests/fixture.git; test -f HEAD; mkdir -p objects/ab; echo x > objects/ab/c; echo y > refs/heads/n; echo z > ../z";
    let table = [
        (works, 0),
        ("printf '[core]\\n\\tfsmonitor = touch PWNED\\n' >> tests/fixture.git/config", 6),
        ("mkdir -p tests/fixture.git/hooks; echo x > tests/fixture.git/hooks/pre-commit", 6),
        ("echo ref: refs/heads/other > tests/fixture.git/HEAD", 6),
        ("cp -r tests/fixture.git tests/copy.git", 6),
        ("rm -r tests/fixture.git", 0),
    ];
    for (script, code) in table {
        let bench = stages(&[("t", script)]);
        git(&bench, "init -q --bare tests/fixture.git");
        let answer = run(&bench);
        answer.ends(code);
        if code == 0 {
            bench.glovebox(&["apply", "r"]).ends(0);
        } else {
            answer.says(REFUSED);
        }
    }
}
