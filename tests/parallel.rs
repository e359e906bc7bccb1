//! Branches with the real binary: in parallel, each with its own files, joined by every policy, canceled, killed and
//! resumed.

use crate::case::Fact::{Is, Says};
use crate::case::{Case, PLAIN, check_all};
use crate::workbench::{Answer, Workbench};
use serde_json::Value;
use std::time::{Duration, Instant};

fn tool(name: &str, command: &str, writes: &str) -> String {
    format!("{name} [shape=parallelogram, tool_command=\"{command}\", allowed_write_paths=\"{writes}\"]\n")
}

/// Creates a pipeline with a parallel node `f` and its fan-in `j`, and one stage in each branch.
fn fork(setting: &str, join: &str, stages: &[(&str, &str, &str)]) -> Workbench {
    let mut graph = format!(
        "digraph g {{\nstart [shape=Mdiamond]; done [shape=Msquare]\nf [shape=component{setting}]\nj [shape=tripleoctagon{join}]\n"
    );
    for (name, command, writes) in stages {
        graph += &tool(name, command, writes);
        graph += &format!("f -> {name} -> j\n");
    }
    Workbench::with_pipeline(&(graph + "start -> f\nj -> done\n}\n"))
}

fn run(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
}

fn events(bench: &Workbench, kind: &str) -> Vec<Value> {
    let lines = bench.run_text("r", "progress.ndjson");
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|record| record["event"].clone()).filter(|event| event["kind"] == kind).collect()
}

fn ends(bench: &Workbench) -> Vec<String> {
    let ended = events(bench, "branch.finished");
    let mut ended: Vec<String> = ended
        .iter()
        .map(|event| format!("{} {}", event["branch"].as_str().unwrap(), event["outcome"].as_str().unwrap()))
        .collect();
    ended.sort();
    ended
}

#[test]
fn branches_run_at_the_same_time_and_see_nothing_of_each_other() {
    let stages = [
        ("left", "sleep 1; test ! -e right.txt; echo left > left.txt", "left.txt"),
        ("right", "sleep 1; test ! -e left.txt; echo right > right.txt", "right.txt"),
    ];
    let bench = fork("", ", merge=all", &stages);
    let before = bench.snapshot();
    run(&bench).ends(0).says("f-left/left started").says("j success: chose f-left, merged 2 changes");
    assert_eq!(bench.snapshot(), before, "a run never writes the user's tree");
    let starts: Vec<Value> = events(&bench, "stage.started");
    let first_end = bench.run_text("r", "progress.ndjson").find("\"stage.finished\"").unwrap();
    let both = bench.run_text("r", "progress.ndjson")[..first_end].matches("\"stage.started\"").count();
    assert_eq!((starts.len(), both), (2, 2), "both began before one of them ended");
    for (name, text) in [("left", "left\n"), ("right", "right\n")] {
        assert_eq!(bench.run_text("r", &format!("workspace/{name}.txt")), text);
        let status = bench.run_json("r", &format!("branches/f-{name}/{name}/status.json"));
        assert_eq!(status["status_owner_branch_id"], format!("f-{name}"));
    }
    bench.glovebox(&["diff", "r"]).ends(0).says("+++ b/left.txt").says("+++ b/right.txt");
    bench.glovebox(&["apply", "r"]).ends(0);
    assert!(bench.has("left.txt") && bench.has("right.txt"));
    bench.glovebox(&["show", "r", "left"]).ends(0).says("exit 0");
    bench.glovebox(&["graph", "pipeline.dot", "--run", "r", "--text"]);
}

#[test]
fn only_the_winners_changes_reach_the_main_line() {
    let stages = [("left", "echo left > a.txt", "a.txt"), ("right", "echo right > a.txt; exit 1", "a.txt")];
    let bench = fork("", "", &stages);
    run(&bench).ends(0);
    assert_eq!(bench.run_text("r", "workspace/a.txt"), "left\n");
    assert_eq!(ends(&bench), ["f-left success", "f-right fail"]);
    let results = bench.run_json("r", "checkpoint.json")["context"]["parallel.results"].clone();
    assert_eq!((&results[1]["id"], &results[1]["outcome"]), (&"f-right".into(), &"fail".into()), "it does not vanish");
    assert_eq!(results[1]["failure_reason"], "tool_exit_code_1");
    assert_eq!(bench.run_json("r", "f/status.json")["outcome"], "partial_success");
}

#[test]
fn what_branches_do_not_agree_on_is_reported_for_each_path_and_taken_from_none() {
    let stages = [
        ("left", "echo left > a.txt; echo same > s.txt; echo l > l.txt", "./"),
        ("right", "echo right > a.txt; echo same > s.txt; echo r > r.txt", "./"),
    ];
    let bench = fork("", ", merge=all", &stages);
    let answer = run(&bench);
    answer.ends(1).says("branches changed the same paths in different ways: a.txt").says("f-left, f-right");
    for (path, is_there) in [("a.txt", false), ("s.txt", true), ("l.txt", true), ("r.txt", true)] {
        assert_eq!(bench.run_folder("r").join("workspace").join(path).is_file(), is_there, "{path}");
    }
    assert_eq!(bench.run_text("r", "quarantine/j-1-f-left/0001-a.txt"), "left\n");
    assert_eq!(bench.run_text("r", "quarantine/j-1-f-right/0001-a.txt"), "right\n");
    assert_eq!(bench.run_json("r", "j/status.json")["failure_code"], "fan_in/conflict");
}

#[test]
fn a_loser_is_stopped_and_its_end_is_recorded() {
    let stages = [("fast", "echo fast > a.txt", "a.txt"), ("slow", "echo slow > a.txt; sleep 60", "a.txt")];
    let bench = fork(", join_policy=first_success", "", &stages);
    let began = Instant::now();
    run(&bench).ends(0).says("f-slow branch canceled");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(ends(&bench), ["f-fast success", "f-slow canceled"]);
    assert_eq!(bench.run_text("r", "workspace/a.txt"), "fast\n");
    let kinds = bench.run_text("r", "progress.ndjson");
    let place = |kind: &str| kinds.rfind(&format!("\"kind\":\"{kind}\"")).unwrap();
    assert!(place("branch.finished") < place("parallel.joined"));
}

#[test]
fn fail_fast_stops_the_others_and_keeps_the_reason() {
    let stages = [("bad", "exit 3", ""), ("slow", "sleep 60", "")];
    let bench = fork(", error_policy=fail_fast", "", &stages);
    let began = Instant::now();
    run(&bench).ends(1).says("tool_exit_code_3");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(ends(&bench), ["f-bad fail", "f-slow canceled"]);
}

#[test]
fn no_more_stages_run_at_once_than_the_fork_and_the_operator_allow() {
    let wide = "[run]\nparallel_max = 8\n";
    for (setting, config, flag) in [
        (", max_parallel=1", "", ""),
        ("", "[run]\nparallel_max = 1\n", ""),
        ("", wide, "--max-parallel=1"),
        (", max_parallel=1", wide, "--max-parallel=8"),
    ] {
        let bench = fork(setting, "", &[("left", "sleep 0.3", ""), ("right", "sleep 0.3", "")]);
        bench.write("glovebox.toml", config);
        let flags = Some(flag).filter(|flag| !flag.is_empty());
        let arguments: Vec<&str> = ["run", "pipeline.dot", "--run-id", "r"].into_iter().chain(flags).collect();
        bench.glovebox(&arguments).ends(0);
        let lines = bench.run_text("r", "progress.ndjson");
        let mut under_way = 0;
        for line in lines.lines() {
            under_way += i32::from(line.contains("\"kind\":\"stage.started\""));
            under_way -= i32::from(line.contains("\"kind\":\"stage.finished\""));
            assert!(under_way <= 1, "{setting}{config}{flag}: {line}");
        }
    }
}

/// Returns the maximum number of attempts in progress at the same time, from the journal.
fn most_at_once(bench: &Workbench) -> usize {
    let (mut under_way, mut most) = (0_usize, 0);
    for line in bench.run_text("r", "progress.ndjson").lines() {
        under_way += usize::from(line.contains("\"kind\":\"stage.started\""));
        under_way -= usize::from(line.contains("\"kind\":\"stage.finished\""));
        most = most.max(under_way);
    }
    most
}

#[test]
fn a_flag_bounds_run_resume_and_plan() {
    let bench =
        fork(", max_parallel=3", "", &[("a", "sleep 0.2", ""), ("b", "sleep 0.2; exit 1", ""), ("c", "sleep 0.2", "")]);
    bench.write("glovebox.toml", "[run]\nparallel_max = 1\n");
    let plan = |flags: &[&str]| bench.glovebox(&[&["plan", "pipeline.dot"], flags].concat());
    plan(&[]).ends(0).says("3 branches, at most 3 at a time, join wait_all, errors continue").says("1 stage at a time");
    let json = plan(&["--max-parallel", "2", "--json"]).ends(0).json();
    assert_eq!(json["parallel_max"], 2);
    let fork = json["nodes"].as_array().unwrap().iter().find(|node| node["id"] == "f").unwrap();
    assert_eq!((&fork["parallel"]["branches"], &fork["parallel"]["max_parallel"]), (&3.into(), &3.into()));
    for wrong in ["0", "1025", "many"] {
        let arguments = ["run", "pipeline.dot", "--max-parallel", wrong];
        bench.glovebox(&arguments).ends(2).says("--max-parallel").says(wrong);
    }
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--max-parallel", "2"]).ends(0);
    assert_eq!(most_at_once(&bench), 2, "the flag beats glovebox.toml, also upwards");
}

#[test]
fn a_resume_takes_the_flag_too() {
    let stages = [("a", "sleep 0.2; exit 2", ""), ("b", "sleep 0.2; exit 1", "")];
    let bench = fork("", "", &stages);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    assert_eq!(most_at_once(&bench), 2);
    let before = bench.run_text("r", "progress.ndjson").len();
    bench.glovebox(&["resume", "r", "--max-parallel", "1"]).ends(1);
    let after = &bench.run_text("r", "progress.ndjson")[before..];
    let mut under_way = 0;
    for line in after.lines() {
        under_way += i32::from(line.contains("\"kind\":\"stage.started\""));
        under_way -= i32::from(line.contains("\"kind\":\"stage.finished\""));
        assert!(under_way <= 1, "{line}");
    }
    assert!(after.matches("\"kind\":\"stage.started\"").count() >= 2, "{after}");
}

#[test]
fn a_branch_has_its_own_files_from_stage_to_stage_and_forks_in_it_too() {
    let graph = format!(
        "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\nf [shape=component]; j [shape=tripleoctagon]; g [shape=component]; \
         h [shape=tripleoctagon, merge=all]\n{}{}{}{}{}start -> f; f -> one -> g; g -> two -> h; g -> three -> h; h -> last -> j; f -> \
         other -> j; j -> done }}",
        tool("one", "echo one > one.txt", "one.txt"),
        tool("two", "cat one.txt > two.txt", "two.txt"),
        tool("three", "test ! -e two.txt; cat one.txt > three.txt", "three.txt"),
        tool("last", "cat two.txt three.txt > all.txt; echo done", "all.txt"),
        tool("other", "test ! -e one.txt; sleep 1; exit 1", ""),
    );
    let bench = Workbench::with_pipeline(&graph);
    run(&bench).ends(0);
    assert_eq!(bench.run_text("r", "workspace/all.txt"), "one\none\n");
    assert_eq!(ends(&bench), ["f-one success", "f-one-g-three success", "f-one-g-two success", "f-other fail"]);
    let left: Vec<_> = std::fs::read_dir(bench.run_folder("r").join("branches/f-one")).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| entry.file_name() != "workspace"), "a branch that ended needs no files");
}

#[test]
fn a_run_killed_between_its_branches_goes_on_to_the_same_end() {
    let graph = format!(
        "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\nf [shape=component]; j [shape=tripleoctagon, merge=all]\n{}{}{}{}\
         start -> f; f -> a1 -> a2 -> j; f -> b1 -> b2 -> j; j -> done }}",
        tool("a1", "sleep 0.2; echo a1 > a.txt", "a.txt"),
        tool("a2", "sleep 0.2; cat a.txt; echo a2 >> a.txt", "a.txt"),
        tool("b1", "sleep 0.3; echo b1 > b.txt", "b.txt"),
        tool("b2", "sleep 0.2; cat b.txt; echo b2 >> b.txt", "b.txt"),
    );
    for kill_after in [0, 150, 300, 450, 600] {
        let bench = Workbench::with_pipeline(&graph);
        let mut child = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
        let progress = bench.run_folder("r").join("progress.ndjson");
        let has_begun = || std::fs::read_to_string(&progress).is_ok_and(|lines| lines.contains("stage.started"));
        let deadline = Instant::now() + Duration::from_secs(30);
        while !has_begun() {
            assert!(Instant::now() < deadline, "no stage began");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(kill_after));
        child.kill().unwrap();
        child.wait().unwrap();
        bench.glovebox(&["resume", "r"]).ends(0);
        assert_eq!(bench.run_text("r", "workspace/a.txt"), "a1\na2\n", "killed after {kill_after} ms");
        assert_eq!(bench.run_text("r", "workspace/b.txt"), "b1\nb2\n", "killed after {kill_after} ms");
        assert_eq!(ends(&bench), ["f-a1 success", "f-b1 success"]);
    }
}

const JUDGED: &str = "f [shape=component]; a [prompt=a, allowed_write_paths=\"a.txt\"]; b [prompt=b, allowed_write_paths=\"b.txt\"]; \
    j [shape=tripleoctagon, prompt=\"Which is better?\", allowed_write_paths=\"\"]; start -> f; f -> a -> j; f -> b -> j; j -> done";

const BUILD: &str = r#"
[[node.a]]
text = "done"
[[node.b]]
text = "done"
"#;

#[test]
fn a_prompt_judges_the_branches() {
    let label = format!(
        "{BUILD}[[node.j]]\ntext = \"b is better\"\noutcome = {{ status = \"success\", preferred_label = \"f-b\" }}\n"
    );
    let words = format!("{BUILD}[[node.j]]\ntext = \"The better one is f-b.\"\n");
    let none = format!("{BUILD}[[node.j]]\ntext = \"Both are fine.\"\n");
    for (script, exit) in [(&label, 0), (&words, 0), (&none, 7)] {
        let bench = Workbench::with_pipeline(&format!(
            "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]; {JUDGED} }}"
        ));
        bench.write("script.toml", script);
        let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", "script.toml"]);
        answer.ends(exit);
        let prompt = bench.run_text("r", "j/prompt.md");
        assert!(prompt.contains("Which is better?") && prompt.contains("- f-a: success"), "{prompt}");
        match exit {
            0 => assert_eq!(bench.run_json("r", "checkpoint.json")["context"]["parallel.fan_in.best_id"], "f-b"),
            _ => drop(answer.says("named no branch, expected one of")),
        }
    }
}

#[test]
fn joins_through_the_binary() {
    check_all(&[
        Case {
            name: "a simulated model chooses nothing, so outcomes decide",
            graph: JUDGED,
            flags: &["--simulate"],
            visited: "f a b j",
            facts: &[Is("checkpoint.json", "/context/parallel.fan_in.best_id", "f-a")],
            ..PLAIN
        },
        Case {
            name: "a score decides among those that succeeded",
            graph: "f [shape=component, max_parallel=1]; node [prompt=p, allowed_write_paths=\"\"]; a; b; j [shape=tripleoctagon, \
                    prompt=\"\"]; start -> f; f -> a -> j; f -> b -> j; j -> done",
            script: "[[node.a]]\ntext = \"x\"\n[[node.b]]\ntext = \"x\"\noutcome = { status = \"success\", context_updates = { score = 5 } }\n",
            visited: "f a b j",
            facts: &[
                Is("checkpoint.json", "/context/parallel.fan_in.best_id", "f-b"),
                Is("checkpoint.json", "/context/parallel.fan_in.best_outcome", "success"),
                Is("checkpoint.json", "/context/parallel.success_count", "2"),
            ],
            ..PLAIN
        },
        Case {
            name: "a fan-in after a failure leads where its edges say",
            graph: "f [shape=component, max_parallel=1]; j [shape=tripleoctagon]; a [prompt=p, allowed_write_paths=\"\", test.outcome=fail]; \
                    fix [prompt=p, allowed_write_paths=\"\"]; start -> f -> a -> j; j -> done; j -> fix [condition=\"outcome=fail\"]; fix -> done",
            flags: &["--simulate"],
            visited: "f a j fix",
            facts: &[Is("j/status.json", "/outcome", "fail")],
            ..PLAIN
        },
        Case {
            name: "an exit in a branch is refused",
            graph: "f [shape=component]; j [shape=tripleoctagon]; a [prompt=p, allowed_write_paths=\"\"]; start -> f -> a -> j -> done; a -> done [condition=\"outcome=fail\"]",
            flags: &["--simulate"],
            exit: 3,
            facts: &[Says("a branch of the parallel node `f` leads to the exit `done` without its fan-in")],
            ..PLAIN
        },
        Case {
            name: "a policy that no run can satisfy is refused",
            graph: "f [shape=component, join_policy=k_of_n, k=2]; j [shape=tripleoctagon]; a [prompt=p, allowed_write_paths=\"\"]; start -> f -> a -> j -> done",
            flags: &["--simulate"],
            exit: 3,
            facts: &[Says("the parallel node `f` needs 2 branches to succeed and has 1")],
            ..PLAIN
        },
    ]);
}
