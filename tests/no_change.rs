//! An agent that changes nothing (decision no-change-is-a-failure): its attempt is repeated with a hint and then fails,
//! unless its verification confirms the work.
//!
//! Only changes that the host saw are accepted as changes, whatever the agent's answer says.

use crate::providers::{Bench, Turn};
use crate::workbench::{Answer, Workbench};
use serde_json::{Value, json};

const HINT: &str = "No changes detected. Make changes required to meet the task goal.";
const CODE: &str = "[no_actionable_changes]";

/// A turn that ends the stage with a false claim.
const CLAIMS: &str = "[[node.build]]\ntext = \"I wrote src/new.txt.\\nOUTCOME: SUCCESS\"\n";
const WRITES: &str =
    "[[node.build]]\ntool = [{ name = \"write_file\", arguments = { path = \"src/new.txt\", content = \"new\" } }]\n";

fn pipeline(attributes: &str) -> String {
    format!(
        "digraph g {{\n  start [shape=Mdiamond]; exit [shape=Msquare]\n  \
         build [prompt=\"Build it.\", {attributes}]\n  start -> build -> exit\n}}\n"
    )
}

/// Creates a project whose node `build` has these attributes and whose model gives these answers.
fn project(attributes: &str, config: &str, turns: &[&str]) -> Workbench {
    let bench = Workbench::with_pipeline(&pipeline(attributes));
    bench.write("README", "read me\n");
    bench.write("src/old.txt", "old");
    bench.write("glovebox.toml", config);
    std::fs::write(bench.outside().join("model.toml"), turns.concat()).unwrap();
    bench
}

fn run_with(bench: &Workbench, variables: &[(&str, &str)]) -> Answer {
    let script = bench.outside().join("model.toml");
    let words = ["run", "pipeline.dot", "--run-id", "r", "--script", script.to_str().unwrap()];
    Answer::of(bench.command(&words).envs(variables.iter().copied()))
}

fn run(bench: &Workbench) -> Answer {
    run_with(bench, &[])
}

const SOURCES: &str = "allowed_write_paths=\"src/\"";
const TWICE: &str = "[verify.worker]\nno_change_recovery_attempts = 2\n";

/// Returns what `why` shows for each attempt of `build`: whether it changed nothing, and whether it was repeated.
fn attempts(bench: &Workbench) -> Vec<(bool, bool)> {
    let why = bench.glovebox(&["why", "r", "build", "--json"]).json();
    let steps = why["steps"].as_array().unwrap().iter().filter_map(|step| step.get("attempt"));
    steps.map(|attempt| (attempt["no_change"] == true, attempt["retried"] == true)).collect()
}

#[test]
fn work_that_changes_nothing_is_repeated_with_a_hint_and_then_fails() {
    let bench = project(SOURCES, TWICE, &[CLAIMS; 3]);
    run(&bench).ends(1).says(CODE).says("no changes were made: 3 attempts of `build` ended with success");
    assert_eq!(attempts(&bench), [(true, true), (true, true), (true, false)]);
    assert!(bench.run_text("r", "build/prompt.md").contains(HINT));
    assert!(!bench.run_folder("r").join("workspace/src/new.txt").exists());
    bench.glovebox(&["why", "r"]).says(HINT).says("nothing, though `[verify.worker]` asks for a change");
    bench
        .glovebox(&["show", "r", "build"])
        .says("nothing, though `[verify.worker]` asks for a change")
        .says("no_actionable_changes");
}

#[test]
fn a_repetition_that_changes_something_is_a_success() {
    let bench = project(SOURCES, TWICE, &[CLAIMS, WRITES, CLAIMS]);
    run(&bench).ends(0);
    assert_eq!(attempts(&bench), [(true, true), (false, false)]);
    assert!(bench.run_text("r", "build/prompt.md").contains(HINT), "the second attempt was told");
    assert_eq!(bench.run_json("r", "build/status.json")["outcome"], "success");
}

/// Only different bytes are a change. Writing a file with its old content is not a change, and neither is writing a
/// file that git ignores.
#[test]
fn a_file_written_as_it_is_is_no_change() {
    let config = "[verify.worker]\nno_change_recovery_attempts = 0\n";
    let same = "[[node.build]]\ntool = [{ name = \"write_file\", arguments = { path = \"src/old.txt\", content = \"old\" } }]\n";
    let bench = project(SOURCES, config, &[same, CLAIMS]);
    run(&bench).ends(1).says(CODE).says("1 attempt of `build`");
}

#[test]
fn the_settings_have_their_variables_and_no_setting_is_off() {
    let check = |config: &str, variables: &[(&str, &str)], expected: usize| {
        let bench = project(SOURCES, config, &[CLAIMS; 4]);
        let code = if expected == 0 { 0 } else { 1 };
        run_with(&bench, variables).ends(code);
        let unchanged = attempts(&bench).into_iter().filter(|(no_change, _)| *no_change).count();
        assert_eq!(unchanged, expected, "{config} {variables:?}");
    };
    check("", &[], 0);
    check("[verify]\n", &[], 0);
    check("", &[("WORKER_NO_CHANGE_RECOVERY_ATTEMPTS", "1")], 2);
    check(TWICE, &[("WORKER_NO_CHANGE_RECOVERY_ATTEMPTS", "0")], 1);
    check(TWICE, &[("WORKER_NO_CHANGE_CONFIRM_MODE", "off")], 3);
}

#[test]
fn values_that_are_none_are_refused() {
    let bench = project(SOURCES, "[verify.worker]\nno_change_recovery_attempts = 101\n", &[CLAIMS]);
    run(&bench).ends(3).says("`101` is not a number from 0 to 100");
    let bench = project(SOURCES, "[verify.worker]\nno_change_confirm_mode = \"maybe\"\n", &[CLAIMS]);
    run(&bench).ends(3).says("`maybe` is not a mode, expected `verify` or `off`");
    let bench = project(SOURCES, "", &[CLAIMS]);
    let variable = "WORKER_NO_CHANGE_CONFIRM_MODE";
    run_with(&bench, &[(variable, "maybe")]).ends(2).says(&format!("the variable `{variable}`: `maybe` is not a mode"));
}

#[test]
fn a_verification_that_passes_confirms_that_there_was_nothing_to_do() {
    let verified = |command: &str| format!("{SOURCES}, verify_command=\"{command}\"");
    let bench = project(&verified("test -f README"), TWICE, &[CLAIMS]);
    run(&bench).ends(0);
    let notes = "no-op success: nothing was changed, and the verification passed\nStage completed: build";
    assert_eq!(bench.run_json("r", "build/status.json")["notes"], notes);
    bench.glovebox(&["show", "r", "build"]).says("no-op success").says("nothing, though `[verify.worker]`");
    assert_eq!(attempts(&bench), [(true, false), (true, false)], "the work, and its verification");

    let bench = project(&verified("test -f src/new.txt"), TWICE, &[CLAIMS]);
    run(&bench).ends(1).says("verify_command failed (exit 1)").never_says("no-op success");

    let off = "[verify.worker]\nno_change_confirm_mode = \"off\"\nno_change_recovery_attempts = 1\n";
    let bench = project(&verified("test -f README"), off, &[CLAIMS; 2]);
    run(&bench).ends(1).says(CODE).never_says("no-op success");
    assert_eq!(
        attempts(&bench),
        [(true, true), (true, false)],
        "the verification confirms nothing, so it does not run"
    );
}

#[test]
fn a_change_that_is_verified_is_no_no_op() {
    let bench = project(&format!("{SOURCES}, verify_command=\"test -f src/new.txt\""), TWICE, &[WRITES, CLAIMS]);
    run(&bench).ends(0);
    assert_eq!(bench.run_json("r", "build/status.json")["notes"], "Stage completed: build");
    assert_eq!(attempts(&bench), [(false, false), (false, false)]);
}

/// The rule does not apply to a node that only reviews or whose scope is empty.
#[test]
fn a_node_that_may_write_nothing_is_not_meant() {
    let bench = project("allowed_write_paths=\"\"", TWICE, &[CLAIMS]);
    run(&bench).ends(0);
    assert_eq!(attempts(&bench), [(false, false)]);
    let plan = bench.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).json();
    assert_eq!(plan.get("no_change"), None);
    let bench = project(SOURCES, TWICE, &[CLAIMS]);
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("changes  at most 2 repetitions, confirm verify: build");
    let plan: Value = bench.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).json();
    let expected = json!({ "recovery_attempts": 2, "confirm_mode": "verify", "nodes": ["build"] });
    assert_eq!(plan["no_change"], expected);
}

/// The failure is routed like any other, and is not counted for other limits on repetitions of the node.
#[test]
fn it_is_routed_as_a_failure_and_counts_for_no_other_bound() {
    let bench = project(SOURCES, TWICE, &[CLAIMS, CLAIMS, CLAIMS]);
    let text = pipeline(SOURCES).replace("start -> build -> exit", "start -> build; build -> exit [condition=\"outcome=success\"]; \
        build -> mend [condition=\"outcome=fail\"]; mend -> exit; mend [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]");
    bench.write("pipeline.dot", &text);
    run(&bench).ends(0);
    assert!(bench.run_folder("r").join("mend").is_dir());

    let fails = "[[node.build]]\ntext = 'OUTCOME: FAIL - not yet'\n";
    let bench = project(&format!("{SOURCES}, max_retries=1"), TWICE, &[CLAIMS, fails, CLAIMS, WRITES, CLAIMS]);
    run(&bench).ends(0);
    assert_eq!(attempts(&bench), [(true, true), (false, true), (true, true), (false, false)]);
}

/// A run that is killed during the repetition keeps the count of repetitions.
#[test]
fn a_killed_run_repeats_no_more_than_it_may() {
    let says = || Turn::text("All done.\nOUTCOME: SUCCESS");
    let bench =
        Bench::new(&pipeline(SOURCES), "openai", &[says(), Turn::text("never").stall(), says(), says(), says()]);
    let models = bench.project_text("glovebox.toml");
    bench.write("glovebox.toml", &format!("{models}\n{TWICE}"));
    bench.kill_run_after(2);
    bench.resume().ends(1).says(CODE).says("3 attempts of `build`");
    assert_eq!(bench.requests().len(), 4, "three attempts, and the question that was cut off");
}

/// The rule applies to an agent program too, with the set of changes that the host saw.
#[test]
fn an_agent_program_that_changes_nothing_is_repeated() {
    let attributes = format!("{SOURCES}, agent.backend=\"exec\", agent.command=\"sh tools/agent.sh\"");
    let bench = Bench::new(&pipeline(&attributes), "anthropic", &[Turn::text("never asked")]);
    let models = bench.project_text("glovebox.toml");
    bench.write("glovebox.toml", &format!("{models}\n{TWICE}"));
    // The program does its work only if its task contains the hint that nothing has changed.
    let program =
        "if [ \"$(grep -c 'No changes detected')\" != 0 ]; then echo new > src/new.txt; fi\necho 'OUTCOME: SUCCESS'\n";
    bench.write("tools/agent.sh", program);
    bench.write("src/old.txt", "old");
    bench.run().ends(0);
    assert_eq!(bench.read_in_run("workspace/src/new.txt"), "new\n");
    bench.glovebox(&["why", "r"]).says("no_actionable_changes");
}
