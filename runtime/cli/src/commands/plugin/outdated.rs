//! `glovebox plugin outdated`: which plugins of registries have a newer version, and which version was republished.

use super::registries::{self, newest_of};
use crate::arguments::OutdatedArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::terminal;
use crate::terminal::rows::Rows;
use glovebox_plan::config::{ComponentSource, RegistrySource};
use glovebox_plan::lock::LockedPlugin;
use glovebox_plan::prepare::project::Project;
use glovebox_registry::client::Client;
use schemars::JsonSchema;
use serde::Serialize;

/// A plugin of a registry, compared with what the registry has now.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PluginAge {
    /// The name of the plugin.
    name: String,
    /// The repository.
    registry: String,
    /// The version in `glovebox.toml`.
    version: String,
    /// The newest version. A pre-release counts only if there is nothing else.
    newest: Option<String>,
    /// True if there is a newer version.
    outdated: bool,
    /// True if the registry has another manifest for the locked version than it had when the version was locked, or none.
    republished: bool,
}

/// Prints one row for each plugin of a registry.
pub fn outdated(arguments: &OutdatedArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.workdir, None)?;
    let found = ages(&project)?;
    if arguments.json {
        terminal::print_json(&found)?;
        return Ok(Exit::Ok);
    }
    let mut rows = Rows::new(found.iter().map(|age| age.name.len()).max().unwrap_or_default());
    for age in &found {
        let newest = age.newest.as_deref().unwrap_or("none");
        let news = if age.outdated { format!("newest {newest}") } else { "up to date".to_owned() };
        let republished = if age.republished { "; the locked version was republished or removed" } else { "" };
        rows.row(&age.name, format_args!("{}  {news}{republished}", age.version));
    }
    terminal::print(rows.finish());
    Ok(Exit::Ok)
}

fn ages(project: &Project) -> Result<Vec<PluginAge>, Stop> {
    let client = registries::client()?;
    let mut found = Vec::new();
    for (name, entry) in &project.config.plugins {
        if let ComponentSource::Registry(source) = &entry.source {
            found.push(age(&client, name, source, project.lock.plugins.get(name))?);
        }
    }
    Ok(found)
}

fn age(client: &Client, name: &str, source: &RegistrySource, locked: Option<&LockedPlugin>) -> Result<PluginAge, Stop> {
    let versions = client.versions(&source.repository)?;
    let newest = newest_of(&versions);
    let wanted = source.reference();
    let pinned = locked.and_then(|locked| locked.source.reference()).filter(|pinned| pinned.is_version(&wanted));
    let republished = match pinned {
        Some(pinned) => client.digest(&wanted)? != pinned.digest,
        None => false,
    };
    Ok(PluginAge {
        name: name.to_owned(),
        registry: source.repository.to_string(),
        version: source.version.to_string(),
        newest: newest.map(ToString::to_string),
        outdated: newest.is_some_and(|newest| *newest > source.version),
        republished,
    })
}
