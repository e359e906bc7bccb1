//! Agent programs with the real binary. The programs are stand-ins in Python that send requests to the gateway of their
//! stage, as the real programs do.
//!
//! The witnesses are the log of the fake provider behind the gateway, a socket of the host, and what the program itself
//! could see.

use crate::providers::stand_in::{bench, pipeline};
use crate::providers::{Bench, KEY, Turn};
use crate::workbench;
use serde_json::json;
use std::net::TcpListener;

#[test]
fn a_program_works_in_the_stage_and_asks_its_model_through_the_gateway() {
    let program = r#"
task = sys.stdin.read()
status, answer = ask(task)
assert status == 200 and "message_stop" in answer, answer
open("src/a.txt", "w").write("new\n")
assert ask("again")[0] == 200
print("I have mended it.")
print("OUTCOME: SUCCESS")
"#;
    let turns = [Turn::text("one").usage(1200, 40), Turn::text("two").usage(1300, 20)];
    let bench = bench("", program, &turns);
    bench.run().ends(0).says("$0.0084").never_says("simulated");
    assert_eq!(bench.read_in_run("workspace/src/a.txt"), "new\n");
    let shown = bench.show();
    assert_eq!((&shown["tokens"], &shown["cost"]), (&json!({ "input": 2500, "output": 60 }), &json!(8400)));
    let asked = bench.requests();
    assert!(asked.len() == 2 && asked[0].contains("Do: mend it") && asked[0].contains("OUTCOME: SUCCESS"), "{asked:?}");
    bench.glovebox(&["show", "r", "build"]).ends(0).says("python3 tools/agent.py").says("it: anthropic exact-model");
    assert!(bench.read_in_run("build/response.md").contains("I have mended it."));
    assert!(bench.read_in_run("build/transcript.ndjson").lines().count() == 2);
    bench.has_no_key();
}

#[test]
fn an_answer_without_a_stream_is_passed_on_and_counted() {
    let program = r#"
sys.stdin.read()
status, answer = ask("whole", stream=False)
whole = json.loads(answer)
assert status == 200 and whole["type"] == "message" and whole["content"][0]["text"] == "one", answer
print("OUTCOME: SUCCESS")
"#;
    let bench = bench("", program, &[Turn::text("one").usage(1200, 40)]);
    bench.run().ends(0).says("$0.0042");
    assert_eq!(bench.show()["tokens"], json!({ "input": 1200, "output": 40 }));
}

#[test]
fn the_gateway_lets_nothing_else_through() {
    let program = r#"
import socket
def refused(what, answer, part):
    status, text = answer
    if status == 200 or part not in text:
        print("OUTCOME: FAIL", what, status, text[:200]); sys.exit(0)
refused("other model", ask("x", model="another-model"), "pin-violation")
refused("no token", ask("x", token=""), "authentication")
refused("other token", ask("x", token="0" * 32), "authentication")
refused("other path", ask("x", path="/v1/files"), "not-granted")
refused("batches", ask("x", path="/v1/messages/batches"), "not-granted")
refused("a file", send("/v1/files", None, method="GET"), "not-granted")
refused("web search", ask("x", tools=[{"type": "web_search_20250305", "name": "web_search"}]), "not-granted")
refused("fetched image", ask("x", messages=[{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http://evil.example/"}}]}]), "not-granted")
refused("servers", ask("x", mcp_servers=[{"type": "url", "url": "http://evil.example"}]), "not-granted")
refused("text", send("/v1/messages", "no object"), "invalid-request")
status, models = send("/v1/models", None, method="GET")
assert status == 200 and "exact-model" in models, models
# Nothing but the gateway is there: not the provider, not another port of the host, not the world.
host = int(open("port.txt").read())
for address in (("127.0.0.1", host), ("127.0.0.1", 22), ("1.1.1.1", 443), ("10.0.0.1", 80)):
    try:
        socket.create_connection(address, timeout=3)
        print("OUTCOME: FAIL reached", address); sys.exit(0)
    except OSError:
        pass
# No key: not in the environment, not in a file that can be read.
everything = " ".join(os.environ.values())
for folder in ("/proc/self", "/home", "/etc", "."):
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                path = os.path.join(root, name)
                if os.path.isfile(path) and os.path.getsize(path) < 1 << 20:
                    everything += open(path, errors="replace").read()
            except OSError:
                pass
if "sk-" + "7f3a9c51e2d84b06" in everything:
    print("OUTCOME: FAIL the key"); sys.exit(0)
assert ask("a good question")[0] == 200
print("OUTCOME: SUCCESS")
"#;
    let witness = TcpListener::bind("127.0.0.1:0").unwrap();
    witness.set_nonblocking(true).unwrap();
    let bench = bench("", program, &[Turn::text("fine").repeat()]);
    bench.write("port.txt", &witness.local_addr().unwrap().port().to_string());
    bench.run().ends(0);
    assert!(witness.accept().is_err(), "a program reached a port of the host");
    let asked = bench.requests();
    assert!(asked.len() == 1 && asked[0].contains("a good question"), "{asked:?}");
    bench.glovebox(&["show", "r", "build"]).ends(0).says("refused").says("another-model").says("runs at the provider");
    bench.has_no_key();
}

/// An answer that breaks off and cannot be used costs the same as a complete one, and counts as one turn of the stage.
#[test]
fn an_answer_that_counts_for_nothing_is_a_turn() {
    let program = r#"
for number in range(9):
    print(ask(f"question {number}")[0])
print("OUTCOME: SUCCESS")
"#;
    let bench = bench(", max_turns=3", program, &[Turn::text("cut").cut("body").repeat()]);
    bench.run().ends(5).says("limit `turns` (3) reached");
    assert_eq!(bench.requests().len(), 3);
}

/// A program is restarted from the beginning after a kill, so its answers are not stored for reuse. Only their cost is
/// recorded.
#[test]
fn no_answer_is_promised_to_a_program_that_was_killed() {
    let program = "ask('one')\nask('two')\nprint('OUTCOME: SUCCESS')\n";
    let turns = [Turn::text("1").usage(1000, 10), Turn::text("2").after(3000), Turn::text("3").repeat()];
    let bench = bench("", program, &turns);
    bench.kill_run_after(2);
    bench
        .glovebox(&["show", "r"])
        .ends(0)
        .says("held         not counted yet: 1000 sent")
        .never_says("without paying again");
    bench.resume().ends(0);
    assert_eq!(bench.requests().len(), 4, "both questions were asked again");
}

#[test]
fn what_it_writes_elsewhere_is_set_aside_and_hold_outs_are_not_there() {
    let program = r#"
assert ask("x")[0] == 200
assert not os.path.exists("scripts/scenarios"), os.listdir("scripts")
open("src/a.txt", "w").write("new\n")
open("README.md", "w").write("mine\n")
print("OUTCOME: SUCCESS")
"#;
    let bench = bench("", program, &[Turn::text("fine")]);
    bench.write("scripts/scenarios/one.sh", "exit 0 # the secret scenario of all\n");
    bench.write("scripts/keep.txt", "");
    bench.run().ends(6).says("guardrail_violation: wrote disallowed files: README.md");
    assert!(!bench.run_folder().join("workspace/README.md").exists());
}

#[test]
fn a_hold_out_in_a_request_of_a_program_ends_the_stage() {
    let secret = "the overdraft of account 4471 must be refused at 03:12";
    // The secret is written backwards, because text that the project contains anyway is not a secret.
    let backwards: String = secret.chars().rev().collect();
    let program =
        format!("status, text = ask({backwards:?}[::-1])\nprint('told', status)\nprint('OUTCOME: SUCCESS')\n");
    let bench = bench("", &program, &[Turn::text("fine").repeat()]);
    bench.write("scripts/scenarios/one.txt", &format!("{secret}\n"));
    bench.run().ends(6).says("holdout");
    assert!(bench.requests().is_empty(), "the provider never got it");
    // The secret is sent in pieces, each too short to be recognised.
    let program = format!(
        "text = {backwards:?}[::-1]\nparts = [{{'type': 'text', 'text': text[at:at + 12]}} for at in range(0, len(text), 12)]\n\
         print('told', ask(parts)[0])\nprint('OUTCOME: SUCCESS')\n"
    );
    let bench = self::bench("", &program, &[Turn::text("fine").repeat()]);
    bench.write("scripts/scenarios/one.txt", &format!("{secret}\n"));
    bench.run().ends(6).says("the prompt contains text of a hold-out");
    assert!(bench.requests().is_empty(), "the provider never got it");
}

#[test]
fn turns_and_budgets_bound_a_program() {
    let program = "for _ in range(9):\n    print(ask('x')[0])\nprint('OUTCOME: SUCCESS')\n";
    let turns = [Turn::text("fine").usage(100, 10).repeat()];
    let by_turns = bench(", max_turns=3", program, &turns);
    by_turns.run().ends(5).says("limit `turns` (3) reached");
    assert_eq!(by_turns.requests().len(), 3);
    let by_tokens = bench(", max_tokens=500", program, &turns);
    by_tokens.run().ends(5).says("exceeded `max_tokens` (500)");
    let asked = by_tokens.requests().len();
    assert!((1..=4).contains(&asked), "{asked}");
    let spent = by_tokens.show()["tokens"]["input"].as_u64().unwrap();
    assert!(spent <= 500, "{spent}");
}

#[test]
fn a_program_that_fails_or_hangs_says_why() {
    let failing = bench("", "print('oh', file=sys.stderr)\nsys.exit(3)\n", &[]);
    failing.run().ends(1).says("agent program failed: exit code 3: oh");
    let hanging = bench(", timeout=\"2s\"", "import time\ntime.sleep(600)\n", &[]);
    hanging.run().ends(5).says("limit `wall_ms`");
    // The tokens of requests before the timeout are counted, and the output names the program that was started.
    let slow = bench(", timeout=\"3s\"", "ask('x')\nimport time\ntime.sleep(600)\n", &[Turn::text("a").usage(100, 10)]);
    slow.run().ends(5).says("limit `wall_ms`").says("python3 tools/agent.py");
    assert_eq!(slow.show()["tokens"], json!({ "input": 100, "output": 10 }));
    // A request in a background thread, for whose answer the program does not wait, does not delay the end of the
    // stage.
    let hasty = "import threading, time\nthreading.Thread(target=ask, args=('x',), daemon=True).start()\ntime.sleep(1)\nprint('OUTCOME: SUCCESS')\nsys.stdout.flush()\nos._exit(0)\n";
    let begun = std::time::Instant::now();
    bench("", hasty, &[Turn::text("a").after(600_000)]).run().ends(0);
    assert!(begun.elapsed().as_secs() < 300, "{:?}", begun.elapsed());
    let missing = bench("", "", &[]);
    missing.write("pipeline.dot", &pipeline("").replace("python3 tools/agent.py", "no-such-agent --x"));
    missing
        .run()
        .ends(3)
        .says("configured exec executable not found: no-such-agent, which node")
        .never_says("run started");
    let silent = bench("", "print(ask('x')[0])\nprint('OUTCOME: FAIL the tests are red')\n", &[Turn::text("a")]);
    silent.run().ends(1).says("the tests are red");
}

#[test]
fn no_credit_pauses_and_another_models_answer_is_refused() {
    let program = "status, _ = ask('x')\nif status != 200: sys.exit(1)\nprint('OUTCOME: SUCCESS')\n";
    let poor = bench("", program, &[Turn::error("quota-exceeded"), Turn::text("fine")]);
    poor.run().ends(10).says("provider/quota-exceeded");
    poor.resume().ends(0);
    let other = bench("", program, &[Turn::text("fine").of("another-model")]);
    other.run().ends(6).says("provider/pin-violation");
    other.has_no_key();
}

/// After a kill, the attempt restarts its program from the beginning, because the program has no memory of its
/// requests. Tokens that were spent before the kill are still counted.
#[test]
fn a_killed_run_begins_its_program_anew_and_loses_no_cost() {
    let program = r#"
for _ in range(3):
    assert ask("x")[0] == 200
print("OUTCOME: SUCCESS")
"#;
    let fast = || Turn::text("fine").usage(100, 10);
    let turns = [fast(), fast().after(60_000), fast(), fast(), fast()];
    let bench = bench("", program, &turns);
    bench.kill_run_after(2);
    bench.resume().ends(0);
    assert_eq!(bench.requests().len(), 5);
    assert_eq!(bench.show()["tokens"], json!({ "input": 400, "output": 40 }), "one before the kill, three after it");
}

#[test]
fn a_script_answers_in_the_place_of_a_program() {
    let bench = bench("", "sys.exit(9)\n", &[]);
    bench.write("script.toml", "[[node.build.turn]]\ntext = \"OUTCOME: SUCCESS\"\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "s", "--simulate"]).ends(0).says("simulated");
}

#[test]
fn what_would_not_bind_a_program_is_refused() {
    let check = |more: &str, expected: &str| {
        let bench = bench(more, "", &[]);
        bench.run().ends(3).says(expected);
    };
    check(", allowed_commands=\"cargo test\"", "would not restrict its agent program");
    check(", tool_hooks.pre=\"true\"", "tool hooks do not see the calls");
    check(", codex.timeout_seconds=5", "only the agent program `codex` reads it");
    check(", codex.profile=\"x\"", "the jail does not contain the user's configuration of Codex");
    let of_codex = |more: &str, expected: &str| {
        let bench = bench("", "", &[]);
        let text =
            pipeline(more).replace("\"exec\"", "\"codex\"").replace("agent.command=\"python3 tools/agent.py\", ", "");
        bench.write("pipeline.dot", &text);
        bench.run().ends(3).says(expected);
    };
    of_codex("", "asks models of `openai`, but the provider of its model `it` is `anthropic`");
    of_codex(", codex.sandbox=\"read_only\"", "write `read-only`");
    of_codex(", codex.approval=\"on-request\"", "expected `never`");
    of_codex(", codex.config_overrides=\"a=1;;b\"", "expects `key=value`");
    of_codex(", agent.command=\"x\"", "set `agent.backend=\"exec\"`");
    let unknown = bench("", "", &[]);
    unknown.write("pipeline.dot", &pipeline("").replace("\"exec\"", "\"codx\""));
    unknown.run().ends(3).says("write `codex`");
    let tool = "digraph g { start; exit; t [shape=parallelogram, tool_command=\"true\", agent.backend=\"codex\"]; start -> t -> exit }";
    unknown.write("pipeline.dot", tool);
    unknown.run().ends(3).says("starts no agent");
}

#[test]
fn a_plan_shows_the_program_and_what_it_may_read_of_the_machine() {
    let bench = bench("", "", &[]);
    let toml = bench.project_text("glovebox.toml");
    bench.write("glovebox.toml", &format!("{toml}[agents.exec]\nread = [\"/usr/share/doc\"]\n"));
    let plan = bench.with_key(&["plan", "pipeline.dot"]);
    plan.ends(0).says("execute  *, exec").says("/usr/share/doc").says("reach    nothing");
    bench.with_key(&["plan", "pipeline.dot", "--deny", "run=*"]).ends(6);
    bench.write("glovebox.toml", &format!("{toml}[agents.vim]\n"));
    bench.with_key(&["plan", "pipeline.dot"]).ends(3).says("names no agent program");
}

/// A stand-in for Codex, in the workspace, that writes Codex's events (`codex.path`, decision codex-options).
#[test]
fn codex_is_started_with_its_options_and_its_events_are_read() {
    let codex = r#"#!/usr/bin/env python3
import json, os, sys, urllib.request
words = sys.argv[1:]
assert words[:2] == ["exec", "--json"] and "-" == words[-1], words
assert "--skip-git-repo-check" in words and "features.x=true" in words, words
assert os.environ["CODEX_HOME"].startswith("/home/") and os.access(os.environ["CODEX_HOME"], os.W_OK)
assert os.getcwd().endswith("/app"), os.getcwd()
assert not os.path.exists("../private"), "strict read scope"
provider = next(word for word in words if word.startswith("model_providers.glovebox="))
base = provider.split('base_url="')[1].split('"')[0]
def say(**event): print(json.dumps(event), flush=True)
say(type="thread.started", thread_id="t")
body = {"model": words[words.index("-m") + 1], "input": sys.stdin.read(), "stream": True, "store": False}
headers = {"authorization": "Bearer " + os.environ["MODEL_GATEWAY_TOKEN"], "content-type": "application/json"}
answer = urllib.request.urlopen(urllib.request.Request(base + "/responses", json.dumps(body).encode(), headers), timeout=20).read().decode()
assert "response.completed" in answer, answer
say(type="item.started", item={"id": "1", "type": "command_execution", "command": "touch main.go"})
open("main.go", "w").write("package main\n")
say(type="item.completed", item={"id": "2", "type": "agent_message", "text": "Done.\nOUTCOME: SUCCESS"})
say(type="turn.completed", usage={"input_tokens": 1})
"#;
    let text = "digraph ship {
  start [shape=Mdiamond]; exit [shape=Msquare]
  build [prompt=\"Do it\", agent.backend=\"codex\", codex.path=\".factory/bin/codex\", codex.workdir=\"app\", codex.add_dirs=\"docs\",
    codex.strict_read_scope=true, codex.skip_git_repo_check=true, codex.sandbox=\"workspace-write\", codex.approval=\"never\",
    codex.disable_mcp=true, codex.config_overrides=\"features.x=true\", codex.timeout_seconds=60, allowed_write_paths=\"app/\"]
  start -> build -> exit
}
";
    let bench = Bench::new(text, "openai", &[Turn::text("fine").usage(10, 5).repeat()]);
    for (path, text) in [(".factory/bin/codex", codex), ("app/keep", ""), ("docs/spec.md", "x"), ("private/x", "y")] {
        bench.write(path, text);
    }
    bench.make_program(".factory/bin/codex");
    bench.run().ends(0);
    assert_eq!(bench.read_in_run("workspace/app/main.go"), "package main\n");
    assert!(bench.read_in_run("build/program.stdout.log").contains("command_execution"));
    assert_eq!(bench.show()["tokens"], json!({ "input": 10, "output": 5 }));
    let read_only = text.replace("workspace-write", "read-only");
    bench.write("pipeline.dot", &read_only);
    bench.with_key(&["run", "pipeline.dot", "--run-id", "o"]).ends(6).says("wrote disallowed files: app/main.go");
    assert!(!KEY.is_empty());
}

/// Creates an agent program as npm installs it. Only the `package.json` of its package states the version.
fn installed(version: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let package = place.path().join("node_modules/@anthropic-ai/claude-code");
    std::fs::create_dir_all(package.join("bin")).unwrap();
    let text = json!({ "name": "@anthropic-ai/claude-code", "version": version }).to_string();
    std::fs::write(package.join("package.json"), text).unwrap();
    std::fs::write(package.join("bin/claude"), "#!/bin/sh\nexit 3\n").unwrap();
    std::os::unix::fs::symlink(package.join("bin/claude"), place.path().join("claude")).unwrap();
    place
}

#[test]
fn a_version_that_nobody_drove_is_said_before_the_first_stage() {
    let told = |version: &str| {
        let (bench, place) = (bench("", "", &[]), installed(version));
        bench.write(
            "pipeline.dot",
            &pipeline("").replace("\"exec\", agent.command=\"python3 tools/agent.py\"", "\"claude\""),
        );
        let table = format!("\n[agents.claude]\npath = {:?}\n", place.path().join("claude"));
        bench.write("glovebox.toml", &(bench.project_text("glovebox.toml") + &table));
        bench.run().stderr
    };
    let warning = |version: &str| format!("`claude` is version {version}, and 2.1.197 was tested");
    for version in ["2.1.196", "1.0.0", "3.0.0"] {
        let stderr = told(version);
        let (at, begun) = (stderr.find(&warning(version)), stderr.find("run started"));
        assert!(at.is_some() && at < begun, "{stderr}");
        assert!(stderr.contains("npm install -g @anthropic-ai/claude-code@2.1.197"), "{stderr}");
    }
    for version in ["2.1.197", "2.1.200", "2.4.0", "unknown"] {
        let stderr = told(version);
        assert!(stderr.contains("run started") && !stderr.contains("was tested"), "{stderr}");
    }
}

/// The versions on the page, in `programs.rs` and in `xtask/src/agents.rs` are the same.
#[test]
fn the_driven_versions_are_those_of_the_page_and_of_the_driver() {
    let read = |path: &str| std::fs::read_to_string(workbench::root().join(path)).unwrap();
    let (page, driver) = (read("docs/agents.md"), read("xtask/src/agents.rs"));
    let table = read("runtime/host/src/attempt/agents/programs.rs");
    let rows: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ")).collect();
    let driven = rows.iter().filter(|(package, _)| driver.contains(&format!("package: \"{package}\"")));
    let mut count = 0;
    for (package, rest) in driven {
        let version = rest.split(' ').next().unwrap();
        assert!(driver.contains(&format!("package: \"{package}\",\n        version: \"{version}\"")), "{package}");
        assert!(table.contains(&format!("(\"{package}\", \"{version}\")")), "{package}");
        count += 1;
    }
    assert_eq!(count, 4);
}
