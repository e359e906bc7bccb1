//! `glovebox plugin search`: the repositories of a registry whose names contain a text.

use super::registries::{self, newest_of};
use crate::arguments::SearchArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::terminal::rows::Rows;
use crate::terminal::{self, visible};
use glovebox_plan::config::ComponentSource;
use glovebox_registry::client::Client;
use glovebox_registry::error::RegistryError;
use glovebox_registry::reference::{RegistryHost, Repository};
use std::collections::BTreeSet;

/// Maximum number of repositories that are listed. Each costs a request for its versions.
const REPOSITORIES_MAX: usize = 50;

/// Prints one row for each repository, with its newest version.
pub fn search(arguments: &SearchArguments) -> CommandResult {
    let client = registries::client()?;
    let mut has_catalog = false;
    for registry in asked(arguments)? {
        let Some(repositories) = client.repositories(&registry)? else {
            terminal::say(format_args!("note: `{registry}` offers no list of its repositories\n"));
            continue;
        };
        has_catalog = true;
        let mut matching: Vec<Repository> =
            repositories.into_iter().filter(|repository| repository.path().contains(&arguments.text)).collect();
        matching.sort();
        print_repositories(&client, &matching)?;
    }
    match has_catalog {
        true => Ok(Exit::Ok),
        false => {
            let stop = Stop::new(Exit::Usage, "no registry could be searched");
            Err(stop.with_help("look for the plugin on the web page of the registry, and add it by its reference"))
        }
    }
}

/// Returns the registries that are searched.
fn asked(arguments: &SearchArguments) -> Result<BTreeSet<RegistryHost>, Stop> {
    if let Some(text) = &arguments.registry {
        let parsed = text.parse().map_err(|error| {
            let message = format!("`{}` is no registry: {error}", visible::line(text));
            Stop::new(Exit::Usage, message).with_help("write `--registry HOST` or `--registry HOST:PORT`")
        })?;
        return Ok([parsed].into());
    }
    let project = prepare::read_project(&arguments.workdir, None)?;
    let hosts: BTreeSet<RegistryHost> = project
        .config
        .plugins
        .values()
        .filter_map(|entry| match &entry.source {
            ComponentSource::Registry(source) => Some(source.repository.registry.clone()),
            ComponentSource::File(_) => None,
        })
        .collect();
    match hosts.is_empty() {
        true => Err(Stop::new(Exit::Usage, "no plugin of this project is from a registry")
            .with_help("name the registry: `--registry HOST`")),
        false => Ok(hosts),
    }
}

fn print_repositories(client: &Client, matching: &[Repository]) -> Result<(), Stop> {
    let shown = &matching[..matching.len().min(REPOSITORIES_MAX)];
    let mut rows = Rows::new(shown.iter().map(|repository| repository.to_string().len()).max().unwrap_or_default());
    for repository in shown {
        let newest = match client.versions(repository) {
            // A catalog can list what this user may not read.
            Err(RegistryError::Missing { .. }) => "-".to_owned(),
            versions => newest_of(&versions?).map_or("no version".to_owned(), ToString::to_string),
        };
        rows.row(repository.to_string(), newest);
    }
    terminal::print(rows.finish());
    if matching.len() > shown.len() {
        terminal::say(format_args!(
            "note: {} more are not shown: search for a longer text\n",
            matching.len() - shown.len()
        ));
    }
    Ok(())
}
