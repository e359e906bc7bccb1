//! `glovebox plugin dev`: builds a plugin and runs its cases, again whenever the project changes.
//!
//! Each case is a run of a pipeline with one node, in a scratch folder that is removed afterwards. The plugin gets what it wants,
//! and runs under the same limits and in the same sandbox as in any other run.

use crate::arguments::DevPluginArguments;
use crate::authoring::case::{Case, CaseResult, Scratch};
use crate::authoring::component::BuiltComponent;
use crate::authoring::project_file::PluginProject;
use crate::commands::build_plugin::component;
use crate::commands::watch::Watched;
use crate::drive;
use crate::exit::{CommandResult, Exit, Stop};
use crate::plugin_language::World;
use crate::terminal::{self, visible};
use std::path::{Path, PathBuf};

/// The folder of a project with its cases.
const CASES: &str = "cases";

/// Runs the cases now, and after every change unless `--once` is given, until a signal ends the command.
pub fn dev(arguments: &DevPluginArguments) -> CommandResult {
    let cases = arguments.cases.clone().unwrap_or_else(|| arguments.folder.join(CASES));
    if arguments.once {
        return once(&arguments.folder, &cases);
    }
    let project = Watched::new(&arguments.folder, Path::new(""));
    loop {
        let before = project.scan();
        let exit = once(&arguments.folder, &cases).unwrap_or_else(|stop| {
            terminal::report_stop(&stop);
            stop.exit
        });
        if matches!(exit, Exit::Interrupted | Exit::Terminated) {
            return Ok(exit);
        }
        terminal::say("watching the project; a change builds it again, Ctrl-C ends\n");
        if let Some(exit) = drive::block_on(project.changed(before))?? {
            return Ok(exit);
        }
    }
}

/// Builds the project and runs every case. Exit 1 if the result of a case is not the expected one.
fn once(folder: &Path, cases: &Path) -> CommandResult {
    let project = PluginProject::read(folder)?;
    let without_cases = match project.world {
        World::Handler | World::Agent | World::Verifier => None,
        World::Rules => Some(("rules judge pipelines and execute no nodes, so they have no cases", "[rules]")),
        World::Policy => Some(("a policy judges runs and executes no nodes, so it has no cases", "[policy]")),
        World::ToolProvider => Some(("a tool provider executes no nodes, so it has no cases", "[plugins]")),
    };
    if let Some((message, table)) = without_cases {
        let help = format!(
            "build it with `glovebox plugin build`, check it with `glovebox plugin test`, and name it under `{table}` in glovebox.toml"
        );
        return Err(Stop::new(Exit::Usage, message).with_help(help));
    }
    let paths = case_folders(cases)?;
    let BuiltComponent { bytes, warnings, .. } = component(folder, &project)?;
    for warning in warnings {
        terminal::say(format_args!("warning: {}\n", visible::line(&warning)));
    }
    let mut failed = 0;
    for path in &paths {
        let case = Case::read(path)?;
        let scratch = Scratch::new(&project.manifest, &bytes, &case)?;
        let result = scratch.run(&case)?;
        failed += usize::from(!print(&case, &result));
    }
    terminal::print(format_args!("{} passed, {failed} failed\n", paths.len() - failed));
    Ok(if failed == 0 { Exit::Ok } else { Exit::RunFailed })
}

/// Returns the folders of the cases, in the order of their names.
fn case_folders(cases: &Path) -> Result<Vec<PathBuf>, Stop> {
    let shown = cases.display();
    let entries = cases.read_dir().map_err(|error| {
        Stop::io(format!("read the cases in `{shown}`"), &error).with_help(
            "a case is a folder with `case.toml` and the folder `files`, such as `cases/clean/files/src/a.txt`",
        )
    })?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    match folders.is_empty() {
        true => Err(Stop::new(Exit::Usage, format!("there are no cases in `{shown}`")).with_help(
            "a case is a folder with `case.toml`; files `NAME.json` are cases of `glovebox plugin test --cases`",
        )),
        false => Ok(folders),
    }
}

/// Prints how a case ended, with the log of the plugin. Returns true if it ended as expected.
fn print(case: &Case, result: &CaseResult) -> bool {
    let difference = case.difference(result);
    let verdict = if difference.is_none() { "ok" } else { "FAILED" };
    let text = if result.reason.is_empty() { &result.notes } else { &result.reason };
    let separator = if text.is_empty() { "" } else { ": " };
    terminal::print(format_args!(
        "case {} ... {verdict} ({}{separator}{})\n",
        visible::line(&case.name),
        visible::line(&result.status),
        visible::line(text)
    ));
    for line in &result.log {
        terminal::print(format_args!("  log {}\n", visible::line(line)));
    }
    if let Some(difference) = &difference {
        terminal::print(format_args!("  {}\n", visible::line(difference)));
    }
    difference.is_none()
}
