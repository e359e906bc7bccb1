//! Which stages are separated from the program that they judge, and how.

use crate::bind::effective::effective;
use crate::bind::inputs::{Effective, GrantInputs};
use crate::bind::request::{Holdouts, Place, Request};
use crate::bind::role::HandlerSource;
use crate::config::Config;
use crate::lock::wants::granted;
use crate::plan::Separation;
use glovebox_host::inspect::{Import, Inspection, Manifest, StandardSections};
use glovebox_host::interfaces::ImportState;
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::NodeId;
use glovebox_pipeline::ir::holdouts::Writes;
use glovebox_pipeline::reach::HoldoutReach;
use glovebox_record::scope::Entry;
use glovebox_record::{Digest, LimitSettings};
use std::collections::BTreeMap;

/// Returns what a node may do in a project whose folder `a/` is a sealed hold-out or does not exist.
fn of(attributes: &str, is_sealed: bool) -> Effective {
    let text = format!("digraph g {{ s [shape=Mdiamond] n [{attributes}] e [shape=Msquare] s -> n -> e }}");
    let checked = glovebox_pipeline::check(Source::new(&text), &glovebox_pipeline::Inputs::default());
    let pipeline = checked.pipeline.unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics));
    let node = pipeline.node(&NodeId::new("n")).expect("n");
    let config = Config::parse("", "glovebox.toml").expect("config");
    let inspection = Inspection {
        digest: Digest::hash(b"x"),
        bytes: 1,
        world: "agent",
        imports: vec![Import { name: "glovebox:plugin/exec@0.1.0".to_owned(), state: ImportState::Provided }],
        exports: Vec::new(),
        core_instances: 1,
        manifest: Some(Manifest::new("tool", "0.1.0", serde_json::from_str(r#"{"commands":["*"]}"#).expect("wants"))),
        standard: StandardSections::default(),
        custom_sections: Vec::new(),
    };
    let scenarios = [Entry::parse("a/").expect("entry")];
    let source = HandlerSource { name: node.handler.name(), plugin: None };
    let reach = HoldoutReach::new(&pipeline);
    let holdouts = Holdouts { reach: &reach, sealed: if is_sealed { &scenarios } else { &[] }, verify: None };
    effective(GrantInputs {
        agents: &BTreeMap::new(),
        has_policies: false,
        providers: &[],
        plugins: &BTreeMap::new(),
        servers: &BTreeMap::new(),
        verify: None,
        request: &Request::new(node, source, holdouts),
        place: Place::for_node(node),
        source,
        inspection: &inspection,
        granted: &granted(&inspection, source.plugin),
        limits: &LimitSettings::default(),
        sandbox: &config.sandbox,
        holdouts,
    })
}

const TOOL: &str = "shape=parallelogram, tool_command=x";

#[test]
fn a_stage_beside_hold_outs_writes_nothing_unless_it_says_so() {
    let check = |attributes: &str, is_sealed: bool, write: &[&str], writes: Option<Writes>| {
        let found = of(&format!("{TOOL}, {attributes}"), is_sealed);
        let scope: Vec<String> = found.scope.write.iter().map(ToString::to_string).collect();
        assert_eq!(
            (scope, found.separation.map(|separation| separation.writes)),
            (write.iter().map(ToString::to_string).collect(), writes)
        );
    };
    check("label=l", false, &["./"], None);
    check("allowed_write_paths=\"out/\"", true, &["out/"], None);
    check("holdouts=true", true, &[], Some(Writes::Scratch));
    check("holdouts=true, allowed_write_paths=\"out/\"", true, &["out/"], Some(Writes::Scratch));
    check("holdouts=true, allowed_write_paths=\"out/\", scenario_writes=commit", true, &["out/"], Some(Writes::Commit));
    check("verify_subject=\"sh x\"", false, &["./"], Some(Writes::Commit));
    check("holdouts=true, codex.block_read_paths=\"a/\"", true, &["./"], None);
    assert_eq!(of("prompt=p, codex.allow_read_scenarios=true", true).separation, None, "a builder judges nothing");
}

#[test]
fn only_a_stage_that_sees_no_file_of_the_project_is_isolated() {
    let check = |attributes: &str, expected: bool| {
        let separation = of(&format!("{TOOL}, {attributes}"), true).separation;
        assert_eq!(separation.map(|separation| separation.is_isolated), Some(expected), "{attributes}");
    };
    check("holdouts=true", false);
    check("read_paths=\"a/\"", true);
    check("read_paths=\"a/sub/\"", true);
    check("read_paths=\"a/,src/\"", false);
    check("read_paths=\"a/\", allowed_write_paths=\"out/\"", false);
    check("read_paths=\"a/\", scratch=\"src/\"", false);
    check("read_paths=\"a/\", cache=\"target/\"", true);
}

#[test]
fn the_program_under_test_and_its_port_are_the_nodes() {
    let separation = of(
        &format!(
            "{TOOL}, verify_subject=\"sh x\", verify_subject_port=8080, cache=\"c/\", cache_from=base, holdouts=true"
        ),
        true,
    );
    let expected = Separation {
        command: Some("sh x".to_owned()),
        port: Some(8080),
        is_isolated: false,
        writes: Writes::Scratch,
        is_scope_named: false,
    };
    assert!(separation.command_access.cache_from_base);
    assert_eq!(separation.separation, Some(expected));
    let without = of(&format!("{TOOL}, cache=\"c/\", cache_from=base"), false);
    assert!(without.command_access.cache_from_base && without.separation.is_none());
    let without = of("prompt=\"x\", cache=\"c/\", cache_from=base", false);
    assert!(without.diagnostics.iter().any(|found| found.message.contains("`cache_from` has no effect")));
}
