//! Tests of the selection of the next edge: the order of steps, ties, and the edges that a failed stage may follow.

use super::{accept, with};
use glovebox_pipeline::ir::{NodeId, Pipeline, Status};
use glovebox_pipeline::outcome::Answer;
use glovebox_pipeline::route::{FailureTarget, awaits_retry, failure_target, gate_target, normalize_label, select};

fn pipeline(edges: &str) -> Pipeline {
    let nodes = "node [shape=box, prompt=p] s a b c d gate [shape=diamond] gate -> exit start -> s";
    let joined = "start -> a start -> b start -> c start -> d start -> gate a -> exit b -> exit c -> exit d -> exit";
    accept(&with(&format!("{nodes} {joined} {edges}")))
}

fn context(key: &str) -> String {
    if key == "x" { "1".to_owned() } else { String::new() }
}

/// Checks the target and the deciding step from `s`, for an outcome.
#[track_caller]
fn check(edges: &str, (status, label, ids): (Status, &str, &[&str]), expected: (&str, &str)) {
    let pipeline = pipeline(edges);
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let answer = Answer { status, preferred_label: label, suggested_next_ids: &ids };
    let selection = select(&pipeline, &NodeId::new("s"), &answer, &context);
    let to = selection.edge.map_or("-", |edge| pipeline.edges[edge.0].to.as_str());
    assert_eq!((to, selection.how.as_str()), expected, "{edges}");
    assert_eq!(selection.candidates.len(), pipeline.outgoing(&NodeId::new("s")).count());
    let chosen = selection.candidates.iter().find(|candidate| Some(candidate.edge) == selection.edge);
    assert!(chosen.is_none_or(|candidate| candidate.matched), "the chosen edge matched: {edges}");
    assert!(selection.candidates.iter().all(|candidate| !candidate.reason.is_empty()));
}

const OK: (Status, &str, &[&str]) = (Status::Success, "", &[]);

#[test]
fn steps_come_in_order() {
    check("s -> a s -> b [condition=\"outcome=success\"]", OK, ("b", "condition"));
    check("s -> a [condition=\"outcome=success\"] s -> b [condition=\"x=1\", weight=1]", OK, ("b", "condition"));
    check("s -> b [condition=\"x=1\"] s -> a [condition=\"x=1\"]", OK, ("a", "condition"));
    check("s -> a s -> b [label=\"[F] Fix\"]", (Status::Success, " fix ", &[]), ("b", "preferred_label"));
    check("s -> a s -> b [label=\"Fix\", condition=\"x=2\"]", (Status::Success, "Fix", &[]), ("a", "weight"));
    check("s -> c s -> b [label=Fix]", (Status::Success, "Fix", &["c"]), ("b", "preferred_label"));
    check("s -> a s -> b s -> c", (Status::Success, "", &["z", "c", "b"]), ("c", "suggested_id"));
    check("s -> a s -> b [condition=\"x=2\"]", (Status::Success, "", &["b"]), ("a", "weight"));
    check("s -> a [weight=9] s -> b [default=true]", OK, ("b", "default"));
    check("s -> a s -> b [default=true]", (Status::Success, "", &["a"]), ("a", "suggested_id"));
    check("s -> b s -> a [weight=-1]", OK, ("b", "weight"));
    check("s -> c s -> b s -> a [weight=-1]", OK, ("b", "lexical"));
    check("s -> a [condition=\"outcome=fail\"]", OK, ("-", "none"));
    check("", OK, ("-", "none"));
    check(
        "s -> a [condition=\"outcome=partial_success\"] s -> b",
        (Status::PartialSuccess, "", &[]),
        ("a", "condition"),
    );
}

/// Checks the target after a failure of `s`.
#[track_caller]
fn check_failure(edges: &str, expected: (&str, &str)) {
    check_unsuccessful(Status::Fail, edges, expected);
}

#[track_caller]
fn check_unsuccessful(status: Status, edges: &str, expected: (&str, &str)) {
    let pipeline = pipeline(edges);
    let answer = Answer { status, preferred_label: "a", suggested_next_ids: &["a".to_owned()] };
    let route = failure_target(&pipeline, &NodeId::new("s"), &answer, &context);
    let target = match &route.target {
        FailureTarget::Edge(edge) => pipeline.edges[edge.0].to.as_str(),
        FailureTarget::Node(node) => node.as_str(),
        FailureTarget::Stop => "-",
    };
    assert_eq!((target, route.how.as_str()), expected, "{edges}");
    assert_eq!(route.candidates.len(), pipeline.outgoing(&NodeId::new("s")).count());
}

#[test]
fn used_up_retries_follow_their_own_edges_and_else_those_of_a_failure() {
    let retry = |edges: &str, expected: (&str, &str)| check_unsuccessful(Status::Retry, edges, expected);
    let both = "s -> a [condition=\"outcome=fail\"] s -> b [condition=\"outcome=retry\"]";
    retry(both, ("b", "condition"));
    check_failure(both, ("a", "condition"));
    retry("s -> a [condition=\"outcome=fail\"] s -> b [condition=\"outcome=retry && x=2\"]", ("a", "condition"));
    retry("s -> b [condition=\"outcome=retry\"] s [retry_target=c]", ("b", "condition"));
    retry("s -> b [condition=\"outcome=retry && x=2\"] s [retry_target=c]", ("c", "retry_target"));
    retry("s -> a s -> gate", ("gate", "diamond"));
    retry("s -> a", ("-", "none"));
    retry("s -> b [condition=\"context.outcome=fail\"]", ("b", "condition"));
    // From a conditional node.
    check(both, (Status::Retry, "", &[]), ("b", "condition"));
    check("s -> a [condition=\"outcome=fail\"] s -> b", (Status::Retry, "", &[]), ("a", "condition"));
}

#[test]
fn a_stage_keeps_the_outcome_retry_only_where_an_edge_waits_for_it() {
    let waits = |edges: &str| awaits_retry(&pipeline(edges), &NodeId::new("s"));
    for (edges, expected) in [
        ("s -> a [condition=\"outcome=retry\"]", true),
        ("s -> a [condition=\"outcome!=fail && x=1\"]", true),
        ("s -> a [condition=\"outcome!=success\"]", false),
        ("s -> a [condition=\"outcome=fail\"] a -> b [condition=\"outcome=retry\"]", false),
        ("s -> a [condition=\"x=1\"]", false),
        ("s -> gate gate -> b [condition=\"outcome=retry\"]", true),
        ("s -> gate s [retry_target=b] gate -> b [condition=\"outcome=retry\"]", false),
        ("s -> gate more [shape=diamond] gate -> more more -> gate more -> b [condition=\"outcome=retry\"]", true),
        ("s -> gate gate -> gate", false),
        ("s -> gate s [fallback_retry_target=b] gate -> b [condition=\"outcome=retry\"]", false),
        ("s -> gate [condition=\"x=1\"] gate -> b [condition=\"outcome=retry\"]", false),
        ("s -> b b -> c [condition=\"outcome=retry\"]", false),
        (
            "s -> gate more [shape=diamond] gate -> more [condition=\"x=1\"] more -> b [condition=\"outcome=retry\"]",
            true,
        ),
    ] {
        assert_eq!(waits(edges), expected, "{edges}");
    }
}

#[test]
fn a_failure_follows_fail_edges_targets_and_diamonds_only() {
    check_failure("s -> a s -> b [condition=\"outcome=fail\"]", ("b", "condition"));
    check_failure("s -> a s -> b [condition=\"outcome!=success\"]", ("b", "condition"));
    check_failure("s -> b [condition=\"outcome=fail\"] s [retry_target=c]", ("b", "condition"));
    check_failure("s -> a s [retry_target=c, fallback_retry_target=d]", ("c", "retry_target"));
    check_failure("s -> a s [fallback_retry_target=d]", ("d", "fallback_retry_target"));
    check_failure("s -> a s [retry_target=nowhere, fallback_retry_target=d]", ("d", "fallback_retry_target"));
    check_failure("s -> a s -> gate", ("gate", "diamond"));
    check_failure("s -> a [label=a, default=true, weight=5]", ("-", "none"));
    check_failure("s -> a [condition=\"outcome=success\"]", ("-", "none"));
    check_failure("s -> a [condition=\"x=1\"]", ("-", "none"));
    check_failure("s -> a [condition=\"outcome=fail && x=1\"]", ("a", "condition"));
    check_failure("s -> a [condition=\"outcome=fail && x=2\"]", ("-", "none"));
    check_failure("", ("-", "none"));
}

#[test]
fn an_unmet_gate_leads_to_the_node_s_targets_then_the_graph_s() {
    let target = |edges: &str| gate_target(&pipeline(edges), &NodeId::new("s")).map(ToString::to_string);
    assert_eq!(target("s [retry_target=a, fallback_retry_target=b]").as_deref(), Some("a"));
    assert_eq!(target("s [fallback_retry_target=b] graph [retry_target=c]").as_deref(), Some("b"));
    assert_eq!(target("graph [retry_target=c, fallback_retry_target=d]").as_deref(), Some("c"));
    assert_eq!(target("graph [retry_target=nowhere, fallback_retry_target=d]").as_deref(), Some("d"));
    assert_eq!(target(""), None);
}

#[test]
fn labels_are_compared_without_accelerators() {
    for label in ["Approve", " approve ", "[A] Approve", "[OK] Approve", "A) Approve", "A - Approve", "APPROVE"] {
        assert_eq!(normalize_label(label), "approve", "{label}");
    }
    for (label, kept) in [
        ("[A]", "[a]"),
        ("[draft] x", "[draft] x"),
        ("A-B", "a-b"),
        ("", ""),
        ("Ä) Ü", "ü"),
        ("[a-] x", "[a-] x"),
        ("[!] x", "[!] x"),
    ] {
        assert_eq!(normalize_label(label), kept, "{label}");
    }
}

#[test]
fn every_candidate_has_its_reason() {
    let pipeline = pipeline("s -> a [condition=\"outcome=fail\"] s -> b s -> c [weight=1]");
    let answer = Answer { status: Status::Success, preferred_label: "", suggested_next_ids: &[] };
    let selection = select(&pipeline, &NodeId::new("s"), &answer, &context);
    let lines: Vec<String> =
        selection.candidates.iter().map(|c| format!("{} [{}] {}", c.matched, c.condition_text, c.reason)).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    false [outcome=fail] condition does not hold for outcome success
    true [] another eligible edge has more weight or an earlier target id
    true [] chosen by weight
    ");
}

fn answer(status: Status) -> Answer<'static> {
    Answer { status, preferred_label: "", suggested_next_ids: &[] }
}

#[test]
fn a_candidate_says_which_step_passed_it_over() {
    let reasons = |edges: &str| {
        let selection = select(&pipeline(edges), &NodeId::new("s"), &answer(Status::Success), &context);
        let lines = selection.candidates.iter().map(|c| format!("{} {}", c.matched, c.reason));
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(
        reasons("s -> a [condition=\"x=1\"] s -> b [condition=\"x=1\"] s -> c [condition=\"x=2\"] s -> d"), @"
    true condition holds
    true another eligible edge has more weight or an earlier target id
    false condition does not hold for outcome success
    false an edge with a condition that holds takes precedence
    ");
    insta::assert_snapshot!(reasons("s -> a s -> b [default=true]"), @"
    false another edge is chosen by default
    true chosen by default
    ");
    insta::assert_snapshot!(reasons("s -> a [condition=\"x=2\"]"), @"false condition does not hold for outcome success");
}

#[test]
fn a_candidate_says_why_a_failed_stage_follows_it_or_not() {
    let reasons = |edges: &str| {
        let route = failure_target(&pipeline(edges), &NodeId::new("s"), &answer(Status::Fail), &context);
        let lines = route.candidates.iter().map(|c| format!("{} {}", c.matched, c.reason));
        lines.collect::<Vec<_>>().join("\n")
    };
    let failing = "s -> a [condition=\"outcome=fail\"] s -> b [condition=\"outcome=fail\"]";
    insta::assert_snapshot!(
        reasons(&format!("{failing} s -> c [condition=\"x=1\"] s -> d [condition=\"outcome=success\"] s -> gate")), @"
    true condition holds
    true condition holds
    false condition holds, but a failed stage follows only conditions that read `outcome`
    false condition does not hold for outcome fail
    false a failed stage does not follow a plain edge
    ");
    insta::assert_snapshot!(reasons("s -> a s -> gate"), @"
    false a failed stage does not follow a plain edge
    true a plain edge into a diamond
    ");
}
