//! `glovebox plugin remove`: removes a plugin's table and its entry in the lock file. The component stays.

use super::editing::Editing;
use crate::arguments::RemovePluginArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::terminal::{self, visible};
use glovebox_plan::config::CONFIG_FILE_NAME;
use glovebox_plan::lock::Lock;
use toml_edit::DocumentMut;

/// Removes one plugin from `glovebox.toml` and `glovebox.lock`.
pub fn remove(arguments: &RemovePluginArguments) -> CommandResult {
    let editing = Editing::begin(&arguments.workdir, None)?;
    let name = arguments.name.as_str();
    let mut document: DocumentMut = editing.config_text()?.parse().map_err(|error: toml_edit::TomlError| {
        Stop::new(Exit::Invalid, format!("`{CONFIG_FILE_NAME}` cannot be changed: {}", error.message()))
    })?;
    let mut kept = None;
    for table in ["plugins", "rules"] {
        let Some(plugins) = document.get_mut(table).and_then(|item| item.as_table_like_mut()) else { continue };
        let removed = plugins.remove(name);
        let field = |name: &str| removed.as_ref()?.get(name)?.as_str().map(str::to_owned);
        kept = kept.or_else(|| field("path")).or_else(|| field("registry"));
    }
    let mut lock = Lock { plugins: editing.project.lock.plugins.clone() };
    let was_locked = lock.plugins.remove(name).is_some();
    if kept.is_none() && !was_locked {
        let stop = Stop::new(Exit::Usage, format!("`{}` is not a plugin of this project", visible::line(name)));
        return Err(stop.with_help("see the plugins with `glovebox plugin ls`"));
    }
    editing.require_places()?;
    // In this order, an interrupted command leaves a plugin that is not locked, and that does not run.
    match (&kept, was_locked) {
        (Some(_), true) => editing.write(&lock, &document.to_string())?,
        (Some(_), false) => editing.write_config(&document.to_string())?,
        (None, _) => editing.write_lock(&lock)?,
    }
    if let Some(kept) = kept {
        terminal::say(format_args!("removed `{name}`; its component `{}` was kept\n", visible::line(&kept)));
    }
    Ok(Exit::Ok)
}
