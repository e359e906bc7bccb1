//! Decides how a verifying stage is separated from the program that it judges.
//!
//! Pure. The program under test is builders' code. It gets a sandbox of its own, and builders never see files that a
//! stage wrote while the stage could read hold-outs. Opt-outs of the pipeline's author are listed in the plan and in
//! the record.

use super::inputs::{Effective, GrantInputs};
use crate::plan::binding::runs_commands;
use crate::plan::{Capability, HoldoutAccess, Origin, Separation};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::Role;
use glovebox_pipeline::ir::holdouts::Writes;
use glovebox_pipeline::key;
use glovebox_pipeline::reach::{ReachReason, writes_dropped};
use glovebox_record::scope::Entry;

/// Decides the separation for a verifying stage that can read hold-outs or names the program under test. Must be called after
/// scope, commands and hold-outs are decided.
pub(super) fn separate(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let request = inputs.request;
    let reaches = effective.holdouts == HoldoutAccess::ReadOnly;
    let is_verifier = inputs.source.role() == Role::Verifier && runs_commands(&effective.commands);
    let is_asked = request.subject.command.is_some();
    effective.command_access.cache_from_base = is_verifier && request.confinement.cache_from.is_some();
    if !is_verifier {
        unused_base(inputs, effective);
    }
    if !is_verifier || !(reaches || is_asked) {
        return;
    }
    let sealed = |entry: &Entry| inputs.holdouts.sealed.iter().any(|folder| folder.covers(entry));
    // Files in a scratch folder of the workspace are visible too.
    let shown = effective.scope.read.iter().chain(&effective.scope.write).chain(&effective.command_access.scratch);
    let is_isolated = reaches && shown.into_iter().all(sealed);
    let writes = if reaches { request.holdouts.writes } else { Writes::Commit };
    let command = request.subject.command.as_ref().map(ToString::to_string);
    if let Some(text) = &command {
        effective.record_origin(Capability::Subject(text.clone()), Origin::attribute("verify_subject"));
    }
    if reaches && writes == Writes::Commit {
        effective.record_origin(Capability::CommitBesideHoldouts, Origin::attribute("scenario_writes=\"commit\""));
    }
    if reaches && writes == Writes::Scratch {
        dropped_by_contract(inputs, effective);
    }
    let (port, is_scope_named) = (request.subject.port, request.write_paths.is_some());
    effective.separation = Some(Separation { command, port, is_isolated, writes, is_scope_named });
}

/// Warns that writes of a stage are discarded because its verify contract lets it read hold-outs. All other cases are
/// found by the lint.
fn dropped_by_contract(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let written = inputs.request.write_paths.filter(|paths| !paths.is_empty());
    let is_by_contract = |folder: &&Entry| inputs.request.reach_reason(folder) == Some(ReachReason::Contract);
    let folder = inputs.holdouts.sealed.iter().find(is_by_contract);
    let Some((written, folder)) = written.zip(folder) else { return };
    let place = inputs.place;
    let message = writes_dropped(place.id(), folder, ReachReason::Contract, written);
    let warning = Diagnostic::warning("holdout_writes_dropped", message, place.span_of(key::ALLOWED_WRITE_PATHS));
    effective.diagnostics.push(place.named_in(warning));
}

/// Warns of a `cache_from` without effect: the cache of a builder is kept between visits.
fn unused_base(inputs: GrantInputs<'_>, effective: &mut Effective) {
    if inputs.request.confinement.cache_from.is_none() {
        return;
    }
    let place = inputs.place;
    let message = format!(
        "node `{place}` judges no work by commands, so its cache is kept between visits and `cache_from` has no effect"
    );
    let warning = Diagnostic::warning("cache_from", message, place.span_of(key::CACHE_FROM));
    effective.diagnostics.push(place.named_in(warning));
}

#[cfg(test)]
mod tests;
