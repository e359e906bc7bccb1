//! Decides which commands run before and after the tool calls of a node's model (spec §9.7).
//!
//! Pure. The pipeline's author writes hooks, like the text of a tool stage. Hooks get less than any stage: they read what the
//! stage reads, none of their writes are kept, and they reach no network. On a node that asks no model a hook would never
//! run, so a hook of the node itself is refused there.

use super::inputs::{Effective, GrantInputs};
use crate::plan::{Capability, HookTexts, Origin};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::key;
use glovebox_record::HookKind;

/// Decides the hooks of a node. Must be called after `effective.model` is decided.
pub(super) fn decide(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let (hooks, place) = (inputs.request.hooks, inputs.place);
    if !effective.model {
        if hooks.is_own {
            let message = format!("node `{place}` has a tool hook, but `{}` may not ask a model", inputs.source.name);
            let span = place.span_of(if hooks.pre.is_some() { key::TOOL_HOOKS_PRE } else { key::TOOL_HOOKS_POST });
            let error = Diagnostic::error("tool_hooks_without_tools", message, span).with_help(
                "remove the hook, or grant the plugin a model: `grants = { model = true }` in glovebox.toml",
            );
            effective.diagnostics.push(place.named_in(error));
        }
        return;
    }
    let text = |text: &Option<_>| text.as_ref().map(ToString::to_string);
    effective.hooks = HookTexts { pre: text(&hooks.pre), post: text(&hooks.post) };
    for (kind, attribute) in [(HookKind::Pre, key::TOOL_HOOKS_PRE), (HookKind::Post, key::TOOL_HOOKS_POST)] {
        if let Some(text) = effective.hooks.text(kind) {
            let capability = Capability::Hook(kind, text.to_owned());
            effective.record_origin(capability, Origin::attribute(attribute.as_str()));
        }
    }
}
