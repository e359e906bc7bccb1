//! The specification's definition of done as a table: each case has a graph, a command, the exit code, the visited
//! nodes and the expected content of files.
//!
//! Cases are named after the specification's parity matrix (§11.12) or after the decision that they test. The smoke
//! test is §11.13.

use crate::case::Fact::{Holds, Is, Says};
use crate::case::{Case, Fact, PLAIN, check, check_all};
use crate::guests;
use crate::workbench::Workbench;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::time::Duration;

#[test]
fn pipelines_are_read() {
    check_all(&[
        Case {
            name: "a simple linear pipeline",
            graph: "A [prompt=\"a\"]; B [prompt=\"b\"]; start -> A -> B -> done",
            visited: "A B",
            facts: &[Is("final.json", "/exit_node", "done"), Is("checkpoint.json", "/current_node", "done")],
            ..PLAIN
        },
        Case {
            name: "graph-level attributes, $goal in prompts",
            graph: "graph [goal=\"greet the world\", label=\"Greeter\"]; A [prompt=\"Do: $goal\"]; start -> A -> done",
            visited: "A",
            facts: &[
                Holds("A/prompt.md", "Do: greet the world"),
                Holds("A/response.md", "[Simulated] Response for stage: A"),
                Is("manifest.json", "/goal", "greet the world"),
            ],
            ..PLAIN
        },
        Case {
            name: "multi-line node attributes, comments, defaults, subgraphs",
            graph: "/* one */ node [prompt=\"default\"] // two\n A [\n label=\"First\",\n prompt=\"own // not a comment\"\n ]\n\
                    subgraph cluster_x { B }\n start -> A -> B -> done",
            visited: "A B",
            facts: &[Holds("A/prompt.md", "own // not a comment"), Holds("B/prompt.md", "default")],
            ..PLAIN
        },
        Case {
            name: "a pipeline with more than ten nodes",
            graph: "node [prompt=\"go\"]; a1; a2; a3; a4; a5; a6; a7; a8; a9; a10; a11; start -> a1 -> a2 -> a3 -> a4 -> a5 -> a6 -> a7 -> a8 -> a9 -> a10 -> a11 -> done",
            visited: "a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11",
            ..PLAIN
        },
        Case {
            name: "inputs from the command line",
            graph: "graph [goal=\"ship $what\"]; A [prompt=\"$goal\"]; start -> A -> done",
            flags: &["--set", "what=boxes"],
            visited: "A",
            facts: &[Holds("A/prompt.md", "ship boxes")],
            ..PLAIN
        },
    ]);
}

#[test]
fn invalid_pipelines_are_refused_with_their_place() {
    let invalid = |name, graph, said: &'static [Fact]| Case { name, graph, exit: 3, facts: said, ..PLAIN };
    for case in [
        invalid(
            "missing start",
            "start [shape=box, prompt=x]; start -> done; other [shape=Msquare, label=Mdiamond]",
            &[Says("start_node")],
        ),
        invalid(
            "missing exit",
            "A [prompt=Msquare]; start -> A; done [shape=box, prompt=x]; A -> done",
            &[Says("terminal_node")],
        ),
        invalid(
            "orphan node",
            "A [prompt=\"a\"]; lost [prompt=\"x\"]; start -> A -> done",
            &[Says("lost"), Says("reachability")],
        ),
        invalid(
            "edge to an undeclared node",
            "build [prompt=\"a\"]; start -> biuld; start -> build -> done",
            &[Says("did you mean `build`?")],
        ),
        invalid(
            "start with an incoming edge",
            "A [prompt=\"a\"]; start -> A -> done; A -> start",
            &[Says("start_no_incoming")],
        ),
        invalid(
            "exit with an outgoing edge",
            "A [prompt=\"a\"]; start -> A -> done; done -> A",
            &[Says("exit_no_outgoing")],
        ),
        invalid(
            "a condition that does not parse",
            "A [prompt=\"a\"]; start -> A; A -> done [condition=\"outcome ~ x\"]",
            &[Says("pipeline.dot:4:")],
        ),
        invalid("a supervisor without a child", "A [shape=house]; start -> A -> done", &[Says("child_pipeline")]),
        invalid(
            "an attribute this version does not enforce",
            "A [prompt=\"a\", codex.profile=\"mine\"]; start -> A -> done",
            &[Says("codex.profile")],
        ),
    ] {
        let bench_name = case.name;
        println!("{bench_name}");
        check(&case);
    }
}

#[test]
fn routes_are_chosen_by_the_five_steps() {
    check_all(&[
        Case {
            name: "conditional branching, success path",
            graph: "A [prompt=\"a\"]; ok [shape=diamond]; good [prompt=\"g\"]; bad [prompt=\"b\"]; start -> A -> ok;\n\
                    ok -> good [condition=\"outcome=success\"]; ok -> bad [condition=\"outcome=fail\"]; good -> done; bad -> done",
            visited: "A ok good",
            ..PLAIN
        },
        Case {
            name: "conditional branching, failure path through a diamond",
            graph: "A [prompt=\"a\", test.outcome=fail]; ok [shape=diamond]; good [prompt=\"g\"]; bad [prompt=\"b\"]; start -> A -> ok;\n\
                    ok -> good [condition=\"outcome=success\"]; ok -> bad [condition=\"outcome=fail\"]; good -> done; bad -> done",
            visited: "A ok bad",
            ..PLAIN
        },
        Case {
            name: "a condition wins over weight",
            graph: "node [prompt=\"x\"]; A; heavy; right; start -> A; A -> heavy [weight=99]; A -> right [condition=\"outcome=success\"]; heavy -> done; right -> done",
            visited: "A right",
            ..PLAIN
        },
        Case {
            name: "weight breaks ties for unconditional edges",
            graph: "node [prompt=\"x\"]; A; a; z; start -> A; A -> a [weight=1]; A -> z [weight=5]; a -> done; z -> done",
            visited: "A z",
            ..PLAIN
        },
        Case {
            name: "lexical tiebreak as the final fallback",
            graph: "node [prompt=\"x\"]; A; beta; zeta; start -> A; A -> zeta; A -> beta; zeta -> done; beta -> done",
            visited: "A beta",
            ..PLAIN
        },
        Case {
            name: "a preferred label wins over weight",
            graph: "node [prompt=\"x\"]; a; z; A [test.preferred_next_label=\"Ship it\"]; start -> A; A -> a [weight=9]; A -> z [label=\"[S] Ship it\"]; a -> done; z -> done",
            visited: "A z",
            ..PLAIN
        },
        Case {
            name: "a suggested id wins over weight",
            graph: "node [prompt=\"x\"]; a; z; A [test.suggested_next_ids=\"z\"]; start -> A; A -> a [weight=9]; A -> z; a -> done; z -> done",
            visited: "A z",
            ..PLAIN
        },
        Case {
            name: "a default edge comes before weight",
            graph: "node [prompt=\"x\"]; A; a; z; start -> A; A -> a [weight=9]; A -> z [default=true]; a -> done; z -> done",
            visited: "A z",
            ..PLAIN
        },
    ]);
}

#[test]
fn a_run_that_cannot_go_on_says_why() {
    check_all(&[
        Case {
            name: "no edge matches: the run fails and says so",
            graph: "A [prompt=\"x\"]; start -> A; A -> done [condition=\"outcome=fail\"]",
            exit: 1,
            visited: "A",
            facts: &[Says("no route from node"), Is("final.json", "/failure_code", "route/none")],
            ..PLAIN
        },
        Case {
            name: "a failed stage with only a plain edge stops the run with its reason",
            graph: "A [prompt=\"x\", test.outcome=fail]; B [prompt=\"x\"]; start -> A -> B -> done",
            exit: 1,
            visited: "A",
            facts: &[Is("A/status.json", "/outcome", "fail")],
            ..PLAIN
        },
        Case {
            name: "a failed stage goes to its retry target",
            graph: "node [prompt=\"x\"]; A [test.outcome_sequence=\"fail,success\", retry_target=fix]; fix; start -> A -> done; fix -> A; A -> fix [condition=\"context.never=1\"]",
            visited: "A fix A",
            ..PLAIN
        },
        Case {
            name: "a loop without an end stops at max_steps",
            graph: "node [prompt=\"x\"]; A; B; start -> A -> B; B -> A; B -> done [condition=\"outcome=fail\"]",
            flags: &["--max-steps", "6"],
            exit: 5,
            visited: "A B A B A",
            facts: &[Says("max_steps")],
            ..PLAIN
        },
    ]);
}

#[test]
fn stages_are_retried_as_asked() {
    check_all(&[
        Case {
            name: "retry on failure, max_retries=2",
            graph: "A [prompt=\"x\", max_retries=2, test.outcome_sequence=\"fail,retry,success\"]; start -> A -> done",
            visited: "A",
            facts: &[Is("A/status.json", "/outcome", "success")],
            ..PLAIN
        },
        Case {
            name: "retries are used up: the last outcome routes",
            graph: "A [prompt=\"x\", max_retries=1, test.outcome=fail]; B [prompt=\"x\"]; start -> A -> done; A -> B [condition=\"outcome=fail\"]; B -> done",
            visited: "A B",
            ..PLAIN
        },
        Case {
            name: "each node has its own count",
            graph: "node [prompt=x, max_retries=1, test.outcome_sequence=\"fail,success\"]; A; B; start -> A -> B -> done",
            visited: "A B",
            ..PLAIN
        },
        Case {
            name: "no max_retries, no retry of a plain failure",
            graph: "A [prompt=\"x\", test.outcome_sequence=\"fail,success\"]; start -> A -> done",
            exit: 1,
            visited: "A",
            ..PLAIN
        },
    ]);
}

#[test]
fn goal_gates_hold() {
    check_all(&[
        Case {
            name: "a goal gate blocks the exit when unsatisfied",
            graph: "A [prompt=\"x\", goal_gate=true, test.outcome=fail]; start -> A; A -> done [condition=\"outcome=fail\"]",
            exit: 4,
            visited: "A",
            facts: &[Is("final.json", "/failure_code", "GoalGateUnsatisfied")],
            ..PLAIN
        },
        Case {
            name: "a goal gate allows the exit when satisfied",
            graph: "A [prompt=\"x\", goal_gate=true, test.outcome=partial_success]; start -> A -> done",
            visited: "A",
            ..PLAIN
        },
        Case {
            name: "an unmet gate jumps to its retry target",
            graph: "A [prompt=\"x\", goal_gate=true, retry_target=A, test.outcome_sequence=\"fail,success\"]; start -> A;\n\
                    A -> done [condition=\"outcome=fail\"]; A -> done",
            visited: "A A",
            ..PLAIN
        },
        Case {
            name: "a gate that was never visited is unmet",
            graph: "node [prompt=\"x\"]; A; B [goal_gate=true]; start -> A; A -> done [weight=5]; A -> B -> done",
            exit: 4,
            visited: "A",
            ..PLAIN
        },
    ]);
}

#[test]
fn context_flows_and_engine_keys_are_reserved() {
    check_all(&[
        Case {
            name: "context updates from one node are visible to the next",
            graph: "node [prompt=\"x\"]; A; B; good; bad; start -> A -> B; B -> good [condition=\"context.colour=blue\"]; B -> bad; good -> done; bad -> done",
            script: "[[node.A]]\ntext = \"done\"\noutcome = { status = \"success\", context_updates = { colour = \"blue\" } }\n\
                     [[node.B]]\ntext = \"b\"\n[[node.good]]\ntext = \"g\"\n",
            visited: "A B good",
            facts: &[Is("checkpoint.json", "/context/colour", "blue")],
            ..PLAIN
        },
        Case {
            name: "a script that runs dry names node and turn",
            graph: "A [prompt=\"x\"]; B [prompt=\"x\"]; start -> A -> B -> done",
            script: "[[node.A]]\ntext = \"done\"\n[[node.B]]\ntool = [{ name = \"glob\", arguments = { pattern = \"*\" } }]\n",
            exit: 8,
            visited: "A B",
            facts: &[Says("`B`"), Says("turn 2")],
            ..PLAIN
        },
    ]);
}

#[test]
fn tools_and_verifiers_run_commands() {
    check_all(&[
        Case {
            name: "a tool's success",
            graph: "T [shape=parallelogram, tool_command=\"printf made > out.txt\", allowed_write_paths=\"out.txt\"]; start -> T -> done",
            visited: "T",
            facts: &[Holds("workspace/out.txt", "made"), Says("verified"), Says("exit 0")],
            ..PLAIN
        },
        Case {
            name: "a tool's non-zero exit is a failure with its number",
            graph: "T [shape=parallelogram, tool_command=\"exit 3\", allowed_write_paths=\"out.txt\"]; start -> T -> done",
            exit: 1,
            visited: "T",
            facts: &[Says("3"), Says("not verified"), Is("T/status.json", "/outcome", "fail")],
            ..PLAIN
        },
        Case {
            name: "a verifier routes on its command",
            graph: "V [shape=octagon, command=\"test -f absent\"]; A [prompt=\"x\"]; start -> V; V -> done [condition=\"outcome=success\"]; V -> A [condition=\"outcome=fail\"]; A -> done",
            visited: "V A",
            ..PLAIN
        },
    ]);
}

const SMOKE: &str = r#"digraph test_pipeline {
    graph [goal="Create a hello world Python script"]

    start       [shape=Mdiamond]
    plan        [shape=box, prompt="Plan how to create a hello world script for: $goal"]
    implement   [shape=box, prompt="Write the code based on the plan", goal_gate=true]
    review      [shape=box, prompt="Review the code for correctness"]
    done        [shape=Msquare]

    start -> plan
    plan -> implement
    implement -> review [condition="outcome=success"]
    implement -> plan   [condition="outcome=fail", label="Retry"]
    review -> done      [condition="outcome=success"]
    review -> implement [condition="outcome=fail", label="Fix"]
}
"#;

const SMOKE_SCRIPT: &str = r#"
[[node.plan]]
text = "1. write hello.py"

[[node.implement]]
tool = [{ name = "write_file", arguments = { path = "hello.py", content = "print('hello')\n" } }]
[[node.implement]]
text = "written"
outcome = { status = "success" }

[[node.review]]
text = "wrong greeting"
outcome = { status = "fail", failure_reason = "says hello, not hello world" }

[[node.implement]]
tool = [{ name = "write_file", arguments = { path = "hello.py", content = "print('hello world')\n" } }]
[[node.implement]]
text = "mended"
outcome = { status = "success" }

[[node.review]]
text = "fine"
outcome = { status = "success" }
"#;

fn smoke_holds(bench: &Workbench, visited: &str) {
    let graph = bench.glovebox(&["graph", "pipeline.dot", "--format", "json"]).ends(0).json();
    assert_eq!(graph["attributes"]["goal"], "Create a hello world Python script");
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 5);
    assert_eq!(graph["edges"].as_array().unwrap().len(), 6);
    for node in ["plan", "implement", "review"] {
        for file in ["prompt.md", "response.md", "status.json"] {
            assert!(!bench.run_text("r", &format!("{node}/{file}")).is_empty());
        }
    }
    assert_eq!(bench.run_json("r", "final.json")["status"], "success");
    assert_eq!(bench.run_json("r", "implement/status.json")["outcome"], "success");
    let checkpoint = bench.run_json("r", "checkpoint.json");
    assert_eq!(checkpoint["current_node"], "done");
    let completed: Vec<&str> =
        checkpoint["completed_nodes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(completed.join(" "), visited);
}

#[test]
fn the_smoke_test_with_the_simulated_model() {
    let bench = Workbench::with_pipeline(SMOKE);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    smoke_holds(&bench, "start plan implement review");
    let prompt = bench.run_text("r", "plan/prompt.md");
    assert!(prompt.contains("hello world script for: Create a hello world Python script"), "{prompt}");
}

#[test]
fn the_smoke_test_with_a_script_takes_the_fix_loop() {
    let bench = Workbench::with_pipeline(SMOKE);
    bench.write("script.toml", SMOKE_SCRIPT);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", "script.toml"]).ends(0);
    smoke_holds(&bench, "start plan implement review implement review");
    assert_eq!(bench.run_text("r", "workspace/hello.py"), "print('hello world')\n");
    assert!(!bench.has("hello.py"), "the user's tree gets nothing before apply");
    bench.glovebox(&["diff", "r"]).ends(0).says("hello.py").says("+print('hello world')");
    bench.glovebox(&["apply", "r"]).ends(0).says("hello.py");
    assert_eq!(bench.read("hello.py"), "print('hello world')\n");
}

#[test]
fn a_stylesheet_overrides_by_shape_class_and_id_and_an_attribute_wins() {
    let bench = Workbench::with_pipeline(
        r#"digraph styled {
            graph [model_stylesheet="* { llm_model: base; } box { llm_model: shape; } .fast { llm_model: class; } #d { llm_model: id; }"]
            node [prompt="x"]
            start [shape=Mdiamond]; done [shape=Msquare]
            a; b [class=fast]; d [class=fast]; e [class=fast, llm_model=own]
            start -> a -> b -> d -> e -> done
        }"#,
    );
    let graph = bench.glovebox(&["graph", "pipeline.dot", "--format", "json"]).ends(0).json();
    let model = |id: &str| {
        let node = graph["nodes"].as_array().unwrap().iter().find(|node| node["id"] == id).unwrap();
        node["llm_model"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(["a", "b", "d", "e"].map(model), ["shape", "class", "id", "own"]);
}

#[test]
fn checkpoint_save_and_resume_produces_the_same_result() {
    let graph = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
        A [prompt=\"x\", allowed_write_paths=\"\"]; B [prompt=\"x\", allowed_write_paths=\"\"]\n\
        T [shape=parallelogram, allowed_write_paths=\"n\", tool_command=\"echo x >> n; sleep 1\"]\n\
        start -> A -> T -> B; B -> A [condition=\"context.again=1\"]; B -> done }";
    let (whole, cut) = (Workbench::with_pipeline(graph), Workbench::with_pipeline(graph));
    let run = ["run", "pipeline.dot", "--run-id", "r", "--json"];
    whole.glovebox(&run).ends(0);
    let mut child = cut.start(&run);
    let mut records = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let is_tool = |line: &String| line.contains("\"stage.started\"") && line.contains("\"node\":\"T\"");
    records.find(is_tool).expect("the tool stage starts");
    // The files of a run are at most a tenth of a second behind its journal.
    std::thread::sleep(Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
    let saved = cut.run_json("r", "checkpoint.json");
    assert_eq!((&saved["current_node"], &saved["completed_nodes"]), (&"A".into(), &serde_json::json!(["start", "A"])));
    cut.glovebox(&["resume", "r"]).ends(0).says("verified     T: ");
    for pointer in ["/current_node", "/completed_nodes", "/node_retries", "/context"] {
        let of = |bench: &Workbench| bench.run_json("r", "checkpoint.json").pointer(pointer).cloned();
        assert_eq!(of(&cut), of(&whole), "{pointer}");
    }
    assert_eq!(cut.run_text("r", "workspace/n"), "x\n", "the attempt that was cut left nothing");
    assert_eq!(cut.run_json("r", "final.json")["status"], "success");
}

#[test]
fn a_custom_handler_is_registered_and_executed() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; A [type=\"acme.custom\"]; start -> A -> done }",
    );
    bench.glovebox(&["run", "pipeline.dot"]).ends(3).says("[plugins.\"acme.custom\"]");
    std::fs::write(bench.project().join("custom.wasm"), guests::component("(func $execute)")).unwrap();
    bench.write("glovebox.toml", "[plugins.\"acme.custom\"]\npath = \"custom.wasm\"\n");
    bench.glovebox(&["plugin", "lock"]).ends(0).says("1 plugin\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0).says("unverified   A: claimed by acme.custom");
    assert_eq!(bench.run_json("r", "checkpoint.json")["completed_nodes"], serde_json::json!(["start", "A"]));
}
