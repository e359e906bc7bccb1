//! Reads one file that a program of a stage left at a known path, as untrusted input.
//!
//! A program can leave a link, a FIFO, a folder or a file of any length instead of a file. No link is followed, nothing blocks,
//! and only a bounded number of bytes is read. Call this only after every program of the stage has ended.

use crate::change::{ChangedFiles, FoundChange, Op, Verdict};
use crate::regular_file::FileTooLong;
use crate::stage::{HIDDEN, StageChanges, ViewOverrides, WorkspaceView, out_of_scope};
use crate::tree::{self, Owner, Tree};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, Scope};
use rustix::fs::{FileType, Stat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What a program left at a path.
#[derive(Debug)]
pub enum LeftFile {
    /// Nothing.
    Missing,
    /// Something that is no regular file.
    NotAFile(&'static str),
    /// A file that is longer than the limit.
    TooLong(FileTooLong),
    /// A file that cannot be read.
    Unreadable(io::Error),
    /// A file with these bytes.
    Bytes(Vec<u8>),
}

impl LeftFile {
    /// Reads a name in a folder that the program could write. The folder is found by its own name in `above`, and no link is
    /// followed at this name: without a sandbox, a program can replace the folder.
    pub fn in_folder(above: &Path, folder: &str, name: &str, bytes_max: u64) -> Self {
        let found = Tree::open(above).and_then(|above| {
            if kind_at(&above, Path::new(folder))? != Some(FileType::Directory) {
                return Ok(None);
            }
            let tree = above.below(Path::new(folder))?;
            let stat = tree::stat_at(tree.directory(Path::new(""))?, OsStr::new(name))?;
            Ok(Some((tree, stat)))
        });
        match found {
            Err(error) => Self::Unreadable(error),
            Ok(None) => Self::NotAFile("no drop folder: a program has removed or replaced it"),
            Ok(Some((_, None))) => Self::Missing,
            Ok(Some((mut tree, Some(stat)))) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => {
                    // A command may have removed the permissions.
                    tree.owner = Owner::ThisProgram;
                    Self::read(tree.file(Path::new(name)), bytes_max)
                }
                FileType::Symlink => Self::NotAFile("a link"),
                FileType::Directory => Self::NotAFile("a folder"),
                _ => Self::NotAFile("a special file"),
            },
        }
    }

    /// Reads the file that a change of the stage left in its view of the workspace.
    pub fn of_change(view: &dyn ChangedFiles, change: &FoundChange, bytes_max: u64) -> Self {
        match change.op {
            Op::Write { .. } => Self::read(view.open(change), bytes_max),
            Op::Link { .. } => Self::NotAFile("a link"),
            Op::MakeDir { .. } => Self::NotAFile("a folder"),
            Op::Special { kind } => Self::NotAFile(kind),
            Op::Delete | Op::RemoveDir => Self::Missing,
        }
    }

    fn read(opened: io::Result<File>, bytes_max: u64) -> Self {
        let mut bytes = Vec::new();
        let read = opened.and_then(|file| file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes));
        match read {
            Err(error) => Self::Unreadable(error),
            Ok(_) if bytes.len() as u64 > bytes_max => Self::TooLong(FileTooLong(bytes_max)),
            Ok(_) => Self::Bytes(bytes),
        }
    }
}

/// Hides what is at these paths of the workspace from a stage, so that every entry that is there at its end was left by the
/// stage. A link or a file above a path is hidden too, because a write through it would not reach the path. Folders above a
/// path can be written.
///
/// # Errors
/// The error of the system if the workspace cannot be read.
pub fn hide_before(
    paths: &[&str],
    workspace: &Path,
    scope: &mut Scope,
    overrides: &mut ViewOverrides,
) -> io::Result<()> {
    let trees = [Some(workspace), overrides.below.as_deref()].into_iter().flatten().map(Tree::open);
    let trees = trees.collect::<io::Result<Vec<_>>>()?;
    for path in paths.iter().map(Path::new) {
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        let mut hidden = path;
        for above in above {
            overrides.closed.remove(&tree::shown(above));
            let found = trees.iter().find_map(|tree| kind_at(tree, above).transpose()).transpose()?;
            if found.is_some_and(|kind| kind != FileType::Directory) {
                hidden = above;
            }
        }
        let hidden = ScopePath::parse_bytes(hidden.as_os_str().as_encoded_bytes()).map_err(io::Error::other)?;
        scope.hidden.push(Entry::folder(hidden));
    }
    Ok(())
}

fn kind_at(tree: &Tree, path: &Path) -> io::Result<Option<FileType>> {
    Ok(tree.stat_below_folders(path)?.map(|stat: Stat| FileType::from_raw_mode(stat.st_mode)))
}

impl StageChanges {
    /// Returns the change that left an entry at the path, also if git ignores the path. `None` if the stage left nothing there,
    /// or only what was there before.
    pub fn left_at(&self, path: &str) -> Option<FoundChange> {
        let path = Path::new(path);
        let committed = self.found.iter().find(|change| change.raw == path && !change.op.removes());
        committed.cloned().or_else(|| self.ignored.left_at(path))
    }

    /// Makes the file that the stage left at a path of [`hide_before`] an ordinary change: `scope` decides about it. Where the
    /// workspace had an entry that the stage did not see, the change stays refused.
    pub fn unhide(&mut self, path: &str, view: &WorkspaceView, scope: &Scope) -> io::Result<()> {
        let path = Path::new(path);
        if view.workspace().stat_below_folders(path)?.is_some() {
            return Ok(());
        }
        let scope_path = ScopePath::parse_bytes(path.as_os_str().as_encoded_bytes()).map_err(io::Error::other)?;
        let is_it = |change: &&mut FoundChange| change.raw == path && matches!(change.op, Op::Write { .. });
        let of_hiding = self.found.iter_mut().filter(is_it).find(|change| change.verdict.reason() == Some(HIDDEN));
        if let Some(change) = of_hiding {
            change.is_only_out_of_scope = !scope.commits(&scope_path);
            change.verdict = match scope.commits(&scope_path) {
                true => Verdict::Allowed,
                false => Verdict::Disallowed(out_of_scope(&scope_path)),
            };
        }
        Ok(())
    }

    /// Removes the change at a path of [`hide_before`], together with new folders above the path that contain no other change.
    pub fn remove(&mut self, path: &str) {
        let path = Path::new(path);
        self.found.retain(|change| change.raw != path || change.op.removes());
        for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            let is_below = |change: &FoundChange| change.raw != above && change.raw.starts_with(above);
            if self.found.iter().any(is_below) {
                break;
            }
            self.found.retain(|change| change.raw != above || !matches!(change.op, Op::MakeDir { .. }));
        }
    }
}
