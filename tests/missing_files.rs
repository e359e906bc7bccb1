//! A verdict over nothing: a check passes because the files that it should read are not there. The summary, `show`, `evidence` and the
//! JSON documents name what is missing, and a project that has everything gets no such row.

use crate::workbench::Workbench;
use std::process::Command;

/// Creates a project with a shell text that runs in the folder above, and a stage that passes over nothing.
fn bench(setup: &str, stage: &str) -> Workbench {
    let bench = Workbench::new();
    let mut shell = Command::new("sh");
    for name in ["AUTHOR", "COMMITTER"] {
        shell.env(format!("GIT_{name}_NAME"), "a").env(format!("GIT_{name}_EMAIL"), "a@b");
    }
    let settings = [("init.defaultBranch", "main"), ("protocol.file.allow", "always")];
    shell.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (number, (key, value)) in settings.iter().enumerate() {
        shell.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    let output = shell.args(["-e", "-c", setup]).current_dir(bench.outside()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    bench.write("pipeline.dot", &format!("digraph t {{ start; done; test [{stage}]; start -> test -> done }}"));
    bench
}

/// A stage that runs every script in `lib/`, and so passes if there is none.
const EACH: &str =
    r#"shape=parallelogram, tool_command="for t in lib/*.sh; do test ! -e $t || sh $t; done", allowed_write_paths="""#;
const LIBRARY: &str =
    "git init -q library && cd library && echo 'exit 0' > a.sh && git add -A && git commit -qm library && cd ..
git init -q main && cd main && git submodule --quiet add file://$PWD/../library lib && git commit -qm first && cd ..\n";

/// Runs the pipeline, and checks that everything that shows the verdict has a row or an entry with these words.
#[track_caller]
fn names(bench: &Workbench, words: &[&str]) {
    let run = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    run.ends(0).says("missing      ");
    let show = bench.glovebox(&["show", "r"]);
    let evidence = bench.glovebox(&["evidence", "r"]);
    for word in words {
        run.says(word);
        show.says(word);
        evidence.says(word);
    }
    let verdict = bench.glovebox(&["show", "r", "--json"]).json();
    let evidence = bench.glovebox(&["evidence", "r", "--json"]).json();
    for field in ["missing", "unmatched"] {
        assert_eq!(verdict[field], evidence[field]);
    }
    assert!(verdict["missing"].is_array() || verdict["unmatched"].is_array(), "{verdict}");
}

#[test]
fn an_empty_submodule_is_named_and_a_full_one_is_not() {
    let empty = bench(&format!("{LIBRARY}git clone -q main project"), EACH);
    names(
        &empty,
        &["1 submodule is not checked out: lib/; named by `test`", "git submodule update --init --recursive"],
    );
    let verdict = empty.glovebox(&["show", "r", "--json"]).json();
    let expected = serde_json::json!([{ "kind": "submodule", "count": 1, "paths": ["lib/"], "named_by": ["test"] }]);
    assert_eq!(verdict["missing"], expected);

    let full = bench(&format!("{LIBRARY}git clone -q --recurse-submodules main project"), EACH);
    full.glovebox(&["run", "pipeline.dot"]).ends(0).never_says("missing");
}

#[test]
fn an_empty_submodule_of_a_submodule_and_of_an_archive_is_named() {
    let setup = format!(
        "{LIBRARY}git init -q outer && cd outer && git submodule --quiet add file://$PWD/../main sub && git commit -qm first && cd ..
git clone -q outer project && git -C project submodule --quiet update --init"
    );
    names(&bench(&setup, EACH), &["1 submodule is not checked out: sub/lib/."]);
    let archive = format!("{LIBRARY}mkdir -p project/lib && git -C main archive HEAD | tar -x -C project");
    names(&bench(&archive, EACH), &["1 submodule is not checked out: lib/; named by `test`"]);
}

/// A pointer has the first line and the fields of the specification. A text that only quotes one is an ordinary file.
#[test]
fn pointers_of_git_lfs_are_named() {
    let pointer = "version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 12345\\n";
    let setup = format!(
        "cd project && git init -q && mkdir data && echo '*.bin filter=lfs diff=lfs merge=lfs -text' > .gitattributes
printf '{pointer}' 1 > data/a.bin && printf '{pointer}' 2 > data/b.bin && printf 'see %s\\n{pointer}' it 3 > notes.md && head -c 200 /dev/zero > c.bin
git add -A && git commit -qm first"
    );
    let stage = r#"shape=parallelogram, tool_command="test -s data/a.bin", allowed_write_paths="""#;
    names(
        &bench(&setup, stage),
        &["2 files have only their Git LFS pointers: data/a.bin, data/b.bin; named by `test`", "git lfs pull"],
    );
    // Without Git LFS in the project, such a file is a test fixture or a document.
    let plain = bench(&setup, stage);
    plain.write(".gitattributes", "");
    plain.glovebox(&["run", "pipeline.dot"]).ends(0).never_says("missing");
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_named() {
    let origin = "git init -q origin && cd origin && mkdir app docs && echo a > app/a && echo 1 > docs/1 && echo 2 > docs/2 && git add -A
git commit -qm first && cd .. && git clone -q --sparse origin project && git -C project sparse-checkout set app";
    let stage = r#"shape=parallelogram, tool_command="ls docs/* || true", allowed_write_paths="""#;
    names(&bench(origin, stage), &["2 paths are not in the sparse checkout: docs/1, docs/2; named by `test`"]);
    let index = format!("{origin} && git -C project sparse-checkout set --sparse-index app");
    let other = r#"shape=parallelogram, tool_command="ls app", allowed_write_paths="""#;
    names(&bench(&index, other), &["1 path is not in the sparse checkout: docs/."]);
}

#[test]
fn an_entry_that_matches_no_file_is_named() {
    let setup = "mkdir -p project/src project/empty && echo a > project/src/a && echo ign > project/.gitignore";
    let read = r#"shape=parallelogram, tool_command="true", allowed_write_paths="", read_paths="src/,tset/,empty/,src/b,ign/""#;
    let named = bench(setup, read);
    names(&named, &["test: `tset/` of `read_paths` matches no file", "test: `src/b` of", "test: `empty/` of"]);
    let show = named.glovebox(&["show", "r"]);
    show.never_says("`src/`").never_says("`ign/`");

    let counts = r#"type="diff-limits", max_files=3, paths="src/**,sorce/**,a.lock""#;
    let limits = bench(setup, counts);
    names(&limits, &["test: `sorce/**` of `paths` matches no file", "test: `a.lock` of"]);
    limits.glovebox(&["show", "r"]).never_says("`src/**`");
}

/// Before the first stage, so that nothing is done and paid before the mistake is found.
#[test]
fn a_folder_that_commands_shall_read_is_looked_for_before_the_first_stage() {
    let stage = r#"shape=parallelogram, tool_command="true", allowed_write_paths="""#;
    let bench = bench("mkdir dangles && ln -s nowhere dangles/link", stage);
    for read in ["absent", "dangles/link"] {
        let read = bench.outside().join(read);
        bench.write("glovebox.toml", &format!("[sandbox]\nread = [\"{}\"]\n", read.display()));
        let run = bench.glovebox(&["run", "pipeline.dot"]);
        run.ends(3).says("`[sandbox] read` names").says("create the folder, or remove it");
        assert!(!bench.has(".glovebox/runs"), "no run began");
    }
}

/// The stage itself makes the folder that it may read.
#[test]
fn what_a_stage_may_write_is_not_missing() {
    let stage =
        r#"shape=parallelogram, tool_command="echo a > out/a", allowed_write_paths="out/", read_paths="out/,src/""#;
    let bench = bench("mkdir -p project/src project/out && echo a > project/src/a", stage);
    bench.glovebox(&["run", "pipeline.dot"]).ends(0).never_says("missing");
}

/// The paths of an index are chosen by the author of the project. They are shown escaped, and never lead out of it.
#[test]
fn a_hostile_index_names_nothing_outside() {
    let setup = "cd project && git init -q && echo a > a && git add a && git commit -qm first
for path in \"$(printf 'sub\\033[2J')\" secret; do git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),\"$path\"; done
mkdir ../outside && ln -s ../outside link && git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),link/x || true";
    let bench = bench(setup, r#"shape=parallelogram, tool_command="true", allowed_write_paths="""#);
    let run = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    run.ends(0).says("secret/").never_says("\u{1b}").never_says("outside");
}

/// A submodule of a stranger's project leads to another repository of the user. Only the index of the submodule's own repository is read.
#[test]
fn a_submodule_of_another_repository_names_nothing() {
    let setup = "git init -q private && cd private && echo key > hush-key && git add -A && git commit -qm private
git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),hush-module && git update-index --skip-worktree hush-key && cd ..
cd project && git init -q && mkdir sub && echo l > sub/l.txt
git update-index --add --cacheinfo 160000,$(git -C ../private rev-parse HEAD),sub\n";
    let stage = r#"shape=parallelogram, tool_command="true", allowed_write_paths="""#;
    for plant in [
        "echo \"gitdir: $PWD/../private/.git\" > sub/.git",
        "git -C ../private config core.worktree $PWD/../private && echo \"gitdir: $PWD/../private/.git\" > sub/.git",
        "ln -s ../../private/.git sub/.git",
        "mkdir sub/.git && ln -s ../../../private/.git/index sub/.git/index",
        "mkdir sub/.git && cp ../private/.git/index sub/.git/ && echo $PWD/../private/.git > sub/.git/commondir",
        "rm -r sub && ln -s ../private sub",
    ] {
        let bench = bench(&format!("{setup}{plant}"), stage);
        bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0).never_says("hush");
        bench.glovebox(&["show", "r", "--json"]).ends(0).never_says("hush");
    }
    // The witness: the same index in a repository of the submodule itself, and in one that names the submodule as its work tree.
    for own in [
        "mv ../private/.git sub/.git",
        "mkdir -p .git/modules && mv ../private/.git .git/modules/sub && echo 'gitdir: ../.git/modules/sub' > sub/.git
git --git-dir .git/modules/sub config core.worktree ../../../sub",
    ] {
        names(&bench(&format!("{setup}{own}"), stage), &["sub/hush-module/", "sub/hush-key"]);
    }
}
