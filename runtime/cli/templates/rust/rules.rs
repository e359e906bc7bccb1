//! Reports every agent that has no `timeout`.

#![cfg_attr(target_family = "wasm", no_std)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use glovebox_plugin_sdk::export_rules;
use glovebox_plugin_sdk::rules::{Finding, Graph, Rules};

struct Plugin;

impl Rules for Plugin {
    fn transform(_graph: &mut Graph) -> Result<(), String> {
        Ok(())
    }

    fn lint(graph: &Graph) -> Vec<Finding> {
        let agents = graph.nodes.iter().filter(|node| node.handler() == "codergen" && node.get("timeout").is_none());
        let found = agents.map(|node| {
            Finding::error("timeout", format!("`{}` has no timeout", node.id)).at_node(&node.id).help("add `timeout=\"15m\"`")
        });
        found.collect()
    }
}

export_rules!(Plugin);
