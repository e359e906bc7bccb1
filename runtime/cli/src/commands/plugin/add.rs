//! `glovebox plugin add`: makes a component a plugin of the project, after its reader has agreed to what it may do.

use super::editing::{Editing, parse_config};
use super::now::plugin_now;
use super::source::PluginSource;
use super::{cannot_be_used, inspect_bytes, signature};
use crate::arguments::AddArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::replaced_file;
use crate::terminal::agreement::add_facts;
use crate::terminal::rows::Rows;
use crate::terminal::sentences::sentence;
use crate::terminal::{self, visible};
use glovebox_host::component::check_handler;
use glovebox_host::grants::Grants;
use glovebox_host::inspect::Inspection;
use glovebox_plan::config::{CONFIG_FILE_NAME, Config, is_plugin_name};
use glovebox_plan::lock::line::Line;
use glovebox_plan::lock::{Lock, LockedPlugin};
use glovebox_plan::prepare::project::Project;
use glovebox_record::LimitSettings;
use glovebox_workspace::regular_file::{self, Links};
use std::path::{Path, PathBuf};

/// The folder of the project with the components that were added from other folders.
const FOLDER: &str = "plugins";

/// Adds a plugin. Without `--accept`, prints what it could do and writes nothing.
pub fn add(arguments: &AddArguments) -> CommandResult {
    let editing = Editing::begin(&arguments.workdir, None)?;
    let project = &editing.project;
    let (file, bytes) =
        PluginSource::parse(&arguments.source).read(project.config.component_bytes(""), arguments.digest)?;
    let inspection = inspect_bytes(&file, &bytes)?;
    check_handler(&inspection).map_err(|error| cannot_be_used(&file, &error))?;
    let name = plugin_name(&file, &inspection, arguments.name.as_deref())?;
    let place = Place::choose(project, &file, &name)?;
    refuse_known(project, &name, &place)?;
    let table = table(&name, &place.path, &inspection)?;
    let text = with_table(&editing.config_text()?, &table);
    let config = parse_config(&text)?;
    let entry = config.plugins.get(&name).ok_or_else(|| Stop::new(Exit::Internal, "the new table was not read"))?;
    let signer = signature::require(project, &name, &file, &inspection)?;
    let plugin = LockedPlugin { signer, ..plugin_now(project, &name, entry, &inspection)?.plugin };
    terminal::print(terms(&plugin));
    if !arguments.accept {
        let message = format!("`{name}` was not added, and nothing was written");
        let help = format!("if it may do this, repeat with `--digest {} --accept`", plugin.digest);
        return Err(Stop::new(Exit::Policy, message).with_help(help));
    }
    place.install(&bytes)?;
    if let Some(copy) = &place.copy {
        signature::install(&file, copy)?;
    }
    let mut lock = Lock { plugins: project.lock.plugins.clone() };
    lock.plugins.insert(name.clone(), plugin);
    editing.write_lock(&lock)?;
    editing.write_config(&text)?;
    terminal::say(format_args!("added `{name}` to `{CONFIG_FILE_NAME}`: use it with `type=\"{name}\"`\n"));
    Ok(Exit::Ok)
}

/// Returns the name in the manifest, or the given one for a component without a manifest.
fn plugin_name(file: &Path, inspection: &Inspection, given: Option<&str>) -> Result<String, Stop> {
    let written = inspection.manifest.as_ref().map(|manifest| manifest.name.as_str());
    let file = visible::line(&file.to_string_lossy()).into_owned();
    let name = match (written, given) {
        (Some(written), Some(given)) if written != given => {
            let message =
                format!("the manifest of `{file}` names the plugin `{written}`, and not `{}`", visible::line(given));
            return Err(Stop::new(Exit::Usage, message).with_help("leave out `--name`"));
        }
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => {
            let message = format!("`{file}` has no manifest: it has no name and wants nothing");
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

/// Where the component of an added plugin is.
struct Place {
    /// The path in `glovebox.toml`.
    path: String,
    /// The file to which the bytes are copied. `None` for a file that is in the project already.
    copy: Option<PathBuf>,
}

impl Place {
    /// A file below the folder of `glovebox.toml` stays where it is. Any other file is copied into the project, so that the
    /// project does not depend on a folder that only this user has.
    fn choose(project: &Project, file: &Path, name: &str) -> Result<Self, Stop> {
        let real =
            std::fs::canonicalize(file).map_err(|error| Stop::io(format!("read `{}`", file.display()), &error))?;
        let inside = real.strip_prefix(&project.config_dir).ok().and_then(Path::to_str);
        Ok(match inside {
            Some(path) => Self { path: path.to_owned(), copy: None },
            None => {
                let path = format!("{FOLDER}/{name}.wasm");
                Self { copy: Some(project.config_dir.join(&path)), path }
            }
        })
    }

    fn install(&self, bytes: &[u8]) -> Result<(), Stop> {
        let Some(file) = &self.copy else { return Ok(()) };
        let folder = file.parent().unwrap_or(file);
        match regular_file::read(file, Links::Within(folder), bytes.len() as u64) {
            Ok(found) if found == bytes => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            _ => {
                let message = format!("`{}` exists with other bytes: nothing was written", file.display());
                return Err(
                    Stop::new(Exit::Plugin, message).with_help("remove the file, or update the plugin that uses it")
                );
            }
        }
        std::fs::create_dir_all(folder).map_err(|error| Stop::io(format!("create `{}`", folder.display()), &error))?;
        replaced_file::put(file, bytes)
    }
}

/// Refuses a name that the project has already, whether it is the same file or another plugin of the same name.
fn refuse_known(project: &Project, name: &str, place: &Place) -> Result<(), Stop> {
    let Config { plugins, rules, .. } = &project.config;
    let known = plugins.get(name).map(|entry| (&entry.path, entry.line));
    let Some((path, line)) = known.or_else(|| rules.get(name).map(|entry| (&entry.path, entry.line))) else {
        return Ok(());
    };
    let message =
        format!("`{name}` is a plugin of this project already (glovebox.toml:{line}, `{}`)", visible::line(path));
    let help = match *path == place.path {
        true => format!("agree to its bytes with `glovebox plugin update {name}`"),
        false => format!("replace it with `glovebox plugin update {name} --from FILE`, or remove it first"),
    };
    Err(Stop::new(Exit::Plugin, message).with_help(help))
}

/// Returns the table of a plugin. It grants what the author wants, which the reader agrees to. The author's limits are not
/// repeated, because they apply anyway.
fn table(name: &str, path: &str, inspection: &Inspection) -> Result<String, Stop> {
    let wants = inspection.manifest.as_ref().map(|manifest| manifest.wants.clone()).unwrap_or_default();
    let grants = Grants { limits: LimitSettings::default(), ..wants };
    let cannot = |error: toml::ser::Error| Stop::new(Exit::Internal, format!("the grants cannot be written: {error}"));
    let path = toml::Value::String(path.to_owned());
    let grants = toml::Value::try_from(&grants).map_err(cannot)?;
    Ok(format!("[plugins.\"{name}\"]\npath = {path}\ngrants = {grants}\n"))
}

fn with_table(text: &str, table: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() { table.to_owned() } else { format!("{text}\n\n{table}") }
}

/// Returns what a plugin may do: the sentences first, then the facts about its bytes.
fn terms(plugin: &LockedPlugin) -> String {
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
