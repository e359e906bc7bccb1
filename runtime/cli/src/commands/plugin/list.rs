//! `glovebox plugin ls`: the plugins of a project, and whether each is as it was locked.

use super::now::{PluginNow, each_now, plugins_now};
use crate::arguments::ListPluginsArguments;
use crate::exit::{CommandResult, Exit};
use crate::prepare;
use crate::terminal::rows::Rows;
use crate::terminal::{self, visible};
use std::collections::BTreeSet;

/// Prints one row for each plugin.
///
/// # Errors
///
/// If the file of a plugin cannot be read, this returns the error of the first such plugin after all rows are printed.
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
    let mut unreadable = Vec::new();
    let names: BTreeSet<&str> = now.iter().map(|(name, _)| *name).collect();
    for (name, now) in now {
        let PluginNow { plugin, refused, .. } = match now {
            Ok(now) => now,
            Err(stop) => {
                rows.row(name, format_args!("does not run: {}", stop.message));
                unreadable.push(stop);
                continue;
            }
        };
        let state = match (refused, project.lock.verify(&plugin)) {
            (Some(refused), _) => format!("does not run: {}", refused.message),
            (None, Ok(())) => "locked".to_owned(),
            (None, Err(mismatch)) => format!("does not run: {mismatch}"),
        };
        let signer = plugin.signer.as_ref().map(|signer| format!(", signed by {}", signer.name)).unwrap_or_default();
        let version = plugin.version.as_deref().unwrap_or("-");
        rows.row(&plugin.name, format_args!("{version}  {}  {state}{signer}", plugin.source));
    }
    for name in project.lock.plugins.keys().filter(|name| !names.contains(name.as_str())) {
        rows.row(visible::line(name), "only in `glovebox.lock`; `glovebox plugin remove` removes it");
    }
    terminal::print(rows.finish());
    unreadable.into_iter().next().map_or(Ok(Exit::Ok), Err)
}
