//! What toolchains keep between stages outside of the workspace, and how each tier treats by-products and dependencies.
//! Each attack has a witness in a later stage or in the output of `diff`.

use crate::workbench::{self, Answer, Workbench, state_dir};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::Command;

const TOOLCHAIN: &str = "[exec]\ntoolchains = [\"python\"]\n";

/// Creates a Python project with stages in a row.
fn bench(stages: &[(&str, &str)]) -> Workbench {
    let nodes: String = stages.iter().map(|(id, attributes)| format!("  {id} [{attributes}]\n")).collect();
    let row: Vec<&str> = stages.iter().map(|(id, _)| *id).collect();
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n{nodes}  start -> {} -> done\n}}\n",
        row.join(" -> ")
    ));
    bench.write("glovebox.toml", TOOLCHAIN);
    bench.write("own.py", "x = 1\n");
    bench
}

fn tool(command: &str) -> String {
    format!("shape=parallelogram, tool_command={}, allowed_write_paths=\"\"", Value::from(command))
}

/// Attributes of a builder with a shell.
const BUILDER: &str = "prompt=\"build\", allowed_commands=\"*\", allowed_write_paths=\"src/\"";

fn script(bench: &Workbench, turns: &[(&str, &str)]) {
    let turn = |(node, command): &(&str, &str)| {
        let command = Value::from(*command);
        format!(
            "[[node.{node}]]\ntool = [{{ name = \"shell\", arguments = {{ command = {command} }} }}]\n\
             [[node.{node}]]\ntext = \"OUTCOME: SUCCESS\"\n"
        )
    };
    std::fs::write(bench.outside().join("script.toml"), turns.iter().map(turn).collect::<String>()).unwrap();
}

fn run_scripted(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"])
}

#[test]
fn caches_of_tools_last_from_stage_to_stage_and_reach_no_project() {
    let first = "set -e; echo warm > $XDG_CACHE_HOME/x; mkdir $RUFF_CACHE_DIR $MYPY_CACHE_DIR; chmod 500 $RUFF_CACHE_DIR\n\
                 python3 -c 'import own, json'; test -n \"$(find $PYTHONPYCACHEPREFIX -name 'own.*.pyc')\"";
    let second = "test \"$(cat $XDG_CACHE_HOME/x)\" = warm && test -d $RUFF_CACHE_DIR && test -d $MYPY_CACHE_DIR && \
                  test -n \"$(find $PYTHONPYCACHEPREFIX -path '*/json/*.pyc')\" && \
                  test -z \"$(find $PYTHONPYCACHEPREFIX -name 'own.*.pyc')\"";
    let bench = bench(&[("first", &tool(first)), ("second", &tool(second))]);
    let before = bench.snapshot();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0).never_says("quarantined").never_says("left out");
    assert!(bench.glovebox(&["diff", "r"]).ends(0).stdout.is_empty());
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(bench.snapshot(), before);
    // A run does not start with the caches of another run.
    let fresh = self::bench(&[("only", &tool("test -z \"$(ls -A $XDG_CACHE_HOME)\""))]);
    fresh.glovebox(&["run", "pipeline.dot"]).ends(0);
}

/// A file that a killed command wrote only half would look complete to the next stage.
#[test]
fn a_killed_attempt_leaves_nothing_in_what_is_kept() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         whole [shape=parallelogram, tool_command=\"echo w > $XDG_CACHE_HOME/whole\", allowed_write_paths=\"\"]\n\
         cut [shape=parallelogram, timeout=\"1s\", allowed_write_paths=\"\", \
         tool_command=\"test -e $XDG_CACHE_HOME/whole && echo h > $XDG_CACHE_HOME/half && sleep 60\"]\n\
         look [shape=parallelogram, tool_command=\"ls -A $XDG_CACHE_HOME | wc -l; test ! -e $XDG_CACHE_HOME/half\", \
         allowed_write_paths=\"\"]\n\
         start -> whole -> cut; cut -> look [condition=\"outcome=fail\"]; cut -> done [condition=\"outcome=success\"]; \
         look -> done }\n",
    );
    bench.write("glovebox.toml", TOOLCHAIN);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let records = bench.run_text("r", "progress.ndjson");
    let ended: Vec<Value> = records.lines().map(|line| line.parse().unwrap()).collect();
    let of = |node: &str| {
        let is_end = |one: &&Value| one["event"]["kind"] == "stage.finished" && one["event"]["node"] == node;
        ended.iter().find(is_end).expect("it ended")["event"]["outcome"]["status"].to_owned()
    };
    assert_eq!([of("whole"), of("cut"), of("look")], ["success", "fail", "success"]);
}

/// The test changes the workspace and the caches of a killed run, as a process of the user may. The caches may also
/// contain files that commands wrote only half.
#[test]
fn a_run_that_was_killed_goes_on_without_caches_and_with_its_own_workspace() {
    let wait = "test -e $XDG_CACHE_HOME/warm && sleep 120; test \"$(cat own.py)\" = \"x = 1\" && test ! -e extra.txt";
    let bench = bench(&[("warm", &tool("echo w > $XDG_CACHE_HOME/warm")), ("wait", &tool(wait))]);
    let mut child = bench.start(&["run", "pipeline.dot", "--run-id", "r", "--json"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_second = |line: &str| line.contains("stage.started") && line.contains("\"wait\"");
    while !is_second(&lines.next().expect("the second stage begins").unwrap()) {}
    child.kill().unwrap();
    child.wait().unwrap();
    let workspace = bench.run_folder("r").join("workspace");
    std::fs::write(workspace.join("own.py"), "x = 2\n").unwrap();
    std::fs::write(workspace.join("extra.txt"), "planted").unwrap();
    bench.glovebox(&["resume", "r"]).ends(0).says("workspace restored: 1 recreated, 2 removed").says("caches removed");
    let records = bench.run_text("r", "progress.ndjson");
    let resumed: Value = records.lines().find(|line| line.contains("\"run.resumed\"")).unwrap().parse().unwrap();
    assert_eq!(resumed["event"]["repaired"], serde_json::json!({ "made": 1, "removed": 2 }));
    assert_eq!(resumed["event"]["caches_removed"], true);
    assert_eq!(bench.glovebox(&["verify", "r"]).code, 0);
}

#[test]
fn what_a_builder_keeps_is_in_no_verifiers_stage_and_back() {
    let look = "test -z \"$(find $XDG_CACHE_HOME -type f)\" && test -z \"$(find $PYTHONPYCACHEPREFIX -name 'evil*')\" && \
                echo verdict > $XDG_CACHE_HOME/verdict";
    let bench = bench(&[("build", BUILDER), ("check", &tool(look)), ("again", BUILDER)]);
    let plant = "echo pass > $XDG_CACHE_HOME/verdict; mkdir -p $RUFF_CACHE_DIR; echo x > $RUFF_CACHE_DIR/x; \
                 for f in $(find $PYTHONPYCACHEPREFIX -type d); do touch $f/evil.pyc; done; \
                 ln -s ../../checker $XDG_CACHE_HOME/up; true";
    script(
        &bench,
        &[
            ("build", plant),
            ("again", "test \"$(cat $XDG_CACHE_HOME/verdict)\" = pass && mkdir src && echo s > src/seen"),
        ],
    );
    run_scripted(&bench).ends(0).says("verified     check");
    bench.glovebox(&["diff", "r"]).says("src/seen");
}

#[test]
fn nothing_is_kept_of_a_stage_with_hold_outs_in_reach() {
    let judge = "test -z \"$(ls -A $XDG_CACHE_HOME)\" && cp scripts/scenarios/secret.txt $XDG_CACHE_HOME/leak";
    let (judge, look) = (tool(judge), tool("test -f scripts/scenarios/secret.txt && test ! -e $XDG_CACHE_HOME/leak"));
    let bench = bench(&[("judge", &judge), ("again", &judge), ("build", BUILDER), ("look", &look)]);
    bench.write("scripts/scenarios/secret.txt", "XYZZY\n");
    let seek = "! grep -rqs XYZZY $HOME . && mkdir src && echo s > src/clean";
    script(&bench, &[("build", seek)]);
    run_scripted(&bench).ends(0);
    bench.glovebox(&["diff", "r"]).says("src/clean");
    let mut kept = Command::new("grep");
    kept.args(["-rqs", "XYZZY"]).arg(bench.run_folder("r").join("cache"));
    assert!(!kept.status().unwrap().success(), "a cache holds what a hold-out says");
}

/// A file that a builder copied to a place that no diff shows must not be readable by a builder that may not read the
/// original.
#[test]
fn a_stage_that_may_not_read_everything_finds_nothing_that_others_keep() {
    let plant = "mkdir -p build && cp private/s build/s && cp private/s $XDG_CACHE_HOME/s";
    let seek = "! grep -rqs XYZZY . $XDG_CACHE_HOME && mkdir -p build && echo own > build/own && echo s > src/clean";
    let narrow = [
        "read_paths=\"src/\"",
        "\"codex.strict_read_scope\"=true, \"codex.add_dirs\"=\"src\"",
        "\"codex.block_read_paths\"=\"private/\"",
    ];
    for narrowed in narrow {
        let seeker = format!("{BUILDER}, {narrowed}");
        let bench = bench(&[("plant", BUILDER), ("seek", &seeker), ("last", BUILDER)]);
        bench.write(".gitignore", "build/\n");
        bench.write("private/s", "XYZZY\n");
        bench.write("src/main.txt", "1\n");
        script(&bench, &[("plant", plant), ("seek", seek), ("last", "test -f build/s && echo s > src/last")]);
        run_scripted(&bench).ends(0);
        let diff = bench.glovebox(&["diff", "r"]);
        diff.says("src/clean");
        // With `codex.block_read_paths="private/"` a stage may read the folder of the hold-outs, so it may read more
        // than the others, even if the project has no hold-outs.
        assert!(diff.stdout.contains("src/last") || narrowed.contains("block_read"));
    }
}

/// A builder's program that a test stage executes can change the caches of that stage. No diff shows this, so the next
/// verdict reports it.
#[test]
fn a_verdict_says_that_it_began_with_what_builders_code_left() {
    let test = tool("sh src/prog.sh; touch -d 2036-01-01 build/prog 2>/dev/null; test -e build/prog || test -e src/ok");
    let check = tool("test -e build/prog");
    let bench = bench(&[("first", &test), ("build", BUILDER), ("test", &test), ("check", &check)]);
    bench.write(".gitignore", "build/\n");
    bench.write("src/prog.sh", "true\n");
    bench.write("src/ok", "ok\n");
    script(&bench, &[("build", "echo 'mkdir -p build; echo forged > build/prog' > src/prog.sh")]);
    let answer = run_scripted(&bench);
    answer.ends(0).says("verified     first").says("verified     test");
    answer.says("verified (with caches of builders' code) check").says("glovebox explain with-caches");
    let said = bench.glovebox(&["show", "r", "--json"]).json()["receipts"].to_string();
    assert!(said.contains("builders_caches"), "{said}");
    // With separate caches, created from the files of the start of the run, the verdict does not depend on builders'
    // code.
    let own = check.replace("test -e build/prog", "test ! -e build/prog && test ! -e cached/x")
        + ", cache=\"cached/\", cache_from=\"base\"";
    bench.write("pipeline.dot", &bench.read("pipeline.dot").replace(&check, &own));
    let answer = bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "s"]);
    answer.ends(0).says("verified     check").never_says("builders' code");
}

#[test]
fn builders_code_never_changes_compiled_modules_of_the_interpreter() {
    let forge = "import glob, os\nfor f in glob.glob(os.environ['PYTHONPYCACHEPREFIX'] + '/**/colorsys.*.pyc', recursive=True):\n    \
                 data = open(f, 'rb').read()\n    \
                 import marshal\n    \
                 open(f, 'wb').write(data[:16] + marshal.dumps(compile('forged = True', 'colorsys', 'exec')))\n";
    let warm = tool("python3 -c 'import colorsys' && find $PYTHONPYCACHEPREFIX -name 'colorsys.*' | grep -q .");
    let test = tool("python3 src/mod.py; true");
    let judge = tool("python3 -c 'import colorsys; assert not hasattr(colorsys, \"forged\")'");
    let bench = bench(&[("warm", &warm), ("build", BUILDER), ("test", &test), ("judge", &judge)]);
    bench.write("src/mod.py", "pass\n");
    bench.write("forge.py", forge);
    script(&bench, &[("build", "cp forge.py src/mod.py")]);
    run_scripted(&bench).ends(0).says("verified     judge");
    // If a builder has already changed a file, new compiled modules of the interpreter are discarded at the end of the stage.
    let first = self::bench(&[
        ("build", BUILDER),
        ("test", &tool("python3 -c 'import colorsys'; python3 src/mod.py; true")),
        ("judge", &judge),
    ]);
    first.write("src/mod.py", "pass\n");
    first.write("forge.py", forge);
    script(&first, &[("build", "cp forge.py src/mod.py")]);
    run_scripted(&first).ends(0).says("verified     judge");
}

/// A builder must not choose the time of a file: tools that trust times would use their result for the old content.
#[test]
fn a_builder_cannot_set_back_the_time_of_what_it_changed() {
    let first = tool("stat -c %Y src/main.txt > $XDG_CACHE_HOME/time; true");
    let look = tool("grep -q 2 src/main.txt && test $(stat -c %Y src/main.txt) -gt $(cat $XDG_CACHE_HOME/time)");
    let bench = bench(&[("first", &first), ("build", BUILDER), ("look", &look)]);
    bench.write("src/main.txt", "1\n");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(10);
    std::fs::File::open(bench.project().join("src/main.txt")).unwrap().set_modified(old).unwrap();
    script(&bench, &[("build", "touch -r src/main.txt /tmp/t; echo 2 > src/main.txt; touch -r /tmp/t src/main.txt")]);
    run_scripted(&bench).ends(0);
}

/// Runs a command as an ordinary user that cannot create namespaces, so that Landlock is the best sandbox.
fn in_landlock(bench: &Workbench, words: &[&str]) -> Option<Answer> {
    let limit =
        "echo 1 > /proc/sys/user/max_user_namespaces && exec unshare -U --map-user=1000 --map-group=1000 \"$@\"";
    let behind = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["-Ur", "sh", "-c", limit, "sh", program]).current_dir(bench.project());
        command
    };
    let own = bench.command(words);
    let mut command = behind(own.get_program().to_str()?);
    command.args(own.get_args());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let can = behind("true").output().is_ok_and(|output| output.status.success());
    // The tier is cached next to the compiled components.
    let caches = bench.outside().join("caches");
    can.then(|| Answer::of(command.env("GLOVEBOX_CACHE_DIR", caches).env("GLOVEBOX_STATE_DIR", state_dir())))
}

#[test]
fn every_tier_keeps_by_products_and_caches_and_names_dependencies_that_it_cannot_show() {
    let build = tool("mkdir target; echo o > target/app; echo warm > $XDG_CACHE_HOME/x; test ! -e node_modules");
    let check = tool("test -f target/app && test \"$(cat $XDG_CACHE_HOME/x)\" = warm && echo more >> target/app");
    let last = tool("test $(cat target/app | wc -l) = 2");
    let bench = bench(&[("build", &build), ("check", &check), ("last", &last)]);
    bench.write(".gitignore", "target/\nnode_modules/\n");
    bench.write("package.json", "{ \"dependencies\": { \"a\": \"1\" } }");
    bench.write("node_modules/a/index.js", "a");
    bench.write("glovebox.toml", &format!("{TOOLCHAIN}[sandbox]\nrequire = \"landlock\"\n"));
    let runs = |name: &str, run: &dyn Fn(&[&str]) -> Option<Answer>, flags: &[&str]| {
        let Some(answer) = run(&[&["run", "pipeline.dot", "--run-id", name], flags].concat()) else {
            return workbench::not_run(&format!("tier {name}"), "no namespace can be made here");
        };
        answer.ends(0).says(&format!("({name})")).says("left out 1 file that git ignores (target/)");
        answer.says(&format!("warning: `node_modules/` is not in this run: the sandbox `{name}` cannot show it"));
        answer.says("help: copy it with `include = [\"node_modules/\"]` under `[workspace]` in glovebox.toml");
        let (warned, began) = (answer.stderr.find("warning:"), answer.stderr.find("run started"));
        assert!(warned.unwrap() < began.unwrap(), "before the first stage");
        assert!(bench.glovebox(&["diff", name]).ends(0).stdout.is_empty());
    };
    let plain = |words: &[&str]| Some(bench.glovebox(words));
    runs("unconfined", &plain, &["--dangerously-no-sandbox"]);
    runs("landlock", &|words| in_landlock(&bench, words), &[]);
    // The setting that the message suggests.
    bench.write(
        "glovebox.toml",
        &format!("[workspace]\ninclude = [\"node_modules/\"]\n{TOOLCHAIN}[sandbox]\nrequire = \"landlock\"\n"),
    );
    bench.write(
        "pipeline.dot",
        &bench.read("pipeline.dot").replace("test ! -e node_modules", "test -f node_modules/a/index.js"),
    );
    let words = ["run", "pipeline.dot", "--run-id", "included"];
    if let Some(answer) = in_landlock(&bench, &words) {
        answer.ends(0).never_says("warning");
    }
    bench
        .glovebox(&[&words[..3], &["unconfined-2", "--dangerously-no-sandbox"]].concat())
        .ends(0)
        .never_says("is not in this run");
}
