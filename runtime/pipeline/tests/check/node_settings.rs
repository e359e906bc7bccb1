//! Tests of the settings that a node has itself, inherits from its subgraph or the graph, or has in another spelling.

use super::lint::rule;
use super::{errors, lowered, node, with};
use glovebox_pipeline::ir::holdouts::HoldoutSelection;
use glovebox_pipeline::ir::{Handler, Node, NodeId, ToolHooks, ToolServers};
use glovebox_pipeline::key::Key;
use glovebox_pipeline::{Source, transform};
use glovebox_record::Fidelity;
use glovebox_record::question::QuestionType;
use glovebox_record::scope::Entry;
use insta::assert_snapshot;
use std::time::Duration;

/// Returns the node `n` of a file with this body.
fn n(body: &str) -> Node {
    node(&lowered(&with(body)), "n").clone()
}

fn value(node: &Node, key: &'static str) -> Option<String> {
    node.attributes.get(Key::new(key)).map(|attribute| attribute.value.to_string())
}

#[test]
fn an_agent_is_asked_its_prompt_or_else_its_label() {
    for (attributes, label, prompt) in [
        ("label=x", "x", Some("x")),
        ("prompt=p", "n", Some("p")),
        ("label=\" \", prompt=\" \"", "n", Some("n")),
        ("label=x, prompt=p", "x", Some("p")),
        ("label=x, shape=hexagon", "x", None),
        ("label=x, shape=hexagon, prompt=p", "x", Some("p")),
    ] {
        let found = n(&format!("n [{attributes}]"));
        assert_eq!((found.label.as_str(), found.prompt.as_deref()), (label, prompt), "{attributes}");
    }
}

#[test]
fn hooks_are_those_of_the_node_or_of_the_graph_and_an_empty_one_is_none() {
    let hooks = |graph: &str, own: &str| n(&format!("graph [{graph}] n [prompt=p, {own}]")).agent.tool_hooks;
    let some = |text: &str| Some(text.into());
    let of_graph = "tool_hooks.pre=a, tool_hooks.post=b";
    for (graph, own, expected) in [
        ("label=x", "label=x", ToolHooks::default()),
        (of_graph, "label=x", ToolHooks { pre: some("a"), post: some("b"), is_own: false }),
        (of_graph, "tool_hooks.pre=c", ToolHooks { pre: some("c"), post: some("b"), is_own: true }),
        (of_graph, "tool_hooks.post=\" \"", ToolHooks { pre: some("a"), post: None, is_own: false }),
        (of_graph, "shape=parallelogram, tool_command=t", ToolHooks::default()),
        ("tool_hooks.pre=\" \"", "label=x", ToolHooks::default()),
    ] {
        assert_eq!(hooks(graph, own), expected, "{graph} {own}");
    }
}

#[test]
fn tool_servers_are_those_of_the_node_or_of_the_graph() {
    let servers = |graph: &str, own: &str| n(&format!("graph [{graph}] n [prompt=p, {own}]")).agent.tool_servers;
    let asked =
        |names: &[&str], is_own| ToolServers { asked: names.iter().map(|one| (*one).to_owned()).collect(), is_own };
    for (graph, own, expected) in [
        ("label=x", "label=x", asked(&[], false)),
        ("mcp=\"a, ,b,\"", "label=x", asked(&["a", "b"], false)),
        ("mcp=a", "mcp=c", asked(&["c"], true)),
        ("mcp=a", "mcp=\" \"", asked(&[], false)),
        ("mcp=a", "shape=parallelogram, tool_command=t", asked(&[], false)),
        ("label=x", "mcp=c, shape=parallelogram, tool_command=t", asked(&["c"], true)),
    ] {
        assert_eq!(servers(graph, own), expected, "{graph} {own}");
    }
}

#[test]
fn a_session_has_a_fidelity_a_thread_and_the_innermost_subgraph() {
    let session = |attributes: &str| {
        let body = format!("subgraph {{ label=Outer subgraph {{ label=Inner n [prompt=p, {attributes}] }} }}");
        let session = n(&body).agent.session;
        let [thread, class] = [session.thread, session.class].map(|id| id.map(|id| id.as_str().to_owned()));
        (session.fidelity, thread, class)
    };
    let inner = || Some("inner".to_owned());
    assert_eq!(session("label=x"), (None, None, inner()));
    assert_eq!(session("fidelity=full, thread_id=\" t \""), (Some(Fidelity::Full), Some("t".to_owned()), inner()));
    assert_eq!(session("fidelity=\" \", thread_id=\" \""), (None, None, inner()));
}

#[test]
fn a_gate_has_a_kind_a_default_and_a_timeout_in_either_spelling() {
    let gate = |attributes: &str| n(&format!("n [shape=hexagon, {attributes}]")).gate;
    let plain = gate("label=x");
    assert_eq!((plain.kind, plain.default, plain.timeout), (QuestionType::default(), None, None));
    let set = gate("human.type=freeform, human.default_choice=\" yes \", human.timeout=9s");
    assert_eq!((set.kind, set.timeout), (QuestionType::Freeform, Some(Duration::from_secs(9))));
    assert_eq!(set.default.as_deref(), Some("yes"));
    assert_eq!(gate("human.default_choice=\" \"").default, None);
    assert_eq!(gate("mode=freeform").kind, QuestionType::Freeform);
    assert_eq!(gate("mode=freeform, human.type=yes_no").kind, QuestionType::YesNo);
    assert_eq!(gate("mode=other").kind, QuestionType::default());
    let other = |attributes: &str| rule("other_spelling", &with(&format!("n [{attributes}] start -> n -> exit")));
    assert_snapshot!(other("shape=hexagon, mode=freeform"), @"other_spelling «mode» Glovebox reads `mode` as `human.type` ~> «human.type»");
    assert_eq!((other("shape=hexagon, mode=other"), other("prompt=p, mode=freeform")), (String::new(), String::new()));
}

#[test]
fn a_command_and_a_child_pipeline_have_another_spelling() {
    let tool = |attributes: &str| value(&n(&format!("n [shape=parallelogram, {attributes}]")), "tool_command");
    assert_eq!(tool("script=a").as_deref(), Some("a"));
    assert_eq!(tool("script=a, tool_command=b").as_deref(), Some("b"));
    assert_eq!(tool("script=\" \""), None);
    assert_eq!(value(&n("n [prompt=p, script=a]"), "tool_command"), None);
    let child = |attributes: &str| {
        let found = n(&format!("n [{attributes}]"));
        (value(&found, "stack.child_dotfile"), value(&found, "stack.child_workflow"))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(child("shape=house, stack.child_workflow=\"a.dot\""), (some("a.dot"), None));
    assert_eq!(
        child("shape=house, stack.child_workflow=\"a.dot\", stack.child_dotfile=\"b.dot\""),
        (some("b.dot"), some("a.dot"))
    );
    assert_eq!(child("prompt=p, stack.child_workflow=\"a.dot\""), (None, some("a.dot")));
}

#[test]
fn only_glovebox_sets_the_attributes_of_inserted_stages() {
    let refused = |attributes: &str| {
        errors(&with(&format!("n [prompt=p, {attributes}] start -> n -> exit"))).contains("child_pipeline «")
    };
    for (attributes, expected) in [
        ("stack.child=\"a.dot\"", true),
        ("stack.child_of=n", true),
        ("stack.child_goal=g", true),
        ("stack.child_max_steps=3", true),
        ("type=\" stack.child_exit \"", true),
        ("type=\"acme.build\"", false),
        ("label=x", false),
    ] {
        assert_eq!(refused(attributes), expected, "{attributes}");
    }
}

#[test]
fn bounds_of_visits_and_a_required_stage_are_read() {
    let visits = |graph: &str, own: &str| n(&format!("graph [{graph}] n [prompt=p, {own}]")).bounds.visits_max;
    assert_eq!(visits("label=x", "label=x"), None);
    assert_eq!((visits("max_visits=3", "label=x"), visits("max_visits=3", "max_visits=1")), (Some(3), Some(1)));
    assert_eq!((visits("max_visits=3", "max_visits=0"), visits("max_visits=0", "label=x")), (None, None));
    let required =
        |attributes: &str| n(&format!("t [shape=parallelogram] n [prompt=p, {attributes}]")).checks.required_tool;
    assert_eq!(required("requires_tool_success=true, required_tool_node=t"), Some(NodeId::new("t")));
    assert_eq!(required("requires_tool_success=false, required_tool_node=t"), None);
    assert_eq!(required("required_tool_node=t"), None);
    assert_eq!(required("requires_tool_success=true"), None);
}

#[test]
fn classes_are_listed_once_and_written_into_the_attribute() {
    let found = n("subgraph { label=Own n [class=\"a, own,,a\"] }");
    assert_eq!((found.classes.join(" ").as_str(), value(&found, "class").as_deref()), ("a own", Some("a,own")));
    let alone = n("n [class=\"a, b,a\"]");
    assert_eq!((alone.classes.join(" ").as_str(), value(&alone, "class").as_deref()), ("a b", Some("a, b,a")));
    let derived = n("subgraph { label=Own n [prompt=p] }");
    assert_eq!((derived.classes.join(" ").as_str(), value(&derived, "class").as_deref()), ("own", Some("own")));
}

#[test]
fn a_shape_is_known_or_else_comes_from_the_id() {
    let shape = |body: &str, id: &str| {
        let pipeline = lowered(&format!("digraph G {{ {body} }}"));
        let found = node(&pipeline, id);
        (found.shape.to_string(), found.handler.name().to_owned(), value(found, "shape"))
    };
    let of = |shape: &str, handler: &str, written: Option<&str>| {
        (shape.to_owned(), handler.to_owned(), written.map(str::to_owned))
    };
    assert_eq!(shape("start [shape=circle]", "start"), of("Mdiamond", "start", Some("Mdiamond")));
    assert_eq!(shape("start [shape=hexagon]", "start"), of("hexagon", "wait.human", Some("hexagon")));
    assert_eq!(shape("node [shape=hexagon] start", "start"), of("Mdiamond", "start", Some("Mdiamond")));
    assert_eq!(shape("n [shape=circle]", "n"), of("circle", "codergen", Some("circle")));
    assert_eq!(shape("n [shape=\"\"]", "n"), of("box", "codergen", Some("")));
    assert_eq!(shape("n", "n"), of("box", "codergen", None));
}

#[test]
fn a_fan_in_with_a_prompt_or_a_type_judges_the_branches() {
    let handler = |attributes: &str| n(&format!("n [shape=tripleoctagon, {attributes}]")).handler;
    for (attributes, expected) in [
        ("label=x", "FanIn(None)"),
        ("prompt=\" \"", "FanIn(None)"),
        ("prompt=p", "FanIn(Some(\"codergen\"))"),
        ("type=\"acme.judge\"", "FanIn(Some(\"acme.judge\"))"),
        ("type=tool", "Component(\"tool\")"),
        ("type=\"stack.manager_loop\"", "Unavailable(\"stack.manager_loop\")"),
    ] {
        assert_eq!(format!("{:?}", handler(attributes)), expected, "{attributes}");
    }
    assert_eq!(format!("{:?}", n("n [type=\"acme.judge\"]").handler), "Component(\"acme.judge\")");
    assert_eq!(n("n [type=\"stack.child_exit\"]").handler, Handler::ChildExit);
}

#[test]
fn hold_outs_are_all_none_or_listed() {
    let named = |attributes: &str| n(&format!("n [prompt=p, {attributes}]")).access.holdouts.named;
    let listed = |names: &[&str]| {
        let entries = names.iter().map(|name| Entry::parse(name).expect("an entry of a scope"));
        Some(HoldoutSelection::Folders(entries.collect()))
    };
    assert_eq!((named("label=x"), named("holdouts=\" true \"")), (None, Some(HoldoutSelection::All)));
    assert_eq!([named("holdouts=false"), named("holdouts=\"\"")], [listed(&[]), listed(&[])]);
    assert_eq!(named("holdouts=\"a/,b/\""), listed(&["a/", "b/"]));
}

/// After the transforms of rule plugins, all values are final.
#[test]
fn a_pipeline_that_is_read_again_has_no_references_and_may_have_inserted_stages() {
    let source = with("n [prompt=\"@p.md $goal\", stack.child_goal=g] m [prompt=\"@p.md\"] start -> n -> m -> exit");
    let draft = transform::reread(Source::new(&source), &lowered(&source));
    let prompts = ["n", "m"].map(|id| node(&draft.pipeline, id).prompt.as_deref());
    assert_eq!(prompts, [Some("@p.md $goal"), Some("@p.md")]);
    assert!(draft.diagnostics.iter().all(|found| !found.is_error()), "{:?}", draft.diagnostics);
}
