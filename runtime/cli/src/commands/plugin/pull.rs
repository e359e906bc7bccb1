//! `glovebox plugin pull`: fetches the plugins that the lock file names into the store. The project is not changed.

use super::now::{ConfigEntry, plugin_now};
use super::source::PluginSource;
use super::{inspect_bytes, registries, revocations, signature};
use crate::arguments::PullArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::terminal::{self, counted, visible};
use glovebox_plan::config::ComponentSource;
use glovebox_plan::lock::LockedPlugin;
use glovebox_plan::prepare::plugin_bytes;
use glovebox_plan::prepare::project::Project;
use glovebox_record::Digest;
use glovebox_registry::reference::Reference;

/// Fetches one plugin, or all plugins of registries.
pub fn pull(arguments: &PullArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.workdir, None)?;
    if arguments.name.is_none() {
        revocations::refresh(&project)?;
    }
    let wanted = wanted(&project, arguments.name.as_deref())?;
    let store = registries::store()?;
    let mut fetched = 0;
    for (locked, reference) in &wanted {
        let bytes_max = project.config.component_bytes(&locked.name);
        let wants_signatures = project.trust.is_some() && !is_signed(&project, locked);
        let has_origin = plugin_bytes::has_origin(&store, locked.digest, reference).unwrap_or(false);
        if store.has(locked.digest, bytes_max) && has_origin && !wants_signatures {
            continue;
        }
        let source = PluginSource::Registry(Box::new((*reference).clone()));
        let pulled = source.read(bytes_max, None, wants_signatures)?;
        let found = Digest::hash(&pulled.bytes);
        if found != locked.digest {
            let message = format!("`{reference}` has the component {found}, and `glovebox.lock` has {}", locked.digest);
            let help = "restore `glovebox.lock` from version control: its digests do not belong together";
            return Err(Stop::new(Exit::Plugin, message).with_help(help));
        }
        let inspection = inspect_bytes(&pulled.shown(), &pulled.bytes)?;
        // Refuses a lock file with another version than that of the manifest.
        pulled.reference(&inspection)?;
        let vouched = signature::require(&project, &locked.name, &pulled, &inspection)?;
        registries::put(&pulled.bytes, &vouched, reference)?;
        fetched += 1;
        terminal::say(format_args!("pulled `{}` from `{reference}`\n", locked.name));
    }
    let plugins = counted(wanted.len(), "plugin");
    terminal::say(format_args!("{plugins} of registries in the store, {fetched} of them new\n"));
    Ok(Exit::Ok)
}

/// Returns the entries of the lock file that are fetched, each with its reference, which has the digest of a manifest.
fn wanted<'a>(project: &'a Project, name: Option<&str>) -> Result<Vec<(&'a LockedPlugin, &'a Reference)>, Stop> {
    let mut wanted = Vec::new();
    if let Some(name) = name.filter(|name| !project.config.plugins.contains_key(*name)) {
        let stop = Stop::new(Exit::Usage, format!("`{}` is not a plugin of this project", visible::line(name)));
        return Err(stop.with_help("see the plugins with `glovebox plugin ls`"));
    }
    for (key, entry) in project.config.plugins.iter().filter(|(key, _)| name.is_none_or(|name| name == **key)) {
        let ComponentSource::Registry(source) = &entry.source else {
            if name.is_some() {
                let message = format!("`{key}` is the file `{}`, and comes from no registry", entry.source);
                return Err(Stop::new(Exit::Usage, message));
            }
            continue;
        };
        let locked = project.lock.plugins.get(key);
        let pinned = locked.and_then(|locked| Some((locked, locked.source.reference()?)));
        match pinned.filter(|(_, pinned)| pinned.is_version(&source.reference())) {
            Some(pinned) => wanted.push(pinned),
            None => {
                let message = format!("`glovebox.lock` does not have `{key}` from `{}`", source.reference());
                let help = format!("look at it and agree to it with `glovebox plugin update {key}`");
                return Err(Stop::new(Exit::Plugin, message).with_help(help));
            }
        }
    }
    Ok(wanted)
}

/// Returns true if the signatures in the store are those that the project requires. Another project may have stored other ones.
fn is_signed(project: &Project, locked: &LockedPlugin) -> bool {
    let Some(entry) = project.config.plugins.get(&locked.name) else { return false };
    let component = ConfigEntry::plugin(&locked.name, entry).read(project);
    let now = component.and_then(|component| {
        let now = plugin_now(project, &locked.name, entry, &component.inspection)?;
        Ok(now.checked(project, &ConfigEntry::plugin(&locked.name, entry), component))
    });
    now.is_ok_and(|now| now.refused.is_none())
}
