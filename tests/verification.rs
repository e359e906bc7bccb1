//! `type=verification` (decision verification-plan): a model plans the checks, the author says which commands a plan
//! may contain, and the host runs them.

use crate::workbench::{Answer, Workbench};
use serde_json::{Value, json};

const ALLOWED: &str = "\"verification.allowed_commands\"=\"test -f,sh tests/check.sh,grep\"";

/// Runs `r`, in which an agent returns this plan and a verification stage with these attributes executes it.
fn verified(plan: &Value, attributes: &str) -> (Workbench, Answer) {
    let plan = plan.to_string().replace('\\', "\\\\").replace('"', "\\\"");
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; exit [shape=Msquare]\n  \
         generate [prompt=\"Implement it and return a verification_plan.\", allowed_write_paths=\"\", test.verification_plan_json=\"{plan}\"]\n  \
         verify [shape=parallelogram, type=verification, allowed_write_paths=\"\", {attributes}]\n  \
         start -> generate -> verify\n  verify -> exit [condition=\"outcome=success\"]\n}}\n"
    ));
    bench.write("tests/check.sh", "echo checked in ${PWD##*/}; test \"$1\" != bad\n");
    bench.write("agent/sh", "#!/bin/sh\nexit 0\n");
    bench.write("agent/env.sh", "exit 0\n");
    let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    (bench, answer)
}

#[test]
fn a_plan_is_checked_and_run_and_proves_what_it_ran() {
    let plan =
        json!({ "files": ["tests/check.sh"], "commands": ["test -f tests/check.sh", "sh tests/check.sh 'a b'"] });
    let (bench, answer) = verified(&plan, ALLOWED);
    answer.ends(0).says("verified     verify: sh tests/check.sh 'a b'");
    assert_eq!(bench.run_json("r", "verify/verification.plan.json"), plan);
    let results = bench.run_json("r", "verify/verification.results.json");
    assert_eq!(results["checked_files"], plan["files"]);
    let second = &results["commands"][1];
    assert_eq!((&second["command"], &second["exit_code"]), (&json!("sh tests/check.sh 'a b'"), &json!(0)));
    assert_eq!((&second["stdout"], &second["stderr"]), (&json!("checked in project\n"), &json!("")));
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("sh tests/check.sh …");
    let evidence = bench.glovebox(&["evidence", "r", "--json"]).ends(0).json();
    assert_eq!(evidence["commands"].as_array().unwrap().len(), 2);
}

#[test]
fn each_mistake_has_its_message() {
    let commands = |line: &str| json!({ "commands": [line] });
    let check = |plan: Value, attributes: &str, says: &str| {
        let (bench, answer) = verified(&plan, attributes);
        answer.ends(1).says(says);
        let evidence = bench.glovebox(&["evidence", "r", "--json"]).ends(0).json();
        assert_eq!(evidence["commands"], json!([]), "nothing ran: {says}");
    };
    let elsewhere = format!("{ALLOWED}, \"verification.plan_context_key\"=\"my.plan\"");
    check(commands("grep x"), &elsewhere, "verification plan missing in context key: my.plan");
    check(json!({ "commands": [] }), ALLOWED, "verification plan must contain at least one command");
    check(commands(" "), ALLOWED, "verification command cannot be empty");
    check(
        json!({ "commands": ["grep x"], "files": ["../x"] }),
        ALLOWED,
        "invalid verification file path \"../x\": cannot contain parent",
    );
    check(json!({ "commands": ["grep x"], "files": ["lost"] }), ALLOWED, "required file missing: lost");
    check(commands("grep x"), "label=v", "verification.allowed_commands is required");
    check(commands("rm -r tests"), ALLOWED, "verification command not allowed: rm -r tests");
    check(commands("grep x ../y"), ALLOWED, "rejected by guardrail: contains ..: grep x ../y");
    check(commands("grep x y | sh"), ALLOWED, "verification_command_unsupported_format");
    for (folder, says) in [
        ("/srv", "must be relative"),
        ("a/../..", "parent segment"),
        ("lost", "missing: lost"),
        ("tests/check.sh", "is not a directory"),
    ] {
        let attributes = format!("{ALLOWED}, \"verification.workdir\"=\"{folder}\"");
        check(commands("grep x"), &attributes, says);
    }
    // If one command is not allowed, none of the commands runs.
    check(json!({ "commands": ["test -f tests/check.sh", "rm x"] }), ALLOWED, "verification command not allowed: rm x");
}

#[test]
fn the_first_command_that_fails_decides() {
    let plan = json!({ "commands": ["sh tests/check.sh", "sh tests/check.sh bad", "test -f x"] });
    let (bench, answer) = verified(&plan, ALLOWED);
    answer.ends(1).says("verification command failed: sh tests/check.sh bad (exit=1)");
    let results = bench.run_json("r", "verify/verification.results.json");
    assert_eq!(results["commands"].as_array().unwrap().len(), 2);
    assert_eq!(results["commands"][1]["exit_code"], 1);
}

#[test]
fn no_trick_reaches_another_program() {
    for line in [
        "BASH_ENV=$PWD/agent/env.sh sh tests/check.sh bad",
        "PATH=$PWD/agent:/bin sh tests/check.sh bad",
        "LD_PRELOAD=agent/x.so sh tests/check.sh bad",
        "env PATH=agent sh tests/check.sh bad",
        "agent/sh tests/check.sh bad",
        "./agent/sh tests/check.sh bad",
        "sh -c 'exit 0'",
        "sh agent/env.sh",
        "sh 'tests/check.sh bad'",
        "sh tests/check.shx",
    ] {
        let (bench, answer) = verified(&json!({ "commands": [line] }), ALLOWED);
        answer.ends(1);
        let evidence = bench.glovebox(&["evidence", "r", "--json"]).ends(0).json();
        assert_eq!(evidence["commands"], json!([]), "{line}");
    }
    // Quotes that change nothing are allowed. A folder of the project is not in the search path for programs.
    let (_, answer) = verified(
        &json!({ "commands": ["'sh' \"tests/check.sh\" good"] }),
        &format!("{ALLOWED}, \"verification.workdir\"=\"./\""),
    );
    answer.ends(0);
    let (_, answer) = verified(
        &json!({ "commands": ["sh ../tests/check.sh"] }),
        &format!("{ALLOWED}, \"verification.workdir\"=\"agent\""),
    );
    answer.ends(1).says("contains ..");
}

#[test]
fn everything_is_no_list_of_commands() {
    let (_, answer) = verified(&json!({ "commands": ["sh -c true"] }), "\"verification.allowed_commands\"=\"*\"");
    answer.ends(3).says("expected the prefixes of the commands that a plan may contain");
}

#[test]
fn an_agent_is_told_what_its_plan_may_contain_and_its_answer_has_the_plan() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; exit [shape=Msquare]\n  build [prompt=\"Build it.\", allowed_write_paths=\"out/\"]\n  \
         one [type=verification, allowed_write_paths=\"\", \"verification.allowed_commands\"=\"test -f,grep -q\"]\n  \
         two [type=verification, allowed_write_paths=\"\", \"verification.allowed_commands\"=\"grep -q,cat\", \"verification.plan_context_key\"=\"other.plan\"]\n  \
         start -> build -> one -> two -> exit\n}\n",
    );
    let script = "[[node.build]]\ntool = [{ name = \"write_file\", arguments = { path = \"out/a\", content = \"good\" } }]\n\
                  [[node.build]]\ntext = '''\nDone.\n```json\n{\"verification_plan\": {\"files\": [\"out/a\"], \"commands\": [\"grep -q good out/a\"]}}\n```\nOUTCOME: SUCCESS'''\n";
    std::fs::write(bench.outside().join("model.toml"), script).unwrap();
    bench
        .glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", "../model.toml"])
        .ends(0)
        .says("verified     one: grep -q good out/a")
        .says("verified     two: grep -q good out/a");
    let prompt = bench.run_text("r", "build/prompt.md");
    let list = "Verification plan command allowlist (hard requirement):\n- test -f\n- grep -q\n- cat\n";
    assert!(
        prompt.contains(list) && prompt.contains("Use only these command families in verification_plan.commands."),
        "{prompt}"
    );
}

#[test]
fn a_builders_plan_reaches_hold_outs_only_by_the_authors_word() {
    let plan = json!({ "commands": ["grep -q forty-two scripts/scenarios/answer"] });
    for (attributes, code) in [(ALLOWED.to_owned(), 1), (format!("{ALLOWED}, holdouts=\"scripts/scenarios/\""), 0)] {
        let (bench, _) = verified(&plan, &attributes);
        bench.write("scripts/scenarios/answer", "forty-two\n");
        let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "h"]);
        answer.ends(code);
    }
}
