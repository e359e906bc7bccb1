//! How often work is repeated after a failed verification (decision repetitions-by-category): limits by category and by
//! failure signature, and the wait before a repetition.

use crate::workbench::{self, Answer, Workbench};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A loop with a verification stage that runs `sh tests/check.sh`. The stage `fix` does not change the result of the
/// check.
const LOOP: &str = "graph [loop_restart_signature_limit=20]
  check [type=verification, allowed_write_paths=\"\", \"verification.allowed_commands\"=\"\"]
  fix [shape=parallelogram, tool_command=\"echo fixed >> log\", allowed_write_paths=\"log\"]
  start -> check
  check -> exit [condition=\"outcome=success\"]
  check -> fix [condition=\"outcome=fail\"]
  fix -> check";
/// The same check as `verify_command` of a node.
const OWN: &str = "graph [loop_restart_signature_limit=20]
  build [prompt=\"Build it.\", allowed_write_paths=\"\", verify_command=\"sh tests/check.sh\", max_retries=5]
  start -> build -> exit";

fn project(body: &str, check: &str, config: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  graph [max_steps=60]\n  start [shape=Mdiamond]; exit [shape=Msquare]\n  {body}\n}}\n"
    ));
    bench.write("tests/check.sh", check);
    bench.write(".opentiger/verify.contract.json", r#"{"commands": ["sh tests/check.sh"]}"#);
    bench.write("glovebox.toml", config);
    bench
}

fn run(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
}

/// Returns every attempt of a verification, as `why` shows it.
fn verifications(bench: &Workbench, node: &str) -> Vec<Value> {
    let why = bench.glovebox(&["why", "r", node, "--json"]).ends(0).json();
    let steps = why["steps"].as_array().unwrap().iter().map(|step| step["attempt"].clone());
    steps.filter(|attempt| attempt.is_object() && (node != "build" || attempt["is_verification"] == true)).collect()
}

/// Fails with different output each time.
const OTHER: &str = "head -c 9 /dev/urandom | od -An -tx1 | tr 0-9 g-p; exit 1\n";

#[test]
fn a_test_that_fails_is_tried_four_times() {
    let bench = project(LOOP, OTHER, "[verify]\n");
    run(&bench).ends(1).says("category `test`, the limit of the category is 3 retries");
    assert_eq!(verifications(&bench, "check").len(), 4);
    assert_eq!(bench.run_text("r", "workspace/log").lines().count(), 3);
    let bench = project(OWN, OTHER, "[verify]\n");
    run(&bench).ends(1);
    assert_eq!(verifications(&bench, "build").len(), 4, "the first, and three repetitions of five");
}

/// Stages that only run a check have the same limits as a verification stage.
#[test]
fn octagon_and_tool_stages_have_the_limits_of_their_category() {
    let stages = [
        "check [shape=octagon, allowed_write_paths=\"\", command=\"sh tests/check.sh\"]",
        "check [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"sh tests/check.sh\"]",
    ];
    let verification = LOOP.lines().find(|line| line.contains("type=verification")).unwrap();
    for stage in stages {
        let body = LOOP.replace(verification, stage);
        let bench = project(&body, OTHER, "[verify]\n");
        run(&bench).ends(1).says("the limit of the category is 3 retries");
        assert_eq!(bench.run_text("r", "workspace/log").lines().count(), 3, "{stage}");
        let bench = project(&body, OTHER, "");
        run(&bench).never_says("the limit of the category");
        assert!(bench.run_text("r", "workspace/log").lines().count() > 3, "{stage}");
    }
}

#[test]
fn without_the_table_a_pipeline_keeps_its_own_bounds() {
    let bench = project(OWN, OTHER, "");
    run(&bench).ends(1);
    assert_eq!(verifications(&bench, "build").len(), 6);
    assert_eq!(verifications(&bench, "build")[0]["error_meta"]["category"], "test");
}

#[test]
fn the_operator_lowers_the_bound_and_never_raises_it() {
    let check = |config: &str, variable: Option<&str>, tries: usize| {
        let bench = project(OWN, OTHER, config);
        let mut command = bench.command(&["run", "pipeline.dot", "--run-id", "r"]);
        command.envs(variable.map(|value| ("FAILED_TASK_MAX_RETRY_COUNT", value)));
        Answer::of(&mut command).ends(1);
        assert_eq!(verifications(&bench, "build").len(), tries, "{config} {variable:?}");
    };
    check("[verify.retry]\nmax_retries = 1\n", None, 2);
    check("[verify.retry]\nmax_retries = 900\n", None, 4);
    check("[verify.retry]\nmax_retries = 1\n", Some("-1"), 4);
    check("", Some("0"), 1);
}

#[test]
fn the_same_failure_in_a_row_ends_the_run() {
    let bench = project(LOOP, "echo same; exit 1\n", "[verify.retry]\nrepeated_signature_threshold = 2\n");
    run(&bench)
        .ends(1)
        .says("repeated_same_failure_signature: `check` failed 2 times in a row in the same way")
        .says("`repeated_signature_threshold` of `[verify.retry]` is 2");
    assert_eq!(verifications(&bench, "check").len(), 2);
}

#[test]
fn what_cannot_be_mended_goes_only_where_no_way_leads_back() {
    let config = "[verify.worker]\nrecovery_attempts = 0\n";
    let contract = r#"{"commands": ["npm run lint"]}"#;
    let missing = |body: &str| {
        let bench = project(body, "", config);
        bench.write(".opentiger/verify.contract.json", contract);
        bench.write("package.json", "{}");
        bench.write("bin/npm", "#!/bin/sh\nexit 1\n");
        bench
    };
    if !workbench::is_on_this_machine("npm") {
        workbench::not_run("what_cannot_be_mended_goes_only_where_no_way_leads_back", "npm is not installed");
        return;
    }
    let bench = missing(LOOP);
    run(&bench).ends(1).says("`verification_command_missing_script` (category `setup`), which is not retried");
    assert_eq!(verifications(&bench, "check").len(), 1);
    let bench = missing(&LOOP.replace("fix -> check", "fix -> exit"));
    run(&bench).ends(0);
}

#[test]
fn wrong_settings_are_refused() {
    for (field, value, says) in [
        ("max_retries", "-2", "`-2` is not a number from -1 to 1000"),
        ("max_retries", "1001", "from -1 to 1000"),
        ("repeated_signature_threshold", "1", "`1` is not a number from 2 to 100"),
        ("cooldown_seconds", "86401", "from 0 to 86400"),
        ("cooldown_seconds", "\"soon\"", "`soon` is not a number from 0 to 86400"),
        ("cooldown", "1", "cooldown_seconds"),
    ] {
        let bench = project(OWN, OTHER, &format!("[verify.retry]\n{field} = {value}\n"));
        run(&bench).ends(3).says(says);
    }
    for (variable, value) in [("FAILED_TASK_MAX_RETRY_COUNT", "x"), ("FAILED_TASK_REPEATED_SIGNATURE_THRESHOLD", "1")] {
        let bench = project(OWN, OTHER, "");
        let mut command = bench.command(&["run", "pipeline.dot"]);
        Answer::of(command.env(variable, value)).ends(2).says(variable);
    }
}

#[test]
fn what_failed_is_told_where_people_look() {
    let bench = project(LOOP, "echo same; exit 1\n", "[verify.retry]\nmax_retries = 0\n");
    run(&bench).ends(1);
    let expected = json!({
        "source": "verification", "failureCode": "verification_command_failed", "category": "test", "retryable": true,
        "failedCommand": "sh tests/check.sh", "failedCommandSource": "explicit",
    });
    let explicit = |meta: &Value| {
        assert_eq!(*meta, expected);
    };
    explicit(&bench.run_json("r", "check/status.json")["error_meta"]);
    explicit(&bench.glovebox(&["show", "r", "--json"]).ends(0).json()["error_meta"]);
    explicit(&verifications(&bench, "check")[0]["error_meta"]);
    bench.glovebox(&["why", "r"]).ends(0).says("verification_command_failed (test): sh tests/check.sh");
    let bench = project(OWN, "exit 3\n", "");
    run(&bench).ends(1);
    let meta = &bench.run_json("r", "build/status.json")["error_meta"];
    assert_eq!((&meta["failureCode"], &meta["failedCommandSource"]), (&json!("test_failure"), &json!("explicit")));
    assert_eq!(meta["failedCommand"], "sh tests/check.sh");
}

/// What a verifier with hold-outs learned is shown only to people. The facts for agents do not contain the failed
/// command.
#[test]
fn hold_outs_keep_the_failed_command_out_of_the_facts() {
    let bench = project(
        "graph [scenarios=\"scripts/scenarios/\"]
  check [shape=box, prompt=\"Claim it.\", allowed_write_paths=\"\",
         verify_command=\"sh scripts/scenarios/secret.sh\"]
  show [prompt=\"What failed?\", allowed_write_paths=\"\"]
  start -> check
  check -> exit [condition=\"outcome=success\"]
  check -> show [condition=\"outcome=fail\"]
  show -> exit",
        "",
        "[verify]\n",
    );
    bench.write("scripts/scenarios/secret.sh", "echo canary; exit 7\n");
    run(&bench).ends(0);
    let meta = &bench.run_json("r", "check/status.json")["error_meta"];
    let expected =
        json!({"source": "verification", "failureCode": "test_failure", "category": "test", "retryable": true});
    assert_eq!(*meta, expected);
    let told = bench.run_text("r", "show/prompt.md");
    for secret in ["canary", "test_failure", "errorMeta", "error_meta", "exit=7", "exit_code=7"] {
        assert!(!told.contains(secret), "{told}");
    }
}

/// A run that is killed while it waits for a repetition continues after the rest of the wait and keeps the count of
/// repetitions.
#[test]
fn a_killed_run_waits_for_the_rest_and_keeps_its_count() {
    let body = OWN.replace("max_retries=5", "max_retries=5, verify_timeout=\"1s\"");
    let bench = project(&body, "sleep 20\n", "[verify.retry]\nmax_retries = 1\ncooldown_seconds = 6\n");
    let mut child = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    let journal = || bench.glovebox(&["why", "r", "build", "--json"]);
    let patience = Instant::now() + Duration::from_secs(60);
    while !journal().stdout.contains("\"delay_ms\"") {
        assert!(Instant::now() < patience, "the first verification has ended");
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    bench.glovebox(&["resume", "r"]);
    let found = verifications(&bench, "build");
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!(found[0]["error_meta"]["category"], "flaky");
    assert_eq!(found[0]["delay_ms"], 6000);
    let records = bench.glovebox(&["show", "r", "build", "--json"]).ends(0).json();
    let of = |kind: &str| {
        let events = records.as_array().unwrap().iter().filter(|record| record["event"]["kind"] == kind);
        events.map(|record| (record["event"].clone(), record["at"].as_str().unwrap().to_owned())).collect::<Vec<_>>()
    };
    let due = of("stage.retrying")[0].0["due_at"].as_str().unwrap().to_owned();
    let repeated: Vec<_> = of("stage.started").into_iter().filter(|(event, _)| event["ordinal"] == 2).collect();
    assert!(!repeated.is_empty() && repeated.iter().all(|(_, at)| *at >= due), "{records:#}");
}

#[test]
fn a_resume_of_a_run_that_ended_at_its_bound_counts_anew() {
    let bench = project(LOOP, OTHER, "[verify.retry]\nmax_retries = 1\n");
    run(&bench).ends(1);
    assert_eq!(verifications(&bench, "check").len(), 2);
    bench.glovebox(&["resume", "r"]).ends(1).says("`max_retries` of `[verify.retry]` is 1 retries");
    assert_eq!(verifications(&bench, "check").len(), 4);
}
