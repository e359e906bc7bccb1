//! Build output in a project: files that git ignores are scratch and cannot hide changes. The witness of each attack is
//! the output of `diff` and `apply`, or a verdict that was not forged.

use crate::workbench::{self, Answer, Workbench};
use std::fs::DirEntry;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const IGNORES: &str = "target/\n__pycache__/\n*.log\nlocal.cfg\n";

/// Creates a project with a `.gitignore` and stages in a row. With `many`, the project is so large that stages work on
/// overlays.
fn bench(stages: &[(&str, &str)], many: bool) -> Workbench {
    let nodes: String = stages.iter().map(|(id, attributes)| format!("  {id} [{attributes}]\n")).collect();
    let row: Vec<&str> = stages.iter().map(|(id, _)| *id).collect();
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n{nodes}  start -> {} -> done\n}}\n",
        row.join(" -> ")
    ));
    bench.write(".gitignore", IGNORES);
    bench.write("src/main.txt", "main\n");
    if many {
        (0..300).for_each(|number| bench.write(&format!("data/{number}.txt"), "x"));
    }
    bench
}

fn tool(command: &str, writes: &str) -> String {
    format!("shape=parallelogram, tool_command=\"{command}\", allowed_write_paths=\"{writes}\"")
}

/// Attributes of a builder with a shell. Its script contains the commands.
const BUILDER: &str = "prompt=\"build\", allowed_commands=\"*\", allowed_write_paths=\"src/\"";

fn script(bench: &Workbench, node: &str, commands: &[&str]) {
    let turn = |command: &&str| {
        let command = serde_json::Value::from(*command);
        format!("[[node.{node}]]\ntool = [{{ name = \"shell\", arguments = {{ command = {command} }} }}]\n")
    };
    let turns: String = commands.iter().map(turn).collect();
    let end = format!("[[node.{node}]]\ntext = \"OUTCOME: SUCCESS\"\n");
    std::fs::write(bench.outside().join("script.toml"), turns + &end).unwrap();
}

fn run(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
}

fn run_scripted(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"])
}

#[test]
fn what_git_ignores_is_scratch_and_stays_for_the_next_stage() {
    for many in [false, true] {
        let build = "mkdir -p target/debug src/__pycache__ logs; echo o > target/debug/app; echo c > src/__pycache__/m.pyc; \
                     echo l > logs/x.log; ln -s debug/app target/link";
        let check = "test -f target/debug/app && test -f src/__pycache__/m.pyc && test -f logs/x.log && test -f target/link && \
                     echo more >> target/debug/app && rm -r logs";
        let last = "test $(cat target/debug/app | wc -l) = 2 && test ! -e logs";
        let (build, check, last) = (tool(build, ""), tool(check, ""), tool(last, ""));
        let bench = bench(&[("build", &build), ("check", &check), ("last", &last)], many);
        let before = bench.snapshot();
        let answer = run(&bench);
        answer.ends(0).says("left out 4 files that git ignores (target/, __pycache__/, x.log)");
        answer.never_says("quarantined");
        assert!(bench.glovebox(&["diff", "r"]).ends(0).stdout.is_empty());
        bench.glovebox(&["apply", "r"]).ends(0);
        assert_eq!(bench.snapshot(), before);
        bench.glovebox(&["show", "r", "build"]).ends(0).says("ignored").says("target/");
    }
}

/// Runs the pipeline and panics if the run does not end within a minute.
fn run_soon(bench: &Workbench) -> Answer {
    let words = ["run", "pipeline.dot", "--run-id", "r"];
    let mut child = bench.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("the run did not end: {:?}", child.wait_with_output().unwrap());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Answer::from_child(child)
}

#[test]
fn a_run_in_a_repository_ends_however_many_files_git_ignores() {
    for many in [false, true] {
        let build = "mkdir -p target/debug logs src/__pycache__; seq 2000 | (cd target/debug; xargs touch); seq 300 | sed 's/$/.log/' | (cd logs; xargs touch); \
                     echo x > src/__pycache__/m.pyc; echo more >> src/main.txt";
        let check =
            "test $(ls target/debug | wc -l) = 2000 && test $(ls logs | wc -l) = 300 && test -f src/__pycache__/m.pyc";
        let (build, check) = (tool(build, "src/"), tool(check, ""));
        let bench = bench(&[("build", &build), ("check", &check), ("again", &check)], many);
        let made = Command::new("git").args(["init", "-q"]).current_dir(bench.project()).status().unwrap();
        assert!(made.success());
        // Ignored files of the project are left out, too.
        (0..500).for_each(|number| bench.write(&format!("target/old/{number}.o"), "x"));
        run_soon(&bench).ends(0).says("left out 2301 files that git ignores");
        bench.glovebox(&["diff", "r"]).ends(0).says("src/main.txt").never_says("target/");
    }
}

#[test]
fn a_stage_that_changes_the_rules_hides_nothing() {
    for many in [false, true] {
        let hide = "printf 'src/\\\\n*.txt\\\\n' > .gitignore; mkdir -p .git/info; echo src/ > .git/info/exclude; true";
        let rules = tool("printf 'src/\\n' > .gitignore; printf '*' > src/.gitignore", "./");
        let change = tool("echo evil >> src/main.txt; echo new > src/new.txt", "./");
        let bench = bench(&[("rules", &rules), ("change", &change)], many);
        run(&bench).ends(0).never_says("that git ignores");
        bench.glovebox(&["diff", "r"]).ends(0).says("+evil").says("src/new.txt").says("src/.gitignore");
        let narrow =
            self::bench(&[("hide", &tool(hide, "")), ("change", &tool("echo evil >> src/main.txt", ""))], many);
        run(&narrow).ends(6).says(".gitignore").says(".git");
    }
}

#[test]
fn a_file_that_git_tracks_is_ordinary_though_a_rule_matches_it() {
    for many in [false, true] {
        let change = "echo evil >> target/kept.txt; echo o > target/out; echo evil > sub.log; test -f local.cfg";
        let bench = bench(&[("change", &tool(change, "./"))], many);
        bench.write("target/kept.txt", "kept\n");
        bench.write("target/stale", "not in the run\n");
        bench.write("local.cfg", "included\n");
        bench.write("glovebox.toml", "[workspace]\ninclude = [\"local.cfg\"]\n");
        let git = |words: &[&str]| {
            let done = Command::new("git").current_dir(bench.project()).args(words).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        git(&["init", "-q"]);
        git(&["add", "-f", "target/kept.txt", "src/main.txt", ".gitignore"]);
        run(&bench).ends(0).says("left out 2 files that git ignores");
        let diff = bench.glovebox(&["diff", "r"]);
        diff.ends(0).says("target/kept.txt").says("+evil").never_says("target/out");
        diff.never_says("target/stale").never_says("sub.log").never_says("local.cfg");
        // If the file is outside of the stage's scope, the stage fails, as with any other file.
        let text = bench.read("pipeline.dot").replace("allowed_write_paths=\"./\"", "allowed_write_paths=\"src/\"");
        bench.write("pipeline.dot", &text);
        let refused = bench.glovebox(&["run", "pipeline.dot", "--run-id", "s"]);
        refused.ends(6).says("wrote disallowed files: target/kept.txt");
    }
}

#[test]
fn what_a_write_scope_names_is_committed_though_git_ignores_it() {
    let make = tool("mkdir -p target/dist; echo a > target/dist/a; echo o > target/o", "target/dist/");
    let bench = bench(&[("make", &make), ("use", &tool("test -f target/dist/a", ""))], false);
    run(&bench).ends(0).says("left out 1 file that git ignores (target/)");
    bench.glovebox(&["diff", "r"]).says("target/dist/a").never_says("target/o");
}

#[test]
fn a_builder_leaves_a_verdict_nothing_that_no_diff_shows() {
    for many in [false, true] {
        let check =
            tool("test ! -e target/verdict && test ! -e src/__pycache__/m.pyc && grep -q fixed src/main.txt", "");
        let bench = bench(&[("build", BUILDER), ("check", &check)], many);
        let forge = "mkdir -p target src/__pycache__; echo pass > target/verdict; echo evil > src/__pycache__/m.pyc; \
                     echo fixed > src/main.txt";
        script(&bench, "build", &[forge, "test -f target/verdict"]);
        run_scripted(&bench).ends(0).says("verified     check").says("left out 2 files");
    }
}

#[test]
fn nothing_lasts_beside_hold_outs_and_builders_never_see_what_a_verdict_left() {
    let seal = "mkdir -p target; test ! -e target/leak && cp scripts/scenarios/secret.txt target/leak";
    let look = tool("test -f scripts/scenarios/secret.txt", "");
    let bench =
        bench(&[("judge", &tool(seal, "")), ("again", &tool(seal, "")), ("build", BUILDER), ("look", &look)], false);
    bench.write("scripts/scenarios/secret.txt", "XYZZY\n");
    script(&bench, "build", &["test ! -e target/leak && ! grep -rq XYZZY . && echo clean > src/clean.txt"]);
    run_scripted(&bench).ends(0);
    bench.glovebox(&["diff", "r"]).says("src/clean.txt").never_says("leak");
    let kept = bench.run_folder("r").join("cache/ignored");
    assert!(!kept.join("verifier/target").exists() && !kept.join("checker/target").exists());
}

#[test]
fn protected_names_stay_protected() {
    for (write, said) in [
        ("echo x > .envrc", ".envrc"),
        ("mkdir -p .git/hooks; echo x > .git/hooks/pre-commit", ".git"),
        ("echo x > glovebox.toml", "glovebox.toml"),
    ] {
        let bench = bench(&[("write", &tool(write, "./"))], false);
        bench.write(".gitignore", "*\n!src/\n");
        run(&bench).ends(6).says(said);
    }
    // In an ignored folder, a file with a protected name is dropped, and later stages do not see it.
    let write = tool(
        "mkdir -p target/.git/hooks target/pkg; echo x > target/.envrc; echo x > target/pkg/.npmrc; echo y > target/pkg/a",
        "",
    );
    let look = tool(
        "test -f target/pkg/a && test ! -e target/.envrc && test ! -e target/pkg/.npmrc && test ! -e target/.git",
        "",
    );
    let bench = bench(&[("write", &write), ("look", &look)], false);
    run(&bench).ends(0);
}

#[test]
fn what_lies_in_an_ignored_folder_never_replaces_a_file_of_the_workspace() {
    for many in [false, true] {
        // The first stage leaves an ignored file. The second one writes the file within its scope. All later stages
        // must see the file of the second stage.
        let first = tool("mkdir -p target; echo forged > target/result", "");
        let second = tool("mkdir -p target; echo honest > target/result", "target/result");
        let third = tool("grep -q honest target/result", "");
        let bench = bench(&[("first", &first), ("second", &second), ("third", &third)], many);
        run(&bench).ends(0);
        bench.glovebox(&["diff", "r"]).says("+honest").never_says("forged");
    }
}

#[test]
fn links_and_strange_names_in_an_ignored_folder_lead_nowhere() {
    let make = "mkdir -p target/closed; echo x > target/set; ln -s /etc/passwd target/passwd; ln -s ../../../.. target/up\n\
                ln -s ../src target/src; mkfifo target/pipe; touch \"target/$(printf 'a\\033b')\"\n\
                chmod 000 target/closed; chmod 777 target/set\n";
    for many in [false, true] {
        let look = "test -L target/up && test ! -e target/pipe && test -x target/set && echo x > target/src/x.log";
        let bench = bench(&[("write", &tool("sh make.sh", "")), ("look", &tool(look, ""))], many);
        bench.write("make.sh", make);
        run(&bench).ends(0);
        assert!(bench.glovebox(&["diff", "r"]).ends(0).stdout.is_empty());
    }
}

#[test]
fn what_is_refused_is_told_once_for_its_folder() {
    let build = tool("mkdir -p out/deep; for i in $(seq 22); do echo $i > out/deep/$i; done", "src/");
    let bench = bench(&[("build", &build)], false);
    let answer = run(&bench);
    answer.ends(6).says("22 files in out/deep/").says("scratch = [\"out/deep/\"]").says("out/deep/ (22 files)");
    assert_eq!(answer.stderr.matches("out/deep/1").count() + answer.stdout.matches("out/deep/1").count(), 0);
    bench.glovebox(&["show", "r", "build"]).says("22 files in out/deep/").says("scratch = [");
    bench.write("glovebox.toml", "[sandbox]\nscratch = [\"out/\"]\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "s"]).ends(0);
}

/// Returns the disk space that the files below a folder take, in bytes.
fn taken(folder: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let of = |entry: DirEntry| match entry.file_type().unwrap().is_dir() {
        true => taken(&entry.path()),
        false => entry.metadata().unwrap().blocks() * 512,
    };
    std::fs::read_dir(folder).unwrap().map(|entry| of(entry.unwrap())).sum()
}

#[test]
fn a_file_without_content_takes_no_disk_whatever_the_stage_writes_on_it() {
    if !workbench::is_on_this_machine("python3") {
        return workbench::not_run("files with attributes", "python3 is missing");
    }
    let fill = "import os\nos.makedirs('target', exist_ok=True)\nfor n in range(3):\n    p = f'target/{n}'\n    \
                open(p, 'w').truncate(400 << 20)\n    os.setxattr(p, 'user.overlay.zz', b'1')\n";
    let bounds = ", limits.disk_bytes=\"20MiB\", limits.write_bytes=\"10MiB\"";
    for many in [false, true] {
        let first = tool("python3 fill.py && truncate -s 400M target/hole", "") + bounds;
        // When the kernel copies a file to the upper layer, it sets an extended attribute of its own.
        let again = tool("echo x >> target/hole && test $(stat -c %s target/0) = 419430400", "") + bounds;
        let last = tool("test $(stat -c %s target/hole) = 419430402 && tail -c 2 target/hole | grep -q x", "") + bounds;
        let bench = bench(&[("first", &first), ("again", &again), ("last", &last)], many);
        bench.write("fill.py", fill);
        run(&bench).ends(0).never_says("were removed");
        let cache = taken(&bench.run_folder("r").join("cache"));
        assert!(cache < 4 << 20, "{cache} bytes");
    }
}

/// Runs a command as a user that has no rights to files of other users.
fn as_ordinary_user(bench: &Workbench, words: &[&str]) -> Option<Answer> {
    let behind = |program: &std::ffi::OsStr| {
        let mut command = Command::new("unshare");
        command.args(["-U", "--map-user=1000", "--map-group=1000"]).arg(program).current_dir(bench.project());
        command
    };
    let own = bench.command(words);
    let mut command = behind(own.get_program());
    command.args(own.get_args()).envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let can = behind("true".as_ref()).output().is_ok_and(|output| output.status.success());
    let caches = bench.outside().join("caches");
    can.then(|| Answer::of(command.env("GLOVEBOX_CACHE_DIR", caches)))
}

#[test]
fn folders_that_a_stage_closed_are_kept_for_an_ordinary_user_too() {
    for (many, mode) in [(false, "555"), (true, "555"), (true, "444"), (true, "000")] {
        let close = format!("mkdir -p target/ro/in && echo 1 > target/ro/in/f && chmod {mode} target/ro/in target/ro");
        let look = "test -f target/ro/in/f && echo 2 > target/ro/in/g";
        let bench = bench(&[("close", &tool(&close, "")), ("look", &tool(look, ""))], many);
        let Some(answer) = as_ordinary_user(&bench, &["run", "pipeline.dot", "--run-id", "r"]) else {
            return workbench::not_run("an ordinary user", "no namespace can be made here");
        };
        answer.ends(0).never_says("were removed");
    }
}

#[test]
fn the_number_of_files_that_git_ignores_is_limited() {
    for many in [false, true] {
        let make = |most: u64| {
            tool("mkdir -p target; for i in $(seq 40); do : > target/$i; done", "")
                + &format!(", limits.ignored_entries={most}")
        };
        let clean = tool("test $(ls target | wc -l) = 40 && rm -r target", "") + ", limits.ignored_entries=1";
        let bench = bench(&[("make", &make(41)), ("clean", &clean), ("over", &make(40))], many);
        run(&bench).ends(5).says("limit/ignored_entries").says("over");
        bench.glovebox(&["show", "r", "make"]).ends(0).says("ignored_entries");
    }
}

#[test]
fn a_file_with_rules_is_neither_waited_for_nor_read_without_end() {
    for place in [".gitignore", "src/deep/.gitignore"] {
        let bench = bench(&[("check", &tool("test -d src", ""))], false);
        bench.write("src/deep/x", "");
        let file = bench.project().join(place);
        let _ = std::fs::remove_file(&file);
        let made = Command::new("mkfifo").arg(&file).status();
        assert!(made.is_ok_and(|status| status.success()));
        run(&bench).ends(0);
        std::fs::remove_file(&file).unwrap();
        bench.write(place, &"many/*.rules\n".repeat(20_001));
        let long = bench.glovebox(&["run", "pipeline.dot", "--run-id", "long"]);
        long.says("the ignore rules of git have more than 20000 lines or 256 KiB").says(place).ends(2);
    }
}
