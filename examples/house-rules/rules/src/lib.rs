//! Custom rules: each agent must name its reviewer, and the class of an agent decides where it may write.

#![cfg_attr(target_family = "wasm", no_std)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use glovebox_plugin_sdk::export_rules;
use glovebox_plugin_sdk::rules::{Finding, Graph, Node, Rules};

/// The write scope of each class.
const SCOPES: [(&str, &str); 3] = [("code", "src/"), ("tests", "tests/"), ("docs", "docs/,README.md")];

struct House;

impl Rules for House {
    /// Sets the write scope of every agent that has none, by the agent's class.
    fn transform(graph: &mut Graph) -> Result<(), String> {
        for node in graph.nodes.iter_mut().filter(|node| is_agent(node) && node.get("allowed_write_paths").is_none()) {
            let scope = SCOPES.iter().find(|(class, _)| node.classes().any(|own| own == *class));
            if let Some((_, paths)) = scope {
                node.set("allowed_write_paths", *paths);
            }
        }
        Ok(())
    }

    /// Reports every agent that names no reviewer.
    fn lint(graph: &Graph) -> Vec<Finding> {
        let unreviewed = graph.nodes.iter().filter(|node| is_agent(node) && node.get("acme.reviewer").is_none());
        let found = unreviewed.map(|node| {
            Finding::error("reviewer", format!("`{}` names no reviewer", node.id))
                .at_node(&node.id)
                .help("say who looks at its work: `\"acme.reviewer\"=\"kim\"`")
        });
        found.collect()
    }
}

fn is_agent(node: &Node) -> bool {
    node.handler() == "codergen"
}

export_rules!(
    House,
    manifest = r#"{"name":"acme.house","version":"0.1.0","description":"Reviewers and scopes of ACME."}"#
);
