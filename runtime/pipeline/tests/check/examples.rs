//! Tests with the examples of the specification and of the pipeline guide of dark-factory.

use super::{accept, edge, errors, node, run};
use glovebox_pipeline::ir::{Handler, NodeId};
use glovebox_pipeline::key;
use insta::assert_snapshot;

#[test]
fn a_linear_workflow() {
    let pipeline = accept(
        r#"digraph Simple {
    graph [goal="Run tests and report"]
    rankdir=LR

    start [shape=Mdiamond, label="Start"]
    exit  [shape=Msquare, label="Exit"]

    run_tests [label="Run Tests", prompt="Run the test suite and report results"]
    report    [label="Report", prompt="Summarize the test results"]

    start -> run_tests -> report -> exit
}"#,
    );
    assert_eq!((pipeline.name.as_str(), pipeline.goal.as_str()), ("Simple", "Run tests and report"));
    assert_eq!((pipeline.nodes.len(), pipeline.edges.len()), (4, 3));
    assert_eq!(pipeline.start, NodeId::new("start"));
    assert_eq!(node(&pipeline, "run_tests").handler, Handler::Component("codergen".into()));
}

#[test]
fn a_branching_workflow() {
    let pipeline = accept(
        r#"digraph Branch {
    graph [goal="Implement and validate a feature"]
    rankdir=LR
    node [shape=box, timeout="900s"]

    start     [shape=Mdiamond, label="Start"]
    exit      [shape=Msquare, label="Exit"]
    plan      [label="Plan", prompt="Plan the implementation"]
    implement [label="Implement", prompt="Implement the plan"]
    validate  [label="Validate", prompt="Run tests"]
    gate      [shape=diamond, label="Tests passing?"]

    start -> plan -> implement -> validate -> gate
    gate -> exit      [label="Yes", condition="outcome=success"]
    gate -> implement [label="No", condition="outcome!=success"]
}"#,
    );
    assert_eq!((pipeline.nodes.len(), pipeline.edges.len()), (6, 6));
    assert_eq!(node(&pipeline, "gate").handler, Handler::Conditional);
    assert_eq!(edge(&pipeline, "gate", "exit").label, "Yes");
    assert!(edge(&pipeline, "gate", "implement").condition.is_some());
}

/// The example in the specification leaves two nodes undeclared. Glovebox reports an error at the edges to them.
#[test]
fn a_human_gate() {
    let example = |declared: &str| {
        format!(
            r#"digraph Review {{
    rankdir=LR

    start [shape=Mdiamond, label="Start"]
    exit  [shape=Msquare, label="Exit"]
    {declared}
    review_gate [
        shape=hexagon,
        label="Review Changes",
        type="wait.human"
    ]

    start -> review_gate
    review_gate -> ship_it [label="[A] Approve"]
    review_gate -> fixes   [label="[F] Fix"]
    ship_it -> exit
    fixes -> review_gate
}}"#
        )
    };
    assert_snapshot!(errors(&example("")), @"
    edge_target_exists «ship_it» the edge leads to `ship_it`, which is not declared
    edge_target_exists «fixes» the edge leads to `fixes`, which is not declared
    edge_target_exists «ship_it» the edge comes from `ship_it`, which is not declared
    edge_target_exists «fixes» the edge comes from `fixes`, which is not declared
    ");
    let pipeline = accept(&example("ship_it fixes"));
    assert_eq!(node(&pipeline, "review_gate").handler, Handler::Human);
}

#[test]
fn the_smoke_test() {
    let pipeline = accept(
        r#"
digraph test_pipeline {
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
"#,
    );
    assert_eq!(pipeline.goal, "Create a hello world Python script");
    assert_eq!((pipeline.nodes.len(), pipeline.edges.len()), (5, 6));
    let prompt = "Plan how to create a hello world script for: Create a hello world Python script";
    assert_eq!(node(&pipeline, "plan").prompt.as_deref(), Some(prompt));
    assert!(node(&pipeline, "implement").checks.goal_gate);
}

#[test]
fn a_goal_gate_without_an_exit_attribute_list() {
    let pipeline = accept(
        r#"digraph CodeReview {
    start [shape="Mdiamond"]
    implement [shape="box", prompt="Write the feature code"]
    test [shape="box", prompt="Run the test suite",
          goal_gate=true, retry_target="implement"]
    done [shape="Msquare"]

    start -> implement -> test -> done
}"#,
    );
    assert_eq!(node(&pipeline, "test").routing.retry_target, Some(NodeId::new("implement")));
}

#[test]
fn templates_of_the_guidelines() {
    accept(
        r#"digraph G {
  start [shape=Mdiamond];
  work  [shape=box, prompt="Do the work.\n"];
  exit  [shape=Msquare];

  start -> work;
  work -> exit;
}"#,
    );
    let build_loop = accept(
        r#"digraph BuildLoop {
  start [shape=Mdiamond];
  exit  [shape=Msquare];

  generate [shape=box, allowed_write_paths="main.go,go.mod", prompt="Create code.\n"];
  test     [shape=parallelogram, tool_command="go build ."];
  fix      [shape=box, allowed_write_paths="main.go,go.mod", prompt="Fix build failures.\n"];

  start -> generate -> test;
  test -> exit [condition="outcome=success"];
  test -> fix  [condition="outcome=fail"];
  fix -> test;
}"#,
    );
    assert_eq!(node(&build_loop, "test").handler, Handler::Component("tool".into()));
    assert_eq!(node(&build_loop, "fix").prompt.as_deref(), Some("Fix build failures.\n"));
    let verify = r#"digraph VerifyPlanFlow {
  start [shape=Mdiamond];
  generate [shape=box, prompt="Implement feature and return verification_plan.\n"];
  verify [shape=parallelogram, type=verification, "verification.allowed_commands"="test -f,go test,go build"];
  exit [shape=Msquare];

  start -> generate -> verify;
  verify -> exit [condition="outcome=success"];
}"#;
    let pipeline = accept(verify);
    assert_eq!(node(&pipeline, "verify").handler, Handler::Component("verification".into()));
    assert_eq!(
        node(&pipeline, "verify").attributes[key::VERIFICATION_ALLOWED_COMMANDS].value,
        "test -f,go test,go build"
    );
    assert!(!run(verify).diagnostics.iter().any(|found| found.rule == "no_failure_route"), "the last stage may stop");
}

#[test]
fn agent_stages_of_the_guidelines() {
    let pipeline = accept(
        r#"digraph Codex { start exit
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
  prompt="Read ../examples/specs/my_spec.md.\nDo not read scenario scripts.\nUse GOCACHE=\"$PWD/.gocache\" for go commands.\n"
];
start -> ensure_codex_wrapper -> implement -> exit }"#,
    );
    let implement = node(&pipeline, "implement");
    assert_eq!(implement.attributes[key::CODEX_ADD_DIRS].value, "examples/specs");
    assert!(implement.prompt.as_deref().is_some_and(|prompt| prompt.contains("\"$PWD/.gocache\"")));
}
