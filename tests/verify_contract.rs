//! `[verify]` and contract files (seed 4): what a verification stage runs beside a plan, and what becomes of a list that cannot pass.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod workbench;

use serde_json::{Value, json};
use workbench::{Answer, Workbench, is_on_this_machine, not_run};

const CONTRACT: &str = r#"{
  "commands": ["test -f README"],
  "byRole": {"tester": ["sh tests/check.sh tester"]},
  "rules": [
    {"whenChangedAny": ["src/**"], "commands": ["sh tests/check.sh sources"]},
    {"whenChangedAll": ["docs/*.md"], "commands": ["sh tests/check.sh pages"]}
  ]
}"#;

/// A project whose agent writes `path`, and whose verification stage has these attributes.
fn project(path: &str, attributes: &str, config: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; exit [shape=Msquare]\n  \
         build [prompt=\"Build it.\", allowed_write_paths=\"src/,docs/,.opentiger/,Makefile,tests/\"]\n  \
         check [type=verification, allowed_write_paths=\"\", {attributes}]\n  \
         start -> build -> check\n  check -> exit [condition=\"outcome!=fail\"]\n}}\n"
    ));
    bench.write("README", "read me\n");
    bench.write("tests/check.sh", "echo checked $1; test \"$1\" != bad\n");
    bench.write(".opentiger/verify.contract.json", CONTRACT);
    bench.write("glovebox.toml", config);
    let content = if path == ".opentiger/verify.contract.json" { "{}" } else { "built" };
    script(&bench, &[(path, content)], "Done.");
    bench
}

/// The agent's answers: it writes these files, then says this.
fn script(bench: &Workbench, files: &[(&str, &str)], says: &str) {
    let tools: Vec<String> = files
        .iter()
        .map(|(path, content)| {
            let content = content.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{{ name = \"write_file\", arguments = {{ path = \"{path}\", content = \"{content}\" }} }}")
        })
        .collect();
    let turns = format!(
        "[[node.build]]\ntool = [{}]\n[[node.build]]\ntext = '''\n{says}\nOUTCOME: SUCCESS'''\n",
        tools.join(", ")
    );
    std::fs::write(bench.outside().join("model.toml"), turns).unwrap();
}

fn run(bench: &Workbench) -> Answer {
    let script = bench.outside().join("model.toml");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", script.to_str().unwrap()])
}

/// The commands that ran.
fn ran(bench: &Workbench) -> Vec<String> {
    let results = bench.run_json("r", "check/verification.results.json");
    let commands = results["commands"].as_array().unwrap();
    commands.iter().map(|command| command["command"].as_str().unwrap().to_owned()).collect()
}

const NO_PLAN: &str = "\"verification.allowed_commands\"=\"\"";

#[test]
fn a_contract_verifies_by_role_and_by_what_changed() {
    let check = |path: &str, role: &str, expected: &[&str]| {
        let bench = project(path, &format!("{NO_PLAN}{role}"), "[verify.worker]\nmode = \"contract\"\n");
        run(&bench).ends(0);
        assert_eq!(ran(&bench), expected, "{path}");
    };
    check("src/a/b.rs", "", &["test -f README", "sh tests/check.sh sources"]);
    check("docs/a.md", "", &["test -f README", "sh tests/check.sh pages"]);
    check("docs/deep/a.md", "", &["test -f README"]);
    let tester = ", \"verification.role\"=\"tester\"";
    check("src/a", tester, &["test -f README", "sh tests/check.sh tester", "sh tests/check.sh sources"]);
}

#[test]
fn an_agent_cannot_change_what_it_is_verified_with() {
    let bench = project(".opentiger/verify.contract.json", NO_PLAN, "[verify]\n");
    run(&bench).ends(0);
    assert_eq!(ran(&bench), ["test -f README"], "the contract of before the run");
    bench
        .glovebox(&["plan", "pipeline.dot"])
        .ends(0)
        .says("verify   planner hybrid, worker hybrid, contract .opentiger/verify.contract.json")
        .says("sh tests/check.sh sources");
}

#[test]
fn a_plan_comes_first_and_the_rest_is_added_once() {
    let bench = project(
        "src/a",
        "\"verification.allowed_commands\"=\"sh tests/check.sh,test -f\"",
        "[verify.worker]\nmax_commands = 1\n",
    );
    let plan =
        "```json\n{\"verification_plan\": {\"commands\": [\"sh tests/check.sh mine\", \"test -f README\"]}}\n```";
    script(&bench, &[("src/a", "x")], plan);
    run(&bench).ends(0);
    assert_eq!(bench.run_json("r", "check/status.json")["notes"], "verification passed: 3 of 3 commands");
    assert_eq!(ran(&bench), ["sh tests/check.sh mine", "test -f README", "sh tests/check.sh sources"]);
}

#[test]
fn modes_and_variables_decide_what_is_added() {
    let check = |config: &str, variables: &[(&str, &str)], expected: Result<&[&str], &str>| {
        let bench = project("src/a", NO_PLAN, config);
        bench.write("tests/test_a.py", "def test_a():\n    pass\n");
        let script = bench.outside().join("model.toml");
        let arguments = ["run", "pipeline.dot", "--run-id", "r", "--script", script.to_str().unwrap()];
        let answer = Answer::of(bench.command(&arguments).envs(variables.iter().copied()));
        match expected {
            Ok(lines) => {
                answer.ends(0);
                assert_eq!(ran(&bench), lines, "{config} {variables:?}");
            }
            Err(says) => {
                answer.says(says);
            }
        }
    };
    let all: &[&str] = &["test -f README", "sh tests/check.sh sources"];
    check("[verify]\n", &[], Ok(all));
    check("", &[("WORKER_AUTO_VERIFY_MODE", "contract")], Ok(all));
    check(
        "[verify.worker]\nmode = \"contract\"\n",
        &[("WORKER_AUTO_VERIFY_MAX_COMMANDS", "1"), ("PLANNER_VERIFY_COMMAND_MODE", "off")],
        Ok(&all[..1]),
    );
    let off = "[verify.planner]\nmode = \"off\"\n[verify.worker]\nmode = \"off\"\n";
    check(off, &[], Err("verification plan missing in context key: verification.plan"));
    check("[verify.worker]\nmode = \"llm\"\n", &[], Err("verification plan missing in context key"));
    check(
        "[verify]\n",
        &[("WORKER_AUTO_VERIFY_MODE", "all")],
        Err("`all` is no mode, expected one of off, fallback, contract, llm, hybrid"),
    );
    check(
        "[verify]\n",
        &[("WORKER_VERIFY_PLAN_PARSE_RETRIES", "11")],
        Err("the variable `WORKER_VERIFY_PLAN_PARSE_RETRIES`: `11` is not a number from 0 to 10"),
    );
    check(
        "[verify.planner]\nplan_timeout_seconds = 0\n",
        &[],
        Err("`verify.planner.plan_timeout_seconds`: `0` is not a number from 1 to 3600"),
    );
    check(
        "[verify.worker]\nreconcile_timeout_seconds = \"1h\"\n",
        &[],
        Err("`verify.worker.reconcile_timeout_seconds`: `1h` is not a number from 1 to 3600"),
    );
    check("[verify]\ncontract = \"lost.json\"\n", &[], Err("lost.json"));
    check("[verify]\ncontract = \"../x.json\"\n", &[], Err("is not the path of a file below the project"));
    check("[verify.worker]\nmodes = \"x\"\n", &[], Err("unknown field `verify.worker.modes`"));
}

#[test]
fn a_contract_that_needs_a_shell_is_refused_before_the_first_stage() {
    let bench = project("src/a", NO_PLAN, "[verify]\n");
    bench.write(".opentiger/verify.contract.json", r#"{"commands": ["make && make test"]}"#);
    run(&bench).ends(3).says("`commands[0]`: verification_command_unsupported_format");
    bench.glovebox(&["check", "pipeline.dot"]).ends(3).says("`commands[0]`");
}

/// An agent that removes the target it would fail gets no clean pass, and no gate that asks for a receipt.
#[test]
fn a_removed_target_is_no_pass() {
    if !is_on_this_machine("make") {
        return not_run("a_removed_target_is_no_pass", "make");
    }
    let attributes = "\"verification.allowed_commands\"=\"make\", goal_gate=true, gate_requires=\"receipt\"";
    let bench = project("Makefile", attributes, "[verify]\n");
    bench.write("Makefile", "lint:\n\tfalse\n");
    let plan = "```json\n{\"verification_plan\": {\"commands\": [\"make lint\"]}}\n```";
    script(&bench, &[("Makefile", "all:")], plan);
    run(&bench).ends(4).says("not verified, dropped: make lint (verification_command_missing_make_target)");
    let results = bench.run_json("r", "check/verification.results.json");
    let expected = json!([{
        "reason": "verification_command_missing_make_target",
        "recoveryRule": "drop_failed_command",
        "previousCommands": ["make lint", "test -f README"],
        "nextCommands": ["test -f README"],
    }]);
    assert_eq!(results["adjustments"], expected, "{results:#}");
    assert_eq!(bench.run_json("r", "check/status.json")["outcome"], "partial_success");
}

#[test]
fn a_failure_says_what_failed_and_why() {
    let bench = project("src/a", NO_PLAN, "[verify]\n");
    bench.write(".opentiger/verify.contract.json", r#"{"commands": ["sh tests/check.sh bad"]}"#);
    run(&bench).ends(1).says("verification command failed: sh tests/check.sh bad (exit=1)");
    let results: Value = bench.run_json("r", "check/verification.results.json");
    assert_eq!(results["error_meta"]["failureCode"], "verification_command_failed");
    assert_eq!(results["error_meta"]["failedCommandSource"], "explicit");
}

/// A plan with a command of its own takes the room of the contract's commands; what has no room is not verified.
#[test]
fn a_plan_cannot_push_a_command_of_the_contract_out_unseen() {
    let attributes = "\"verification.allowed_commands\"=\"test -f\", goal_gate=true, gate_requires=\"receipt\"";
    let bench = project("src/a", attributes, "[verify]\n");
    let commands = ["test -d src", "test -d tests", "test -s README", "test -f README", "sh tests/check.sh bad"];
    bench.write(".opentiger/verify.contract.json", &json!({ "commands": commands }).to_string());
    let plan = "```json\n{\"verification_plan\": {\"commands\": [\"test -f glovebox.toml\"]}}\n```";
    script(&bench, &[("src/a", "x")], plan);
    run(&bench).ends(4).says("not verified, left out by `max_commands`: sh tests/check.sh bad");
    assert_eq!(bench.run_json("r", "check/status.json")["outcome"], "partial_success");
    assert_eq!(bench.run_json("r", "check/verification.results.json")["left_out"], json!(["sh tests/check.sh bad"]));
    bench.glovebox(&["show", "r", "--junit", "../r.xml"]).ends(0);
    let xml = std::fs::read_to_string(bench.outside().join("r.xml")).unwrap();
    assert!(xml.contains("<skipped message=\"passed in part: commands were left out\"/>"), "{xml}");
}

/// The failure of a test in a workspace is none of a script that the root does not have.
#[test]
fn a_failure_elsewhere_is_no_missing_script() {
    if !is_on_this_machine("npm") {
        return not_run("a_failure_elsewhere_is_no_missing_script", "npm");
    }
    let bench = project("src/a", NO_PLAN, "[verify]\n");
    bench.write("package.json", r#"{"name": "root", "workspaces": ["api"]}"#);
    bench.write("api/package.json", r#"{"name": "api", "version": "1.0.0", "scripts": {"test": "exit 1"}}"#);
    bench.write(".opentiger/verify.contract.json", r#"{"commands": ["test -f README", "npm test --workspace api"]}"#);
    run(&bench).ends(1).says("verification command failed: npm test --workspace api (exit=1)");
}
