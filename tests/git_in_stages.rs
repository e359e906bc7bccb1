//! Git in a stage: the repository of an attempt looks like the project's in what programs ask for, can be written, and
//! ends with the attempt. The witnesses are the output of git in the stage, and the project's own repository.

use crate::workbench::{self, Workbench};
use std::process::Command;

/// The setting with which commands see one commit. Without it, these pipelines without models would show the history.
const ONE_COMMIT: &str = "[workspace]\ngit = \"commit\"\n";

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
    bench.write("glovebox.toml", ONE_COMMIT);
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
    let bench = bench(&["git describe > out.txt; git branch --show-current >> out.txt; \
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

/// What commands read can reach a model through their output, and a server through a network.
#[test]
fn the_history_is_shown_by_default_only_where_nothing_leaves() {
    let ask = "git log --format=%s > out.txt";
    let bench = bench(&[ask]);
    std::fs::remove_file(bench.project().join("glovebox.toml")).unwrap();
    git(&bench, &["commit", "-q", "--allow-empty", "-m", "second"]);
    run(&bench).ends(0).never_says("commands can read every commit");
    assert_eq!(bench.run_text("r", "workspace/out.txt"), "second\nfirst\n");
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("every commit, branch and tag of the repository");
    let one_commit = || {
        bench.glovebox(&["plan", "pipeline.dot"]).ends(0).never_says("every commit");
        bench.glovebox(&["run", "pipeline.dot", "--run-id", "s", "--no-input"]).ends(0);
        let seen = bench.run_text("s", "workspace/out.txt");
        std::fs::remove_dir_all(bench.project().join(".glovebox/runs/s")).unwrap();
        assert_eq!(seen.lines().count(), 1, "{seen}");
    };
    for setting in [ONE_COMMIT, "[sandbox]\nnetwork = { proxy = [\"api.example.com\"] }\n"] {
        bench.write("glovebox.toml", setting);
        one_commit();
    }
    std::fs::remove_file(bench.project().join("glovebox.toml")).unwrap();
    let text = std::fs::read_to_string(bench.project().join("pipeline.dot")).unwrap();
    let with_model =
        text.replace("s0 -> done", "s0 -> m -> done; m [shape=box, prompt=\"x\", allowed_write_paths=\"src/\"]");
    bench.write("pipeline.dot", &with_model);
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).never_says("every commit");
    bench.write("pipeline.dot", &text);
    bench.write("scripts/scenarios/case.sh", "exit 0\n");
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).never_says("every commit");
}

/// The folder of objects is bound into the sandbox, so a project must not choose what it is.
#[test]
fn a_repository_that_leads_elsewhere_is_not_shown() {
    let bench = bench(&["git log --format=%B > out.txt; ls -a $HOME/.cache/git-objects >> out.txt"]);
    let secret = bench.outside().join("secret");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("key"), "k").unwrap();
    let objects = bench.project().join(".git/objects");
    std::fs::rename(&objects, bench.outside().join("objects")).unwrap();
    std::os::unix::fs::symlink(&secret, &objects).unwrap();
    bench.write("glovebox.toml", "[workspace]\ngit = \"history\"\n");
    run(&bench);
    let out = bench.run_text("r", "workspace/out.txt");
    assert!(out.contains("the workspace of this run") && !out.contains("key"), "{out}");
}

/// Returns a shell command that prints every object that a stage can read.
const OBJECTS: &str = "git cat-file --batch-all-objects --batch | tr -cd '[:print:]\\n'";

/// A pipeline whose only stage runs a script of the project.
const LOOK: &str = "digraph g {
  start [shape=Mdiamond]; done [shape=Msquare]
  look [shape=parallelogram, tool_command=\"sh look.sh > out.txt 2>&1\", allowed_write_paths=\"./\"]
  start -> look -> done
}
";

/// Creates a project with a shell script that runs next to the empty folder `project`. The stage runs `look`.
fn shaped(setup: &str, look: &str) -> Workbench {
    let bench = Workbench::new();
    let mut shell = Command::new("sh");
    for name in ["AUTHOR", "COMMITTER"] {
        shell.env(format!("GIT_{name}_NAME"), "a").env(format!("GIT_{name}_EMAIL"), "a@b");
    }
    let settings =
        [("init.defaultBranch", "main"), ("protocol.file.allow", "always"), ("uploadpack.allowFilter", "true")];
    shell.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (number, (key, value)) in settings.iter().enumerate() {
        shell.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    let output = shell.args(["-e", "-c", setup]).current_dir(bench.outside()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    bench.write("pipeline.dot", LOOK);
    bench.write("look.sh", look);
    bench.write("glovebox.toml", ONE_COMMIT);
    bench
}

/// Runs the stage and returns its output.
fn looked(bench: &Workbench) -> String {
    run(bench).ends(0);
    bench.run_text("r", "workspace/out.txt")
}

/// A repository with a file of each kind, and changes of the user.
const CHANGED: &str = "cd project && git init -q
mkdir src && cd src && echo one > a.txt && echo gone > gone.txt && echo kept > kept.txt && echo run > run.sh
ln -s a.txt link && cd .. && git add -A && git commit -qm first && git tag v1
cd src && echo two > a.txt && rm gone.txt && chmod +x run.sh && echo new > new.txt && echo staged > staged.txt
git add staged.txt && ln -sf kept.txt link && echo '/ours.txt' > ../.git/info/exclude && echo x > ../ours.txt";

#[test]
fn uncommitted_changes_of_the_user_and_of_stages_are_uncommitted() {
    let bench = shaped(
        CHANGED,
        "git status --porcelain -- src ours.txt; git diff HEAD --stat -- src | tail -n 1; git describe --tags",
    );
    bench.write(
        "pipeline.dot",
        "digraph g {
  start [shape=Mdiamond]; done [shape=Msquare]
  first [shape=parallelogram, tool_command=\"echo more >> src/kept.txt && git diff --quiet HEAD -- src/kept.txt || echo changed > told.txt\", allowed_write_paths=\"./\"]
  look [shape=parallelogram, tool_command=\"sh look.sh > out.txt && git checkout -q -- src/a.txt src/gone.txt && git stash -q && git fsck --strict\", allowed_write_paths=\"./\"]
  start -> first -> look -> done
}
",
    );
    let out = looked(&bench);
    let expected = " M src/a.txt\n D src/gone.txt\n M src/kept.txt\n M src/link\n M src/run.sh\n\
                    ?? src/new.txt\n?? src/staged.txt\n 5 files changed, 3 insertions(+), 3 deletions(-)\nv1\n";
    assert_eq!(out, expected);
    assert_eq!(bench.run_text("r", "workspace/told.txt"), "changed\n");
    assert_eq!(bench.run_text("r", "workspace/src/a.txt"), "one\n");
    assert_eq!(bench.run_text("r", "workspace/src/kept.txt"), "kept\n", "the stash took the change of the stage");
}

#[test]
fn the_commit_has_only_what_the_stage_may_read() {
    let setup = "cd project && git init -q && mkdir src secret
echo one > src/a.txt && echo hush-hush > secret/key.txt && echo hush-hush > src/old.txt && git add -A && git commit -qm first
git rm -q src/old.txt && git commit -qm second && echo two > src/a.txt && rm secret/key.txt";
    let bench = shaped(setup, "");
    bench.write("src/look.sh", &format!("git ls-tree -r --name-only HEAD; git status --porcelain -uno; {OBJECTS}"));
    bench.write(
        "pipeline.dot",
        &LOOK
            .replace("sh look.sh > out.txt", "sh src/look.sh > src/out.txt")
            .replace("\"./\"", "\"src/\", read_paths=\"src/\""),
    );
    run(&bench).ends(0);
    let out = bench.run_text("r", "workspace/src/out.txt");
    assert!(out.starts_with("src/a.txt\n M src/a.txt\n") && out.contains("blob"), "{out}");
    assert!(!out.contains("hush-hush") && !out.contains("key.txt") && !out.contains("old.txt"), "{out}");
}

/// An earlier version of a file, or a file that was moved, can contain what has become a hold-out.
#[test]
fn hold_outs_in_the_commit_are_not_shown() {
    let setup = "cd project && git init -q && mkdir -p src tests scripts/scenarios
echo one > src/a.txt && echo 'gate opens at 4711' > scripts/scenarios/case.sh
printf 'keep\\nassert f(3) == 4712\\n' > tests/part.txt && echo 'assert f(4) == 4713' > tests/moved.txt
git add -A && git commit -qm first && echo 'scripts/scenarios/4714.sh' > .git/info/exclude
echo two > src/a.txt && echo keep > tests/part.txt && mv tests/moved.txt scripts/scenarios/moved.sh
printf '  assert f(3)  == 4712\\n' >> scripts/scenarios/case.sh";
    let bench = shaped(
        setup,
        &format!(
            "git status --porcelain -- src tests; {OBJECTS}; git ls-tree -r --name-only HEAD; cat .git/info/exclude"
        ),
    );
    let out = looked(&bench);
    assert!(out.starts_with(" M src/a.txt\n") && out.contains("one\n") && out.contains("tests/part.txt"), "{out}");
    let secret = ["gate opens", "f(3)", "f(4)", "moved", "scenarios", "4714"];
    assert!(secret.iter().all(|text| !out.contains(text)), "{out}");
}

/// Nothing in `.git` makes the host run a program, read another repository or work without end.
#[test]
fn the_settings_of_a_repository_have_no_effect() {
    let setup = "cd project && git init -q && mkdir src && echo one > src/a.txt && echo other > src/b.txt
echo '* filter=evil diff=evil' > .gitattributes && git add -A && git commit -qm first && echo two > src/a.txt
git replace $(git rev-parse HEAD:src/a.txt) $(git rev-parse HEAD:src/b.txt)
for key in core.fsmonitor core.sshCommand core.alternateRefsCommand filter.evil.clean filter.evil.smudge filter.evil.process diff.evil.textconv alias.ls-tree; do
  git config $key \"touch $PWD/../ran\"
done
git config remote.origin.url ext::'touch ran' && git config remote.origin.promisor true
git config extensions.partialClone origin && git config core.hooksPath hooks
printf '[include]\\n\\tpath = /dev/zero\\n' >> .git/config";
    let bench = shaped(
        setup,
        "git show HEAD:src/a.txt; git status --porcelain -- src; git config --get-regexp 'evil|alias|ssh|promisor'; true",
    );
    assert_eq!(looked(&bench), "one\n M src/a.txt\n");
    assert!(!bench.outside().join("ran").exists());
}

#[test]
fn another_repository_is_not_shown() {
    let private = "mkdir private && cd private && git init -q && echo hush-hush > key && git add -A && git commit -qm p && cd ..\n";
    let borrows = "cd project && git init -q && echo $PWD/../private/.git/objects > .git/objects/info/alternates
git -C ../private rev-parse HEAD > .git/refs/heads/main && git read-tree HEAD";
    let linked = "echo \"gitdir: $PWD/private/.git\" > project/.git";
    let refers = "mkdir -p project/.git && cp private/.git/HEAD project/.git/ && echo $PWD/private/.git > project/.git/commondir";
    for (setup, why) in [
        (borrows, "the repository lacks an object"),
        (linked, "`.git` does not belong to this folder"),
        (refers, "`.git` does not belong to this folder"),
    ] {
        let bench = shaped(
            &format!("{private}{setup}"),
            &format!("git log -1 --format=%B; {OBJECTS}; git status --porcelain -- look.sh"),
        );
        let out = looked(&bench);
        assert!(out.starts_with("the workspace of this run") && out.contains(why), "{out}");
        assert!(!out.contains("hush-hush") && !out.contains("key"), "{out}");
    }
}

#[test]
fn a_tree_without_end_is_refused() {
    let setup = "cd project && git init -q && echo x > a && tree=$(git add -A && git write-tree)
for level in 1 2 3 4 5; do
  tree=$(for name in $(seq 100); do printf '040000 tree %s\\t%s\\n' $tree $name; done | git mktree)
done
git update-ref HEAD $(git commit-tree -m bomb $tree)";
    let out = looked(&shaped(setup, "git log -1 --format=%B; git ls-files"));
    assert!(out.contains("more than 300000 entries") && out.contains("look.sh"), "{out}");
}

/// What most tools ask for.
const ASK: &str = "git status --porcelain -uno; git log -1 --format=%b; git describe --tags --always; git diff HEAD --stat | tail -n 1";

#[test]
fn repositories_of_every_shape_show_their_last_commit() {
    let origin =
        "git init -q origin && cd origin && mkdir app docs && echo a > app/a.txt && echo d > docs/d.txt && git add -A
git commit -qm first && echo b >> app/a.txt && git commit -qam second && git tag v1 && cd ..\n";
    let edit = "\ncd project && echo c >> app/a.txt && mv ../origin ../away 2> /dev/null || true";
    let changed = " M app/a.txt\n\nv1\n 1 file changed, 1 insertion(+)\n";
    for (name, setup) in [
        ("clone", "git clone -q origin project"),
        ("shallow", "git clone -q --depth 1 file://$PWD/origin project"),
        ("without blobs", "git clone -q --filter=blob:none file://$PWD/origin project"),
        ("sparse", "git clone -q --sparse origin project && git -C project sparse-checkout set app"),
        (
            "sparse index",
            "git clone -q --sparse origin project && git -C project sparse-checkout set --sparse-index app",
        ),
        (
            "sparse without blobs",
            "git clone -q --sparse --filter=blob:none file://$PWD/origin project && git -C project sparse-checkout set app",
        ),
        ("packed", "git clone -q origin project && git -C project gc -q"),
        ("detached", "git clone -q origin project && git -C project checkout -q --detach v1"),
        (
            "separate folder",
            "git clone -q --separate-git-dir=there origin project && git --git-dir=there config core.worktree $PWD/project",
        ),
    ] {
        assert_eq!(looked(&shaped(&format!("{origin}{setup}{edit}"), ASK)), changed, "{name}");
    }
    let worktree =
        format!("{origin}git -C origin worktree add -q --force ../project -b x\ncd project && echo c >> app/a.txt");
    assert_eq!(looked(&shaped(&worktree, ASK)), changed, "linked worktree");
    let borrowing = looked(&shaped(&format!("{origin}git clone -q --shared origin project"), ASK));
    assert!(borrowing.contains("a repository that borrows objects"), "{borrowing}");
    let other_ids =
        "git init -q --object-format=sha256 project && cd project && echo a > a && git add -A && git commit -qm first";
    assert!(looked(&shaped(other_ids, ASK)).contains("does not use SHA-1"));
    assert!(looked(&shaped("git init -q project", ASK)).contains("it has none"), "without a commit");
}

#[test]
fn submodules_are_shown_as_git_has_them() {
    let library =
        "git init -q library && cd library && echo l > l.txt && git add -A && git commit -qm library && cd ..\n";
    let setup = "git init -q main && cd main && git submodule --quiet add file://$PWD/../library lib && git commit -qm first && cd ..\n";
    let ask = "git status --porcelain -uno; git log -1 --format=%b; git ls-files -s lib | cut -c 1-6; git diff HEAD --stat; ls lib";
    let whole = format!("{library}{setup}git clone -q --recurse-submodules main project");
    assert_eq!(looked(&shaped(&whole, ask)), "\n160000\nl.txt\n", "checked out");
    let empty = format!("{library}{setup}git clone -q main project");
    assert_eq!(looked(&shaped(&empty, ask)), "\n160000\n", "not checked out");
}

/// A project whose submodule `lib` is checked out.
const WITH_SUBMODULE: &str =
    "git init -q library && cd library && echo l > l.txt && git add -A && git commit -qm library && git tag v2 && cd ..
git init -q main && cd main && git submodule --quiet add file://$PWD/../library lib && git commit -qm first && cd ..
git clone -q --recurse-submodules main project\n";

#[test]
fn a_submodule_has_a_repository_of_its_own() {
    let ask = "git submodule status | cut -c 1,42-
git -C lib log --format=%s; git -C lib describe --tags; git -C lib remote
git submodule foreach -q 'echo in $name: $(git status --porcelain | wc -l)'
git submodule --quiet update --init 2> /dev/null && echo updated
git status --porcelain -uno; git fsck --strict 2>&1; git -C lib fsck --strict 2>&1
echo more >> lib/l.txt; git status --porcelain -uno; git -C lib diff --stat | tail -n 1
git -C lib commit -qam changed && git submodule status | cut -c 1; git submodule summary | tail -n 2 | head -n 1";
    let expected = "  lib (v2)
the last commit of the project, as this stage sees it
v2
origin
in lib: 0
updated
 M lib
 1 file changed, 1 insertion(+)
+
  > changed
";
    for setup in [
        WITH_SUBMODULE.to_owned(),
        format!(
            "{WITH_SUBMODULE}mv project/.git own && git init -q project && rm -rf project/.git && mv own project/.git"
        ),
    ] {
        let bench = shaped(&setup, ask);
        let before =
            Command::new("git").args(["-C", "lib", "log", "--all"]).current_dir(bench.project()).output().unwrap();
        assert_eq!(looked(&bench), expected);
        let after =
            Command::new("git").args(["-C", "lib", "log", "--all"]).current_dir(bench.project()).output().unwrap();
        assert_eq!(before.stdout, after.stdout, "the submodule of the user is only read");
        assert_eq!(bench.run_text("r", "workspace/lib/l.txt"), "l\nmore\n", "its files are files of the workspace");
        assert!(!bench.run_folder("r").join("workspace/lib/.git").exists());
    }
}

/// A project whose submodule `lib` has a submodule `deep`, both checked out.
const NESTED: &str = "git init -q inner && cd inner && echo i > i.txt && git add -A && git commit -qm inner && cd ..
git init -q library && cd library && git submodule --quiet add file://$PWD/../inner deep && git commit -qm library && cd ..
git init -q main && cd main && git submodule --quiet add file://$PWD/../library lib && git commit -qm first && cd ..
git clone -q --recurse-submodules main project\n";

#[test]
fn a_submodule_of_a_submodule_has_a_repository_of_its_own() {
    let ask = "git submodule status --recursive | cut -d ' ' -f 1,3; git -C lib/deep log --format=%s
git submodule foreach -q --recursive 'echo $displaypath $(git status --porcelain | wc -l)'
git submodule --quiet update --init --recursive 2> /dev/null && echo updated
git status --porcelain -uno; echo more >> lib/deep/i.txt
git status --porcelain -uno; git -C lib status --porcelain -uno; git -C lib/deep status --porcelain";
    let expected =
        |subject: &str| format!(" lib\n lib/deep\n{subject}\nlib 0\nlib/deep 0\nupdated\n M lib\n M deep\n M i.txt\n");
    let bench = shaped(NESTED, ask);
    assert_eq!(looked(&bench), expected("the last commit of the project, as this stage sees it"));
    let bench = shaped(NESTED, ask);
    bench.write("glovebox.toml", "[workspace]\ngit = \"history\"\n");
    assert_eq!(looked(&bench), expected("inner"));
}

#[test]
fn an_empty_submodule_cannot_be_filled_in_a_stage_and_the_summary_says_so() {
    let setup = format!("{WITH_SUBMODULE}rm -rf project && git clone -q main project\n");
    let bench = shaped(&setup, "git submodule update --init");
    bench.write("pipeline.dot", &LOOK.replace(" > out.txt 2>&1", ""));
    run(&bench).ends(1).says("a submodule that is empty in the project stays empty in a stage");
}

/// A submodule of the user at another commit than the project names is at another one in the stage, too, and shows what is uncommitted.
#[test]
fn a_submodule_that_the_user_has_changed_is_changed_in_the_stage() {
    let setup = format!(
        "{WITH_SUBMODULE}cd project/lib && echo m > m.txt && git add -A && git commit -qm second && echo u >> l.txt"
    );
    let ask = "git submodule status | cut -c 1; git status --porcelain -uno; git -C lib status --porcelain; git -C lib ls-files";
    assert_eq!(looked(&shaped(&setup, ask)), "+\n M lib\n M l.txt\nl.txt\nm.txt\n");
}

#[test]
fn a_submodule_has_its_history_where_the_project_has_it() {
    let setup = format!(
        "{WITH_SUBMODULE}cd project && git -C lib checkout -q -b work && git -C lib commit -q --allow-empty -m second && git commit -qam bump"
    );
    let bench = shaped(
        &setup,
        "git submodule status | cut -c 1; git -C lib log --format=%s; git -C lib branch --show-current; git status --porcelain -uno",
    );
    bench.write("glovebox.toml", "[workspace]\ngit = \"history\"\n");
    assert_eq!(looked(&bench), " \nsecond\nlibrary\nwork\n");
}

/// A stage that may read a part of the submodule sees only that part in its commit.
#[test]
fn a_submodule_shows_only_what_the_stage_may_read() {
    let library = "git init -q library && cd library && mkdir src && echo s > src/s.txt && echo secret > secret.txt && git add -A && git commit -qm library && cd ..
git init -q main && cd main && git submodule --quiet add file://$PWD/../library lib && git commit -qm first && cd ..
git clone -q --recurse-submodules main project\n";
    let bench = shaped(library, &format!("git -C lib ls-files; cd lib && {OBJECTS}"));
    bench.write(
        "pipeline.dot",
        &LOOK.replace(
            "allowed_write_paths=\"./\"",
            "allowed_write_paths=\"out.txt\", read_paths=\"look.sh,lib/src/,.gitmodules\"",
        ),
    );
    let out = looked(&bench);
    assert!(out.starts_with("src/s.txt\n") && !out.contains("secret"), "{out}");
}

/// A stranger's project leads its submodule to another repository of the user. Nothing of it is shown.
#[test]
fn a_submodule_of_another_repository_is_not_shown() {
    let private = "git init -q private && cd private && echo key > key.txt && git add -A && git commit -qm private && git tag secret-tag && git remote add secret https://secret.example/x && cd ..
cd project && git init -q && printf '[submodule \"lib\"]\n\tpath = lib\n' > .gitmodules && git add -A && git commit -qm first\n";
    for plant in [
        "mkdir lib && echo l > lib/l.txt && echo \"gitdir: $PWD/../private/.git\" > lib/.git",
        "mkdir lib && echo l > lib/l.txt && ln -s ../../private/.git lib/.git",
        "ln -s ../private lib",
        "mkdir lib && echo l > lib/l.txt && cp -r ../private/.git lib/.git && cd lib/.git && rm -rf objects refs/tags packed-refs config && cd ../.. && ln -s $PWD/../private/.git/objects lib/.git/objects",
        "mkdir lib && echo l > lib/l.txt && git init -q lib && echo $PWD/../private/.git/objects > lib/.git/objects/info/alternates && cp ../private/.git/refs/heads/* lib/.git/refs/heads/",
    ] {
        let bench = shaped(
            &format!("{private}{plant}"),
            &format!("{OBJECTS}; cd lib && {OBJECTS}; git tag; git remote; cat key.txt"),
        );
        run(&bench);
        let out = bench.run_text("r", "workspace/out.txt");
        assert!(!out.contains("key\n") && !out.contains("secret") && !out.contains("private"), "{plant}: {out}");
    }
}

/// Filters change bytes between the commit and the work tree. Git in a stage has only the filters that it has itself.
#[test]
fn files_that_a_filter_changed_are_not_shown_as_changed() {
    let setup = "cd project && git init -q && printf 'a\\nb\\n' > crlf.bat && printf 'pointer' > large.bin
printf '*.bat text eol=crlf\\n*.bin filter=lfs\\n' > .gitattributes
git config filter.lfs.clean 'printf \"version https://git-lfs.github.com/spec/v1\\n\"' && git config filter.lfs.smudge 'printf large-content'
git add -A && git commit -qm first && rm crlf.bat large.bin && git checkout -q -- . && sleep 1.1 && git status > /dev/null";
    let out = looked(&shaped(
        setup,
        "git status --porcelain -uno; git show HEAD:large.bin; git show HEAD:crlf.bat | wc -c; wc -c < crlf.bat; git diff HEAD --stat",
    ));
    assert_eq!(out, "large-content4\n6\n");
}

#[test]
fn the_history_is_shown_in_linked_worktrees_and_never_fetched() {
    let origin = "git init -q origin && cd origin && echo a > a.txt && git add -A && git commit -qm first
echo b > a.txt && git commit -qam second && cd ..\n";
    let ask = "git log --format=%s; git branch --show-current; git show HEAD~1:a.txt; git status --porcelain -uno; git commit -qam third; true";
    let seen = |setup: &str| {
        let bench = shaped(&format!("{origin}{setup}"), ask);
        bench.write("glovebox.toml", "[workspace]\ngit = \"history\"\n");
        looked(&bench)
    };
    let worktree = seen("git -C origin worktree add -q --force ../project -b x && echo c > project/a.txt");
    assert_eq!(worktree, "second\nfirst\nx\na\n M a.txt\n");
    let partial = seen("git clone -q --filter=blob:none file://$PWD/origin project && mv origin away");
    assert!(partial.starts_with("the last commit of the project") && !partial.contains("first\n"), "{partial}");
}
