//! Tool hooks with the real binary (spec §9.7): which calls they allow, what input they get, what they can reach, and
//! what they prove.
//!
//! The model is a script. The witness of a refused call is the project after `apply`. The witness of a hook is its
//! receipt.

use crate::guests;
use crate::workbench::{Answer, Workbench};
use serde_json::Value;

const END: &str = "[[node.work]]\ntext = \"OUTCOME: SUCCESS\"\n";

fn pipeline(graph: &str, nodes: &str) -> String {
    format!(
        "digraph g {{\n  graph [{graph}]\n  start [shape=Mdiamond]; done [shape=Msquare]\n  {nodes}\n  \
         start -> work -> done\n}}\n"
    )
}

/// Creates a project with one agent stage and these hooks. The model writes `a.txt`, then `b.txt`.
fn bench(graph: &str, work: &str) -> Workbench {
    let scope = if work.contains("allowed_write_paths") { "" } else { "allowed_write_paths=\"./\"," };
    let node = format!("work [prompt=\"Do it\", {scope} {work}]");
    let bench = Workbench::with_pipeline(&pipeline(graph, &node));
    bench.write("model.toml", &[write("a.txt"), write("b.txt"), END.to_owned()].concat());
    bench
}

fn write(path: &str) -> String {
    format!(
        "[[node.work]]\ntool = [{{ name = \"write_file\", arguments = {{ path = \"{path}\", content = \"x\" }} }}]\n"
    )
}

fn run(bench: &Workbench, exit: i32) -> Answer {
    let answer = bench.glovebox(&["run", "pipeline.dot", "--script", "model.toml", "--run-id", "r"]);
    answer.ends(exit);
    answer
}

/// Returns the receipts of the stage's hooks: kind, tool, exit code.
fn hooks(bench: &Workbench) -> Vec<(String, String, Value)> {
    let file = bench.run_json("r", "work/receipts.json");
    let receipts = file["receipts"].as_array().unwrap().iter().filter(|receipt| !receipt["hook"].is_null());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    receipts.map(|one| (text(&one["hook"]["kind"]), text(&one["hook"]["tool"]), one["code"].clone())).collect()
}

fn log(bench: &Workbench) -> String {
    bench.run_text("r", "work/log.ndjson")
}

#[test]
fn a_pre_hook_refuses_a_call_and_lets_another_pass() {
    let bench = bench(r#"tool_hooks.pre="if grep -q b.txt; then echo keep out >&2; exit 3; fi""#, "");
    run(&bench, 0)
        .says("refused")
        .says("`tool_hooks.pre` exited with code 3: keep out")
        .says("2 hooks ran, 1 call refused");
    let kinds: Vec<_> = hooks(&bench).into_iter().map(|(kind, tool, code)| (kind, tool, code.as_i64())).collect();
    let pre = |code| ("pre".to_owned(), "write_file".to_owned(), Some(code));
    assert_eq!(kinds, [pre(0), pre(3)]);
    assert!(log(&bench).contains("exited with code 3: keep out"), "{}", log(&bench));
    // The stage continues: the model was told about the refusal and ended the stage.
    let shown = bench.glovebox(&["show", "r", "work"]);
    shown.ends(0).says("hook").says("pre write_file: sh -c").says("exit 3").says("keep out");
    bench.glovebox(&["apply", "r"]).ends(0);
    assert!(bench.has("a.txt") && !bench.has("b.txt"), "the refused call ran");
}

#[test]
fn a_node_replaces_the_hook_of_its_graph_or_takes_it_away() {
    for (work, calls) in [("", 0), ("tool_hooks.pre=\"true\"", 2), ("tool_hooks.pre=\"\"", 2)] {
        let bench = bench(r#"tool_hooks.pre="false""#, work);
        run(&bench, 0);
        bench.glovebox(&["apply", "r"]);
        assert_eq!(["a.txt", "b.txt"].iter().filter(|path| bench.has(path)).count(), calls, "{work}");
    }
}

#[test]
fn hooks_are_told_about_the_call_by_environment_and_standard_input() {
    let pre = "cat > seen; test $TOOL_HOOK-$TOOL_NAME-$TOOL_NODE_ID-$TOOL_RUN_ID-$TOOL_VISIT = pre-write_file-work-r-1 \
               && test -n $TOOL_CALL_ID && grep -q '.schema_version.:1,.hook.:.pre.' seen \
               && grep -q '.tool.:.write_file.,.arguments.:{.content.:.x.,.path.:.[ab].txt.}}$' seen";
    let post = "cat > seen; test $TOOL_HOOK = post && grep -q '.arguments.:{.content.:.x.,' seen \
                && grep -q '.result.:{.text.:.*.is_error.:false}}$' seen";
    let bench = bench("", &format!("tool_hooks.pre=\"{pre}\", tool_hooks.post=\"{post}\""));
    run(&bench, 0).says("4 hooks ran, 0 calls refused");
    let seen: Vec<_> = hooks(&bench).into_iter().map(|(kind, _, code)| (kind, code.as_i64())).collect();
    let one = |kind: &str| (kind.to_owned(), Some(0));
    assert_eq!(seen, [one("pre"), one("post"), one("pre"), one("post")]);
    let file = bench.run_json("r", "work/receipts.json");
    assert!(file["receipts"][0]["env_names"].to_string().contains("TOOL_CALL_ID"), "{file}");
}

#[test]
fn a_post_hook_never_blocks_and_its_failure_is_recorded() {
    let bench = bench("", r#"tool_hooks.post="echo unhappy; exit 9""#);
    run(&bench, 0).says("2 hooks ran, 0 calls refused, 2 post failed");
    assert_eq!(log(&bench).matches("`tool_hooks.post` exited with code 9: unhappy").count(), 2, "{}", log(&bench));
    bench.glovebox(&["apply", "r"]).ends(0);
    assert!(bench.has("a.txt") && bench.has("b.txt"));
}

#[test]
fn a_failed_tool_is_an_error_for_the_post_hook_and_an_unknown_tool_has_no_hook() {
    let bench = bench("", r#"tool_hooks.pre="true", tool_hooks.post="grep -q '.is_error.:true}}$'""#);
    let missing = "[[node.work]]\ntool = [{ name = \"read_file\", arguments = { path = \"none.txt\" } }]\n";
    let unknown = "[[node.work]]\ntool = [{ name = \"rm_rf\", arguments = {} }]\n";
    bench.write("model.toml", &[missing, unknown, END].concat());
    run(&bench, 0);
    let seen: Vec<_> = hooks(&bench).into_iter().map(|(kind, tool, code)| (kind, tool, code.as_i64())).collect();
    let one = |kind: &str| (kind.to_owned(), "read_file".to_owned(), Some(0));
    assert_eq!(seen, [one("pre"), one("post")]);
}

#[test]
fn a_pre_hook_that_cannot_run_or_is_killed_refuses() {
    for (hook, said) in [
        ("no-such-program", "exited with code 127"),
        ("kill -9 $$", "ended: signaled"),
        ("head -c 99999999 /dev/zero; exit 5", "exited with code 5"),
        ("exec sleep 100", "`tool_hooks.pre`"),
    ] {
        let bench = bench("", &format!("limits.command_ms=1500, tool_hooks.pre=\"{hook}\""));
        run(&bench, 0).says(said);
        bench.glovebox(&["apply", "r"]);
        assert!(!bench.has("a.txt") && !bench.has("b.txt"), "{hook}");
    }
    // Each hook counts as a command. When the limit is reached, no tool call is allowed.
    let bench = bench("", "limits.commands=1, tool_hooks.pre=\"true\"");
    run(&bench, 0).says("limit `commands` (1) reached");
    bench.glovebox(&["apply", "r"]);
    assert!(bench.has("a.txt") && !bench.has("b.txt"));
}

#[test]
fn hooks_keep_nothing_reach_no_network_and_see_no_hold_outs() {
    let post = "echo planted > planted.txt; echo planted > /tmp/planted; test ! -e scripts/scenarios/answer \
                && test ! -e secret/key && test -f seen.txt && ! cat < /dev/tcp/1.1.1.1/80";
    let bench =
        bench("", &format!("read_paths=\"seen.txt\", allowed_write_paths=\"a.txt,b.txt\", tool_hooks.post=\"{post}\""));
    bench.write("seen.txt", "seen\n");
    bench.write("secret/key", "42\n");
    bench.write("scripts/scenarios/answer", "42\n");
    bench.write("glovebox.toml", "[sandbox]\nnetwork = \"full\"\n");
    run(&bench, 0).says("2 hooks ran, 0 calls refused").never_says("post failed");
    bench.glovebox(&["apply", "r"]).ends(0);
    assert!(bench.has("a.txt") && !bench.has("planted.txt"), "what a hook wrote was kept");
}

#[test]
fn commands_of_the_stage_reach_no_hook() {
    // A command of the agent looks for the processes and files of hooks, and leaves a background process that does so.
    let bench =
        bench("", "allowed_commands=\"*\", tool_hooks.pre=\"sleep 0.3; test ! -e /tmp/mine && test ! -e mine\"");
    let shell = "[[node.work]]\ntool = [{ name = \"shell\", arguments = { command = \"touch /tmp/mine mine; (while :; do \
                 pkill -9 sleep; pkill -9 sh; done) & sleep 1\" } }]\n";
    bench.write("model.toml", &[shell, &write("a.txt"), END].concat());
    run(&bench, 0);
    let codes: Vec<_> = hooks(&bench).into_iter().map(|(_, _, code)| code.as_i64()).collect();
    assert_eq!(codes, [Some(0), Some(0)], "the stage's commands disturbed a hook");
}

#[test]
fn a_component_that_ignores_hooks_learns_nothing_of_a_refused_call() {
    let noted = |hook: &str| {
        let node = "work [type=\"acme.seek\", allowed_write_paths=\"\"]";
        let bench = Workbench::with_pipeline(&pipeline(&format!("tool_hooks.pre=\"{hook}\""), node));
        std::fs::write(bench.project().join("guest.wasm"), guests::build("seeks-refused")).unwrap();
        bench.write(
            "glovebox.toml",
            "[plugins.\"acme.seek\"]\npath = \"guest.wasm\"\nwants = { model = true }\ngrants = { model = true }\n",
        );
        bench.write(
            "model.toml",
            "[[node.work]]\ntool = [{ name = \"write_file\", arguments = { path = \"FORBIDDEN\", content = \"x\" } }]\n",
        );
        bench.glovebox(&["plugin", "lock"]).ends(0);
        run(&bench, 0);
        let status = bench.run_json("r", "work/status.json");
        assert_eq!(hooks(&bench).len(), 1);
        status["notes"].as_str().unwrap().to_owned()
    };
    assert_eq!(noted("true"), "1", "the witness does not see what it should");
    assert_eq!(noted("false"), "0", "the arguments of a refused call reached the component");
}

#[test]
fn a_hook_verifies_nothing_and_is_in_the_plan() {
    let bench = bench(r#"tool_hooks.pre="true""#, r#"tool_hooks.post="cat > log""#);
    let plan = bench.glovebox(&["plan", "pipeline.dot"]);
    plan.ends(0).says("cat > log (after each tool call), true (before each tool call)");
    let json = bench.glovebox(&["plan", "pipeline.dot", "--json"]).json().to_string();
    assert!(json.contains("run true before each tool call") && json.contains("`tool_hooks.post`"), "{json}");
    bench.glovebox(&["plan", "pipeline.dot", "--deny", "run=*"]).ends(6);
    bench.write("plain.dot", &pipeline("", "work [prompt=\"Do it\", allowed_write_paths=\"./\"]"));
    bench.glovebox(&["plan", "pipeline.dot", "--against", "plain.dot", "--deny", "widened"]).ends(6);
    run(&bench, 0).says("nothing: no tool or verify stage ran a command").says("unverified");
    let verdict = bench.glovebox(&["show", "r", "--json"]).json();
    let receipts = verdict["receipts"].as_array().unwrap();
    assert!(!receipts.is_empty() && receipts.iter().all(|one| one["verified"] == false), "{verdict}");
}

#[test]
fn a_hook_where_no_tool_is_called_is_refused() {
    let refused = |node: &str, said: &str| {
        let bench = Workbench::with_pipeline(&pipeline("", &format!("work [{node}]")));
        for command in [&["check", "pipeline.dot"][..], &["run", "pipeline.dot", "--simulate"]] {
            bench.glovebox(command).ends(3).says("tool_hooks_without_tools").says(said);
        }
    };
    refused("shape=parallelogram, tool_command=\"true\", tool_hooks.pre=\"true\"", "a `tool` node makes no tool calls");
    refused("shape=diamond, tool_hooks.post=\"true\"", "a `conditional` node makes no tool calls");
    // A default for agents is accepted, although other nodes do not use it.
    let nodes = "node [tool_hooks.pre=\"true\", prompt=\"p\"]; work";
    let bench = Workbench::with_pipeline(&pipeline("", nodes));
    bench.glovebox(&["check", "pipeline.dot"]).ends(0);
}

#[test]
fn hooks_hold_again_after_a_resume() {
    let bench = bench(r#"tool_hooks.pre="! grep -q b.txt""#, "");
    bench.write("model.toml", &[write("a.txt"), write("b.txt")].concat());
    run(&bench, 8);
    bench.write("model.toml", &[write("a.txt"), write("b.txt"), write("b.txt"), END.to_owned()].concat());
    bench.glovebox(&["resume", "r", "--script", "model.toml"]).ends(0).says("1 call refused");
    bench.glovebox(&["apply", "r"]);
    assert!(!bench.has("b.txt"));
}

#[test]
fn a_hook_that_took_too_long_names_the_bound_that_ended_it() {
    let bench = bench("", r#"tool_hooks.pre="if grep -q b.txt; then sleep 100; fi", "limits.command_ms"=1500"#);
    run(&bench, 0).says("1 call refused").says("`tool_hooks.pre` ran longer than `limits.command_ms` (1500 ms)");
    assert!(!log(&bench).contains("60 s"), "{}", log(&bench));
    bench.glovebox(&["apply", "r"]);
    assert!(bench.has("a.txt") && !bench.has("b.txt"));
}
