//! `glovebox plugin dev`: builds a plugin and runs its cases, again whenever the project changes.
//!
//! The cases are those of `glovebox plugin test --cases`, and are run in the same way: each is one call, with files of its own. The
//! plugin gets what it wants, under the same limits and in the same sandbox as in a run.

use crate::arguments::DevPluginArguments;
use crate::authoring::component::BuiltComponent;
use crate::authoring::program;
use crate::authoring::project_file::PluginProject;
use crate::commands::build_plugin::component;
use crate::commands::plugin::test::{failed, stage_files, tier};
use crate::commands::watch::Watched;
use crate::drive;
use crate::exit::{CommandResult, Exit, Stop};
use crate::plugin_language::World;
use crate::prepare;
use crate::setup::temporary_folder::TemporaryFolder;
use crate::terminal::{self, visible};
use glovebox_contract::report::Verdict;
use glovebox_contract::stage_file::StageFile;
use glovebox_contract::{CaseCall, TestRequest, WALL_MS};
use glovebox_host::component::LoadError;
use std::path::Path;

/// The folder of a project with its cases.
const CASES: &str = "cases";
/// Maximum number of log lines of a case that are shown.
const LOG_LINES_MAX: usize = 200;

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
    let cases = stage_files::cases(cases)?;
    let built = component(folder, &project)?;
    for warning in &built.warnings {
        terminal::say(format_args!("warning: {}\n", visible::line(warning)));
    }
    let names: Vec<String> = cases.iter().map(|(name, _)| name.clone()).collect();
    let calls = program::until_signal(move || calls(&built, cases))?;
    let failed = names.iter().zip(&calls).filter(|(name, call)| !print(name, call)).count();
    terminal::print(format_args!("{} passed, {failed} failed\n", calls.len() - failed));
    Ok(if failed == 0 { Exit::Ok } else { Exit::RunFailed })
}

/// Makes the calls of all cases. The commands of a plugin run only if it wants some.
fn calls(built: &BuiltComponent, cases: Vec<(String, StageFile)>) -> Result<Vec<CaseCall>, Stop> {
    let BuiltComponent { bytes, inspection, .. } = built;
    let wants_commands = inspection.manifest.as_ref().is_some_and(|manifest| !manifest.wants.commands.is_empty());
    let commands = wants_commands.then(tier).transpose()?;
    let folder = TemporaryFolder::new("plugin-dev");
    let folder = folder.map_err(|error| Stop::io("make a temporary folder for the cases", &error))?;
    let host = prepare::component_host();
    let host = host.get()?;
    let cannot = |error: LoadError| Stop {
        help: error.help(),
        ..Stop::new(Exit::Plugin, format!("the component that was built cannot be used: {error}"))
    };
    host.load(bytes).map_err(cannot)?;
    glovebox_contract::cases(&TestRequest {
        host,
        bytes,
        inspection,
        folder: folder.path().to_owned(),
        wall_ms: WALL_MS,
        commands,
        input: None,
        cases,
        only: None,
    })
    .map_err(failed)
}

/// Prints how a case ended, with the log of the plugin. Returns true if it ended as expected.
fn print(name: &str, call: &CaseCall) -> bool {
    let is_passed = call.check.verdict == Verdict::Passed;
    let verdict = if is_passed { "ok" } else { "FAILED" };
    let ended = call.outcome.as_ref().map_or_else(String::new, |outcome| {
        let text = outcome.failure.as_ref().map_or(&*outcome.notes, |failure| &*failure.reason);
        let separator = if text.is_empty() { "" } else { ": " };
        format!(" ({}{separator}{})", outcome.status.as_str(), visible::line(text))
    });
    terminal::print(format_args!("case {} ... {verdict}{ended}\n", visible::line(name)));
    for line in call.log.iter().take(LOG_LINES_MAX) {
        let fields: String = line.fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        let text = format!("{} {}{fields}", line.level, line.message);
        terminal::print(format_args!("  log {}\n", visible::line(&text)));
    }
    if let Some(detail) = call.check.detail.as_deref().filter(|_| !is_passed) {
        detail.lines().for_each(|line| terminal::print(format_args!("  {}\n", visible::line(line))));
    }
    is_passed
}
