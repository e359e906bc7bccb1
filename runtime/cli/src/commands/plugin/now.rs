//! The plugins of a project as they are now, in the form of the lock file.

use super::source::{ComponentFound, FoundPlace};
use super::{cannot_be_used, inspect_bytes, read_bytes, shown, signature};
use crate::exit::{Exit, Stop};
use crate::terminal::agreement::Agreement;
use crate::terminal::visible;
use glovebox_host::component::check_handler;
use glovebox_host::inspect::Inspection;
use glovebox_host::tool_provider;
use glovebox_pipeline::ir::Role;
use glovebox_plan::bind::role::verifier_fault;
use glovebox_plan::bind::tool_providers::{provider_fault, tools_fault};
use glovebox_plan::components::ReadProblem;
use glovebox_plan::config::{ComponentSource, PluginEntry, PolicyEntry, RuleEntry};
use glovebox_plan::lock::wants::{granted, wanted};
use glovebox_plan::lock::{LOCK_FILE_NAME, Lock, LockedPlugin};
use glovebox_plan::prepare::plugin_bytes;
use glovebox_plan::prepare::project::Project;
use std::borrow::Cow;
use std::path::PathBuf;

/// The world of a component that offers tools and is no stage.
pub const TOOL_PROVIDER: &str = "tool-provider";

/// A plugin as it is now.
pub struct PluginNow<'a> {
    /// The entry that the lock file would have.
    pub plugin: LockedPlugin,
    /// What author and operator wrote. `None` for a rule plugin and a policy.
    pub agreement: Option<Agreement<'a>>,
    /// Why it may not run, whatever the lock file says: it was revoked, or is not signed as the project requires.
    pub refused: Option<Stop>,
}

impl PluginNow<'_> {
    /// Adds the key that signed the component in a file, or why the component is refused.
    pub fn checked(mut self, project: &Project, entry: &ConfigEntry<'_>, component: ProjectComponent) -> Self {
        let ProjectComponent { bytes, inspection } = component;
        let signatures = plugin_bytes::signatures(project, entry.name, &entry.source);
        let place = FoundPlace::File(PathBuf::from(entry.source.to_string()));
        let found = ComponentFound { bytes, place, signatures, provenance: Ok(Vec::new()) };
        match signature::require(project, entry.name, &found, &inspection) {
            Ok(vouched) => self.plugin.signer = vouched.signer,
            Err(refused) => self.refused = Some(refused),
        }
        self
    }
}

/// Returns the error for a name that `glovebox.toml` does not have.
pub fn unknown(name: &str) -> Stop {
    let stop = Stop::new(Exit::Usage, format!("`{}` is not a plugin of this project", visible::line(name)));
    stop.with_help("see the plugins with `glovebox plugin ls`")
}

/// Returns all plugins, rule plugins and policies of a project, in the order of their names.
pub fn plugins_now(project: &Project) -> Result<Vec<PluginNow<'_>>, Stop> {
    each_now(project).into_iter().map(|(_, now)| now).collect()
}

/// Returns the names of all plugins, rule plugins and policies of a project, each with the plugin or why it cannot be read.
pub fn each_now(project: &Project) -> Vec<(&str, Result<PluginNow<'_>, Stop>)> {
    let plugin = |(name, entry): (&'_ String, &'_ PluginEntry)| {
        let listed = ConfigEntry::plugin(name, entry);
        let component = listed.read(project)?;
        let now = plugin_now(project, name, entry, &component.inspection)?;
        Ok(now.checked(project, &listed, component))
    };
    let rules = |(name, entry): (&'_ String, &'_ RuleEntry)| {
        let listed = ConfigEntry::rules(name, entry);
        let component = listed.read(project)?;
        let plugin = rules_now(name, entry, &component.inspection)?;
        Ok(PluginNow { plugin, agreement: None, refused: None }.checked(project, &listed, component))
    };
    let policy = |(name, entry): (&'_ String, &'_ PolicyEntry)| {
        let listed = ConfigEntry::policy(name, entry);
        let component = listed.read(project)?;
        let plugin = policy_now(name, entry, &component.inspection)?;
        Ok(PluginNow { plugin, agreement: None, refused: None }.checked(project, &listed, component))
    };
    let mut found = Vec::new();
    for (name, entry) in &project.config.plugins {
        found.push((name.as_str(), plugin((name, entry))));
    }
    for (name, entry) in &project.config.rules {
        found.push((name.as_str(), rules((name, entry))));
    }
    for (name, entry) in &project.config.policies {
        found.push((name.as_str(), policy((name, entry))));
    }
    found
}

/// Returns the plugin with these bytes, without its signer, or refuses a component that no stage could use.
pub fn plugin_now<'a>(
    project: &'a Project,
    name: &str,
    entry: &PluginEntry,
    inspection: &Inspection,
) -> Result<PluginNow<'a>, Stop> {
    let shown = visible::line(&entry.source.to_string()).into_owned();
    let is_provider = inspection.world == TOOL_PROVIDER;
    let checked = if is_provider { tool_provider::check(inspection) } else { check_handler(inspection) };
    checked.map_err(|error| cannot_be_used(&shown, &error))?;
    let fault = tools_fault(entry, inspection).map(str::to_owned);
    if let Some(fault) = fault.or_else(|| provider_fault(name, entry).filter(|_| is_provider)) {
        return Err(Stop::new(Exit::Plugin, format!("plugin `{name}` cannot offer tools: {fault}")));
    }
    let granted = granted(inspection, Some(entry));
    if let Some(fault) = verifier_fault(inspection, &granted).filter(|_| entry.role == Role::Verifier) {
        return Err(Stop::new(Exit::Plugin, format!("plugin `{name}` cannot be a verifier: {fault}")));
    }
    let (wants, offered) = (wanted(inspection, Some(entry)), entry.grants.clone().unwrap_or_default());
    let agreement = Agreement { wants, offered, granted, network: &project.config.sandbox.network };
    Ok(PluginNow {
        plugin: LockedPlugin::for_plugin(name, entry, project.lock.plugins.get(name), inspection),
        agreement: Some(agreement),
        refused: None,
    })
}

/// Checks a rule plugin, which imports nothing. Its only grant is to change the graph.
fn rules_now(name: &str, entry: &RuleEntry, inspection: &Inspection) -> Result<LockedPlugin, Stop> {
    glovebox_host::rules::check(inspection).map_err(|error| {
        Stop::new(Exit::Plugin, format!("`{}` cannot be used for rules: {error}", visible::line(&entry.path)))
    })?;
    Ok(LockedPlugin::for_rules(name, entry, inspection))
}

/// Checks a policy, which imports nothing and has no grants.
fn policy_now(name: &str, entry: &PolicyEntry, inspection: &Inspection) -> Result<LockedPlugin, Stop> {
    glovebox_host::policy::check(inspection).map_err(|error| {
        Stop::new(Exit::Plugin, format!("`{}` cannot be used as a policy: {error}", visible::line(&entry.path)))
    })?;
    Ok(LockedPlugin::for_policy(name, entry, inspection))
}

/// Refuses a project whose plugins differ from its lock file in any way (`--locked`), also where less is granted.
pub fn refuse_differences(project: &Project) -> Result<(), Stop> {
    let mut now = Lock::default();
    for found in plugins_now(project)? {
        if let Some(refused) = found.refused {
            return Err(refused);
        }
        now.plugins.insert(found.plugin.name.clone(), found.plugin);
    }
    let mut differences = Vec::new();
    for (name, plugin) in &now.plugins {
        match project.lock.plugins.get(name) {
            None => differences.push(format!("`{name}` is not in the lock")),
            Some(locked) => {
                let fields = locked.differences(plugin);
                differences.extend(fields.iter().map(|field| format!("`{name}` has another `{field}`")));
            }
        }
    }
    let gone = project.lock.plugins.keys().filter(|name| !now.plugins.contains_key(*name));
    differences.extend(gone.map(|name| format!("`{}` is not in `glovebox.toml`", visible::line(name))));
    if differences.is_empty() {
        return Ok(());
    }
    let message = format!("`{LOCK_FILE_NAME}` differs from the project: {}", differences.join(", "));
    let help = "see what changed with `glovebox plugin lock`, and commit the file";
    Err(Stop::new(Exit::Mismatch, message).with_help(help))
}

/// A component of the project.
pub struct ProjectComponent {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What they say.
    pub inspection: Inspection,
}

/// A plugin or a rule plugin, as `glovebox.toml` lists it.
pub struct ConfigEntry<'a> {
    table: &'static str,
    name: &'a str,
    source: Cow<'a, ComponentSource>,
}

impl<'a> ConfigEntry<'a> {
    /// Returns the entry of a plugin.
    pub fn plugin(name: &'a str, entry: &'a PluginEntry) -> Self {
        Self { table: "plugins", name, source: Cow::Borrowed(&entry.source) }
    }

    fn rules(name: &'a str, entry: &RuleEntry) -> Self {
        Self { table: "rules", name, source: Cow::Owned(ComponentSource::File(entry.path.clone())) }
    }

    fn policy(name: &'a str, entry: &PolicyEntry) -> Self {
        Self { table: "policy", name, source: Cow::Owned(ComponentSource::File(entry.path.clone())) }
    }

    /// Reads the component, from its file or from the store. The name in its manifest must be the name in `glovebox.toml`.
    pub fn read(&self, project: &Project) -> Result<ProjectComponent, Stop> {
        let Self { table, name, source } = self;
        let (bytes, shown) = match &**source {
            ComponentSource::File(path) => {
                let file = project.config_dir.join(path);
                (read_bytes(&file, project.config.component_bytes(name))?, shown(&file))
            }
            source @ ComponentSource::Registry(_) => (from_store(project, name, source)?, source.to_string()),
        };
        let inspection = inspect_bytes(&shown, &bytes)?;
        if let Some(manifest) = inspection.manifest.as_ref().filter(|manifest| manifest.name != *name) {
            let message = format!("plugin `{name}` has the name `{}` in its manifest", manifest.name);
            let help = format!("rename the table to `[{table}.\"{}\"]`", manifest.name);
            return Err(Stop::new(Exit::Plugin, message).with_help(help));
        }
        Ok(ProjectComponent { bytes, inspection })
    }
}

/// Reads a plugin of a registry. Its bytes are in the store, or the lock file or the store does not have it.
fn from_store(project: &Project, name: &str, source: &ComponentSource) -> Result<Vec<u8>, Stop> {
    plugin_bytes::read(project, name, source).map_err(|ReadProblem { reason, help }| {
        let message = format!("plugin `{name}` cannot be read from `{source}`: {}", visible::line(&reason));
        Stop { help, ..Stop::new(Exit::Plugin, message) }
    })
}
