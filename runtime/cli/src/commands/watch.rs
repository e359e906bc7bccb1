//! `glovebox run --watch`: runs a pipeline again whenever the project changes.
//!
//! The project is scanned at intervals. Only one hash over the paths and metadata of its files is kept. A run works on
//! a copy, so it does not cause another run.

use crate::arguments::RunArguments;
use crate::commands::run;
use crate::drive;
use crate::exit::{CommandResult, Exit, Stop};
use crate::terminal;
use glovebox_record::path::ScopePath;
use glovebox_workspace::ignored::ProjectFiles;
use glovebox_workspace::run_folder;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Minimum interval between two scans. A project that takes long to scan is scanned less often.
const PAUSE: Duration = Duration::from_millis(300);
/// Scans take at most 1/`SCAN_SHARE` of the time.
const SCAN_SHARE: u32 = 10;
/// Name of git's folder, which every git command may change.
const GIT: &str = ".git";
/// Name of git's files with ignore patterns.
const RULES: &str = ".gitignore";

/// Runs the pipeline now and after every change, until a signal ends the command.
pub fn watch(arguments: &RunArguments) -> CommandResult {
    let project = Watched::new(&arguments.project.workdir, &arguments.runs.runs_dir);
    loop {
        let before = project.scan();
        let exit = run::once(arguments).unwrap_or_else(|stop| {
            terminal::report_stop(&stop);
            stop.exit
        });
        if matches!(exit, Exit::Interrupted | Exit::Terminated) {
            return Ok(exit);
        }
        terminal::say("watching the project; a change runs the pipeline again, Ctrl-C ends\n");
        if let Some(exit) = drive::block_on(project.changed(before))?? {
            return Ok(exit);
        }
    }
}

/// The project that is watched.
pub struct Watched {
    folder: PathBuf,
    runs_dir: PathBuf,
}

/// The ignore patterns of git that apply in a folder and below it.
struct Rules {
    folder: PathBuf,
    files: ProjectFiles,
}

impl Watched {
    /// Creates the value for a folder. Changes in `runs_dir` do not count.
    pub fn new(folder: &Path, runs_dir: &Path) -> Self {
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        Self { folder, runs_dir: runs_dir.to_owned() }
    }

    /// Waits until the project differs from an earlier scan and does not change any more. Returns the exit if a signal comes first.
    pub async fn changed(&self, before: u64) -> Result<Option<Exit>, Stop> {
        let on = |kind: SignalKind| signal(kind).map_err(|error| Stop::io("listen for signals", &error));
        let (mut interrupt, mut terminate) = (on(SignalKind::interrupt())?, on(SignalKind::terminate())?);
        let mut last = before;
        loop {
            let began = Instant::now();
            let now = self.scan();
            if now != before && now == last {
                return Ok(None);
            }
            last = now;
            tokio::select! {
                _ = interrupt.recv() => return Ok(Some(Exit::Interrupted)),
                _ = terminate.recv() => return Ok(Some(Exit::Terminated)),
                () = tokio::time::sleep(PAUSE.max(began.elapsed() * SCAN_SHARE)) => {}
            }
        }
    }

    /// Returns a hash over all files that git does not ignore: path, length, modification time, inode number and mode.
    /// A file that cannot be read is left out.
    pub fn scan(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        // The folder of runs may not exist before the first run.
        let runs_dir = fs::canonicalize(&self.runs_dir).ok();
        let mut folders = vec![(self.folder.clone(), Rc::new(Rules::new(self.folder.clone())))];
        while let Some((folder, rules)) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            for path in paths {
                let Ok(found) = path.symlink_metadata() else { continue };
                if is_left_out(&path, &found, runs_dir.as_deref()) || rules.ignore(&path) {
                    continue;
                }
                if !found.is_dir() {
                    (&path, found.len(), found.mtime(), found.mtime_nsec(), found.ino(), found.mode()).hash(&mut hash);
                    continue;
                }
                let has_rules = path.join(RULES).symlink_metadata().is_ok();
                let rules = if has_rules { Rc::new(Rules::new(path.clone())) } else { Rc::clone(&rules) };
                folders.push((path, rules));
            }
        }
        hash.finish()
    }
}

/// Returns true for what no run copies: the folder of git, and runs.
fn is_left_out(path: &Path, found: &Metadata, runs_dir: Option<&Path>) -> bool {
    let is_git = path.file_name().is_some_and(|name| name == GIT);
    is_git || (found.is_dir() && (runs_dir == Some(path) || run_folder::is_run(path)))
}

impl Rules {
    fn new(folder: PathBuf) -> Self {
        Self { files: ProjectFiles::for_project(&folder), folder }
    }

    fn ignore(&self, path: &Path) -> bool {
        let inside = path.strip_prefix(&self.folder).ok().and_then(Path::to_str);
        let inside = inside.and_then(|inside| ScopePath::parse(inside).ok());
        inside.is_some_and(|inside| self.files.ignores(&inside) && !self.files.has_tracked(&inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_git_does_not_ignore_count() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let write = |path: &str, text: &str| {
            let file = root.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write(".gitignore", "target/\n*.log\n");
        write("web/.gitignore", "dist/\n");
        write("src/a.rs", "a");
        write(".glovebox/runs/x", "a");
        write(".git/index", "");
        let project = Watched { folder: root.clone(), runs_dir: root.join(".glovebox/runs") };
        let mut before = project.scan();
        assert_eq!(before, project.scan());
        for (path, counts) in [
            ("target/debug/a", false),
            ("src/deep/a.log", false),
            ("web/dist/a.js", false),
            (".git/HEAD", false),
            (".glovebox/runs/y", false),
            ("src/a.rs", true),
            ("src/new.rs", true),
            ("web/a.js", true),
            ("dist/a.js", true),
            (".gitignore", true),
        ] {
            write(path, "changed");
            let now = project.scan();
            assert_eq!(now != before, counts, "{path}");
            before = now;
        }
        fs::remove_file(root.join("src/new.rs")).unwrap();
        assert_ne!(project.scan(), before);
    }
}
