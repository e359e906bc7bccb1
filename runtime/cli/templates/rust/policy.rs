//! Refuses a deployment before its review, and commands of agents that push to a repository.

#![cfg_attr(target_family = "wasm", no_std)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use glovebox_plugin_sdk::export_policy;
use glovebox_plugin_sdk::policy::{Call, Edge, Policy};

struct Plugin;

impl Policy for Plugin {
    fn judge_call(call: &Call) -> Result<(), String> {
        let command = call.argument("command").and_then(|value| value.as_str()).unwrap_or_default();
        if call.tool() == "shell" && command.contains("git push") {
            return Err("an agent must not push to a repository".into());
        }
        Ok(())
    }

    fn judge_edge(edge: &Edge) -> Result<(), String> {
        if edge.to() == "deploy" && !edge.has_succeeded("review") {
            return Err(format!("`{}` needs a successful `review` before it", edge.to()));
        }
        Ok(())
    }
}

export_policy!(Plugin);
