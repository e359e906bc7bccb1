//! `verify_command` and `verify_plugin` (decision verify-command): a check after a node's work, whose verdict overrides
//! the node's own status.

use crate::guests;
use crate::workbench::{Answer, Workbench};
use serde_json::{Value, json};

/// Creates a project whose agent `build` follows this script.
fn bench(graph: &str, script: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  graph [max_steps=20]\n  start [shape=Mdiamond]; done [shape=Msquare]\n{graph}\n}}\n"
    ));
    std::fs::write(bench.outside().join("model.toml"), script).unwrap();
    bench
}

fn run(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", "../model.toml"])
}

/// Returns a turn of `build` that writes a file, and one that claims success.
fn writes(path: &str, content: &str) -> String {
    format!(
        "[[node.build]]\ntool = [{{ name = \"write_file\", arguments = {{ path = \"{path}\", content = \"{content}\" }} }}]\n\
         [[node.build]]\ntext = \"all tests pass\\nOUTCOME: SUCCESS\"\n"
    )
}

fn evidence(bench: &Workbench) -> Value {
    bench.glovebox(&["evidence", "r", "--json"]).ends(0).json()
}

#[test]
fn a_command_that_passes_keeps_the_outcome_and_proves_it() {
    let bench = bench(
        "build [prompt=b, allowed_write_paths=\"src/\", verify_command=\"grep -c good src/a; echo seen >&2\"]\n start -> build -> done",
        &writes("src/a", "good"),
    );
    run(&bench)
        .ends(0)
        .says("verified     build: sh -c 'grep -c good src/a; echo seen >&2'")
        .never_says("by the word of");
    let output = bench.run_text("r", "build/verify/build.verify_output");
    assert_eq!(output, "exit_code=0\nstdout:\n1\n\nstderr:\nseen\n\n");
    let status = bench.run_json("r", "build/status.json");
    assert_eq!((&status["outcome"], &status["notes"]), (&json!("success"), &json!("Stage completed: build")));
    let found = evidence(&bench);
    assert_eq!((&found["commands"][0]["node"], &found["commands"][0]["proof"]), (&json!("build"), &json!("verified")));
    assert_eq!(found["unverified"], json!([]), "the agent's word has a receipt now");
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("build.verify");
    bench.glovebox(&["why", "r", "build"]).ends(0).says("verification");
    bench.glovebox(&["logs", "r", "build"]).ends(0).says("seen");
    let final_json = bench.run_json("r", "final.json");
    assert_eq!(final_json["status"], "success");
}

#[test]
fn what_passed_before_a_later_agent_changed_files_is_named() {
    let graph = "build [prompt=b, allowed_write_paths=\"src/\", verify_command=\"grep -c good src/a\"]\n\
                 polish [prompt=p, allowed_write_paths=\"src/\"]\n\
                 again [shape=octagon, command=\"true\", allowed_write_paths=\"\"]\n start -> build -> polish -> again -> done";
    let polish = |path: &str| writes(path, "bad").replace("node.build", "node.polish");
    let nothing = "[[node.polish]]\ntext = \"OUTCOME: SUCCESS\"\n".to_owned();
    for (polish, is_outdated) in [(polish("src/a"), true), (nothing, false), (polish("other/a"), false)] {
        let bench = bench(graph, &(writes("src/a", "good") + &polish));
        let says = "`polish` changed files after these stages passed: build. Run them again after `polish`";
        let ran = run(&bench);
        assert_eq!(ran.stdout.contains(says), is_outdated, "{polish}: {}", ran.stdout);
    }
}

#[test]
fn a_command_that_fails_overrides_the_agents_word() {
    let graph = "build [prompt=b, allowed_write_paths=\"src/\", verify_command=\"echo three tests fail; exit 3\"]\n start -> build -> done";
    let bench = bench(graph, &writes("src/a", "bad"));
    run(&bench).ends(1).says("verify_command failed (exit 3): three tests fail");
    let status = bench.run_json("r", "build/status.json");
    assert_eq!(status["outcome"], "fail");
    assert!(
        bench.run_text("r", "build/verify/build.verify_output").starts_with("exit_code=3\nstdout:\nthree tests fail\n")
    );
    assert!(evidence(&bench)["commands"][0]["proof"] == "not_verified");
    bench.glovebox(&["show", "r", "build"]).ends(0).says("three tests fail");
}

#[test]
fn a_failed_verification_takes_the_failure_edge_and_the_next_agent_is_told() {
    let bench = bench(
        "build [prompt=b, allowed_write_paths=\"src/\", verify_command=\"cat src/a; test \\\"$(cat src/a)\\\" = good\"]\n\
         fix [prompt=f, allowed_write_paths=\"src/\"]\n\
         start -> build\n build -> done [condition=\"outcome=success\"]\n build -> fix [condition=\"outcome=fail\"]\n fix -> build",
        &(writes("src/a", "bad")
            + "[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n"
            + "[[node.fix]]\ntool = [{ name = \"write_file\", arguments = { path = \"src/a\", content = \"good\" } }]\n[[node.fix]]\ntext = \"fixed\"\n"),
    );
    run(&bench).ends(0);
    let prompt = bench.run_text("r", "fix/prompt.md");
    assert!(prompt.contains("verify_command failed (exit 1)") && prompt.contains("bad"), "{prompt}");
}

#[test]
fn what_is_repeated_is_the_work_and_not_only_the_check() {
    let bench = bench(
        "build [prompt=b, allowed_write_paths=\"src/\", max_retries=1, retry_policy=none, verify_command=\"grep good src/a\"]\n start -> build -> done",
        &(writes("src/a", "bad") + &writes("src/a", "good")),
    );
    run(&bench).ends(0);
    let why = bench.glovebox(&["why", "r", "build", "--json"]).ends(0).json().to_string();
    assert_eq!(why.matches("\"is_verification\":true").count(), 2, "{why}");
    let checkpoint = bench.run_json("r", "checkpoint.json");
    assert_eq!(checkpoint["completed_nodes"], json!(["start", "build"]));
    bench.glovebox(&["show", "r", "--json"]).ends(0);
}

#[test]
fn a_node_that_failed_by_itself_is_not_verified() {
    let bench = bench(
        "build [prompt=b, allowed_write_paths=\"src/\", verify_command=true]\n start -> build -> done",
        "[[node.build]]\ntext = \"OUTCOME: FAIL\"\n",
    );
    run(&bench).ends(1).never_says("verification started");
    assert_eq!(evidence(&bench)["commands"], json!([]));
}

#[test]
fn an_exit_that_is_not_verified_fails_the_run() {
    for (command, code) in [("test -f src/a", 0), ("test -f src/b", 1)] {
        let bench = bench(
            &format!(
                "done [verify_command=\"{command}\"] build [prompt=b, allowed_write_paths=\"src/\"]\n start -> build -> done"
            ),
            &writes("src/a", "good"),
        );
        let answer = run(&bench);
        answer.ends(code);
        match code {
            0 => answer.says("verified     done: sh -c 'test -f src/a'"),
            _ => answer.says("exit verify_command failed (exit 1)"),
        };
        let checkpoint = bench.run_json("r", "checkpoint.json");
        assert_eq!(checkpoint["completed_nodes"], json!(["start", "build"]), "an exit is no finished visit");
    }
}

#[test]
fn a_diamond_and_a_fan_in_are_verified_too() {
    let graph = |diamond: &str, join: &str| {
        format!(
            "fork [shape=component]; a [shape=parallelogram, tool_command=\"echo a > a\", allowed_write_paths=a]\n\
             b [shape=parallelogram, tool_command=\"echo b > b\", allowed_write_paths=b]\n\
             join [shape=tripleoctagon, merge=all, verify_command=\"{join}\"]; gate [shape=diamond, verify_command=\"{diamond}\"]\n\
             bad [shape=parallelogram, tool_command=\"echo went wrong\", allowed_write_paths=\"\"]\n\
             start -> fork; fork -> a -> join; fork -> b -> join; join -> gate\n\
             gate -> done [condition=\"outcome=success\"]; gate -> bad [condition=\"outcome=fail\"]; bad -> done"
        )
    };
    let both = "test -f a && test -f b";
    let bench = bench(&graph("test -f a", both), "");
    run(&bench)
        .ends(0)
        .says("verified     join: sh -c 'test -f a && test -f b'")
        .says("verified     gate: sh -c 'test -f a'");
    assert_eq!(bench.run_json("r", "join/status.json")["outcome"], "success");
    let bench = self::bench(&graph("test -f a", "echo merged wrong; exit 2"), "");
    // The conditional node only passes the failure on, and has nothing to verify.
    run(&bench).ends(0).says("not verified join").says("bad").never_says("gate:");
    let status = bench.run_json("r", "join/status.json");
    assert_eq!(status["outcome"], "fail");
    assert_eq!(status["failure_reason"], "fan-in verify_command failed (exit 2): merged wrong");
    let bench = self::bench(&graph("exit 5", both), "");
    run(&bench).ends(0).says("bad");
    assert_eq!(bench.run_json("r", "gate/status.json")["failure_reason"], "verify_command failed (exit 5): ");
}

#[test]
fn a_command_that_does_not_end_is_stopped() {
    let bench = bench(
        "build [prompt=b, allowed_write_paths=\"\", verify_command=\"echo begun; sleep 60\", verify_timeout=\"300ms\"]\n start -> build -> done",
        "[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n",
    );
    run(&bench).ends(9).says("verify_command timed out after 3");
}

#[test]
fn its_writes_are_those_of_the_node() {
    let bench = bench(
        "build [prompt=b, allowed_write_paths=\"src/\", verify_command=\"echo x > other\"]\n start -> build -> done",
        &writes("src/a", "good"),
    );
    run(&bench).ends(6).says("wrote disallowed files: other");
    assert!(!bench.has("other"));
}

#[test]
fn it_sees_hold_outs_that_its_agent_does_not_and_tells_no_more_than_the_verdict() {
    let script =
        "[[node.build]]\ntool = [{ name = \"read_file\", arguments = { path = \"scripts/scenarios/check.sh\" } }]\n";
    let bench = bench(
        "build [prompt=b, allowed_write_paths=\"src/\", verify_command=\"sh scripts/scenarios/check.sh\"]\n\
         fix [prompt=f, allowed_write_paths=\"src/\"]\n\
         start -> build\n build -> done [condition=\"outcome=success\"]\n build -> fix [condition=\"outcome=fail\"]\n fix -> done",
        &(script.to_owned() + &writes("src/a", "bad") + "[[node.fix]]\ntext = \"fixed\"\n"),
    );
    bench.write("scripts/scenarios/check.sh", "echo expected forty-two; grep good src/a\n");
    run(&bench).ends(0);
    let transcript = bench.glovebox(&["transcript", "r", "build"]).ends(0).stdout.clone();
    assert!(!transcript.contains("forty-two"), "{transcript}");
    let prompt = bench.run_text("r", "fix/prompt.md");
    assert!(!prompt.contains("forty-two") && !prompt.contains("exit 1"), "{prompt}");
}

/// Creates a project whose agent is verified by this guest.
fn verified_by(guest: &str, graph: &str, role: &str) -> Workbench {
    let bench = bench(graph, "[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n");
    std::fs::write(bench.project().join("guest.wasm"), guests::build(guest)).unwrap();
    bench.write("scripts/scenarios/check.sh", "test -f scripts/scenarios/answer\n");
    bench.write("scripts/scenarios/answer", "42\n");
    let commands = "commands = [\"sh scripts/scenarios/check.sh\"]";
    let entry = format!("path = \"guest.wasm\"\n{role}\nwants = {{ {commands} }}\ngrants = {{ {commands} }}\n");
    bench.write("glovebox.toml", &format!("[plugins.\"acme.check\"]\n{entry}"));
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench
}

const BY_PLUGIN: &str =
    "build [prompt=b, allowed_write_paths=\"\", verify_plugin=\"acme.check\"]\n start -> build -> done";
const GATE: &str = "build [prompt=b, allowed_write_paths=\"\", verify_plugin=\"acme.check\", holdouts=true, goal_gate=true, gate_requires=receipt]\n \
                    start -> build -> done";

#[test]
fn a_verifier_plugin_verifies_in_the_place_of_a_command() {
    let bench = verified_by("runs-scenario", GATE, "role = \"verifier\"");
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("build.verify");
    run(&bench).ends(0).says("verified     build: sh scripts/scenarios/check.sh");
}

#[test]
fn a_builder_may_not_verify() {
    for role in ["", "role = \"builder\""] {
        let bench = verified_by("runs-scenario", BY_PLUGIN, role);
        run(&bench).ends(3).says("`acme.check`").says("role = \"verifier\"");
    }
    let bench = verified_by("runs-scenario", &BY_PLUGIN.replace("acme.check", "codergen"), "");
    run(&bench).ends(3).says("`codergen`");
}

#[test]
fn a_verifier_that_lies_satisfies_no_gate_that_asks_for_a_receipt() {
    let bench = verified_by("lies", GATE, "role = \"verifier\"");
    run(&bench).ends(7).says("claim/unproven");
    // A verifier without receipts that claims success.
    let bench = verified_by("log-flood", GATE, "role = \"verifier\"");
    run(&bench).ends(4).says("goal gate `build` ended with `success` but without a receipt");
    let bench = verified_by("log-flood", BY_PLUGIN, "role = \"verifier\"");
    run(&bench).ends(0).says("unverified   build");
}
