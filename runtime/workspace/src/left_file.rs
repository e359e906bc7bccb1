//! Reads one file that a program of a stage left at a known path, as untrusted input.
//!
//! A program can leave a link, a FIFO, a folder or a file of any length instead of a file. No link is followed, nothing blocks,
//! and only a bounded number of bytes is read. No program of the stage may be running.

use crate::change::{ChangedFiles, FoundChange, Op};
use crate::regular_file::FileTooLong;
use crate::stage::StageChanges;
use crate::tree::{self, Owner, Tree};
use rustix::fs::FileType;
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
    /// Reads a name in a folder that the program could write.
    pub fn in_folder(folder: &Path, name: &str, bytes_max: u64) -> Self {
        let found = Tree::open(folder).and_then(|tree| {
            let stat = tree::stat_at(tree.directory(Path::new(""))?, OsStr::new(name))?;
            Ok((tree, stat))
        });
        match found {
            Err(error) if tree::is_absent(&error) => Self::Missing,
            Err(error) => Self::Unreadable(error),
            Ok((_, None)) => Self::Missing,
            Ok((mut tree, Some(stat))) => match FileType::from_raw_mode(stat.st_mode) {
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

impl StageChanges {
    /// Returns the change that left an entry at the path, also if git ignores the path. `None` if the stage left nothing there,
    /// or only what was there before.
    pub fn left_at(&self, path: &str) -> Option<FoundChange> {
        let path = Path::new(path);
        let committed = self.found.iter().find(|change| change.raw == path && !change.op.removes());
        committed.cloned().or_else(|| self.ignored.left_at(path))
    }

    /// Removes that change, together with new folders above the path that contain no other change.
    pub fn remove(&mut self, path: &str) {
        let path = Path::new(path);
        self.ignored.remove(path);
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
