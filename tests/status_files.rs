//! Stages that answer by a status file, with the real binary: which file decides, what it may change, and what it can never do.
//!
//! The witnesses are the journal, `status.json` of the stage, the workspace of the run, and what the next stage gets.

use crate::providers::{Bench, Turn, stand_in};
use crate::workbench::journal::{copy_prefix, end};
use crate::workbench::{Answer, Workbench};
use serde_json::{Value, json};

/// Creates a pipeline whose only work is a tool stage that answers by a file. `more` are further attributes of the node.
pub(crate) fn bench(script: &str, more: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]; fixed [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]\n\
         \x20 t [shape=parallelogram, tool_command=\"sh t.sh\", {more}]\n\
         \x20 start -> t; t -> done; t -> fixed [label=fix]; fixed -> done\n}}\n"
    ));
    bench.write("t.sh", script);
    bench
}

/// The attributes of a stage that answers by a file and may write nothing.
pub(crate) const ASKED: &str = "status_file=true, allowed_write_paths=\"\"";

/// Runs the pipeline.
pub(crate) fn run(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
}

/// Returns the events of one kind.
pub(crate) fn events(bench: &Workbench, kind: &str) -> Vec<Value> {
    let lines = bench.run_text("r", "progress.ndjson");
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|record| record["event"].clone()).filter(|event| event["kind"] == kind).collect()
}

/// Returns the decision about the status files of the stage `t`.
pub(crate) fn decision(bench: &Workbench) -> Value {
    let found = events(bench, "status.ingested");
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

/// Returns the record of the stage `t`.
pub(crate) fn status(bench: &Workbench) -> Value {
    bench.run_json("r", "t/status.json")
}

/// Returns the stages in the order of their ends.
pub(crate) fn visited(bench: &Workbench) -> Vec<String> {
    let finished = events(bench, "stage.finished");
    finished.iter().map(|event| event["node"].as_str().unwrap().to_owned()).collect()
}

/// The path of the file in the drop folder, for a shell.
pub(crate) const DROP: &str = "\"$GLOVEBOX_STATUS_DIR/status.json\"";

#[test]
fn the_file_in_the_drop_folder_wins_and_routes() {
    let script = format!(
        "echo '{{\"outcome\":\"fail\"}}' > status.json\n\
         printf '{{\"outcome\":\"partial_success\",\"preferred_label\":\"fix\",\"notes\":\"two of three\",\"context_updates\":{{\"left\":1}},\
         \"status_owner_node_id\":\"%s\",\"status_owner_attempt_id\":\"%s\",\"status_owner_run_generation\":%s}}' \
         \"$GLOVEBOX_STATUS_NODE_ID\" \"$GLOVEBOX_STATUS_ATTEMPT_ID\" \"$GLOVEBOX_STATUS_RUN_GENERATION\" > {DROP}\n"
    );
    let bench = bench(&script, "status_file=true, allowed_write_paths=\"status.json\"");
    run(&bench).ends(0).says("answers by $GLOVEBOX_STATUS_DIR/status.json");
    assert_eq!(visited(&bench), ["t", "fixed"]);
    let decided = decision(&bench);
    assert_eq!((&decided["source"], &decided["effect"]), (&json!("drop"), &json!("accepted")));
    assert_eq!(
        decided["searched"],
        json!([{ "place": "drop", "path": "status.json", "found": "parsed", "owner": "named" }])
    );
    let kept = status(&bench);
    assert_eq!((&kept["outcome"], &kept["context_updates"]["left"]), (&json!("partial_success"), &json!(1)));
    assert!(kept["notes"].as_str().unwrap().ends_with("two of three"), "{kept}");
    assert_eq!((&kept["status_source"], &kept["status_source_path"]), (&json!("drop"), &json!("status.json")));
    assert_eq!(kept["status_source_digest"], decided["copy"]["digest"]);
    let copy = bench.run_text("r", "t/status.source.json");
    assert!(copy.contains("two of three") && decided["copy"]["bytes"] == copy.len(), "{copy}");
    // The second file is a status, too, so it is no change.
    assert_eq!(events(&bench, "stage.finished")[0]["changes"], json!([]));
    // The decision is in the same append as the result, and before it.
    let lines = bench.run_text("r", "progress.ndjson");
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = records.iter().position(|record| record["event"]["kind"] == "status.ingested").unwrap();
    assert_eq!(records[at + 1]["event"]["kind"], "stage.finished");
    assert_eq!(records[at]["at"], records[at + 1]["at"]);
}

#[test]
fn a_file_in_the_workspace_answers_in_any_dialect_and_is_no_change() {
    for (script, source, path) in [
        ("echo '{\"status\":\"ERROR\",\"failure_reason\":\"x is wrong\"}' > status.json", "workspace", "status.json"),
        (
            "mkdir .ai; echo '{\"status\":\"failure\",\"failure_reason\":\"x is wrong\"}' > .ai/status.json",
            "workspace-ai",
            ".ai/status.json",
        ),
        (
            "mkdir .ai; echo nonsense > status.json; rm status.json; echo '{\"outcome\":\"fail\",\"failure_reason\":\"x is wrong\"}' > .ai/status.json",
            "workspace-ai",
            ".ai/status.json",
        ),
    ] {
        let bench = bench(script, ASKED);
        run(&bench).ends(1).says("x is wrong").never_says("guardrail");
        let decided = decision(&bench);
        assert_eq!((&decided["source"], &decided["effect"]), (&json!(source), &json!("accepted")), "{script}");
        let kept = status(&bench);
        assert_eq!((&kept["outcome"], &kept["failure_reason"]), (&json!("fail"), &json!("x is wrong")));
        assert_eq!((&kept["status_source"], &kept["status_source_path"]), (&json!(source), &json!(path)));
        assert_eq!((&kept["failure_class"], &kept["failure_code"]), (&json!("deterministic"), &json!("status/failed")));
        let finished = &events(&bench, "stage.finished")[0];
        assert_eq!((&finished["changes"], &finished["quarantined"]), (&json!([]), &json!([])), "{script}");
    }
}

#[test]
fn a_file_that_git_ignores_answers_too() {
    let bench = bench("mkdir .ai; echo '{\"outcome\":\"fail\",\"failure_reason\":\"x\"}' > .ai/status.json", ASKED);
    bench.write(".gitignore", ".ai/\n");
    run(&bench).ends(1).never_says("git ignores");
    assert_eq!(decision(&bench)["source"], "workspace-ai");
}

#[test]
fn an_unusable_file_in_the_workspace_is_passed_over_and_stays_a_change() {
    let script = "mkdir .ai; echo nonsense > status.json; echo '{\"outcome\":\"fail\",\"failure_reason\":\"from .ai\"}' > .ai/status.json";
    let bench = bench(script, "status_file=true, allowed_write_paths=\"status.json\"");
    run(&bench).ends(1).says("from .ai").says("`status.json` of `t` was ignored, because it is no status");
    assert_eq!(decision(&bench)["searched"][1]["found"], "not_json");
    assert_eq!(bench.run_text("r", "workspace/status.json"), "nonsense\n");
    // Outside of the write scope, the file is a violation like any other.
    let bench = self::bench("echo nonsense > status.json", ASKED);
    run(&bench).ends(6).says("guardrail_violation: wrote disallowed files: status.json");
    assert_eq!(decision(&bench)["effect"], "none");
}

#[test]
fn a_file_that_was_there_before_is_not_the_answer() {
    let bench = bench("true", ASKED);
    bench.write("status.json", "{\"outcome\":\"fail\"}\n");
    bench.write(".ai/status.json", "{\"outcome\":\"fail\"}\n");
    run(&bench).ends(0);
    let decided = decision(&bench);
    assert_eq!((&decided["effect"], decided["searched"].as_array().unwrap().len()), (&json!("none"), 3));
    assert!(decided["searched"].as_array().unwrap().iter().all(|one| one["found"] == "missing"), "{decided}");
    assert_eq!(status(&bench)["status_source"], "returned");
}

#[test]
fn a_file_of_another_attempt_decides_nothing() {
    let foreign = "{\"outcome\":\"partial_success\",\"status_owner_attempt_id\":\"another\"}";
    let bench = bench(&format!("echo '{foreign}' > {DROP}"), ASKED);
    run(&bench).ends(1).says("belongs to another attempt").says("GLOVEBOX_STATUS_");
    let (decided, kept) = (decision(&bench), status(&bench));
    assert_eq!((&decided["effect"], &decided["searched"][0]["owner"]), (&json!("refused"), &json!("foreign")));
    assert_eq!((&kept["failure_code"], &kept["status_source"]), (&json!("status/foreign"), &json!("returned")));
    let bench = self::bench(
        &format!("echo '{foreign}' > status.json"),
        "status_file=true, allowed_write_paths=\"status.json\"",
    );
    run(&bench).ends(0).says("it belongs to another attempt");
    assert_eq!((&decision(&bench)["effect"], &status(&bench)["outcome"]), (&json!("none"), &json!("success")));
}

#[test]
fn whatever_is_at_the_path_nothing_is_followed_and_nothing_hangs() {
    for (script, found) in [
        (format!("printf '{{\"outcome\"' > {DROP}"), "not_json"),
        (format!("printf '\\377' > {DROP}"), "not_json"),
        (format!("printf '{{\"outcome\":\"done\"}}' > {DROP}"), "unknown_outcome"),
        (format!("printf '{{\"outcome\":\"fail\",\"outcome\":\"success\"}}' > {DROP}"), "duplicate_key"),
        (format!("echo '{{\"outcome\":\"success\"}}' > \"$TMPDIR/s\"; ln -s \"$TMPDIR/s\" {DROP}"), "not_a_file"),
        (format!("ln -s /etc/passwd {DROP}"), "not_a_file"),
        (format!("mkfifo {DROP}"), "not_a_file"),
        (format!("mkdir {DROP}"), "not_a_file"),
        (
            format!("head -c 70000 /dev/zero | tr '\\0' ' ' > {DROP}; echo '{{\"outcome\":\"success\"}}' >> {DROP}"),
            "too_long",
        ),
        (format!("printf '{{\"outcome\":\"success\",\"preferred_label\":\"a\\\\u202eb\"}}' > {DROP}"), "out_of_bounds"),
        (format!("printf '{{\"outcome\":\"success\",\"notes\":7}}' > {DROP}"), "wrong_type"),
    ] {
        let bench = bench(&script, ASKED);
        run(&bench).ends(1).says("$GLOVEBOX_STATUS_DIR/status.json` is no status");
        let decided = decision(&bench);
        assert_eq!(
            (&decided["searched"][0]["found"], &decided["effect"]),
            (&json!(found), &json!("refused")),
            "{script}"
        );
        let kept = status(&bench);
        assert_eq!(
            (&kept["failure_code"], &kept["failure_class"]),
            (&json!("status/unreadable"), &json!("deterministic"))
        );
    }
}

#[test]
fn a_failed_command_stays_failed_and_a_file_may_name_its_way_on() {
    let bench =
        bench(&format!("echo '{{\"outcome\":\"success\",\"preferred_label\":\"fix\"}}' > {DROP}; exit 3"), ASKED);
    run(&bench).ends(1).says("tool_exit_code_3").says("is not followed, because the stage failed");
    assert_eq!((&decision(&bench)["effect"], visited(&bench)), (&json!("overruled"), vec!["t".to_owned()]));
    assert_eq!(status(&bench)["preferred_label"], "");
    let stated = "{\"outcome\":\"fail\",\"failure_reason\":\"2 tests\",\"failure_class\":\"transient\",\"failure_code\":\"limit/turns\"}";
    let bench = self::bench(&format!("echo '{stated}' > {DROP}; exit 3"), ASKED);
    run(&bench).ends(1).says("tool_exit_code_3");
    let kept = status(&bench);
    assert_eq!((&kept["failure_code"], &kept["failure_class"]), (&json!("tool/exit-code"), &json!("deterministic")));
    assert!(kept["notes"].as_str().unwrap().contains("the status file says: 2 tests"), "{kept}");
    assert_eq!(kept["status_source"], "returned");
}

#[test]
fn a_stage_that_breaks_its_scope_fails_whatever_its_file_claims() {
    let bench = bench(&format!("echo x > other.txt; echo '{{\"outcome\":\"success\"}}' > {DROP}"), ASKED);
    run(&bench).ends(6).says("guardrail_violation: wrote disallowed files: other.txt");
    assert_eq!(
        (&status(&bench)["failure_code"], &status(&bench)["status_source"]),
        (&json!("scope/write"), &json!("returned"))
    );
}

#[test]
fn a_claimed_class_or_code_is_ignored_and_a_retry_is_an_attempt() {
    let script = format!(
        "if test -e seen; then exit 0; fi; touch seen\n\
         echo '{{\"outcome\":\"retry\",\"failure_class\":\"canceled\",\"failure_code\":\"host/fault\",\"failure_reason\":\"later\"}}' > {DROP}"
    );
    let bench = bench(&script, "status_file=true, max_retries=1, allowed_write_paths=\"seen\"");
    run(&bench).ends(0);
    let finished = events(&bench, "stage.finished");
    let failure = &finished[0]["outcome"]["failure"];
    assert_eq!((&failure["class"], &failure["code"]), (&json!("transient"), &json!("status/failed")));
    assert_eq!((finished.len(), &finished[1]["outcome"]["status"]), (2, &json!("success")));
    let decided = events(&bench, "status.ingested");
    assert_eq!((decided.len(), &decided[0]["effect"], &decided[1]["effect"]), (2, &json!("accepted"), &json!("none")));
}

#[test]
fn a_context_key_of_the_engine_is_refused_as_from_a_component() {
    let stated = "{\"outcome\":\"success\",\"context_updates\":{\"mine\":1,\"internal.retry_count.t\":9,\"graph.goal\":\"x\",\"tool.output\":\"forged\"}}";
    let bench = bench(&format!("echo real; echo '{stated}' > {DROP}"), ASKED);
    run(&bench).ends(0);
    let updates = status(&bench)["context_updates"].clone();
    assert_eq!(updates, json!({ "mine": 1, "tool.output": "real\n" }));
    assert_eq!(events(&bench, "stage.finished")[0]["refusals_total"], 2);
}

#[test]
fn without_the_attribute_a_status_file_is_a_change_and_the_summary_says_so() {
    let bench = bench("echo '{\"outcome\":\"fail\"}' > status.json", "allowed_write_paths=\"status.json\"");
    run(&bench).ends(0).says("`status.json` of `t` was ignored").says("add `status_file=true` to the node");
    assert!(events(&bench, "status.ingested").is_empty());
    assert_eq!(events(&bench, "stage.finished")[0]["unread_status"], json!(["status.json"]));
    assert!(bench.run_text("r", "workspace/status.json").contains("fail"));
    let shown = bench.glovebox(&["show", "r", "--json"]).ends(0).json();
    assert_eq!(shown["unread_status"], json!([{ "node": "t", "path": "status.json", "reason": "not_asked" }]));
    // A stage without the attribute has no drop folder.
    let bench = self::bench("test -z \"$GLOVEBOX_STATUS_DIR\"", "allowed_write_paths=\"\"");
    run(&bench).ends(0).never_says("status file");
}

#[test]
fn each_attempt_has_its_own_empty_drop_folder_and_the_record_is_out_of_reach() {
    let script = "test -z \"$(ls -A \"$GLOVEBOX_STATUS_DIR\")\" || exit 9\n\
                  echo x > \"$GLOVEBOX_STATUS_DIR/other\"\n\
                  mkdir -p \"$GLOVEBOX_STATUS_DIR/a/b\"; chmod 0 \"$GLOVEBOX_STATUS_DIR/a\"\n\
                  ls \"$GLOVEBOX_STATUS_DIR/..\" | grep -q journal && exit 8\n\
                  exit 1\n";
    let bench = bench(script, "status_file=true, max_retries=1, allowed_write_paths=\"\"");
    run(&bench).ends(1).says("tool_exit_code_1");
    assert_eq!(events(&bench, "stage.finished").len(), 2);
    assert_eq!(
        std::fs::read_dir(bench.run_folder("r").join("stage")).map_or(0, Iterator::count),
        0,
        "removed with the attempt"
    );
}

#[test]
fn an_agent_program_answers_by_a_file() {
    let program = "\nopen(os.path.join(os.environ['GLOVEBOX_STATUS_DIR'], 'status.json'), 'w').write(json.dumps({\n\
                   'outcome': 'fail', 'failure_reason': 'the task is not clear', 'status_owner_node_id': os.environ['GLOVEBOX_STATUS_NODE_ID']}))\n\
                   print('OUTCOME: SUCCESS')\n";
    let bench = stand_in::bench(", status_file=true", program, &[Turn::text("one")]);
    bench.run().ends(1).says("the task is not clear").says("answers by $GLOVEBOX_STATUS_DIR/status.json");
    let claims_success = "\nopen(os.path.join(os.environ['GLOVEBOX_STATUS_DIR'], 'status.json'), 'w').write('{\"outcome\":\"success\"}')\n\
                          print('OUTCOME: FAIL it does not build')\n";
    let bench = stand_in::bench(", status_file=true", claims_success, &[Turn::text("one")]);
    bench.run().ends(1).says("it does not build").says("is not followed");
    let unasked =
        "open('src/status.json', 'w').write('{}')\nopen('status.json', 'w').write('{}')\nprint('OUTCOME: SUCCESS')\n";
    let wider = stand_in::pipeline("").replace("\"src/\"", "\"src/,status.json\"");
    let bench = Bench::new(&wider, "anthropic", &[Turn::text("one")]);
    bench.write("tools/agent.py", &format!("{}{unasked}", stand_in::PRELUDE));
    bench.write("src/a.txt", "old\n");
    bench.run().ends(0).says("`status.json` of `build` was ignored").never_says("`src/status.json`");
}

/// A judge writes a hold-out into its status file. Builders get the verdict, and nothing else.
#[test]
fn the_file_of_a_judge_discloses_nothing() {
    const SECRET: &str = "forty-two apples in a wicker basket";
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 judge [shape=parallelogram, tool_command=\"sh scripts/scenarios/judge.sh\", status_file=true]\n\
         \x20 build [prompt=\"mend it\", allowed_write_paths=\"out/\"]\n\
         \x20 start -> judge; judge -> done [condition=\"outcome=success\"]; judge -> build [condition=\"outcome=fail\"]; build -> done\n}\n",
    );
    let stated = format!(
        "{{\"outcome\":\"fail\",\"notes\":\"{SECRET}\",\"failure_reason\":\"{SECRET}\",\"preferred_label\":\"{SECRET}\",\"context_updates\":{{\"a\":\"{SECRET}\"}}}}"
    );
    bench.write("scripts/scenarios/judge.sh", &format!("echo '{stated}' > {DROP}\n"));
    std::fs::write(bench.outside().join("script.toml"), "[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n").unwrap();
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"]).ends(0).never_says(SECRET);
    let kept = bench.run_json("r", "judge/status.json");
    assert_eq!((&kept["outcome"], &kept["status_source"]), (&json!("fail"), &json!("drop")));
    assert!(!kept.to_string().contains(SECRET), "{kept}");
    for file in ["progress.ndjson", "trace.jsonl", "checkpoint.json", "build/prompt.md"] {
        assert!(!bench.run_text("r", file).contains(SECRET), "{file}");
    }
    assert!(bench.run_text("r", "judge/status.source.json").contains(SECRET), "the whole file is kept for people");
}

/// A crash after each record, also between the command and the commit of its result: the attempt is repeated, and one answer counts.
#[test]
fn a_crash_before_the_commit_leaves_one_answer() {
    let script = format!("echo '{{\"outcome\":\"partial_success\",\"notes\":\"n\"}}' > {DROP}; echo x > out.txt");
    let bench = bench(&script, "status_file=true, allowed_write_paths=\"out.txt\"");
    run(&bench).ends(0);
    let expected = end(&bench.run_folder("r"));
    let records = bench.run_text("r", "progress.ndjson").lines().count();
    for kept in 1..=records {
        let runs = format!(".glovebox/prefix-{kept}");
        let run = bench.project().join(&runs).join("r");
        copy_prefix(&bench, &run, kept as i64);
        bench.glovebox(&["resume", "r", "--runs-dir", &runs, "--quiet"]).ends(0);
        assert_eq!(end(&run), expected, "resumed from {kept} of {records} records");
        let status: Value = serde_json::from_str(&std::fs::read_to_string(run.join("t/status.json")).unwrap()).unwrap();
        assert_eq!((&status["outcome"], &status["status_source"]), (&json!("partial_success"), &json!("drop")));
        assert_eq!(status["notes"].as_str().unwrap().lines().filter(|line| *line == "n").count(), 1);
    }
}
