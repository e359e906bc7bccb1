//! Reads the keys and certificates of the models of `glovebox.toml`, and the secrets of tool servers.
//!
//! A key is read here and passed on as a value that cannot be printed. A key file that a stage could read is refused.

use super::executor::{ServerEnv, Targets};
use super::project::Project;
use super::refusal::{Class, Refusal};
use crate::config::{ConfiguredModel, KeySource};
use crate::plan::Plan;
use glovebox_host::tools::Secret;
use glovebox_models::key::Key;
use glovebox_models::target::{Authorities, Target};
use glovebox_workspace::regular_file::{self, Links};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of bytes that are read from a file.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Returns the targets of all models that a node of the plan asks, or why one of them cannot be asked. The caller must
/// make sure that the user has confirmed what leaves the machine.
pub fn targets(project: &Project, plan: &Plan) -> Result<Targets, Refusal> {
    let asked = plan.asked_models().into_iter();
    let ready = asked.map(|(name, model)| Ok((name.to_owned(), Arc::new(target(project, model.configured())?))));
    Ok(Arc::new(ready.collect::<Result<_, Refusal>>()?))
}

/// Returns the target of a model, or why the model cannot be asked. The caller must make sure that the user has confirmed
/// what leaves the machine.
pub(super) fn target(project: &Project, model: ConfiguredModel<'_>) -> Result<Target, Refusal> {
    let ConfiguredModel { name, access } = model;
    let key = key(project, model)?;
    let authorities = access.ca_file.as_ref().map(|file| authorities(project, name, Path::new(file))).transpose()?;
    let target = Target {
        family: access.family,
        endpoint: access.endpoint.clone(),
        model: access.model.clone(),
        answers_as: access.answers_as.clone(),
        key,
        authorities: authorities.unwrap_or_default(),
        output_tokens_max: access.output_tokens_max,
        context_tokens: access.context_tokens,
        timeout: access.timeout,
        schema_mode: access.schema_mode,
        images: access.images,
    };
    target.check().map_err(|error| {
        Refusal::new(Class::Provider, error.to_string()).with_help("use an `https` endpoint, or one on this machine")
    })?;
    Ok(target)
}

/// Returns the values for the plan's tool servers, or which variable is not set.
pub fn server_env(plan: &Plan) -> Result<ServerEnv, Refusal> {
    let mut found = BTreeMap::new();
    for (name, entry) in plan.servers() {
        for source in entry.env.values() {
            let Ok(value) = std::env::var(source) else {
                let message = format!("tool server `{name}`: the environment variable `{source}` is not set");
                let help = format!("set it: `export {source}=…`, or remove it from `env` under `[mcp.{name}]`");
                return Err(Refusal::new(Class::Provider, message).with_help(help));
            };
            found.insert(source.to_owned(), Secret::new(value));
        }
    }
    Ok(Arc::new(found))
}

/// Returns the key of a model. `None` if its provider needs none.
fn key(project: &Project, model: ConfiguredModel<'_>) -> Result<Option<Key>, Refusal> {
    let ConfiguredModel { name, access } = model;
    match &access.key {
        KeySource::None => Ok(None),
        KeySource::Variable(variable) => {
            let Ok(text) = std::env::var(variable) else {
                let message = format!("model `{name}` has no key: the environment variable `{variable}` is not set");
                let help = format!(
                    "set it: `export {variable}=…`, or name a file: `key_file = \"…\"` under `[models.{name:?}]`"
                );
                return Err(Refusal::new(Class::Provider, message).with_help(help));
            };
            let wrong = |error| {
                Refusal::new(
                    Class::Provider,
                    format!("the key of model `{name}` in `{variable}` cannot be used: {error}"),
                )
            };
            Key::parse(text).map(Some).map_err(wrong)
        }
        KeySource::File(file) => {
            let file = outside(project, name, Path::new(file))?;
            let wrong = |problem: String| {
                let message = format!("model `{name}` has no key: `{}`: {problem}", file.display());
                Refusal::new(Class::Provider, message).with_help("write the key into the file, on one line")
            };
            let bytes = read(&file).map_err(|error| wrong(error.to_string()))?;
            let text = String::from_utf8(bytes).map_err(|_| wrong("it is not text".to_owned()))?;
            Key::parse(text).map(Some).map_err(|error| wrong(error.to_string()))
        }
    }
}

/// Returns the path of a key file. Refuses a file that stages could read: in the project, or in a folder that commands see.
fn outside(project: &Project, name: &str, file: &Path) -> Result<PathBuf, Refusal> {
    let file = place(project, file);
    let real = std::fs::canonicalize(&file).unwrap_or_default();
    let read = project.config.sandbox.read.iter().map(PathBuf::from);
    let shown = std::iter::once(project.workdir.to_owned()).chain(read);
    let is_shown = |folder: PathBuf| {
        let folder = std::fs::canonicalize(&folder).unwrap_or(folder);
        real.starts_with(&folder)
    };
    if !{ shown }.any(is_shown) {
        return Ok(file);
    }
    let message = format!(
        "stages could read the key of model `{name}`: `{}` is in the project or in a folder that commands see",
        file.display()
    );
    Err(Refusal::new(Class::Policy, message).with_help("move the file, for example to `~/.config/glovebox/`"))
}

/// Reads the beginning of a file, at most `FILE_BYTES_MAX` bytes. Keys and lists of certificates are shorter.
pub fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular_file::open(file, Links::Follow)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the path of a file that `glovebox.toml` names. A leading `~` stands for the home folder.
pub fn place(project: &Project, file: &Path) -> PathBuf {
    match (file.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => project.config_dir.join(home).join(rest),
        _ => project.config_dir.join(file),
    }
}

fn authorities(project: &Project, name: &str, file: &Path) -> Result<Authorities, Refusal> {
    let file = place(project, file);
    let bytes = read(&file).map_err(|error| Refusal::io(format!("read `ca_file` `{}`", file.display()), &error))?;
    Authorities::parse(&bytes).ok_or_else(|| {
        let message = format!("`ca_file` of model `{name}`: `{}` has no PEM certificates", file.display());
        Refusal::new(Class::Invalid, message)
    })
}
