//! What the commands of a node can reach: never more than the operator grants, and with a strict read scope no other paths,
//! for every handler.

use crate::bind::effective::effective;
use crate::bind::inputs::{Effective, GrantInputs};
use crate::bind::request::{Holdouts, Place, Request};
use crate::bind::role::HandlerSource;
use crate::config::Config;
use crate::lock::wants::granted;
use glovebox_host::inspect::{Import, Inspection, Manifest, StandardSections};
use glovebox_host::interfaces::ImportState;
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::NodeId;
use glovebox_pipeline::reach::HoldoutReach;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Access, Entry};
use glovebox_record::{Digest, LimitSettings, Network};
use std::collections::BTreeMap;

const EVERYTHING: &str = r#"{"filesystem":"posix","read":["./"],"write":["./"],"commands":["*"],"model":true}"#;

fn inspection() -> Inspection {
    let import = |name: &str| Import { name: format!("glovebox:plugin/{name}@0.1.0"), state: ImportState::Provided };
    let manifest = Manifest::new("acme.review", "0.1.0", serde_json::from_str(EVERYTHING).expect("wants"));
    Inspection {
        digest: Digest::hash(b"x"),
        bytes: 1,
        world: "agent",
        imports: vec![import("files"), import("exec")],
        exports: Vec::new(),
        core_instances: 1,
        manifest: Some(manifest),
        standard: StandardSections::default(),
        custom_sections: Vec::new(),
    }
}

/// Returns the effective grants of the pipeline's one node with these attributes, under this `[sandbox]` table of the operator.
fn of(attributes: &str, table: &str) -> Effective {
    let text = format!(
        "digraph g {{ scenarios=\"hold/outs/\" s [shape=Mdiamond] n [{attributes}] e [shape=Msquare] s -> n -> e }}"
    );
    let checked = glovebox_pipeline::check(Source::new(&text), &glovebox_pipeline::Inputs::default());
    let pipeline = checked.pipeline.unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics));
    let node = pipeline.node(&NodeId::new("n")).expect("n");
    let toml = format!(
        "[plugins.\"acme.review\"]\npath = \"p\"\ngrants = {{ filesystem = \"posix\", read = [\"./\"], write = [\"./\"], commands = [\"*\"] }}\n\
         [sandbox]\n{table}\n"
    );
    let config = Config::parse(&toml, "glovebox.toml").unwrap_or_else(|problems| panic!("{toml}{problems:#?}"));
    let handler = node.handler.name();
    let source = HandlerSource { name: handler, plugin: config.plugins.get(handler) };
    let inspection = inspection();
    let reach = HoldoutReach::new(&pipeline);
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
        inspection: &inspection,
        granted: &granted(&inspection, source.plugin),
        limits: &LimitSettings::default(),
        sandbox: &config.sandbox,
        holdouts,
    })
}

fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(ToString::to_string).collect()
}

/// Returns the only diagnostic: rule, whether it is an error, message and help.
fn only(found: &Effective) -> (&str, bool, &str, &str) {
    assert_eq!(found.diagnostics.len(), 1, "{:#?}", found.diagnostics);
    let told = &found.diagnostics[0];
    (&*told.rule, told.is_error(), &told.message, told.help.as_deref().unwrap_or_default())
}

#[test]
fn a_node_lowers_the_network_and_never_raises_it() {
    let granted = |attributes: &str, table: &str| {
        let found = of(attributes, table);
        assert!(found.diagnostics.is_empty(), "{attributes} {table}: {:#?}", found.diagnostics);
        found.command_access.network.to_string()
    };
    let proxy = "network = { proxy = [\"api.example.com\", \"*.crates.io\"] }";
    assert_eq!(granted("prompt=x", ""), "none");
    assert_eq!(granted("prompt=x", "network = \"full\""), "full");
    assert_eq!(granted("prompt=x", proxy), "proxy:api.example.com,*.crates.io");
    assert_eq!(granted("prompt=x, network=none", proxy), "none");
    assert_eq!(granted("prompt=x, network=none", "network = \"full\""), "none");
    assert_eq!(granted("prompt=x, network=full", "network = \"full\""), "full");
    assert_eq!(granted("prompt=x, network=\"proxy:static.crates.io\"", proxy), "proxy:static.crates.io");
    assert_eq!(granted("prompt=x, network=\"proxy:a.example.com\"", "network = \"full\""), "proxy:a.example.com");
    let refused = |attributes: &str, table: &str, asked: &str, grants: &str, remedy: &str| {
        let found = of(attributes, table);
        let message = format!("node `n` asks for the network `{asked}`, but the operator grants `{grants}`");
        let help = format!("`network = {remedy}` under `[sandbox]` in glovebox.toml grants it");
        assert_eq!(only(&found), ("network_not_granted", true, message.as_str(), help.as_str()));
        assert_eq!(found.command_access.network, Network::None);
    };
    refused("prompt=x, network=full", "", "full", "none", "\"full\"");
    refused("prompt=x, network=full", proxy, "full", "proxy:api.example.com,*.crates.io", "\"full\"");
    let wish = "prompt=x, network=\"proxy:crates.io\"";
    refused(wish, proxy, "proxy:crates.io", "proxy:api.example.com,*.crates.io", "{ proxy = [\"crates.io\"] }");
    refused(wish, "", "proxy:crates.io", "none", "{ proxy = [\"crates.io\"] }");
}

#[test]
fn a_strict_read_scope_leaves_workdir_added_folders_and_write_scope() {
    let strict = "codex.workdir=agent, codex.add_dirs=\"examples/specs\", codex.path=\".factory/bin/codex\", \
                  codex.strict_read_scope=true, allowed_write_paths=\"agent/,out.md\"";
    for handler in
        ["prompt=x", "shape=parallelogram, tool_command=x", "shape=octagon, command=x", "type=\"acme.review\""]
    {
        let found = of(&format!("{handler}, {strict}"), "");
        assert_eq!(texts(&found.scope.read), ["agent/", "examples/specs/", ".factory/bin/codex"], "{handler}");
        assert_eq!(found.command_access.workdir.as_str(), "agent");
        let check = |path: &str, expected: Access| {
            assert_eq!(found.scope.access(&ScopePath::parse(path).expect("path")), expected, "{handler} {path}");
        };
        check("agent/src/main.go", Access::Write);
        check("examples/specs/one.md", Access::Read);
        check(".factory/bin/codex", Access::Read);
        check(".factory/bin/other", Access::Absent);
        check("out.md", Access::Write);
        check("examples/other.md", Access::Absent);
        check("README.md", Access::Absent);
        check("src/secret.rs", Access::Absent);
        let from = found
            .grants
            .iter()
            .find(|grant| grant.capability.to_string() == "read agent/")
            .expect("grant")
            .origin
            .to_string();
        assert!(from.ends_with("`codex.strict_read_scope` of the node"), "{from}");
    }
}

#[test]
fn read_scopes_narrow_each_other_and_a_statement_narrows_nothing() {
    let open = of("prompt=x, codex.workdir=agent, codex.add_dirs=docs", "");
    assert_eq!((texts(&open.scope.read), open.command_access.workdir.as_str()), (vec!["./".to_owned()], "agent"));
    let both = of("prompt=x, read_paths=\"agent/a.md,docs/\", codex.workdir=agent, codex.strict_read_scope=true", "");
    assert_eq!(texts(&both.scope.read), ["agent/a.md"]);
    let alone = of("prompt=x, codex.strict_read_scope=true, allowed_write_paths=\"src/\"", "");
    assert_eq!((texts(&alone.scope.read), texts(&alone.scope.write)), (vec![], vec!["src/".to_owned()]));
    let whole = of("prompt=x, codex.strict_read_scope=true, codex.workdir=\".\"", "");
    assert_eq!((texts(&whole.scope.read), whole.command_access.workdir.is_root()), (vec!["./".to_owned()], true));
}

#[test]
fn folders_of_operator_and_node_stand_together() {
    let found =
        of("prompt=x, scratch=\"tmp/\", cache=\"target/,.ccache/\"", "scratch = [\"log/\"]\ncache = [\"target/\"]");
    assert!(found.diagnostics.is_empty(), "{:#?}", found.diagnostics);
    assert_eq!(texts(&found.command_access.scratch), ["log/", "tmp/"]);
    assert_eq!(texts(&found.command_access.cache), ["target/", ".ccache/"]);
    let origins: Vec<String> = found.grants.iter().map(|one| format!("{}: {}", one.capability, one.origin)).collect();
    assert!(origins.contains(&"scratch tmp/: `scratch` of the node".to_owned()), "{origins:?}");
    assert!(origins.contains(&"cache target/: `cache` under `[sandbox]` of glovebox.toml".to_owned()), "{origins:?}");
}

#[test]
fn folders_stand_in_nobodys_place() {
    let refused = |attributes: &str, table: &str, part: &str| {
        let found = of(&format!("prompt=x, {attributes}"), table);
        let (rule, is_error, message, _) = only(&found);
        assert_eq!((rule, is_error), ("sandbox_folder", true), "{message}");
        assert!(message.contains(part), "{message}");
    };
    refused("scratch=\".github/\"", "", "`.github/workflows` is protected");
    refused("cache=\"sub/.git/\"", "", "`.git` is protected");
    refused("scratch=\"hold/\"", "", "`hold/`, which overlaps `hold/outs/`");
    refused("cache=\"hold/outs/x/\"", "", "`hold/outs/x/`, which overlaps `hold/outs/`");
    refused("scratch=\"a/b/\"", "cache = [\"a/\"]", "`a/b/` as scratch and `a/` as cache");
    let lost = of("prompt=x, allowed_write_paths=\"target/bin/app,src/\"", "cache = [\"target/\"]");
    assert_eq!(
        only(&lost),
        (
            "write_not_committed",
            false,
            "node `n` may write `target/bin/app`, but `target/` is cache and never committed",
            "remove `target/bin/app` from `allowed_write_paths`, or `target/` from `cache`",
        )
    );
}
