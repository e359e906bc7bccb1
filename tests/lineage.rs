//! `glovebox fork`: a new run with the state, the context and the files of another run before a visit.

use crate::workbench::{self, Workbench};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A pipeline with three rounds of a stage that adds a line and a stage that reads it. The context contains the number
/// of the round.
const PIPELINE: &str = r#"digraph g {
  graph [goal="count"]
  start [shape=Mdiamond]
  done [shape=Msquare]
  add [prompt="add", allowed_write_paths="out/"]
  look [shape=parallelogram, tool_command="cat out/log out/word 2>/dev/null; rm -f out/old", allowed_write_paths="out/"]
  start -> add -> look
  look -> done [condition="context.round=3"]
  look -> add [condition="context.round!=3"]
}
"#;

fn bench() -> Workbench {
    let bench = Workbench::with_pipeline(PIPELINE);
    let mut script = String::new();
    for round in 1..=3 {
        let lines = "x\\n".repeat(round);
        script += &format!(
            "[[node.add]]\ntool = [{{ name = \"write_file\", arguments = {{ path = \"out/log\", content = \"{lines}\" }} }}]\n\
             [[node.add]]\ntext = \"done\"\noutcome = {{ status = \"success\", context_updates = {{ round = \"{round}\" }} }}\n"
        );
    }
    bench.write("script.toml", &script);
    bench.write("out/old", "old\n");
    bench.write("keep.txt", "keep\n");
    bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "x", "-q"]).ends(0);
    bench
}

fn events(bench: &Workbench, run: &str) -> Vec<Value> {
    let text = bench.run_text(run, "progress.ndjson");
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect()
}

fn visited(bench: &Workbench, run: &str) -> Vec<Value> {
    let shown = bench.glovebox(&["show", run, "--json"]).ends(0).json();
    shown["visited"].as_array().unwrap().iter().map(|visit| json!([visit["node"], visit["visit"]])).collect()
}

#[test]
fn a_fork_begins_with_state_context_and_files_of_before_the_visit() {
    let bench = bench();
    let before = bench.run_text("x", "progress.ndjson");
    // Later changes of the project and the workspace do not affect the fork.
    bench.write("keep.txt", "changed\n");
    bench.glovebox(&["fork", "x", "look@2", "--run-id", "y", "-q"]).ends(0);
    assert_eq!(visited(&bench, "y"), visited(&bench, "x"), "the same follows from the same");
    for file in ["out/log", "keep.txt"] {
        assert_eq!(
            bench.run_text("y", &format!("workspace/{file}")),
            bench.run_text("x", &format!("workspace/{file}"))
        );
    }
    assert!(!bench.run_folder("y").join("workspace/out/old").exists(), "the first visit removed it");
    assert_eq!(bench.run_text("x", "progress.ndjson"), before, "the other run stays as it is");
    let first = &events(&bench, "y")[0]["event"];
    let from = &first["forked_from"];
    assert_eq!(
        (&first["run_id"], &from["run_id"], &from["node"], &from["visit"]),
        (&json!("y"), &json!("x"), &json!("look"), &json!(2))
    );
    let last = from["seq"].as_u64().unwrap() as usize;
    assert_eq!(from["hash"], events(&bench, "x")[last - 1]["hash"]);
    assert_eq!(bench.run_json("y", "manifest.json")["forked_from"]["run_id"], "x");
    bench.glovebox(&["show", "y"]).ends(0).says("forked       from x before look visit 2");
    let ends = |run: &str| {
        let mut end = bench.run_json(run, "final.json");
        ["timestamp", "run_id"].iter().for_each(|key| drop(end.as_object_mut().unwrap().remove(*key)));
        end
    };
    assert_eq!(ends("y"), ends("x"));
    bench.glovebox(&["diff", "y"]).ends(0).says("out/log");
}

#[test]
fn a_key_that_is_set_changes_what_follows() {
    let bench = bench();
    bench.glovebox(&["fork", "x", "look@2", "--set", "round=3", "--run-id", "y", "-q"]).ends(0);
    assert_eq!(visited(&bench, "y").len(), 4, "two rounds of two");
    assert_eq!(bench.run_text("y", "workspace/out/log"), "x\nx\n");
    let resumed = events(&bench, "y")
        .into_iter()
        .map(|record| record["event"].clone())
        .find(|event| event["kind"] == "run.resumed");
    assert_eq!(resumed.unwrap()["context"], json!({ "round": "3" }));
    // Without a number, the fork begins at the last visit.
    bench.glovebox(&["fork", "x", "add", "--run-id", "z", "--json"]).ends(0).says("\"document\":\"verdict\"");
    assert_eq!(bench.run_json("z", "manifest.json")["forked_from"]["visit"], 3);
}

#[test]
fn what_cannot_be_forked_is_said_and_leaves_nothing() {
    let bench = bench();
    for (words, code, said) in [
        (&["fork", "x", "look@4"][..], 2, "`look` has no visit 4, expected one from 1 to 3"),
        (&["fork", "x", "lok"], 2, "never visited `lok`"),
        (&["fork", "x", "look@0"], 2, "expected the number of a visit"),
        (&["resume", "x", "--from", "look@2"], 2, "glovebox fork x NODE@VISIT"),
        (&["fork", "x", "look", "--set", "context.=x"], 2, "a key must not be empty"),
        (&["fork", "nobody", "look"], 2, "no run `nobody`"),
        (&["fork", "x", "look", "--set", "outcome=success"], 2, "only the engine writes the context key `outcome`"),
        (&["fork", "x", "look", "--run-id", "x"], 2, "exists already"),
        (&["fork", "x", "look", "--max-steps", "2", "--run-id", "y"], 5, "maximum step count (2)"),
    ] {
        bench.glovebox(words).ends(code).says(said);
    }
    let runs = bench.glovebox(&["ls", "--json"]).ends(0).json();
    assert!(runs.as_array().map_or_else(|| runs["runs"].as_array().unwrap().len(), Vec::len) <= 2, "{runs}");
}

#[test]
fn what_is_set_has_the_bounds_of_what_a_stage_sets() {
    let bench = bench();
    let refused = |set: &[String], said: &str| {
        let words = ["fork", "x", "look", "--run-id", "y"].iter().map(|word| (*word).to_owned());
        let words: Vec<String> = words.chain(set.iter().flat_map(|one| ["--set".to_owned(), one.clone()])).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        bench.glovebox(&words).ends(2).says(said);
        assert!(!bench.run_folder("y").exists());
    };
    refused(&[format!("k={}", "a".repeat(70_000))], "expected at most 65536");
    refused(&[format!("{}=x", "k".repeat(300))], "the key is longer than 256 bytes");
    refused(&(0..1_001).map(|key| format!("k{key}=x")).collect::<Vec<_>>(), "the context already has 1000 keys");
    let large = "a".repeat(60_000);
    refused(
        &(0..20).map(|key| format!("k{key}={large}")).collect::<Vec<_>>(),
        "the context would exceed 1048576 bytes",
    );
    bench.glovebox(&["fork", "x", "look", "--set", &format!("k={large}"), "--run-id", "y", "-q"]).ends(0);
}

#[test]
fn a_fork_of_a_run_that_another_user_signed_is_refused() {
    let bench = bench();
    let mut command = bench.command(&["fork", "x", "look", "-q"]);
    command.env("GLOVEBOX_STATE_DIR", bench.outside().join("other-state"));
    workbench::Answer::of(&mut command).ends(6).says("is not trusted");
}

#[test]
fn hold_outs_go_with_a_fork_and_stay_sealed() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n build [prompt=b, allowed_write_paths=\"src/\"]\n \
         judge [shape=octagon, command=\"sh scripts/scenarios/a.sh\"]\n start -> build -> judge\n judge -> done [condition=\"outcome=success\"]\n}\n",
    );
    bench.write("scripts/scenarios/a.sh", "test -e src/ready\n");
    bench.write("src/ready", "");
    bench.glovebox(&["run", "pipeline.dot", "--simulate", "--run-id", "x", "-q"]).ends(0);
    bench.glovebox(&["fork", "x", "judge", "--run-id", "y", "-q"]).ends(0);
    assert!(!bench.run_folder("y").join("workspace/scripts/scenarios").exists());
    bench.glovebox(&["holdout", "verify", "y"]).ends(0);
}

#[test]
fn a_visit_in_a_branch_is_named_with_its_fork() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n fork [shape=component]\n join [shape=tripleoctagon]\n \
         a [shape=parallelogram, tool_command=\"echo a > out/a\", allowed_write_paths=\"out/\"]\n \
         b [shape=parallelogram, tool_command=\"echo b > out/b\", allowed_write_paths=\"out/\"]\n \
         after [shape=parallelogram, tool_command=\"ls out > out/list\", allowed_write_paths=\"out/\"]\n \
         start -> fork\n fork -> a\n fork -> b\n a -> join\n b -> join\n join -> after -> done\n}\n",
    );
    bench.write("out/keep", "");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "x", "-q"]).ends(0);
    bench.glovebox(&["fork", "x", "a"]).ends(2).says("was visited in branch `fork-a` only");
    for node in ["fork", "join", "after"] {
        bench.glovebox(&["fork", "x", node, "--run-id", node, "-q"]).ends(0);
        assert_eq!(bench.run_text(node, "workspace/out/list"), bench.run_text("x", "workspace/out/list"), "{node}");
    }
}

#[test]
fn a_fork_that_is_killed_at_any_moment_leaves_a_whole_run_or_none() {
    let bench = bench();
    let fork = ["fork", "x", "look@2", "--set", "round=3", "--run-id", "y", "-q"];
    let began = Instant::now();
    bench.glovebox(&fork).ends(0);
    let whole = began.elapsed();
    bench.glovebox(&["rm", "y"]).ends(0);
    let mut made = 0;
    for part in 1..=24 {
        let mut child = bench.start(&fork);
        std::thread::sleep(whole * part / 16);
        let _may_have_ended = child.kill();
        child.wait().unwrap();
        let runs: Vec<String> = std::fs::read_dir(bench.run_folder("."))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let listed = bench.glovebox(&["ls", "--json"]).ends(0).json();
        let is_listed = listed["runs"].as_array().unwrap().len() == 2;
        assert_eq!(is_listed, runs.iter().any(|name| name == "y"), "{part}: {runs:?}");
        if is_listed {
            made += 1;
            bench.glovebox(&["resume", "y", "-q"]).ends(0);
            bench.glovebox(&["verify", "y"]).ends(0);
            assert_eq!(visited(&bench, "y").len(), 4, "{part}: what was set is not lost");
            assert_eq!(bench.run_text("y", "workspace/out/log"), "x\nx\n");
            assert_eq!(bench.run_text("y", "workspace/keep.txt"), "keep\n");
            bench.glovebox(&["rm", "y"]).ends(0);
        }
        bench.glovebox(&["gc"]).ends(0);
        // A draft whose process was killed before it had its lock stays for a minute.
        let drafts = || {
            let entries = std::fs::read_dir(bench.run_folder(".")).unwrap().map(|entry| entry.unwrap());
            let drafts = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".forking-"));
            drafts.map(|draft| draft.path()).collect::<Vec<_>>()
        };
        for draft in drafts() {
            assert!(!draft.join("owner.sqlite").exists(), "{part}: a draft that had its lock is left");
            let before = std::time::SystemTime::now() - Duration::from_secs(61);
            std::fs::File::open(&draft).unwrap().set_modified(before).unwrap();
        }
        bench.glovebox(&["gc"]).ends(0);
        assert_eq!(drafts(), [""; 0].map(std::path::PathBuf::from), "{part}");
    }
    assert!(made > 0, "some were killed after the copy");
}
