//! `[verify]` and contract files (decision verify-contract): which commands a verification stage runs in addition to a
//! plan, and how it handles a list of commands that cannot pass.

use crate::workbench::{Answer, Workbench, is_on_this_machine, not_run};
use serde_json::{Value, json};

const CONTRACT: &str = r#"{
  "commands": ["test -f README"],
  "byRole": {"tester": ["sh tests/check.sh tester"]},
  "rules": [
    {"whenChangedAny": ["src/**"], "commands": ["sh tests/check.sh sources"]},
    {"whenChangedAll": ["docs/*.md"], "commands": ["sh tests/check.sh pages"]}
  ]
}"#;

/// Creates a project whose agent writes `path` and whose verification stage has these attributes.
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

/// Writes a script in which the agent writes these files and then answers `says`.
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

/// Returns the commands that ran.
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
    let asks = "[verify.planner]\nmode = \"llm\"\n[verify.worker]\nmode = \"llm\"\n";
    check(asks, &[], Err("verification plan missing in context key"));
    for planner in ["contract", "hybrid"] {
        check(&format!("[verify.planner]\nmode = \"{planner}\"\n[verify.worker]\nmode = \"llm\"\n"), &[], Ok(all));
    }
    check(
        "[verify]\n",
        &[("WORKER_AUTO_VERIFY_MODE", "all")],
        Err("`all` is not a mode, expected one of off, fallback, contract, llm, hybrid"),
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

/// The mode of the planner decides whether an agent is asked for a plan. A plan that the agent makes without being
/// asked runs in every mode.
#[test]
fn an_explicit_plan_runs_in_every_mode() {
    for planner in ["off", "fallback", "contract", "llm", "hybrid"] {
        for worker in ["off", "fallback", "contract", "llm", "hybrid"] {
            let config = format!("[verify.planner]\nmode = \"{planner}\"\n[verify.worker]\nmode = \"{worker}\"\n");
            let bench = project("src/a", "\"verification.allowed_commands\"=\"sh tests/check.sh\"", &config);
            let plan = "```json\n{\"verification_plan\": {\"commands\": [\"sh tests/check.sh mine\"]}}\n```";
            script(&bench, &[("src/a", "x")], plan);
            run(&bench).ends(0);
            let is_asked = bench.run_text("r", "build/prompt.md").contains("Verification plan command allowlist");
            assert_eq!(is_asked, ["llm", "hybrid"].contains(&planner), "{planner} {worker}");
            let adds_contract = ["contract", "hybrid"].contains(&worker);
            let added: &[&str] = if adds_contract { &["test -f README", "sh tests/check.sh sources"] } else { &[] };
            assert_eq!(ran(&bench), [&["sh tests/check.sh mine"], added].concat(), "{planner} {worker}");
        }
    }
}

/// A list with skipped commands ends with `partial_success`. If no edge handles this status, `check` warns, and the
/// failure names the skipped commands.
#[test]
fn a_shortened_list_needs_a_route() {
    let bench =
        project("src/a", "\"verification.allowed_commands\"=\"test -f\"", "[verify.worker]\nplan_parse_retries = 0\n");
    let text = bench.read("pipeline.dot");
    bench.glovebox(&["check", "pipeline.dot"]).ends(0).never_says("verification_partial_route");
    bench.write("pipeline.dot", &text.replace("outcome!=fail", "outcome=success"));
    bench.glovebox(&["check", "pipeline.dot"]).ends(0).says("verification_partial_route");
    let plan = "```json\n{\"verification_plan\": {\"commands\": [\"test -f README | cat\", \"test -f README\"]}}\n```";
    script(&bench, &[("src/a", "x")], plan);
    run(&bench)
        .ends(1)
        .says("no route from node check for outcome partial_success")
        .says("not verified, dropped: test -f README | cat (verification_command_unsupported_format)");
    bench.write("glovebox.toml", "");
    bench.glovebox(&["check", "pipeline.dot"]).never_says("verification_partial_route");
}

#[test]
fn a_contract_that_needs_a_shell_is_refused_before_the_first_stage() {
    let bench = project("src/a", NO_PLAN, "[verify]\n");
    bench.write(".opentiger/verify.contract.json", r#"{"commands": ["make && make test"]}"#);
    run(&bench).ends(3).says("`commands[0]`: verification_command_unsupported_format");
    bench.glovebox(&["check", "pipeline.dot"]).ends(3).says("`commands[0]`");
}

/// An agent that removes a file that its check needs does not pass: neither a command of the plan nor one of the
/// contract is skipped for this reason.
#[test]
fn what_the_run_removed_is_a_failure() {
    let check = |program: &str, command: &str, (file, before, after): (&str, &str, &str), removed: &str| {
        if !is_on_this_machine(program) {
            return not_run("what_the_run_removed_is_a_failure", program);
        }
        for is_planned in [true, false] {
            let attributes = if is_planned {
                format!("\"verification.allowed_commands\"=\"{program}\"")
            } else {
                NO_PLAN.to_owned()
            };
            let bench = project("src/a", &attributes, "[verify]\n");
            bench.write(file, before);
            let text = bench.read("pipeline.dot").replace("Makefile,", "Makefile,GNUmakefile,package.json,");
            bench.write("pipeline.dot", &text);
            let commands = if is_planned { json!(["test -f README"]) } else { json!([command]) };
            bench.write(".opentiger/verify.contract.json", &json!({ "commands": commands }).to_string());
            let plan = format!("```json\n{{\"verification_plan\": {{\"commands\": [\"{command}\"]}}}}\n```");
            let file = if file == "Makefile" && !is_planned { "GNUmakefile" } else { file };
            script(&bench, &[(file, after)], if is_planned { &plan } else { "Done." });
            let says = format!("verification command failed: {command} (exit={removed}");
            run(&bench).ends(1).says(&says).never_says("dropped");
            let results = bench.run_json("r", "check/verification.results.json");
            assert_eq!(results["error_meta"]["failureCode"], "verification_command_failed", "{results:#}");
            assert!(results["adjustments"].is_null() && results["dropped_checks"].is_null(), "{results:#}");
        }
    };
    let script = r#"{"name":"x","scripts":{"check":"exit 1"}}"#;
    check("make", "make lint", ("Makefile", "lint:\n\tfalse\n", "all:"), "2); the run removed the make target `lint`");
    let removed = "1); the run removed the script `check` of package.json";
    check("npm", "npm run check", ("package.json", script, r#"{"name":"x","scripts":{}}"#), removed);
}

/// A command that the project never had is skipped, and its replacement is not a proof. The operator asked for the
/// command, so the run does not succeed without it, and every report says so.
#[test]
fn a_dropped_check_of_the_operator_is_no_success() {
    if !is_on_this_machine("make") || !is_on_this_machine("node") {
        return not_run("a_dropped_check_of_the_operator_is_no_success", "make and node");
    }
    let bench = project("src/a", NO_PLAN, "[verify]\n");
    bench.write("package.json", r#"{"name":"x","scripts":{"test":"node --test"}}"#);
    bench.write("test/a.test.js", "require('node:test')('a', () => {});\n");
    bench.write(".opentiger/verify.contract.json", r#"{"commands": ["make lint"]}"#);
    run(&bench)
        .ends(4)
        .says("`check` skipped commands of the verify contract: `make lint`")
        .says("dropped      check: make lint (the verify contract asks for it)")
        .says("(replaced a skipped command)")
        .never_says("verified     check");
    assert_eq!(bench.run_json("r", "check/status.json")["outcome"], "partial_success");
    assert_eq!(bench.run_json("r", "check/verification.results.json")["dropped_checks"], json!(["make lint"]));
    bench.glovebox(&["show", "r"]).ends(0).says("dropped      check: make lint");
    let verdict = bench.glovebox(&["show", "r", "--json"]).ends(0).json();
    assert_eq!(verdict["dropped_checks"], json!([{ "node": "check", "commands": ["make lint"] }]));
    assert_eq!(verdict["exit"], json!({ "code": 4, "name": "unverified" }));
    assert_eq!(verdict["failed_node"], "check");
    let evidence = bench.glovebox(&["evidence", "r", "--json"]).ends(0).json();
    let stand_in = evidence["commands"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&stand_in["proof"], &stand_in["evidence"]["no_proof"]),
        (&json!("not_verified"), &json!("replacement")),
        "{stand_in:#}"
    );
    bench.glovebox(&["show", "r", "--junit", "../r.xml", "--sarif", "../r.sarif"]).ends(0);
    let outside = |name: &str| std::fs::read_to_string(bench.outside().join(name)).unwrap();
    let xml = outside("r.xml");
    assert!(xml.contains("<skipped message=\"passed in part: commands were skipped: make lint\"/>"), "{xml}");
    assert!(xml.contains("exit 4 (unverified)"), "{xml}");
    assert!(outside("r.sarif").contains("passed in part: commands were skipped: make lint"));
    bench.glovebox(&["why", "r"]).ends(0).says("`check` skipped commands of the verify contract: `make lint`");
}

/// Reproduces an attack: a builder removes the script of a contract's only check, so that `node --test`, which finds no
/// tests, would replace it.
#[test]
fn a_removed_check_is_not_replaced_by_one_that_tests_nothing() {
    if !is_on_this_machine("npm") {
        return not_run("a_removed_check_is_not_replaced_by_one_that_tests_nothing", "npm");
    }
    for attributes in [NO_PLAN.to_owned(), format!("{NO_PLAN}, goal_gate=true")] {
        let bench = project("src/a", &attributes, "[verify]\n");
        let text = bench.read("pipeline.dot").replace("Makefile,", "package.json,");
        bench.write("pipeline.dot", &text.replace(" [condition=\"outcome!=fail\"]", ""));
        bench.write("package.json", r#"{"name":"x","scripts":{"check":"exit 1"}}"#);
        bench.write(".opentiger/verify.contract.json", r#"{"commands": ["npm run check"]}"#);
        script(&bench, &[("package.json", r#"{"name":"x","scripts":{}}"#)], "Done.");
        run(&bench).never_says("verified     check");
        assert_eq!(bench.run_json("r", "check/status.json")["outcome"], "fail");
        let results = bench.run_json("r", "check/verification.results.json");
        assert_eq!(results["commands"].as_array().unwrap().len(), 1, "nothing stood in: {results:#}");
        assert_ne!(bench.glovebox(&["show", "r", "--json"]).json()["exit"]["code"], 0);
    }
}

/// The receipt of a test command that ran no test is not a proof, in any kind of stage that can run such a command.
#[test]
fn a_test_command_without_a_test_is_not_verified() {
    if !is_on_this_machine("node") {
        return not_run("a_test_command_without_a_test_is_not_verified", "node");
    }
    let check = |stage: &str, test: Option<&str>| {
        let bench = Workbench::with_pipeline(&format!(
            "digraph g {{\n  start [shape=Mdiamond]; exit [shape=Msquare]\n  {stage}\n  start -> check -> exit\n}}\n"
        ));
        bench.write("README", "read me\n");
        if let Some(test) = test {
            bench.write("test/a.test.js", test);
        }
        (bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]), bench)
    };
    let stages = [
        "check [shape=octagon, command=\"node --test\"]",
        "check [shape=parallelogram, tool_command=\"node --test\", allowed_write_paths=\"\"]",
        "check [prompt=\"x\", allowed_write_paths=\"\", verify_command=\"node --test\"]",
    ];
    for stage in stages {
        let (answer, bench) = check(stage, None);
        answer.ends(0).says("not verified").says("exit 0 (ran no test)").never_says("verified     check");
        bench.glovebox(&["show", "r", "--junit", "../r.xml"]).ends(0);
        let xml = std::fs::read_to_string(bench.outside().join("r.xml")).unwrap();
        let is_simulated = stage.contains("prompt");
        assert!(is_simulated || xml.contains("not verified: its command ran no test"), "{xml}");
        let verdict = bench.glovebox(&["show", "r", "--json"]).ends(0).json();
        let command = &verdict["receipts"][0];
        assert_eq!((&command["verified"], &command["no_proof"]), (&json!(false), &json!("no_tests")), "{command:#}");
        let gate = stage.replace("check [", "check [goal_gate=true, gate_requires=\"receipt\", ");
        check(&gate, None).0.ends(4).says("without a receipt");
        let test = "require('node:test')('a', () => {});\n";
        check(&gate, Some(test)).0.ends(0).says("verified     check");
        // The output of a program does not turn its failure into a success.
        let lies = "console.log('# tests 3\\n# pass 3'); require('node:test')('a', () => { throw new Error('x'); });\n";
        check(stage, Some(lies)).0.ends(1);
    }
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

/// If a command of the plan takes the place of a contract's command under `max_commands`, the contract's command is
/// reported as not verified.
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
    assert!(
        xml.contains("<skipped message=\"passed in part: commands were skipped: sh tests/check.sh bad\"/>"),
        "{xml}"
    );
}

/// A failing test in a workspace of npm is not mistaken for a script that the root does not have.
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
