//! An agent program follows the settings of its stage. Settings files of the project and the program's own sandbox do
//! not override them.

use crate::providers::stand_in::{PRELUDE, bench, pipeline};
use crate::providers::{Bench, Turn};
use serde_json::json;

#[test]
fn what_a_project_sets_for_agent_programs_is_not_there() {
    let settings = [
        ".claude/settings.json",
        ".claude/agents/a.md",
        ".mcp.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".opencode/plugin/x.js",
        "opencode.json",
    ];
    let program = r#"
found = [name for name in json.load(open("names.json")) if os.path.lexists(name)]
assert not found, found
assert os.path.exists("CLAUDE.md") and os.path.exists("AGENTS.md")
assert ask("x")[0] == 200
os.makedirs(".claude", exist_ok=True)
open(".claude/settings.json", "w").write("{}")
print("OUTCOME: SUCCESS")
"#;
    let bench = bench("", program, &[Turn::text("fine").repeat()]);
    for name in settings {
        bench.write(name, "{}");
        bench.write(&format!("app/{name}"), "{}");
    }
    let in_app = program.replace("open(\"names.json\")", "open(\"../names.json\")");
    let in_app = in_app.replace("lexists(name)]", "lexists(name) or os.path.lexists(\"../\" + name)]");
    let in_app = in_app.replace("exists(\"", "exists(\"../").split("os.makedirs").next().unwrap().to_owned();
    bench.write("app/agent.py", &format!("{PRELUDE}{in_app}print('OUTCOME: SUCCESS')\n"));
    bench.write("names.json", &json!(settings).to_string());
    bench.write("CLAUDE.md", "");
    bench.write("AGENTS.md", "");
    bench.run().ends(6).says("wrote disallowed files: .claude/settings.json");
    bench.write("pipeline.dot", &pipeline(", codex.workdir=\"app\"").replace("tools/agent.py", "agent.py"));
    bench.with_key(&["run", "pipeline.dot", "--run-id", "app"]).ends(0);
}

#[test]
fn a_commit_of_a_program_ends_with_the_stage_and_its_files_stay() {
    let program = r#"
import subprocess
task = sys.stdin.read()
assert "Commits, stashes and branches are dropped" in task, task
assert ask("x")[0] == 200
open("src/a.txt", "w").write("new\n")
sys.exit(subprocess.run("git add -A && git commit -qm done && git log --format=%s", shell=True).returncode)
"#;
    let bench = bench("", program, &[Turn::text("fine").repeat()]);
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let done =
            std::process::Command::new("git").current_dir(bench.project_folder()).args(identity).args(words).status();
        assert!(done.unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "one"]);
    bench.run().ends(0);
    assert_eq!(bench.read_in_run("workspace/src/a.txt"), "new\n");
    let log =
        std::process::Command::new("git").current_dir(bench.project_folder()).args(["log", "--format=%s"]).output();
    assert_eq!(String::from_utf8(log.unwrap().stdout).unwrap(), "one\n");
}

/// A program whose own sandbox refused every command has done no work, so its stage fails.
#[test]
fn a_program_that_could_run_nothing_is_no_success() {
    let codex = r#"#!/usr/bin/env python3
import json, os, sys
def say(**event): print(json.dumps(event), flush=True)
say(type="item.completed", item={"id": "1", "type": "command_execution", "command": "ls", "status": "failed",
    "aggregated_output": "sandbox failed to initialize: Failed to create bridge sockets", "exit_code": 1})
if os.path.exists("one-works"):
    say(type="item.completed", item={"id": "2", "type": "command_execution", "command": "ls", "status": "completed", "aggregated_output": ""})
say(type="item.completed", item={"id": "3", "type": "agent_message", "text": "All done.\nOUTCOME: SUCCESS"})
"#;
    let text = "digraph ship {
  start [shape=Mdiamond]; exit [shape=Msquare]
  build [prompt=\"Do it\", agent.backend=\"codex\", codex.path=\"bin/codex\", allowed_write_paths=\"src/\"]
  start -> build -> exit
}
";
    let bench = Bench::new(text, "openai", &[Turn::text("fine").repeat()]);
    bench.write("bin/codex", codex);
    bench.make_program("bin/codex");
    bench.run().ends(1).says("agent/blocked").says("codex could run none of its tools: sandbox failed to initialize");
    bench.write("one-works", "");
    bench.with_key(&["run", "pipeline.dot", "--run-id", "works"]).ends(0);
}
