//! `glovebox plugin update`: agrees to new bytes of a plugin. Only what grew is shown, and only growth needs `--accept`.

use super::add::terms;
use super::editing::{Editing, with_version};
use super::inspect_bytes;
use super::now::{self, plugin_now};
use super::registries::{self, newest};
use super::signature;
use super::source::PluginSource;
use crate::arguments::UpdateArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::replaced_file;
use crate::terminal::rows::Rows;
use crate::terminal::sentences::grew;
use crate::terminal::{self, visible};
use glovebox_plan::config::{ComponentSource, PluginEntry, RegistrySource};
use glovebox_plan::lock::growth::{Growth, growth};
use glovebox_plan::lock::{Lock, LockSource, LockedPlugin};
use glovebox_plan::prepare::project::Project;
use glovebox_registry::reference::{Reference, Tag};
use semver::Version;
use std::path::{Component, Path, PathBuf};

/// Updates one plugin to the bytes of its file, of another file, or of a version of its registry.
pub fn update(arguments: &UpdateArguments) -> CommandResult {
    let name = arguments.name.as_str();
    // A registry is asked before the project is locked: it can take minutes.
    let asked = prepare::read_project(&arguments.workdir, None)?;
    let source = source(&asked, name, arguments)?;
    let found = source.read(asked.config.component_bytes(name), arguments.digest, asked.trust.is_some())?;
    let editing = Editing::begin(&arguments.workdir, None)?;
    let project = &editing.project;
    let before = project.lock.plugins.get(name);
    let entry = project.config.plugins.get(name).ok_or_else(|| unknown(project, name))?;
    if entry.source != asked.config.plugins.get(name).ok_or_else(|| unknown(project, name))?.source {
        let message = format!("`{name}` was changed by another process: nothing was written");
        return Err(Stop::new(Exit::Transient, message).with_help("repeat the command"));
    }
    let shown = found.shown();
    let inspection = inspect_bytes(&shown, &found.bytes)?;
    if let Some(manifest) = inspection.manifest.as_ref().filter(|manifest| manifest.name != name) {
        let message = format!("`{shown}` is the plugin `{}`, and not `{name}`", manifest.name);
        return Err(Stop::new(Exit::Plugin, message).with_help("add it under its own name with `glovebox plugin add`"));
    }
    let vouched = signature::require(project, name, &found, &inspection)?;
    let reference = found.reference(&inspection)?;
    let signer = vouched.signer.clone();
    let mut after = LockedPlugin { signer, ..plugin_now(project, name, entry, &inspection)?.plugin };
    if let Some(reference) = &reference {
        after.source = LockSource::Registry(Box::new(reference.clone()));
    }
    before.map_or(Ok(()), |before| refuse_republished(before, &after))?;
    let grown = before.map(|before| growth(before, &after));
    match (before, &grown) {
        (Some(before), Some(grown)) => terminal::print(changes(before, &after, grown)),
        _ => terminal::print(terms(&after)),
    }
    if grown.as_ref().is_none_or(|grown| !grown.is_empty()) && !arguments.accept {
        let message = format!("`{name}` was not updated, and nothing was written");
        let help = format!("if it may do this, repeat with `--digest {} --accept`", after.digest);
        return Err(Stop::new(Exit::Policy, message).with_help(help));
    }
    if let Some(reference) = &reference {
        editing.require_places()?;
        registries::put(&found.bytes, &vouched, reference)?;
    } else if arguments.from.is_some() {
        let file = installed(project, entry);
        if before.is_none_or(|before| before.digest != after.digest) {
            replaced_file::put_below(&project.config_dir, &file, &found.bytes)?;
        }
        // The same bytes may have more signatures than before.
        vouched.install(&project.config_dir, &file)?;
    }
    let config = reference.as_ref().map_or(Ok(None), |reference| config_text(&editing, name, reference))?;
    if before == Some(&after) && config.is_none() {
        return Ok(Exit::Ok);
    }
    let mut lock = Lock { plugins: project.lock.plugins.clone() };
    let version = after.version.as_deref().map(|version| format!(" to {}", visible::line(version))).unwrap_or_default();
    lock.plugins.insert(name.to_owned(), after);
    match config {
        Some(config) => editing.write(&lock, &config)?,
        None => editing.write_lock(&lock)?,
    }
    terminal::say(format_args!("updated `{name}`{version}\n"));
    if grown.iter().flatten().any(|growth| matches!(growth, Growth::Wanted(_))) {
        terminal::say(
            "note: what it newly wants is not granted: to grant it, add it to `grants` in glovebox.toml, then `glovebox plugin lock`\n",
        );
    }
    Ok(Exit::Ok)
}

/// Returns where the new bytes come from.
fn source(project: &Project, name: &str, arguments: &UpdateArguments) -> Result<PluginSource, Stop> {
    let entry = project.config.plugins.get(name).ok_or_else(|| unknown(project, name))?;
    let locked = project.lock.plugins.get(name);
    match (&entry.source, &arguments.from, &arguments.version) {
        (ComponentSource::File(_), _, Some(_)) => {
            let stop = Stop::new(Exit::Usage, format!("`{name}` is a file, and no version of a registry"));
            Err(stop.with_help(format!("update it with `glovebox plugin update {name} --from FILE`")))
        }
        (ComponentSource::File(_), ..) if locked.is_none() => Err(unknown(project, name)),
        (ComponentSource::File(path), Some(from), None) => {
            refuse_outside(name, path)?;
            match PluginSource::parse(from)? {
                PluginSource::Registry(reference) => {
                    let stop =
                        Stop::new(Exit::Usage, format!("`{name}` is a file, and `{reference}` is in a registry"));
                    Err(stop.with_help(format!(
                        "remove it with `glovebox plugin remove {name}`, then `glovebox plugin add {reference}`"
                    )))
                }
                source => Ok(source),
            }
        }
        (ComponentSource::File(_), None, None) => Ok(PluginSource::File(installed(project, entry))),
        (ComponentSource::Registry(source), Some(_), _) => {
            let stop = Stop::new(Exit::Usage, format!("`{name}` comes from the registry `{}`", source.repository));
            Err(stop.with_help(format!("name a version: `glovebox plugin update {name} --version V`")))
        }
        (ComponentSource::Registry(source), None, version) => {
            let version = match version {
                Some(version) => version.clone(),
                None => chosen(source, locked)?,
            };
            Ok(PluginSource::Registry(Box::new(source.repository.at(Tag::for_version(&version)))))
        }
    }
}

/// Returns the version for an update without `--version`: that of `glovebox.toml` if it was not agreed to yet, otherwise the newest
/// one. An older version is never chosen.
fn chosen(source: &RegistrySource, locked: Option<&LockedPlugin>) -> Result<Version, Stop> {
    let wanted = source.reference();
    let is_agreed =
        locked.and_then(|locked| locked.source.reference()).is_some_and(|pinned| pinned.is_version(&wanted));
    if !is_agreed {
        return Ok(source.version.clone());
    }
    Ok(newest(&registries::client()?, &source.repository)?.max(source.version.clone()))
}

/// Returns the file of a plugin that is a file.
fn installed(project: &Project, entry: &PluginEntry) -> PathBuf {
    match &entry.source {
        ComponentSource::File(path) => project.config_dir.join(path),
        ComponentSource::Registry(_) => project.config_dir.clone(),
    }
}

/// Returns the text of `glovebox.toml` with the new version. `None` if it has that version.
fn config_text(editing: &Editing, name: &str, reference: &Reference) -> Result<Option<String>, Stop> {
    let version = reference.tag.as_ref().and_then(Tag::version);
    let version = version.ok_or_else(|| Stop::new(Exit::Internal, "a plugin of a registry has no version"))?;
    let is_there =
        editing.project.config.plugins.get(name).is_some_and(
            |entry| matches!(&entry.source, ComponentSource::Registry(source) if source.version == version),
        );
    if is_there { Ok(None) } else { with_version(&editing.config_text()?, name, &version).map(Some) }
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
    let is_same_tag = match (before.source.reference(), after.source.reference()) {
        (Some(before), Some(after)) => before.is_version(after),
        _ => false,
    };
    let is_same = is_same_tag || before.version.is_some() && before.version == after.version;
    if !is_same || before.digest == after.digest {
        return Ok(());
    }
    let tag = after.source.reference().and_then(|reference| reference.tag.as_ref()).map(Tag::as_str);
    let version = tag.or(before.version.as_deref()).map(visible::line).unwrap_or_default();
    let message = format!(
        "version {version} of `{}` was republished: it was {} when it was locked, and now is {}",
        before.name, before.digest, after.digest
    );
    let help = match after.source {
        LockSource::File(_) => {
            "ask the author for a new version; for a plugin of your own, agree with `glovebox plugin lock`"
        }
        LockSource::Registry(_) => "ask the author for a new version; the locked bytes still run from the store",
    };
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
