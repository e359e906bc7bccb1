//! The specification's definition of done (§11): every item has a row in `docs/conformance.md`, and every row names
//! tests that exist.
//!
//! This file also has tests for items that no other suite tests with the real binary: findings, shapes, handlers,
//! conditions, delays between attempts, and fan-ins.

use crate::case::Fact::{Holds, Is};
use crate::case::{Case, PLAIN, check_all};
use crate::guests;
use crate::workbench::{Workbench, root};
use serde_json::Value;
use std::fs;

/// The sections, each with its number of items or of table rows.
const SECTIONS: [(&str, usize); 13] = [
    ("11.1", 10),
    ("11.2", 10),
    ("11.3", 8),
    ("11.4", 4),
    ("11.5", 5),
    ("11.6", 9),
    ("11.7", 6),
    ("11.8", 6),
    ("11.9", 7),
    ("11.10", 6),
    ("11.11", 5),
    ("11.12", 22),
    ("11.13", 6),
];

/// Returns the rows of a section of the page: each requirement, and the tests or the reason that it is open.
fn rows<'p>(page: &'p str, section: &str) -> Vec<(&'p str, &'p str)> {
    let begin = page.find(&format!("\n## §{section} ")).unwrap_or_else(|| panic!("no section {section}"));
    let body = &page[begin + 4..];
    let body = &body[..body.find("\n## ").unwrap_or(body.len())];
    let table = body.lines().filter(|line| line.starts_with("| ")).skip(1);
    table.map(|line| line.trim_matches('|').split_once(" | ").unwrap_or_else(|| panic!("{line}"))).collect()
}

/// Returns true if the suite of `suite::name` contains that test and is part of the build.
fn exists(test: &str) -> bool {
    let Some((suite, name)) = test.split_once("::") else { return false };
    let module = |file: &str| format!("mod {file};");
    let (path, builder, line) = match suite.split_once('/') {
        Some(("check", file)) => {
            (format!("runtime/pipeline/tests/check/{file}.rs"), "runtime/pipeline/tests/check/main.rs", module(file))
        }
        Some(("decide", file)) => {
            (format!("runtime/state/src/decide/tests/{file}.rs"), "runtime/state/src/decide/tests.rs", module(file))
        }
        Some(("init", file)) => (format!("tests/init/{file}.rs"), "tests/init.rs", module(file)),
        _ => (format!("tests/{suite}.rs"), "tests/main.rs", module(suite)),
    };
    let text = |path: &str| fs::read_to_string(root().join(path)).unwrap_or_default();
    text(builder).lines().any(|found| found == line) && text(&path).contains(&format!("#[test]\nfn {name}("))
}

#[test]
fn every_box_is_shown_by_a_test_or_named_as_open() {
    let page = fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    let mut open = 0;
    for (section, count) in SECTIONS {
        let rows = rows(&page, section);
        assert_eq!(rows.len(), count, "§{section} has {count} boxes");
        for (required, shown) in rows {
            let tests: Vec<&str> = shown.split('`').skip(1).step_by(2).filter(|text| text.contains("::")).collect();
            let missing: Vec<&&str> = tests.iter().filter(|test| !exists(test)).collect();
            assert!(missing.is_empty(), "§{section} {required}: no test {missing:?}");
            let reason = shown.trim().strip_prefix("**open**: ").filter(|reason| reason.len() > 20);
            assert!(!tests.is_empty() || reason.is_some(), "§{section} {required}: neither a test nor a reason");
            open += usize::from(reason.is_some());
        }
    }
    assert!(page.contains(&format!("{open} open")), "the page says how many are open: {open}");
}

/// Every row has a test, a behaviour of `doctor --ordinary`, or a reason why it is open.
#[test]
fn every_reported_situation_is_shown_by_a_test_or_named_as_open() {
    check_rows("Reported situations", 30);
    check_rows("Liveness, cancellation and ends", 15);
}

fn check_rows(title: &str, rows_min: usize) {
    let page = fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    let body = page.split(&format!("\n## {title}\n")).nth(1).unwrap().split("\n## ").next().unwrap();
    let table = body.lines().filter(|line| line.starts_with("| ")).skip(1);
    let rows: Vec<_> = table.map(|line| line.trim_matches('|').split_once(" | ").unwrap()).collect();
    assert!(rows.len() > rows_min, "{} rows", rows.len());
    for (situation, shown) in rows {
        let is_behaviour = |test: &str| {
            let behaviour = test.strip_prefix("ordinary/");
            behaviour.is_some_and(|name| root().join(format!("tests/ordinary/behaviours/{name}.sh")).is_file())
        };
        let tests = shown.split('`').skip(1).step_by(2);
        let tests: Vec<&str> = tests.filter(|text| text.contains("::") || text.starts_with("ordinary/")).collect();
        let missing: Vec<&&str> = tests.iter().filter(|test| !exists(test) && !is_behaviour(test)).collect();
        let reason = shown.trim().strip_prefix("**open**: ").filter(|reason| reason.len() > 20);
        assert!(reason.is_some() || missing.is_empty(), "{situation}: no test {missing:?}");
        assert!(reason.is_some() || !tests.is_empty(), "{situation}: neither a test nor a reason");
    }
}

#[test]
fn a_finding_has_rule_severity_place_and_message() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; a; b [prompt=x, allowed_write_paths=\"\"]\n\
         start -> a -> b -> done; b -> a [condition=\"outcome ~ fail\"]; lost [prompt=x, allowed_write_paths=\"\"] }",
    );
    let said = bench.glovebox(&["check", "pipeline.dot", "--format", "json"]);
    let found = said.ends(3).json();
    let found = found.as_array().unwrap();
    let has = |rule: &str, severity: &str, node: Option<&str>| {
        let is_it = |one: &Value| one["rule"] == rule && one["severity"] == severity && one["node"].as_str() == node;
        assert!(found.iter().any(is_it), "no {severity} {rule} at {node:?}: {found:?}");
    };
    has("prompt_on_llm_nodes", "warning", Some("a"));
    has("orphan_node", "warning", Some("lost"));
    has("reachability", "error", Some("lost"));
    has("condition_syntax", "error", None);
    for one in found {
        let is_said =
            ["rule", "severity", "message"].iter().all(|key| one[key].as_str().is_some_and(|text| !text.is_empty()));
        assert!(is_said && one["line"].is_u64(), "{one}");
    }
    // Errors stop a run before it starts. A warning does not.
    bench.glovebox(&["run", "pipeline.dot", "--simulate"]).ends(3);
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; a [allowed_write_paths=\"\"]; start -> a -> done }",
    );
    bench.glovebox(&["check", "pipeline.dot"]).ends(0).says("neither `prompt` nor `label`");
    bench.glovebox(&["run", "pipeline.dot", "--simulate"]).ends(0);
}

#[test]
fn each_shape_runs_its_handler() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  begin [shape=Mdiamond]; finish [shape=Msquare]\n  agent [shape=box, prompt=x, allowed_write_paths=\"\"]\n\
         \x20 way [shape=diamond]\n  tool [shape=parallelogram, tool_command=true, allowed_write_paths=\"\"]\n\
         \x20 test [shape=octagon, command=true, allowed_write_paths=\"\"]\n  gate [shape=hexagon]\n  fork [shape=component]\n\
         \x20 l [shape=parallelogram, tool_command=true, allowed_write_paths=\"\"]\n  r [prompt=x, allowed_write_paths=\"\"]\n\
         \x20 join [shape=tripleoctagon]\n  begin -> agent -> way -> tool -> test -> gate\n  gate -> fork [label=\"[Y] Yes\"]\n\
         \x20 gate -> finish [label=\"[N] No\"]\n  fork -> l -> join; fork -> r -> join; join -> finish\n}\n",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--simulate", "--auto-approve"]).ends(0);
    let lines = bench.run_text("r", "progress.ndjson");
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone()).collect();
    let of = |kind: &str| events.iter().filter(move |event| event["kind"] == kind).collect::<Vec<_>>();
    let mut handlers: Vec<String> = of("stage.finished")
        .iter()
        .map(|event| format!("{} {}", event["node"], event["handler"]).replace('"', ""))
        .collect();
    handlers.sort();
    assert_eq!(handlers, ["agent codergen", "l tool", "r codergen", "test verify", "tool tool"]);
    // Nodes that the engine executes itself have events of their own.
    for kind in ["question.answered", "parallel.joined", "fan_in.finished"] {
        assert!(!of(kind).is_empty(), "{kind}");
    }
    let passed: Vec<&str> = of("stage.passed").iter().filter_map(|event| event["node"].as_str()).collect();
    assert!(passed.contains(&"begin") && passed.contains(&"way"), "{passed:?}");
    let graph = bench.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).json().to_string();
    for handler in ["start", "exit", "conditional", "wait.human", "parallel", "parallel.fan_in"] {
        assert!(graph.contains(&format!("\"handler\":\"{handler}\"")), "{handler}: {graph}");
    }
}

/// A case with the stage `A`, from which an edge leads to `yes` if the condition holds, and another one to `no`.
const fn routed(name: &'static str, graph: &'static str, visited: &'static str) -> Case {
    Case { name, graph, visited, ..PLAIN }
}

#[test]
fn conditions_compare_outcome_label_and_context() {
    check_all(&[
        routed(
            "= compares for equality",
            "node [prompt=x]; A; yes; no; start -> A; A -> yes [condition=\"outcome=success\"]; A -> no; yes -> done; no -> done",
            "A yes",
        ),
        routed(
            "!= for inequality",
            "node [prompt=x]; A; yes; no; start -> A; A -> yes [condition=\"outcome!=fail\"]; A -> no; yes -> done; no -> done",
            "A yes",
        ),
        routed(
            "&& needs every clause: all hold",
            "node [prompt=x]; A; yes; no; start -> A; A -> yes [condition=\"outcome=success && outcome!=fail && context.last_stage=A\"]; A -> no; yes -> done; no -> done",
            "A yes",
        ),
        routed(
            "&& needs every clause: one does not hold",
            "node [prompt=x]; A; yes; no; start -> A; A -> yes [condition=\"outcome=success && context.last_stage=B\"]; A -> no; yes -> done; no -> done",
            "A no",
        ),
        routed(
            "preferred_label is the outcome's",
            "node [prompt=x]; A [test.preferred_next_label=Ship]; yes; no; start -> A; A -> yes [condition=\"preferred_label=Ship\"]; A -> no; yes -> done; no -> done",
            "A yes",
        ),
        routed(
            "a missing context key is the empty text",
            "node [prompt=x]; A; yes; no; start -> A; A -> yes [condition=\"context.absent!=1 && context.absent=\\\"\\\"\"]; A -> no; yes -> done; no -> done",
            "A yes",
        ),
        routed(
            "an empty condition always holds",
            "node [prompt=x]; A; yes; no; start -> A; A -> yes [condition=\"\", weight=2]; A -> no [weight=1]; yes -> done; no -> done",
            "A yes",
        ),
        routed(
            "comparison is exact",
            "node [prompt=x]; A; yes; no; start -> A; A -> yes [condition=\"context.last_stage=a\"]; A -> no; yes -> done; no -> done",
            "A no",
        ),
    ]);
}

/// Returns the time and the event of each record of a run.
fn records(bench: &Workbench) -> Vec<(String, Value)> {
    let lines = bench.run_text("r", "progress.ndjson");
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|mut record| (record["at"].as_str().unwrap().to_owned(), record["event"].take())).collect()
}

/// Runs a stage that asks for a retry until its attempts are used up. Returns the delays in milliseconds, and checks
/// that each attempt began after its delay.
fn delays(settings: &str) -> Vec<u64> {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]; A [prompt=x, allowed_write_paths=\"\", {settings}, \
         test.outcome=retry]; start -> A -> done }}"
    ));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--simulate"]).ends(9);
    let (mut due, mut delays) = (None::<String>, Vec::new());
    for (at, event) in records(&bench) {
        match event["kind"].as_str().unwrap() {
            "stage.retrying" => {
                delays.push(event["delay_ms"].as_u64().unwrap());
                due = event["due_at"].as_str().map(str::to_owned);
            }
            // Times of equal length sort as text.
            "stage.started" => {
                assert!(due.take().is_none_or(|due| due <= at), "{settings}: started at {at}, too early")
            }
            _ => {}
        }
    }
    assert_eq!(due, None, "{settings}: a delay without an attempt after it");
    delays
}

#[test]
fn delays_between_attempts_are_constant_or_grow_and_have_jitter() {
    // Columns: attributes, delays before jitter. Some rows allow fewer attempts so that the test does not take long.
    const PRESETS: [(&str, &[u64]); 5] = [
        ("retry_policy=none", &[]),
        ("retry_policy=linear", &[500, 500]),
        ("retry_policy=standard", &[200, 400, 800, 1_600]),
        ("retry_policy=aggressive, max_retries=2", &[500, 1_000]),
        ("retry_policy=patient, max_retries=1", &[2_000]),
    ];
    let found = PRESETS.map(|(settings, _)| std::thread::spawn(|| delays(settings))).map(|run| run.join().unwrap());
    let mut exact = true;
    for ((settings, bases), delays) in PRESETS.iter().zip(&found) {
        assert_eq!(delays.len(), bases.len(), "{settings}: {delays:?}");
        for (delay, base) in delays.iter().zip(*bases) {
            assert!((base / 2..=base + base / 2).contains(delay), "{settings}: {delays:?}");
            exact &= delay == base;
        }
    }
    // Nine delays are all equal to their base only if the jitter is exactly 1 each time.
    assert!(!exact, "no jitter: {found:?}");
}

#[test]
fn a_fan_in_waits_for_the_slowest_branch() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; node [allowed_write_paths=\"\"]\n\
         f [shape=component]; j [shape=tripleoctagon]; quick [prompt=x]; other [prompt=x]; after [prompt=x]\n\
         slow [shape=parallelogram, tool_command=\"sleep 2\"]\n\
         start -> f; f -> quick -> j; f -> slow -> j; f -> other -> j; j -> after -> done }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--simulate"]).ends(0);
    let records = records(&bench);
    let place = |kind: &str, node: &str| {
        let is_it = |(_, event): &(String, Value)| event["kind"] == kind && event["node"] == node;
        records.iter().position(is_it).unwrap_or_else(|| panic!("no {kind} of {node}"))
    };
    let joined = place("fan_in.finished", "j");
    for branch in ["quick", "slow", "other"] {
        assert!(place("stage.started", branch) < place("stage.finished", "slow"), "{branch} began while another ran");
        assert!(place("stage.finished", branch) < joined, "{branch} ended before the fan-in went on");
    }
    assert!(joined < place("stage.started", "after"));
    let context = &bench.run_json("r", "checkpoint.json")["context"];
    assert_eq!(context["parallel.results"].as_array().map(Vec::len), Some(3));
    assert_eq!(context["parallel.success_count"], 3);
}

#[test]
fn a_handler_is_told_node_context_and_graph_and_its_outcome_counts() {
    let bench = Workbench::with_pipeline(
        "digraph g { graph [goal=\"the-goal-1\"]; start [shape=Mdiamond]; done [shape=Msquare]; A [prompt=x, allowed_write_paths=\"\"]\n\
         look [type=\"acme.look\", label=\"the-label-2\", prompt=\"for $goal\"]; other [prompt=x, allowed_write_paths=\"\"]\n\
         start -> A -> look; look -> done [condition=\"outcome=skipped\", label=\"the-edge-3\"]; look -> other -> done }",
    );
    fs::write(bench.project().join("look.wasm"), guests::build("observes")).unwrap();
    bench.write("glovebox.toml", "[plugins.\"acme.look\"]\npath = \"look.wasm\"\n");
    bench.write(
        "script.toml",
        "[[node.A]]\ntext = \"x\"\noutcome = { status = \"success\", context_updates = { colour = \"the-value-4\" } }\n",
    );
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", "script.toml"]).ends(0);
    // The plugin stores its memory as an artifact and returns `skipped`.
    let told = fs::read(bench.run_folder("r").join("artifacts/look.1.1/input.bin")).unwrap();
    for part in ["the-goal-1", "the-label-2", "for the-goal-1", "the-edge-3", "colour", "the-value-4"] {
        assert!(told.windows(part.len()).any(|bytes| bytes == part.as_bytes()), "it is not told {part}");
    }
    assert_eq!(bench.run_json("r", "look/status.json")["outcome"], "skipped");
    let completed = &bench.run_json("r", "checkpoint.json")["completed_nodes"];
    assert_eq!(completed, &serde_json::json!(["start", "A", "look"]));
}

#[test]
fn every_node_leaves_its_status_and_an_agent_its_prompt_and_response() {
    check_all(&[Case {
        name: "status.json, prompt.md and response.md",
        graph: "graph [goal=\"greet\"]; A [prompt=\"Do: $goal\"]; T [shape=parallelogram, tool_command=\"exit 4\", allowed_write_paths=\"\"]; ok [shape=diamond];\n\
                start -> A -> ok -> T; T -> done [condition=\"outcome=fail\"]",
        visited: "A ok T",
        facts: &[
            Is("A/status.json", "/outcome", "success"),
            Is("ok/status.json", "/outcome", "success"),
            Is("T/status.json", "/outcome", "fail"),
            Is("start/status.json", "/outcome", "success"),
            Holds("A/prompt.md", "Do: greet"),
            Holds("A/response.md", "[Simulated] Response for stage: A"),
            Is("checkpoint.json", "/current_node", "done"),
        ],
        ..PLAIN
    }]);
}
