//! Drives a run from the command line: forwards signals, shows progress, and returns the exit code of the run.
//!
//! `run` and `resume` share this code. It makes no decision about the run. The first Ctrl-C asks the run to stop and
//! waits for its last record; the second ends the process immediately.

use crate::answer_sources::Present;
use crate::ask::{self, Leave};
use crate::exit::{CommandResult, Exit, NO_SPACE, Stop};
use crate::runs;
use crate::runs::RunFolder;
use crate::runs::changes;
use crate::runs::failure;
use crate::stop_signals::listen;
use crate::terminal::paint::Paint;
use crate::terminal::progress::{ProgressFormat, Reporter};
use crate::terminal::summary;
use crate::terminal::{self, visible};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::driver::RunError;
use glovebox_engine::reserve::is_full;
use glovebox_engine::run::{HoldoutError, Run, RunDir, Update, WORKSPACE_DIR, lacks_space};
use glovebox_engine::signals::LocalSignals;
use glovebox_jail::jail::retire_templates;
use glovebox_journal::ports::PortError;
use glovebox_record::FailureCode;
use glovebox_state::evidence::{RunStatus, RunSummary, VerdictFile};
use glovebox_workspace::user_key::UserKey;
use rustix::fs::{Mode, OFlags};
use std::error::Error;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::time::Duration;

/// Opens a run's folder for the engine. With a key, the engine signs new records.
pub fn open_dir(run: &RunFolder, key: Option<UserKey>) -> Result<RunDir, Stop> {
    let dir = Dir::open_ambient_dir(&run.path, ambient_authority())
        .map_err(|error| Stop::io(format!("open run `{}`", run.id), &error))?;
    Ok(RunDir { path: run.path.clone(), dir, key })
}

/// Maximum time that the process waits at its end for threads that still run, such as an attempt that did not react to
/// a cancellation.
const THREADS_END_MAX: Duration = Duration::from_secs(5);

/// Leaves the session of the parent process, if `--own-session` is set: a run of `glovebox serve` goes on when the server or
/// its terminal ends.
pub fn leave_session(is_wanted: bool) {
    if is_wanted {
        // It fails only for the leader of a process group, which the server does not start.
        let _leads = rustix::process::setsid();
    }
}

/// Runs a future to its end on this thread. Long work has its own threads, so the executor needs no thread pool.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Stop> {
    block_on_within(THREADS_END_MAX, future)
}

/// As [`block_on`], but with another bound on the wait for threads. A thread that never returns must not keep the
/// process alive, because signals no longer end the process at that point.
pub fn block_on_within<T>(threads_end_max: Duration, future: impl Future<Output = T>) -> Result<T, Stop> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = built.map_err(|error| Stop::io("start the executor", &error))?;
    let ended = panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(future)));
    runtime.shutdown_timeout(threads_end_max);
    ended.map_or_else(|panicked| panic::resume_unwind(panicked), Ok)
}

/// Drives a run to its end, and shows its progress.
pub async fn drive(run: &mut Run, folder: &RunFolder, mut reporter: Reporter, present: Present) -> Result<(), Stop> {
    let signals = LocalSignals::new();
    let Present { mut attendance, asks_in } = present;
    let mut leave = Leave::default();
    if let Some(runs_dir) = asks_in {
        let (person, by_signal) = ask::start(folder, runs_dir, reporter.notices());
        (attendance.terminal, leave) = (Some(person), by_signal);
    }
    let listening = tokio::spawn(listen(signals.clone(), reporter.notices(), leave)?);
    run.watch_output(reporter.output_watch());
    let driven = run.drive(&signals, attendance, |update| match update {
        Update::Record(record) => reporter.record(record),
        Update::Liveness(line) => reporter.liveness(line),
        Update::Activity { branch, node, progress } => reporter.activity(branch, node, progress),
    });
    let driven = driven.await;
    // No stage follows. The kernel needs milliseconds to remove a template, meanwhile the run is concluded.
    retire_templates();
    reporter.close();
    listening.abort();
    driven.map_err(|error| stop(folder, &error))
}

/// Returns why the run could not continue, and how to continue it.
pub fn stop(run: &RunFolder, error: &RunError) -> Stop {
    let exit = match error {
        RunError::Port(PortError::Corrupt { .. } | PortError::Version { .. }) => Exit::Mismatch,
        RunError::Port(PortError::Foreign { .. } | PortError::NoKey { .. }) => Exit::Policy,
        RunError::Port(_) | RunError::Execute { .. } | RunError::Project(_) => Exit::Transient,
        RunError::TakenOver { .. } => Exit::Transient,
        RunError::Holdouts(source) => match source.downcast_ref() {
            Some(HoldoutError::Seal(_)) => Exit::Invalid,
            Some(HoldoutError::Reopen(_) | HoldoutError::Differs(_)) => Exit::Mismatch,
            Some(HoldoutError::Copied(_)) => Exit::Policy,
            None => Exit::Internal,
        },
        RunError::LimitReached(_) => Exit::Budget,
        RunError::Workspace(_) | RunError::Ended { .. } | RunError::Canceled { .. } => Exit::Usage,
        RunError::NothingReady(_) | RunError::NotStarted => Exit::Internal,
    };
    // The space may be free again, because the files of the attempt were removed.
    let is_full = lacks_space(error) || has_no_space(&run.path);
    let mut message = match error {
        RunError::Ended { .. } => error.to_string(),
        RunError::Canceled { .. } => visible::line(&error.to_string()).into_owned(),
        _ if exit == Exit::Transient && is_full => {
            let folder = run.path.parent().unwrap_or(&run.path);
            format!("run `{}`: no space is left in `{}`: {error}", run.id, folder.display())
        }
        _ => format!("run `{}`: {error}", run.id),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Some errors name their cause themselves.
        if !message.ends_with(&text) {
            message.push_str(&format!(": {text}"));
        }
        cause = error.source();
    }
    let stop = Stop::new(exit, message);
    match help(run, error) {
        _ if exit == Exit::Transient && is_full => stop.with_help(NO_SPACE),
        Some(help) => stop.with_help(help),
        None => stop,
    }
}

/// Returns what the user can do about an error. `None` if its message is enough.
fn help(run: &RunFolder, error: &RunError) -> Option<String> {
    let id = &run.id;
    Some(match error {
        RunError::Workspace(_) if run.path.is_dir() && !run.path.join(WORKSPACE_DIR).is_dir() => {
            format!("the run's copy of the project was removed; `glovebox fork {id} NODE` continues in a new copy")
        }
        RunError::Workspace(_) if is_denied(error) => {
            "make the file or folder readable for you (`chmod u+rX PATH`), or move it out of the project".to_owned()
        }
        RunError::Ended { .. } => format!(
            "start a new run at a stage: `glovebox run FILE --from NODE`, or continue a copy of this run: `glovebox fork {id} NODE@VISIT`"
        ),
        RunError::Canceled { .. } => format!("continue a copy of the run: `glovebox fork {id} NODE`"),
        RunError::LimitReached(failure) if failure.code.as_str() == "limit/max_visits" => {
            format!("restart at another stage: `glovebox resume {id} --from NODE`, or start a new run")
        }
        RunError::LimitReached(failure) => {
            let flag = match &failure.code {
                code if *code == FailureCode::RUN_STEPS => "--max-steps N",
                code if *code == FailureCode::RUN_TOKENS => "--max-tokens N",
                code if *code == FailureCode::RUN_COST => "--max-budget-usd USD",
                _ => "--max-wall-time T",
            };
            let operator = match failure.code == FailureCode::RUN_TOKENS || failure.code == FailureCode::RUN_COST {
                true => "; a smaller bound under `[run]` in glovebox.toml wins over the flag",
                false => "",
            };
            format!("raise the limit for the rest of the run: `glovebox resume RUN {flag}`{operator}")
        }
        RunError::Holdouts(source) if matches!(source.downcast_ref(), Some(HoldoutError::Copied(_))) => {
            "remove the copies or add them to `.gitignore`; if builders may read them, set `scenario_copies=\"allow\"` on the graph".to_owned()
        }
        _ => return None,
    })
}

/// Returns true if an error was caused by missing permissions for a file.
fn is_denied(error: &(dyn Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    let kinds = causes.filter_map(|error| Some(error.downcast_ref::<std::io::Error>()?.kind()));
    kinds.into_iter().any(|kind| kind == std::io::ErrorKind::PermissionDenied)
}

/// Returns true if the file system of a folder is full.
fn has_no_space(folder: &Path) -> bool {
    // The folder of a run that could not begin was removed.
    let existing = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(folder);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(existing, flags, Mode::empty()).is_ok_and(is_full)
}

/// Prints the summary of a run and returns its exit code.
pub fn conclude(run: &RunFolder, ended: &Run, format: ProgressFormat, runs_dir: &Path) -> CommandResult {
    let summary = ended.summary();
    print_end(run, summary, ended.verdict(), format, runs_dir)?;
    if summary.status == RunStatus::Success {
        runs::remove::slim(run);
        if summary.files.changed.is_empty() {
            runs::retention::mark_applied(run);
        }
    }
    let exit = Exit::from(summary.end.exit);
    tracing::debug!(run = %visible::line(&run.id), code = exit.code(), "concluded");
    Ok(exit)
}

/// Prints the summary of a run. With `--json`, prints its verdict as the last line.
pub fn print_end(
    run: &RunFolder,
    summary: &RunSummary,
    mut verdict: Option<VerdictFile<'_>>,
    format: ProgressFormat,
    runs_dir: &Path,
) -> Result<(), Stop> {
    // Standard output belongs to the records, or to the command.
    let is_message = matches!(format, ProgressFormat::Json | ProgressFormat::Output);
    let paint = if is_message { Paint::stderr() } else { Paint::stdout() };
    let base = verdict.as_ref().map(|verdict| verdict.base_digest);
    let new = base.map_or(Ok(Vec::new()), |base| changes::new_configuration(run, &base, summary))?;
    let failed = failure::read(run, summary);
    let text = summary::render(summary, &new, failed.as_ref(), &runs::named(run, runs_dir)?, paint);
    match format {
        ProgressFormat::Json => {
            verdict.iter_mut().for_each(|verdict| verdict.new_configuration.clone_from(&new));
            terminal::print_json_line(&verdict)?;
            terminal::say(text);
        }
        ProgressFormat::Output => terminal::say(text),
        _ => terminal::print(text),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn a_thread_that_never_returns_does_not_delay_the_end() {
        let (never, waits) = channel::<()>();
        let (done, is_done) = channel();
        thread::spawn(move || {
            let work = async move { drop(tokio::task::spawn_blocking(move || waits.recv())) };
            done.send(block_on_within(Duration::from_millis(20), work).is_ok()).unwrap();
        });
        assert_eq!(is_done.recv_timeout(Duration::from_secs(60)), Ok(true));
        drop(never);
    }
}
