//! `glovebox plugin`: what a component asks for, and which bytes the project agrees to run.

use crate::arguments::{InspectArguments, LockArguments};
use crate::exit::{Ended, Exit, Stop};
use crate::project::{self, Project};
use crate::source::read_component;
use crate::terminal::{self, inspection, visible};
use glovebox_engine::bind::effective::{grant_lines, granted};
use glovebox_engine::bind::role::verifier_fault;
use glovebox_engine::config::{CONFIG_FILE_NAME, Config, PluginEntry, RuleEntry};
use glovebox_engine::lock::{LOCK_FILE_NAME, Lock, LockedPlugin};
use glovebox_host::inspect::Inspection;
use glovebox_pipeline::lower::handler::Role;
use std::io::Write;
use std::path::Path;

/// Prints what a component's bytes say. Nothing in it is executed.
pub fn inspect(arguments: &InspectArguments) -> Ended {
    let found = read(&arguments.file, Config::default().component_bytes(""))?;
    if arguments.json {
        terminal::print_json(&found)?;
    } else {
        terminal::print(&inspection::render(&found));
    }
    Ok(Exit::Ok)
}

fn read(file: &Path, bytes_max: u64) -> Result<Inspection, Stop> {
    // A path that leads nowhere is the caller's mistake, not the plugin's.
    std::fs::metadata(file).map_err(|error| Stop::io(format!("read `{}`", file.display()), &error))?;
    let bytes = read_component(file, bytes_max)
        .map_err(|reason| Stop::new(Exit::Plugin, format!("`{}` cannot be read: {reason}", file.display())))?;
    glovebox_host::inspect::inspect(&bytes)
        .map_err(|error| Stop::new(Exit::Plugin, format!("`{}` cannot be used: {error}", file.display())))
}

/// Agrees to the plugins of `glovebox.toml` as they are now: prints what each may do and writes `glovebox.lock`.
pub fn lock(arguments: &LockArguments) -> Ended {
    let project = project::read_project(&arguments.workdir, arguments.file.as_deref())?;
    if !project.has_config {
        let place = arguments.workdir.display();
        return Err(Stop::new(Exit::Invalid, format!("no `{CONFIG_FILE_NAME}` for `{place}`, nothing to lock")));
    }
    let mut agreed = Lock::default();
    for (name, entry) in &project.config.plugins {
        let locked = locked(&project, name, entry)?;
        if !arguments.json {
            terminal::print(&render(&locked, project.lock.as_ref()));
        }
        agreed.plugins.insert(name.clone(), locked);
    }
    for (name, entry) in &project.config.rules {
        let locked = locked_rules(&project, name, entry)?;
        if !arguments.json {
            terminal::print(&render(&locked, project.lock.as_ref()));
        }
        agreed.plugins.insert(name.clone(), locked);
    }
    let file = project.config_dir.join(LOCK_FILE_NAME);
    replace(&file, &agreed.to_text()).map_err(|error| Stop::io(format!("write `{}`", file.display()), &error))?;
    if arguments.json {
        terminal::print_json(&agreed.plugins.values().collect::<Vec<_>>())?;
    }
    let plugins = terminal::counted(agreed.plugins.len(), "plugin");
    terminal::say(&format!("wrote `{}`: {plugins}\n", visible::line(&file.to_string_lossy())));
    Ok(Exit::Ok)
}

fn locked(project: &Project, name: &str, entry: &PluginEntry) -> Result<LockedPlugin, Stop> {
    let found = named(project, name, &entry.path, "plugins")?;
    let granted = granted(&found, Some(entry));
    if let Some(fault) = verifier_fault(&found, &granted).filter(|_| entry.role == Role::Verifier) {
        return Err(Stop::new(Exit::Plugin, format!("plugin `{name}` cannot be a verifier: {fault}")));
    }
    Ok(agreement(name, &found, grant_lines(&granted, entry.role)))
}

/// Rules import nothing; what they can be granted is to change the graph.
fn locked_rules(project: &Project, name: &str, entry: &RuleEntry) -> Result<LockedPlugin, Stop> {
    let found = named(project, name, &entry.path, "rules")?;
    glovebox_host::rules::check(&found).map_err(|error| {
        Stop::new(Exit::Plugin, format!("`{}` cannot be used for rules: {error}", visible::line(&entry.path)))
    })?;
    Ok(agreement(name, &found, entry.transform.lines()))
}

fn named(project: &Project, name: &str, path: &str, table: &str) -> Result<Inspection, Stop> {
    let found = read(&project.config_dir.join(path), project.config.component_bytes(name))?;
    if let Some(manifest) = found.manifest.as_ref().filter(|manifest| manifest.name != name) {
        let message = format!("plugin `{name}` has the name `{}` in its manifest", manifest.name);
        return Err(Stop::new(Exit::Plugin, message).with_help(format!("name it `[{table}.\"{}\"]`", manifest.name)));
    }
    Ok(found)
}

fn agreement(name: &str, found: &Inspection, grants: Vec<String>) -> LockedPlugin {
    let mut imports: Vec<String> = found.imports.iter().map(|import| import.name.clone()).collect();
    imports.sort();
    LockedPlugin {
        name: name.to_owned(),
        digest: found.digest,
        bytes: found.bytes,
        world: found.world.to_owned(),
        imports,
        grants,
    }
}

fn render(plugin: &LockedPlugin, before: Option<&Lock>) -> String {
    let known = before.and_then(|lock| lock.plugins.get(&plugin.name));
    let news = match known {
        None => "new",
        Some(known) if known.digest != plugin.digest => "changed bytes",
        Some(known) if known.grants != plugin.grants => "changed grants",
        Some(_) => "as before",
    };
    let mut text =
        format!("{} ({}, {news})\n  digest   {}\n", visible::line(&plugin.name), plugin.world, plugin.digest);
    for import in &plugin.imports {
        text.push_str(&format!("  import   {}\n", visible::line(import)));
    }
    for grant in &plugin.grants {
        text.push_str(&format!("  granted  {}\n", visible::line(grant)));
    }
    text
}

/// Replaces a file as a whole: a crash leaves the old one or the new one. Writes through no link that the project came with.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let beside = file.with_extension("lock.new");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = std::fs::File::create_new(&beside)?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    std::fs::rename(&beside, file)
}
