//! `glovebox plugin new`, `wit` and `embed-manifest`: what an author of a plugin needs, without a clone of the
//! repository.
//!
//! The commands write only new files, except that `embed-manifest` without `--output` replaces its component.

use crate::arguments::{EmbedArguments, NewPluginArguments, WitArguments};
use crate::authoring::project_file::check_version;
use crate::authoring::sdk_files;
use crate::authoring::template::{self, ProjectFile};
use crate::exit::{CommandResult, Exit, Stop};
use crate::replaced_file;
use crate::terminal::{self, visible};
use glovebox_host::component::LoadError;
use glovebox_plan::config::{Config, is_plugin_name};
use glovebox_plan::prepare::source;
use serde::Deserialize;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes a project with a handler, and everything that its language needs.
pub fn new(arguments: &NewPluginArguments) -> CommandResult {
    let NewPluginArguments { name, lang, world, .. } = arguments;
    if !is_plugin_name(name) {
        let message = format!("`{}` is not a plugin name", visible::line(name));
        let help = "write two or more words of a-z, 0-9 and `-`, joined by `.`, such as `acme.review`";
        return Err(Stop::new(Exit::Usage, message).with_help(help));
    }
    let title = lang.title();
    let files = template::files(name, *lang, *world)
        .ok_or_else(|| Stop::new(Exit::Internal, format!("no template for {title} and `{}`", world.name())))?;
    let folder = arguments.folder.clone().unwrap_or_else(|| PathBuf::from(template::project_name(name)));
    write_all(&folder, &files)?;
    let place = folder.to_string_lossy();
    let place = visible::line(&place);
    let has_cases = world.is_stage();
    let world = world.name();
    let install = lang.install();
    let next =
        if has_cases { "glovebox plugin dev    # builds it and runs its cases" } else { "glovebox plugin build" };
    terminal::print(format_args!(
        "wrote `{place}`: a plugin in {title} (`{world}`); plugin.toml says what it is and what it wants\n\
         \x20 cd {place}\n\
         \x20 {install}\n\
         \x20 {next}\n\
         README.md has the other commands\n"
    ));
    Ok(Exit::Ok)
}

/// Writes the WIT package of plugins, for tools of other languages.
pub fn wit(arguments: &WitArguments) -> CommandResult {
    let files: Vec<_> = sdk_files::WIT.into_iter().chain([sdk_files::WORLDS]).collect();
    let file = |(path, text): &(&'static str, &'static str)| -> ProjectFile {
        (path.trim_start_matches("wit/").into(), text.as_bytes().into())
    };
    let files: Vec<ProjectFile> = files.iter().map(file).collect();
    write_all(&arguments.folder, &files)?;
    let place = arguments.folder.to_string_lossy();
    terminal::print(format_args!("wrote `{}`: {}\n", visible::line(&place), terminal::counted(files.len(), "file")));
    Ok(Exit::Ok)
}

/// Writes files into a folder that is empty or does not exist.
fn write_all(folder: &Path, files: &[ProjectFile]) -> Result<(), Stop> {
    let shown = folder.display();
    if fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink()) {
        let stop = Stop::new(Exit::Usage, format!("`{shown}` is a link: nothing was written"));
        return Err(stop.with_help("name a folder that does not exist"));
    }
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            let stop = Stop::new(Exit::Usage, format!("the folder `{shown}` is not empty"));
            return Err(stop.with_help("name a folder that does not exist"));
        }
        Ok(false) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Stop::io(format!("read `{shown}`"), &error)),
    }
    for (path, bytes) in files {
        let file = folder.join(&**path);
        let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            OpenOptions::new().write(true).create_new(true).open(&file).and_then(|mut new| new.write_all(bytes))
        });
        written.map_err(|error| Stop::io(format!("write `{}`", file.display()), &error))?;
    }
    Ok(())
}

/// The version in a manifest.
#[derive(Deserialize)]
struct WrittenVersion {
    version: String,
}

/// Writes a manifest into a component that has none.
pub fn embed_manifest(arguments: &EmbedArguments) -> CommandResult {
    let file = &arguments.component;
    fs::metadata(file).map_err(|error| Stop::io(format!("read `{}`", file.display()), &error))?;
    let bytes = source::read_component(file, Config::default().component_bytes(""))
        .map_err(|reason| Stop::new(Exit::Plugin, format!("`{}` cannot be read: {reason}", file.display())))?;
    let manifest = source::read_text(&arguments.manifest)?;
    if let Ok(written) = serde_json::from_str::<WrittenVersion>(&manifest) {
        check_version(&written.version).map_err(|expected| {
            let manifest = visible::line(&arguments.manifest.to_string_lossy()).into_owned();
            let message = format!("`{manifest}`: `version` is `{}`", visible::line(&written.version));
            Stop::new(Exit::Plugin, message).with_help(expected)
        })?;
    }
    let embedded = glovebox_host::inspect::embed(&bytes, &manifest).map_err(|error| {
        let error = LoadError::from(error);
        Stop { help: error.help(), ..Stop::new(Exit::Plugin, format!("`{}`: {error}", file.display())) }
    })?;
    match &arguments.output {
        Some(output) => replaced_file::put(output, embedded)?,
        None => replaced_file::replace(file, embedded)?,
    }
    let output = arguments.output.as_ref().unwrap_or(file);
    terminal::print(format_args!("wrote `{}`\n", visible::line(&output.to_string_lossy())));
    Ok(Exit::Ok)
}
