//! Tests the intersection of wants, grants and attributes: a table of examples, and the property that a result never allows
//! more than any input.

use super::*;
use crate::bind::role::HandlerSource;
use crate::bind::{Holdouts, Request};
use crate::config::sandbox::SandboxSetting;
use crate::config::{ComponentSource, PluginEntry};
use crate::lock::wants::granted;
use glovebox_host::call::CommandGrant;
use glovebox_host::grants::Grants;
use glovebox_host::inspect::{Import, Manifest, StandardSections};
use glovebox_host::interfaces::ImportState;
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::{Node, NodeId};
use glovebox_pipeline::reach::HoldoutReach;
use glovebox_record::path::ScopePath;
use glovebox_record::{Digest, LimitName};
use proptest::prelude::*;
use std::collections::BTreeMap;

const FULL: &str = r#"{"filesystem":"posix","read":["./"],"write":["./"],"commands":["*"],"model":true}"#;

fn grants(json: &str) -> Grants {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn inspection(wants: Option<&str>, interfaces: &[&str]) -> Inspection {
    let import = |name: &&str| Import { name: format!("glovebox:plugin/{name}@0.1.0"), state: ImportState::Provided };
    let manifest = wants.map(|wants| Manifest::new("acme.review", "0.1.0", grants(wants)));
    let imports = interfaces.iter().map(import).collect();
    Inspection {
        digest: Digest::hash(b"x"),
        bytes: 1,
        world: "agent",
        imports,
        exports: Vec::new(),
        core_instances: 1,
        manifest,
        standard: StandardSections::default(),
        custom_sections: Vec::new(),
    }
}

fn plugin(wants: Option<&str>, granted: Option<&str>) -> PluginEntry {
    PluginEntry {
        source: ComponentSource::File("p.wasm".to_owned()),
        wants: wants.map(grants),
        grants: granted.map(grants),
        role: Role::Builder,
        tools: glovebox_host::tools::AllowedTools::default(),
        line: 4,
    }
}

/// Parses a node with these attributes from a pipeline.
fn node(attributes: &str) -> Node {
    let text = format!("digraph g {{ s [shape=Mdiamond] n [{attributes}] e [shape=Msquare] s -> n -> e }}");
    let checked = glovebox_pipeline::check(Source::new(&text), &glovebox_pipeline::Inputs::default());
    let pipeline = checked.pipeline.unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics));
    pipeline.node(&NodeId::new("n")).expect("n").clone()
}

fn of(node: &Node, handler: &str, inspection: &Inspection, plugin: Option<&PluginEntry>) -> Effective {
    within(&LimitSettings::default(), node, HandlerSource { name: handler, plugin }, inspection)
}

/// Returns the effective grants under these limits of the operator.
fn within(limits: &LimitSettings, node: &Node, source: HandlerSource<'_>, inspection: &Inspection) -> Effective {
    let reach = reach();
    let holdouts = Holdouts { reach: &reach, sealed: &[], verify: None };
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
        inspection,
        granted: &granted(inspection, source.plugin),
        limits,
        sandbox: &SandboxSetting::default(),
        holdouts,
    })
}

/// Returns the paths that verifiers can read by default.
fn reach() -> HoldoutReach {
    let text = "digraph g { s [shape=Mdiamond] e [shape=Msquare] s -> e }";
    let checked = glovebox_pipeline::check(Source::new(text), &glovebox_pipeline::Inputs::default());
    HoldoutReach::new(&checked.pipeline.expect("a pipeline"))
}

fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(ToString::to_string).collect()
}

/// Checks the read and write scope of a plugin: the author's wants, the operator's grants, the node's attributes, then the
/// expected scopes.
fn check(wants: &str, granted: Option<&str>, attributes: &str, read: &[&str], write: &[&str]) {
    let (inspection, plugin) = (inspection(Some(wants), &["files"]), plugin(None, granted));
    let node = node(&format!("type=\"acme.review\", {attributes}"));
    let found = of(&node, "acme.review", &inspection, Some(&plugin));
    assert_eq!((texts(&found.scope.read), texts(&found.scope.write)), (owned(read), owned(write)), "{attributes}");
}

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn third_party_paths() {
    let some = r#"{"filesystem":"posix","read":["src/"],"write":["REVIEW.md","out/"]}"#;
    check(FULL, None, "allowed_write_paths=\"a\"", &[], &[]);
    check(FULL, Some("{}"), "allowed_write_paths=\"a\"", &[], &[]);
    check(FULL, Some(some), "label=x", &["src/"], &[]);
    check(FULL, Some(some), "allowed_write_paths=\"REVIEW.md\"", &["src/"], &["REVIEW.md"]);
    check(FULL, Some(some), "allowed_write_paths=\"out/log,src/\"", &["src/"], &["out/log"]);
    check(
        FULL,
        Some(some),
        "read_paths=\"src/lib.rs,docs/\", allowed_write_paths=\"REVIEW.md,out/\"",
        &["src/lib.rs"],
        &["REVIEW.md", "out/"],
    );
    check(some, Some(FULL), "allowed_write_paths=\"out/\"", &["src/"], &["out/"]);
    check("{}", Some(FULL), "allowed_write_paths=\"out/\"", &[], &[]);
}

#[test]
fn a_write_grant_nobody_uses_is_told() {
    let plugin = plugin(None, Some(r#"{"filesystem":"posix","write":["REVIEW.md"]}"#));
    let found = of(&node("type=\"acme.review\""), "acme.review", &inspection(Some(FULL), &[]), Some(&plugin));
    let told = &found.diagnostics[0];
    assert_eq!((&*told.rule, told.is_error()), ("write_scope_missing", false));
    assert_eq!(told.help.as_deref(), Some("add `allowed_write_paths=\"REVIEW.md\"` to the node"));
}

#[test]
fn without_a_manifest_the_operators_wants_stand_in_and_with_one_they_narrow() {
    let granted = Some(r#"{"filesystem":"posix","read":["src/","docs/"]}"#);
    let stand_in = plugin(Some(r#"{"filesystem":"workspace","read":["src/"]}"#), granted);
    let found = of(&node("type=\"acme.review\""), "acme.review", &inspection(None, &[]), Some(&stand_in));
    assert_eq!((found.tier, texts(&found.scope.read)), (FileTier::Workspace, owned(&["src/"])));
    let narrower = inspection(Some(r#"{"filesystem":"posix","read":["src/lib.rs"]}"#), &[]);
    let found = of(&node("type=\"acme.review\""), "acme.review", &narrower, Some(&stand_in));
    assert_eq!((found.tier, texts(&found.scope.read)), (FileTier::Workspace, owned(&["src/lib.rs"])));
    let nothing =
        of(&node("type=\"acme.review\""), "acme.review", &inspection(None, &[]), Some(&plugin(None, granted)));
    assert_eq!((nothing.tier, nothing.scope.read.len()), (FileTier::None, 0));
}

#[test]
fn first_party_defaults() {
    let codergen = inspection(Some(FULL), &["files", "exec", "llm"]);
    let open = of(&node("prompt=x"), "codergen", &codergen, None);
    assert_eq!((texts(&open.scope.read), texts(&open.scope.write)), (owned(&["./"]), owned(&["./"])));
    assert!(open.model && open.tier == FileTier::Posix && !crate::plan::binding::runs_commands(&open.commands));
    assert_eq!(texts(&open.scope.hidden), owned(&[".git/", ".glovebox/", "scripts/scenarios/"]));
    let narrow = of(&node("prompt=x, allowed_write_paths=\"src/\", read_paths=\"docs/\""), "codergen", &codergen, None);
    assert_eq!((texts(&narrow.scope.read), texts(&narrow.scope.write)), (owned(&["docs/"]), owned(&["src/"])));
    let tool = inspection(Some(r#"{"filesystem":"none","commands":["*"]}"#), &["exec"]);
    let found = of(
        &node("shape=parallelogram, tool_command=\"cargo test\", allowed_write_paths=\"target/\""),
        "tool",
        &tool,
        None,
    );
    assert_eq!((found.tier, found.model), (FileTier::None, false));
    assert_eq!((texts(&found.scope.read), texts(&found.scope.write)), (owned(&["./"]), owned(&["target/"])));
    assert_eq!(texts(&found.scope.hidden), owned(&[".git/", ".glovebox/", "scripts/scenarios/"]), "it names none");
}

#[test]
fn commands_are_what_the_author_wrote_or_granted_prefixes() {
    let tool = inspection(Some(FULL), &["exec"]);
    let found = of(&node("shape=parallelogram, tool_command=\"a && b\", allowed_commands=\"*\""), "tool", &tool, None);
    assert_eq!(found.commands, CommandGrant { shell_texts: owned(&["a && b"]), ..CommandGrant::default() });
    let verify = of(&node("shape=octagon, command=\"make check\""), "verify", &tool, None);
    assert_eq!(verify.commands.shell_texts, ["make check"]);
    let agent = |attributes: &str| of(&node(attributes), "codergen", &tool, None).commands;
    assert_eq!(agent("prompt=x"), CommandGrant::default());
    assert_eq!(
        agent("prompt=x, allowed_commands=\"cargo test,git status\"").argv_prefixes,
        [["cargo", "test"], ["git", "status"]]
    );
    assert!(agent("prompt=x, allowed_commands=\"*\"").any);
    let granted = plugin(None, Some(r#"{"commands":["cargo"]}"#));
    let third = |attributes: &str, interfaces: &[&str]| {
        let node = node(&format!("type=\"acme.review\", tool_command=\"rm -rf /\", {attributes}"));
        of(&node, "acme.review", &inspection(Some(FULL), interfaces), Some(&granted)).commands
    };
    assert_eq!(third("label=x", &["exec"]), CommandGrant::default(), "the node does not say so");
    assert_eq!(third("allowed_commands=\"*\"", &["files"]), CommandGrant::default(), "it imports no exec");
    let narrowed = third("allowed_commands=\"cargo test,rustc\"", &["exec"]);
    assert_eq!(narrowed.argv_prefixes, [["cargo", "test"]]);
    assert!(!narrowed.any && narrowed.shell_texts.is_empty());
    assert_eq!(third("allowed_commands=\"*\"", &["exec"]).argv_prefixes, [["cargo"]], "a shell is not granted");
}

#[test]
fn limits_lower_and_only_the_operator_raises() {
    let bound = |attributes: &str, operator: &[(LimitName, u64)], granted: Option<&str>, name: LimitName| {
        let limits = operator.iter().copied().collect();
        let (node, inspection, plugin) = (node(attributes), inspection(Some(FULL), &[]), plugin(None, granted));
        let handler = if granted.is_some() { "acme.review" } else { "codergen" };
        let plugin = granted.is_some().then_some(&plugin);
        let found = within(&limits, &node, HandlerSource { name: handler, plugin }, &inspection);
        (found.limits.get(name), found.diagnostics.first().map(|told| told.rule.clone()))
    };
    assert_eq!(bound("prompt=x", &[], None, LimitName::WallMs), (1_800_000, None));
    assert_eq!(
        bound("prompt=x, timeout=\"2h\"", &[], None, LimitName::WallMs),
        (7_200_000, None),
        "a node's timeout stands in for the default"
    );
    assert_eq!(
        bound("prompt=x, timeout=\"2h\"", &[(LimitName::WallMs, 10_000)], None, LimitName::WallMs),
        (10_000, None)
    );
    assert_eq!(
        bound("prompt=x, timeout=\"5s\"", &[(LimitName::WallMs, 10_000)], None, LimitName::WallMs),
        (5_000, None)
    );
    assert_eq!(bound("prompt=x, max_turns=3", &[], None, LimitName::Turns), (3, None));
    assert_eq!(bound("prompt=x, max_turns=90", &[], None, LimitName::ToolRounds), (90, None));
    assert_eq!(bound("prompt=x, max_turns=90", &[(LimitName::Turns, 50)], None, LimitName::Turns), (50, None));
    assert_eq!(bound("prompt=x, limits.memory_bytes=1048576", &[], None, LimitName::MemoryBytes), (1_048_576, None));
    let raised = bound("prompt=x, limits.turns=9999", &[], None, LimitName::Turns);
    assert_eq!(raised, (40, Some("limit_not_raised".into())));
    assert_eq!(
        bound("prompt=x, limits.turns=9999", &[(LimitName::Turns, 10000)], None, LimitName::Turns),
        (9999, None)
    );
    let plugin = r#"{"limits":{"memory_bytes":"512MiB"}}"#;
    assert_eq!(bound("type=\"acme.review\"", &[], Some(plugin), LimitName::MemoryBytes).0, 512 << 20);
    assert_eq!(
        bound("type=\"acme.review\"", &[(LimitName::MemoryBytes, 64 << 20)], Some(plugin), LimitName::MemoryBytes).0,
        64 << 20
    );
    assert_eq!(bound("type=\"acme.review\"", &[], Some("{}"), LimitName::WallMs).0, 60_000);
}

#[test]
fn every_grant_says_where_it_comes_from() {
    let plugin = plugin(None, Some(r#"{"filesystem":"posix","read":["src/"],"write":["REVIEW.md"]}"#));
    let node = node("type=\"acme.review\", allowed_write_paths=\"REVIEW.md\", timeout=\"5s\"");
    let found = of(&node, "acme.review", &inspection(Some(FULL), &["files"]), Some(&plugin));
    let lines: Vec<String> =
        found.grants.iter().map(|grant| format!("{}: {}", grant.capability, grant.origin)).collect();
    assert_eq!(
        lines,
        [
            "read src/: wants of `acme.review` and `grants.read` of glovebox.toml:4, `read_paths` is not set",
            "write REVIEW.md: wants of `acme.review` and `grants.write` of glovebox.toml:4, `allowed_write_paths` of the node",
            "limit wall_ms 5000: `timeout` of the node",
        ]
    );
}

fn path_list() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(
        prop::sample::select(vec!["./", "a/", "a/b/", "a/b/c", "a/b", "d", "d/", ".git/", "scripts/"]),
        0..4,
    )
}

fn side() -> impl Strategy<Value = Grants> {
    let commands = prop::collection::vec(prop::sample::select(vec!["*", "cargo", "cargo test", "git"]), 0..3);
    let tier = prop::sample::select(vec!["none", "workspace", "posix"]);
    (tier, path_list(), path_list(), commands, any::<bool>(), prop::option::of(1..100u64)).prop_map(
        |(tier, read, write, commands, model, turns)| {
            let (read, write) = if tier == "none" { (Vec::new(), Vec::new()) } else { (read, write) };
            let limits = turns.map(|turns| serde_json::json!({ "turns": turns })).unwrap_or_else(|| serde_json::json!({}));
            let json = serde_json::json!({
                "filesystem": tier, "read": read, "write": write, "commands": commands, "model": model, "limits": limits,
            });
            grants(&json.to_string())
        },
    )
}

/// Returns the access that these lists give to a path: 0 nothing, 1 read, 2 write.
fn most(read: &[Entry], write: &[Entry], path: &ScopePath) -> u8 {
    let access = Scope::new(read.to_vec(), write.to_vec(), Vec::new()).access(path);
    match access {
        glovebox_record::scope::Access::Write => 2,
        glovebox_record::scope::Access::Read => 1,
        _ => 0,
    }
}

fn is_covered(prefix: &[String], commands: &[String]) -> bool {
    commands.iter().any(|command| {
        command == "*"
            || command.split_whitespace().zip(prefix).filter(|(a, b)| a == b).count()
                == command.split_whitespace().count()
    })
}

proptest! {
    #[test]
    fn effective_is_at_most_each_side(
        wants in side(), granted in side(), read in prop::option::of(path_list()), write in prop::option::of(path_list()),
        asked in prop::option::of(prop::sample::select(vec!["*", "cargo", "cargo test", "git push"])),
    ) {
        let entries = |list: &[&str]| list.iter().map(|text| Entry::parse(text).expect("entry")).collect::<Vec<_>>();
        let mut node = node("type=\"acme.review\"");
        node.access.read_paths = read.as_ref().map(|list| entries(list));
        node.access.allowed_write_paths = write.as_ref().map(|list| entries(list));
        node.access.allowed_commands = asked.map(|command| owned(&[command]));
        let inspection = Inspection {
            manifest: Some(Manifest { wants: wants.clone(), ..inspection(Some("{}"), &[]).manifest.expect("manifest") }),
            ..inspection(None, &["files", "exec", "llm"])
        };
        let plugin = PluginEntry { grants: Some(granted.clone()), ..plugin(None, None) };
        let found = of(&node, "acme.review", &inspection, Some(&plugin));
        prop_assert!(found.tier <= wants.filesystem && found.tier <= granted.filesystem);
        prop_assert!(!found.model || (wants.model && granted.model));
        let node_read = read.as_deref().map_or_else(|| vec![Entry::whole()], &entries);
        let node_write = write.as_deref().map_or_else(Vec::new, &entries);
        for text in ["", "a", "a/b", "a/b/c", "a/b/c/x", "a/z", "d", "d/e", ".git", ".git/config", "scripts/scenarios/s", "q"] {
            let path = ScopePath::parse(text).expect("path");
            let may = most(&found.scope.read, &found.scope.write, &path);
            prop_assert!(may <= most(&wants.read, &wants.write, &path), "{text}");
            prop_assert!(may <= most(&granted.read, &granted.write, &path), "{text}");
            prop_assert!(may <= most(&node_read, &node_write, &path), "{text}");
            let hidden = text.starts_with(".git") || text.starts_with("scripts/scenarios");
            prop_assert!(!hidden || found.scope.access(&path) == glovebox_record::scope::Access::Hidden);
        }
        let asked = node.access.allowed_commands.clone().unwrap_or_default();
        prop_assert!(found.commands.shell_texts.is_empty());
        for commands in [&wants.commands, &granted.commands, &asked] {
            prop_assert!(!found.commands.any || commands.iter().any(|command| command == "*"));
            for prefix in &found.commands.argv_prefixes {
                prop_assert!(is_covered(prefix, commands), "{prefix:?} {commands:?}");
            }
        }
        let turns = granted.limits.get(LimitName::Turns).unwrap_or(40).min(wants.limits.get(LimitName::Turns).unwrap_or(u64::MAX));
        prop_assert_eq!(found.limits.turns, turns);
    }
}
