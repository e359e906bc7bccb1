//! Visits every regular file in the hold-out folders. Symbolic links are never followed.
//!
//! The same walk is used to seal and to verify, so both cover the same files. Other kinds of files are reported and never opened.

use super::{BYTES_MAX, FILES_MAX, Leaf, SealError, check_folder};
use crate::project::copy_hashed;
use crate::tree::{self, Owner, Tree, WalkEntry};
use glovebox_names::visible::is_deceptive;
use glovebox_record::path::ScopePath;
use rustix::fs::{FileType, Mode};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

/// One entry below a hold-out folder.
pub(super) enum HoldoutEntry {
    /// A directory.
    Directory,
    /// An opened regular file.
    File { file: File, executable: bool },
    /// Any other entry, with a description for messages.
    Unsupported(&'static str),
}

/// Calls `take` for every entry below the folders. A missing folder has no entries. The text is the path relative to
/// the project; unprintable characters are escaped if the entry is [`HoldoutEntry::Unsupported`].
pub(super) fn each(
    source: &Tree,
    folders: &[ScopePath],
    take: &mut dyn FnMut(&str, HoldoutEntry) -> Result<(), SealError>,
) -> Result<(), SealError> {
    for folder in folders {
        let at = Path::new(folder.as_str());
        match check_folder(source, folder) {
            Ok(()) => {}
            Err(SealError::Missing(_)) => continue,
            Err(SealError::NotFolder(_)) => {
                take(folder.as_str(), HoldoutEntry::Unsupported("a link or not a folder"))?;
                continue;
            }
            Err(error) => return Err(error),
        }
        let below = source.below(at).map_err(|source| SealError::io(at, source))?;
        take(folder.as_str(), HoldoutEntry::Directory)?;
        tree::walk::<SealError>(&below, &mut |entry: &WalkEntry<'_>| {
            let path = at.join(entry.path);
            let named = ScopePath::parse_bytes(path.as_os_str().as_encoded_bytes()).ok();
            match named.filter(|path| !path.as_str().chars().any(is_deceptive)) {
                None => take(
                    &tree::shown(&path),
                    HoldoutEntry::Unsupported(
                        "a name that is too long, is not valid UTF-8 or has characters that could deceive a reader",
                    ),
                )?,
                Some(path) => take(path.as_str(), opened(entry).map_err(|source| SealError::io(entry.path, source))?)?,
            }
            Ok(true)
        })?;
    }
    Ok(())
}

fn opened(entry: &WalkEntry<'_>) -> io::Result<HoldoutEntry> {
    Ok(match entry.kind() {
        FileType::Directory => HoldoutEntry::Directory,
        FileType::RegularFile => {
            let file = tree::open_regular(entry.directory, entry.name, Owner::Other)?;
            HoldoutEntry::File { file, executable: tree::is_executable(&entry.stat) }
        }
        FileType::Symlink => HoldoutEntry::Unsupported("a symbolic link"),
        _ => HoldoutEntry::Unsupported("a device, a pipe or a socket"),
    })
}

/// Copies everything below the folders to `target` and returns the leaves by path.
pub(super) fn copy(source: &Tree, folders: &[ScopePath], target: &Tree) -> Result<Vec<Leaf>, SealError> {
    let (mut leaves, mut total) = (BTreeMap::new(), 0);
    each(source, folders, &mut |path, entry| {
        let at = Path::new(path);
        let failed = |source| SealError::io(at, source);
        match entry {
            HoldoutEntry::Unsupported(what) => return Err(SealError::Unsupported { path: path.to_owned(), what }),
            HoldoutEntry::Directory => make_directories(target, at).map_err(failed)?,
            HoldoutEntry::File { .. } if leaves.len() as u64 >= FILES_MAX => {
                return Err(SealError::Limit { limit: "holdout_files", max: FILES_MAX });
            }
            HoldoutEntry::File { mut file, executable } => {
                let into = create(target, at, executable).map_err(failed)?;
                let (digest, bytes) = copy_hashed(&mut file, &into, BYTES_MAX - total).map_err(failed)?;
                if bytes > BYTES_MAX - total {
                    return Err(SealError::Limit { limit: "holdout_bytes", max: BYTES_MAX });
                }
                total += bytes;
                leaves.insert(path.to_owned(), Leaf { path: path.to_owned(), executable, bytes, digest });
            }
        }
        Ok(())
    })?;
    Ok(leaves.into_values().collect())
}

/// Creates a file with this content, and the directories above it.
pub(super) fn put(target: &Tree, path: &Path, executable: bool, content: &mut File) -> io::Result<()> {
    make_directories(target, path.parent().unwrap_or(Path::new("")))?;
    io::copy(content, &mut create(target, path, executable)?).map(drop)
}

fn create(target: &Tree, path: &Path, executable: bool) -> io::Result<File> {
    let (parent, name) = target.parent(path)?;
    tree::create_file(parent, name, tree::file_mode(executable))
}

/// Creates a directory and its parents, accessible only to this user.
fn make_directories(target: &Tree, path: &Path) -> io::Result<()> {
    let mut parents: Vec<&Path> = path.ancestors().filter(|above| !above.as_os_str().is_empty()).collect();
    parents.reverse();
    for at in parents {
        let (parent, name) = target.parent(at)?;
        match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
