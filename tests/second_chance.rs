//! A failed run is resumed at the failed stage, a run that reached a limit continues with a higher limit, and a run can
//! start at a node in the middle. The witness is the journal, which shows which stages were executed again.

use crate::workbench::{self, Answer, Workbench};
use serde_json::Value;
use std::io::{BufRead, BufReader};

/// Creates a pipeline with two stages. The second one passes only if a file outside of the project exists, which
/// commands may read.
fn flaky() -> Workbench {
    let bench = Workbench::with_pipeline(
        "digraph flaky { start [shape=Mdiamond]; done [shape=Msquare]
         first [shape=parallelogram, tool_command=\"echo made > out/first.txt\", allowed_write_paths=\"out/\"]
         check [shape=parallelogram, tool_command=\"cat out/first.txt $FLAG\", allowed_write_paths=\"\"]
         start -> first -> check -> done }",
    );
    bench.write("out/.keep", "");
    let flags = bench.outside().join("flags");
    std::fs::create_dir(&flags).unwrap();
    bench.write("glovebox.toml", &configuration(&bench, ""));
    bench
}

fn configuration(bench: &Workbench, more: &str) -> String {
    let flags = bench.outside().join("flags");
    let flags = flags.to_str().unwrap();
    format!("[sandbox]\nread = [\"{flags}\"]\n{more}\n[exec]\nenv = {{ FLAG = \"{flags}/up\" }}\n")
}

fn raise_flag(bench: &Workbench) {
    std::fs::write(bench.outside().join("flags/up"), "up").unwrap();
}

fn visits(bench: &Workbench, run: &str) -> Vec<(String, u64)> {
    let shown = bench.glovebox(&["show", run, "--json"]).json();
    let visit = |visit: &Value| (visit["node"].as_str().unwrap().to_owned(), visit["visit"].as_u64().unwrap());
    shown["visited"].as_array().unwrap().iter().map(visit).collect()
}

fn named(visits: &[(&str, u64)]) -> Vec<(String, u64)> {
    visits.iter().map(|(node, visit)| ((*node).to_owned(), *visit)).collect()
}

#[test]
fn two_signals_at_once_are_one_request_to_stop() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         slow [shape=parallelogram, tool_command=\"sleep 20\", allowed_write_paths=\"\"]\n start -> slow -> done }",
    );
    let mut child = bench.start(&["run", "pipeline.dot", "--simulate", "--json", "--run-id", "r"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.by_ref().map(Result::unwrap).find(|line| line.contains("stage.started")).unwrap();
    for _ in 0..2 {
        let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
    assert!(lines.map(Result::unwrap).any(|line| line.contains("run.finished")), "a last record");
    Answer::from_child(child).ends(130).says("next         glovebox resume r");
}

#[test]
fn the_next_command_names_the_stage_whose_output_says_why() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         test [shape=parallelogram, tool_command=\"echo wrong; exit 4\", allowed_write_paths=\"\"]\n\
         fix [prompt=p, allowed_write_paths=\"src/\", test.outcome=fail, test.notes=\"cannot\"]\n\
         start -> test; test -> done [condition=\"outcome=success\"]; test -> fix [condition=\"outcome=fail\"]; fix -> test }",
    );
    let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    answer.ends(1).says("because      test: deterministic (tool/exit-code): exit 4\noutput       | wrong\n");
    answer.says("help         no model is configured").says("next         glovebox show latest test, then");
    bench.glovebox(&["show", "r", "test"]).ends(0).says("| wrong");
    answer.never_says("(restarts at");
    bench.glovebox(&["resume", "r"]).ends(1).says("resumed from fix");
}

#[test]
fn a_run_that_failed_begins_again_at_the_stage_that_failed() {
    let bench = flaky();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1).says("then glovebox resume r or run again");
    bench.glovebox(&["resume", "r"]).ends(1).says("run resumed from check");
    raise_flag(&bench);
    bench.glovebox(&["resume", "r", "--json"]).ends(0);
    assert_eq!(visits(&bench, "r"), named(&[("first", 1), ("check", 1), ("check", 2), ("check", 3)]));
    let ended = bench.run_json("r", "final.json");
    assert_eq!(ended["status"], "success");
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(bench.read("out/first.txt"), "made\n");
    let before = bench.run_text("r", "progress.ndjson");
    bench.glovebox(&["resume", "r"]).ends(0).says("success");
    assert_eq!(bench.run_text("r", "progress.ndjson"), before, "a run that succeeded is only shown");
}

#[test]
fn a_second_chance_may_begin_at_any_stage_of_the_pipeline() {
    let bench = flaky();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    let before = bench.run_text("r", "progress.ndjson");
    bench.glovebox(&["resume", "r", "--from", "frist"]).ends(2).says("did you mean `--from first`?");
    bench.glovebox(&["resume", "r", "--from", "done"]).ends(2).says("`done` is an exit");
    assert_eq!(bench.run_text("r", "progress.ndjson"), before, "what is refused changes nothing");
    raise_flag(&bench);
    bench.glovebox(&["resume", "r", "--from", "first"]).ends(0);
    assert_eq!(visits(&bench, "r"), named(&[("first", 1), ("check", 1), ("first", 2), ("check", 2)]));
    bench
        .glovebox(&["resume", "r", "--from", "first"])
        .ends(2)
        .says("error: run `")
        .never_says("run `r`: run")
        .says("has ended (success)")
        .says("glovebox run FILE --from NODE");
}

#[test]
fn a_second_chance_that_is_killed_is_resumed_where_it_was() {
    let bench = flaky();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    let child = bench.start(&["resume", "r", "--json"]);
    // Killed at any point of the resume, the run must still be resumable.
    std::thread::sleep(std::time::Duration::from_millis(60));
    let mut child = child;
    child.kill().unwrap();
    child.wait().unwrap();
    raise_flag(&bench);
    bench.glovebox(&["resume", "r"]).ends(0);
    let first = visits(&bench, "r").into_iter().filter(|(node, _)| node == "first").count();
    assert_eq!(first, 1, "the stage before the failure is not repeated");
}

#[test]
fn a_run_out_of_steps_continues_with_more_and_repeats_nothing() {
    let bench = Workbench::with_pipeline(
        "digraph steps { graph [max_steps=3]; start [shape=Mdiamond]; done [shape=Msquare]
         a [prompt=x, allowed_write_paths=\"\"]; b [prompt=x, allowed_write_paths=\"\"]; c [prompt=x, allowed_write_paths=\"\"]
         start -> a -> b -> c -> done }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(5).says("glovebox resume r --max-steps N");
    let before = bench.run_text("r", "progress.ndjson");
    for same in [&["resume", "r"][..], &["resume", "r", "--max-steps", "3"]] {
        bench.glovebox(same).ends(5).says("maximum step count (3)").says("--max-steps N");
    }
    assert_eq!(bench.run_text("r", "progress.ndjson"), before, "what is refused changes nothing");
    bench.glovebox(&["resume", "r", "--max-steps", "4"]).ends(0);
    assert_eq!(visits(&bench, "r"), named(&[("a", 1), ("b", 1), ("c", 1)]));
}

#[test]
fn a_run_out_of_time_repeats_the_stage_that_was_cut() {
    let bench = flaky();
    bench.write(
        "pipeline.dot",
        "digraph slow { graph [max_wall_time=\"2s\"]; start [shape=Mdiamond]; done [shape=Msquare]
         wait [shape=parallelogram, tool_command=\"test -e $FLAG || sleep 60\", allowed_write_paths=\"\"]; start -> wait -> done }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(5).says("glovebox resume r --max-wall-time T");
    raise_flag(&bench);
    bench.glovebox(&["resume", "r"]).ends(5).says("--max-wall-time T");
    bench.glovebox(&["resume", "r", "--max-wall-time", "1h"]).ends(0);
    assert_eq!(visits(&bench, "r"), named(&[("wait", 1), ("wait", 2)]));
}

#[test]
fn another_configuration_is_accepted_only_when_asked_for_and_shown() {
    let bench = flaky();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    raise_flag(&bench);
    bench.write("glovebox.toml", &configuration(&bench, "scratch = [\"tmp/\"]"));
    let before = bench.run_text("r", "progress.ndjson");
    bench.glovebox(&["resume", "r"]).ends(11).says("has another plan").says("--replan");
    bench.glovebox(&["resume", "r", "--yes"]).ends(2);
    bench.glovebox(&["resume", "r", "--replan"]).ends(6).says("+ check: scratch tmp/").says("--replan --yes");
    assert_eq!(bench.run_text("r", "progress.ndjson"), before, "what is refused changes nothing");
    let resumed = bench.glovebox(&["resume", "r", "--replan", "--yes", "--json"]);
    resumed.ends(0).says("+ first: scratch tmp/");
    let resumed = resumed.json_lines().into_iter().find(|line| line["event"]["kind"] == "run.resumed").unwrap();
    assert_eq!(resumed["event"]["replanned"]["more"][0], "check: scratch tmp/");
}

#[test]
fn a_plan_that_allows_less_needs_no_answer_and_holds_from_then_on() {
    let bench = flaky();
    bench.write("glovebox.toml", &configuration(&bench, "scratch = [\"tmp/\"]"));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    bench.write("glovebox.toml", &configuration(&bench, ""));
    bench.glovebox(&["resume", "r", "--replan"]).ends(1).says("- check: scratch tmp/");
    raise_flag(&bench);
    bench.glovebox(&["resume", "r"]).ends(0).never_says("scratch tmp/");
}

#[test]
fn a_script_that_ran_dry_is_continued_by_a_longer_one() {
    let bench = Workbench::with_pipeline(workbench::LINEAR);
    let turn = "[[node.build]]\ntool = [{ name = \"list_dir\", arguments = { path = \".\" } }]\n";
    bench.write("short.toml", turn);
    let ended = bench.glovebox(&["run", "pipeline.dot", "--script", "short.toml", "--run-id", "r"]);
    assert_ne!(ended.code, 0);
    bench.write("long.toml", &format!("{turn}{turn}[[node.build]]\ntext = \"done\"\n"));
    bench.glovebox(&["resume", "r", "--script", "long.toml"]).ends(0);
}

#[test]
fn a_first_script_answers_from_its_first_turn() {
    let bench = Workbench::with_pipeline(&workbench::LINEAR.replace("prompt=", "\"test.outcome\"=\"fail\", prompt="));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    bench.write("script.toml", "[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n");
    bench.glovebox(&["resume", "r", "--script", "script.toml"]).ends(11).says("resume r --script script.toml --replan");
    bench.glovebox(&["resume", "r", "--script", "script.toml", "--replan"]).ends(0);
    let shown = bench.glovebox(&["show", "r", "--json"]).json();
    assert_eq!((&shown["simulated"], &shown["model"]), (&Value::Null, &"scripted".into()), "a script answered");
}

#[test]
fn a_run_may_begin_at_a_node_and_gates_before_it_stay_unmet() {
    let bench = Workbench::with_pipeline(
        "digraph late { start [shape=Mdiamond]; done [shape=Msquare]
         a [prompt=x, allowed_write_paths=\"\"]; b [prompt=x, allowed_write_paths=\"\"]
         start -> a -> b -> done }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--from", "b", "--run-id", "r"]).ends(0);
    assert_eq!(visits(&bench, "r"), named(&[("b", 1)]));
    bench.glovebox(&["run", "pipeline.dot", "--from", "c", "--run-id", "s"]).ends(2).says("has no node `c`");
    assert!(!bench.run_folder("s").exists(), "what is refused makes no run");
    bench.write("pipeline.dot", &bench.read("pipeline.dot").replace("a [prompt=x", "a [goal_gate=true, prompt=x"));
    bench.glovebox(&["run", "pipeline.dot", "--from", "b", "--run-id", "t"]).ends(4).says("`a` was never visited");
    bench.glovebox(&["resume", "t"]).ends(0);
    assert_eq!(visits(&bench, "t"), named(&[("b", 1), ("a", 1), ("b", 2)]), "it begins again at the gate");
}

#[test]
fn checks_of_branches_that_a_resume_leaves_prove_nothing() {
    let fresh = "test $(wc -l < src) -lt 2";
    let check = |name: &str, command: &str| {
        format!("{name} [shape=parallelogram, tool_command=\"{command}\", allowed_write_paths=\"\"]\n")
    };
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ graph [max_steps=60]\nstart [shape=Mdiamond]; done [shape=Msquare]
         build [shape=parallelogram, tool_command=\"echo v >> src\", allowed_write_paths=src]
         f [shape=component, error_policy=ignore]; j [shape=tripleoctagon, merge=all]
         {}{}{}start -> build -> f; f -> pre -> test -> j; f -> slow -> j; j -> done }}",
        check("pre", fresh),
        check("test", fresh),
        check("slow", &format!("{} || sleep 30", fresh.replace("-lt", "-ge"))),
    ));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--max-wall-time", "3s"]).ends(5);
    let answer = bench.glovebox(&["resume", "r", "--from", "build", "--max-wall-time", "1h"]);
    answer.ends(0).says("not verified pre").never_says("\nverified     pre").never_says("\nverified     test");
}

#[test]
fn checks_of_an_earlier_generation_prove_nothing() {
    let bench = Workbench::with_pipeline(
        "digraph g { graph [max_steps=40]
         start [shape=Mdiamond]; done [shape=Msquare]
         b [prompt=x, allowed_write_paths=src]
         t [shape=parallelogram, tool_command=\"grep -q good src\", allowed_write_paths=\"\"]
         start -> b -> t [condition=\"context.n!=2\"]
         t -> b [loop_restart=true]
         b -> done [condition=\"context.n=2\"] }",
    );
    let turn = |content: &str, outcome: &str| {
        format!(
            "[[node.b]]\ntool = [{{ name = \"write_file\", arguments = {{ path = \"src\", content = \"{content}\" }} }}]\n[[node.b]]\ntext = \"x\"\noutcome = {{ {outcome} }}\n"
        )
    };
    let last = turn("bad", "status = \"success\", context_updates = { n = \"2\" }");
    bench.write("script.toml", &(turn("good", "status = \"success\"") + &last));
    let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", "script.toml"]);
    answer.ends(0).never_says("\nverified     t:");
    assert_eq!(bench.run_text("r", "workspace/src"), "bad");
}

/// Returns a stage that passes if its flag file exists and that changes nothing.
fn flagged(name: &str) -> String {
    format!(" {name} [shape=parallelogram, tool_command=\"test -e $FLAG.{name}\", allowed_write_paths=\"\"]\n")
}

fn raise(bench: &Workbench, name: &str) {
    std::fs::write(bench.outside().join(format!("flags/up.{name}")), "up").unwrap();
}

/// Creates a pipeline with flagged stages and a stage `abort` that reports their failure and fails itself. `edges`
/// connect them.
fn reported(stages: &[&str], edges: &str) -> Workbench {
    let bench = flaky();
    let stages: String = stages.iter().map(|name| flagged(name)).collect();
    bench.write(
        "pipeline.dot",
        &format!(
            "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n{stages}
             abort [shape=parallelogram, tool_command=\"echo the build is broken; exit 1\", allowed_write_paths=\"\"]
             {edges} abort -> done }}"
        ),
    );
    bench
}

#[test]
fn a_resume_begins_again_at_the_stage_that_failed_and_not_at_the_one_that_reported_it() {
    let bench = reported(
        &["fix"],
        "start -> fix; fix -> done [condition=\"outcome=success\"]; fix -> abort [condition=\"outcome=fail\"];",
    );
    let ended = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    ended.ends(1).says("because      abort: ");
    ended.says("next         glovebox show latest fix, then glovebox resume r (restarts at fix) or run again");
    let shown = bench.glovebox(&["show", "r", "--json"]).json();
    assert_eq!((&shown["failed_node"], &shown["resumes_at"]), (&"abort".into(), &"fix".into()));
    bench.glovebox(&["resume", "r"]).ends(1).says("resumed from fix").says("restarts at fix");
    raise(&bench, "fix");
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(
        visits(&bench, "r"),
        named(&[("fix", 1), ("abort", 1), ("fix", 2), ("abort", 2), ("fix", 3)]),
        "the reporter did not run again"
    );
    assert_eq!(bench.glovebox(&["show", "r", "--json"]).json()["resumes_at"], Value::Null);
}

#[test]
fn a_resume_goes_back_over_all_that_only_passed_a_failure_on() {
    let bench = reported(
        &["first", "fix"],
        "say [shape=parallelogram, tool_command=\"echo it failed\", allowed_write_paths=\"\"]
         which [shape=diamond]
         start -> first -> fix; fix -> done [condition=\"outcome=success\"]; fix -> which [condition=\"outcome=fail\"]
         which -> say [condition=\"outcome=fail\"]; which -> done; say -> abort;",
    );
    raise(&bench, "first");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1).says("(restarts at fix)");
    raise(&bench, "fix");
    bench.glovebox(&["resume", "r"]).ends(0);
    let again = visits(&bench, "r").into_iter().filter(|(_, visit)| *visit == 2).collect::<Vec<_>>();
    assert_eq!(again, named(&[("fix", 2)]), "nothing else ran twice");
}

#[test]
fn a_failure_that_a_later_stage_mended_is_none_to_go_back_to() {
    let bench = reported(
        &["test", "deploy"],
        "mend [shape=parallelogram, tool_command=\"echo mended > out/mended\", allowed_write_paths=\"out/\"]
         start -> test; test -> deploy [condition=\"outcome=success\"]; test -> mend [condition=\"outcome=fail\"]
         mend -> deploy -> done; mend -> abort [condition=\"outcome=fail\"];",
    );
    let ended = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    ended.ends(1).says("because      deploy: ").never_says("(restarts at");
    raise(&bench, "deploy");
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(visits(&bench, "r"), named(&[("test", 1), ("mend", 1), ("deploy", 1), ("deploy", 2)]));
}

#[test]
fn a_stage_without_visits_left_is_none_to_go_back_to() {
    let edges = "start -> test; test -> done [condition=\"outcome=success\"]; test -> fix [condition=\"outcome=fail\"]
         fix -> done [condition=\"outcome=success\"]; fix -> abort [condition=\"outcome=fail\"];";
    let bench = reported(&["test", "fix"], edges);
    let limited = bench.read("pipeline.dot").replace("$FLAG.test\"", "$FLAG.test\", max_visits=1");
    bench.write("pipeline.dot", &limited);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1).says("(restarts at fix)");
    raise(&bench, "fix");
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(visits(&bench, "r"), named(&[("test", 1), ("fix", 1), ("abort", 1), ("fix", 2)]));
}

#[test]
fn a_resume_that_was_told_where_to_begin_is_no_reason_to_stay_there() {
    let bench = reported(
        &["fix"],
        "start -> fix; fix -> done [condition=\"outcome=success\"]; fix -> abort [condition=\"outcome=fail\"];",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    bench.glovebox(&["resume", "r", "--from", "abort"]).ends(1).says("resumed from abort");
    raise(&bench, "fix");
    bench.glovebox(&["resume", "r"]).ends(0).says("resumed from fix");
}

/// An agent that only reports a failure does not fix it. A resume still begins at the stage that failed.
#[test]
fn a_reporter_that_passes_does_not_hide_what_failed() {
    let bench = reported(
        &["fix"],
        "note [prompt=\"Say what failed\", allowed_write_paths=\"\"]
         start -> fix; fix -> done [condition=\"outcome=success\"]; fix -> note [condition=\"outcome=fail\"]; note -> abort;",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1).says("(restarts at fix)");
    raise(&bench, "fix");
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(visits(&bench, "r"), named(&[("fix", 1), ("note", 1), ("abort", 1), ("fix", 2)]));
}

/// The author tolerates a failure if its edge leads to the stage that follows a success, directly or through a stage
/// that only reports it.
#[test]
fn a_failure_that_was_tolerated_is_none_to_go_back_to() {
    for way in [
        "lint -> pack [condition=\"outcome=fail\"];",
        "say [prompt=x, allowed_write_paths=\"\"]; which [shape=diamond]
         lint -> say [condition=\"outcome=fail\"]; say -> which -> pack;",
    ] {
        let edges = format!(
            "pack [shape=parallelogram, tool_command=true, allowed_write_paths=\"\"]
             start -> lint; {way} lint -> pack [condition=\"outcome=success\"]
             pack -> deploy -> done; pack -> abort [condition=\"outcome=fail\"];"
        );
        let bench = reported(&["lint", "deploy"], &edges);
        bench
            .glovebox(&["run", "pipeline.dot", "--run-id", "r"])
            .ends(1)
            .says("because      deploy: ")
            .never_says("(restarts at");
        raise(&bench, "deploy");
        bench.glovebox(&["resume", "r"]).ends(0).says("resumed from deploy");
        let again = visits(&bench, "r").into_iter().filter(|(_, visit)| *visit == 2).collect::<Vec<_>>();
        assert_eq!(again, named(&[("deploy", 2)]), "{way}");
    }
}

/// The fix changes nothing in the workspace: it is a by-product that git ignores.
#[test]
fn a_stage_that_has_passed_since_is_none_to_go_back_to() {
    let bench = reported(
        &["deploy"],
        "test [shape=parallelogram, tool_command=\"test -e target/x\", allowed_write_paths=\"\"]
         mend [shape=parallelogram, tool_command=\"mkdir -p target; touch target/x\", allowed_write_paths=\"\"]
         start -> test; test -> mend [condition=\"outcome=fail\"]; mend -> test; mend -> abort [condition=\"outcome=fail\"]
         test -> deploy [condition=\"outcome=success\"]; deploy -> done;",
    );
    bench.write(".gitignore", "target/\n");
    bench
        .glovebox(&["run", "pipeline.dot", "--run-id", "r"])
        .ends(1)
        .says("because      deploy: ")
        .never_says("(restarts at");
    raise(&bench, "deploy");
    bench.glovebox(&["resume", "r"]).ends(0);
    let expected = [("test", 1), ("mend", 1), ("test", 2), ("deploy", 1), ("deploy", 2)];
    assert_eq!(visits(&bench, "r"), named(&expected));
}

#[test]
fn a_stage_that_can_mend_no_more_gives_way_to_the_one_that_it_was_to_mend() {
    let edges = "start -> test; test -> done [condition=\"outcome=success\"]; test -> fix [condition=\"outcome=fail\"]
         fix -> test [condition=\"outcome=success\"]; fix -> abort [condition=\"outcome=fail\"];";
    let bench = reported(&["test", "fix"], edges);
    let limited = bench.read("pipeline.dot").replace("$FLAG.fix\"", "$FLAG.fix\", max_visits=1");
    bench.write("pipeline.dot", &limited);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1).says("(restarts at test)");
    raise(&bench, "test");
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(visits(&bench, "r"), named(&[("test", 1), ("fix", 1), ("abort", 1), ("test", 2)]));
}

#[test]
fn a_resume_without_a_stage_that_has_visits_left_is_refused() {
    let bench =
        reported(&["first", "fix"], "start -> first -> fix -> done; first -> abort [condition=\"outcome=fail\"];");
    raise(&bench, "first");
    let limited = bench.read("pipeline.dot").replace("$FLAG.fix\"", "$FLAG.fix\", max_visits=1");
    bench.write("pipeline.dot", &limited);
    let next = "next         glovebox show latest fix, then run again";
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1).says(next);
    let before = bench.run_text("r", "progress.ndjson");
    let refused = bench.glovebox(&["resume", "r"]);
    refused.ends(5).says("node `fix` has used up `max_visits` (1), and no other failed stage has visits left");
    refused.says("help: restart at another stage: `glovebox resume r --from NODE`");
    assert_eq!(bench.run_text("r", "progress.ndjson"), before, "what is refused changes nothing");
    bench.glovebox(&["resume", "r", "--from", "first"]).ends(5).says("exceeded `max_visits` (1)");
}

/// Files of a run may contain what a command read in the history. A new plan could send them away.
#[test]
fn a_plan_that_takes_back_the_history_is_refused_whatever_is_answered() {
    let bench = Workbench::with_pipeline(
        "digraph g { start; done; read [shape=parallelogram, tool_command=\"git log -p --all > dump.txt\"]\n\
         next [shape=parallelogram, tool_command=\"false\"]; start -> read -> next -> done }",
    );
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
        let mut command = std::process::Command::new("git");
        assert!(command.current_dir(bench.project()).args(identity).args(words).status().unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    for setting in ["[sandbox]\nnetwork = \"full\"\n", "[workspace]\ngit = \"commit\"\n"] {
        bench.write("glovebox.toml", setting);
        let refused = bench.glovebox(&["resume", "r", "--replan", "--yes"]);
        refused.ends(6).says("could read the history of the repository").says("start a new run");
    }
}
