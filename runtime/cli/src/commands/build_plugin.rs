//! `glovebox plugin build`: builds the project of a plugin, and writes the component with its manifest.
//!
//! The two files of a version are written last, so a failed build leaves an earlier one as it was.

use crate::arguments::BuildPluginArguments;
use crate::authoring::component::{BuiltComponent, finish};
use crate::authoring::program;
use crate::authoring::project_file::{PluginProject, built_file, described_file};
use crate::exit::{CommandResult, Exit, Stop};
use crate::replaced_file;
use crate::terminal::rows::Rows;
use crate::terminal::{self, visible};
use std::path::Path;

/// Builds the project, and prints the digest of the component.
pub fn build(arguments: &BuildPluginArguments) -> CommandResult {
    let folder = &arguments.folder;
    let project = PluginProject::read(folder)?;
    let BuiltComponent { bytes, inspection, warnings } = component(folder, &project)?;
    for warning in warnings {
        terminal::say(format_args!("warning: {}\n", visible::line(&warning)));
    }
    let (name, version) = (&project.manifest.name, &project.manifest.version);
    let file = built_file(folder, &project.manifest);
    let (dist, description) = (file.parent().unwrap_or(folder), described_file(folder, &project.manifest));
    std::fs::create_dir_all(dist).map_err(|error| Stop::io(format!("create `{}`", dist.display()), &error))?;
    replaced_file::put(&file, &bytes)?;
    replaced_file::put(&description, terminal::json(&inspection)? + "\n")?;
    let mut rows = Rows::new(9);
    rows.row("plugin", format_args!("{name} {version} ({}, {})", project.world.name(), project.language.title()));
    rows.row("component", file.display());
    rows.row("manifest", description.display());
    rows.row("bytes", inspection.bytes);
    rows.row("digest", inspection.digest);
    terminal::print(rows.finish());
    Ok(Exit::Ok)
}

/// Runs the build command of a project, and returns the component.
pub fn component(folder: &Path, project: &PluginProject) -> Result<BuiltComponent, Stop> {
    program::build(folder, &project.build, project.language)?;
    finish(folder, project)
}
