//! `glovebox plugin build`: builds the project of a plugin, and writes the component with its manifest.
//!
//! The files of a version are written last, so a failed build leaves an earlier one as it was.

use crate::arguments::BuildPluginArguments;
use crate::authoring::component::{BuiltComponent, finish};
use crate::authoring::program;
use crate::authoring::project_file::{DIST, PluginProject, built_file, described_file};
use crate::authoring::provenance;
use crate::exit::{CommandResult, Exit, Stop};
use crate::replaced_file;
use crate::terminal::rows::Rows;
use crate::terminal::{self, visible};
use glovebox_signing::plugin::PluginIdentity;
use glovebox_signing::provenance::{LOCAL_BUILDER, Provenance};
use std::path::Path;

/// Builds the project, and prints the digest of the component.
pub fn build(arguments: &BuildPluginArguments) -> CommandResult {
    let folder = &arguments.folder;
    let project = PluginProject::read(folder)?;
    let builder = arguments.builder.as_deref().unwrap_or(LOCAL_BUILDER);
    let provenance = provenance::record(folder, &project, DIST, builder);
    let BuiltComponent { bytes, inspection, warnings } = component(folder, &project)?;
    for warning in warnings {
        terminal::say(format_args!("warning: {}\n", visible::line(&warning)));
    }
    let (name, version) = (&project.manifest.name, &project.manifest.version);
    let file = built_file(folder, &project.manifest);
    let (dist, description) = (file.parent().unwrap_or(folder), described_file(folder, &project.manifest));
    replaced_file::create_folder_below(folder, dist)?;
    replaced_file::put(&file, &bytes)?;
    replaced_file::put(&description, terminal::json(&inspection)? + "\n")?;
    provenance::write(&file, &provenance, &PluginIdentity::new(name, Some(version.to_string()), &bytes))?;
    let mut rows = Rows::new(9);
    rows.row("plugin", format_args!("{name} {version} ({}, {})", project.world.name(), project.language.title()));
    rows.row("component", file.display());
    rows.row("manifest", description.display());
    rows.row("bytes", inspection.bytes);
    rows.row("digest", inspection.digest);
    rows.row("source", source(&provenance));
    terminal::print(rows.finish());
    Ok(Exit::Ok)
}

/// Returns from which source the component was built.
fn source(provenance: &Provenance) -> String {
    match &provenance.source {
        None => "not known: the project is in no repository of git with a commit".to_owned(),
        Some(source) if source.is_clean => format!("commit {}", source.commit),
        Some(source) => {
            format!("commit {}, with changes that are not committed, so it cannot be built again", source.commit)
        }
    }
}

/// Runs the build command of a project, and returns the component.
pub fn component(folder: &Path, project: &PluginProject) -> Result<BuiltComponent, Stop> {
    program::build(folder, &project.build, project.language)?;
    finish(folder, project)
}
