//! Decides which tools of plugins a node may call, and loads these plugins.
//!
//! The operator's tables name the plugins and their tools, and the node names those that it uses. The stage's component must import
//! `tools` and be granted a model. A node that asks for more than the tables allow is an error. A list on the graph has no effect on
//! stages that can have no tools: stages with an agent program, and stages that read hold-outs.

use super::Binder;
use super::inputs::{Effective, GrantInputs};
use super::request::Request;
use super::role::HandlerSource;
use crate::components::PluginProblem;
use crate::config::{CONFIG_FILE_NAME, PluginEntry};
use crate::lock::LockedPlugin;
use crate::lock::wants::granted;
use crate::plan::{BoundProvider, Capability, HoldoutAccess, Origin, OriginPart, ProviderComponent, ServerGrant};
use glovebox_host::grants::Grants;
use glovebox_host::inspect::Inspection;
use glovebox_host::tool_provider;
use glovebox_host::tools::{AllowedTools, model_prefix};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::Role;
use glovebox_pipeline::key;
use glovebox_pipeline::nearest::nearest;
use glovebox_record::scope::{Scope, intersect};
use glovebox_record::{LimitName, LimitSettings, Limits};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Default of the maximum duration of one call of a provider.
const CALL_MS: u64 = 30_000;
/// The export of a component that offers tools.
const EXPORT: &str = "glovebox:plugin/tool@";

/// A plugin that may be asked for tools.
#[derive(Clone)]
pub struct LoadedProvider<'a> {
    entry: &'a PluginEntry,
    component: ProviderComponent,
    granted: Arc<Grants>,
}

/// Returns true if a component offers tools.
pub fn offers_tools(inspection: &Inspection) -> bool {
    inspection.exports.iter().any(|export| export.starts_with(EXPORT))
}

/// Returns why a plugin has tools in its table although it offers none. `None` if it offers tools or has none in its table.
pub fn tools_fault(entry: &PluginEntry, inspection: &Inspection) -> Option<&'static str> {
    let is_wrong = entry.tools != AllowedTools::default() && !offers_tools(inspection);
    is_wrong.then_some("its table has `tools`, but the component is not of the world `tool-provider`")
}

/// Returns why a plugin cannot offer tools with this table. `None` if it can.
pub fn provider_fault(name: &str, entry: &PluginEntry) -> Option<String> {
    let grants = entry.grants.as_ref();
    let has = |is_set: fn(&Grants) -> bool| grants.is_some_and(is_set);
    if has(|grants| !grants.write.is_empty()) {
        return Some("it is granted `write`, but a tool provider only reads files".to_owned());
    }
    if has(|grants| !grants.commands.is_empty()) {
        return Some("it is granted `commands`, but a tool provider runs no commands".to_owned());
    }
    if has(|grants| grants.model) {
        return Some("it is granted `model`, but a tool provider asks no model".to_owned());
    }
    if entry.role == Role::Verifier {
        return Some("it has `role = \"verifier\"`, but a tool provider is no stage".to_owned());
    }
    model_prefix(name).is_none().then(|| {
        "its name has `__` or ends with `_`, so that the name of one of its tools could be taken for another".to_owned()
    })
}

impl<'a> Binder<'a> {
    /// Loads the plugins whose tools a node asks for. A plugin that may not run is an error of its own.
    pub(super) fn providers(&mut self, request: &Request<'a>) -> Vec<(&'a str, Option<LoadedProvider<'a>>)> {
        let asked = request.tool_providers.providers();
        let configured = asked.iter().filter_map(|(name, _)| self.operator.config.plugins.get_key_value(*name));
        let configured: Vec<(&'a String, &'a PluginEntry)> = configured.collect();
        let mut found = Vec::new();
        for (name, entry) in configured {
            if !self.providers.contains_key(name.as_str()) {
                let source = HandlerSource { name, plugin: Some(entry) };
                let loaded = self.load_provider(source, entry).map_err(|problem| self.errors.plugins.push(problem));
                self.providers.insert(name, loaded.ok());
            }
            found.push((name.as_str(), self.providers.get(name.as_str()).cloned().flatten()));
        }
        found
    }

    /// Loads a plugin. As for a handler, the compiler gets only bytes to which the operator agreed.
    fn load_provider(
        &mut self,
        source: HandlerSource<'_>,
        entry: &'a PluginEntry,
    ) -> Result<LoadedProvider<'a>, PluginProblem> {
        let name = source.name;
        let bytes = source.plugin_bytes(entry, self.catalog.plugins.get(name))?;
        let inspection = self.check_plugin(source, entry, bytes)?;
        tool_provider::check(&inspection).map_err(|error| source.refused(&error))?;
        if let Some(fault) = provider_fault(name, entry) {
            return Err(source.problem(format!("plugin `{name}` cannot offer tools: {fault}")));
        }
        let signer = self.admit(source, &inspection)?;
        let granted = Arc::new(granted(&inspection, Some(entry)));
        let locked = self.operator.lock.plugins.get(name);
        let now = LockedPlugin { signer, ..LockedPlugin::for_plugin(name, entry, locked, &inspection) };
        let unlocked = |inspection| ProviderComponent::Unlocked(Arc::new(inspection));
        if let Err(problem) = self.check_agreed(source, &now) {
            if self.plan_only { &mut self.unlocked } else { &mut self.errors.plugins }.push(problem);
            return Ok(LoadedProvider { entry, component: unlocked(inspection), granted });
        }
        let component = match self.host {
            None => unlocked(inspection),
            Some(host) => {
                let loaded = host.load_provider(bytes, self.operator.config.component_bytes(name));
                ProviderComponent::Loaded(loaded.map_err(|error| source.refused(&error))?)
            }
        };
        Ok(LoadedProvider { entry, component, granted })
    }
}

/// Decides the tools of plugins that a node may call. Must be called after its model and scope are decided.
pub(super) fn decide(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let asked = inputs.request.tool_providers;
    if let Some((message, help)) = unable(inputs, effective) {
        if asked.is_own {
            refuse(inputs, effective, "tools_not_callable", message, help.to_owned());
        }
        return;
    }
    for (name, tools) in asked.providers() {
        let Some(provider) = provider(inputs, effective, name, tools) else { continue };
        if let Some(other) = same_names(&provider, &effective.providers) {
            let message = format!(
                "node `{}` asks for tools of `{other}` and `{name}`, whose tools have the same names for a model",
                inputs.place
            );
            let help = "name only one of the two plugins on a node".to_owned();
            refuse(inputs, effective, "tools_not_granted", message, help);
            continue;
        }
        let origin = |is_narrowed: bool| {
            let origin = Origin::from_part(OriginPart::Provider(name.to_owned()));
            if is_narrowed { origin.and(OriginPart::Attribute("tools".into())) } else { origin }
        };
        for grant in provider.grants() {
            let origin = origin(matches!(grant, ServerGrant::Tool(_) | ServerGrant::AnyTool));
            effective.record_origin(Capability::ToolProvider(name.to_owned(), grant), origin);
        }
        effective.record_origin(Capability::Plugin(name.to_owned()), origin(true));
        effective.providers.push(provider);
    }
}

/// Returns why a stage can call no tools of plugins, and a remedy. `None` if it can.
fn unable(inputs: GrantInputs<'_>, effective: &Effective) -> Option<(String, &'static str)> {
    let place = inputs.place;
    if effective.program.is_some() {
        let message = format!("the agent program of node `{place}` cannot call tools of plugins");
        return Some((message, "remove `tools` or `agent.backend`: only Glovebox's own agent calls tools of plugins"));
    }
    if effective.holdouts == HoldoutAccess::ReadOnly {
        let message = format!("node `{place}` reads hold-outs, so it cannot call tools of plugins");
        return Some((message, "remove `tools` from the node"));
    }
    let imports = |import: &str| import.starts_with("glovebox:plugin/tools@");
    let is_able = effective.model && inputs.inspection.imports.iter().any(|import| imports(&import.name));
    let message = || format!("node `{place}` asks for tools of plugins, but `{}` calls none", inputs.source.name);
    (!is_able).then(|| (message(), "remove `tools`: only agent stages can use it"))
}

/// Returns one plugin with the tools that the node may call.
fn provider(
    inputs: GrantInputs<'_>,
    effective: &mut Effective,
    name: &str,
    named: Option<Vec<&str>>,
) -> Option<BoundProvider> {
    let place = inputs.place;
    let Some((_, loaded)) = inputs.providers.iter().find(|(known, _)| *known == name) else {
        let message =
            format!("node `{place}` asks for tools of `{name}`, but {CONFIG_FILE_NAME} has no `[plugins.\"{name}\"]`");
        let help = match nearest(name, inputs.plugins.keys().map(String::as_str)) {
            Some(known) => format!("did you mean `{known}`?"),
            None => {
                format!("add it to {CONFIG_FILE_NAME}:\n[plugins.\"{name}\"]\npath = \"plugin.wasm\"\ntools = [\"…\"]")
            }
        };
        refuse(inputs, effective, "tools_unknown", message, help);
        return None;
    };
    // A plugin that may not run is reported already.
    let LoadedProvider { entry, component, granted } = loaded.clone()?;
    if entry.tools == AllowedTools::default() {
        let message = format!("node `{place}` asks for tools of `{name}`, but none of its tools is allowed");
        let help = format!("name them: `tools = [\"…\"]` under `[plugins.\"{name}\"]` in {CONFIG_FILE_NAME}");
        refuse(inputs, effective, "tools_not_granted", message, help);
        return None;
    }
    let tools = match named {
        None => entry.tools.clone(),
        Some(named) => {
            for tool in named.iter().filter(|tool| !entry.tools.has(tool)) {
                let message =
                    format!("node `{place}` asks for the tool `{name}/{tool}`, which the operator does not allow");
                let help = format!("add it to `tools` under `[plugins.\"{name}\"]` in {CONFIG_FILE_NAME}");
                refuse(inputs, effective, "tools_not_granted", message, help);
            }
            let granted: BTreeSet<String> =
                named.into_iter().filter(|tool| entry.tools.has(tool)).map(str::to_owned).collect();
            AllowedTools::Named(granted)
        }
    };
    let (scope, sealed) = (&effective.scope, inputs.holdouts.sealed);
    let seen: Vec<_> = scope.read.iter().chain(&scope.write).cloned().collect();
    let hidden = sealed.iter().chain(inputs.scenarios()).chain(&scope.hidden).cloned().collect();
    let scope = Scope { read: intersect(&granted.read, &seen), hidden, ..Scope::default() };
    let limits = limits(inputs.limits, entry, component.inspection());
    Some(BoundProvider { name: name.to_owned(), component, tools, tier: granted.filesystem, scope, limits })
}

/// Returns the provider whose tools have the same names for a model: `a.b-c` and `a-b.c`.
fn same_names<'p>(provider: &BoundProvider, others: &'p [BoundProvider]) -> Option<&'p str> {
    let prefix = model_prefix(&provider.name);
    others.iter().map(|other| other.name.as_str()).find(|other| model_prefix(other) == prefix)
}

/// Returns the limits of one call. The operator's limits replace the defaults, and the author can only lower them.
fn limits(all: &LimitSettings, entry: &PluginEntry, inspection: &Inspection) -> Limits {
    let none = LimitSettings::default();
    let granted = entry.grants.as_ref().map_or(&none, |grants| &grants.limits);
    let mut limits = Limits::default();
    limits.replace(&all.merge(granted));
    if granted.get(LimitName::WallMs).is_none() {
        limits.wall_ms = limits.wall_ms.min(CALL_MS);
    }
    let wants = inspection.manifest.as_ref().map(|manifest| &manifest.wants).into_iter().chain(&entry.wants);
    wants.for_each(|wants| limits.lower(&wants.limits));
    limits
}

fn refuse(inputs: GrantInputs<'_>, effective: &mut Effective, rule: &'static str, message: String, help: String) {
    let error = Diagnostic::error(rule, message, inputs.place.span_of(key::TOOLS)).with_help(help);
    effective.diagnostics.push(inputs.place.named_in(error));
}
