//! `glovebox plugin inspect` and `lock`: show what a component wants, and record the bytes that the project agrees to
//! run.

use crate::arguments::{InspectArguments, LockArguments};
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::terminal::agreement::{self, Agreement};
use crate::terminal::{self, inspection, visible};
use glovebox_host::component::{LoadError, check_handler};
use glovebox_host::inspect::Inspection;
use glovebox_pipeline::ir::Role;
use glovebox_plan::bind::effective::{grant_lines, granted, wanted};
use glovebox_plan::bind::role::verifier_fault;
use glovebox_plan::config::{CONFIG_FILE_NAME, Config, PluginEntry, RuleEntry};
use glovebox_plan::lock::{LOCK_FILE_NAME, Lock, LockedPlugin};
use glovebox_plan::prepare::project::Project;
use glovebox_plan::prepare::source::read_component;
use std::io::Write;
use std::path::Path;

/// Prints what a component's bytes contain, without executing them.
pub fn inspect(arguments: &InspectArguments) -> CommandResult {
    let found = read(&arguments.file, Config::default().component_bytes(""))?;
    if arguments.json {
        terminal::print_json(&found)?;
    } else {
        terminal::print(inspection::render(&found));
    }
    Ok(Exit::Ok)
}

fn read(file: &Path, bytes_max: u64) -> Result<Inspection, Stop> {
    // A missing file is a usage error, not an error of the plugin.
    std::fs::metadata(file).map_err(|error| Stop::io(format!("read `{}`", file.display()), &error))?;
    let bytes = read_component(file, bytes_max)
        .map_err(|reason| Stop::new(Exit::Plugin, format!("`{}` cannot be read: {reason}", file.display())))?;
    glovebox_host::inspect::inspect(&bytes).map_err(|error| cannot_be_used(file, &error.into()))
}

/// Returns the error for a component that is refused, with help on how to build one that is accepted.
fn cannot_be_used(file: &Path, error: &LoadError) -> Stop {
    Stop { help: error.help(), ..Stop::new(Exit::Plugin, format!("`{}` cannot be used: {error}", file.display())) }
}

/// Locks the current plugins of `glovebox.toml`: prints what each may do, and writes `glovebox.lock`.
pub fn lock(arguments: &LockArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.workdir, arguments.file.as_deref())?;
    if !project.has_config {
        let workdir = arguments.workdir.display();
        return Err(Stop::new(
            Exit::Invalid,
            format!("no `{CONFIG_FILE_NAME}` for `{workdir}`: there is nothing to lock"),
        ));
    }
    let mut found = Vec::new();
    for (name, entry) in &project.config.plugins {
        let (locked, agreement) = locked(&project, ConfigEntry::plugin(name, entry), entry)?;
        found.push((name, locked, Some(agreement)));
    }
    for (name, entry) in &project.config.rules {
        found.push((name, locked_rules(&project, ConfigEntry::rules(name, entry), entry)?, None));
    }
    let mut agreed = Lock::default();
    for (name, locked, agreement) in found {
        if !arguments.json {
            terminal::print(agreement::render(&locked, &project.lock, agreement.as_ref()));
        }
        agreed.plugins.insert(name.clone(), locked);
    }
    let file = project.config_dir.join(LOCK_FILE_NAME);
    replace(&file, &agreed).map_err(|error| Stop::io(format!("write `{}`", file.display()), &error))?;
    if arguments.json {
        terminal::print_json(&agreed.plugins.values().collect::<Vec<_>>())?;
    }
    let plugins = terminal::counted(agreed.plugins.len(), "plugin");
    terminal::say(format_args!("wrote `{}`: {plugins}\n", visible::line(&file.to_string_lossy())));
    Ok(Exit::Ok)
}

/// A plugin or a rule plugin, as `glovebox.toml` lists it.
#[derive(Clone, Copy)]
struct ConfigEntry<'a> {
    table: &'static str,
    name: &'a str,
    path: &'a Path,
}

impl<'a> ConfigEntry<'a> {
    fn plugin(name: &'a String, entry: &'a PluginEntry) -> Self {
        Self { table: "plugins", name, path: Path::new(&entry.path) }
    }

    fn rules(name: &'a String, entry: &'a RuleEntry) -> Self {
        Self { table: "rules", name, path: Path::new(&entry.path) }
    }

    /// Reads the component. The name in its manifest must be the name in `glovebox.toml`.
    fn read(self, project: &Project) -> Result<Inspection, Stop> {
        let Self { table, name, path } = self;
        let found = read(&project.config_dir.join(path), project.config.component_bytes(name))?;
        if let Some(manifest) = found.manifest.as_ref().filter(|manifest| manifest.name != name) {
            let message = format!("plugin `{name}` has the name `{}` in its manifest", manifest.name);
            let help = format!("rename the table to `[{table}.\"{}\"]`", manifest.name);
            return Err(Stop::new(Exit::Plugin, message).with_help(help));
        }
        Ok(found)
    }

    fn agreement(self, found: Inspection, grants: Vec<String>) -> LockedPlugin {
        let Inspection { digest, bytes, world, .. } = found;
        let mut imports: Vec<String> = found.imports.into_iter().map(|import| import.name).collect();
        imports.sort();
        LockedPlugin { name: self.name.to_owned(), digest, bytes, world: world.to_owned(), imports, grants }
    }
}

fn locked<'a>(
    project: &'a Project,
    listed: ConfigEntry<'_>,
    entry: &PluginEntry,
) -> Result<(LockedPlugin, Agreement<'a>), Stop> {
    let (name, found) = (listed.name, listed.read(project)?);
    check_handler(&found).map_err(|error| cannot_be_used(listed.path, &error))?;
    let granted = granted(&found, Some(entry));
    if let Some(fault) = verifier_fault(&found, &granted).filter(|_| entry.role == Role::Verifier) {
        return Err(Stop::new(Exit::Plugin, format!("plugin `{name}` cannot be a verifier: {fault}")));
    }
    let (wants, offered) = (wanted(&found, Some(entry)), entry.grants.clone().unwrap_or_default());
    let lines = grant_lines(&granted, entry.role);
    Ok((
        listed.agreement(found, lines),
        Agreement { wants, offered, granted, network: &project.config.sandbox.network },
    ))
}

/// Checks a rule plugin, which imports nothing. Its only grant is to change the graph.
fn locked_rules(project: &Project, listed: ConfigEntry<'_>, entry: &RuleEntry) -> Result<LockedPlugin, Stop> {
    let found = listed.read(project)?;
    glovebox_host::rules::check(&found).map_err(|error| {
        Stop::new(Exit::Plugin, format!("`{}` cannot be used for rules: {error}", visible::line(&entry.path)))
    })?;
    Ok(listed.agreement(found, entry.transform.lines()))
}

/// Replaces the lock file atomically: after a crash, it has the old or the new content. A symbolic link at its path is
/// replaced, not followed.
fn replace(file: &Path, lock: &Lock) -> std::io::Result<()> {
    let beside = file.with_extension("lock.new");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = std::fs::File::create_new(&beside)?;
    new.write_all(lock.to_text().as_bytes())?;
    new.sync_all()?;
    std::fs::rename(&beside, file)
}
