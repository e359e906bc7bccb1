//! `glovebox resume RUN --from NODE@VISIT`: a run returns to the state before an earlier visit, and later visits are
//! undone.

use crate::workbench::Workbench;
use crate::workbench::journal::{copy_prefix, end};
use serde_json::{Value, json};
use std::path::Path;

/// A pipeline with three rounds of a stage that adds a line and a stage that reads it. Then a stage fails.
const PIPELINE: &str = r#"digraph g {
  graph [goal="count"]
  start [shape=Mdiamond]
  done [shape=Msquare]
  add [prompt="add", allowed_write_paths="out/", max_visits=3]
  look [shape=parallelogram, tool_command="cat out/log; cp out/log out/seen; rm -f out/old", allowed_write_paths="out/", max_visits=3]
  last [shape=parallelogram, tool_command="cat out/log > out/last; exit 3", allowed_write_paths="out/"]
  start -> add -> look
  look -> last [condition="context.round=3"]
  look -> add [condition="context.round!=3"]
  last -> done [condition="outcome=success"]
}
"#;

/// Creates run `r`, which has failed.
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
    bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "r", "-q"]).ends(1);
    bench
}

fn events(bench: &Workbench, run: &str) -> Vec<Value> {
    let text = bench.run_text(run, "progress.ndjson");
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect()
}

fn visited(bench: &Workbench, run: &str) -> Vec<String> {
    let shown = bench.glovebox(&["show", run, "--json"]).ends(0).json();
    let visits = shown["visited"].as_array().unwrap().iter();
    visits.map(|visit| format!("{}@{}", visit["node"].as_str().unwrap(), visit["visit"])).collect()
}

fn file(bench: &Workbench, run: &str, path: &str) -> Option<String> {
    std::fs::read_to_string(bench.run_folder(run).join("workspace").join(path)).ok()
}

#[test]
fn a_run_goes_back_with_state_context_and_files_and_keeps_what_it_spent() {
    let bench = bench();
    let before = bench.run_text("r", "progress.ndjson");
    let steps = |bench: &Workbench| bench.run_json("r", "final.json")["steps"].as_u64().unwrap();
    let spent = steps(&bench);
    bench
        .glovebox(&["resume", "r", "--from", "look@2"])
        .ends(1)
        .says("resumed from look visit 2; everything after it is undone")
        .never_says("workspace restored");
    let whole = bench.run_text("r", "progress.ndjson");
    assert!(whole.starts_with(&before), "no record is lost");
    // Visit numbers continue, so that no two attempts have the same name. Limits count only the visits that were not
    // undone.
    assert_eq!(visited(&bench, "r"), ["add@1", "look@1", "add@2", "look@4", "add@4", "look@5", "last@2"]);
    assert_eq!(file(&bench, "r", "out/log").as_deref(), Some("x\nx\nx\n"));
    assert!(steps(&bench) > spent + 3, "{spent}");
    let back = &events(&bench, "r")[before.lines().count()]["event"];
    assert_eq!((&back["kind"], &back["from"]), (&json!("run.resumed"), &json!("look")));
    let seq = back["back"]["seq"].as_u64().unwrap();
    assert_eq!(back["back"], json!({ "visit": 2, "generation": 0, "seq": seq }));
    let next = &events(&bench, "r")[seq as usize]["event"];
    assert_eq!((&next["kind"], &next["node"], &next["visit"]), (&json!("stage.ready"), &json!("look"), &json!(2)));
    for words in [&["verify", "r"][..], &["why", "r"], &["diff", "r"], &["logs", "r", "look"], &["ls"]] {
        bench.glovebox(words).ends(0);
    }
    let left =
        |command: &str| bench.glovebox(&[command, "r", "look"]).stderr.matches("undone by `resume --from`").count();
    assert_eq!(left("logs"), 4, "both outputs of the visits 2 and 3");
    let lines = bench.glovebox(&["logs", "r", "look", "--json"]).ends(0).json_lines();
    let marked = lines.iter().filter(|line| line["is_undone"] == true).map(|line| &line["visit"]);
    assert_eq!(marked.collect::<Vec<_>>(), [2, 2, 3, 3].map(|visit| json!(visit)).iter().collect::<Vec<_>>());
    let why = bench.glovebox(&["why", "r", "--json"]).ends(0).json();
    let (left, counting): (Vec<&Value>, Vec<_>) =
        why["steps"].as_array().unwrap().iter().partition(|step| step["is_undone"] == true);
    assert!(left.iter().any(|step| step["attempt"]["visit"] == 3 && step["node"] == "look"));
    assert!(counting.iter().any(|step| step["attempt"]["visit"] == 4 && step["node"] == "look"));
    let checkpoint = bench.run_json("r", "checkpoint.json");
    assert_eq!(checkpoint["completed_nodes"], json!(["start", "add", "look", "add", "look", "add", "look", "last"]));
}

#[test]
fn files_are_those_of_then_while_the_visit_goes_on() {
    let bench = bench();
    assert_eq!(file(&bench, "r", "out/last").as_deref(), Some("x\nx\nx\n"));
    // The limit on steps ends the run right after the repeated visit.
    let spent = bench.run_json("r", "final.json")["steps"].as_u64().unwrap();
    let steps = |more: u64| (spent + more).to_string();
    bench.glovebox(&["resume", "r", "--from", "look@2", "--max-steps", &steps(1)]).ends(5);
    assert_eq!(file(&bench, "r", "out/log").as_deref(), Some("x\nx\n"));
    assert_eq!((file(&bench, "r", "out/last"), file(&bench, "r", "out/old")), (None, None));
    assert_eq!(file(&bench, "r", "keep.txt").as_deref(), Some("keep\n"));
    assert_eq!(visited(&bench, "r"), ["add@1", "look@1", "add@2", "look@4"]);
    bench.glovebox(&["diff", "r"]).ends(0).says("out/log").never_says("out/last");
    // Back at the first stage, a file that a stage removed exists again, and all visits are undone.
    bench.glovebox(&["resume", "r", "--from", "add@1", "--max-steps", &steps(2), "-q"]).ends(5);
    assert_eq!(file(&bench, "r", "out/old").as_deref(), Some("old\n"));
    assert_eq!((file(&bench, "r", "out/log").as_deref(), file(&bench, "r", "out/seen")), (Some("x\n"), None));
    // Back to a visit that the `resume --from` commands above have excluded.
    bench.glovebox(&["resume", "r", "--from", "last@1", "--max-steps", "100", "-q"]).ends(1);
    assert_eq!(visited(&bench, "r"), ["add@1", "look@1", "add@2", "look@2", "add@3", "look@3", "last@2"]);
    assert_eq!(file(&bench, "r", "out/last").as_deref(), Some("x\nx\nx\n"));
    bench.glovebox(&["verify", "r"]).ends(0);
}

#[test]
fn every_prefix_after_it_resumes_to_the_same_end() {
    let bench = bench();
    let known = bench.run_text("r", "progress.ndjson").lines().count();
    bench.glovebox(&["resume", "r", "--from", "look@2", "-q"]).ends(1);
    let (whole, total) = (end(&bench.run_folder("r")), bench.run_text("r", "progress.ndjson").lines().count());
    assert!(total > known + 6);
    for kept in known + 1..total {
        let runs = format!(".glovebox/prefix-{kept}");
        let run = bench.project().join(&runs).join("r");
        copy_prefix(&bench, &run, kept as i64);
        bench.glovebox(&["resume", "r", "--runs-dir", &runs, "-q"]).ends(1);
        let found = end(&run);
        assert_eq!(found, whole, "after record {kept}");
    }
}

#[test]
fn a_fork_and_its_fan_in_begin_again() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n fork [shape=component]\n join [shape=tripleoctagon]\n \
         a [shape=parallelogram, tool_command=\"echo a >> out/a\", allowed_write_paths=\"out/\"]\n \
         b [shape=parallelogram, tool_command=\"echo b >> out/b\", allowed_write_paths=\"out/\"]\n \
         after [shape=parallelogram, tool_command=\"cat out/* > list; exit 3\", allowed_write_paths=\"list\"]\n \
         start -> fork\n fork -> a\n fork -> b\n a -> join\n b -> join\n join -> after\n after -> done [condition=\"outcome=success\"]\n}\n",
    );
    bench.write("out/keep", "");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "-q"]).ends(1);
    let list = file(&bench, "r", "list");
    for visit in ["fork@1", "join@1", "after@1", "fork@2", "start@1"] {
        bench.glovebox(&["resume", "r", "--from", visit, "-q"]).ends(1);
        assert_eq!(file(&bench, "r", "list"), list, "{visit}: nothing was added twice");
        bench.glovebox(&["verify", "r"]).ends(0);
    }
    bench
        .glovebox(&["resume", "r", "--from", "a@1"])
        .ends(2)
        .says("was visited in branch")
        .says("name the parallel node");
    let verified = bench.glovebox(&["show", "r", "--json"]).ends(0).json();
    assert_eq!(verified["visited"].as_array().unwrap().iter().filter(|visit| visit["node"] == "a").count(), 1);
}

#[test]
fn a_generation_that_was_left_can_be_gone_back_to() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n \
         first [shape=parallelogram, tool_command=\"echo first >> out/log\", allowed_write_paths=\"out/\"]\n \
         count [shape=parallelogram, tool_command=\"echo again >> out/log\", allowed_write_paths=\"out/\"]\n \
         review [prompt=\"review\", allowed_write_paths=\"\"]\n \
         last [shape=parallelogram, tool_command=\"exit 3\", allowed_write_paths=\"\"]\n start -> first -> count -> review\n \
         review -> last [condition=\"context.more!=yes\"]\n review -> count [condition=\"context.more=yes\", loop_restart=true]\n \
         last -> done [condition=\"outcome=success\"]\n}\n",
    );
    let turn = |more: &str| {
        format!(
            "[[node.review]]\ntext = \"done\"\noutcome = {{ status = \"success\", context_updates = {{ more = \"{more}\" }} }}\n"
        )
    };
    bench.write("script.toml", &(turn("yes") + &turn("no")));
    bench.write("out/keep", "");
    bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "r", "-q"]).ends(1);
    let way = visited(&bench, "r");
    assert_eq!(way, ["first@1", "count@1", "review@1", "count@1", "review@1", "last@1"]);
    bench.glovebox(&["resume", "r", "--from", "first@1", "-q"]).ends(1);
    // Generations continue to count: these visits are those of generation 2.
    assert_eq!(visited(&bench, "r"), ["first@1", "count@2", "review@2", "count@1", "review@1", "last@1"]);
    assert_eq!(bench.run_json("r", "final.json")["run_generation"], 2);
    assert_eq!(file(&bench, "r", "out/log").as_deref(), Some("first\nagain\nagain\n"));
    bench.glovebox(&["verify", "r"]).ends(0);
}

#[test]
fn what_cannot_be_gone_back_to_is_refused_with_the_visits() {
    let bench = bench();
    let before = bench.run_text("r", "progress.ndjson");
    for (from, said, help) in [
        ("look@4", "`look` has no visit 4, expected one from 1 to 3", "look@1, look@2, look@3"),
        ("lok@1", "no node `lok`", "did you mean `--from look`?"),
        ("done@1", "is an exit", "name the stage before it"),
        ("look@0", "expected the number of a visit", "look@0"),
        ("look@", "expected the number of a visit", "look@"),
        ("@1", "expected NODE or NODE@VISIT", "@1"),
    ] {
        bench.glovebox(&["resume", "r", "--from", from]).ends(2).says(said).says(help);
    }
    bench.glovebox(&["fork", "r", "look@9"]).ends(2).says("name one of these visits: look@1, look@2, look@3");
    bench.glovebox(&["fork", "r", "lok"]).ends(2).says("name one of these visits: start@1, add@1, look@1, add@2");
    bench.glovebox(&["resume", "r", "--from", "look@2", "--max-steps", "3"]).ends(5).says("maximum step count");
    assert_eq!(bench.run_text("r", "progress.ndjson"), before);
    // A run that succeeded cannot be resumed.
    let simple = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n a [shape=parallelogram, tool_command=\"true\", \
         allowed_write_paths=\"\"]\n start -> a -> done }",
    );
    simple.glovebox(&["run", "pipeline.dot", "--run-id", "r", "-q"]).ends(0);
    simple.glovebox(&["resume", "r", "--from", "a@1"]).ends(2).says("glovebox fork");
    assert!(Path::new(&simple.run_folder("r")).join("final.json").exists());
}

#[test]
fn files_at_ignored_paths_of_undone_visits_are_gone() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n \
         first [shape=parallelogram, tool_command=\"mkdir -p gen; echo 1 > gen/first\", allowed_write_paths=\"\"]\n \
         look [shape=parallelogram, tool_command=\"mkdir -p gen out; ls gen > out/seen\", allowed_write_paths=\"out/\"]\n \
         last [shape=parallelogram, tool_command=\"echo 2 > gen/late; exit 3\", allowed_write_paths=\"\"]\n \
         start -> first -> look -> last\n last -> done [condition=\"outcome=success\"]\n}\n",
    );
    bench.write(".gitignore", "gen/\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "-q"]).ends(1);
    let seen = |run: &str| file(&bench, run, "out/seen").unwrap();
    assert_eq!(seen("r"), "first\n", "later stages have them");
    bench.glovebox(&["resume", "r", "--from", "look"]).ends(1).never_says("ignored paths");
    assert_eq!(seen("r"), "first\nlate\n", "the present files of the run");
    bench.glovebox(&["resume", "r", "--from", "look@1"]).ends(1).says("files at ignored paths removed");
    assert_eq!(seen("r"), "", "not those of an undone visit");
    bench.glovebox(&["resume", "r", "--from", "first@1"]).ends(1);
    assert_eq!(seen("r"), "first\n", "the stage that writes them writes them again");
    let note = "without the files that stages wrote at ignored paths";
    bench.glovebox(&["fork", "r", "look", "--run-id", "f"]).ends(1).says(note);
    assert_eq!(seen("f"), "");
    bench.glovebox(&["fork", "r", "first", "--run-id", "g"]).ends(1).says(note);
    assert_eq!(seen("g"), "first\n");
}
