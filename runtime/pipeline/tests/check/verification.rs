//! Tests of verifications: the separate stage that a `verify_command` or `verify_plugin` adds to a node, and the nodes
//! that cannot have one.

use super::{accept, errors, lowered, node, run, with, with_node};
use glovebox_pipeline::ir::{Node, Role};
use glovebox_pipeline::key::Key;
use insta::assert_snapshot;
use std::time::Duration;

/// Returns the verification of the node `n` with these attributes.
fn verification(attributes: &str) -> Option<Node> {
    node(&accept(&with_node(attributes)), "n").checks.verification.as_deref().cloned()
}

/// Returns the attributes of a node as `key=value`.
fn attributes(node: &Node) -> Vec<String> {
    node.attributes.iter().map(|(key, attribute)| format!("{key}={}", attribute.value)).collect()
}

#[test]
fn a_command_is_run_by_a_stage_of_its_own() {
    let shared = "verify_command=\"make test\", working_dir=app, env_A=b, read_paths=\"docs/\", max_tokens=9, team=x";
    let stage = verification(shared).expect("a verification");
    assert_eq!((stage.id.as_str(), stage.handler.name(), stage.role), ("n.verify", "verify", Some(Role::Verifier)));
    assert_eq!((&stage.access.read_paths, &stage.access.allowed_commands), (&None, &None));
    assert_eq!(stage.bounds.timeout, Some(Duration::from_secs(65)));
    assert!(stage.bounds.spend_max.is_unlimited());
    assert_eq!(
        attributes(&stage),
        [
            "allowed_write_paths=src/",
            "command=make test",
            "env_A=b",
            "timeout=60s",
            "verifies=codergen",
            "verify_command=make test",
            "working_dir=app",
        ]
    );
    let own = verification("verify_command=true, verify_timeout=9s").expect("a verification");
    assert_eq!(own.bounds.timeout, Some(Duration::from_secs(14)));
    assert_eq!(own.attributes[Key::new("timeout")].value, "9s");
    let blank = verification("verify_command=true, verify_timeout=\"\"").expect("a verification");
    assert_eq!(blank.attributes[Key::new("timeout")].value, "60s");
    assert!(verification("label=x").is_none() && verification("verify_command=\" \"").is_none());
}

#[test]
fn a_plugin_gets_what_glovebox_does_not_know_and_any_granted_command() {
    let stage =
        verification("verify_plugin=\" acme.check \", env_A=b, acme.level=9, max_turns=2").expect("a verification");
    assert_eq!(stage.handler.name(), "acme.check");
    assert_eq!(stage.access.allowed_commands, Some(vec!["*".to_owned()]));
    assert_eq!(
        attributes(&stage),
        [
            "acme.level=9",
            "allowed_write_paths=src/",
            "env_A=b",
            "timeout=60s",
            "verifies=codergen",
            "verify_plugin= acme.check ",
        ]
    );
}

#[test]
fn a_node_that_cannot_be_verified_says_what_to_do_instead() {
    for (node, expected) in [
        ("t [shape=parallelogram, tool_command=true, VERIFY]", Some("its own command is the check")),
        ("t [shape=octagon, command=true, VERIFY]", Some("its own command is the check")),
        ("t [shape=hexagon, VERIFY]", Some("set it on an agent, a plugin")),
        ("t [shape=component, VERIFY]", Some("set it on an agent, a plugin")),
        ("t [prompt=p, VERIFY]", None),
        ("t [type=\"acme.build\", VERIFY]", None),
        ("t [shape=diamond, VERIFY]", None),
        ("t exit [VERIFY]", None),
    ] {
        let source = with(&format!("{node} start -> t -> exit").replace("VERIFY", "verify_command=true"));
        let found = run(&source).diagnostics;
        let help = found.iter().find(|found| found.rule == "verify_command_place").and_then(|found| found.help.clone());
        assert_eq!(help.is_some(), expected.is_some(), "{node}: {found:?}");
        assert!(help.unwrap_or_default().contains(expected.unwrap_or_default()), "{node}");
    }
    assert_snapshot!(errors(&with_node("verify_command=a, verify_plugin=b")), @"verify_command_place «verify_plugin=b» `n` has both `verify_command` and `verify_plugin`, expected one");
    assert_snapshot!(errors(&with_node("verify_timeout=5s")), @"verify_command_place «verify_timeout=5s» `n` has `verify_timeout`, but neither `verify_command` nor `verify_plugin`");
    assert_snapshot!(errors(&with("t [shape=hexagon, verify_command=true] start -> t -> exit")), @"verify_command_place «verify_command=true» `t` is a `wait.human` node, which takes no `verify_command`");
    for (node, says) in [
        ("gate_requires=receipt", "but it is not a goal gate"),
        ("goal_gate=true, gate_requires=receipt", "the node runs no verifier"),
        ("gate_requires=proof", "found `proof`"),
        ("verify_command=true, working_dir=\"/srv\"", "/srv"),
    ] {
        let found = errors(&with_node(node));
        assert!(found.contains(says), "{node}: {found}");
    }
}

#[test]
fn an_inherited_check_is_dropped_where_it_has_no_effect_and_a_written_one_stays() {
    let of = |block: &str, t: &str, key: &'static str| {
        let pipeline = lowered(&with(&format!("node [{block}] t [{t}] start -> t -> exit")));
        node(&pipeline, "t").attributes.contains_key(Key::new(key))
    };
    let tool = "shape=parallelogram, tool_command=true";
    for (block, node, key, stays) in [
        ("verify_command=true", tool, "verify_command", false),
        ("verify_plugin=\"a.b\"", tool, "verify_plugin", false),
        ("verify_command=true", "prompt=p", "verify_command", true),
        ("verify_command=true", "shape=diamond", "verify_command", true),
        ("label=x", "shape=parallelogram, verify_command=true", "verify_command", true),
        ("requires_tool_success=true", "shape=hexagon", "requires_tool_success", false),
        ("required_tool_node=start", "shape=diamond", "required_tool_node", false),
        ("requires_tool_success=true", tool, "requires_tool_success", true),
        ("requires_tool_success=true", "prompt=p", "requires_tool_success", true),
        ("gate_requires=receipt", "prompt=p", "gate_requires", false),
        ("gate_requires=receipt", "prompt=p, goal_gate=false", "gate_requires", false),
        ("gate_requires=receipt", "prompt=p, goal_gate=\" true \"", "gate_requires", true),
        ("label=x", "prompt=p, gate_requires=receipt", "gate_requires", true),
        ("verify_timeout=9s", "prompt=p", "verify_timeout", false),
        ("verify_timeout=9s", "prompt=p, verify_command=true", "verify_timeout", true),
        ("verify_timeout=9s", "prompt=p, verify_plugin=\"a.b\"", "verify_timeout", true),
        ("verify_timeout=9s", "prompt=p, verify_command=\" \"", "verify_timeout", false),
        ("verify_timeout=9s, verify_command=true", tool, "verify_timeout", false),
        ("label=x", "prompt=p, verify_timeout=9s", "verify_timeout", true),
    ] {
        assert_eq!(of(block, node, key), stays, "{block} {node} {key}");
    }
}

#[test]
fn inherited_tool_hooks_stay_only_where_tools_are_called() {
    let holders = |body: &str| {
        let pipeline = lowered(&with(&format!("node [tool_hooks.pre=\"a\", tool_hooks.post=\"b\"] {body}")));
        let has = |node: &&Node| {
            ["tool_hooks.pre", "tool_hooks.post"].map(|key| node.attributes.contains_key(Key::new(key))) == [true; 2]
        };
        pipeline.nodes.iter().filter(has).map(|node| node.id.to_string()).collect::<Vec<_>>().join(" ")
    };
    let tool = "t [shape=parallelogram, tool_command=true]";
    assert_eq!(holders(&format!("n [prompt=p] {tool} start -> n -> t -> exit")), "n");
    assert_eq!(holders(&format!("{tool} start -> t -> exit")), "t", "the lint reports the block");
    let own = "t [shape=parallelogram, tool_command=true, tool_hooks.pre=\"c\", tool_hooks.post=\"d\"]";
    assert_eq!(holders(&format!("n [prompt=p] {own} start -> n -> t -> exit")), "n t");
}
