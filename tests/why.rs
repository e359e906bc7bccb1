//! `glovebox why`: each edge with its line and the values that its condition read, and how the exit code of a command
//! led to that of the run.

use crate::workbench::Workbench;
use serde_json::{Value, json};

const LOOP: &str = r#"digraph g {
  start [shape=Mdiamond]
  done [shape=Msquare]
  build [prompt="build", allowed_write_paths="src/"]
  check [shape=parallelogram, tool_command="test -e src/ready", max_retries=1, retry_policy="none"]
  fix [prompt="fix", allowed_write_paths="src/"]
  start -> build -> check
  check -> done [condition="outcome=success && context.missing!=yes"]
  check -> fix [condition="outcome=fail"]
  fix -> check
}
"#;

/// `build` writes nothing. `fix` creates the file that the check requires.
const SCRIPT: &str = "[[node.build]]\ntext = \"done\"\n\
    [[node.fix]]\ntool = [{ name = \"write_file\", arguments = { path = \"src/ready\", content = \"yes\" } }]\n\
    [[node.fix]]\ntext = \"done\"\n";

fn steps(why: &Value, kind: &str) -> Vec<Value> {
    why["steps"].as_array().unwrap().iter().filter(|step| !step[kind].is_null()).cloned().collect()
}

#[test]
fn each_edge_says_why_with_its_line_and_what_it_read() {
    let bench = Workbench::with_pipeline(LOOP);
    bench.write("script.toml", SCRIPT);
    bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "x", "-q"]).ends(0);
    let why = bench.glovebox(&["why", "x", "--json"]).ends(0).json();
    let attempts: Vec<_> =
        steps(&why, "attempt").iter().map(|step| (step["node"].clone(), step["attempt"]["status"].clone())).collect();
    let expected =
        [("build", "success"), ("check", "fail"), ("check", "fail"), ("fix", "success"), ("check", "success")];
    assert_eq!(attempts, expected.map(|(node, status)| (json!(node), json!(status))));
    let first = &steps(&why, "attempt")[1]["attempt"];
    assert_eq!((&first["retried"], first["delay_ms"].is_u64()), (&json!(true), true));
    let left: Vec<Value> = steps(&why, "route").into_iter().filter(|step| step["node"] == "check").collect();
    let [failed, passed] = &left[..] else { panic!("check is left twice: {left:?}") };
    assert_eq!((&failed["route"]["to"], &failed["route"]["how"]), (&json!("fix"), &json!("condition")));
    let edge = &failed["route"]["edges"][0];
    assert_eq!((&edge["to"], &edge["line"], &edge["taken"]), (&json!("done"), &json!(8), &json!(false)));
    let read = [("outcome", "fail", false), ("context.missing", "", true)];
    assert_eq!(
        edge["values"],
        json!(read.map(|(key, value, holds)| json!({ "key": key, "value": value, "holds": holds })))
    );
    assert_eq!(failed["route"]["edges"][1]["taken"], true);
    assert_eq!(
        passed["route"]["edges"][0]["values"][0],
        json!({ "key": "outcome", "value": "success", "holds": true })
    );
    assert_eq!((&why["end"]["status"], &why["end"]["exit_code"]), (&json!("success"), &json!(0)));
    let text = bench.glovebox(&["why", "x"]);
    text.ends(0);
    text.says("- done (line 8): condition does not hold for outcome fail");
    text.says("`outcome` is `fail`: does not hold, `context.missing` is ``: holds");
    text.says("+ fix (line 9): condition holds").says("exit         0 (ok)");
    let one = bench.glovebox(&["why", "x", "fix", "--json"]).ends(0).json();
    assert!(one["steps"].as_array().unwrap().iter().all(|step| step["node"] == "fix"), "{one}");
    bench
        .glovebox(&["why", "x", "nowhere"])
        .ends(2)
        .says("no step at a node `nowhere`")
        .says("the run has steps at `build`, `check`");
}

#[test]
fn a_run_that_failed_is_explained_from_the_command_to_the_exit_code() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n t [shape=parallelogram, tool_command=\"exit 3\"]\n \
         start -> t\n t -> done\n t -> done [condition=\"outcome=success\"]\n}\n",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "x", "-q"]).ends(1);
    let why = bench.glovebox(&["why", "x", "--json"]).ends(0).json();
    let nowhere = &steps(&why, "no_route")[0];
    assert_eq!((&nowhere["node"], &nowhere["no_route"]["how"]), (&json!("t"), &json!("none")));
    let reasons: Vec<&Value> =
        nowhere["no_route"]["edges"].as_array().unwrap().iter().map(|edge| &edge["reason"]).collect();
    assert_eq!(reasons, ["a failed stage does not follow a plain edge", "condition does not hold for outcome fail"]);
    let end = &why["end"];
    assert_eq!(
        (&end["failed_node"], &end["exit_code"], &end["exit_name"]),
        (&json!("t"), &json!(1), &json!("run-failed"))
    );
    assert_eq!(end["commands"], json!([{ "argv": ["sh", "-c", "exit 3"], "ended": "exit 3" }]));
    let text = bench.glovebox(&["why", "x"]);
    text.ends(0);
    text.says("none for the status `fail`").says("- done (line 6): a failed stage does not follow a plain edge");
    text.says(": exit 3\n").says(" at `t`: ").says("exit         1 (run-failed)");
}

#[test]
fn an_unmet_gate_says_where_the_run_went_instead() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n a [prompt=x, allowed_write_paths=\"./\"]\n \
         gate [prompt=x, goal_gate=true, allowed_write_paths=\"./\"]\n start -> a -> done\n a -> gate [condition=\"outcome=fail\"]\n \
         gate -> done\n}\n",
    );
    bench.glovebox(&["run", "pipeline.dot", "--simulate", "--run-id", "x", "-q"]).ends(4);
    let why = bench.glovebox(&["why", "x", "--json"]).ends(0).json();
    let gate = &steps(&why, "gate_unmet")[0];
    assert_eq!((&gate["node"], &gate["gate_unmet"]), (&json!("done"), &json!({ "gate": "gate" })));
    bench
        .glovebox(&["why", "x"])
        .ends(0)
        .says("`gate` was never visited, and no `retry_target` is set")
        .says("exit         4 (unverified)");
}
