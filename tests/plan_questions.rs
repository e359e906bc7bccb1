//! Questions for a plan (decision plan-questions): what an agent is asked again, how often, how long it may take to
//! answer, and which questions a resume repeats.
//!
//! The witness is the log of the fake provider.

use crate::providers::{Bench, KEY, Turn};
use crate::workbench::Answer;

const PIPELINE: &str = "digraph ship {
  start [shape=Mdiamond]
  build [prompt=\"Build it.\", allowed_write_paths=\"src/\"]
  check [type=verification, allowed_write_paths=\"\", \"verification.allowed_commands\"=\"test -f\"]
  exit [shape=Msquare]
  start -> build -> check -> exit
}
";
const MISSING: &str = "Your answer has no verification plan.";
const WRONG: &str = "Your verification plan cannot be used:";

/// Creates a project with this `[verify]` configuration whose model gives these answers.
fn bench(verify: &str, turns: &[Turn]) -> Bench {
    of_pipeline(PIPELINE, verify, turns)
}

fn of_pipeline(pipeline: &str, verify: &str, turns: &[Turn]) -> Bench {
    let bench = Bench::new(pipeline, "openai", turns);
    let models = bench.project_text("glovebox.toml");
    bench.write("glovebox.toml", &format!("{models}\n{verify}"));
    bench.write("README", "read me\n");
    bench
}

fn done() -> Turn {
    Turn::text("Done.")
}

/// Returns an answer with a plan of these commands, as JSON.
fn plan(commands: &str) -> Turn {
    Turn::text(&format!("```json\n{{\"verification_plan\": {{\"commands\": [{commands}]}}}}\n```"))
}

fn good() -> Turn {
    plan("\"test -f README\"")
}

fn wrong() -> Turn {
    plan("\"rm README\"")
}

fn with_variable(bench: &Bench, variable: (&str, &str)) -> Answer {
    bench.with_variables(&["run", "pipeline.dot", "--run-id", "r"], &[("FAKE_KEY", KEY), variable])
}

#[test]
fn an_agent_is_asked_until_its_plan_can_run() {
    let turns = [done(), plan("\"rm README\", \"test -f README | tee x\""), good()];
    let bench = bench("[verify]\n", &turns);
    bench.run().ends(0);
    let asked = bench.requests();
    assert_eq!(asked.len(), 3);
    assert!(asked[1].contains(MISSING) && asked[1].contains("- test -f"), "{}", asked[1]);
    assert!(asked[2].contains(WRONG) && asked[2].contains("not allowed: rm README"), "{}", asked[2]);
    assert!(asked[2].contains("unsupported_format: `|` needs a shell"), "{}", asked[2]);
    let results = bench.run_json("check/verification.results.json");
    assert_eq!(results["commands"][0]["command"], "test -f README");
    assert_eq!(bench.read_in_run("build/response.md").trim(), "Done.", "the plan is no answer of the stage");
}

#[test]
fn what_cannot_be_read_is_named() {
    let check = |first: &str, says: &str| {
        let bench = bench("[verify]\n", &[Turn::text(first), good()]);
        bench.run().ends(0);
        let asked = bench.requests();
        assert!(asked.len() == 2 && asked[1].contains(WRONG) && asked[1].contains(says), "{says}: {asked:?}");
    };
    check("```json\n{\"verification_plan\": {\n```", "cannot be read: it is not one JSON object");
    check("```json\n{\"verification_plan\": [1]}\n```", "is not a JSON object, expected");
    check(
        "```json\n{\"verification_plan\": {\"commands\": \"test\"}}\n```",
        "`commands` of the verification plan is not a list",
    );
}

#[test]
fn a_plan_that_stays_wrong_fails_the_verification_as_before() {
    let failed = "verification command not allowed: rm README";
    let turns = [wrong(), wrong(), wrong(), good()];
    let default = bench("[verify]\n", &turns);
    default.run().ends(1).says(failed);
    assert_eq!(default.requests().len(), 3, "two questions unless the operator says how many");
    let none = bench("[verify.worker]\nplan_parse_retries = 0\n", &turns);
    none.run().ends(1).says(failed);
    assert_eq!(none.requests().len(), 1);
    let variable = bench("[verify.worker]\nplan_parse_retries = 0\n", &turns);
    with_variable(&variable, ("WORKER_VERIFY_PLAN_PARSE_RETRIES", "1")).ends(1).says(failed);
    assert_eq!(variable.requests().len(), 2, "the variable wins");
}

#[test]
fn only_an_agent_that_was_asked_for_a_plan_is_asked_again() {
    let off = "[verify.planner]\nmode = \"off\"\n";
    for verify in ["", off] {
        let bench = bench(verify, &[wrong(), good()]);
        // A plan that the agent makes without being asked runs in every mode.
        bench.run().ends(1).says("verification command not allowed: rm README");
        assert_eq!(bench.requests().len(), 1, "{verify}");
    }
    let pipeline = PIPELINE.replace("\"test -f\"", "\"\"");
    let bench = of_pipeline(&pipeline, "[verify]\n", &[done(), good()]);
    bench.run().ends(1).says("no verification command");
    assert_eq!(bench.requests().len(), 1, "no plan may have commands");
}

/// A provider that never answers, with each setting that limits the wait.
#[test]
fn an_answer_that_comes_too_late_counts_as_none() {
    let check = |first: Turn, verify: &str, variable: Option<(&str, &str)>| {
        let bench = bench(verify, &[first, Turn::text("never").stall(), good()]);
        let answer = match variable {
            Some(variable) => with_variable(&bench, variable),
            None => bench.run(),
        };
        answer.ends(0);
        assert_eq!(bench.requests().len(), 3, "{verify} {variable:?}");
        let log = bench.read_in_run("build/log.ndjson");
        assert!(log.contains("the answer did not come within 1 s"), "{verify} {variable:?}: {log}");
        assert_eq!(bench.run_json("check/status.json")["notes"], "verification passed: 1 of 1 commands");
    };
    check(done(), "[verify.planner]\nplan_timeout_seconds = 1\n", None);
    check(done(), "[verify.worker]\nplan_timeout_seconds = 1\n", None);
    check(done(), "[verify]\n", Some(("PLANNER_VERIFY_PLAN_TIMEOUT_SECONDS", "1")));
    check(done(), "[verify]\n", Some(("WORKER_VERIFY_PLAN_TIMEOUT_SECONDS", "1")));
    check(wrong(), "[verify.worker]\nreconcile_timeout_seconds = 1\n", None);
    check(wrong(), "[verify]\n", Some(("WORKER_VERIFY_RECONCILE_TIMEOUT_SECONDS", "1")));
}

/// The run is killed while it waits for the last answer. Neither the answered questions nor the one that timed out are
/// repeated.
#[test]
fn a_resume_asks_no_question_twice() {
    let verify = "[verify]\n[verify.planner]\nplan_timeout_seconds = 1\n[verify.worker]\nplan_parse_retries = 3\n";
    let never = || Turn::text("never").stall();
    let bench = bench(verify, &[done(), never(), wrong(), never(), good()]);
    bench.kill_run_after(4);
    bench.resume().ends(0);
    let asked = bench.requests();
    assert_eq!(asked.len(), 5, "only the question without an answer comes twice");
    assert_eq!(asked[3], asked[4]);
    assert!(asked[2].contains(MISSING) && asked[3].contains(WRONG));
    assert_eq!(asked[3].matches(MISSING).count(), 1, "the late question is not part of the conversation twice");
}

#[test]
fn limits_hold_and_a_stage_does_not_fail_for_want_of_a_question() {
    let pipeline = PIPELINE.replace("prompt=", "max_turns=1, prompt=");
    let bench = of_pipeline(&pipeline, "[verify]\n", &[wrong(), good()]);
    bench.run().ends(1).says("verification command not allowed: rm README");
    assert_eq!(bench.requests().len(), 1);
    assert_eq!(bench.run_json("build/status.json")["outcome"], "success");
    let pipeline = PIPELINE.replace("prompt=", "max_tokens=40000, prompt=");
    let bench = of_pipeline(&pipeline, "[verify]\n", &[wrong().usage(30000, 1), good()]);
    bench.run().ends(1).says("verification command not allowed: rm README");
    assert_eq!(bench.requests().len(), 1);
    assert_eq!(bench.run_json("build/status.json")["outcome"], "success");
}

#[test]
fn an_agent_may_give_up_but_does_no_more_work() {
    let calls = Turn::tool("write_file", serde_json::json!({ "path": "src/a", "content": "x" }));
    let worked = bench("[verify]\n", &[done(), calls, good()]);
    worked.run().ends(0);
    assert!(worked.requests()[2].contains("not executed: answer with the verification plan, without tool calls"));
    assert!(!worked.run_folder().join("workspace/src/a").exists());
    let gives_up = bench("[verify]\n", &[done(), Turn::text("OUTCOME: FAIL - there is nothing to test"), good()]);
    gives_up.run().ends(1).says("there is nothing to test");
    assert_eq!(gives_up.requests().len(), 2);
}

/// The stage's answer stays the object that its `output_schema` requires.
#[test]
fn a_question_leaves_the_object_of_the_stage_alone() {
    let pipeline = PIPELINE.replace("prompt=", "output_schema=\"@answer.json\", prompt=");
    let bench = of_pipeline(&pipeline, "[verify]\n", &[Turn::text("{\"verdict\":\"good\"}"), good()]);
    let schema = r#"{"type":"object","required":["verdict"],"properties":{"verdict":{"enum":["good","bad"]}},"additionalProperties":false}"#;
    bench.write("answer.json", schema);
    bench.run().ends(0);
    assert_eq!(bench.requests().len(), 2);
    assert!(bench.read_in_run("build/output.json").contains("\"verdict\": \"good\""));
}

#[test]
fn a_plan_shows_what_is_asked() {
    let bench = bench("[verify.worker]\nplan_parse_retries = 7\nreconcile_timeout_seconds = 8\n", &[done()]);
    let plan = bench.with_key(&["plan", "pipeline.dot", "--json"]).ends(0).json();
    assert_eq!(
        (&plan["verify"]["plan_parse_retries"], &plan["verify"]["reconcile_timeout_seconds"]),
        (&7.into(), &8.into())
    );
    assert_eq!(plan["verify"]["planner"]["plan_timeout_seconds"], 120);
}
