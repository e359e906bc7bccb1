//! Child pipelines with the real binary: a node that runs another pipeline file, and a supervisor that observes its
//! child while the child runs (spec §4.11, §9.4).

use crate::workbench::journal::{copy_prefix, end};
use crate::workbench::{Answer, Workbench};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Returns a pipeline with a start node `start`, an exit `done` and this body.
fn graph(attributes: &str, body: &str) -> String {
    format!("digraph g {{\ngraph [{attributes}]\nstart [shape=Mdiamond]; done [shape=Msquare]\n{body}\n}}\n")
}

fn tool(name: &str, command: &str, writes: &str) -> String {
    format!("{name} [shape=parallelogram, tool_command=\"{command}\", allowed_write_paths=\"{writes}\"]\n")
}

/// Returns the declaration of a node `build` that runs `children/build.dot`.
fn node(attributes: &str) -> String {
    format!("build [type=subpipeline, \"stack.child_dotfile\"=\"children/build.dot\"{attributes}]\n")
}

/// Creates a project with the pipeline `start -> build -> check -> done` and the child pipeline of `build`.
fn project(setting: &str, child: &str) -> Workbench {
    let check = tool("check", "cat out/*", "");
    let bench = Workbench::with_pipeline(&graph(
        "goal=ship",
        &format!("{}{check}start -> build -> check -> done", node(setting)),
    ));
    bench.write("children/build.dot", child);
    bench
}

fn run(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
}

fn check(bench: &Workbench) -> Answer {
    bench.glovebox(&["check", "pipeline.dot"])
}

fn events(bench: &Workbench, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(bench.run_folder("r").join("progress.ndjson")).unwrap_or_default();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
    records.filter(|event| event["kind"] == kind).collect()
}

/// Returns the nodes of all finished attempts in order, each with its status.
fn ended(bench: &Workbench) -> Vec<String> {
    let ended = events(bench, "stage.finished");
    ended
        .iter()
        .map(|event| format!("{} {}", event["node"].as_str().unwrap(), event["outcome"]["status"].as_str().unwrap()))
        .collect()
}

fn context(bench: &Workbench) -> Value {
    bench.run_json("r", "checkpoint.json")["context"].clone()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn writes(name: &str) -> String {
    tool(name, &format!("mkdir -p out; echo {name} > out/{name}"), "out/")
}

#[test]
fn a_child_runs_as_part_of_the_run_around_it() {
    let child = graph("goal=bricks", &(writes("a") + &writes("b") + "start -> a -> b -> done"));
    let bench = project("", &child);
    let before = bench.snapshot();
    check(&bench).ends(0);
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("build__a").says("out/");
    run(&bench).ends(0).says("build begins branch build");
    assert_eq!(bench.snapshot(), before, "a run never writes the user's tree");
    assert_eq!(ended(&bench), ["build__a success", "build__b success", "check success"]);
    assert_eq!(bench.run_text("r", "workspace/out/b"), "b\n");
    bench.glovebox(&["diff", "r"]).ends(0).says("+++ b/out/a").says("+++ b/out/b");
    bench.glovebox(&["apply", "r"]).ends(0);
    assert!(bench.has("out/a") && bench.has("out/b"));
}

#[test]
fn a_child_that_fails_fails_the_node_and_its_changes_are_not_taken() {
    let child = graph("", &(writes("a") + &tool("b", "exit 7", "") + "start -> a -> b -> done"));
    let bench = project("", &child);
    run(&bench).ends(1).says("build__b");
    assert!(!bench.run_folder("r").join("workspace/out").exists());
    // An edge for the failure is followed.
    let repair = tool("repair", "mkdir -p out; echo repaired > out/repaired", "out/");
    let body = node("")
        + &repair
        + "start -> build\nbuild -> done [condition=\"outcome=success\"]\nbuild -> repair [condition=\"outcome=fail\"]\nrepair -> done";
    bench.write("pipeline.dot", &graph("", &body));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "s"]).ends(0);
    assert_eq!(bench.run_text("s", "workspace/out/repaired"), "repaired\n");
    assert!(!bench.run_folder("s").join("workspace/out/a").exists());
}

#[test]
fn a_goal_gate_of_the_child_leads_back_in_the_child() {
    let again = tool("test", "test -e out/b", "").replace("]\n", ", goal_gate=true]\n");
    let twice = tool("a", "mkdir -p out; if test -e out/a; then echo b > out/b; fi; echo a > out/a", "out/");
    let on_fail =
        "test -> done [condition=\"outcome=success\"]\ntest -> rest [condition=\"outcome=fail\"]\nrest -> done";
    let body = twice + &again + "rest [shape=diamond]\nstart -> a -> test\n" + on_fail;
    let bench = project("", &graph("retry_target=a", &body));
    run(&bench).ends(0).never_says("warning");
    let unmet = events(&bench, "gate.unmet");
    assert_eq!(unmet.len(), 1);
    assert_eq!((&unmet[0]["gate"], &unmet[0]["target"]), (&"build__test".into(), &"build__a".into()));
    assert_eq!(events(&bench, "run.finished").len(), 1, "the child's exit ends the child, not the run");
}

#[test]
fn context_goes_in_and_out_by_name_and_not_else() {
    let turn = |node: &str, updates: &str| {
        format!(
            "[[node.{node}]]\ntext = \"ok\"\noutcome = {{ status = \"success\", context_updates = {{ {updates} }} }}\n"
        )
    };
    let script = turn("first", "secret = \"s1\", for_child = \"c1\"")
        + &turn("build__inner", "result = \"r1\", private = \"p1\"");
    let inner = "inner [prompt=\"goal $goal\", allowed_write_paths=\"\"]\n";
    let route = "route [shape=diamond]\nleak [shape=parallelogram, tool_command=\"exit 9\", allowed_write_paths=\"\"]\n\
                 start -> inner -> route\nroute -> leak [condition=\"context.secret=s1\"]\n\
                 route -> done [condition=\"context.for_child=c1\"]\nleak -> done";
    let body = format!(
        "first [prompt=x, allowed_write_paths=\"\"]\n{}start -> first -> build -> done",
        node(", \"stack.context_in\"=\"for_child\", \"stack.context_out\"=\"result\"")
    );
    let bench = Workbench::with_pipeline(&graph("goal=ship", &body));
    bench.write("children/build.dot", &graph("goal=bricks", &(inner.to_owned() + route)));
    bench.write("script.toml", &script);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", "script.toml"]).ends(0);
    let context = context(&bench);
    assert_eq!((&context["result"], &context["secret"]), (&"r1".into(), &"s1".into()));
    assert_eq!(context["private"], Value::Null);
    assert_eq!(context["graph.goal"], "ship");
    assert!(bench.run_text("r", "branches/build/build__inner/prompt.md").contains("goal bricks"));
}

/// Kills a run at several moments and resumes it.
#[test]
fn a_run_killed_in_a_child_goes_on_to_the_same_end() {
    let slow = |name: &str| tool(name, &format!("mkdir -p out; echo {name} >> out/log; sleep 0.2"), "out/");
    let child = graph("", &(slow("a") + &slow("b") + &slow("c") + "start -> a -> b -> c -> done"));
    for kill_after in [50, 200, 400, 600, 800] {
        let bench = project(", \"stack.context_out\"=\"tool.output\"", &child);
        let mut running = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
        until("the run begins", || !events(&bench, "run.started").is_empty());
        std::thread::sleep(Duration::from_millis(kill_after));
        running.kill().unwrap();
        running.wait().unwrap();
        // The run stored the child pipeline at its start.
        bench.write("children/build.dot", "no pipeline");
        bench.glovebox(&["resume", "r"]).ends(0);
        assert_eq!(bench.run_text("r", "workspace/out/log"), "a\nb\nc\n", "killed after {kill_after} ms");
    }
}

#[test]
fn a_node_that_is_visited_again_runs_its_child_again() {
    let child = graph("", &(tool("a", "mkdir -p out; echo a >> out/log", "out/") + "start -> a -> done"));
    let bench = project("", &child);
    let once = tool("once", "test $(wc -l < out/log) -ge 3", "");
    let body = format!(
        "{}{once}start -> build -> once\nonce -> done [condition=\"outcome=success\"]\nonce -> build [condition=\"outcome=fail\"]",
        node("")
    );
    bench.write("pipeline.dot", &graph("", &body));
    run(&bench).ends(0).says("build-3 branch success");
    assert_eq!(bench.run_text("r", "workspace/out/log"), "a\na\na\n");
}

#[test]
fn children_of_children_run_inside_them_and_a_file_that_leads_back_is_refused() {
    let bench = project(
        "",
        &graph("", &(node("").replace("children/", "").replace("build.dot", "inner.dot") + "start -> build -> done")),
    );
    bench.write("children/inner.dot", &graph("", &(writes("a") + "start -> a -> done")));
    run(&bench).ends(0).says("build-build__build/build__build__a success");
    assert_eq!(bench.run_text("r", "workspace/out/a"), "a\n");
    bench.write("children/inner.dot", &graph("", &(node("").replace("children/", "") + "start -> build -> done")));
    let again = bench.glovebox(&["run", "pipeline.dot", "--run-id", "s"]);
    again.ends(3).says("leads back to itself");
    check(&bench).ends(3).says("leads back to itself");
    assert!(!bench.run_folder("s").exists());
}

#[test]
fn files_that_multiply_their_children_are_refused_before_they_fill_the_memory() {
    const FILES: usize = 15;
    let bench = Workbench::new();
    for number in 0..FILES {
        let child = format!("type=subpipeline, \"stack.child_dotfile\"=\"{}.dot\"", number + 1);
        let nodes: String = (0..20).map(|at| format!("n{at} [{child}]\n")).collect();
        let edges: String = (0..20).map(|at| format!("start -> n{at} -> done\n")).collect();
        bench.write(&format!("{number}.dot"), &graph("goal=x", &(nodes + &edges)));
    }
    bench.write(
        &format!("{FILES}.dot"),
        &graph("goal=x", &format!("{}start -> leaf -> done", tool("leaf", "true", ""))),
    );
    let refused = "the pipeline and its child pipelines have more than 10000 stages";
    bench.glovebox(&["check", "0.dot"]).ends(3).says(refused);
    bench.glovebox(&["plan", "0.dot"]).ends(3).says("the child pipeline `1.dot` cannot run");
    // A tree of child pipelines within the limit is checked completely.
    bench.glovebox(&["check", &format!("{}.dot", FILES - 2)]).ends(0).never_says(refused);
}

#[test]
fn what_a_child_may_not_ask_for_is_refused_before_the_first_stage() {
    let of_child = [
        (
            ", allowed_write_paths=\"src/\"",
            "",
            "",
            "may write `out/`, but `build`, which runs this child pipeline, may not",
        ),
        (", prompt=x", "", "", "`prompt` has no effect on `build`"),
        (", timeout=\"5s\"", "max_wall_time=\"9s\"", "", "remove one of them"),
        (
            "",
            "max_tokens=5",
            "",
            "`max_tokens` of the graph in `children/build.dot` holds for a whole run, but a child pipeline is only a part of a run",
        ),
        ("", "", "a -> a [loop_restart=true, condition=\"outcome=retry\"]\n", "would restart the whole run"),
        ("", "", "b [prompt=x, type=nonsense]\n", "children/build.dot"),
    ];
    for (setting, attributes, more, words) in of_child {
        let bench = project(setting, &graph(attributes, &(writes("a") + more + "start -> a -> done")));
        check(&bench).ends(3).says(words);
        run(&bench).ends(3).says("build");
        assert!(!bench.run_folder("r").exists(), "{words}");
    }
    for (name, words) in [("gone.dot", "the file does not exist"), ("../../beside.dot", "the path contains `..`")] {
        let bench = project("", "");
        bench.write("pipeline.dot", &bench.read("pipeline.dot").replace("children/build.dot", name));
        check(&bench).ends(3).says(words);
        run(&bench).ends(3).says(words);
    }
}

#[test]
fn a_child_is_checked_in_its_own_file_and_told_of_there() {
    let bench = project("", &graph("", "a [prompt=x]\nstart -> a -> done"));
    bench.write("pipeline.dot", &bench.read("pipeline.dot").replace("child_dotfile", "child_workflow"));
    let answer = check(&bench);
    answer.ends(0).says("2 checked").says("Glovebox reads `stack.child_workflow` as `stack.child_dotfile`");
    let found = bench.glovebox(&["check", "pipeline.dot", "--format", "json"]).json();
    let of_rule = |rule: &str| -> Vec<String> {
        let found = found.as_array().unwrap().iter().filter(|found| found["rule"] == rule);
        found.map(|found| found["file"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of_rule("write_scope_missing"), ["children/build.dot"]);
    let plan = bench.glovebox(&["plan", "pipeline.dot", "--json"]).json();
    let node = plan["nodes"].as_array().unwrap().iter().find(|node| node["id"] == "build").unwrap();
    assert_eq!(
        (&node["parallel"]["child"]["file"], &node["parallel"]["child"]["nodes"]),
        (&"children/build.dot".into(), &3.into())
    );
}

#[test]
fn a_file_cannot_write_what_only_the_splice_writes() {
    for written in [
        "a [prompt=x, \"stack.child\"=\"b.dot\"]",
        "a [prompt=x, \"stack.child_of\"=\"start\"]",
        "a [prompt=x, \"stack.child_max_steps\"=9]",
        "a [type=\"stack.child_exit\"]",
    ] {
        let bench = Workbench::with_pipeline(&graph("", &format!("{written}\nstart -> a -> done")));
        check(&bench).ends(3).says("only Glovebox sets this attribute");
        run(&bench).ends(3);
    }
}

#[test]
fn bounds_of_the_run_and_of_the_child_hold_together() {
    let body = writes("a") + &writes("b") + "start -> a -> b -> done";
    let bench = project("", &graph("max_steps=2", &body));
    let answer = run(&bench);
    answer.ends(5).says("the child pipeline of `build` exceeded its `max_steps` (2)");
    answer.says("help         raise `max_steps` of the graph in the child's file, then run again");
    let bench = project("", &graph("", &body));
    let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--max-steps", "3"]);
    answer.ends(5).says("max_steps");
    let slow = tool("a", "sleep 30", "") + "start -> a -> done";
    let bench = project("", &graph("max_wall_time=\"1s\"", &slow));
    let begin = Instant::now();
    run(&bench).says("build");
    assert!(begin.elapsed() < Duration::from_secs(20), "the child's own time ends it");
}

#[test]
fn canceling_the_run_ends_the_child() {
    let length = format!("300.{}7", std::process::id());
    let child = graph("", &(tool("a", &format!("sleep {length}"), "") + "start -> a -> done"));
    let bench = project("", &child);
    let running = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    until("the child's stage begins", || !events(&bench, "stage.started").is_empty());
    bench.glovebox(&["cancel", "r"]).ends(0);
    Answer::from_child(running).ends(130);
    let words = format!("sleep\0{length}\0");
    let mut processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_undone = processes
        .any(|process| std::fs::read(process.path().join("cmdline")).is_ok_and(|line| line == words.as_bytes()));
    assert!(!is_undone);
}

/// Creates a supervisor `boss` of a child with three slow stages. Two edges leave `boss`.
fn supervised(attributes: &str) -> Workbench {
    let boss =
        format!("boss [shape=house, \"manager.poll_interval\"=\"200ms\", allowed_write_paths=\"out/\"{attributes}]\n");
    let check = tool("check", "ls -R", "");
    let edges = "start -> boss\nboss -> check [condition=\"outcome=success\"]\nboss -> check [condition=\"outcome=fail\"]\ncheck -> done";
    let bench = Workbench::with_pipeline(&graph(
        "goal=ship, \"stack.child_dotfile\"=\"children/slow.dot\"",
        &(boss + &check + edges),
    ));
    let slow = |name: &str| tool(name, &format!("mkdir -p out; echo {name} > out/{name}; sleep 0.7"), "out/");
    let child =
        slow("a") + &slow("b") + "last [prompt=\"the end\", allowed_write_paths=\"\"]\nstart -> a -> b -> last -> done";
    bench.write("children/slow.dot", &graph("goal=bricks", &child));
    bench
}

#[test]
fn a_supervisor_looks_at_its_child_until_it_ends() {
    let bench = supervised("");
    run(&bench).ends(0);
    let looks = events(&bench, "child.observed");
    assert!(looks.len() >= 2, "{looks:?}");
    assert_eq!(looks[0]["context"]["stack.child.status"], "running");
    let stages: Vec<&Value> = looks.iter().map(|look| &look["context"]["stack.child.stage"]).collect();
    assert!(stages.contains(&&"boss__a".into()) && stages.contains(&&"boss__b".into()), "{stages:?}");
    let context = context(&bench);
    assert_eq!(
        (&context["stack.child.status"], &context["stack.child.outcome"]),
        (&"completed".into(), &"success".into())
    );
    assert_eq!(bench.run_text("r", "workspace/out/b"), "b\n");
}

#[test]
fn a_supervisor_ends_its_child_at_its_bound_or_when_its_condition_holds() {
    let bench = supervised(", \"manager.max_cycles\"=2");
    run(&bench).ends(0).says("Max cycles exceeded: `boss` polled its child pipeline 2 times");
    assert_eq!(context(&bench)["stack.child.status"], "failed");
    assert!(!bench.run_folder("r").join("workspace/out").exists(), "nothing of a child that failed is taken");
    let bench = supervised(", \"manager.stop_condition\"=\"context.stack.child.stage=boss__b\"");
    run(&bench).ends(0);
    assert_eq!(context(&bench)["stack.child.status"], "completed");
    let ended = ended(&bench);
    assert!(
        ended.contains(&"boss__a success".to_owned()) && !ended.iter().any(|end| end.starts_with("boss__last")),
        "{ended:?}"
    );
}

#[test]
fn what_a_supervisor_says_reaches_the_next_model_of_its_child() {
    let bench = supervised(", \"manager.actions\"=\"observe,steer,wait\", prompt=\"Hurry, $goal waits\"");
    run(&bench).ends(0);
    let prompt = bench.run_text("r", "branches/boss/boss__last/prompt.md");
    assert!(prompt.contains("Hurry, ship waits"), "{prompt}");
    let looks = events(&bench, "child.observed");
    assert_eq!(looks.iter().filter(|look| !look["steering"].is_null()).count(), 1, "it is said once");
}

#[test]
fn a_run_killed_while_a_supervisor_looks_goes_on_counting() {
    let bench = supervised(", \"manager.max_cycles\"=4");
    let mut running = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    until("two looks", || events(&bench, "child.observed").len() >= 2);
    running.kill().unwrap();
    running.wait().unwrap();
    bench.glovebox(&["resume", "r"]).ends(0).says("Max cycles exceeded");
    let cycles: Vec<Value> = events(&bench, "child.observed").iter().map(|look| look["cycle"].clone()).collect();
    assert_eq!(cycles, [1, 2, 3, 4]);
}

/// A pipeline with a child whose goal gate succeeds in the second round, and with a parallel node that has a child in
/// one branch.
const PARENT: &str = r#"digraph g {
    graph [goal="whole"]
    start [shape=Mdiamond]
    part  [type=subpipeline, "stack.child_dotfile"="part.dot", "stack.context_out"="round", allowed_write_paths="out/"]
    fork  [shape=component]
    left  [type=subpipeline, "stack.child_dotfile"="small.dot", allowed_write_paths="out/left"]
    right [shape=parallelogram, tool_command="echo right > out/right", allowed_write_paths="out/right"]
    join  [shape=tripleoctagon, merge=all]
    done  [shape=Msquare]
    start -> part -> fork
    fork -> left -> join
    fork -> right -> join
    join -> done
}
"#;
const PART: &str = r#"digraph part {
    graph [goal="a part", retry_target=make, max_steps=30]
    start [shape=Mdiamond]
    make  [prompt="make", allowed_write_paths="out/"]
    test  [shape=parallelogram, tool_command="grep -q two out/made", allowed_write_paths="", goal_gate=true]
    done  [shape=Msquare]
    start -> make -> test
    test -> done [condition="outcome=success"]
    test -> done [condition="outcome=fail"]
}
"#;
const SMALL: &str = r#"digraph small {
    start [shape=Mdiamond]
    write [shape=parallelogram, tool_command="echo left > out/left", allowed_write_paths="out/left"]
    done  [shape=Msquare]
    start -> write -> done
}
"#;
const PARENT_SCRIPT: &str = r#"
[[node.part__make]]
tool = [{ name = "write_file", arguments = { path = "out/made", content = "one\n" } }]
[[node.part__make]]
text = "done"
outcome = { status = "success", context_updates = { round = "1" } }
[[node.part__make]]
tool = [{ name = "write_file", arguments = { path = "out/made", content = "two\n" } }]
[[node.part__make]]
text = "done"
outcome = { status = "success", context_updates = { round = "2" } }
"#;

#[test]
fn every_prefix_of_a_journal_with_child_pipelines_leads_to_the_same_end() {
    let bench = Workbench::with_pipeline(PARENT);
    bench.write("part.dot", PART);
    bench.write("small.dot", SMALL);
    bench.write("script.toml", PARENT_SCRIPT);
    bench.write("out/keep", "");
    let lines = bench
        .glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--json", "--run-id", "r"])
        .ends(0)
        .json_lines()
        .len()
        - 1;
    let expected = end(&bench.run_folder("r"));
    assert_eq!((expected.workspace["out/made"].as_str(), expected.workspace["out/left"].as_str()), ("two\n", "left\n"));
    for kept in 1..=lines {
        let runs = format!(".glovebox/prefix-{kept}");
        let run = bench.project().join(&runs).join("r");
        copy_prefix(&bench, &run, kept as i64);
        bench.glovebox(&["resume", "r", "--runs-dir", &runs, "--quiet"]).ends(0);
        let found = end(&run);
        assert_eq!(
            (&found.last, &found.workspace),
            (&expected.last, &expected.workspace),
            "from {kept} of {lines} records"
        );
        assert_eq!(found.visited.as_array().map(Vec::len), expected.visited.as_array().map(Vec::len), "from {kept}");
    }
}

#[test]
fn a_child_that_does_not_start_by_itself_waits_for_a_person() {
    let bench = supervised(", \"stack.child_autostart\"=false");
    run(&bench).ends(10).says("Start the child pipeline `children/slow.dot`?");
    assert!(events(&bench, "stage.started").is_empty(), "nothing of the child has started");
    bench.glovebox(&["answer", "r", "boss__confirm", "start"]).ends(0);
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(bench.run_text("r", "workspace/out/b"), "b\n");
    bench.glovebox(&["check", "pipeline.dot"]).ends(0);
    let wrong = supervised(", \"stack.child_autostart\"=perhaps");
    wrong.glovebox(&["check", "pipeline.dot"]).ends(3).says("stack.child_autostart");
}

#[test]
fn the_commands_of_a_child_start_in_its_folder() {
    let child = tool("where", "pwd | sed 's,.*/,,' > at", "services/") + "start -> where -> done";
    let bench = |folder: &str| {
        let part = format!(
            "part [type=subpipeline, \"stack.child_dotfile\"=\"c.dot\", \"stack.child_workdir\"=\"{folder}\", \
             allowed_write_paths=\"services/\"]\nstart -> part -> done"
        );
        let bench = Workbench::with_pipeline(&graph("goal=ship", &part));
        bench.write("c.dot", &graph("goal=bricks", &child));
        bench.write("services/keep.txt", "");
        bench
    };
    let inside = bench("services");
    run(&inside).ends(0);
    assert_eq!(inside.run_text("r", "workspace/services/at"), "services\n");
    bench("../other").glovebox(&["check", "pipeline.dot"]).ends(3).says("expected a folder in the workspace");
}
