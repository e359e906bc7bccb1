//! `glovebox apply`: the only command that writes the changes of a run to the user's project.
//!
//! Writes everything or nothing: if a path differs from what the run copied, nothing is written.

use crate::arguments::ApplyArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::exports::git_branch::{self, BranchError, Source};
use crate::patch;
use crate::runs::changes::Changes;
use crate::runs::journal;
use crate::runs::retention;
use crate::runs::selection;
use crate::runs::{self, RunFolder};
use crate::terminal::{self, counted, visible};
use glovebox_journal::event::Verdict;
use glovebox_record::{ChangeOp, FileChange};
use glovebox_state::evidence::configuration::NewConfiguration;
use glovebox_workspace::apply::{self, ApplyError, ApplyPlan, Conflict};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::path::Path;

/// The document that `apply --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "apply.json")]
pub struct ApplyFile<'a> {
    /// Version of this document.
    schema_version: u32,
    /// Files, links and directories that were written.
    writes: &'a [FileChange],
    /// Files and directories that were removed.
    deletes: &'a [FileChange],
    /// Files and folders that were created and from which programs take settings or code.
    new_configuration: &'a [NewConfiguration],
}

/// Writes the changes of a successful run to the project, or prints the conflicts.
pub fn apply(arguments: &ApplyArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let changes = Changes::read(&run)?;
    if !arguments.foreign {
        refuse_foreign(&run, &arguments.runs.runs_dir, &changes)?;
    }
    refuse_unverified(&run, &arguments.runs.runs_dir, &changes)?;
    let selected = selection::select(&changes.changes, &arguments.paths)?;
    let project = &*destination(arguments, &run, &changes)?;
    if let Some(name) = &arguments.branch {
        return make_branch(arguments, &Source { run: &run, changes: &changes, selected: &selected }, project, name);
    }
    let plan = write(&changes, &selected, project)?;
    done(arguments, &plan, &changes.new_configuration(&plan.writes))?;
    finish(&run, &selected, &changes);
    Ok(Exit::Ok)
}

/// Writes the changes of a successful run of this user to `project`, which must be the project that the run copied.
/// Returns the document that `apply --json` prints, as text. Empty `paths` select every path.
pub fn to_project(run: &RunFolder, runs_dir: &Path, project: &Path, paths: &[String]) -> Result<String, Stop> {
    let changes = Changes::read(run)?;
    refuse_foreign(run, runs_dir, &changes)?;
    if changes.project != project {
        let message = format!("run `{}` was started for another project; nothing was written", run.id);
        return Err(Stop::new(Exit::Policy, message));
    }
    refuse_unverified(run, runs_dir, &changes)?;
    let selected = selection::select(&changes.changes, paths)?;
    let ApplyPlan { writes, deletes, .. } = &write(&changes, &selected, project)?;
    let new_configuration = &changes.new_configuration(writes);
    let document = terminal::json(&ApplyFile { schema_version: 1, writes, deletes, new_configuration })?;
    finish(run, &selected, &changes);
    Ok(document)
}

fn refuse_foreign(run: &RunFolder, runs_dir: &Path, changes: &Changes) -> Result<(), Stop> {
    let named = runs::spelled(&run.id, runs_dir);
    let help = format!("read `glovebox diff {named}`, then run `glovebox apply {named} --foreign --workdir D`");
    journal::refuse_foreign(run, changes.provenance, help)
}

/// Refuses the changes of a run that has not succeeded.
fn refuse_unverified(run: &RunFolder, runs_dir: &Path, changes: &Changes) -> Result<(), Stop> {
    let named = runs::spelled(&run.id, runs_dir);
    match changes.verdict {
        Some(Verdict::Success) => Ok(()),
        Some(Verdict::Fail) => {
            let message = format!("run `{}` failed, so its changes are not verified; nothing was written", run.id);
            Err(Stop::new(Exit::Policy, message).with_help(format!("show them: `glovebox diff {named}`")))
        }
        None => {
            let message = format!("run `{}` has not ended; nothing was written", run.id);
            Err(Stop::new(Exit::Usage, message).with_help(format!("continue it: `glovebox resume {named}`")))
        }
    }
}

/// Writes all selected changes, or nothing if the project differs from what the run copied.
fn write(changes: &Changes, selected: &[FileChange], project: &Path) -> Result<ApplyPlan, Stop> {
    let failed =
        |error: &dyn std::error::Error| Stop::new(Exit::Usage, format!("apply to `{}`: {error}", project.display()));
    let plan = apply::plan(&changes.base, selected, project, &|digest| changes.open(digest))
        .map_err(|error| failed(&error))?;
    if !plan.conflicts.is_empty() {
        return Err(refuse(&plan.conflicts, project));
    }
    for change in &plan.writes {
        changes.verify(change)?;
    }
    match apply::perform(&plan, &changes.base, project, &|digest| changes.open(digest)) {
        Ok(()) => Ok(plan),
        Err(ApplyError::Conflicts(conflicts)) => Err(refuse(&conflicts, project)),
        Err(error) => Err(failed(&error)),
    }
}

/// Creates a branch in the project's repository instead of changing the project.
fn make_branch(arguments: &ApplyArguments, source: &Source<'_>, project: &Path, name: &str) -> CommandResult {
    let made = git_branch::make(source, project, name).map_err(|error| match error {
        BranchError::Stop(stop) => stop,
        BranchError::Conflicts(conflicts) => {
            report(&conflicts);
            let count = counted(conflicts.len(), "conflict");
            Stop::new(Exit::Policy, format!("{count} with HEAD of `{}`; nothing was written", project.display()))
                .with_help("commit the files with which the run began, or apply without `--branch`")
        }
    })?;
    if arguments.json {
        terminal::print_json(&made)?;
        return Ok(Exit::Ok);
    }
    let short = |commit: &str| commit.get(..12).unwrap_or(commit).to_owned();
    for commit in &made.commits {
        terminal::print(format_args!("{} {}\n", short(&commit.commit), visible::line(&commit.subject)));
    }
    match &made.name {
        None => terminal::say("nothing to apply: HEAD already has these changes\n"),
        Some(name) => terminal::print(format_args!(
            "branch `{}`: {} on {}, in the repository `{}`\n",
            visible::line(name),
            counted(made.commits.len(), "commit"),
            short(&made.base),
            visible::line(&made.repository)
        )),
    }
    terminal::say_new_configuration(&made.new_configuration);
    finish(source.run, source.selected, source.changes);
    Ok(Exit::Ok)
}

/// Returns the folder that gets the changes. Without `--workdir`, this is the project of the record, which must be the
/// current folder or a folder in it.
fn destination<'a>(arguments: &'a ApplyArguments, run: &RunFolder, changes: &Changes) -> Result<Cow<'a, Path>, Stop> {
    if let Some(workdir) = &arguments.workdir {
        return Ok(Cow::Borrowed(workdir));
    }
    runs::project_here(&changes.project).map(Cow::Owned).ok_or_else(|| {
        let started_for = visible::line(&changes.project.to_string_lossy()).into_owned();
        let message =
            format!("run `{}` was started for `{started_for}`, which is not the current folder or below it", run.id);
        Stop::new(Exit::Policy, message).with_help("name the project: `--workdir D`")
    })
}

fn refuse(conflicts: &[Conflict], project: &Path) -> Stop {
    report(conflicts);
    let count = counted(conflicts.len(), "conflict");
    Stop::new(Exit::Policy, format!("{count} in `{}`; nothing was written", project.display()))
        .with_help("commit, stash or restore these files, or apply to another copy: `--workdir D`")
}

fn report(conflicts: &[Conflict]) {
    for conflict in conflicts {
        terminal::say(format_args!(
            "conflict: {}: {}\n",
            visible::line(&conflict.path),
            visible::line(&conflict.reason)
        ));
    }
}

fn done(arguments: &ApplyArguments, plan: &ApplyPlan, new: &[NewConfiguration]) -> CommandResult {
    if arguments.json {
        let ApplyPlan { writes, deletes, .. } = plan;
        terminal::print_json(&ApplyFile { schema_version: 1, writes, deletes, new_configuration: new })?;
        return Ok(Exit::Ok);
    }
    for change in &plan.deletes {
        terminal::print(format_args!("removed {}\n", visible::line(change.path.as_str())));
    }
    for change in &plan.writes {
        let folder = if change.op == ChangeOp::Mkdir { "/" } else { "" };
        terminal::print(format_args!("wrote   {}{folder}\n", visible::line(change.path.as_str())));
    }
    terminal::say_new_configuration(new);
    if plan.deletes.is_empty() && plan.writes.is_empty() {
        terminal::say("nothing to apply: the project already has these changes\n");
    }
    Ok(Exit::Ok)
}

/// Marks the run as applied. If it has more changes than were selected, prints a note instead.
fn finish(run: &RunFolder, selected: &[FileChange], changes: &Changes) {
    let files = |list: &[FileChange]| patch::deltas(&changes.base, list).len();
    let (some, all) = (files(selected), files(&changes.changes));
    if some < all {
        terminal::say(format_args!(
            "applied {some} of {}; `glovebox apply` without paths applies the rest\n",
            counted(all, "changed file")
        ));
    } else {
        retention::mark_applied(run);
    }
}
