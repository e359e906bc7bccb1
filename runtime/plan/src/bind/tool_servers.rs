//! Decides which tool servers a node may start and which of their tools it may call.
//!
//! Pure. The operator's tables define the servers, and the node names those that it uses. The component must import `tools`
//! and be granted a model. A node that asks for more than the tables allow is an error. A list on the graph has no effect on
//! stages that can have no tools: stages with an agent program, and stages that read hold-outs.

use super::inputs::{Effective, GrantInputs};
use crate::config::CONFIG_FILE_NAME;
use crate::plan::{BoundServer, Capability, HoldoutAccess, Origin, OriginPart, ServerGrant};
use glovebox_host::tools::AllowedTools;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::key;
use glovebox_pipeline::nearest::nearest;
use glovebox_record::scope::{Scope, intersect};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Decides the tool servers of a node. Must be called after its model and scope are decided.
pub(super) fn decide(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let asked = inputs.request.tool_servers;
    if effective.program.is_some() {
        if asked.is_own {
            let message = format!("the agent program of node `{}` cannot call tools of tool servers", inputs.place);
            let help =
                "remove `mcp` or `agent.backend`: only Glovebox's own agent calls tools of tool servers".to_owned();
            refuse(inputs, effective, "mcp_without_tools", message, help);
        }
        return;
    }
    if effective.holdouts == HoldoutAccess::ReadOnly {
        if asked.is_own {
            let message = format!("node `{}` reads hold-outs, so it cannot call tools of tool servers", inputs.place);
            refuse(inputs, effective, "mcp_not_granted", message, "remove `mcp` from the node".to_owned());
        }
        return;
    }
    let imports = |import: &str| import.starts_with("glovebox:plugin/tools@");
    let is_able = effective.model && inputs.inspection.imports.iter().any(|import| imports(&import.name));
    if !is_able {
        if asked.is_own {
            let message = format!(
                "node `{}` asks for tools of tool servers, but `{}` calls none",
                inputs.place, inputs.source.name
            );
            let help = "remove `mcp`: only agent stages can use it".to_owned();
            refuse(inputs, effective, "mcp_without_tools", message, help);
        }
        return;
    }
    for (name, tools) in asked.servers() {
        if let Some(server) = server(inputs, effective, name, tools) {
            for grant in server.grants() {
                let origin = Origin::from_part(OriginPart::Server(name.to_owned()));
                let is_narrowed = matches!(grant, ServerGrant::Tool(_) | ServerGrant::AnyTool);
                let origin = if is_narrowed { origin.and(OriginPart::Attribute("mcp".into())) } else { origin };
                effective.record_origin(Capability::ToolServer(name.to_owned(), grant), origin);
            }
            effective.servers.push(server);
        }
    }
}

/// Returns one server with the tools that the node may call.
fn server(
    inputs: GrantInputs<'_>,
    effective: &mut Effective,
    name: &str,
    named: Option<Vec<&str>>,
) -> Option<BoundServer> {
    let place = inputs.place;
    let Some(entry) = inputs.servers.get(name) else {
        let message =
            format!("node `{place}` asks for the tool server `{name}`, but {CONFIG_FILE_NAME} has no `[mcp.{name}]`");
        let known = nearest(name, inputs.servers.keys().map(String::as_str));
        let help = known.map_or_else(
            || format!("add it to {CONFIG_FILE_NAME}:\n[mcp.{name}]\ncommand = [\"…\"]\ntools = [\"…\"]"),
            |known| format!("did you mean `{known}`?"),
        );
        refuse(inputs, effective, "mcp_unknown", message, help);
        return None;
    };
    let operators = entry.allowed();
    if operators == AllowedTools::default() {
        let message = format!("node `{place}` asks for the tool server `{name}`, but none of its tools is allowed");
        let help = format!("name them: `tools = [\"…\"]` under `[mcp.{name}]` in {CONFIG_FILE_NAME}");
        refuse(inputs, effective, "mcp_not_granted", message, help);
        return None;
    }
    let tools = match named {
        None => operators,
        Some(named) => {
            for tool in named.iter().filter(|tool| !operators.has(tool)) {
                let message =
                    format!("node `{place}` asks for the tool `{name}.{tool}`, which the operator does not allow");
                let help = format!("add it to `tools` under `[mcp.{name}]` in {CONFIG_FILE_NAME}");
                refuse(inputs, effective, "mcp_not_granted", message, help);
            }
            let granted: BTreeSet<String> =
                named.into_iter().filter(|tool| operators.has(tool)).map(str::to_owned).collect();
            AllowedTools::Named(granted)
        }
    };
    let (scope, sealed) = (&effective.scope, inputs.holdouts.sealed);
    let seen: Vec<_> = scope.read.iter().chain(&scope.write).cloned().collect();
    let hidden = sealed.iter().chain(inputs.scenarios()).chain(&scope.hidden).cloned().collect();
    let scope = Scope { read: intersect(&entry.read, &seen), hidden, ..Scope::default() };
    Some(BoundServer { name: name.to_owned(), entry: Arc::clone(entry), tools, scope })
}

fn refuse(inputs: GrantInputs<'_>, effective: &mut Effective, rule: &'static str, message: String, help: String) {
    let error = Diagnostic::error(rule, message, inputs.place.span_of(key::MCP)).with_help(help);
    effective.diagnostics.push(inputs.place.named_in(error));
}
