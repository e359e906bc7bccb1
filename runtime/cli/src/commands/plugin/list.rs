//! `glovebox plugin ls`: the plugins of a project, and whether each is as it was locked.

use super::now::{PluginNow, each_now, plugins_now};
use crate::arguments::ListPluginsArguments;
use crate::exit::{CommandResult, Exit};
use crate::prepare;
use crate::terminal::rows::Rows;
use crate::terminal::{self, visible};

/// Prints one row for each plugin.
pub fn list(arguments: &ListPluginsArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.workdir, None)?;
    if arguments.json {
        let now = plugins_now(&project)?;
        terminal::print_json(&now.iter().map(|now| &now.plugin).collect::<Vec<_>>())?;
        return Ok(Exit::Ok);
    }
    let now = each_now(&project);
    let width = now.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut rows = Rows::new(width);
    for (name, now) in &now {
        let PluginNow { plugin, refused, .. } = match now {
            Ok(now) => now,
            // One plugin that cannot be read does not hide the others.
            Err(stop) => {
                rows.row(name, format_args!("does not run: {}", stop.message));
                continue;
            }
        };
        let state = match (refused, project.lock.verify(plugin)) {
            (Some(refused), _) => format!("does not run: {}", refused.message),
            (None, Ok(())) => "locked".to_owned(),
            (None, Err(mismatch)) => format!("does not run: {mismatch}"),
        };
        let signer = plugin.signer.as_ref().map(|signer| format!(", signed by {}", signer.name)).unwrap_or_default();
        let version = plugin.version.as_deref().unwrap_or("-");
        rows.row(&plugin.name, format_args!("{version}  {}  {state}{signer}", plugin.source));
    }
    for name in project.lock.plugins.keys().filter(|name| !now.iter().any(|(known, _)| known == *name)) {
        rows.row(visible::line(name), "only in `glovebox.lock`; `glovebox plugin remove` removes it");
    }
    terminal::print(rows.finish());
    Ok(Exit::Ok)
}
