//! `glovebox plugin update`: agrees to new bytes of a plugin. Only what grew is shown, and only growth needs `--accept`.

use super::editing::Editing;
use super::now::{self, plugin_now};
use super::source::PluginSource;
use super::{inspect_bytes, signature};
use crate::arguments::UpdateArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::replaced_file;
use crate::terminal::rows::Rows;
use crate::terminal::sentences::grew;
use crate::terminal::{self, visible};
use glovebox_plan::lock::growth::{Growth, growth};
use glovebox_plan::lock::{Lock, LockedPlugin};
use glovebox_plan::prepare::project::Project;
use std::path::{Component, Path};

/// Updates one plugin to the bytes of its file, or of another file.
pub fn update(arguments: &UpdateArguments) -> CommandResult {
    let editing = Editing::begin(&arguments.workdir, None)?;
    let project = &editing.project;
    let name = arguments.name.as_str();
    let (Some(entry), Some(before)) = (project.config.plugins.get(name), project.lock.plugins.get(name)) else {
        return Err(unknown(project, name));
    };
    let installed = project.config_dir.join(&entry.path);
    if arguments.from.is_some() {
        refuse_outside(name, &entry.path)?;
    }
    let source = arguments.from.as_deref().map_or_else(|| PluginSource::File(installed.clone()), PluginSource::parse);
    let (file, bytes) = source.read(project.config.component_bytes(name), arguments.digest)?;
    let inspection = inspect_bytes(&file, &bytes)?;
    if let Some(manifest) = inspection.manifest.as_ref().filter(|manifest| manifest.name != name) {
        let message = format!("`{}` is the plugin `{}`, and not `{name}`", file.display(), manifest.name);
        return Err(Stop::new(Exit::Plugin, message).with_help("add it under its own name with `glovebox plugin add`"));
    }
    let signer = signature::require(project, name, &file, &inspection)?;
    let after = LockedPlugin { signer, ..plugin_now(project, name, entry, &inspection)?.plugin };
    refuse_republished(before, &after)?;
    let grown = growth(before, &after);
    terminal::print(changes(before, &after, &grown));
    if !grown.is_empty() && !arguments.accept {
        let message = format!("`{name}` was not updated, and nothing was written");
        let help = format!("if it may do this, repeat with `--digest {} --accept`", after.digest);
        return Err(Stop::new(Exit::Policy, message).with_help(help));
    }
    if arguments.from.is_some() {
        if before.digest != after.digest {
            replaced_file::put(&installed, &bytes)?;
        }
        // The same bytes may have more signatures than before.
        signature::install(&file, &installed)?;
    }
    if *before == after {
        return Ok(Exit::Ok);
    }
    let mut lock = Lock { plugins: project.lock.plugins.clone() };
    lock.plugins.insert(name.to_owned(), after);
    editing.write_lock(&lock)?;
    Ok(Exit::Ok)
}

fn unknown(project: &Project, name: &str) -> Stop {
    let shown = visible::line(name);
    if project.config.plugins.contains_key(name) {
        let stop =
            Stop::new(Exit::Plugin, format!("`{shown}` is not in `glovebox.lock`: there is nothing to compare with"));
        return stop
            .with_help("inspect it with `glovebox plugin inspect`, then agree to it with `glovebox plugin lock`");
    }
    now::unknown(name)
}

/// Refuses to replace a file outside of the project. A stranger may have written the path into `glovebox.toml`, and it can be that
/// of any file of the user.
fn refuse_outside(name: &str, path: &str) -> Result<(), Stop> {
    if Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Ok(());
    }
    let message = format!("the component of `{name}` is outside of the project: `{}`", visible::line(path));
    let help = "replace the file yourself, then repeat without `--from`";
    Err(Stop::new(Exit::Policy, message).with_help(help))
}

/// Refuses other bytes of the same version. The user locked this version after a review of its bytes.
fn refuse_republished(before: &LockedPlugin, after: &LockedPlugin) -> Result<(), Stop> {
    if before.version.is_none() || before.version != after.version || before.digest == after.digest {
        return Ok(());
    }
    let version = before.version.as_deref().map(visible::line).unwrap_or_default();
    let message = format!(
        "version {version} of `{}` was republished: it was {} when it was locked, and now is {}",
        before.name, before.digest, after.digest
    );
    let help = "ask the author for a new version; for a plugin of your own, agree with `glovebox plugin lock`";
    Err(Stop::new(Exit::Plugin, message).with_help(help))
}

/// Returns what an update changes: what grew, or that nothing did.
fn changes(before: &LockedPlugin, after: &LockedPlugin, grown: &[Growth]) -> String {
    let mut rows = Rows::below_a_title(8);
    grown.iter().filter_map(grew).for_each(|(title, sentence)| rows.row(title, sentence));
    match (grown.is_empty(), before == after) {
        (true, true) => rows.row("news", "nothing changed"),
        (true, false) => rows.row("news", "nothing grew: it may do nothing that it could not do before"),
        (false, _) => {}
    }
    rows.row("digest", after.digest);
    let version = |plugin: &LockedPlugin| {
        plugin.version.as_deref().map_or("without a version".to_owned(), |version| visible::line(version).into_owned())
    };
    let versions = match (version(before), version(after)) {
        (before, after) if before == after => after,
        (before, after) => format!("{before}, now {after}"),
    };
    format!("{} ({versions})\n{}", after.name, rows.finish())
}
