//! Which old runs of a project are removed without a request: `[run] keep_runs` in glovebox.toml.
//!
//! The newest runs of the project stay, but only the three newest keep their build caches after a success. Of the older
//! runs, a successful one is removed if its changes were applied or it has none. A failed one is removed a day after
//! its end, because the user may still examine why it failed. A run from which another run was forked, runs of other
//! projects, and runs that this user did not start are never removed.

use super::index::{self, ListedRun, RunState};
use super::{RunFolder, list, remove};
use crate::exit::Stop;
use crate::terminal::{self, about, counted};
use glovebox_engine::run::{APPLIED_FILE, EarlierRun};
use glovebox_workspace::cache_reuse;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

/// Time for which a failed run stays.
const FAILED_STAYS: SignedDuration = SignedDuration::from_hours(24);

/// Number of the newest runs that keep their build caches after a success: different pipelines have different caches.
pub const CACHES_KEPT: usize = 3;
/// Number of ended runs whose build caches are considered for a new run.
const EARLIER_MAX: usize = 10;

/// The runs to which a setting applies.
#[derive(Debug, Clone)]
pub struct Retention {
    /// Path of the project, with symbolic links resolved.
    pub project: PathBuf,
    /// Number of the project's newest runs that stay. `None` for all.
    pub keep_runs: Option<usize>,
}

/// Records that all changes of a successful run are in a project. Without this record, the run is not removed.
pub fn mark_applied(run: &RunFolder) {
    if let Err(error) = fs::File::create_new(run.path.join(APPLIED_FILE))
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        tracing::warn!(%error, run = %run.id, "could not record that the changes were applied; the run is kept");
    }
}

/// Returns the runs that the setting removes.
///
/// # Errors
/// Returns an error if the folder of runs cannot be read.
pub fn expired(runs_dir: &Path, retention: &Retention) -> Result<Vec<RunFolder>, Stop> {
    let Some(keep) = retention.keep_runs else { return Ok(Vec::new()) };
    let runs = list(runs_dir)?;
    if runs.len() <= keep {
        return Ok(Vec::new());
    }
    let ids = expired_of(&index::rows_of(runs_dir, &runs)?, runs_dir, retention, keep);
    Ok(runs.into_iter().filter(|run| ids.contains(&run.id)).collect())
}

/// Returns the ids of the runs that the setting removes now.
fn expired_of(rows: &[ListedRun], runs_dir: &Path, retention: &Retention, keep: usize) -> BTreeSet<String> {
    let is_applied = |row: &ListedRun| {
        let file = fs::symlink_metadata(runs_dir.join(&row.id).join(APPLIED_FILE));
        file.is_ok_and(|file| file.is_file())
    };
    let project = retention.project.to_string_lossy();
    select(rows, &project, keep, Timestamp::now(), is_applied).into_iter().map(str::to_owned).collect()
}

/// Removes old runs on a thread of its own while a new run is driven. Dropping it waits for the end.
pub struct Removal {
    keep_runs: Option<usize>,
    /// Returns the sizes of the removed runs, in bytes. `None` if no thread could be started.
    thread: Option<JoinHandle<Vec<u64>>>,
}

impl Removal {
    /// Begins to remove the runs that the setting removes. A run that cannot be removed stays.
    pub fn start(runs_dir: &Path, retention: Retention) -> Self {
        let (runs_dir, keep_runs) = (runs_dir.to_owned(), retention.keep_runs);
        let named = thread::Builder::new().name("old-runs".to_owned());
        let started = named.spawn(move || remove_expired(&runs_dir, &retention));
        if let Err(error) = &started {
            tracing::warn!(%error, "no thread to remove old runs");
        }
        Self { keep_runs, thread: started.ok() }
    }

    /// Waits for the end, and says how many runs were removed and why.
    pub fn finish(mut self, says: bool) {
        let freed = self.wait();
        if says && !freed.is_empty() {
            terminal::say(format_args!(
                "note: removed {} ({}), because `keep_runs` under `[run]` in glovebox.toml keeps {}\n",
                counted(freed.len(), "old run"),
                about(freed.iter().sum()),
                self.keep_runs.unwrap_or_default()
            ));
        }
    }

    fn wait(&mut self) -> Vec<u64> {
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Removes the runs that the setting removes, and the build caches of successful runs, except those of the newest runs. Returns
/// the sizes of the removed runs, in bytes.
fn remove_expired(runs_dir: &Path, retention: &Retention) -> Vec<u64> {
    let look = || -> Result<Vec<u64>, Stop> {
        let runs = list(runs_dir)?;
        let keep = retention.keep_runs.filter(|keep| runs.len() > *keep);
        // The new run may get caches of its own.
        let has_old_caches = runs.iter().filter(|run| remove::has_caches(run)).nth(CACHES_KEPT - 1).is_some();
        if keep.is_none() && !has_old_caches {
            return Ok(Vec::new());
        }
        let rows = index::rows_of(runs_dir, &runs)?;
        let old = keep.map(|keep| expired_of(&rows, runs_dir, retention, keep)).unwrap_or_default();
        let (old, others): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| old.contains(&run.id));
        let freed = old.iter().filter_map(|run| remove::remove(run).ok()).collect();
        if has_old_caches {
            index::forget_rows(runs_dir, &drop_caches(others, &rows, &retention.project));
        }
        Ok(freed)
    };
    look().unwrap_or_else(|stop| {
        tracing::warn!(reason = %stop.message, "could not look for old runs");
        index::forget(runs_dir);
        Vec::new()
    })
}

/// Returns the runs of a project whose build caches a new run may take over, the newest first.
pub fn earlier(runs_dir: &Path, project: &Path) -> Vec<EarlierRun> {
    let runs = list(runs_dir).unwrap_or_default().into_iter().filter(|run| cache_reuse::has_offer(&run.path));
    let offering: BTreeSet<String> = runs.map(|run| run.id).collect();
    if offering.is_empty() {
        return Vec::new();
    }
    let rows = index::rows(runs_dir).unwrap_or_default();
    let is_ended = |row: &&ListedRun| {
        offering.contains(&row.id)
            && row.is_own
            && Path::new(&row.project) == project
            && matches!(row.status, RunState::Success | RunState::Fail)
    };
    let ended = rows.iter().filter(is_ended).take(EARLIER_MAX);
    let earlier = ended.filter_map(|row| {
        let path = std::path::absolute(runs_dir.join(&row.id)).ok()?;
        Some(EarlierRun { id: row.id.as_str().into(), path, can_be_resumed: row.status == RunState::Fail })
    });
    earlier.collect()
}

/// Removes the build caches of the project's successful runs, except those of the newest runs, with which the next run
/// may begin. Returns the ids of the runs that had some.
fn drop_caches(runs: Vec<RunFolder>, rows: &[ListedRun], project: &Path) -> Vec<String> {
    let own = rows.iter().filter(|row| row.is_own && Path::new(&row.project) == project);
    let done: BTreeSet<&str> =
        own.skip(CACHES_KEPT).filter(|row| row.status == RunState::Success).map(|row| row.id.as_str()).collect();
    let runs = runs.into_iter().filter(|run| done.contains(run.id.as_str()) && remove::has_caches(run));
    runs.filter(remove::drop_caches).map(|run| run.id).collect()
}

/// Returns the ids of the runs that are removed at this time. `rows` begins with the newest run.
fn select<'r>(
    rows: &'r [ListedRun],
    project: &str,
    keep: usize,
    now: Timestamp,
    is_applied: impl Fn(&ListedRun) -> bool,
) -> BTreeSet<&'r str> {
    let named: BTreeSet<&str> = rows.iter().filter_map(|row| row.forked_from.as_deref()).collect();
    let is_over = |row: &ListedRun| match row.status {
        RunState::Success => is_applied(row),
        RunState::Fail => ended(row).is_some_and(|ended| now.duration_since(ended) > FAILED_STAYS),
        RunState::Running | RunState::Unfinished | RunState::Paused | RunState::Unreadable => false,
    };
    let own = rows.iter().filter(|row| row.is_own && row.project == project);
    let old = own.skip(keep).filter(|row| !named.contains(row.id.as_str()) && is_over(row));
    old.map(|row| row.id.as_str()).collect()
}

fn ended(row: &ListedRun) -> Option<Timestamp> {
    let took = SignedDuration::from_millis(i64::try_from(row.duration_ms).ok()?);
    row.started?.checked_add(took).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::spend::SpendTotals;

    fn run(id: &str, status: RunState, hours_ago: i64) -> ListedRun {
        let started = Timestamp::now().checked_sub(SignedDuration::from_hours(hours_ago)).unwrap();
        ListedRun {
            id: id.to_owned(),
            short: id.to_owned(),
            pipeline: "p".to_owned(),
            project: "/home/me/project".to_owned(),
            forked_from: None,
            status,
            started: Some(started),
            duration_ms: 60_000,
            branches: Vec::new(),
            bytes: None,
            spent: SpendTotals::default(),
            held: None,
            is_own: true,
            proof: None,
            problem: None,
        }
    }

    fn removed(rows: &[ListedRun], keep: usize) -> Vec<&str> {
        let found = select(rows, "/home/me/project", keep, Timestamp::now(), |row| !row.id.starts_with("open"));
        rows.iter().map(|row| row.id.as_str()).filter(|id| found.contains(id)).collect()
    }

    #[test]
    fn only_old_runs_with_nothing_left_to_do_are_removed() {
        let rows = [
            run("new", RunState::Success, 1),
            run("old", RunState::Success, 2),
            run("open", RunState::Success, 3),
            run("failed-today", RunState::Fail, 23),
            run("failed", RunState::Fail, 25),
            run("running", RunState::Running, 90),
            run("unfinished", RunState::Unfinished, 90),
            run("paused", RunState::Paused, 90),
            run("unreadable", RunState::Unreadable, 90),
        ];
        assert_eq!(removed(&rows, 1), ["old", "failed"]);
        assert_eq!(removed(&rows, 2), ["failed"]);
        assert_eq!(removed(&rows, rows.len()), [""; 0]);
    }

    #[test]
    fn runs_of_others_and_runs_that_another_run_names_stay_and_are_not_counted() {
        let of_other = ListedRun { project: "/home/me/other".to_owned(), ..run("other", RunState::Success, 1) };
        let foreign = ListedRun { is_own: false, ..run("foreign", RunState::Success, 1) };
        let fork = ListedRun { forked_from: Some("source".to_owned()), ..run("fork", RunState::Success, 1) };
        let rows = [of_other, foreign, fork, run("source", RunState::Success, 2), run("old", RunState::Success, 3)];
        assert_eq!(removed(&rows, 1), ["old"]);
        assert_eq!(removed(&rows, 2), ["old"]);
        assert_eq!(removed(&rows, 3), [""; 0]);
    }

    #[test]
    fn a_failed_run_of_the_future_stays() {
        assert_eq!(removed(&[run("a", RunState::Fail, -9), run("b", RunState::Fail, -9)], 1), [""; 0]);
    }
}
