//! The folder of runs: private to this user, ignored by git, and without other files.
//!
//! Runs contain hold-outs, prompts and outputs, which must not reach other users or a commit. A folder with other files
//! is refused, because Glovebox must not change its mode or what git ignores in it.

use crate::exit::{Exit, Stop};
use crate::terminal::{self, visible};
use glovebox_workspace::regular_file::{self, Links};
use glovebox_workspace::run_folder;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PRIVATE: u32 = 0o700;
const IGNORE_FILE: &str = ".gitignore";
/// Maximum size of a `.gitignore` that is read, in bytes. The file that Glovebox writes is smaller, but the user may
/// extend it.
const IGNORE_BYTES_MAX: u64 = 1 << 16;
/// The folder of Glovebox in a project, which contains the folder of runs.
const OWN_DIR: &str = ".glovebox";
const IGNORE_OWN: &str = "# Made by glovebox: nothing here belongs into a commit.\n*\n";
/// Content of the `.gitignore` in a folder of runs. The first line marks the folder.
const IGNORE: &str = "# Runs of glovebox: they hold hold-outs, so git ignores them.\n*\n";
/// The file with the lock of a run. A run that was killed early has this file but no journal.
const OWNER_FILE: &str = "owner.sqlite";

/// Creates the folder of runs, or accepts an existing one: makes it private, and makes git ignore it. Returns its path
/// without symbolic links.
pub fn prepare(runs_dir: &Path) -> Result<PathBuf, Stop> {
    let failed = |error: &io::Error| not_written(runs_dir, error);
    let existed = runs_dir.exists();
    let own = own_folder(runs_dir).filter(|own| !own.exists());
    DirBuilder::new().recursive(true).mode(PRIVATE).create(runs_dir).map_err(|error| failed(&error))?;
    if let Some(own) = own {
        write_new(&own.join(IGNORE_FILE), IGNORE_OWN).map_err(|error| failed(&error))?;
    }
    let folder = fs::canonicalize(runs_dir).map_err(|error| failed(&error))?;
    let found = fs::metadata(&folder).map_err(|error| failed(&error))?;
    if existed {
        refuse_other(&folder, &found, runs_dir)?;
    }
    if keep_private(&folder, &found).map_err(|error| failed(&error))? && existed {
        let named = visible::line(&runs_dir.to_string_lossy()).into_owned();
        terminal::say(format_args!("note: `{named}` was open to other users; its mode is 0700 now\n"));
    }
    write_new(&folder.join(IGNORE_FILE), IGNORE).map_err(|error| failed(&error))?;
    // Not every file system supports this. Without it, runs are only slower.
    let _ = run_folder::keep_apart(&folder);
    Ok(folder)
}

/// Returns the error for a folder in which no run can be made.
pub fn not_written(runs_dir: &Path, error: &io::Error) -> Stop {
    let stop = Stop::io(format!("make a run in `{}`", runs_dir.display()), error);
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            stop.with_help("keep runs in a folder that you may write: `--runs-dir D`")
        }
        _ => stop,
    }
}

/// Returns the folder `.glovebox` if it is the parent of the folder of runs.
fn own_folder(runs_dir: &Path) -> Option<PathBuf> {
    let parent = runs_dir.parent()?;
    (parent.file_name()? == OWN_DIR).then(|| parent.to_owned())
}

/// Writes a new file. An existing file is not changed.
fn write_new(file: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    match fs::File::create_new(file).and_then(|mut file| file.write_all(bytes.as_ref())) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Creates the folder of one run, readable only by this user. Returns an error if the path exists.
pub fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE).create(path)?;
    // The umask may have removed permissions.
    fs::set_permissions(path, Permissions::from_mode(PRIVATE))
}

/// Renames a folder durably. Returns an error if the new name exists.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system supports `NOREPLACE`.
        Err(Errno::INVAL) if to.exists() => return Err(ErrorKind::AlreadyExists.into()),
        Err(Errno::INVAL) => fs::rename(from, to)?,
        renamed => renamed?,
    }
    to.parent().map_or(Ok(()), regular_file::flush_folder)
}

/// Makes the folder of a run and the folder of all runs private again.
pub fn repair(run: &Path) -> io::Result<()> {
    for folder in [Some(run), run.parent()].into_iter().flatten() {
        keep_private(folder, &fs::metadata(folder)?)?;
    }
    Ok(())
}

/// Makes a folder private. Returns true if its mode was different.
fn keep_private(folder: &Path, found: &Metadata) -> io::Result<bool> {
    if found.mode() & 0o7777 == PRIVATE {
        return Ok(false);
    }
    fs::set_permissions(folder, Permissions::from_mode(PRIVATE))?;
    Ok(true)
}

fn refuse_other(folder: &Path, found: &Metadata, runs_dir: &Path) -> Result<(), Stop> {
    let named = runs_dir.display();
    let elsewhere = "use a new or empty folder: `--runs-dir D`";
    if found.uid() != rustix::process::geteuid().as_raw() {
        let message = format!("`{named}` belongs to another user, who could read and change the runs in it");
        return Err(Stop::new(Exit::Policy, message).with_help(elsewhere));
    }
    let other = other_than_runs(folder).map_err(|error| Stop::io(format!("read `{named}`"), &error))?;
    let Some(other) = other else { return Ok(()) };
    let message = format!("`{named}` contains `{other}`, which is not a run; expected a folder with only runs");
    Err(Stop::new(Exit::Usage, message).with_help(elsewhere))
}

/// Returns true for a folder that Glovebox created or accepted as a folder of runs, so that it contains only runs.
pub fn is_marked(folder: &Path) -> bool {
    regular_file::read_text(&folder.join(IGNORE_FILE), Links::Within(folder), IGNORE_BYTES_MAX)
        .is_ok_and(|text| text.lines().next() == IGNORE.lines().next())
}

/// Returns a file or folder that is not a run; `None` in a marked folder.
fn other_than_runs(folder: &Path) -> io::Result<Option<String>> {
    if is_marked(folder) {
        return Ok(None);
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_run = entry.file_type()?.is_dir()
            && (run_folder::is_run(&path) || path.join(OWNER_FILE).is_file() || fs::read_dir(&path)?.next().is_none());
        if !is_run {
            return Ok(Some(entry.file_name().to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_folder_is_made_for_this_user_alone_and_repaired_when_it_is_not() {
        let place = tempfile::tempdir().unwrap();
        let runs = place.path().join("deep/runs");
        let folder = prepare(&runs).unwrap();
        assert_eq!((mode(&folder), mode(&place.path().join("deep"))), (0o700, 0o700));
        assert_eq!(fs::read_to_string(folder.join(IGNORE_FILE)).unwrap(), IGNORE);
        make(&folder.join("one")).unwrap();
        for opened in [0o755, 0o777, 0o1777, 0o500] {
            fs::set_permissions(&folder, Permissions::from_mode(opened)).unwrap();
            fs::set_permissions(folder.join("one"), Permissions::from_mode(opened)).unwrap();
            prepare(&runs).unwrap();
            repair(&folder.join("one")).unwrap();
            assert_eq!((mode(&folder), mode(&folder.join("one"))), (0o700, 0o700), "{opened:o}");
        }
        assert_eq!(make(&folder.join("one")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn git_ignores_the_folder_of_this_program_unless_the_user_decides_otherwise() {
        let place = tempfile::tempdir().unwrap();
        let ignore = |project: &str| place.path().join(project).join(".glovebox/.gitignore");
        let read = |project: &str| fs::read_to_string(ignore(project)).ok();
        prepare(&place.path().join("new/.glovebox/runs")).unwrap();
        assert_eq!(read("new").as_deref(), Some(IGNORE_OWN));
        fs::write(ignore("new"), "!keep\n").unwrap();
        prepare(&place.path().join("new/.glovebox/runs")).unwrap();
        assert_eq!(read("new").as_deref(), Some("!keep\n"), "a file that exists stays");
        fs::create_dir_all(place.path().join("old/.glovebox")).unwrap();
        prepare(&place.path().join("old/.glovebox/runs")).unwrap();
        assert_eq!(read("old"), None, "the user made the folder and may commit what is in it");
        prepare(&place.path().join("other/runs")).unwrap();
        assert!(!place.path().join("other/.gitignore").exists());
    }

    #[test]
    fn a_folder_with_anything_but_runs_is_left_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let check = |name: &str, make: &dyn Fn(&Path), refused: Option<&str>| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            make(&folder);
            fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
            let found = prepare(&folder).err().map(|stop| stop.message);
            match (found, refused) {
                (None, None) => assert_eq!(mode(&folder), 0o700),
                (Some(message), Some(part)) => {
                    assert!(message.contains(part), "{message}");
                    assert_eq!(mode(&folder), 0o755, "{name}");
                    assert!(!folder.join(IGNORE_FILE).exists() || name == "ignoring");
                }
                (found, _) => panic!("{name}: {found:?}"),
            }
        };
        let file = |path: PathBuf, text: &str| fs::write(path, text).unwrap();
        check("empty", &|_| {}, None);
        check("project", &|folder| file(folder.join("main.rs"), ""), Some("main.rs"));
        check("ignoring", &|folder| file(folder.join(IGNORE_FILE), "*\n!src/\n"), Some(IGNORE_FILE));
        check("kept", &|folder| file(folder.join(IGNORE_FILE), IGNORE), None);
        check(
            "before",
            &|folder| {
                fs::create_dir_all(folder.join("run")).unwrap();
                file(folder.join("run/journal.sqlite"), "");
                file(folder.join("run/owner.sqlite"), "");
                fs::create_dir(folder.join("killed-at-once")).unwrap();
            },
            None,
        );
    }
}
