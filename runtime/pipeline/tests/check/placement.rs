//! Tests of `runs_on`: what a stage inherits, which nodes can have it, and the place of each mistake.

use super::{accept, errors, node, with, with_graph, with_node};
use glovebox_pipeline::format::format;
use glovebox_pipeline::transform::SettledGraph;
use glovebox_pipeline::{Source, transform};
use insta::assert_snapshot;

/// Returns what the node needs, in the canonical form.
fn need(source: &str, id: &str) -> String {
    node(&accept(source), id).need.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn a_node_adds_to_its_graph() {
    for (graph, own, expected) in [
        ("", "", ""),
        ("", "gpu", "gpu"),
        ("gpu", "", "gpu"),
        ("gpu, arch=arm64", "ssd, tier=bwrap", "gpu, ssd, arch=aarch64, tier=bwrap"),
        ("tier=full", "tier=landlock, arch=amd64", "arch=x86_64, tier=full"),
        ("arch=arm64", "arch=aarch64", "arch=aarch64"),
    ] {
        let body = format!("graph [runs_on=\"{graph}\"] n [prompt=p, allowed_write_paths=\"\", runs_on=\"{own}\"]");
        let source = with(&format!("{body} start -> n -> exit"));
        assert_eq!(need(&source, "n"), expected, "{graph} + {own}");
        assert_eq!(need(&source, "start"), "", "a start makes no attempts");
        let pipeline = accept(&source);
        let settled = SettledGraph::from_pipeline(&pipeline);
        let read = transform::apply(&pipeline, &settled).expect("the same graph").lowered.pipeline;
        assert_eq!(node(&read, "n").need, node(&pipeline, "n").need, "{source}");
    }
}

#[test]
fn a_block_is_replaced_by_the_node_and_skips_nodes_without_attempts() {
    let source = with(
        "node [runs_on=gpu] n [prompt=p, allowed_write_paths=\"\"] m [prompt=p, allowed_write_paths=\"\", runs_on=ssd] \
         d [shape=diamond] start -> n -> m -> d -> exit",
    );
    assert_eq!(["n", "m", "d"].map(|id| need(&source, id)), ["gpu", "ssd", ""]);
}

/// A verification runs on the machine of its stage. A diamond has an attempt only if it is verified.
#[test]
fn a_verification_needs_what_its_stage_needs() {
    let verified = "d [shape=diamond, verify_command=true, runs_on=gpu] start -> d -> exit";
    let source = with(&format!("graph [runs_on=\"arch=arm64\"] {verified}"));
    let pipeline = accept(&source);
    let stages: Vec<String> =
        pipeline.stages().filter_map(|stage| Some(format!("{}: {}", stage.id, stage.need.as_ref()?))).collect();
    assert_eq!(stages, ["d: gpu, arch=aarch64", "d.verify: gpu, arch=aarch64"]);
    assert_snapshot!(errors(&with("d [shape=diamond, runs_on=gpu] start -> d -> exit")), @"runs_on «gpu» `runs_on` has no effect on `d`, which makes no attempts");
}

#[test]
fn mistakes_are_reported_at_their_entry() {
    assert_snapshot!(errors(&with_node("runs_on=\"gpu, GPU\"")), @"attribute_value «GPU» `runs_on`: `GPU` is not a label: 1 to 63 characters of a-z, 0-9, `-`, `_` and `.` are expected, the first a letter or a digit");
    assert_snapshot!(errors(&with_node("runs_on=\"gpu,,ssd\"")), @"attribute_value «» `runs_on`: an entry is empty");
    assert_snapshot!(errors(&with_node("runs_on=\"os=linux\"")), @"attribute_value «os=linux» `runs_on`: unknown key `os`: `arch`, `program` or `tier` is expected");
    assert_snapshot!(errors(&with_node("runs_on=\"arch=sparc\"")), @"attribute_value «arch=sparc» `runs_on`: unknown architecture `sparc`: `x86_64` or `aarch64` is expected");
    assert_snapshot!(errors(&with_node("runs_on=arm64")), @"attribute_value «arm64» `runs_on`: `arm64` is not a label: `arch=aarch64` is expected");
    assert_snapshot!(errors(&with_node("runs_on=\"arch=arm64, arch=amd64\"")), @"runs_on «arch=amd64» `runs_on`: no machine has both `arch=aarch64` and `arch=x86_64`");
    assert_snapshot!(errors(&with_graph("runs_on=\"tier=none\"")), @"attribute_value «tier=none» `runs_on`: unknown tier `none`: `full`, `bwrap` or `landlock` is expected");
    assert_snapshot!(errors(&with("h [shape=hexagon, runs_on=gpu] start -> h -> exit")), @"runs_on «gpu» `runs_on` has no effect on `h`, which makes no attempts");
    let conflict =
        "graph [runs_on=\"arch=arm64\"] n [prompt=p, allowed_write_paths=\"\", runs_on=\"gpu, arch=x86_64\"]";
    assert_snapshot!(errors(&with(&format!("{conflict} start -> n -> exit"))), @r#"runs_on «"gpu, arch=x86_64"» the graph and `n` need `arch=aarch64` and `arch=x86_64`, and no machine has both"#);
    for (source, says) in [
        (with_node("runs_on=GPU"), "gpu, arch=arm64, tier=full"),
        (with("h [shape=hexagon, runs_on=gpu] start -> h -> exit"), "remove it, or set it on a stage"),
    ] {
        let checked = super::run(&source);
        let help = checked.diagnostics.iter().find(|found| found.is_error()).and_then(|found| found.help.clone());
        assert!(help.as_ref().is_some_and(|help| help.contains(says)), "{help:?}");
    }
}

#[test]
fn formatting_keeps_the_text() {
    let source = "digraph G { start; exit; n [runs_on=\"gpu,arch=arm64\"]; start -> n -> exit }";
    let formatted = format(Source::new(source)).expect("a pipeline");
    assert!(formatted.contains("runs_on=\"gpu,arch=arm64\""), "{formatted}");
}
