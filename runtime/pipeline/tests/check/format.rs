//! Tests that formatting keeps the meaning and the comments, and that formatting twice changes nothing.

use crate::run;
use glovebox_pipeline::Source;
use glovebox_pipeline::format::format;

fn formatted(source: &str, expected: &str) {
    let once = format(Source::new(source)).unwrap_or_else(|found| panic!("{source}: {found:#?}"));
    assert_eq!(once, expected, "{source}");
    assert_eq!(format(Source::new(&once)).expect("it was formatted"), once, "formatting twice changes nothing");
    let graph = |text: &str| run(text).pipeline.map(|pipeline| glovebox_pipeline::graph::to_dot(&pipeline));
    assert_eq!(graph(source), graph(&once), "the meaning stays");
}

#[test]
fn statements_get_a_line_each() {
    formatted(
        "digraph G{graph[goal=x]start[shape=Mdiamond];\n\n\n\nexit [shape=\"Msquare\"] start->exit[weight=2]}",
        "digraph G {\n  graph [goal=x];\n  start [shape=Mdiamond];\n\n  exit [shape=\"Msquare\"];\n  start -> exit [weight=2];\n}\n",
    );
    formatted("digraph { start exit start -> exit }", "digraph {\n  start;\n  exit;\n  start -> exit;\n}\n");
}

#[test]
fn what_graphviz_would_not_read_is_quoted() {
    formatted(
        "digraph G { start exit w [timeout=15m limits.wall_ms=9s, prompt=\"a\nb\\d\"] start -> w -> exit rankdir=LR }",
        "digraph G {\n  start;\n  exit;\n  w [timeout=\"15m\", \"limits.wall_ms\"=\"9s\", prompt=\"a\\nb\\\\d\"];\n  start -> w -> exit;\n  rankdir=LR;\n}\n",
    );
}

#[test]
fn comments_stay_where_they_are() {
    formatted(
        "# first\n/* second */\ndigraph G { // opens\n  start // begins\n  # alone\n  exit [ // inside\n shape=Msquare /* here */ ]\n\n  /* before\n     the end */\n  start -> /* middle */ exit\n}\n// after\n",
        "// first\n/* second */\ndigraph G { // opens\n  start; // begins\n  // alone\n  // inside\n  exit [\n    shape=Msquare, /* here */\n  ];\n\n  /* before\n     the end */\n  /* middle */\n  start -> exit;\n}\n// after\n",
    );
}

#[test]
fn long_attribute_lists_get_a_line_each() {
    let prompt = "word ".repeat(30);
    formatted(
        &format!(
            "digraph G {{ start exit subgraph s {{ label=\"L\" w [prompt=\"{prompt}\", max_retries=2] }} start -> w -> exit }}"
        ),
        &format!(
            "digraph G {{\n  start;\n  exit;\n  subgraph s {{\n    label=\"L\";\n    w [\n      prompt=\"{prompt}\",\n      max_retries=2,\n    ];\n  }}\n  start -> w -> exit;\n}}\n"
        ),
    );
}

#[test]
fn a_file_with_syntax_errors_is_left_alone() {
    assert!(format(Source::new("digraph G { start [")).is_err());
}
