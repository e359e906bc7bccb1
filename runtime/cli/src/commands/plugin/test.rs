//! `glovebox plugin test`: calls a component with ordinary, odd and hostile inputs, and checks what it does.
//!
//! The command needs no project and reads no configuration. The checks are in the crate `tests/contract`.

mod junit;
pub mod stage_files;

use super::{inspect_bytes, read_bytes, shown, signature};
use crate::arguments::TestArguments;
use crate::authoring::project_file::{PROJECT_FILE, PluginProject, built_file};
use crate::exit::{CommandResult, Exit, Stop};
use crate::exports::reports;
use crate::prepare;
use crate::replaced_file;
use crate::setup::temporary_folder::TemporaryFolder;
use crate::terminal::{self, plugin_test, visible};
use glovebox_contract::report::{TestReport, Verdict};
use glovebox_contract::{TestError, TestRequest, groups};
use glovebox_jail::jail;
use glovebox_pipeline::nearest::nearest;
use glovebox_plan::config::Config;
use glovebox_record::Tier;
use std::path::{Path, PathBuf};

/// Group of the cases, and group of the given input.
const OWN_GROUPS: [(&str, &str); 2] = [("cases", "--cases DIR"), ("input", "--input STAGE.json")];

/// Tests a component. Ends with 7 if a check failed.
pub fn test(arguments: &TestArguments) -> CommandResult {
    check_group(arguments)?;
    if let Some(file) = &arguments.junit {
        reports::require_place(file)?;
    }
    let file = match &arguments.file {
        Some(file) => file.clone(),
        None => built_here()?,
    };
    let bytes = read_bytes(&file, Config::default().component_bytes(""))?;
    let inspection = inspect_bytes(&shown(&file), &bytes)?;
    signature::refuse_revoked_here(&inspection)?;
    let input = arguments.input.as_deref().map(stage_files::input).transpose()?;
    let cases = arguments.cases.as_deref().map(stage_files::cases).transpose()?.unwrap_or_default();
    let commands = arguments.allow_commands.then(tier).transpose()?;
    let folder = TemporaryFolder::removed_by_signals("plugin-test");
    let folder = folder.map_err(|error| Stop::io("make a temporary folder for the calls", &error))?;
    let host = prepare::component_host();
    let report = glovebox_contract::test(TestRequest {
        host: host.get()?,
        bytes: &bytes,
        inspection: &inspection,
        folder: folder.path().to_owned(),
        wall_ms: u64::try_from(arguments.wall_time.as_millis()).unwrap_or(u64::MAX),
        commands,
        input,
        cases,
        only: arguments.only.clone(),
    });
    let report = report.map_err(failed)?;
    if let Some(file) = &arguments.junit {
        let text = junit::render(&report)?;
        replaced_file::put(file, text)?;
    }
    if arguments.json {
        terminal::print_json(&report)?;
    } else {
        terminal::print(plugin_test::render(&report));
    }
    ended(&report)
}

/// Returns the component that was built for the project in the current folder.
fn built_here() -> Result<PathBuf, Stop> {
    let folder = Path::new(".");
    if !folder.join(PROJECT_FILE).exists() {
        let stop = Stop::new(Exit::Usage, format!("no component is named, and there is no `{PROJECT_FILE}` here"));
        return Err(stop.with_help("name one: `glovebox plugin test COMPONENT.wasm`"));
    }
    let file = built_file(folder, &PluginProject::read(folder)?.manifest);
    if !file.exists() {
        let stop = Stop::new(Exit::Usage, format!("no component is named, and there is no `{}`", shown(&file)));
        return Err(stop.with_help("build it first: `glovebox plugin build`"));
    }
    Ok(file)
}

fn check_group(arguments: &TestArguments) -> Result<(), Stop> {
    let Some(only) = &arguments.only else { return Ok(()) };
    let groups = groups();
    if !groups.contains(only.as_str()) {
        let stop = Stop::new(Exit::Usage, format!("there is no group `{}`", visible::line(only)));
        return Err(match nearest(only, groups.iter().copied()) {
            Some(meant) => stop.with_help(format!("did you mean `--only {meant}`?")),
            None => stop.with_help(format!("groups: {}", groups.into_iter().collect::<Vec<_>>().join(", "))),
        });
    }
    let given = [arguments.cases.is_some(), arguments.input.is_some()];
    match OWN_GROUPS.iter().zip(given).find(|((name, _), is_given)| only == name && !is_given) {
        Some(((name, flag), _)) => {
            Err(Stop::new(Exit::Usage, format!("`--only {name}` has nothing to check"))
                .with_help(format!("add `{flag}`")))
        }
        None => Ok(()),
    }
}

/// Returns the best tier of this machine. Without one, no command may run.
pub fn tier() -> Result<Tier, Stop> {
    jail::probe(None).tier.ok_or_else(|| {
        Stop::new(Exit::Policy, "this machine can confine no command, so the commands of a component cannot be tested")
            .with_help(
                "show what is missing: `glovebox doctor`; `plugin test` without `--allow-commands` runs no commands",
            )
    })
}

/// Returns the error for a kit that could not work.
pub fn failed(error: TestError) -> Stop {
    let exit = match error {
        TestError::StageFile(_) => Exit::Invalid,
        TestError::Folder(ref source) => return Stop::io("make the files of a call", source),
        TestError::Files(_) | TestError::Jail(_) | TestError::Host(_) => Exit::Internal,
    };
    Stop::new(exit, error.to_string())
}

/// Returns the exit. A case that was given and not run is no pass.
fn ended(report: &TestReport) -> CommandResult {
    if report.count(Verdict::Failed) > 0 {
        return Ok(Exit::Plugin);
    }
    let is_case_not_run = |name: &str, verdict| name.starts_with("cases.") && verdict == Verdict::NotRun;
    match report.checks.iter().filter(|check| is_case_not_run(&check.name, check.verdict)).count() {
        0 => Ok(Exit::Ok),
        count => {
            let message = format!("{} not run, because the plugin wants commands", terminal::counted(count, "case"));
            Err(Stop::new(Exit::Usage, message)
                .with_help("add `--allow-commands`, or give the case `grants` without `commands`"))
        }
    }
}
