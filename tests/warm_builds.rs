//! Build caches of an earlier run: an unchanged project is not built again, a changed file always is, and nothing that
//! code of builders wrote reaches a verdict.

use crate::workbench::{self, Answer, Workbench, is_on_this_machine};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A makefile whose rule prints `BUILDING`, and fails if the result is not made from the present source.
const MAKEFILE: &str = "check: target/out\n\tcmp src/in.txt target/out\n\n\
                        target/out: src/in.txt\n\t@echo BUILDING\n\tmkdir -p target && cp src/in.txt target/out\n";
/// Attributes of a builder with a shell. Its script contains the commands.
const BUILDER: &str = "prompt=\"build\", allowed_commands=\"*\", allowed_write_paths=\"src/\"";

fn tool(command: &str) -> String {
    format!("shape=parallelogram, tool_command=\"{command}\", allowed_write_paths=\"\"")
}

/// Creates a project with a makefile and stages in a row. With `many`, stages work on overlays.
fn bench(stages: &[(&str, &str)], many: bool) -> Workbench {
    let nodes: String = stages.iter().map(|(id, attributes)| format!("  {id} [{attributes}]\n")).collect();
    let row: Vec<&str> = stages.iter().map(|(id, _)| *id).collect();
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n{nodes}  start -> {} -> done\n}}\n",
        row.join(" -> ")
    ));
    bench.write("glovebox.toml", "[sandbox]\nreuse = [\"target/\"]\n");
    bench.write(".gitignore", "target/\n*.pid\n");
    bench.write("Makefile", MAKEFILE);
    bench.write("src/in.txt", "one\n");
    bench.write("Cargo.lock", "");
    if many {
        (0..300).for_each(|number| bench.write(&format!("data/{number}.txt"), "x"));
    }
    bench
}

fn run(bench: &Workbench, id: &str, code: i32) -> Answer {
    Answer::of(&mut bench.bare(&["run", "pipeline.dot", "--run-id", id])).ends(code);
    Answer::of(&mut bench.bare(&["logs", id]))
}

/// Runs the project, and returns true if it was built.
#[track_caller]
fn builds(bench: &Workbench, id: &str) -> bool {
    run(bench, id, 0).stdout.contains("BUILDING")
}

fn set_time(file: &Path, hours_ago: u64) {
    let time = SystemTime::now() - Duration::from_secs(hours_ago * 3600);
    std::fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
}

fn has_make() -> bool {
    let has = is_on_this_machine("make");
    if !has {
        workbench::not_run("warm builds", "`make` is not on this machine");
    }
    has
}

#[test]
fn an_unchanged_project_is_built_once_and_a_changed_file_always() {
    if !has_make() {
        return;
    }
    for many in [false, true] {
        let bench = bench(&[("check", &tool("make check"))], many);
        assert!(builds(&bench, "a"));
        let second = Answer::of(&mut bench.bare(&["run", "pipeline.dot", "--run-id", "b"]));
        second
            .ends(0)
            .says("caches       the build caches came from run a")
            .says("verified     check")
            .never_says("BUILDING");
        second.never_says("with caches of builders' code");
        assert!(!builds(&bench, "c"));
        // A file with the same content and another time is the same.
        set_time(&bench.project().join("src/in.txt"), 0);
        assert!(!builds(&bench, "d"));
        // A changed file is built again, however old it claims to be.
        bench.write("src/in.txt", "two\n");
        set_time(&bench.project().join("src/in.txt"), 100_000);
        assert!(builds(&bench, "e"));
        assert!(!builds(&bench, "f"));
        bench.write("src/in.txt", "one\n");
        set_time(&bench.project().join("src/in.txt"), 100_000);
        assert!(builds(&bench, "g"));
        // The build tool may keep what it made from a removed file.
        bench.write("src/more.txt", "");
        assert!(!builds(&bench, "h"), "a file was added");
        std::fs::remove_file(bench.project().join("src/more.txt")).unwrap();
        assert!(builds(&bench, "i"));
    }
}

#[test]
fn another_lock_file_setting_or_toolchain_begins_with_empty_caches() {
    if !has_make() {
        return;
    }
    let bench = bench(&[("check", &tool("make check"))], false);
    let tools = bench.outside().join("tools");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("compiler"), "1").unwrap();
    let settings = |more: &str| {
        bench.write("glovebox.toml", &format!("[sandbox]\nreuse = [\"target/\"]\n{more}"));
    };
    let is_cold = |id: &str| {
        assert!(builds(&bench, id), "{id}");
        assert!(!builds(&bench, &format!("{id}-again")), "{id}");
    };
    is_cold("first");
    bench.write("Cargo.lock", "# changed\n");
    is_cold("lock");
    settings("[exec]\nenv = { CFLAGS = \"-O2\" }\n");
    is_cold("env");
    settings(&format!("[exec]\npath = [\"{}\"]\n", tools.display()));
    is_cold("path");
    std::fs::write(tools.join("compiler"), "22").unwrap();
    is_cold("compiler");
    bench.write("glovebox.toml", "[sandbox]\nreuse = []\n");
    assert!(builds(&bench, "off") && builds(&bench, "off-again"));
}

#[test]
fn a_lock_file_that_a_run_writes_does_not_end_the_reuse() {
    if !has_make() {
        return;
    }
    let stage =
        "shape=parallelogram, tool_command=\"make check; echo 1 > Cargo.lock\", allowed_write_paths=\"Cargo.lock\"";
    let bench = bench(&[("check", stage)], false);
    std::fs::remove_file(bench.project().join("Cargo.lock")).unwrap();
    assert!(builds(&bench, "a"));
    assert!(!builds(&bench, "b"), "the changes of the first run were not applied");
    bench.glovebox(&["apply", "b"]).ends(0);
    assert!(builds(&bench, "c"), "the versions that the project names are others now");
}

#[test]
fn only_named_folders_of_ignored_files_are_taken() {
    let first =
        "test ! -e server.pid && test ! -e target/old; echo 7 > server.pid; mkdir -p target; echo x > target/kept";
    let bench = bench(&[("check", &tool(first))], false);
    run(&bench, "a", 0);
    let kept = bench.run_folder("a").join("cache/ignored/checker");
    assert!(kept.join("server.pid").exists() && kept.join("target/kept").exists());
    run(&bench, "b", 0);
    assert!(bench.run_folder("b").join("cache/ignored/checker/target/kept").exists());
    assert!(!kept.join("target").exists(), "it was moved");
}

/// The script of the builder in all runs.
fn script(bench: &Workbench, commands: &[&str]) {
    let turn = |command: &&str| {
        let command = serde_json::Value::from(*command);
        format!("[[node.build]]\ntool = [{{ name = \"shell\", arguments = {{ command = {command} }} }}]\n")
    };
    let turns: String = commands.iter().map(turn).collect();
    let text = turns + "[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n";
    std::fs::write(bench.outside().join("script.toml"), text).unwrap();
}

/// A builder plants files in its own caches, and code that plants files where the judging stage runs it. A later run
/// must see neither, and must have what the judging stage made before.
#[test]
fn poison_of_a_builder_never_reaches_the_verdict_of_a_later_run() {
    const TOOLCHAIN: &str = "[exec]\ntoolchains = [\"python\"]\n[sandbox]\nreuse = [\"target/\"]\n";
    if !is_on_this_machine("python3") {
        return workbench::not_run("poisoned caches", "`python3` is not on this machine");
    }
    for many in [false, true] {
        let look = "test ! -e target/verdict && test ! -e $XDG_CACHE_HOME/verdict && ! grep -rqs poison target $XDG_CACHE_HOME; \
                    result=$?; [ -e target/clean ] && echo WARM; mkdir -p target; echo clean > target/clean; \
                    echo clean > $XDG_CACHE_HOME/clean; exit $result";
        // The second judging stage runs what the builder wrote.
        let judge = "sh src/run.sh";
        let bench = bench(&[("look", &tool("sh look.sh")), ("build", BUILDER), ("judge", &tool(judge))], many);
        bench.write("glovebox.toml", TOOLCHAIN);
        bench.write("look.sh", look);
        bench.write("src/run.sh", "exit 0\n");
        let plant = "mkdir -p target; echo poison > target/verdict; echo poison > $XDG_CACHE_HOME/verdict; \
                     echo poison > target/clean; ln -s /etc target/way; true";
        let planter = format!("printf '%s' '{plant}' > src/run.sh");
        script(&bench, &[plant, &planter]);
        let run = |id: &str| {
            Answer::of(&mut bench.bare(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", id]))
        };
        run("a").ends(0).never_says("the build caches came from");
        let poisoned = bench.run_folder("a").join("cache/ignored/checker/target/verdict");
        assert!(poisoned.exists(), "the attack had an effect in its own run");
        for (id, earlier) in [("b", "a"), ("c", "b")] {
            let answer = run(id);
            answer.ends(0).says(&format!("the build caches came from run {earlier}"));
            answer.says("verified     look: ").never_says("verified (with caches of builders' code) look");
            bench.glovebox(&["logs", id, "look"]).ends(0).says("WARM");
        }
    }
}

/// A failed run may be resumed, so it keeps its caches.
#[test]
fn a_failed_run_gives_a_copy_and_can_be_resumed() {
    if !has_make() {
        return;
    }
    let late = tool("cmp src/in.txt target/out && test -e src/ok.txt");
    let bench = bench(&[("check", &tool("make check")), ("late", &late)], false);
    assert!(run(&bench, "a", 1).stdout.contains("BUILDING"));
    bench.write("src/ok.txt", "ok\n");
    let second = run(&bench, "b", 0);
    assert!(!second.stdout.contains("BUILDING"), "{}", second.stdout);
    assert!(bench.run_folder("a").join("cache/ignored/checker/target/out").exists());
    Answer::of(&mut bench.bare(&["resume", "a"])).ends(1).says("late: deterministic").never_says("cmp: EOF");
}

#[test]
fn two_runs_at_once_do_not_destroy_the_caches_of_each_other() {
    if !has_make() {
        return;
    }
    let bench = bench(&[("check", &tool("make check && sleep 1 && make check"))], false);
    assert!(builds(&bench, "a"));
    let start = |id: &str| bench.start(&["run", "pipeline.dot", "--run-id", id]);
    let both = [start("b"), start("c")].map(Answer::from_child);
    both.iter().for_each(|answer| {
        answer.ends(0);
    });
    let warm = both.iter().filter(|answer| answer.stdout.contains("the build caches came from run")).count();
    assert_eq!(warm, 1, "the caches were moved to one of them");
    assert!(!builds(&bench, "d"));
}

/// A run that was killed offers nothing.
#[test]
fn a_run_that_was_killed_leaves_nothing_to_take() {
    let bench = bench(&[("check", &tool("mkdir -p target && echo half > target/half && sleep 60"))], false);
    let mut child = bench.start(&["run", "pipeline.dot", "--run-id", "a"]);
    let until = SystemTime::now() + Duration::from_secs(60);
    while !bench.run_folder("a").join("stage").exists() {
        assert!(SystemTime::now() < until, "it never started");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(1));
    child.kill().unwrap();
    child.wait().unwrap();
    bench.write("pipeline.dot", &bench.read("pipeline.dot").replace("&& sleep 60", "; test ! -e target/old"));
    Answer::of(&mut bench.bare(&["run", "pipeline.dot", "--run-id", "b"]))
        .ends(0)
        .never_says("the build caches came from");
}

/// A name of a folder, and what replaces the folder.
type Replacement<'a> = (&'a str, &'a dyn Fn(&Path));

/// Caches that came with a project, or that were replaced, are not taken.
#[test]
fn caches_that_glovebox_did_not_leave_there_are_not_taken() {
    if !has_make() {
        return;
    }
    let bench = bench(&[("check", &tool("make check"))], false);
    let outside = bench.outside().join("outside");
    std::fs::create_dir_all(outside.join("target")).unwrap();
    std::fs::write(outside.join("target/out"), "poison\n").unwrap();
    let replace: [Replacement<'_>; 3] = [
        ("link", &|folder| {
            std::fs::remove_dir_all(folder).unwrap();
            symlink(&outside, folder).unwrap();
        }),
        ("copy", &|folder| {
            std::fs::remove_dir_all(folder).unwrap();
            let copied = Command::new("cp").arg("-rp").arg(&outside).arg(folder).status().unwrap();
            assert!(copied.success());
        }),
        ("inner", &|folder| {
            std::fs::remove_dir_all(folder.join("target")).unwrap();
            symlink(outside.join("target"), folder.join("target")).unwrap();
        }),
    ];
    for (name, replace) in replace {
        bench.write("src/in.txt", &format!("{name}\n"));
        assert!(builds(&bench, name));
        let folder: PathBuf = bench.run_folder(name).join("cache/ignored/checker");
        replace(&folder);
        assert!(builds(&bench, &format!("{name}-next")));
        assert_eq!(std::fs::read_to_string(outside.join("target/out")).unwrap(), "poison\n");
    }
}

#[test]
fn caches_are_removed_with_old_runs_and_by_gc() {
    if !has_make() {
        return;
    }
    let bench = bench(&[("check", &tool("make check"))], false);
    assert!(builds(&bench, "a") && !builds(&bench, "b"));
    assert!(!bench.run_folder("a").join("cache").exists(), "they were moved");
    assert!(bench.run_folder("b").join("cache/ignored/checker/target/out").exists());
    bench.write("glovebox.toml", "[sandbox]\nreuse = []\n[run]\nkeep_runs = 1\n");
    assert!(builds(&bench, "c"));
    assert!(!bench.run_folder("b").exists());
    bench.write("glovebox.toml", "[sandbox]\nreuse = []\n");
    for id in ["d", "e", "f"] {
        assert!(builds(&bench, id));
    }
    let has_caches = |id: &str| bench.run_folder(id).join("cache").exists();
    assert_eq!(["c", "d", "e", "f"].map(has_caches), [false, true, true, true], "the three newest runs keep caches");
}
