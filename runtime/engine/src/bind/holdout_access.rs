//! Which hold-outs a node has in reach: none for whoever builds what they judge, all of them read-only for verifiers.
//!
//! Pure. A built-in builder opts out as seed 2 says, with a word in the plan for each way out; a plugin cannot. What a node
//! blocks does not exist for it, also where it is no hold-out. A hold-out folder is in reach as a whole or not at all.

use super::effective::{Effective, GrantInputs, span_of};
use crate::plan::capability::Region;
use crate::plan::{Capability, Giver, HoldoutAccess, Origin};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::holdout_roles::Feedback;
use glovebox_pipeline::key::{self, Key};
use glovebox_pipeline::lower::handler::Role;
use glovebox_record::scope::Entry;

/// Settles what is hidden and what is in reach. To be called before anything looks at what the scope hides.
pub(super) fn decide(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let blocked = inputs.node.holdouts.block_read.as_ref().map(|texts| blocked(inputs, texts, effective));
    let is_builder = inputs.role == Role::Builder;
    let is_plugin = inputs.plugin.is_some();
    if is_plugin && is_builder {
        refuse_opt_outs(inputs, blocked.as_deref(), effective);
    }
    let opts_out = !is_plugin && (inputs.node.holdouts.allow_read || blocked.is_some());
    let by_default = if is_builder && !opts_out { inputs.scenarios } else { &[] };
    effective.scope.hidden.extend(by_default.iter().chain(blocked.iter().flatten()).cloned());
    let open: Vec<&Entry> = inputs.sealed.iter().filter(|folder| !effective.scope.is_hidden(folder.path())).collect();
    if open.is_empty() {
        return;
    }
    effective.holdouts = HoldoutAccess::ReadOnly;
    let giver = match (is_builder, inputs.node.holdouts.allow_read) {
        (false, _) => Giver::Verifier(inputs.handler.to_owned()),
        (true, true) => Giver::Attribute("codex.allow_read_scenarios".into()),
        (true, false) => Giver::NotBlocked("codex.block_read_paths"),
    };
    let origin = Origin::of(giver);
    for folder in open {
        effective.record_origin(Capability::ReadHoldouts(Region::of(folder.clone())), origin.clone());
    }
    if inputs.node.holdouts.feedback == Feedback::Full {
        // The node's own attribute, or the graph's.
        effective.record_origin(Capability::TellHoldouts, Origin::of(Giver::Flag("scenario_feedback=\"full\"")));
    }
}

/// What the node blocks. A part of a hold-out folder cannot be blocked: folders come as a whole.
fn blocked(inputs: GrantInputs<'_>, named: &[Entry], effective: &mut Effective) -> Vec<Entry> {
    let mut entries = Vec::new();
    for entry in named {
        let Some(folder) = inputs.scenarios.iter().find(|folder| entry.path().is_below(folder.path())) else {
            entries.push(entry.clone());
            continue;
        };
        let fault = format!("`{entry}` is a part of the hold-outs in `{folder}`, expected the whole folder");
        refuse(
            inputs,
            key::CODEX_BLOCK_READ_PATHS,
            fault,
            "name whole folders, such as `scripts/scenarios/`",
            effective,
        );
    }
    entries
}

/// Whoever distributes a plugin is nobody the pipeline's author can answer for.
fn refuse_opt_outs(inputs: GrantInputs<'_>, blocked: Option<&[Entry]>, effective: &mut Effective) {
    if inputs.node.holdouts.allow_read {
        let fault = format!("the plugin `{}` is never given hold-outs", inputs.handler);
        refuse(inputs, key::CODEX_ALLOW_READ_SCENARIOS, fault, "remove the attribute", effective);
    }
    let is_open =
        |folder: &&Entry| !blocked.unwrap_or_default().iter().any(|entry| folder.path().starts_with(entry.path()));
    if blocked.is_some()
        && let Some(open) = inputs.scenarios.iter().find(is_open)
    {
        let fault = format!("the plugin `{}` is never given the hold-outs in `{open}`", inputs.handler);
        refuse(
            inputs,
            key::CODEX_BLOCK_READ_PATHS,
            fault,
            "name the hold-outs too, or remove the attribute",
            effective,
        );
    }
}

fn refuse(inputs: GrantInputs<'_>, attribute: Key<'_>, fault: String, help: &str, effective: &mut Effective) {
    let message = format!("`{attribute}` of node `{}`: {fault}", inputs.node.id);
    let error = Diagnostic::error("holdout_access", message, span_of(inputs.node, attribute)).with_help(help);
    effective.diagnostics.push(error.with_node(inputs.node.id.as_str()));
}

#[cfg(test)]
mod tests;
