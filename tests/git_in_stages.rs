//! Git in a stage: the repository of an attempt looks like the project's in what programs ask for, can be written, and
//! ends with the attempt. The witnesses are the output of git in the stage, and the project's own repository.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod workbench;

use std::process::Command;
use workbench::Workbench;

/// Creates a project with a repository, and stages in a row that run these commands.
fn bench(commands: &[&str]) -> Workbench {
    let nodes: String = commands
        .iter()
        .enumerate()
        .map(|(number, command)| {
            format!("  s{number} [shape=parallelogram, tool_command=\"{command}\", allowed_write_paths=\"./\"]\n")
        })
        .collect();
    let row: Vec<String> = (0..commands.len()).map(|number| format!("s{number}")).collect();
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n{nodes}  start -> {} -> done\n}}\n",
        row.join(" -> ")
    ));
    bench.write("src/a.txt", "one\n");
    git(&bench, &["init", "-q", "-b", "feature/x"]);
    git(&bench, &["add", "-A"]);
    git(&bench, &["commit", "-qm", "first"]);
    git(&bench, &["tag", "-a", "-m", "v1", "v1.2"]);
    git(&bench, &["remote", "add", "origin", "https://me:secret@example.com/a.git"]);
    bench
}

fn git(bench: &Workbench, words: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let output = Command::new("git").current_dir(bench.project()).args(identity).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn run(bench: &Workbench) -> workbench::Answer {
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
}

#[test]
fn programs_find_the_branch_the_tags_of_the_commit_and_the_remotes() {
    let bench = bench(&["git describe --tags > out.txt; git branch --show-current >> out.txt; \
                         git remote get-url origin >> out.txt; git status --porcelain -- src >> out.txt"]);
    run(&bench).ends(0);
    assert_eq!(bench.run_text("r", "workspace/out.txt"), "v1.2\nfeature/x\nhttps://example.com/a.git\n");
}

#[test]
fn a_detached_head_is_detached_in_the_stage() {
    let bench = bench(&["git symbolic-ref -q HEAD || echo detached > out.txt; git describe --tags >> out.txt"]);
    git(&bench, &["checkout", "-q", "--detach"]);
    run(&bench).ends(0);
    assert_eq!(bench.run_text("r", "workspace/out.txt"), "detached\nv1.2\n");
}

#[test]
fn what_git_writes_in_a_stage_ends_with_the_stage() {
    let bench = bench(&[
        "echo two > src/a.txt && git stash -q && git stash pop -q && git mv src/a.txt src/b.txt && git commit -qam second && \
         git checkout -q -b other && git tag mine && git config core.fsmonitor false && test $(git rev-list --count HEAD) = 2",
        "test $(git rev-list --count --all) = 1 && test $(git branch --show-current) = feature/x && test -z \\\"$(git tag -l mine)\\\" \
         && ! git config core.fsmonitor && git checkout -q -- src/a.txt && git stash -q -u",
    ]);
    let before = (git(&bench, &["log", "--all", "--format=%H %D"]), git(&bench, &["config", "--local", "--list"]));
    run(&bench).ends(0);
    assert_eq!(bench.run_text("r", "workspace/src/a.txt"), "one\n", "the second stage restored the file of its commit");
    let after = (git(&bench, &["log", "--all", "--format=%H %D"]), git(&bench, &["config", "--local", "--list"]));
    assert_eq!(before, after);
}

/// The objects are shared by all stages that see the same files, so a stage must not be able to change them.
#[test]
fn a_stage_cannot_change_the_objects_that_other_stages_borrow() {
    let bench = bench(&[
        "cd $HOME/.cache/git-objects && ! touch x && ! rm -rf pack && ! chmod 777 pack/*.pack && ! sh -c 'echo x > pack/x.pack'",
        "git fsck --full --strict && git show HEAD:src/a.txt",
    ]);
    run(&bench).ends(0);
}

#[test]
fn hooks_and_settings_that_a_stage_plants_run_neither_later_nor_outside() {
    let bench = bench(&[
        "mkdir -p .git/hooks && printf '#!/bin/sh\\\\ntouch planted\\\\n' > .git/hooks/post-checkout && chmod +x .git/hooks/post-checkout \
         && git config core.hooksPath .git/hooks",
        "test ! -e .git/hooks/post-checkout && git checkout -q -b x && test ! -e planted",
    ]);
    run(&bench).ends(0);
    assert!(!bench.project().join(".git/hooks/post-checkout").exists());
}

/// Git does not remove folders that it takes for repositories, and a run's folder without its journal would stop every
/// later run.
#[test]
fn git_clean_removes_failed_runs_whole() {
    let bench = bench(&["git status && false"]);
    run(&bench).ends(1);
    git(&bench, &["clean", "-fdxq"]);
    assert!(!bench.has(".glovebox/runs/r"));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "other"]).ends(1).never_says("is not a run");
}

#[test]
fn the_history_is_shown_where_the_operator_says_so() {
    let command = "git log --format=%s > out.txt; git describe --tags >> out.txt; git status --porcelain -- src >> out.txt; \
                   git diff --stat -- src | tail -n 1 >> out.txt; git commit -qam more";
    let bench = bench(&[command]);
    git(&bench, &["commit", "-q", "--allow-empty", "-m", "second"]);
    bench.write("src/a.txt", "changed\n");
    bench.write("src/new.txt", "new\n");
    bench.write("glovebox.toml", "[workspace]\ngit = \"history\"\n");
    let before = git(&bench, &["log", "--all", "--format=%H %D"]);
    run(&bench).ends(0).says("commands can read every commit and branch");
    let out = bench.run_text("r", "workspace/out.txt");
    assert!(out.starts_with("second\nfirst\nv1.2-1-g"), "{out}");
    assert!(out.contains(" M src/a.txt\n?? src/new.txt\n 1 file changed"), "{out}");
    assert_eq!(git(&bench, &["log", "--all", "--format=%H %D"]), before);
    bench.write("scripts/scenarios/case.sh", "exit 0\n");
    bench.glovebox(&["run", "pipeline.dot"]).ends(3).says("this project has hold-outs");
}

/// The folder of objects is bound into the sandbox, so a project must not choose what it is.
#[test]
fn a_repository_that_leads_elsewhere_is_not_shown() {
    let bench = bench(&["git rev-parse 2> out.txt; ls -a $HOME/.cache/git-objects >> out.txt"]);
    let secret = bench.outside().join("secret");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("key"), "k").unwrap();
    let objects = bench.project().join(".git/objects");
    std::fs::rename(&objects, bench.outside().join("objects")).unwrap();
    std::os::unix::fs::symlink(&secret, &objects).unwrap();
    bench.write("glovebox.toml", "[workspace]\ngit = \"history\"\n");
    run(&bench);
    let out = bench.run_text("r", "workspace/out.txt");
    assert!(out.contains("not a git repository") && !out.contains("key"), "{out}");
}
