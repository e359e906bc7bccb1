//! Which stages can read hold-outs, and the diagnostics about it: a table over handlers and opt-outs.

use crate::bind::effective::effective;
use crate::bind::inputs::{Effective, GrantInputs};
use crate::bind::request::{Holdouts, Place, Request};
use crate::bind::role::HandlerSource;
use crate::config::Config;
use crate::lock::wants::granted;
use crate::plan::Capability;
use crate::plan::HoldoutAccess::{self, Absent, ReadOnly};
use glovebox_host::inspect::{Inspection, StandardSections};
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::NodeId;
use glovebox_pipeline::reach::HoldoutReach;
use glovebox_record::scope::Entry;
use glovebox_record::{Digest, LimitSettings};
use std::collections::BTreeMap;

/// Returns what a node may do in a project whose folders `a/` and `b/c/` are named as hold-outs, and sealed or not.
fn of(attributes: &str, is_sealed: bool) -> Effective {
    let text = format!(
        "digraph g {{ scenarios=\"a/,b/c/\" s [shape=Mdiamond] n [{attributes}] e [shape=Msquare] s -> n -> e }}"
    );
    let checked = glovebox_pipeline::check(Source::new(&text), &glovebox_pipeline::Inputs::default());
    let pipeline = checked.pipeline.unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics));
    let node = pipeline.node(&NodeId::new("n")).expect("n");
    let config = Config::parse("[plugins.\"acme.x\"]\npath = \"p\"\n", "glovebox.toml").expect("config");
    let (imports, exports) = (Vec::new(), Vec::new());
    let digest = Digest::hash(b"x");
    let (standard, custom_sections) = (StandardSections::default(), Vec::new());
    let (bytes, world, core_instances, manifest) = (1, "agent", 1, None);
    let inspection =
        Inspection { digest, bytes, world, imports, exports, core_instances, manifest, standard, custom_sections };
    let scenarios = ["a/", "b/c/"].map(|text| Entry::parse(text).expect("entry"));
    let handler = node.handler.name();
    let source = HandlerSource { name: handler, plugin: config.plugins.get(handler) };
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
const PLUGIN: &str = "type=\"acme.x\"";

#[test]
fn builders_have_none_in_reach_and_verifiers_what_they_name() {
    let check = |attributes: &str, access: HoldoutAccess, hidden: &[&str], told: &[&str]| {
        let found = of(attributes, true);
        assert!(!found.diagnostics.iter().any(|found| found.is_error()), "{attributes}: {:?}", found.diagnostics);
        let hides: Vec<String> = found.scope.hidden.iter().skip(2).map(ToString::to_string).collect();
        let grants = found.grants.iter().map(|grant| grant.capability.to_string());
        let grants: Vec<String> = grants.filter(|grant| grant.contains("hold-outs")).collect();
        assert_eq!(
            (found.holdouts, hides, grants),
            (
                access,
                hidden.iter().map(|text| (*text).to_owned()).collect(),
                told.iter().map(|text| (*text).to_owned()).collect()
            ),
            "{attributes}"
        );
        let unsealed = of(attributes, false);
        assert_eq!(unsealed.holdouts, Absent, "{attributes}: nothing is sealed");
        let is_refused = unsealed.diagnostics.iter().any(|found| found.is_error());
        let lists = attributes.contains("holdouts=") && !attributes.contains("holdouts=\"\"");
        let lists = lists && !attributes.contains("holdouts=false");
        assert_eq!(is_refused, lists, "{attributes}: what a stage lists must be there");
    };
    let all = ["hold-outs a/", "hold-outs b/c/"];
    check("prompt=p", Absent, &["a/", "b/c/"], &[]);
    check(PLUGIN, Absent, &["a/", "b/c/"], &[]);
    check(TOOL, Absent, &["a/", "b/c/"], &[]);
    check("shape=octagon, command=x", Absent, &["a/", "b/c/"], &[]);
    check(&format!("{TOOL}, holdouts=true"), ReadOnly, &[], &all);
    check("shape=octagon, command=x, holdouts=true", ReadOnly, &[], &all);
    check(&format!("{TOOL}, holdouts=false"), Absent, &["a/", "b/c/"], &[]);
    check("shape=parallelogram, tool_command=\"ls a\", holdouts=false", Absent, &["a/", "b/c/"], &[]);
    let plan = "type=verification, verification.allowed_commands=";
    check(&format!("{plan}\"sh a/x.sh,go test\""), ReadOnly, &["b/c/"], &["hold-outs a/"]);
    check(&format!("{plan}\"sh c/x.sh\", verification.workdir=b"), ReadOnly, &["a/"], &["hold-outs b/c/"]);
    check(&format!("{plan}\"go test\""), Absent, &["a/", "b/c/"], &[]);
    check(&format!("{plan}\"sh a/x.sh\", holdouts=false"), Absent, &["a/", "b/c/"], &[]);
    check("prompt=p, codex.allow_read_scenarios=true", ReadOnly, &[], &all);
    check("prompt=p, codex.allow_read_scenarios=false", Absent, &["a/", "b/c/"], &[]);
    check("prompt=p, codex.block_read_paths=\"b/,docs\"", ReadOnly, &["b/", "docs"], &["hold-outs a/"]);
    check("prompt=p, codex.block_read_paths=\"a,b/c/\"", Absent, &["a", "b/c/"], &[]);
    check(&format!("{TOOL}, codex.block_read_paths=\"a/,b/\""), Absent, &["a/", "b/"], &[]);
    check(&format!("{PLUGIN}, codex.block_read_paths=\"a/,b/,x/\""), Absent, &["a/", "b/c/", "a/", "b/", "x/"], &[]);
    check(&format!("{TOOL}, holdouts=\"b/c/\""), ReadOnly, &["a/"], &["hold-outs b/c/"]);
    check(&format!("{TOOL}, holdouts=\"\""), Absent, &["a/", "b/c/"], &[]);
    check("shape=parallelogram, tool_command=\"sh a/run.sh\"", ReadOnly, &["b/c/"], &["hold-outs a/"]);
    check("shape=parallelogram, tool_command=\"sh a/run.sh; ls b\"", ReadOnly, &[], &all);
    check(&format!("{TOOL}, read_paths=\"src/\""), Absent, &["a/", "b/c/"], &[]);
    check("shape=parallelogram, tool_command=\"ls a\", read_paths=\"src/\"", Absent, &["a/", "b/c/"], &[]);
    check(&format!("{TOOL}, read_paths=\"src/\", holdouts=\"a/\""), ReadOnly, &["b/c/"], &["hold-outs a/"]);
    check(&format!("{TOOL}, holdouts=\"a/\", codex.block_read_paths=\"a/\""), Absent, &["b/c/", "a/"], &[]);
    let full = of(&format!("{TOOL}, holdouts=true, scenario_feedback=full"), true);
    assert!(full.grants.iter().any(|grant| grant.capability == Capability::TellHoldouts));
}

#[test]
fn a_plugin_is_never_given_hold_outs_and_folders_come_whole() {
    let check = |attributes: &str, said: &str| {
        let found = of(attributes, true);
        assert!(found.diagnostics.iter().any(|found| found.is_error() && found.message.contains(said)), "{attributes}");
        assert!(found.scope.hidden.iter().any(|entry| entry.to_string() == "a/"), "{attributes}: still hidden");
    };
    check(&format!("{PLUGIN}, codex.allow_read_scenarios=true"), "the plugin `acme.x` may never read hold-outs");
    check(&format!("{PLUGIN}, codex.block_read_paths=\"docs/\""), "may never read the hold-outs in `a/`");
    check("prompt=p, codex.block_read_paths=\"a/,b/c/d\"", "`b/c/d` is only a part of the hold-outs in `b/c/`");
}
