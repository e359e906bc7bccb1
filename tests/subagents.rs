//! Subagents: what they know, what they may do, and what the run records of them.
//!
//! The witnesses are the log of the fake provider, the project after `apply`, and the files of the run.

use crate::providers::{Bench, FAMILIES, Turn};
use crate::workbench;
use serde_json::{Value, json};

fn pipeline(attributes: &str) -> String {
    format!(
        "digraph g {{ start [shape=Mdiamond] work [prompt=\"Words of the stage\", {attributes}] done [shape=Msquare]
        start -> work -> done }}"
    )
}

fn bench(family: &str, attributes: &str, turns: &[Turn]) -> Bench {
    let bench = Bench::new(&pipeline(attributes), family, turns);
    bench.write("a.txt", "content of a file\n");
    bench
}

fn spawn(arguments: Value) -> Turn {
    Turn::tool("spawn_agent", arguments)
}

fn tool(name: &str, path: &str) -> Turn {
    Turn::tool(name, json!({ "path": path, "content": "new\n" }))
}

fn done() -> Turn {
    Turn::text("OUTCOME: SUCCESS")
}

const READS: &str = "allowed_write_paths=\"\"";

#[test]
fn a_subagent_has_a_conversation_of_its_own_and_its_answer_is_a_result() {
    for family in FAMILIES {
        let turns = [
            spawn(json!({ "task": "Words of the task" })),
            tool("read_file", "a.txt"),
            Turn::text("It has four words."),
            Turn::tool("send_input", json!({ "agent_id": "1", "message": "Count again" })),
            Turn::text("Still four."),
            Turn::tool("wait", json!({ "agent_id": "1" })),
            Turn::tool("close_agent", json!({ "agent_id": "1" })),
            Turn::tool("wait", json!({ "agent_id": "1" })),
            done(),
        ];
        let bench = bench(family, READS, &turns);
        bench.run().ends(0);
        let asked = bench.requests();
        assert_eq!(asked.len(), 9, "{family}");
        let has = |at: usize, text: &str| asked[at].contains(text);
        for own in [1, 2, 4] {
            assert!(has(own, "Words of the task") && !has(own, "Words of the stage"), "{family}: {}", asked[own]);
            assert!(!has(own, "spawn_agent"), "{family}: a subagent begins no others");
        }
        assert!(has(4, "content of a file") && has(4, "It has four words.") && has(4, "Count again"), "{family}");
        for stage in [3, 5, 8] {
            assert!(has(stage, "Words of the stage") && has(stage, "subagent 1, 2 turns: answered"), "{family}");
            assert!(!has(stage, "content of a file"), "{family}: {}", asked[stage]);
        }
        assert!(
            has(8, "subagent 1 is closed") && has(8, "no subagent is running; call spawn_agent to start one"),
            "{family}"
        );
        assert_eq!(asked[8].matches("Still four.").count(), 2, "{family}");
        // Each line of the transcript has only the messages that were new in its conversation.
        let kept = bench.read_in_run("work/transcript.ndjson");
        let lines: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let agents: Vec<bool> = lines.iter().map(|line| line["agent"] == "1").collect();
        assert_eq!(agents, [false, true, true, false, true, false, false, false, false], "{family}");
        let repeated: Vec<u64> = lines.iter().map(|line| line["repeated"].as_u64().unwrap()).collect();
        assert_eq!(repeated, [0, 0, 3, 3, 5, 5, 7, 9, 11], "{family}");
        bench.glovebox(&["transcript", "r", "work"]).ends(0).says("turn 2     subagent 1: ");
    }
}

#[test]
fn a_subagent_writes_only_what_it_is_given() {
    let turns = [
        spawn(json!({ "task": "t", "write_paths": ["src/one/"] })),
        tool("write_file", "src/one/yes.txt"),
        tool("write_file", "src/two/no.txt"),
        tool("write_file", "src/one/../two/no.txt"),
        tool("write_file", "src/one/link/no.txt"),
        Turn::tool("edit_file", json!({ "path": "src/two/old.txt", "old_string": "old", "new_string": "new" })),
        Turn::text("wrote"),
        spawn(json!({ "task": "t" })),
        tool("write_file", "src/one/no.txt"),
        Turn::text("wrote nothing"),
        tool("write_file", "src/two/stage.txt"),
        done(),
    ];
    let bench = bench("anthropic", "allowed_write_paths=\"src/\"", &turns);
    bench.write("src/two/old.txt", "old\n");
    bench.write("src/one/old.txt", "old\n");
    std::os::unix::fs::symlink("../two", bench.project_folder().join("src/one/link")).unwrap();
    bench.run().ends(0);
    bench.glovebox(&["apply", "r"]).ends(0);
    let has = |path: &str| bench.project_folder().join(path).exists();
    assert!(has("src/one/yes.txt") && has("src/two/stage.txt"));
    assert!(!has("src/two/no.txt") && !has("src/one/no.txt"));
    assert_eq!(bench.project_text("src/two/old.txt"), "old\n");
    let asked = bench.requests();
    assert!(asked[6].contains("this subagent may write only here: src/one/"), "{}", asked[6]);
    assert!(asked[6].contains("contains a symbolic link"), "{}", asked[6]);
    assert!(asked[9].contains("this subagent may write nothing"), "{}", asked[9]);
}

/// The pipeline asks for more than the operator grants. The component is the real agent handler under the name of a
/// plugin.
#[test]
fn a_stage_is_told_the_scope_that_the_grants_narrowed_and_not_the_one_of_its_attribute() {
    let turns = [
        tool("write_file", "docs/a.txt"),
        spawn(json!({ "task": "t", "write_paths": ["docs/"] })),
        spawn(json!({ "task": "t", "write_paths": ["src/"] })),
        tool("write_file", "src/a.txt"),
        Turn::text("wrote"),
        done(),
    ];
    let bench = bench("openai", "type=\"acme.dev\", allowed_write_paths=\"src/,docs/\"", &turns);
    let mut component = std::fs::read(workbench::root().join("target/components/codergen.wasm")).unwrap();
    let manifest = br#"{"name":"codergen""#;
    let at = component.windows(manifest.len()).position(|bytes| bytes == manifest).unwrap();
    component[at..at + manifest.len()].copy_from_slice(br#"{"name":"acme.dev""#);
    bench.write_bytes("coder.wasm", &component);
    let models = bench.project_text("glovebox.toml");
    let grants = "{ filesystem = \"posix\", read = [\"./\"], write = [\"src/\"], model = true }";
    bench.write(
        "glovebox.toml",
        &format!("{models}\n[plugins.\"acme.dev\"]\npath = \"coder.wasm\"\ngrants = {grants}\n"),
    );
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.run().ends(0);
    let asked = bench.requests();
    assert!(asked[0].contains("You may write only here: src/") && !asked[0].contains("docs/"), "{}", asked[0]);
    assert!(asked[1].contains("this stage may write only here: src/"), "{}", asked[1]);
    assert!(
        asked[2].contains("`docs/` is outside of the write scope; this stage may write only here: src/"),
        "{}",
        asked[2]
    );
    assert_eq!(asked.len(), 6, "the subagent was begun");
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(bench.project_text("src/a.txt"), "new\n");
    assert!(!bench.project_folder().join("docs").exists());
}

#[test]
fn a_stage_that_may_write_nothing_is_told_so() {
    let bench = bench("openai", READS, &[tool("write_file", "a.txt"), done()]);
    bench.run().ends(0);
    let asked = bench.requests();
    assert!(asked[0].contains("You may write nothing"), "{}", asked[0]);
    assert!(asked[1].contains("this stage may write nothing"), "{}", asked[1]);
}

#[test]
fn no_subagent_gets_more_than_its_stage_has() {
    let check = |attributes: &str, arguments: Value, says: &str| {
        let mut arguments = arguments;
        arguments["task"] = json!("t");
        let bench = bench("openai", attributes, &[spawn(arguments), done()]);
        bench.run().ends(0);
        let asked = bench.requests();
        assert_eq!(asked.len(), 2, "no subagent was begun");
        assert!(asked[1].contains(says), "{says}: {}", asked[1]);
    };
    let writes = "allowed_write_paths=\"src/\", allowed_commands=\"sh\"";
    check(
        writes,
        json!({ "write_paths": ["./"] }),
        "`./` is outside of the write scope; this stage may write only here: src/",
    );
    check(
        writes,
        json!({ "write_paths": ["src/../"] }),
        "is outside of the write scope; this stage may write only here: src/",
    );
    check(writes, json!({ "write_paths": "src/" }), "`write_paths` is not a list of strings");
    check(
        writes,
        json!({ "commands": true, "write_paths": ["src/a/"] }),
        "a command can write everything that this stage may write",
    );
    check(writes, json!({ "commands": true }), "a command can write everything that this stage may write");
    check(READS, json!({ "write_paths": ["a.txt"] }), "is outside of the write scope; this stage may write nothing");
    check(
        READS,
        json!({ "commands": true }),
        "this stage runs no commands, so its subagents cannot run commands either",
    );
}

#[test]
fn a_subagent_runs_commands_where_it_may_write_what_they_can() {
    let shell = Turn::tool("shell", json!({ "command": "sh make.sh" }));
    let turns = [
        spawn(json!({ "task": "t", "commands": true, "write_paths": ["src/"] })),
        shell.clone(),
        Turn::text("made"),
        spawn(json!({ "task": "t", "write_paths": ["src/"] })),
        shell,
        Turn::text("could not"),
        done(),
    ];
    let bench = bench("openai", "allowed_write_paths=\"src/\", allowed_commands=\"sh\"", &turns);
    bench.write("make.sh", "mkdir -p src; echo made >> src/made.txt\n");
    bench.run().ends(0);
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(bench.project_text("src/made.txt"), "made\n");
    assert!(bench.requests()[0].contains("only these commands, without shell syntax: sh"), "the agent knows its grant");
    let refused = &bench.requests()[5];
    assert!(refused.contains("no tool `shell` was offered"), "{refused}");
}

/// Turns of subagents count as turns of the stage.
#[test]
fn subagents_spend_what_the_stage_may() {
    let mut turns = vec![spawn(json!({ "task": "t" }))];
    turns.push(tool("read_file", "a.txt").repeat());
    let bench = bench("gemini", "allowed_write_paths=\"\", max_turns=4", &turns);
    bench.run().ends(5).says("limit `turns` (4) reached");
    assert_eq!(bench.requests().len(), 4);
}

#[test]
fn a_subagent_can_have_turns_of_its_own() {
    let turns = [
        spawn(json!({ "task": "t", "max_turns": 2 })),
        tool("read_file", "a.txt"),
        tool("read_file", "a.txt"),
        Turn::tool("send_input", json!({ "agent_id": "1", "message": "Go on" })),
        Turn::text("read"),
        done(),
    ];
    let bench = bench("openai", READS, &turns);
    bench.run().ends(0);
    let asked = bench.requests();
    assert!(asked[3].contains("subagent 1, 2 turns: no answer: it reached `max_turns`"), "{}", asked[3]);
    assert!(asked[5].contains("subagent 1, 1 turn: answered"), "{}", asked[5]);
}

/// `output_schema` applies only to the stage's own answer, not to that of a subagent.
#[test]
fn only_the_answer_of_the_stage_is_its_object() {
    for family in FAMILIES {
        let turns = [spawn(json!({ "task": "t" })), Turn::text("OUTCOME: FAIL no"), Turn::text("{\"ok\": true}")];
        let schema = "output_schema=\"{\\\"type\\\": \\\"object\\\", \\\"properties\\\": {\\\"ok\\\": {\\\"type\\\": \
                      \\\"boolean\\\"}}, \\\"required\\\": [\\\"ok\\\"], \\\"additionalProperties\\\": false}\"";
        let bench = bench(family, &format!("{READS}, {schema}"), &turns);
        bench.run().ends(0);
        assert_eq!(bench.requests().len(), 3, "{family}");
        assert_eq!(bench.run_json("checkpoint.json")["context"]["work.output"], json!({ "ok": true }), "{family}");
        assert!(!bench.requests()[1].contains("additionalProperties\":false,\"properties\":{\"ok"), "{family}");
    }
}

/// A failure that ends the stage also does so in a subagent. The agent of the stage cannot continue.
#[test]
fn a_failure_of_a_subagent_that_ends_the_stage_ends_it() {
    let check = |turns: &[Turn], asked: usize, (exit, code): (i32, &str)| {
        let mut all = vec![spawn(json!({ "task": "t", "write_paths": ["src/"] })), tool("write_file", "src/a.txt")];
        all.extend_from_slice(turns);
        all.push(done().repeat());
        let bench = bench("anthropic", "allowed_write_paths=\"src/\"", &all);
        let run = bench.run();
        run.ends(exit).says(code);
        assert_eq!(bench.requests().len(), asked, "{code}: nothing is asked after it");
        bench
    };
    let pinned = check(&[Turn::text("read").of("another-model")], 3, (6, "provider/pin-violation"));
    assert!(!pinned.run_folder().join("workspace/src/a.txt").exists(), "what it did is not kept");
    check(&vec![tool("read_file", "a.txt"); 12], 14, (1, "agent/loop"));
    check(&vec![Turn::raw("read_file", "{x"); 3], 5, (8, "provider/invalid-tool-call"));
}

/// The conversation of a subagent is compacted like that of the stage, and the removed part is stored under the
/// subagent's name.
#[test]
fn a_long_conversation_of_a_subagent_is_made_shorter() {
    let read = |path: &str, tokens| tool("read_file", path).usage(tokens, 10);
    let turns = [
        spawn(json!({ "task": "Words of the task" })),
        read("a.txt", 3000),
        read("b.txt", 8500),
        Turn::text("read"),
        done(),
    ];
    let bench = bench("openai", READS, &turns);
    let table = bench.project_text("glovebox.toml");
    bench.write("glovebox.toml", &format!("{table}context_tokens = 10000\n"));
    bench.write("a.txt", &format!("first {}\n", "x".repeat(12_000)));
    bench.write("b.txt", "second\n");
    bench.run().ends(0);
    let asked = &bench.requests()[3];
    assert!(asked.contains("Words of the task") && asked.contains("second"), "{asked}");
    assert!(!asked.contains("first x") && asked.contains("- called read_file"), "{asked}");
    assert!(bench.read_in_run("work/agent-1-compacted-1.md").contains("first x"));
}

#[test]
fn a_killed_attempt_asks_no_subagent_twice() {
    let turns =
        [spawn(json!({ "task": "t" })), tool("read_file", "a.txt"), Turn::text("read"), done().after(3000), done()];
    let bench = bench("anthropic", READS, &turns);
    bench.kill_run_after(4);
    bench.resume().ends(0);
    let asked = bench.requests();
    assert_eq!(asked.len(), 5);
    assert_eq!(asked[3], asked[4]);
}

/// Each tool call has its hooks, including the calls of subagents and the call that starts one.
#[test]
fn hooks_are_around_the_calls_of_subagents_too() {
    let turns = [spawn(json!({ "task": "t" })), tool("read_file", "a.txt"), Turn::text("read"), done()];
    let pipeline = format!("{READS}, \"tool_hooks.pre\"=\"true\", \"tool_hooks.post\"=\"cat\"");
    let bench = bench("openai", &pipeline, &turns);
    bench.run().ends(0);
    let file = bench.run_json("work/receipts.json");
    let hook = |one: &Value| format!("{} {}", one["hook"]["kind"], one["hook"]["tool"]).replace('"', "");
    let hooks: Vec<String> = file["receipts"].as_array().unwrap().iter().map(hook).collect();
    assert_eq!(hooks, ["pre spawn_agent", "pre read_file", "post read_file", "post spawn_agent"]);
}
