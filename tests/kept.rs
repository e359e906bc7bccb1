//! What toolchains keep from stage to stage outside the workspace, and what by-products and dependencies come to in every tier. Each
//! attack has a witness in a later stage, or in what `diff` shows.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod workbench;

use std::process::Command;
use workbench::{Answer, Workbench, state_dir};

const TOOLCHAIN: &str = "[exec]\ntoolchains = [\"python\"]\n";

/// A project of Python with stages in a row.
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
    format!("shape=parallelogram, tool_command={}, allowed_write_paths=\"\"", serde_json::Value::from(command))
}

/// A builder with a shell.
const BUILDER: &str = "prompt=\"build\", allowed_commands=\"*\", allowed_write_paths=\"src/\"";

fn script(bench: &Workbench, turns: &[(&str, &str)]) {
    let turn = |(node, command): &(&str, &str)| {
        let command = serde_json::Value::from(*command);
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
    // A run begins without what another one left.
    let fresh = self::bench(&[("only", &tool("test -z \"$(ls -A $XDG_CACHE_HOME)\""))]);
    fresh.glovebox(&["run", "pipeline.dot"]).ends(0);
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

/// A file's time must not be the builder's choice: tools that trust times would judge what was there before.
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

/// Runs the words as an ordinary user for whom no namespace can be made, so that Landlock is the best sandbox.
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
    // The tier is remembered beside compiled components.
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
    // As the remedy says.
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
