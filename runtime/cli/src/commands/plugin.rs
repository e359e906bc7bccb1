//! `glovebox plugin`: shows what components want, and changes which of them the project agrees to run.

pub mod add;
mod compatibility;
mod editing;
mod folder_lock;
pub mod list;
pub mod lock;
mod now;
pub mod outdated;
mod provenance;
pub mod pull;
pub mod push;
pub mod rebuild;
mod registries;
pub mod rehearse;
pub mod remove;
pub mod revocations;
pub mod revoke;
pub mod search;
pub mod signature;
mod source;
pub mod standing;
mod subject;
pub mod test;
pub mod update;
mod vouched;

use crate::arguments::InspectArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::terminal::{self, inspection, visible};
use glovebox_host::component::LoadError;
use glovebox_host::inspect::Inspection;
use glovebox_plan::prepare::source::read_component;
use serde::Serialize;
use standing::Standing;
use std::path::Path;
use subject::Subject;

pub use now::refuse_differences;

/// The document that `plugin inspect --json` prints.
#[derive(Serialize)]
struct InspectedComponent<'a> {
    #[serde(flatten)]
    inspection: &'a Inspection,
    #[serde(flatten)]
    standing: &'a Standing,
}

/// Prints what a component's bytes contain, without executing them.
pub fn inspect(arguments: &InspectArguments) -> CommandResult {
    let found = Subject::read(&arguments.plugin)?;
    let standing = Standing::new(&found);
    if arguments.json {
        terminal::print_json(&InspectedComponent { inspection: &found.inspection, standing: &standing })?;
    } else {
        terminal::print(inspection::render(&found.inspection, arguments.all));
        terminal::print(standing.render());
    }
    Ok(Exit::Ok)
}

/// Inspects the component of a plugin of the project. Whether it may run is not checked.
pub fn component_of(workdir: &Path, name: &str) -> Result<Inspection, Stop> {
    let project = prepare::read_project(workdir, None)?;
    let entry = project.config.plugins.get(name).ok_or_else(|| now::unknown(name))?;
    Ok(now::ConfigEntry::plugin(name, entry).read(&project)?.inspection)
}

fn read_bytes(file: &Path, bytes_max: u64) -> Result<Vec<u8>, Stop> {
    // A missing file is a usage error, not an error of the plugin.
    std::fs::metadata(file).map_err(|error| Stop::io(format!("read `{}`", file.display()), &error))?;
    read_component(file, bytes_max)
        .map_err(|reason| Stop::new(Exit::Plugin, format!("`{}` cannot be read: {reason}", file.display())))
}

/// Returns a path for messages.
fn shown(file: &Path) -> String {
    visible::line(&file.to_string_lossy()).into_owned()
}

fn inspect_bytes(place: &str, bytes: &[u8]) -> Result<Inspection, Stop> {
    glovebox_host::inspect::inspect(bytes).map_err(|error| cannot_be_used(place, &error.into()))
}

/// Returns the error for a component that is refused, with help on how to build one that is accepted.
fn cannot_be_used(place: &str, error: &LoadError) -> Stop {
    Stop { help: error.help(), ..Stop::new(Exit::Plugin, format!("`{place}` cannot be used: {error}")) }
}
