//! A repository with one commit that contains only what a stage sees of its workspace, so that `git` works in the sandbox.
//!
//! The project's own repository is never read, because its objects, reflogs, stashes and index contain hidden content. The system's
//! `git` makes this one inside a jail, over a temporary view of the same scope, without hooks, templates, settings or network. It
//! must be mounted read-only at `.git`.

use crate::exec::{Command, ExecError, Exit, Program};
use crate::jail::{ExecPolicy, Jail, JailError};
use crate::stage::{StageError, ViewOverrides, WorkspaceView};
use crate::tree::{self, Tree};
use glovebox_record::CommandEnding;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Name of the repository in a workspace, and below the folder it is kept in.
pub const REPOSITORY_DIR: &str = ".git";
/// Longest time one step may take: adding half a gigabyte takes ten seconds.
const STEP_MAX: Duration = Duration::from_secs(120);
/// Settings of every step: nothing of the workspace or the machine makes `git` start another program.
const SETTINGS: [&str; 18] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.autocrlf=false",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "core.excludesFile=/dev/null",
    "-c",
    "commit.gpgSign=false",
    "-c",
    "user.name=glovebox",
    "-c",
    "user.email=glovebox@localhost",
    "-c",
    "gc.auto=0",
];
/// The steps.
const STEPS: [&[&str]; 3] = [
    &["init", "-q", "--template=", "--initial-branch=main"],
    &["add", "-A"],
    &["commit", "-q", "--allow-empty", "-m", "the workspace as this run has it"],
];

/// Why a repository could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The throw-away view.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The jail it is made in.
    #[error(transparent)]
    Jail(#[from] JailError),
    /// A step was not started; without a `git` on this machine the first one is.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A step failed.
    #[error("`git {step}` failed: {text}")]
    Git {
        /// Which.
        step: &'static str,
        /// Its output, unprintable characters escaped.
        text: String,
    },
    /// The operating system refused.
    #[error("could not keep the repository: {0}")]
    Io(#[from] io::Error),
}

/// True when the project has a repository and commands would find a `git`: else there is nothing to stand in for.
pub fn is_wanted(project: &Path, policy: &ExecPolicy) -> bool {
    let has_git = |folder: &PathBuf| folder.join("git").is_file();
    project.join(REPOSITORY_DIR).symlink_metadata().is_ok() && policy.path.iter().any(has_git)
}

/// Returns the repository of a scope below `all`; the first call for a scope makes it. So the last commit is the workspace as the
/// first stage of that scope found it.
///
/// # Errors
/// As [`make`].
pub fn kept(
    workspace: &Path,
    scope: &Scope,
    all: &Path,
    open: &dyn Fn(&WorkspaceView) -> Result<Jail, RepositoryError>,
) -> Result<PathBuf, RepositoryError> {
    let key = blake3::hash(format!("{:?}", (&scope.read, &scope.write, &scope.hidden)).as_bytes()).to_hex();
    let into = all.join(&key.as_str()[..32]);
    let repository = into.join(REPOSITORY_DIR);
    if repository.symlink_metadata().is_ok() {
        return Ok(repository);
    }
    if all.symlink_metadata().is_err() {
        drop(Tree::create(all)?);
    }
    // A crash can leave an unfinished repository.
    tree::remove_all(&into)?;
    make(workspace, scope, &into, open)?;
    Ok(repository)
}

/// Makes a repository of what `scope` shows of `workspace` and keeps it as `<into>/.git`; `into` is a new folder, and what is
/// made is 0700 for this user. `open` opens a jail over the view it is handed, with a root of its own or over a copy.
///
/// # Errors
/// [`RepositoryError`]; nothing of the attempt stays then.
pub fn make(
    workspace: &Path,
    scope: &Scope,
    into: &Path,
    open: &dyn Fn(&WorkspaceView) -> Result<Jail, RepositoryError>,
) -> Result<(), RepositoryError> {
    drop(Tree::create(into)?);
    let throw_away = into.join("view");
    let made = fill(workspace, scope, &throw_away, open).and_then(|view| {
        let kept = keep(&throw_away, into);
        view.remove()?;
        Ok(kept?)
    });
    if made.is_err() {
        tree::remove_all(into)?;
    }
    made
}

fn fill(
    workspace: &Path,
    scope: &Scope,
    at: &Path,
    open: &dyn Fn(&WorkspaceView) -> Result<Jail, RepositoryError>,
) -> Result<WorkspaceView, RepositoryError> {
    let view = WorkspaceView::choose(workspace, at, scope, &ViewOverrides::default())?;
    let jail = open(&view)?;
    for step in STEPS {
        succeeded(step[0], &jail.run(&command(step), &AtomicBool::new(false))?)?;
    }
    jail.end()?;
    Ok(view)
}

fn command(step: &[&str]) -> Command {
    let words = ["git"].iter().chain(&SETTINGS).chain(step);
    Command {
        program: Program::Argv(words.map(|word| (*word).to_owned()).collect()),
        cwd: ScopePath::root(),
        env: Vec::new(),
        stdin: None,
        timeout: STEP_MAX,
    }
}

fn succeeded(step: &'static str, exit: &Exit) -> Result<(), RepositoryError> {
    if exit.how == CommandEnding::Exited && exit.code == Some(0) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&exit.stderr.head).into_owned() + &String::from_utf8_lossy(&exit.stderr.tail);
    Err(RepositoryError::Git { step, text: crate::refusal::escaped(text.trim()) })
}

/// Moves the repository out of the view: from the copy, or from the folder that took the changes.
fn keep(view: &Path, into: &Path) -> io::Result<()> {
    let (from, to) = (Tree::open(view)?, Tree::open(into)?);
    for place in ["upper", ""] {
        let Ok(parent) = from.directory(Path::new(place)) else { continue };
        let moved = rustix::fs::renameat_with(
            &parent,
            REPOSITORY_DIR,
            to.directory(Path::new(""))?,
            REPOSITORY_DIR,
            rustix::fs::RenameFlags::NOREPLACE,
        );
        match moved {
            Err(rustix::io::Errno::NOENT) => {}
            other => return Ok(other?),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}
