//! Tests of what the parser accepts and refuses, with its messages.

use super::lint::rule;
use super::{accept, edge, errors, node, run, with, with_graph, with_node};
use glovebox_pipeline::diagnostic::DIAGNOSTICS_MAX;
use glovebox_pipeline::key::{self, Key};
use insta::assert_snapshot;

/// Parses `n [key=<written>]` and compares the value.
#[track_caller]
fn check_value(written: &str, meaning: &str) {
    let pipeline = accept(&with_node(&format!("x={written}")));
    assert_eq!(node(&pipeline, "n").attributes[Key::new("x")].value, meaning, "{written}");
}

#[test]
fn values_are_read() {
    check_value("word", "word");
    check_value(r#""two words""#, "two words");
    check_value(r#""say \"hi\"\n\ttab \\ back""#, "say \"hi\"\n\ttab \\ back");
    check_value(r#""\\n is a backslash and n""#, "\\n is a backslash and n");
    check_value(r#""a regex \d+ keeps its backslash""#, "a regex \\d+ keeps its backslash");
    check_value("\"raw\nlines\"", "raw\nlines");
    check_value("\"windows\r\nlines\"", "windows\nlines");
    check_value("\"joined \\\nlines\"", "joined lines");
    check_value("42", "42");
    check_value("-1", "-1");
    check_value("0.5", "0.5");
    check_value("-3.14", "-3.14");
    check_value("-.5", "-.5");
    check_value("true", "true");
    check_value("900s", "900s");
    check_value("\"15m\"", "15m");
    check_value("claude-opus-4.6", "claude-opus-4.6");
    check_value("summary:high", "summary:high");
    check_value("1.2.3", "1.2.3");
    check_value("größe", "größe");
    check_value("\"日本語 → ok\"", "日本語 → ok");
    check_value(r#""""#, "");
}

/// Accepts the body, then compares the value of an attribute of node `n`.
#[track_caller]
fn check_body(body: &str, key: &str, value: &str) {
    let pipeline = accept(&with(body));
    let found = node(&pipeline, "n").attributes.get(Key::new(key)).map(|attribute| attribute.value.as_str());
    assert_eq!(found, Some(value), "{body}");
}

#[test]
fn separators_blocks_keys_and_comments_are_read() {
    check_body("n [a=1, b=2] start -> n -> exit", "b", "2");
    check_body("n [a=1; b=2;] start -> n -> exit", "b", "2");
    check_body("n [a=1 b=2] start -> n -> exit", "b", "2");
    check_body("n [a=\"1\"b=2] start -> n -> exit", "b", "2");
    check_body("n [a=1,] [b=2] start -> n -> exit", "b", "2");
    check_body("n [\n  a=1\n  b=2\n] start -> n -> exit", "b", "2");
    check_body("n [] n [b=2] start -> n [b=3]; n -> exit", "b", "2");
    check_body("n [a.b.c=2] start -> n -> exit", "a.b.c", "2");
    check_body("n [\"a.b.c\"=2] start -> n -> exit", "a.b.c", "2");
    check_body("n [b=2] // end\n start -> n -> exit", "b", "2");
    check_body("n [/* a */ b /* c */ = /* d */ 2] start -> n -> exit", "b", "2");
    check_body("# whole line ; -> [\n n [b=2] # rest\n start -> n -> exit", "b", "2");
    check_body("n [b=\"// no /* comment */ # here\"] start -> n -> exit", "b", "// no /* comment */ # here");
    check_body("n [b=\"a -> b -- c; digraph { } [x=1]\"] start -> n -> exit", "b", "a -> b -- c; digraph { } [x=1]");
    check_body("\"n\" [b=2]; start -> \"n\" -> exit;", "b", "2");
}

#[test]
fn statements_are_read() {
    let pipeline = accept(&with(
        "rankdir=LR node_a [a=1] edge_b graph_c nodes start->node_a->edge_b->graph_c->nodes->exit [weight=3]",
    ));
    let ids: Vec<&str> = pipeline.nodes.iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids, ["start", "exit", "node_a", "edge_b", "graph_c", "nodes"]);
    assert_eq!(pipeline.edges.len(), 5);
    assert!(pipeline.edges.iter().all(|edge| edge.weight == 3));
    assert_eq!(pipeline.attributes[key::RANKDIR].value, "LR");
    let marked = format!("\u{feff}{}", with("start -> exit"));
    assert_eq!(accept(&marked).name, "G");
    let windows = "digraph G {\r\n  start [shape=Mdiamond]\r\n  exit [shape=Msquare]\r\n  start -> exit\r\n}\r\n";
    assert_eq!(edge(&accept(windows), "start", "exit").weight, 0);
    assert_eq!(accept("digraph { start -> exit start exit }").name, "pipeline");
    assert_eq!(accept("DIGRAPH \"my graph\" { start exit start -> exit } // end").name, "my graph");
}

#[test]
fn other_graphs_are_refused_by_name() {
    assert_snapshot!(errors("graph G { start -> exit }"), @"dot_syntax «graph» `graph` is undirected; a pipeline must be a `digraph` ~> «digraph»");
    assert_snapshot!(errors("strict digraph G { start exit start -> exit }"), @"dot_syntax «strict» `strict` graphs are not supported");
    assert_snapshot!(errors(&with("start -- exit")), @"dot_syntax «--» `--` is an undirected edge; the edges of a pipeline must have a direction ~> «->»");
    assert_snapshot!(errors("digraph A { start exit start -> exit } digraph B { }"), @"dot_syntax «digraph» a file must contain only one graph; a second one begins here");
    assert_snapshot!(errors("digraph A { digraph B { } }"), @"dot_syntax «digraph» a graph must not begin inside another one");
    assert_snapshot!(errors(&with_node("label=<b>bold</b>")), @"dot_syntax «<b>bold</b>» HTML labels are not supported");
    assert_snapshot!(errors(&with("n start:ne -> n:w:e -> exit")), @"
    dot_syntax «:ne» ports are not supported ~> «»
    dot_syntax «:w:e» ports are not supported ~> «»
    ");
    assert_snapshot!(errors(&with("n start -> {n exit}")), @"dot_syntax «{» an edge must connect two nodes, not a group of nodes");
    assert_snapshot!(errors(""), @"dot_syntax «» the file is empty; expected `digraph`");
    assert_snapshot!(errors("  // nothing\n"), @"dot_syntax «» the file is empty; expected `digraph`");
    assert_snapshot!(errors("Here is your graph:\ndigraph G { start exit start -> exit }"), @"dot_syntax «Here» expected `digraph`, found `Here`");
    assert_snapshot!(errors("start -> exit"), @"dot_syntax «start» expected `digraph`, found `start`");
}

#[test]
fn what_is_not_closed_is_shown_where_it_opens() {
    assert_snapshot!(errors("digraph G { start exit start -> exit"), @"dot_syntax «{» the `{` of the graph has no matching `}` ~> «}»");
    assert_snapshot!(errors("digraph G { n [label=\"open]\n start -> exit }"), @r#"dot_syntax «"open]» the string that begins here has no closing quote"#);
    assert_snapshot!(errors("digraph G {\n a [label=\"open, x=1]\n b [label=\"b\"]\n a -> b [label=\"c\"]\n}"), @r#"dot_syntax «"open, x=1]» the string that begins here has no closing quote"#);
    assert_snapshot!(errors("digraph G { /* never"), @"dot_syntax «/*» the comment that begins here has no `*/`");
    assert_snapshot!(errors("digraph G {\n  n [label=x\n  start -> exit\n}"), @"dot_syntax «[» this `[` has no matching `]`");
    assert_snapshot!(errors("digraph G {\n  n [label=x\n  m [label=y]\n}"), @"dot_syntax «[» this `[` has no matching `]`");
    assert_snapshot!(errors("digraph G { subgraph a { start exit start -> exit }"), @"dot_syntax «{» the `{` of the graph has no matching `}` ~> «}»");
    assert_snapshot!(errors("digraph G { start exit start -> exit } }"), @"dot_syntax «}» expected the end of the file after the graph, found `}`");
}

#[test]
fn an_id_is_short_enough_for_a_folder() {
    let id = "n".repeat(128);
    accept(&with(&format!("{id} [prompt=p, allowed_write_paths=\"src/\"] start -> {id} -> exit")));
    let long = "n".repeat(129);
    let reported = errors(&with(&format!("{long} [prompt=p] start -> {long} -> exit")));
    let message = format!("dot_syntax «{long}» the node id `{id}…` has 129 bytes; expected at most 128");
    assert_eq!(reported, [message.as_str(), message.as_str()].join("\n"));
    // A name with characters of two bytes is cut between characters.
    assert!(errors(&with(&format!("{} -> exit", "ö".repeat(80_000)))).contains("has 160000 bytes"));
}

/// With quadratic cost, one edge to an undeclared id of 80,000 letters that is similar to a declared id takes half a
/// minute, and each further edge takes as long again.
#[test]
fn long_ids_are_read_in_linear_time() {
    let ids: Vec<String> = (0..20).map(|number| format!("{}{number}", "a".repeat(80_000))).collect();
    let declared: String = ids.iter().map(|id| format!("{id} [prompt=p] ")).collect();
    let edges: String = ids.iter().map(|id| format!("start -> {id}b -> exit [condition=\"outcome={id}\"] ")).collect();
    assert!(errors(&with(&format!("{declared}{edges} x [prompt=p, retry_target={}]", ids[0]))).contains("80001 bytes"));
}

#[test]
fn typing_mistakes_are_named_and_fixed() {
    assert_snapshot!(errors(&with("build-app [prompt=p] start -> build-app -> exit")), @"
    dot_syntax «build-app» invalid node id `build-app`: expected letters (a to z), digits and `_`, with no digit first ~> «build_app»
    dot_syntax «build-app» invalid node id `build-app`: expected letters (a to z), digits and `_`, with no digit first ~> «build_app»
    ");
    assert_snapshot!(errors(&with("größe start -> 2nd -> exit")), @"
    dot_syntax «größe» invalid node id `größe`: expected letters (a to z), digits and `_`, with no digit first ~> «gr__e»
    dot_syntax «2nd» invalid node id `2nd`: expected letters (a to z), digits and `_`, with no digit first ~> «n_2nd»
    ");
    assert_snapshot!(errors(&with("start => exit")), @"dot_syntax «=>» expected `->` for an edge, found `=>` ~> «->»");
    assert_snapshot!(errors(&with("start -> ")), @"dot_syntax «}» expected a node after `->`, found `}`");
    assert_snapshot!(errors(&with("node -> exit")), @"dot_syntax «->» expected `[` after `node`, found `->`");
    assert_snapshot!(errors(&with_node("bold")), @"dot_syntax «bold» expected `=` after the attribute `bold`, found `]`");
    assert_snapshot!(errors(&with_node("a=")), @"dot_syntax «» expected a value for `a`, found `]`");
    assert_snapshot!(errors(&with_node("a=1,,b=2")), @"dot_syntax «,» expected an attribute before this separator ~> «»");
    assert_snapshot!(errors(&with_node("a: \"x\"")), @"dot_syntax «:» expected `=` between key and value, found `:` ~> «=»");
    assert_snapshot!(errors(&with_node("a=src/main.rs")), @r#"dot_syntax «src/main.rs» the value `src/main.rs` needs quotes ~> «"src/main.rs"»"#);
    let words = |value: &str| errors(&with_node(&format!("{value}, b=1")));
    assert_snapshot!(words("persona=You are strict"), @r#"dot_syntax «You are strict» the value `You are strict` needs quotes ~> «"You are strict"»"#);
    assert_snapshot!(words("a=very much c=2"), @r#"dot_syntax «very much» the value `very much` needs quotes ~> «"very much"»"#);
    assert_snapshot!(words("allowed_commands=cargo test"), @r#"dot_syntax «cargo test» the value `cargo test` needs quotes ~> «"cargo test"»"#);
    assert_snapshot!(words("tool_command=./run.sh --fast"), @r#"dot_syntax «./run.sh --fast» the value `./run.sh --fast` needs quotes ~> «"./run.sh --fast"»"#);
    assert_snapshot!(words("tool_command=pytest -k \"a, b=1\" -q"), @r#"dot_syntax «pytest -k "a, b=1" -q» the value `pytest -k "a, b=1" -q` needs quotes ~> «"pytest -k \"a, b=1\" -q"»"#);
    assert_snapshot!(words("tool_command=curl \"http://x\" \"k\"=2"), @r#"dot_syntax «curl "http://x"» the value `curl "http://x"` needs quotes ~> «"curl \"http://x\""»"#);
    assert_snapshot!(words("a=very \"c\"=2"), @"");
    assert_snapshot!(words("a=say \"x"), @r#"dot_syntax «"x, b=1] start -> n -> exit }» the string that begins here has no closing quote"#);
    assert_snapshot!(errors(&with_node("a='x y'")), @r#"dot_syntax «'x y'» a string needs double quotes ~> «"x y"»"#);
    assert_snapshot!(errors(&with_node("a=#ff0000")), @r##"dot_syntax «#ff0000» the value `#ff0000` needs quotes ~> «"#ff0000"»"##);
    assert_snapshot!(errors(&with_node("a=\"x\" + \"y\"")), @"dot_syntax «+» `+` does not join strings");
    assert_snapshot!(errors(&with_node("a=\"x\u{0}y\"")), @"dot_syntax «␀» a string must not contain a NUL character");
    assert_snapshot!(errors(&with("start -> exit ] ; $ ")), @"
    dot_syntax «]» expected a node, an edge or an attribute, found `]`
    dot_syntax «$» expected a node, an edge or an attribute, found `$`
    ");
}

#[test]
fn one_mistake_does_not_hide_the_next() {
    let source = "digraph G {\n  start [shape=]\n  a-b [x=1]\n  -> exit\n  exit [label=<x>]\n  start -- exit\n  n [timeout=soon]\n}";
    assert_snapshot!(errors(source), @"
    dot_syntax «» expected a value for `shape`, found `]`
    dot_syntax «a-b» invalid node id `a-b`: expected letters (a to z), digits and `_`, with no digit first ~> «a_b»
    dot_syntax «->» expected a node, an edge or an attribute, found `->`
    dot_syntax «<x>» HTML labels are not supported
    dot_syntax «--» `--` is an undirected edge; the edges of a pipeline must have a direction ~> «->»
    attribute_value «soon» `timeout` expects a duration such as `900s`, `15m` or `250ms`, found `soon`
    ");
}

#[test]
fn depth_and_number_of_findings_are_bounded() {
    let nested = |depth: usize| with(&format!("{}{} start -> exit", "subgraph { ".repeat(depth), "}".repeat(depth)));
    accept(&nested(32));
    assert_snapshot!(errors(&nested(33)), @"dot_syntax «{» subgraphs are nested more than 32 levels deep");
    assert_snapshot!(errors(&nested(100_000)), @"dot_syntax «{» subgraphs are nested more than 32 levels deep");
    let many = run(&with(&"start -- exit; ".repeat(1_000)));
    assert_eq!(many.diagnostics.len(), DIAGNOSTICS_MAX);
    let dangling = run(&with(&"start -> nowhere; ".repeat(1_000)));
    assert_eq!(dangling.diagnostics.iter().filter(|found| found.is_error()).count(), DIAGNOSTICS_MAX);
}

#[test]
fn spellings_that_graphviz_refuses_are_remarked_once() {
    let source = with_node("a.b=1, c.d=2, e=x-y, f=900s") + " # late";
    assert_snapshot!(rule("not_graphviz", &source), @r#"
    not_graphviz «a.b» Graphviz does not accept an unquoted key with dots ~> «"a.b"»
    not_graphviz «x-y» Graphviz does not accept this value without quotes ~> «"x-y"»
    not_graphviz «# late» Graphviz does not accept a `#` comment after other text ~> «// late»
    "#);
    assert_eq!(rule("not_graphviz", &with_graph("rankdir=LR, nodesep=0.5, \"a.b\"=\"900s\"")), "");
    for name in ["Übersetzung", "\"my-graph\"", "12", "-1.5"] {
        assert_eq!(
            rule("not_graphviz", &format!("digraph {name} {{ start exit start -> exit [größe=日本] }}")),
            "",
            "{name}"
        );
    }
    assert_snapshot!(rule("not_graphviz", "digraph Node { start exit start -> exit [a=größe-x, b=edge] }"), @r#"
    not_graphviz «Node» Graphviz does not accept this graph name without quotes ~> «"Node"»
    not_graphviz «größe-x» Graphviz does not accept this value without quotes ~> «"größe-x"»
    "#);
    assert_snapshot!(rule("not_graphviz", "digraph my-graph { start exit Node start -> Node -> exit }"), @r#"
    not_graphviz «my-graph» Graphviz does not accept this graph name without quotes ~> «"my-graph"»
    not_graphviz «Node» Graphviz does not accept a keyword as an unquoted node id ~> «"Node"»
    "#);
}

#[test]
fn help_shows_how_to_write_a_quote_inside_a_string() {
    for value in ["say \"hi\" now", "outcome=\"success\"", "\"hi\""] {
        let checked = run(&with_node(&format!("label=\"{value}\"")));
        let help: Vec<&str> = checked.diagnostics.iter().filter_map(|found| found.help.as_deref()).collect();
        assert!(help.iter().any(|help| help.contains("write a quote inside a string as `\\\"`")), "{value}: {help:?}");
    }
}

#[test]
fn a_bracket_that_is_missing_is_one_mistake() {
    for body in
        ["a [prompt=x start -> a -> exit", "a [prompt=\"x\"; start -> a; a -> exit", "a [prompt=x, start -> exit"]
    {
        let found = errors(&with(body));
        assert_eq!(found, "dot_syntax «[» this `[` has no matching `]`", "{body}");
    }
}

#[test]
fn a_quote_that_is_missing_is_one_mistake() {
    let check = |body: &str, place: &str| {
        let found = errors(&format!("digraph G {{ start exit\n{body}\nstart -> exit }}"));
        assert_eq!(found.lines().count(), 1, "{found}");
        assert!(
            found.starts_with(&format!("dot_syntax «{place}")) && found.contains("that begins here has no"),
            "{found}"
        );
    };
    check("a [prompt=\"unclosed, allowed_write_paths=\"\"]", "\"unclosed");
    check("start -> exit [condition=\"outcome=\"success\"]", "\"outcome=");
    check("a [prompt=\"unclosed, max_retries=\"x\", goal_gate=maybe]", "\"unclosed");
    check("a [prompt=\"one]\nb [prompt=\"two\", max_retries=no]", "\"one");
    check("/* a [max_retries=no]", "/*");
}
