//! Decides which hold-outs a node can read. A builder reads none. A verifier reads, but never writes, the hold-outs
//! that [`glovebox_pipeline::reach`] gives it.
//!
//! Pure. A built-in builder can opt out (decision hold-out-opt-outs), and the plan lists each opt-out; a plugin cannot. A
//! path that a node blocks does not exist for the node, even if it is not a hold-out. A hold-out folder is readable as a
//! whole or not at all.

use super::inputs::{Effective, GrantInputs};
use crate::plan::capability::Region;
use crate::plan::{Capability, HoldoutAccess, Origin, OriginPart};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::Role;
use glovebox_pipeline::ir::holdouts::{Feedback, HoldoutSelection, covers};
use glovebox_pipeline::key::{self, Key};
use glovebox_pipeline::reach::ReachReason;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use std::fmt;

/// Decides which hold-outs are hidden and which are readable. Must be called before other code reads the hidden paths of the scope.
pub(super) fn decide(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let blocked = inputs.request.holdouts.block_read.as_ref().map(|texts| blocked(inputs, texts, effective));
    let is_builder = inputs.source.role() == Role::Builder;
    let is_plugin = inputs.source.plugin.is_some();
    if is_plugin && is_builder {
        refuse_opt_outs(inputs, blocked.as_deref(), effective);
    }
    let opts_out = !is_plugin && (inputs.request.holdouts.allow_read || blocked.is_some());
    let is_hidden = |folder: &&Entry| match is_builder {
        true => !opts_out,
        false => inputs.request.reach_reason(folder).is_none(),
    };
    // A folder that a verifier blocks itself is listed once.
    let is_listed = |folder: &&Entry| !is_builder && blocked.as_ref().is_some_and(|blocked| covers(blocked, folder));
    let scenarios = inputs.scenarios();
    let sealed = inputs.holdouts.sealed.iter().filter(|folder| !scenarios.contains(folder));
    let by_default = scenarios.iter().chain(sealed).filter(is_hidden).filter(|folder| !is_listed(folder));
    effective.scope.hidden.extend(by_default.chain(blocked.iter().flatten()).cloned());
    refuse_missing(inputs, effective);
    let open: Vec<&Entry> =
        inputs.holdouts.sealed.iter().filter(|folder| !effective.scope.is_hidden(folder.path())).collect();
    if open.is_empty() {
        return;
    }
    effective.holdouts = HoldoutAccess::ReadOnly;
    for folder in open {
        let given = Capability::ReadHoldouts(Region::from_entry(folder));
        effective.record_origin(given, Origin::from_part(origin_part(inputs, folder)));
    }
    if inputs.request.holdouts.feedback == Feedback::Full {
        // The attribute may be on the node or on the graph.
        effective
            .record_origin(Capability::TellHoldouts, Origin::from_part(OriginPart::Flag("scenario_feedback=\"full\"")));
    }
}

/// Returns what allows a node to see a hold-out folder.
fn origin_part(inputs: GrantInputs<'_>, folder: &Entry) -> OriginPart {
    match (inputs.source.role(), inputs.request.reach_reason(folder)) {
        (Role::Builder, _) if inputs.request.holdouts.allow_read => {
            OriginPart::Attribute("codex.allow_read_scenarios".into())
        }
        (Role::Builder, _) => OriginPart::NotBlocked("codex.block_read_paths"),
        (Role::Verifier, Some(ReachReason::Contract)) => OriginPart::Contract,
        (Role::Verifier, Some(ReachReason::Command(key))) => OriginPart::Attribute(key.to_string().into()),
        (Role::Verifier, Some(ReachReason::ReadPaths)) => OriginPart::Attribute("read_paths".into()),
        (Role::Verifier, _) => OriginPart::Attribute("holdouts".into()),
    }
}

/// Refuses a stage that names hold-outs that the run does not have. Its result would mean nothing, or depend on files that
/// another stage wrote there.
fn refuse_missing(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let named = inputs.request.holdouts.named.as_ref();
    let sealed = || inputs.holdouts.sealed.iter();
    let is_sealed = |entry: &Entry| sealed().any(|folder| folder.path().starts_with(entry.path()));
    let holds = |path: ScopePath| sealed().any(|folder| path.starts_with(folder.path()));
    if named == Some(&HoldoutSelection::All) && inputs.holdouts.sealed.is_empty() {
        refuse(inputs, key::HOLDOUTS, format_args!("asks for hold-outs"), effective);
    }
    if let Some(missing) = named.into_iter().flat_map(HoldoutSelection::listed).find(|entry| !is_sealed(entry)) {
        refuse(inputs, key::HOLDOUTS, format_args!("lists `{missing}`"), effective);
    }
    if let Some(schema) = inputs.request.sealed_schema.filter(|path| !ScopePath::parse(path).is_ok_and(holds)) {
        refuse(inputs, key::JSON_SCHEMA_HOLDOUT, format_args!("names the schema `{schema}`"), effective);
    }
}

fn refuse(inputs: GrantInputs<'_>, attribute: Key<'_>, what: fmt::Arguments<'_>, effective: &mut Effective) {
    let place = inputs.place;
    let message = format!("`{attribute}` of node `{place}` {what}, which the project does not have");
    let error = Diagnostic::error("holdout_access", message, place.span_of(attribute))
        .with_help(format!("create the folder with its hold-outs, or remove `{attribute}`"));
    effective.diagnostics.push(place.named_in(error));
}

/// Returns the paths that the node blocks. Blocking only a part of a hold-out folder is an error, because a folder is
/// readable as a whole or not at all.
fn blocked(inputs: GrantInputs<'_>, named: &[Entry], effective: &mut Effective) -> Vec<Entry> {
    let mut entries = Vec::new();
    for entry in named.iter().cloned() {
        match inputs.scenarios().iter().find(|folder| entry.path().is_below(folder.path())) {
            Some(folder) => OptOutFault::Part { entry, folder }.report(inputs, effective),
            None => entries.push(entry),
        }
    }
    entries
}

/// Refuses opt-outs on a plugin: the pipeline's author cannot give hold-outs to a plugin of another author.
fn refuse_opt_outs(inputs: GrantInputs<'_>, blocked: Option<&[Entry]>, effective: &mut Effective) {
    if inputs.request.holdouts.allow_read {
        OptOutFault::Allowed.report(inputs, effective);
    }
    let Some(blocked) = blocked else { return };
    let is_open = |folder: &&Entry| !blocked.iter().any(|entry| folder.path().starts_with(entry.path()));
    if let Some(folder) = inputs.scenarios().iter().find(is_open) {
        OptOutFault::NotBlocked { folder }.report(inputs, effective);
    }
}

/// Why an opt-out is refused.
enum OptOutFault<'a> {
    /// Only a part of a hold-out folder is blocked.
    Part {
        /// The part that is blocked.
        entry: Entry,
        /// The hold-out folder.
        folder: &'a Entry,
    },
    /// A plugin is allowed to read hold-outs.
    Allowed,
    /// A plugin blocks paths, but not a hold-out folder.
    NotBlocked {
        /// The hold-out folder that is not blocked.
        folder: &'a Entry,
    },
}

impl OptOutFault<'_> {
    fn report(self, inputs: GrantInputs<'_>, effective: &mut Effective) {
        let plugin = inputs.source.name;
        let (attribute, fault, help) = match self {
            Self::Part { entry, folder } => (
                key::CODEX_BLOCK_READ_PATHS,
                format!("`{entry}` is only a part of the hold-outs in `{folder}`"),
                "name whole folders, such as `scripts/scenarios/`",
            ),
            Self::Allowed => (
                key::CODEX_ALLOW_READ_SCENARIOS,
                format!("the plugin `{plugin}` may never read hold-outs"),
                "remove the attribute",
            ),
            Self::NotBlocked { folder } => (
                key::CODEX_BLOCK_READ_PATHS,
                format!("the plugin `{plugin}` may never read the hold-outs in `{folder}`"),
                "add the hold-outs to the list, or remove the attribute",
            ),
        };
        let place = inputs.place;
        let message = format!("`{attribute}` of node `{place}`: {fault}");
        let error = Diagnostic::error("holdout_access", message, place.span_of(attribute)).with_help(help);
        effective.diagnostics.push(place.named_in(error));
    }
}

#[cfg(test)]
mod tests;
