//! `glovebox plugin add`: makes a component a plugin of the project, after its reader has agreed to what it may do.

use super::editing::{Editing, parse_config};
use super::now::plugin_now;
use super::source::{ComponentFound, FoundPlace, PluginSource};
use super::vouched::Vouched;
use super::{cannot_be_used, inspect_bytes, registries, signature};
use crate::arguments::AddArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::replaced_file;
use crate::terminal::agreement::add_facts;
use crate::terminal::rows::Rows;
use crate::terminal::sentences::sentence;
use crate::terminal::{self, visible};
use glovebox_host::component::check_handler;
use glovebox_host::grants::Grants;
use glovebox_host::inspect::Inspection;
use glovebox_plan::config::{CONFIG_FILE_NAME, ComponentSource, Config, RuleEntry, is_plugin_name};
use glovebox_plan::lock::line::Line;
use glovebox_plan::lock::{Lock, LockSource, LockedPlugin};
use glovebox_plan::prepare::project::Project;
use glovebox_record::LimitSettings;
use glovebox_registry::reference::{Reference, Tag};
use glovebox_workspace::regular_file::{self, Links};
use std::path::{Path, PathBuf};

/// The folder of the project with the components that were added from other folders.
const FOLDER: &str = "plugins";

/// Adds a plugin. Without `--accept`, prints what it could do and writes nothing.
pub fn add(arguments: &AddArguments) -> CommandResult {
    let source = PluginSource::parse(&arguments.source)?;
    // A registry is asked before the project is locked: it can take minutes.
    let asked = prepare::read_project(&arguments.workdir, None)?;
    let found = source.read(asked.config.component_bytes(""), arguments.digest, asked.trust.is_some())?;
    let shown = found.shown();
    let inspection = inspect_bytes(&shown, &found.bytes)?;
    check_handler(&inspection).map_err(|error| cannot_be_used(&shown, &error))?;
    let name = plugin_name(&shown, &inspection, arguments.name.as_deref())?;
    let editing = Editing::begin(&arguments.workdir, None)?;
    let project = &editing.project;
    let place = Place::choose(project, &found, &inspection, &name)?;
    refuse_known(project, &name, &place)?;
    let table = table(&name, &place, &inspection)?;
    let text = with_table(&editing.config_text()?, &table);
    let config = parse_config(&text)?;
    let entry = config.plugins.get(&name).ok_or_else(|| Stop::new(Exit::Internal, "the new table was not read"))?;
    let vouched = signature::require(project, &name, &found, &inspection)?;
    let now = plugin_now(project, &name, entry, &inspection)?.plugin;
    let plugin = LockedPlugin { source: place.lock_source(), signer: vouched.signer.clone(), ..now };
    terminal::print(terms(&plugin));
    if !arguments.accept {
        let message = format!("`{name}` was not added, and nothing was written");
        let help = format!("if it may do this, repeat with `--digest {} --accept`", plugin.digest);
        return Err(Stop::new(Exit::Policy, message).with_help(help));
    }
    editing.require_places()?;
    let is_new = place.install(&project.config_dir, &found.bytes, &vouched)?;
    let mut lock = Lock { plugins: project.lock.plugins.clone() };
    lock.plugins.insert(name.clone(), plugin);
    editing.write(&lock, &text).inspect_err(|_| {
        if is_new {
            place.uninstall(&project.config_dir)
        }
    })?;
    terminal::say(format_args!("added `{name}` to `{CONFIG_FILE_NAME}`: use it with `type=\"{name}\"`\n"));
    Ok(Exit::Ok)
}

/// Returns the name in the manifest, or the given one for a component without a manifest.
fn plugin_name(place: &str, inspection: &Inspection, given: Option<&str>) -> Result<String, Stop> {
    let written = inspection.manifest.as_ref().map(|manifest| manifest.name.as_str());
    let name = match (written, given) {
        (Some(written), Some(given)) if written != given => {
            let message =
                format!("the manifest of `{place}` names the plugin `{written}`, and not `{}`", visible::line(given));
            return Err(Stop::new(Exit::Usage, message).with_help("leave out `--name`"));
        }
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => {
            let message = format!("`{place}` has no manifest: it has no name and wants nothing");
            let help = "name it with `--name acme.review`, and write its wants and grants in glovebox.toml afterwards";
            return Err(Stop::new(Exit::Usage, message).with_help(help));
        }
    };
    if !is_plugin_name(name) {
        let message = format!("`{}` is not a name for a plugin", visible::line(name));
        let help = "two or more words of a-z, 0-9 and `-`, joined by `.`, are expected, such as `acme.review`";
        return Err(Stop::new(Exit::Plugin, message).with_help(help));
    }
    Ok(name.to_owned())
}

/// Where the component of an added plugin will be.
enum Place {
    /// In a file of the project, which exists already.
    File(String),
    /// In a new file of the project: the path in `glovebox.toml`, and the file.
    Copy(String, PathBuf),
    /// In the store, for this version of a registry.
    Store(Box<Reference>),
}

impl Place {
    /// A file below the folder of `glovebox.toml` stays where it is. Any other file is copied into the project, so that the
    /// project does not depend on a folder that only this user has.
    fn choose(project: &Project, found: &ComponentFound, inspection: &Inspection, name: &str) -> Result<Self, Stop> {
        if let Some(reference) = found.reference(inspection)? {
            return Ok(Self::Store(Box::new(reference)));
        }
        let inside = match &found.place {
            FoundPlace::File(file) => {
                let real = std::fs::canonicalize(file)
                    .map_err(|error| Stop::io(format!("read `{}`", file.display()), &error))?;
                real.strip_prefix(&project.config_dir).ok().and_then(Path::to_str).map(str::to_owned)
            }
            FoundPlace::Address(_) | FoundPlace::Registry(_) => None,
        };
        let path = format!("{FOLDER}/{name}.wasm");
        let copy = project.config_dir.join(&path);
        Ok(inside.map_or(Self::Copy(path, copy), Self::File))
    }

    /// Returns the place as the lock file names it.
    fn lock_source(&self) -> LockSource {
        match self {
            Self::File(path) | Self::Copy(path, _) => LockSource::File(path.clone()),
            Self::Store(reference) => LockSource::Registry(reference.clone()),
        }
    }

    /// Returns true for the source that a table has already.
    fn is_source(&self, source: &ComponentSource) -> bool {
        match (self, source) {
            (Self::File(path) | Self::Copy(path, _), ComponentSource::File(other)) => path == other,
            (Self::Store(reference), ComponentSource::Registry(other)) => reference.is_version(&other.reference()),
            _ => false,
        }
    }

    /// Puts the component where it will be. Returns true if that made a new file in the project.
    fn install(&self, root: &Path, bytes: &[u8], vouched: &Vouched) -> Result<bool, Stop> {
        let file = match self {
            Self::File(_) => return Ok(false),
            Self::Copy(_, file) => file,
            Self::Store(reference) => return registries::put(bytes, vouched, reference).map(|()| false),
        };
        let folder = file.parent().unwrap_or(file);
        match regular_file::read(file, Links::Within(folder), bytes.len() as u64) {
            Ok(found) if found == bytes => return vouched.install(root, file).map(|()| false),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            _ => {
                let message = format!("`{}` exists with other bytes: nothing was written", file.display());
                return Err(
                    Stop::new(Exit::Plugin, message).with_help("remove the file, or update the plugin that uses it")
                );
            }
        }
        std::fs::create_dir_all(folder).map_err(|error| Stop::io(format!("create `{}`", folder.display()), &error))?;
        replaced_file::put_below(root, file, bytes)?;
        vouched.install(root, file).inspect_err(|_| self.uninstall(root))?;
        Ok(true)
    }

    /// Removes the files of a component that was not added after all. Errors are ignored, because the earlier error is reported.
    fn uninstall(&self, root: &Path) {
        if let Self::Copy(_, file) = self {
            drop(Vouched::default().install(root, file));
            drop(replaced_file::remove_below(root, file));
        }
    }
}

/// Refuses a name that the project has already, whether it is the same component or another plugin of the same name.
fn refuse_known(project: &Project, name: &str, place: &Place) -> Result<(), Stop> {
    let Config { plugins, rules, .. } = &project.config;
    let rule = |entry: &RuleEntry| (ComponentSource::File(entry.path.clone()), entry.line);
    let known = plugins.get(name).map(|entry| (entry.source.clone(), entry.line));
    let Some((source, line)) = known.or_else(|| rules.get(name).map(rule)) else { return Ok(()) };
    let message = format!(
        "`{name}` is a plugin of this project already (glovebox.toml:{line}, `{}`)",
        visible::line(&source.to_string())
    );
    let help = match (place.is_source(&source), &source) {
        (true, _) => format!("agree to its bytes with `glovebox plugin update {name}`"),
        (false, ComponentSource::File(_)) => {
            format!("replace it with `glovebox plugin update {name} --from FILE`, or remove it first")
        }
        (false, ComponentSource::Registry(_)) => {
            format!("change its version with `glovebox plugin update {name} --version V`, or remove it first")
        }
    };
    Err(Stop::new(Exit::Plugin, message).with_help(help))
}

/// Returns the table of a plugin. It grants what the author wants, which the reader agrees to. The author's limits are not
/// repeated, because they apply anyway.
fn table(name: &str, place: &Place, inspection: &Inspection) -> Result<String, Stop> {
    let wants = inspection.manifest.as_ref().map(|manifest| manifest.wants.clone()).unwrap_or_default();
    let grants = Grants { limits: LimitSettings::default(), ..wants };
    let cannot = |error: toml::ser::Error| Stop::new(Exit::Internal, format!("the grants cannot be written: {error}"));
    let text = |text: &str| toml::Value::String(text.to_owned());
    let grants = toml::Value::try_from(&grants).map_err(cannot)?;
    let source = match place {
        Place::File(path) | Place::Copy(path, _) => format!("path = {}", text(path)),
        Place::Store(reference) => {
            let version = reference.tag.as_ref().and_then(Tag::version);
            let version = version.ok_or_else(|| Stop::new(Exit::Internal, "a plugin of a registry has no version"))?;
            let registry = text(&reference.repository.to_string());
            format!("registry = {registry}\nversion = {}", text(&version.to_string()))
        }
    };
    Ok(format!("[plugins.\"{name}\"]\n{source}\ngrants = {grants}\n"))
}

fn with_table(text: &str, table: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() { table.to_owned() } else { format!("{text}\n\n{table}") }
}

/// Returns what a plugin may do: the sentences first, then the facts about its bytes.
pub(super) fn terms(plugin: &LockedPlugin) -> String {
    let mut rows = Rows::below_a_title(8);
    let sentences: Vec<String> = plugin.grants.iter().filter_map(|line| sentence(&Line::parse(line))).collect();
    if sentences.is_empty() {
        rows.row("may", "nothing but compute: no files, no commands, no model, no network");
    }
    sentences.iter().for_each(|sentence| rows.row("may", sentence));
    add_facts(&mut rows, plugin);
    let version = plugin.version.as_deref().unwrap_or("without a version");
    format!("{} {} ({})\n{}", plugin.name, visible::line(version), visible::line(&plugin.world), rows.finish())
}
