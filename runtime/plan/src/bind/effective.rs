//! Computes what a node may do: the intersection of what the plugin's author wants, the operator grants and the node's
//! attributes allow.
//!
//! Pure, and the only place that combines the three. A result allows nothing that one of the three does not allow, and
//! a limit is never higher than the operator wrote. Deny by default: a plugin without grants, or on a node without
//! `allowed_write_paths`, writes nothing (decision unset-write-scope), and a component gets nothing that it does not
//! import.

use super::command_access::{command_access, strict_scope};
use super::inputs::{Effective, GrantInputs, record_all};
use super::request::Place;
use super::{holdout_access, program, subject, tool_hooks, tool_providers, tool_servers};
use crate::plan::capability::{CommandWords, Region};
use crate::plan::{Capability, GrantField, HoldoutAccess, Origin, OriginPart};
use glovebox_host::grants::{FileTier, shared_commands};
use glovebox_host::inspect::Inspection;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{HandlerKind, Role};
use glovebox_pipeline::key::Key;
use glovebox_pipeline::keyed::Text;
use glovebox_record::limit::StageKind;
use glovebox_record::scope::{ALWAYS_HIDDEN, Entry, Scope, intersect};
use glovebox_record::{LimitName, LimitSettings, Limits};
use std::sync::LazyLock;

/// The entries of [`ALWAYS_HIDDEN`].
static HIDDEN: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let folders = ALWAYS_HIDDEN.into_iter().map(Entry::parse);
    folders.collect::<Result<_, _>>().expect("both are paths of a scope")
});

/// Computes what a node may do.
pub fn effective(inputs: GrantInputs<'_>) -> Effective {
    let granted = inputs.granted;
    let mut effective = Effective { tier: granted.filesystem, ..Effective::default() };
    paths(inputs, &mut effective);
    commands(inputs, &mut effective);
    command_access(inputs, &mut effective);
    subject::separate(inputs, &mut effective);
    effective.model = granted.model && Interface::Llm.is_imported(inputs.inspection);
    if effective.model {
        effective.record_origin(Capability::Model, source(inputs, GrantField::Model));
    }
    tool_hooks::decide(inputs, &mut effective);
    program::decide(inputs, &mut effective);
    tool_servers::decide(inputs, &mut effective);
    tool_providers::decide(inputs, &mut effective);
    limits(inputs, &mut effective);
    effective
}

/// Returns the origin of a grant, before the node narrows it.
fn source(inputs: GrantInputs<'_>, field: GrantField) -> Origin {
    let handler = Text::from(inputs.source.name);
    Origin::from_part(match inputs.source.plugin {
        None => OriginPart::BuiltIn(handler),
        Some(plugin) => OriginPart::Plugin { handler, field, line: plugin.line },
    })
}

/// An interface that a component must import to use what it is granted.
#[derive(Debug, Clone, Copy)]
enum Interface {
    Exec,
    Llm,
}

impl Interface {
    fn is_imported(self, inspection: &Inspection) -> bool {
        let prefix = match self {
            Interface::Exec => "glovebox:plugin/exec@",
            Interface::Llm => "glovebox:plugin/llm@",
        };
        inspection.imports.iter().any(|import| import.name.starts_with(prefix))
    }
}

fn paths(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let granted = inputs.granted;
    let whole = [Entry::whole()];
    // A built-in component without access to files still has commands. The commands see what the node's attributes allow.
    let by_default = inputs.source.plugin.is_none() && granted.filesystem == FileTier::None;
    let (may_read, may_write): (&[Entry], &[Entry]) =
        if by_default { (&whole, &whole) } else { (&granted.read, &granted.write) };
    let (read, write) = (inputs.request.read_paths, inputs.request.write_paths);
    effective.scope.read = read.map_or_else(|| may_read.to_vec(), |list| intersect(may_read, list));
    let strict = strict_scope(inputs.request.confinement);
    if let Some(seen) = &strict {
        effective.scope.read = intersect(&effective.scope.read, seen);
    }
    effective.scope.write = match write {
        Some(list) => intersect(may_write, list),
        None if inputs.source.plugin.is_none() => may_write.to_vec(),
        None => Vec::new(),
    };
    if write.is_none() && inputs.source.plugin.is_some() && !may_write.is_empty() {
        effective.diagnostics.push(unused_write_grant(inputs, may_write));
    }
    effective.may_write = may_write.to_vec();
    if inputs.request.backend.is_some_and(|backend| backend.options.is_read_only) {
        effective.may_write.clear();
        effective.scope.write.clear();
    }
    effective.scope.hidden = HIDDEN.clone();
    holdout_access::decide(inputs, effective);
    let judges = effective.holdouts == HoldoutAccess::ReadOnly && inputs.source.role() == Role::Verifier;
    if judges && write.is_none() {
        // Otherwise the builders' code, which the verifier starts, could write files in the name of the verifier.
        effective.scope.write.clear();
    }
    let narrowed = |attribute: &'static str, is_set: bool, field: GrantField| {
        let part = if is_set { OriginPart::Attribute(attribute.into()) } else { OriginPart::Unset(attribute) };
        source(inputs, field).and(part)
    };
    let mut of_read = narrowed("read_paths", read.is_some(), GrantField::Read);
    if strict.is_some() {
        of_read = of_read.and(OriginPart::Attribute("codex.strict_read_scope".into()));
    }
    let of_write = narrowed("allowed_write_paths", write.is_some(), GrantField::Write);
    let Scope { read, write, .. } = &effective.scope;
    let read = read.iter().map(Region::from_entry).map(Capability::Read);
    let write = write.iter().map(Region::from_entry).map(Capability::Write);
    record_all(&mut effective.grants, &of_read, read);
    record_all(&mut effective.grants, &of_write, write);
}

fn unused_write_grant(inputs: GrantInputs<'_>, may_write: &[Entry]) -> Diagnostic {
    let paths = may_write.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let message = format!(
        "node `{}` writes nothing: `{}` is granted `{paths}`, but the node has no `allowed_write_paths`",
        inputs.place, inputs.source.name
    );
    let warning = Diagnostic::warning("write_scope_missing", message, inputs.place.span())
        .with_help(format!("add `allowed_write_paths=\"{paths}\"` to the node"));
    inputs.place.named_in(warning)
}

fn commands(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let granted = inputs.granted;
    if granted.commands.is_empty() || !Interface::Exec.is_imported(inputs.inspection) {
        return;
    }
    if let Some(attribute) = HandlerKind::from_name(inputs.source.name).command() {
        if let Some(text) = inputs.request.shell_text.filter(|text| !text.trim().is_empty()) {
            effective.record_origin(Capability::Shell(text.to_owned()), Origin::attribute(attribute.as_str()));
            effective.commands.shell_texts.push(text.to_owned());
        }
        return;
    }
    checks(inputs, effective);
    let list = HandlerKind::from_name(inputs.source.name).allow_list();
    for command in shared_commands(&granted.commands, inputs.request.commands) {
        let origin = source(inputs, GrantField::Commands).and(OriginPart::Attribute(list.as_str().into()));
        if command.trim() == "*" {
            effective.commands.any = true;
            effective.record_origin(Capability::AnyCommand, origin);
        } else {
            let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            effective.record_origin(Capability::Argv(CommandWords(words.clone())), origin);
            effective.commands.argv_prefixes.push(words);
        }
    }
}

/// Adds the commands of verify contracts and the test commands for the kind of project, exactly as they are written.
fn checks(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let is_verification = HandlerKind::from_name(inputs.source.name) == HandlerKind::Verification;
    let Some(verify) = inputs.verify.filter(|_| is_verification) else { return };
    let origin = source(inputs, GrantField::Commands).and(OriginPart::ConfigTable("verify"));
    for command in verify.commands(inputs.request.verification_role) {
        effective.record_origin(Capability::Argv(CommandWords(command.words.clone())), origin.clone());
        effective.commands.argv_prefixes.push(command.words.clone());
    }
}

/// Returns the main purpose of a component, by its role and whether it is built in.
fn stage_kind(inputs: GrantInputs<'_>) -> StageKind {
    match (inputs.source.role(), inputs.source.plugin) {
        (Role::Verifier, _) => StageKind::Commands,
        (Role::Builder, None) => StageKind::Agent,
        (Role::Builder, Some(_)) => StageKind::Other,
    }
}

fn limits(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let request = inputs.request;
    let granted = inputs.source.plugin.and_then(|plugin| plugin.grants.as_ref()).map(|grants| &grants.limits);
    let operator = inputs.limits.merge(granted.unwrap_or(&LimitSettings::default()));
    let mut limits = Limits::defaults_for(stage_kind(inputs));
    limits.replace(&operator);
    let timeout = request.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    // A node's own timeout and turns replace the defaults, but are never higher than the operator's limits.
    let turns = request.max_turns.map(u64::from);
    let own = [(LimitName::WallMs, "timeout", timeout), (LimitName::Turns, "max_turns", turns)];
    for (name, attribute, value) in own {
        let Some(value) = value else { continue };
        let bound = operator.get(name).map_or(value, |most| most.min(value));
        limits.replace(&LimitSettings::from_iter([(name, bound)]));
        if name == LimitName::Turns && operator.get(LimitName::ToolRounds).is_none() {
            limits.tool_rounds = limits.tool_rounds.max(bound);
        }
        effective.record_origin(Capability::Limit(name, bound), Origin::attribute(attribute));
    }
    for wants in [
        inputs.inspection.manifest.as_ref().map(|manifest| &manifest.wants),
        inputs.source.plugin.and_then(|p| p.wants.as_ref()),
    ] {
        limits.lower(wants.map_or(&LimitSettings::default(), |wants| &wants.limits));
    }
    for (name, value) in request.limits.iter() {
        lower_by_attribute(inputs.place, name, value, &mut limits, effective);
    }
    effective.limits = limits;
}

fn lower_by_attribute(place: Place<'_>, name: LimitName, value: u64, limits: &mut Limits, effective: &mut Effective) {
    let attribute = format!("limits.{name}");
    let bound = limits.get(name);
    if value > bound {
        let message = format!("`{attribute}` of node `{place}` asks for {value}, but the limit is {bound}");
        let warning =
            Diagnostic::warning("limit_not_raised", message, place.span_of(Key::new(&attribute))).with_help(format!(
                "a node can only lower a limit; set `{name} = {value}` under `[limits]` in glovebox.toml to raise it"
            ));
        effective.diagnostics.push(place.named_in(warning));
        return;
    }
    limits.lower(&LimitSettings::from_iter([(name, value)]));
    effective.record_origin(Capability::Limit(name, value), Origin::attribute(attribute));
}

#[cfg(test)]
mod tests;
