//! Decides the agent program of a node: the program that the pipeline names, with its settings in `[agents]`.
//!
//! Pure. A program can run any command inside the jail of its stage. So attributes that Glovebox could not enforce on the
//! program are refused here: a list of commands, hooks around its calls, and the full network.

use super::inputs::{Effective, GrantInputs};
use crate::plan::capability::MachineFolder;
use crate::plan::{Capability, Origin, OriginPart, PlannedProgram};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::key::{self, Key};
use glovebox_record::Network;
use glovebox_record::path::ScopePath;
use glovebox_record::program::{PROJECT_SETTINGS, ProgramOptions};
use glovebox_record::scope::Entry;

/// Decides the agent program of a node.
pub(super) fn decide(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let Some(backend) = inputs.request.backend else { return };
    let entry = inputs.agents.get(&backend.program);
    let path = backend.options.path.as_ref().or_else(|| entry.and_then(|entry| entry.path.as_ref()));
    let folders = entry.map(|entry| entry.read.iter().cloned().map(MachineFolder).collect()).unwrap_or_default();
    let options = ProgramOptions { path: path.cloned(), ..backend.options.clone() };
    let origin = Origin::attribute(key::AGENT_BACKEND.as_str());
    effective.record_origin(Capability::Agent(backend.program.to_string()), origin.clone());
    effective.record_origin(Capability::AnyCommand, origin);
    let program = PlannedProgram { program: backend.program, options, folders };
    for folder in &program.folders {
        let origin = Origin::from_part(OriginPart::ConfigTable("agents"));
        effective.record_origin(Capability::ReadMachine(folder.clone()), origin);
    }
    effective.program = Some(program);
    hide_settings(effective);
    if !inputs.request.commands.is_empty() {
        let message = format!("`allowed_commands` of node `{}` would not restrict its agent program", inputs.place);
        refuse(
            inputs,
            effective,
            key::ALLOWED_COMMANDS,
            message,
            "remove it: the program runs any command in its jail",
        );
    }
    if inputs.request.hooks.pre.is_some() || inputs.request.hooks.post.is_some() {
        let message = format!("tool hooks do not see the calls of the agent program of node `{}`", inputs.place);
        let help = "set `tool_hooks.pre=\"\"` and `tool_hooks.post=\"\"` on the node, or remove `agent.backend`";
        refuse(inputs, effective, key::AGENT_BACKEND, message, help);
    }
    if inputs.has_policies {
        let message = format!("no policy judges the calls of the agent program of node `{}`", inputs.place);
        let help =
            "remove `agent.backend`, so that Glovebox's own agent works, or the tables `[policy]` in glovebox.toml";
        refuse(inputs, effective, key::AGENT_BACKEND, message, help);
    }
    if effective.command_access.network == Network::Full {
        let message = format!("the agent program of node `{}` would have the whole network", inputs.place);
        let help = "name the hosts it needs: `network=\"proxy:registry.npmjs.org\"`; the program reaches its model without this attribute";
        refuse(inputs, effective, key::NETWORK, message, help);
    }
}

/// Hides the project's settings files for agent programs, in the folder in which the program starts and in all folders
/// above it. Only the node decides what the program may do.
fn hide_settings(effective: &mut Effective) {
    let start = effective.command_access.workdir.clone();
    let folders = std::iter::successors(Some(start), ScopePath::parent);
    let settings = folders.flat_map(|folder| {
        PROJECT_SETTINGS.map(|name| if folder.is_root() { name.to_owned() } else { format!("{folder}/{name}") })
    });
    effective.scope.hidden.extend(settings.filter_map(|text| Entry::parse(&text).ok()));
}

fn refuse(inputs: GrantInputs<'_>, effective: &mut Effective, key: Key<'_>, message: String, help: &'static str) {
    let error = Diagnostic::error("agent_program", message, inputs.place.span_of(key)).with_help(help);
    effective.diagnostics.push(inputs.place.named_in(error));
}
