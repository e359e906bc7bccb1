//! The templates of the pipeline guide of dark-factory and its wrapper example, with and without a folder of scenarios:
//! both runs end with the same files. Only a stage that names the hold-outs has them.

use crate::providers::{Bench, Turn};
use crate::workbench::{Answer, Workbench, is_on_this_machine, not_run};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const SCENARIO: &str = "scripts/scenarios/check.sh";
/// A line that no stage can guess.
const SECRET: &str = "forty-two apples in a wicker basket";
/// A stand-in for `go`. It builds `main.go` only if the file contains `func main`.
const GO: &str = "#!/bin/sh\ncd \"${2:-.}\" && grep -q 'func main' main.go || { echo 'main.go:1: undefined: man' >&2; exit 1; }\n\
                  cp main.go app\n";

const MINIMAL: &str = r#"digraph G {
  start [shape=Mdiamond];
  work  [shape=box, prompt="Do the work.\n"];
  exit  [shape=Msquare];

  start -> work;
  work -> exit;
}
"#;

const BUILD_LOOP: &str = r#"digraph BuildLoop {
  start [shape=Mdiamond];
  exit  [shape=Msquare];

  generate [shape=box, allowed_write_paths="main.go,go.mod", prompt="Create code.\n"];
  test     [shape=parallelogram, tool_command="go build ."];
  fix      [shape=box, allowed_write_paths="main.go,go.mod", prompt="Fix build failures.\n"];

  start -> generate -> test;
  test -> exit [condition="outcome=success"];
  test -> fix  [condition="outcome=fail"];
  fix -> test;
}
"#;

const CODEX: &str = r#"digraph Codex {
  start [shape=Mdiamond]; exit [shape=Msquare];
generate [
  shape=box,
  agent.backend="codex",
  codex.sandbox="workspace-write",
  codex.approval="never",
  codex.skip_git_repo_check=true,
  allowed_write_paths="main.go,go.mod",
  prompt="Create a minimal Go CLI.\n"
];
  start -> generate -> exit;
}
"#;

const VERIFY_PLAN: &str = r#"digraph VerifyPlanFlow {
  start [shape=Mdiamond];
  generate [shape=box, prompt="Implement feature and return verification_plan.\n"];
  verify [shape=parallelogram, type=verification, "verification.allowed_commands"="test -f,go test,go build"];
  exit [shape=Msquare];

  start -> generate -> verify;
  verify -> exit [condition="outcome=success"];
}
"#;

const WRAPPER: &str = r#"digraph Wrapper {
  start [shape=Mdiamond]; exit [shape=Msquare];
ensure_codex_wrapper [
  shape=parallelogram,
  type=tool,
  allowed_write_paths=".factory/bin/",
  tool_command="mkdir -p .factory/bin && cp scripts/codex-wrapper.sh .factory/bin/codex && chmod +x .factory/bin/codex"
];

implement [
  shape=box,
  agent.backend="codex",
  codex.path=".factory/bin/codex",
  codex.disable_mcp=true,
  codex.workdir="agent",
  codex.add_dirs="examples/specs",
  codex.strict_read_scope=true,
  allowed_write_paths="agent/",
  prompt="Read ../examples/specs/my_spec.md.\nUse GOCACHE=\"$PWD/.gocache\" for go commands.\n"
];
  start -> ensure_codex_wrapper -> implement -> exit;
}
"#;

/// The guide's step "add a scenario lint gate before runtime validators", with a build stage whose files are committed.
const LINT_GATE: &str = r#"digraph Gate {
  start [shape=Mdiamond]; exit [shape=Msquare];
  generate [shape=box, allowed_write_paths="main.go", prompt="Create code.\n"];
  build [shape=parallelogram, allowed_write_paths="app", tool_command="go build ."];
  lint [shape=parallelogram, allowed_write_paths="", tool_command="sh scripts/scenarios/check.sh"];
  start -> generate -> build -> lint;
  lint -> exit [condition="outcome=success"];
}
"#;

/// Returns the text of each file in a folder, by path.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() && !entry.is_symlink() {
                true => open.push(entry),
                false => {
                    let name = entry.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                    found.insert(name, std::fs::read_to_string(&entry).unwrap_or_default());
                }
            }
        }
    }
    found
}

/// Returns two turns of a node: one writes a file, and one ends the visit with this text.
fn writes(node: &str, (path, content): (&str, &str), last: &str) -> String {
    let call = format!("{{ name = \"write_file\", arguments = {{ path = \"{path}\", content = '''{content}''' }} }}");
    format!("[[node.{node}]]\ntool = [{call}]\n[[node.{node}]]\ntext = '''{last}'''\n")
}

/// Creates a project with or without scenarios, and a stand-in for Go outside of the project.
fn bench(pipeline: &str, script: &str, has_scenarios: bool) -> Workbench {
    let bench = Workbench::with_pipeline(pipeline);
    if has_scenarios {
        bench.write(SCENARIO, &format!("# {SECRET}\ntest -f main.go\n"));
    }
    let tools = bench.outside().join("bin");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("go"), GO).unwrap();
    std::fs::set_permissions(tools.join("go"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let folder = tools.canonicalize().unwrap();
    bench.write("glovebox.toml", &format!("[exec]\npath = [\"{}\"]\n", folder.display()));
    std::fs::write(bench.outside().join("script.toml"), script).unwrap();
    bench
}

fn run(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"])
}

/// Runs the pipeline without and with scenarios. Checks that both runs leave the same files in the workspace, including
/// the expected ones.
fn same(pipeline: &str, script: &str, expected: &[&str]) -> Workbench {
    let [without, with] = [false, true].map(|has_scenarios| {
        let bench = bench(pipeline, script, has_scenarios);
        run(&bench).ends(0).never_says("quarantined").never_says("hold-outs in reach");
        bench
    });
    let [left, right] = [&without, &with].map(|bench| {
        let mut found = files(&bench.run_folder("r").join("workspace"));
        // This file differs, because it names a folder of this machine.
        found.remove("glovebox.toml");
        found
    });
    assert_eq!(left, right);
    for path in expected {
        assert!(left.contains_key(*path), "{path} in {:?}", left.keys());
    }
    with
}

#[test]
fn the_minimal_pipeline_leaves_the_same_files() {
    same(MINIMAL, &writes("work", ("notes/a.md", "done"), "done"), &["notes/a.md"]);
}

#[test]
fn the_loop_leaves_the_same_files_and_its_fixer_gets_the_whole_failure() {
    let script = writes("generate", ("main.go", "func man"), "done") + &writes("fix", ("main.go", "func main"), "done");
    let bench = same(BUILD_LOOP, &script, &["main.go", "app"]);
    let prompt = bench.run_text("r", "artifacts/fix.1.1/prompt.md");
    assert!(prompt.contains("undefined: man") && !prompt.contains("withheld"), "{prompt}");
}

#[test]
fn the_agent_program_and_the_plan_leave_the_same_files() {
    same(CODEX, &writes("generate", ("main.go", "func main"), "done"), &["main.go"]);
    let plan = r#"{"verification_plan": {"files": ["main.go"], "commands": ["test -f main.go", "go build ."]}}"#;
    let last = format!("```json\n{plan}\n```");
    same(VERIFY_PLAN, &writes("generate", ("main.go", "func main"), &last), &["main.go", "app"]);
}

#[test]
fn the_wrapper_example_works_with_and_without_scenarios() {
    if !is_on_this_machine("python3") {
        return not_run("the wrapper example", "no `python3`");
    }
    let wrapper = r#"#!/usr/bin/env python3
import json, os, sys, urllib.request
words = sys.argv[1:]
base = next(word for word in words if word.startswith("model_providers.glovebox=")).split('base_url="')[1].split('"')[0]
body = {"model": words[words.index("-m") + 1], "input": sys.stdin.read(), "stream": True, "store": False}
headers = {"authorization": "Bearer " + os.environ["MODEL_GATEWAY_TOKEN"], "content-type": "application/json"}
urllib.request.urlopen(urllib.request.Request(base + "/responses", json.dumps(body).encode(), headers), timeout=20).read()
assert not os.path.exists("../scripts/scenarios")
open("main.go", "w").write(open("../examples/specs/my_spec.md").read())
print(json.dumps({"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "Done.\nOUTCOME: SUCCESS"}}))
print(json.dumps({"type": "turn.completed", "usage": {"input_tokens": 1}}))
"#;
    let [without, with] = [false, true].map(|has_scenarios| {
        let bench = Bench::new(WRAPPER, "openai", &[Turn::text("fine").usage(10, 5).repeat()]);
        bench.write("scripts/codex-wrapper.sh", wrapper);
        bench.write("agent/README.md", "");
        bench.write("examples/specs/my_spec.md", "a command line");
        if has_scenarios {
            bench.write(SCENARIO, &format!("# {SECRET}\n"));
        }
        bench.run().ends(0);
        let found = [".factory/bin/codex", "agent/main.go"].map(|path| bench.read_in_run(&format!("workspace/{path}")));
        (found, bench.glovebox(&["show", "r"]).stdout.contains("quarantined"))
    });
    assert_eq!(without, with);
    assert_eq!(with.0, [wrapper, "a command line"]);
}

#[test]
fn a_gate_over_scenarios_hides_its_own_answer_alone() {
    let bench = bench(LINT_GATE, &writes("generate", ("main.go", "func main"), "done"), true);
    bench.glovebox(&["check", "pipeline.dot"]).ends(0).never_says("holdout_writes_dropped");
    let plan = bench.glovebox(&["plan", "pipeline.dot"]);
    plan.ends(0).says("lint reads scripts/scenarios/ (`tool_command` of the node); builders learn only its verdict");
    plan.says("for every other stage the hold-outs do not exist");
    run(&bench).ends(0);
    assert!(files(&bench.run_folder("r").join("workspace")).contains_key("app"), "the build keeps its file");
    assert!(!bench.run_folder("r").join("artifacts/build.1.1/withheld.json").exists());
    assert!(bench.run_folder("r").join("artifacts/lint.1.1/withheld.json").exists());
}

/// Creates a pipeline with a verification stage behind an agent whose plan contains the scenario.
fn planned(attributes: &str) -> Workbench {
    let pipeline = format!(
        "digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]\n generate [prompt=\"Implement it.\"]\n \
         verify [shape=parallelogram, type=verification, {attributes}]\n start -> generate -> verify\n \
         verify -> exit [condition=\"outcome=success\"] }}\n"
    );
    let plan = format!("{{\"verification_plan\": {{\"commands\": [\"sh {SCENARIO}\"]}}}}");
    bench(&pipeline, &writes("generate", ("main.go", "x"), &format!("```json\n{plan}\n```")), true)
}

#[test]
fn a_plan_reaches_the_scenario_that_its_allow_list_names() {
    let bench = planned(&format!("allowed_write_paths=\"\", verification.allowed_commands=\"sh {SCENARIO},test -f\""));
    bench.glovebox(&["plan", "pipeline.dot"]).says("verify reads scripts/scenarios/ (`verification.allowed_commands`");
    run(&bench).ends(0).says(&format!("verify: sh {SCENARIO} exit 0"));
    let bench = planned("allowed_write_paths=\"\", verification.allowed_commands=\"sh\"");
    bench.glovebox(&["plan", "pipeline.dot"]).says("no stage names the hold-outs").says("`holdouts=true`");
    let answer = run(&bench);
    assert_ne!(answer.code, 0, "a list without the scenario does not give it");
    answer.says("`verify` has no hold-outs").says("add `holdouts=true` to the node");
}

#[test]
fn a_contract_that_names_a_scenario_gives_it_to_the_plans_stage() {
    let more = "allowed_write_paths=\"out/\", verification.allowed_commands=\"test -f\"";
    let bench = planned(more);
    let last = "```json\n{\"verification_plan\": {\"commands\": [\"test -f main.go\"]}}\n```";
    std::fs::write(bench.outside().join("script.toml"), writes("generate", ("main.go", "x"), last)).unwrap();
    bench.write("glovebox.toml", "[verify]\n");
    bench.write(".opentiger/verify.contract.json", &format!("{{\"commands\":[\"sh {SCENARIO}\"]}}"));
    bench.glovebox(&["plan", "pipeline.dot"]).says("verify reads scripts/scenarios/ (its verify contract)");
    bench.glovebox(&["check", "pipeline.dot"]).says("because its verify contract lets it read the hold-outs");
    run(&bench).ends(0).says(&format!("verify: sh {SCENARIO} exit 0"));
}

/// Creates a pipeline with one tool stage.
fn tool(attributes: &str) -> Workbench {
    let pipeline = format!(
        "digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]\n judge [shape=parallelogram, {attributes}]\n \
         start -> judge\n judge -> exit [condition=\"outcome=success\"] }}\n"
    );
    let bench = bench(&pipeline, "", true);
    bench.write("main.go", "func main");
    bench.write("scripts/verify.sh", &format!("sh {SCENARIO}\n"));
    bench
}

#[test]
fn a_scenario_behind_a_script_fails_by_absence_and_the_help_names_the_attribute() {
    let hidden = "tool_command=\"sh scripts/verify.sh\", allowed_write_paths=\"\"";
    let blind = tool(hidden);
    blind
        .glovebox(&["check", "pipeline.dot"])
        .says("no stage can read the hold-outs in `scripts/scenarios/`, so they test nothing");
    run(&blind).ends(1).says("`judge` has no hold-outs, because it names none").says("add `holdouts=true` to the node");
    blind.glovebox(&["show", "r", "judge"]).says("add `holdouts=true` to the node");
    let shown = blind.glovebox(&["show", "r", "--json"]).json();
    assert_eq!(shown["misses_holdouts"], serde_json::json!(["judge"]));
    let bench = tool(&format!("{hidden}, holdouts=true"));
    bench.glovebox(&["check", "pipeline.dot"]).ends(0).never_says("in reach");
    run(&bench).ends(0).says("verified (subject not isolated) judge").never_says("add `holdouts=true`");
    let said = tool(&format!("{hidden}, holdouts=false"));
    run(&said).ends(1).never_says("has no hold-outs, because it names none");
}

#[test]
fn a_failure_beside_a_judge_is_not_blamed_on_hold_outs() {
    let bench = bench(
        "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]\n unit [shape=parallelogram, tool_command=\"echo one failed; false\"]\n \
         judge [shape=parallelogram, tool_command=\"sh scripts/scenarios/check.sh\"]\n start -> unit\n \
         unit -> judge [condition=\"outcome=success\"]; judge -> exit }\n",
        "",
        true,
    );
    run(&bench).ends(1).never_says("holdouts=true");
}

#[test]
fn each_write_that_is_dropped_is_named_with_what_would_keep_it() {
    let mut command = format!("sh {SCENARIO}");
    for name in ["a", "b", "c"] {
        write!(command, " && echo {name} > out/{name}").unwrap();
    }
    let of = |more: &str| {
        let bench = tool(&format!("allowed_write_paths=\"out/\", tool_command=\"mkdir -p out && {command}\", {more}"));
        let checked = bench.glovebox(&["check", "pipeline.dot"]);
        let answer = run(&bench);
        (checked, answer, files(&bench.run_folder("r").join("workspace")).contains_key("out/a"))
    };
    let (checked, answer, is_kept) = of("label=l");
    checked.says("the writes of `judge` in `out/` are discarded, because `tool_command` lets it read the hold-outs");
    checked.says("scenario_writes=\"commit\"").says("allowed_write_paths=\"\"");
    answer.ends(0).says("out/a, out/b, out/c (dropped: the stage had hold-outs in reach");
    answer.says(
        "to keep them, set `scenario_writes=\"commit\"`; to let the stage write none, set `allowed_write_paths=\"\"`",
    );
    assert!(!is_kept);
    let (checked, answer, is_kept) = of("scenario_writes=commit");
    checked.never_says("are discarded");
    answer.ends(0).never_says("dropped:");
    assert!(is_kept);
}
