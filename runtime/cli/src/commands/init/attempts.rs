//! `glovebox init --try`: runs the commands of the pipeline in the sandbox, and fixes `glovebox.toml` and the timeouts
//! in `pipeline.dot` until they succeed or no known setting could help.
//!
//! A setting that lets commands use or read more of the machine (see `Diagnosis`) is written only if a person at the
//! terminal agrees. Each attempt is an ordinary run, whose record stays.

use crate::arguments::RunArguments;
use crate::commands::run::{self, FinishedRun};
use crate::drive;
use crate::exit::{CommandResult, Exit, Stop};
use crate::pipeline_file;
use crate::prepare;
use crate::replaced_file;
use crate::runs::failure;
use crate::setup::trial::{self, Diagnosis, Edit, FailedTrial, Machine};
use crate::terminal::{self, visible};
use clap::Parser;
use glovebox_engine::run::WORKSPACE_DIR;
use glovebox_names::shell;
use glovebox_plan::config::CONFIG_FILE_NAME;
use glovebox_plan::prepare::survey::Survey;
use glovebox_state::evidence::{CommandEvidence, RunStatus, RunSummary};
use glovebox_workspace::regular_file::{self, Links};
use std::path::Path;
use std::{fs, io};

/// Maximum size of `pipeline.dot` and of `glovebox.toml`.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Maximum number of runs.
const ATTEMPTS_MAX: usize = 5;
/// Name of the pipeline of an attempt in the run's record.
const FILE_NAME: &str = "<init --try>";
/// The timeout of stages that `init` writes, and the longer one that replaces it.
const TIMEOUTS: (&str, &str) = ("timeout=\"15m\"", "timeout=\"1h\"");

/// The arguments of `run` with their defaults.
#[derive(Debug, Parser)]
struct RunWords {
    #[command(flatten)]
    run: RunArguments,
}

/// Tries the pipeline of a project.
pub fn attempt(workdir: &Path, survey: &Survey) -> CommandResult {
    let machine = machine(workdir, survey);
    for number in 1..=ATTEMPTS_MAX {
        terminal::say(format_args!("try {number}    the commands of {} in the sandbox\n", pipeline_file::NAME));
        let finished = run(workdir)?;
        let summary = finished.run.summary();
        if summary.status == RunStatus::Success {
            let exit = conclude(&finished)?;
            terminal::say("works    the commands succeed in the sandbox\n");
            return Ok(exit);
        }
        let config = prepare::read_project(workdir, None)?.config;
        let failed = failed_trial(&finished);
        match fix(workdir, &trial::diagnose(&failed, &config, &machine))? {
            Repair::Yes => {}
            Repair::No => return conclude(&finished),
            Repair::Refused => {
                conclude(&finished)?;
                return Ok(Exit::Policy);
            }
        }
    }
    let stop = Stop::new(Exit::RunFailed, format!("the commands do not succeed after {ATTEMPTS_MAX} attempts"));
    Err(stop.with_help("look at the last one: `glovebox show latest`"))
}

/// Whether the cause of a failure was removed.
enum Repair {
    Yes,
    No,
    /// A person must agree to the setting, and did not.
    Refused,
}

fn machine(workdir: &Path, survey: &Survey) -> Machine {
    let canonical = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    Machine {
        project: canonical(workdir),
        home: std::env::var_os("HOME").map(|home| canonical(Path::new(&home))),
        path: std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect(),
        environment: survey.outer_environment().map(str::to_owned),
    }
}

fn run(workdir: &Path) -> Result<FinishedRun, Stop> {
    let file = workdir.join(pipeline_file::NAME);
    let text = read(&file, workdir).map_err(|error| Stop::io(format!("read `{}`", file.display()), &error))?;
    let text = trial::pipeline(&text).ok_or_else(|| {
        Stop::new(Exit::Invalid, format!("`{}` has no command to try, or is not valid", file.display()))
            .with_help("`glovebox check pipeline.dot` finds mistakes; a command is the `tool_command` of a stage")
    })?;
    let words = ["run".as_ref(), "--workdir".as_ref(), workdir.as_os_str()];
    let arguments = RunWords::try_parse_from(words)
        .map_err(|error| Stop::new(Exit::Internal, format!("the arguments of the attempt: {error}")))?
        .run;
    let host = &prepare::component_host();
    let folder = fs::canonicalize(workdir).unwrap_or_else(|_| workdir.to_owned());
    let (source, project) = prepare::read_command_line(host, &folder.join(FILE_NAME), text, workdir)?;
    run::execute(host, &arguments, &source, &project)
}

fn conclude(finished: &FinishedRun) -> CommandResult {
    let FinishedRun { folder, run, format, runs_dir, .. } = finished;
    drive::conclude(folder, run, *format, runs_dir)
}

/// Reads what the run shows about its failed command.
fn failed_trial(finished: &FinishedRun) -> FailedTrial {
    let FinishedRun { folder, run, .. } = finished;
    let summary: &RunSummary = run.summary();
    let workspace = folder.path.join(WORKSPACE_DIR);
    let Some(cause) = summary.cause() else { return FailedTrial { workspace, ..FailedTrial::default() } };
    let is_own = |evidence: &&CommandEvidence| Some(&evidence.node) == cause.node;
    let receipt = summary.proof.receipts.iter().rev().find(is_own).map(|evidence| &evidence.receipt);
    let is_host = |operation: &str, help: &str| operation == "reach" && help.starts_with("to allow it");
    let refused = summary.access.refused.iter().map(|refused| &refused.refusal);
    let refused_hosts = refused.filter(|refusal| is_host(&refusal.operation, &refusal.help));
    FailedTrial {
        limit: cause.failure.code.limit_name().map(str::to_owned),
        exit: receipt.and_then(|receipt| receipt.code),
        command: receipt.map(|receipt| shell::line(&receipt.argv)).unwrap_or_default(),
        output: failure::outputs(folder, summary).unwrap_or_default().join("\n"),
        quarantined: summary.files.quarantined.iter().map(|file| (file.path.clone(), file.reason.clone())).collect(),
        refused_hosts: refused_hosts.map(|refusal| refusal.path.clone()).collect(),
        workspace,
    }
}

/// Removes the cause of a failure, or says what the user can do.
fn fix(workdir: &Path, diagnosis: &Diagnosis) -> Result<Repair, Stop> {
    match diagnosis {
        Diagnosis::Setting { why, edit, opens: None } => write(workdir, why, edit),
        Diagnosis::Setting { why, edit, opens: Some(opens) } => {
            terminal::say(format_args!("reason   {}\n", visible::line(why)));
            if !agrees(edit, opens)? {
                terminal::say(format_args!(
                    "to do    if you agree, add {edit} in glovebox.toml: {}\n",
                    visible::line(opens)
                ));
                return Ok(Repair::Refused);
            }
            write(workdir, why, edit)
        }
        Diagnosis::Timeout => lengthen(workdir),
        Diagnosis::Advice(advice) => {
            terminal::say(format_args!("reason   {}\n", visible::line(advice)));
            Ok(Repair::No)
        }
        Diagnosis::Unknown => {
            terminal::say("reason   not known: perhaps the command fails without a sandbox too\n");
            Ok(Repair::No)
        }
    }
}

/// Asks a person at the terminal whether a setting may be written.
fn agrees(edit: &Edit, opens: &str) -> Result<bool, Stop> {
    if !terminal::can_ask() {
        return Ok(false);
    }
    terminal::say(format_args!("{}\nadd {edit} in glovebox.toml? [y/N] ", visible::line(opens)));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| Stop::io("read the answer", &error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn write(workdir: &Path, why: &str, edit: &Edit) -> Result<Repair, Stop> {
    let file = workdir.join(CONFIG_FILE_NAME);
    let text = match read(&file, workdir) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Stop::io(format!("read `{}`", file.display()), &error)),
    };
    let Some(changed) = edit.apply(&text) else {
        terminal::say(format_args!("reason   {}; {edit} would not change glovebox.toml\n", visible::line(why)));
        return Ok(Repair::No);
    };
    replaced_file::put(&file, changed)?;
    terminal::say(format_args!("reason   {}\nfixed    {edit} in glovebox.toml\n", visible::line(why)));
    Ok(Repair::Yes)
}

/// Reads a file of the project that `init` writes.
fn read(file: &Path, project: &Path) -> io::Result<String> {
    regular_file::read_text(file, Links::Within(project), FILE_BYTES_MAX)
}

/// Gives the stages that `init` wrote more time.
fn lengthen(workdir: &Path) -> Result<Repair, Stop> {
    let file = workdir.join(pipeline_file::NAME);
    let text = read(&file, workdir).map_err(|error| Stop::io(format!("read `{}`", file.display()), &error))?;
    let (short, long) = TIMEOUTS;
    if !text.contains(short) {
        terminal::say("reason   the command exceeded its time: raise `timeout` of its stage in pipeline.dot\n");
        return Ok(Repair::No);
    }
    replaced_file::put(&file, text.replace(short, long))?;
    terminal::say(format_args!("reason   the command exceeded its time\nfixed    `{long}` in pipeline.dot\n"));
    Ok(Repair::Yes)
}
