//! What a node may do: what the author wants, the operator grants and the node's attributes allow, all at once.
//!
//! Pure, and the one place where the three meet. Every result is at most what each side says; a limit is at most what the
//! operator wrote. Deny by default: a third-party component without grants, or on a node without `allowed_write_paths`, has
//! nothing to write (design §9 #21), and what a component does not import it is not given.

use super::command_access::{command_access, strict_scope};
use super::{holdout_access, subject};
use crate::config::PluginEntry;
use crate::config::sandbox::SandboxSetting;
use crate::plan::capability::{CommandWords, Region};
use crate::plan::{Capability, CommandAccess, Giver, Grant, HoldoutAccess, Origin, Separation};
use glovebox_host::call::CommandGrant;
use glovebox_host::grants::{FileTier, Grants};
use glovebox_host::inspect::Inspection;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::Node;
use glovebox_pipeline::key::Key;
use glovebox_pipeline::lower::handler::{HandlerKind, Role};
use glovebox_pipeline::span::Span;
use glovebox_record::limit::StageKind;
use glovebox_record::scope::{Entry, Scope, intersect};
use glovebox_record::{LimitName, LimitSettings, Limits};

/// Paths that do not exist for any stage: they make programs run, or are the run's own.
const HIDDEN: [&str; 2] = [".git/", ".glovebox/"];

/// Everything that has a say in what a node may do.
#[derive(Clone, Copy)]
pub struct GrantInputs<'a> {
    /// The node.
    pub node: &'a Node,
    /// Its handler type.
    pub handler: &'a str,
    /// Its part in the run.
    pub role: Role,
    /// What the component's bytes say: imports and the author's wants.
    pub inspection: &'a Inspection,
    /// The operator's table; none for what came with the binary.
    pub plugin: Option<&'a PluginEntry>,
    /// The operator's bounds for every stage.
    pub limits: &'a LimitSettings,
    /// What the operator decided about the confinement of commands.
    pub sandbox: &'a SandboxSetting,
    /// The pipeline's hold-out folders, there or not.
    pub scenarios: &'a [Entry],
    /// Those of them that are sealed in this run.
    pub sealed: &'a [Entry],
}

/// What a node may do. The default denies everything.
#[derive(Debug, Clone, Default)]
pub struct Effective {
    /// How the component reaches files.
    pub tier: FileTier,
    /// What it and its commands may read and write.
    pub scope: Scope,
    /// What it may run.
    pub commands: CommandGrant,
    /// What its commands reach beyond the scope.
    pub command_access: CommandAccess,
    /// What it may do with hold-outs.
    pub holdouts: HoldoutAccess,
    /// How it is kept apart from the program it judges; none for a stage that judges none.
    pub separation: Option<Separation>,
    /// Whether it may ask the model.
    pub model: bool,
    /// Bounds of one attempt.
    pub limits: Limits,
    /// What it is given, and by whom.
    pub grants: Vec<Grant>,
    /// Attributes that could not be followed.
    pub diagnostics: Vec<Diagnostic>,
}

/// What author and operator agree on, whatever the node says.
pub fn granted(inspection: &Inspection, plugin: Option<&PluginEntry>) -> Grants {
    let manifest = inspection.manifest.as_ref().map(|manifest| &manifest.wants);
    let configured = plugin.and_then(|plugin| plugin.wants.as_ref());
    let wants = match (manifest, configured) {
        (Some(manifest), Some(configured)) => manifest.intersect(configured),
        (Some(wants), None) | (None, Some(wants)) => wants.clone(),
        (None, None) => Grants::default(),
    };
    match plugin {
        None => wants,
        Some(plugin) => wants.intersect(plugin.grants.as_ref().unwrap_or(&Grants::default())),
    }
}

/// The grants as lines, sorted, as `glovebox.lock` keeps them. Limits are bounds and no permission, so they are not among them.
pub fn grant_lines(grants: &Grants, role: Role) -> Vec<String> {
    let mut lines = vec![format!("filesystem {}", grants.filesystem.as_str())];
    lines.extend(grants.read.iter().map(|entry| format!("read {entry}")));
    lines.extend(grants.write.iter().map(|entry| format!("write {entry}")));
    lines.extend(grants.commands.iter().map(|command| format!("run {command}")));
    lines.extend(grants.model.then(|| "model".to_owned()));
    lines.extend((role == Role::Verifier).then(|| "role verifier".to_owned()));
    lines.sort();
    lines
}

/// Works out what a node may do.
pub fn effective(inputs: GrantInputs<'_>) -> Effective {
    let granted = granted(inputs.inspection, inputs.plugin);
    let mut effective = Effective { tier: granted.filesystem, ..Effective::default() };
    paths(inputs, &granted, &mut effective);
    commands(inputs, &granted, &mut effective);
    command_access(inputs, &mut effective);
    subject::separate(inputs, &mut effective);
    effective.model = granted.model && imports(inputs.inspection, "llm");
    if effective.model {
        effective.record_origin(Capability::Model, source(inputs, "model"));
    }
    limits(inputs, &mut effective);
    effective
}

impl Effective {
    pub(super) fn record_origin(&mut self, capability: Capability, origin: Origin) {
        self.grants.push(Grant { capability, origin });
    }
}

/// Who gave a grant before the node narrowed it.
fn source(inputs: GrantInputs<'_>, field: &'static str) -> Origin {
    let handler = inputs.handler.to_owned();
    Origin::of(match inputs.plugin {
        None => Giver::BuiltIn(handler),
        Some(plugin) => Giver::Plugin { handler, field, line: plugin.line },
    })
}

fn imports(inspection: &Inspection, interface: &str) -> bool {
    let prefix = format!("glovebox:plugin/{interface}@");
    inspection.imports.iter().any(|import| import.name.starts_with(&prefix))
}

fn paths(inputs: GrantInputs<'_>, granted: &Grants, effective: &mut Effective) {
    let whole = [Entry::whole()];
    // A built-in without a file tier still has commands, and they see what the node is given.
    let by_default = inputs.plugin.is_none() && granted.filesystem == FileTier::None;
    let (may_read, may_write): (&[Entry], &[Entry]) =
        if by_default { (&whole, &whole) } else { (&granted.read, &granted.write) };
    let read = inputs.node.read_paths.as_deref();
    let write = inputs.node.allowed_write_paths.as_deref();
    effective.scope.read = read.map_or_else(|| may_read.to_vec(), |list| intersect(may_read, list));
    let strict = strict_scope(inputs.node);
    if let Some(seen) = &strict {
        effective.scope.read = intersect(&effective.scope.read, seen);
    }
    effective.scope.write = match write {
        Some(list) => intersect(may_write, list),
        None if inputs.plugin.is_none() => may_write.to_vec(),
        None => Vec::new(),
    };
    if write.is_none() && inputs.plugin.is_some() && !may_write.is_empty() {
        effective.diagnostics.push(unused_write_grant(inputs, may_write));
    }
    effective.scope.hidden = HIDDEN.iter().filter_map(|text| Entry::parse(text).ok()).collect();
    holdout_access::decide(inputs, effective);
    let judges = effective.holdouts == HoldoutAccess::ReadOnly && inputs.role == Role::Verifier;
    if judges && write.is_none() {
        // What builder's code could write here would be the verifier's word.
        effective.scope.write.clear();
    }
    let narrowed = |attribute: &'static str, is_set: bool, field: &'static str| {
        let giver = if is_set { Giver::Attribute(attribute.into()) } else { Giver::Unset(attribute) };
        source(inputs, field).and(giver)
    };
    let mut of_read = narrowed("read_paths", read.is_some(), "read");
    if strict.is_some() {
        of_read = of_read.and(Giver::Attribute("codex.strict_read_scope".into()));
    }
    let of_write = narrowed("allowed_write_paths", write.is_some(), "write");
    let given = |entry: &Entry, capability: fn(Region) -> Capability, origin: &Origin| Grant {
        capability: capability(Region::of(entry.clone())),
        origin: origin.clone(),
    };
    let scope = &effective.scope;
    effective.grants.extend(scope.read.iter().map(|entry| given(entry, Capability::Read, &of_read)));
    effective.grants.extend(scope.write.iter().map(|entry| given(entry, Capability::Write, &of_write)));
}

fn unused_write_grant(inputs: GrantInputs<'_>, may_write: &[Entry]) -> Diagnostic {
    let node = &inputs.node.id;
    let paths = may_write.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let message = format!(
        "node `{node}` writes nothing: `{}` is granted `{paths}`, but the node does not say so",
        inputs.handler
    );
    Diagnostic::warning("write_scope_missing", message, inputs.node.span)
        .with_help(format!("add `allowed_write_paths=\"{paths}\"` to the node"))
        .with_node(node.as_str())
}

fn commands(inputs: GrantInputs<'_>, granted: &Grants, effective: &mut Effective) {
    if granted.commands.is_empty() || !imports(inputs.inspection, "exec") {
        return;
    }
    if let Some(attribute) = HandlerKind::of(inputs.handler).command() {
        let text = inputs.node.attributes.get(attribute).map(|attribute| attribute.value.to_string());
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            effective.record_origin(Capability::Shell(text.clone()), Origin::attribute(attribute.as_str()));
            effective.commands.shell_texts.push(text);
        }
        return;
    }
    let asked = Grants { commands: inputs.node.allowed_commands.clone().unwrap_or_default(), ..Grants::default() };
    let both = Grants { commands: granted.commands.clone(), ..Grants::default() }.intersect(&asked);
    for command in both.commands {
        let origin = source(inputs, "commands").and(Giver::Attribute("allowed_commands".into()));
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

/// What a component mainly does, by its role and whether it came with the binary.
fn stage_kind(inputs: GrantInputs<'_>) -> StageKind {
    match (inputs.role, inputs.plugin) {
        (Role::Verifier, _) => StageKind::Commands,
        (Role::Builder, None) => StageKind::Agent,
        (Role::Builder, Some(_)) => StageKind::Other,
    }
}

fn limits(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let node = inputs.node;
    let granted = inputs.plugin.and_then(|plugin| plugin.grants.as_ref()).map(|grants| &grants.limits);
    let operator = granted.map_or_else(|| inputs.limits.clone(), |granted| inputs.limits.merge(granted));
    let mut limits = Limits::defaults_for(stage_kind(inputs));
    limits.replace(&operator);
    let timeout = node.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    // A node's own timeout and turns stand in for the defaults, but never for what the operator wrote.
    let turns = node.max_turns.map(u64::from);
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
        inputs.plugin.and_then(|p| p.wants.as_ref()),
    ] {
        limits.lower(wants.map_or(&LimitSettings::default(), |wants| &wants.limits));
    }
    for (name, value) in node.limits.iter() {
        lower_by_attribute(node, name, value, &mut limits, effective);
    }
    effective.limits = limits;
}

fn lower_by_attribute(node: &Node, name: LimitName, value: u64, limits: &mut Limits, effective: &mut Effective) {
    let attribute = format!("limits.{name}");
    let bound = limits.get(name);
    if value > bound {
        let message = format!("`{attribute}` of node `{}` asks for {value}, the bound is {bound}", node.id);
        let diagnostic = Diagnostic::warning("limit_not_raised", message, span_of(node, Key::new(&attribute)))
            .with_help(format!(
                "a node can only lower a bound; raise it with `{name} = {value}` under `[limits]` in glovebox.toml"
            ))
            .with_node(node.id.as_str());
        effective.diagnostics.push(diagnostic);
        return;
    }
    limits.lower(&LimitSettings::from_iter([(name, value)]));
    effective.record_origin(Capability::Limit(name, value), Origin::attribute(attribute));
}

/// Where an attribute stands; the node itself when a default brought it.
pub(super) fn span_of(node: &Node, attribute: Key<'_>) -> Span {
    node.attributes.get(attribute).map_or(node.span, |attribute| attribute.span)
}

#[cfg(test)]
mod tests;
