//! Finds runs on disk by id, by a unique beginning or end of an id, or by `latest` (decision names-of-runs).
//!
//! This file knows the folders and names of runs. The submodules read their content, such as [`journal`], [`changes`]
//! and [`recorded`].

pub mod branches_now;
pub mod changes;
pub mod conversations;
pub mod failure;
mod folder;
pub mod hidden;
pub mod index;
pub mod journal;
pub mod last_failure;
pub mod overlay;
pub mod question;
pub mod recorded;
pub mod remove;
pub mod removed;
pub mod retention;
pub mod review;
pub mod running_outputs;
pub mod running_turns;
pub mod selection;
pub mod set_aside;
pub mod start_at;
pub mod takeover;

use crate::exit::{Exit, Stop};
use crate::terminal::summary::RunNames;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::attempt::exchanges::{self, HeldCost};
use glovebox_engine::run::OWNER_FILE;
use glovebox_journal::sqlite::Owner;
use glovebox_names::shell;
use glovebox_workspace::run_folder::JOURNAL_FILE;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The folder of runs in a project, unless `--runs-dir` names another one.
pub const RUNS_DIR: &str = ".glovebox/runs";
/// Number of characters at the end of a generated id that identify it: 30 random bits.
const SHORT_CHARACTERS: usize = 6;
/// A file whose modification time is the creation time of its run, if the clock was set back before the run began.
const CREATED_FILE: &str = ".created";
/// Prefix of the folder name of a draft.
const DRAFT: &str = ".forking-";
/// Minimum number of characters of the end of an id that selects a run.
const END_CHARACTERS_MIN: usize = 4;

/// The id of a run, which is also the name of its folder: at most 64 letters, digits, `-` and `_`; a letter or digit
/// first; not `latest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunId(String);

impl RunId {
    /// Parses an id from the user.
    pub fn parse(text: &str) -> Result<Self, Stop> {
        if !glovebox_record::RunId::is_folder_name(text) {
            let message = format!(
                "`{text}` is not a valid run id: expected letters, digits, `-` and `_`, a letter or digit first, at most \
                 {} characters, not `latest`",
                glovebox_record::RunId::CHARACTERS_MAX
            );
            return Err(Stop::new(Exit::Usage, message));
        }
        Ok(Self(text.to_owned()))
    }

    /// Generates a new id. Generated ids sort by time.
    pub fn fresh() -> Self {
        Self(ulid::Ulid::generate().to_string())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How the user selects a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSelector {
    /// `latest`: the newest run.
    Latest,
    /// An id, or a unique beginning or end of one.
    Id(String),
}

impl From<String> for RunSelector {
    fn from(text: String) -> Self {
        if text == "latest" { Self::Latest } else { Self::Id(text) }
    }
}

impl fmt::Display for RunSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Latest => "latest",
            Self::Id(id) => id,
        })
    }
}

/// The folder and the id of a run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    /// Id of the run.
    pub id: String,
    /// Absolute path of the folder.
    pub path: PathBuf,
    /// Creation time of the run. It decides which run is `latest`. It is that of the journal, unless the clock was set
    /// back before the run began.
    pub created: SystemTime,
}

impl RunFolder {
    /// Returns the cost of the model answers that a resume of the run reuses instead of paying again; `None` if there
    /// are none.
    pub fn held(&self) -> Option<HeldCost> {
        let folder = Dir::open_ambient_dir(&self.path, ambient_authority()).ok()?;
        exchanges::held(&folder).ok().filter(|held| *held != HeldCost::default())
    }
}

/// Returns every run in a folder, newest first. A folder that does not exist has no runs.
pub fn list(runs_dir: &Path) -> Result<Vec<RunFolder>, Stop> {
    // The paths of the entries are then absolute too.
    let entries = match std::path::absolute(runs_dir).and_then(std::fs::read_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Stop::io(format!("read runs in `{}`", runs_dir.display()), &error)),
    };
    let mut runs: Vec<RunFolder> = entries.filter_map(|entry| listed(&entry.ok()?)).collect();
    runs.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| b.id.cmp(&a.id)));
    Ok(runs)
}

/// Returns the run with exactly this id. `None` if there is none.
pub fn with_id(runs_dir: &Path, id: &glovebox_record::RunId) -> Option<RunFolder> {
    let is_name = glovebox_record::RunId::is_folder_name(id.as_str());
    if is_name { folder_of(std::path::absolute(runs_dir.join(id.as_str())).ok()?) } else { None }
}

fn listed(entry: &std::fs::DirEntry) -> Option<RunFolder> {
    // A name that begins with a dot belongs to the cache, a draft, or a run that is being removed.
    if entry.file_name().as_encoded_bytes().starts_with(b".") {
        return None;
    }
    folder_of(entry.path())
}

/// Returns the run in a folder with an absolute path.
fn folder_of(path: PathBuf) -> Option<RunFolder> {
    let journal = std::fs::symlink_metadata(path.join(JOURNAL_FILE)).ok()?;
    let created = journal.created().or_else(|_| journal.modified()).ok()?;
    let noted = std::fs::symlink_metadata(path.join(CREATED_FILE)).and_then(|file| file.modified());
    let created = noted.map_or(created, |noted| noted.max(created));
    Some(RunFolder { id: path.file_name()?.to_str()?.to_owned(), path, created })
}

/// Makes the folder of a resumed run private again, if other users could read it.
pub fn repair(run: &RunFolder) -> Result<(), Stop> {
    folder::repair(&run.path).map_err(|error| Stop::io(format!("keep run `{}` private", run.id), &error))
}

/// Creates the folder of a new run, readable only by this user. Returns an error if the id exists.
pub fn create(runs_dir: &Path, id: RunId) -> Result<RunFolder, Stop> {
    let path = folder::prepare(runs_dir)?.join(id.as_str());
    let newest = newest(runs_dir);
    let made = folder::make(&path).and_then(|()| note_creation(&path, newest, SystemTime::now()));
    let created = made.map_err(|error| not_made(&error, &id.0, runs_dir))?;
    Ok(RunFolder { id: id.0, path, created })
}

/// Returns the creation time of the newest run.
fn newest(runs_dir: &Path) -> Option<SystemTime> {
    list(runs_dir).ok()?.first().map(|run| run.created)
}

/// Returns the creation time of a run that is created now. If an earlier run has a later time, because the clock was set
/// back, the new run gets the next time after it, as the modification time of an empty file.
fn note_creation(run: &Path, newest: Option<SystemTime>, now: SystemTime) -> io::Result<SystemTime> {
    let Some(newest) = newest.filter(|newest| *newest > now) else { return Ok(now) };
    let created = newest + Duration::from_millis(1);
    std::fs::File::create_new(run.join(CREATED_FILE))?.set_modified(created)?;
    Ok(created)
}

/// Creates a folder that becomes a run when [`publish`] renames it. Returns an error if the id exists.
pub fn draft(runs_dir: &Path, id: RunId) -> Result<RunFolder, Stop> {
    let folder = folder::prepare(runs_dir)?;
    let exists = ErrorKind::AlreadyExists.into();
    let path = folder.join(format!("{DRAFT}{}-{}", std::process::id(), id.0));
    let newest = newest(runs_dir);
    let made = if folder.join(id.as_str()).exists() { Err(exists) } else { folder::make(&path) };
    let made = made.and_then(|()| note_creation(&path, newest, SystemTime::now()));
    let created = made.map_err(|error| not_made(&error, &id.0, runs_dir))?;
    Ok(RunFolder { id: id.0, path, created })
}

/// Renames a complete and durable draft, which makes it a run.
pub fn publish(draft: &RunFolder, runs_dir: &Path) -> Result<RunFolder, Stop> {
    let path = draft.path.with_file_name(&draft.id);
    folder::rename(&draft.path, &path).map_err(|error| not_made(&error, &draft.id, runs_dir))?;
    Ok(RunFolder { id: draft.id.clone(), path, created: draft.created })
}

fn not_made(error: &io::Error, id: &str, runs_dir: &Path) -> Stop {
    match error.kind() {
        ErrorKind::AlreadyExists => Stop::new(
            Exit::Usage,
            format!("run `{id}` exists already in `{}`", runs_dir.display()),
        )
        .with_help(format!("continue it: `glovebox resume {}`, or choose another `--run-id`", spelled(id, runs_dir))),
        _ => folder::not_written(runs_dir, error),
    }
}

/// Returns true while a process drives the run.
pub fn is_live(run: &RunFolder) -> bool {
    Owner::is_held(&run.path.join(OWNER_FILE))
}

/// Returns a short name that stays valid for a run: the last characters of an id that Glovebox generated, or the whole
/// id if the user chose it.
pub fn short(id: &str) -> &str {
    match ulid::Ulid::from_string(id) {
        Ok(made) if made.to_string() == id => &id[id.len() - SHORT_CHARACTERS..],
        _ => id,
    }
}

/// Removes the folder of a run that never began. If it cannot be removed, it stays, but it is not a run.
pub fn discard(run: &RunFolder) {
    let _left = std::fs::remove_dir_all(&run.path);
}

/// Returns the run that a selector names.
pub fn select(runs_dir: &Path, selector: &RunSelector) -> Result<RunFolder, Stop> {
    let mut runs = list(runs_dir)?;
    let folder = runs_dir.display();
    let absent = |message: String| {
        Stop::new(Exit::Usage, message)
            .with_help("list runs: `glovebox ls`; in another folder: `glovebox ls --runs-dir D`")
    };
    if runs.is_empty() {
        return Err(Stop::new(Exit::Usage, format!("no runs in `{folder}`"))
            .with_help("start one: `glovebox run FILE`; runs in another folder: `--runs-dir D`"));
    }
    let RunSelector::Id(id) = selector else { return Ok(runs.swap_remove(0)) };
    if let Some(exact) = runs.iter().position(|run| run.id == *id) {
        return Ok(runs.swap_remove(exact));
    }
    let is_end = |run: &RunFolder| {
        let end = run.id.len().checked_sub(id.len()).and_then(|at| run.id.get(at..));
        id.len() >= END_CHARACTERS_MIN && end.is_some_and(|end| end.eq_ignore_ascii_case(id))
    };
    runs.retain(|run| !id.is_empty() && (run.id.starts_with(id) || is_end(run)));
    match &runs[..] {
        [_] => Ok(runs.swap_remove(0)),
        [] => Err(absent(format!("no run `{id}` in `{folder}`"))),
        [one, other, ..] => Err(absent(format!("`{id}` is not unique in `{folder}`: `{}`, `{}`, …", one.id, other.id))),
    }
}

/// Returns the project of a run with symbolic links resolved, if it is the current folder or below it.
pub fn project_here(source_dir: &Path) -> Option<PathBuf> {
    let here = std::env::current_dir().and_then(std::fs::canonicalize).ok()?;
    resolved_below(&here, source_dir)
}

/// Resolves the path before the comparison, because `..` and links in a record may lead out of a folder.
fn resolved_below(here: &Path, source_dir: &Path) -> Option<PathBuf> {
    let project = std::fs::canonicalize(source_dir).ok().filter(|_| source_dir.is_absolute())?;
    project.starts_with(here).then_some(project)
}

/// Returns the arguments that name a run for `glovebox show` and other commands: a selector, and `--runs-dir` if it is
/// needed.
pub fn spelled(selector: impl fmt::Display, runs_dir: &Path) -> String {
    if runs_dir == Path::new(RUNS_DIR) {
        return selector.to_string();
    }
    format!("{selector} --runs-dir {}", shell::word(&runs_dir.to_string_lossy()))
}

/// Returns the names of a run for the commands that are suggested to the user.
pub fn named(run: &RunFolder, runs_dir: &Path) -> Result<RunNames, Stop> {
    let is_latest = list(runs_dir)?.first().is_some_and(|latest| latest.id == run.id);
    let exact = spelled(&run.id, runs_dir);
    let short = if is_latest { spelled(RunSelector::Latest, runs_dir) } else { spelled(&run.id, runs_dir) };
    Ok(RunNames { short, exact })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(ids: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for id in ids {
            std::fs::create_dir(folder.path().join(id)).unwrap();
            std::fs::write(folder.path().join(id).join(JOURNAL_FILE), "").unwrap();
            std::thread::sleep(Duration::from_millis(15));
        }
        folder
    }

    #[test]
    fn a_selector_is_an_id_a_unique_prefix_or_latest() {
        let folder = runs(&["beta", "alpha-1", "alpha-2", "alpha"]);
        let check = |selector: &str, expected: Result<&str, &str>| match (
            select(folder.path(), &selector.to_owned().into()),
            expected,
        ) {
            (Ok(run), Ok(id)) => assert_eq!(run.id, id),
            (Err(stop), Err(part)) => assert!(stop.message.contains(part), "{}", stop.message),
            (found, expected) => panic!("{selector}: {found:?}, expected {expected:?}"),
        };
        check("latest", Ok("alpha"));
        check("alpha", Ok("alpha"));
        check("b", Ok("beta"));
        check("alpha-", Err("not unique"));
        check("ha-1", Ok("alpha-1"));
        check("HA-1", Ok("alpha-1"));
        check("a-1", Err("no run"));
        check("gamma", Err("no run `gamma`"));
        check("", Err("no run ``"));
    }

    #[test]
    fn a_run_after_the_clock_was_set_back_is_the_newest() {
        let folder = runs(&["early"]);
        let early = list(folder.path()).unwrap().swap_remove(0);
        let day = Duration::from_secs(86_400);
        assert_eq!(note_creation(&early.path, None, early.created + day).unwrap(), early.created + day);
        let latest = || list(folder.path()).unwrap().swap_remove(0);
        for id in ["second", "third"] {
            std::fs::create_dir(folder.path().join(id)).unwrap();
            std::fs::write(folder.path().join(id).join(JOURNAL_FILE), "").unwrap();
            let newest = newest(folder.path());
            // The clock shows one day less than when the first run was created.
            let created = note_creation(&folder.path().join(id), newest, early.created - day).unwrap();
            assert!(newest.is_some_and(|newest| created > newest), "{id}");
            assert_eq!((latest().id.as_str(), latest().created), (id, created));
        }
    }

    #[test]
    fn a_run_id_is_a_safe_folder_name() {
        for bad in ["", "latest", "../x", "a/b", ".", "..", ".hidden", "-rf", "a b", "a\0b", "é", &"x".repeat(65)] {
            assert_eq!(RunId::parse(bad).unwrap_err().exit, Exit::Usage, "{bad:?}");
        }
        for good in ["a", "2026-01-02_nightly", "01K9X7Q2"] {
            assert_eq!(RunId::parse(good).unwrap().as_str(), good);
        }
        assert!(RunId::parse(RunId::fresh().as_str()).is_ok());
    }

    #[test]
    fn folders_without_a_journal_are_no_runs() {
        let folder = runs(&["one"]);
        std::fs::create_dir(folder.path().join("zzz")).unwrap();
        assert_eq!(list(folder.path()).unwrap().len(), 1);
        assert!(list(&folder.path().join("nowhere")).unwrap().is_empty());
    }

    #[test]
    fn a_project_that_leads_out_of_here_is_not_here() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().canonicalize().unwrap();
        let here = outside.join("here");
        std::fs::create_dir_all(here.join("below")).unwrap();
        std::os::unix::fs::symlink("..", here.join("out")).unwrap();
        std::os::unix::fs::symlink("below", here.join("in")).unwrap();
        let found = |path: &str| resolved_below(&here, &here.join(path));
        assert_eq!((found(""), found("below")), (Some(here.clone()), Some(here.join("below"))));
        assert_eq!(found("in"), Some(here.join("below")), "what is written to is where the link leads");
        for escape in ["..", "below/../..", "out", "out/here/..", "nowhere", "../here2"] {
            assert_eq!(found(escape), None, "{escape}");
        }
        assert_eq!(resolved_below(&here, Path::new("below")), None, "a record has absolute paths only");
        std::fs::create_dir(outside.join("here2")).unwrap();
        assert_eq!(found("../here2"), None, "a name that only begins the same is not below");
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(spelled(RunSelector::Latest, Path::new(".glovebox/runs")), "latest");
        assert_eq!(spelled("x", Path::new("it's here")), "x --runs-dir 'it'\\''s here'");
    }
}
