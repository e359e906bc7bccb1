//! `glovebox plugin lock`: records the plugins of `glovebox.toml` as they are now.

use super::editing::Editing;
use super::now::{plugins_now, refuse_differences};
use crate::arguments::LockArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::terminal::{self, agreement, visible};
use glovebox_plan::config::CONFIG_FILE_NAME;
use glovebox_plan::lock::{LOCK_FILE_NAME, Lock};
use glovebox_plan::prepare::project::Project;

/// Prints what each plugin may do, and writes `glovebox.lock`. With `--locked`, only compares.
pub fn lock(arguments: &LockArguments) -> CommandResult {
    if arguments.locked {
        let project = prepare::read_project(&arguments.workdir, arguments.file.as_deref())?;
        refuse_no_config(&project, arguments)?;
        refuse_differences(&project)?;
        let plugins = terminal::counted(project.lock.plugins.len(), "plugin");
        terminal::say(format_args!("`{LOCK_FILE_NAME}` is up to date: {plugins}\n"));
        return Ok(Exit::Ok);
    }
    let editing = Editing::begin(&arguments.workdir, arguments.file.as_deref())?;
    let project = &editing.project;
    refuse_no_config(project, arguments)?;
    let mut agreed = Lock::default();
    for now in plugins_now(project)? {
        if let Some(refused) = now.refused {
            return Err(refused);
        }
        if !arguments.json {
            terminal::print(agreement::render(&now.plugin, &project.lock, now.agreement.as_ref()));
        }
        agreed.plugins.insert(now.plugin.name.clone(), now.plugin);
    }
    editing.write_lock(&agreed)?;
    if arguments.json {
        terminal::print_json(&agreed.plugins.values().collect::<Vec<_>>())?;
    }
    let plugins = terminal::counted(agreed.plugins.len(), "plugin");
    let file = project.config_dir.join(LOCK_FILE_NAME);
    terminal::say(format_args!("wrote `{}`: {plugins}\n", visible::line(&file.to_string_lossy())));
    Ok(Exit::Ok)
}

fn refuse_no_config(project: &Project, arguments: &LockArguments) -> Result<(), Stop> {
    if project.has_config {
        return Ok(());
    }
    let workdir = arguments.workdir.display();
    let message = format!("no `{CONFIG_FILE_NAME}` for `{workdir}`: there is nothing to lock");
    Err(Stop::new(Exit::Invalid, message))
}
