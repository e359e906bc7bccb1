//! Which hold-outs a node has in reach: none for whoever builds what they judge, all of them read-only for verifiers.
//!
//! Pure. A built-in builder opts out as seed 2 says, with a word in the plan for each way out; a plugin cannot. What a node
//! blocks does not exist for it, also where it is no hold-out. A hold-out folder is in reach as a whole or not at all.

use super::effective::{Effective, Sides, place};
use crate::plan::HoldoutAccess;
use crate::plan::binding::is_builder;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::holdouts::Feedback;
use glovebox_sandbox::scope::Entry;

/// Settles what is hidden and what is in reach. To be called before anything looks at what the scope hides.
pub(super) fn settle(sides: Sides<'_>, effective: &mut Effective) {
    let blocked = sides.node.holdouts.block_read.as_ref().map(|texts| blocked(sides, texts, effective));
    let is_plugin = sides.plugin.is_some();
    if is_plugin {
        refuse_opt_outs(sides, blocked.as_deref(), effective);
    }
    let is_builder = is_builder(!is_plugin, sides.handler);
    let opts_out = !is_plugin && (sides.node.holdouts.allow_read || blocked.is_some());
    let by_default = if is_builder && !opts_out { sides.scenarios } else { &[] };
    effective.scope.hidden.extend(by_default.iter().chain(blocked.iter().flatten()).cloned());
    let open: Vec<&Entry> = sides.sealed.iter().filter(|folder| !effective.scope.is_hidden(folder.path())).collect();
    if open.is_empty() {
        return;
    }
    effective.holdouts = HoldoutAccess::ReadOnly;
    let from = match (is_builder, sides.node.holdouts.allow_read) {
        (false, _) => format!("built-in `{}` verifies", sides.handler),
        (true, true) => "`codex.allow_read_scenarios` of the node".to_owned(),
        (true, false) => "`codex.block_read_paths` of the node does not name it".to_owned(),
    };
    let notes: Vec<String> = open.iter().map(|folder| format!("hold-outs {folder}")).collect();
    notes.into_iter().for_each(|grant| effective.note(grant, from.clone()));
    if sides.node.holdouts.feedback == Feedback::Full {
        effective.note("tell builders what hold-outs say".to_owned(), "`scenario_feedback=\"full\"`".to_owned());
    }
}

/// What the node blocks. A part of a hold-out folder cannot be blocked: folders come as a whole.
fn blocked(sides: Sides<'_>, texts: &[String], effective: &mut Effective) -> Vec<Entry> {
    let mut entries = Vec::new();
    for text in texts {
        let part_of = |entry: &Entry| sides.scenarios.iter().find(|folder| entry.path().is_below(folder.path()));
        let fault = match Entry::parse(text) {
            Ok(entry) => match part_of(&entry) {
                None => {
                    entries.push(entry);
                    continue;
                }
                Some(folder) => format!("`{text}` is a part of the hold-outs in `{folder}`, expected the whole folder"),
            },
            Err(error) => error.to_string(),
        };
        refuse(sides, "codex.block_read_paths", fault, "name whole folders, such as `scripts/scenarios/`", effective);
    }
    entries
}

/// Whoever distributes a plugin is nobody the pipeline's author can answer for.
fn refuse_opt_outs(sides: Sides<'_>, blocked: Option<&[Entry]>, effective: &mut Effective) {
    if sides.node.holdouts.allow_read {
        let fault = format!("the plugin `{}` is never given hold-outs", sides.handler);
        refuse(sides, "codex.allow_read_scenarios", fault, "remove the attribute", effective);
    }
    let is_open =
        |folder: &&Entry| !blocked.unwrap_or_default().iter().any(|entry| folder.path().starts_with(entry.path()));
    if blocked.is_some()
        && let Some(open) = sides.scenarios.iter().find(is_open)
    {
        let fault = format!("the plugin `{}` is never given the hold-outs in `{open}`", sides.handler);
        refuse(sides, "codex.block_read_paths", fault, "name the hold-outs too, or remove the attribute", effective);
    }
}

fn refuse(sides: Sides<'_>, attribute: &str, fault: String, help: &str, effective: &mut Effective) {
    let message = format!("`{attribute}` of node `{}`: {fault}", sides.node.id);
    let error = Diagnostic::error("holdout_access", message, place(sides.node, attribute)).with_help(help);
    effective.diagnostics.push(error.with_node(sides.node.id.as_str()));
}

#[cfg(test)]
mod tests;
