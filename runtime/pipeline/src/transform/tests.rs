//! Tests that an unchanged graph gives the same pipeline, that every change is listed, and that a graph which DOT
//! cannot express is refused.

use super::*;
use crate::ir::NodeId;
use crate::key::Key;
use crate::source::Source;
use crate::{Inputs, LoweredFile, parse, validate};

const SOURCE: &str = "digraph g {
  graph [goal=\"ship $what\", llm_model=m, scenarios=\"hidden/\"]
  node [shape=box, timeout=15m]
  start; done
  subgraph cluster_a { label=\"Fast Lane\"
    build [prompt=\"Do $goal, \\\"now\\\"\\n$goal\", id=odd, handler=own]
  }
  say [label=\"Tell $what\"]
  test [shape=parallelogram, tool_command=\"make\\\\ test\"]
  start -> build -> say -> test
  test -> done [condition=\"outcome=success\", weight=2]
  test -> done [from=here]
  test -> build [condition=\"outcome=fail\", loop_restart=false]
}
";

fn draft(source: &str) -> LoweredFile {
    let inputs = Inputs { set: [("what".to_owned(), "it, $goal\r\nand $what".to_owned())].into(), ..Inputs::default() };
    let draft = parse(Source::new(source)).lower(&inputs);
    assert!(!draft.has_errors(), "{:?}", draft.diagnostics);
    draft
}

fn answer(change: impl FnOnce(&mut SettledGraph)) -> (Pipeline, Result<TransformedGraph, String>) {
    let before = draft(SOURCE).pipeline;
    let mut graph = SettledGraph::from_pipeline(&before);
    change(&mut graph);
    let applied = apply(&before, &SettledGraph::parse(&serde_json::to_string(&graph).unwrap()).unwrap());
    (before, applied)
}

#[test]
fn an_unchanged_graph_is_the_same_pipeline_in_the_same_places() {
    let (before, applied) = answer(|_| {});
    let applied = applied.unwrap();
    let after = &applied.lowered.pipeline;
    assert_eq!(applied.lowered.diagnostics, []);
    assert_eq!(changes(&SettledGraph::from_pipeline(&before), &SettledGraph::from_pipeline(after)), []);
    assert_eq!(before.goal, after.goal);
    assert_eq!((before.span, &before.start), (after.span, &after.start));
    for (was, is) in before.nodes.iter().zip(&after.nodes) {
        assert_eq!((&was.id, &was.handler, was.span), (&is.id, &is.handler, is.span));
        assert_eq!(was.prompt, is.prompt, "{}", was.id);
        assert_eq!((&was.classes, was.bounds.timeout, &was.label), (&is.classes, is.bounds.timeout, &is.label));
        let is = ["id", "handler", "timeout"].map(|key| is.attributes.get(Key::new(key)));
        assert_eq!(["id", "handler", "timeout"].map(|key| was.attributes.get(Key::new(key))), is, "{}", was.id);
    }
    for (was, is) in before.edges.iter().zip(&after.edges) {
        assert_eq!((&was.from, &was.to, was.span, &was.condition), (&is.from, &is.to, is.span, &is.condition));
        assert_eq!(was.attributes.get(Key::new("from")), is.attributes.get(Key::new("from")));
    }
    assert_eq!((before.subgraphs.len(), &before.subgraphs), (1, &after.subgraphs));
    let again = reread(Source::new(&applied.text), &before).pipeline;
    assert_eq!(
        SettledGraph::from_pipeline(&again),
        SettledGraph::from_pipeline(after),
        "what is kept is read the same"
    );
}

#[test]
fn nothing_that_was_put_in_is_looked_at_again() {
    let (_, applied) = answer(|graph| drop(graph.nodes[3].insert("prompt".to_owned(), "@etc $goal".to_owned())));
    let pipeline = applied.unwrap().lowered.pipeline;
    let prompt = |id: &str| pipeline.node(&NodeId::new(id)).unwrap().prompt.as_ref().unwrap();
    assert_eq!(prompt("say"), "@etc $goal");
    assert!(
        prompt("build").starts_with("Do ship it, $goal\r\nand $what, \"now\"\nship it, $goal"),
        "{}",
        prompt("build")
    );
}

#[test]
fn every_change_is_told_and_linted_at_its_place() {
    let (before, applied) = answer(|graph| {
        graph.attributes.insert("max_steps".to_owned(), "9".to_owned());
        graph.nodes[2].remove("timeout");
        graph.nodes[4].insert("tool_command".to_owned(), "make all".to_owned());
        let new = [("id", "late"), ("shape", "diamond"), ("acme.depth", "3")];
        graph.nodes.push(new.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        graph.edges.remove(5);
        graph.edges.swap(0, 1);
    });
    let applied = applied.unwrap();
    let listed =
        changes(&SettledGraph::from_pipeline(&before), &SettledGraph::from_pipeline(&applied.lowered.pipeline));
    let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
    assert_eq!(
        listed,
        [
            "+ graph: max_steps=\"9\"",
            "- node build: timeout=\"15m\"",
            "~ node test: tool_command=\"make\\ test\" -> \"make all\"",
            "+ node late",
            "+ node late: acme.depth=\"3\"",
            "+ node late: llm_model=\"m\"",
            "+ node late: shape=\"diamond\"",
            "- edge test -> build",
            "~ edge start -> build: another order",
        ]
    );
    assert_eq!(applied.lowered.pipeline.bounds.steps_max, 9);
    let place = |id: &str| applied.lowered.pipeline.node(&NodeId::new(id)).unwrap().span;
    assert_eq!(place("late"), before.span);
    let checked = validate(applied.lowered);
    let lost = checked.diagnostics.iter().find(|found| found.rule == "reachability").expect("late is not reached");
    assert_eq!((lost.node.as_deref(), lost.span), (Some("late"), before.span));
    assert!(checked.pipeline.is_none());
}

#[test]
fn values_of_the_wrong_type_are_reported_at_the_node() {
    let (before, applied) = answer(|graph| drop(graph.nodes[2].insert("max_retries".to_owned(), "many".to_owned())));
    let draft = applied.unwrap().lowered;
    let build = before.node(&NodeId::new("build")).unwrap();
    let found: Vec<_> = draft.diagnostics.iter().map(|found| (&*found.rule, found.span)).collect();
    assert_eq!(found, [("attribute_value", build.span)]);
    assert!(draft.has_errors());
}

#[test]
fn an_invalid_graph_is_refused() {
    let refused = |change: fn(&mut SettledGraph), reason_part: &str| {
        let reason = match answer(change).1 {
            Err(reason) => reason,
            Ok(applied) => applied.lowered.diagnostics.into_iter().map(|found| found.message).collect(),
        };
        assert!(reason.contains(reason_part), "{reason:?}");
    };
    refused(|graph| drop(graph.attributes.remove("scenarios")), "`scenarios` has changed");
    refused(
        |graph| drop(graph.nodes[3].insert("handler".to_owned(), "tool".to_owned())),
        "its `type` and `shape` select the handler `codergen`",
    );
    refused(|graph| graph.nodes.push(graph.nodes[3].clone()), "a node occurs twice");
    refused(|graph| drop(graph.nodes[3].insert("id".to_owned(), "x\"]; evil [a=\"b".to_owned())), "");
    refused(|graph| drop(graph.nodes[3].insert("a b".to_owned(), "c".to_owned())), "");
    refused(|graph| "a -> b".clone_into(&mut graph.name), "");
    let parse = |text: &str| SettledGraph::parse(text).unwrap_err();
    assert!(parse("{").contains("EOF"));
    assert!(parse("[]").contains("struct Answer") || parse("[]").contains("missing field"), "{}", parse("[]"));
    let graph = |rest: &str| format!("{{\"name\":\"g\",\"attributes\":{{}},{rest}}}");
    assert!(parse(&graph("\"nodes\":[{}],\"edges\":[]")).contains("node 0 has no `id`"));
    assert!(parse(&graph("\"nodes\":[],\"edges\":[{\"from\":\"a\"}]")).contains("no `to`"));
    assert!(parse(&graph("\"nodes\":[],\"edges\":[],\"secret\":1")).contains("unknown field"));
    assert!(parse(&graph("\"nodes\":[{\"id\":1}],\"edges\":[]")).contains("expected a string"));
    assert!(parse(&graph("\"nodes\":[],\"edges\":[],\"schema_version\":2")).contains("expected 1"));
}
