//! The repository of an attempt with the history of the user's project, where the operator asks for it.
//!
//! References, the index and the remotes are copied, and the objects are borrowed from the project's own repository. So
//! a stage can read every version of every file, also of deleted files and of other branches. The project brings its
//! `.git`: files in it are bounded, links are not followed, and a repository that cannot be shown completely is refused.

use super::facts::{ENTRIES_MAX, Folders, RepositoryFacts, head, is_id, is_plain};
use super::{CONFIG, RepositoryError, Submodule, make_folders, write};
use crate::regular_file::{self, Links};
use crate::tree;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum size of an index that is copied, bytes.
const INDEX_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of references.
const REFERENCES_MAX: usize = 100_000;
/// Beginning of the reference of a stash.
const STASH: &str = "refs/stash";
/// Maximum depth of folders in which references are looked for.
const DEPTH_MAX: usize = 16;
/// Settings of repositories whose objects are not all in their own folder, or have another format.
const SETTINGS_REFUSED: [&str; 4] = ["partialclone", "promisor", "objectformat", "refstorage"];

/// Creates the repository of one attempt at `at`, which must not exist, from that of `project`. Returns the folder with
/// its objects on this machine, which the attempt must find at `objects`. Git takes `submodules` for initialised ones.
///
/// # Errors
/// [`RepositoryError`] if the project's repository belongs to another folder, is a partial clone, borrows objects itself,
/// or cannot be read.
pub fn make_with_history(
    project: &Path,
    at: &Path,
    objects: &Path,
    submodules: &[&Submodule],
) -> Result<PathBuf, RepositoryError> {
    let Some(folders) = Folders::for_project(project) else {
        return Err(refused("`.git` does not belong to this folder"));
    };
    let own_objects = folders.shared.join("objects");
    if !own_objects.symlink_metadata()?.is_dir() {
        return Err(refused("its folder of objects is a link"));
    }
    if own_objects.join("info/alternates").symlink_metadata().is_ok() {
        return Err(refused("the repository borrows objects of another one"));
    }
    let settings = folders.text(&folders.shared, "config").unwrap_or_default().to_ascii_lowercase();
    if SETTINGS_REFUSED.iter().any(|setting| settings.contains(setting)) {
        return Err(refused("it is a partial clone, or has another format of objects or references"));
    }
    let head = head(project);
    let facts = RepositoryFacts::read(project, &head);
    let head = match (head.branch, head.commit) {
        (Some(branch), _) => format!("ref: refs/heads/{branch}\n"),
        (None, Some(commit)) => format!("{commit}\n"),
        (None, None) => return Err(refused("its HEAD names neither a branch nor a commit")),
    };
    let repository = make_folders(at)?;
    write(&repository, "HEAD", head.as_bytes())?;
    let active: String = submodules.iter().map(|submodule| submodule.setting()).collect();
    write(&repository, "config", [CONFIG, &facts.settings(), &active].concat().as_bytes())?;
    write(&repository, "packed-refs", references(&folders)?.as_bytes())?;
    write(&repository, "info/exclude", &facts.exclude)?;
    let copied = [("index", &folders.own, INDEX_BYTES_MAX), ("shallow", &folders.shared, INDEX_BYTES_MAX)];
    for (name, folder, bytes_max) in copied {
        match regular_file::read(&folder.join(name), Links::Within(folder), bytes_max) {
            Ok(content) => {
                write(&repository, name, &content)?;
                // Git reads a file again if it may have changed after the index was written, so the index keeps its time.
                let stat = rustix::fs::lstat(folder.join(name)).map_err(io::Error::from)?;
                tree::keep_times(repository.file(Path::new(name))?, &stat)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    write(&repository, "objects/info/alternates", &[objects.as_os_str().as_bytes(), b"\n"].concat())?;
    Ok(own_objects)
}

/// Returns all references as the content of `packed-refs`. A file takes precedence over a packed line.
fn references(folders: &Folders) -> Result<String, RepositoryError> {
    // A stash is work that the user has put away, so it is not named.
    let packed = folders.packed().into_iter().filter(|(name, _)| !name.starts_with(STASH));
    let packed = packed.map(|(name, packed)| (name, packed.id));
    let mut all: BTreeMap<String, String> = packed.collect();
    let mut pending = Vec::from_iter(folders.has_folders(&["refs"]).then(|| ("refs/".to_owned(), 0)));
    while let Some((folder, depth)) = pending.pop() {
        for entry in std::fs::read_dir(folders.shared.join(&folder)).into_iter().flatten().flatten().take(ENTRIES_MAX) {
            let (Some(name), Ok(kind)) =
                (entry.file_name().to_str().map(|name| format!("{folder}{name}")), entry.file_type())
            else {
                continue;
            };
            if kind.is_dir() && depth < DEPTH_MAX {
                pending.push((format!("{name}/"), depth + 1));
            } else if kind.is_file() && is_plain(&name) && !name.starts_with(STASH) {
                let id = folders.text(&folders.shared, &name).unwrap_or_default().trim().to_owned();
                is_id(&id).then(|| all.insert(name, id));
            }
            if all.len() > REFERENCES_MAX {
                return Err(refused("it has more than 100,000 references"));
            }
        }
    }
    let lines = all.iter().map(|(name, id)| format!("{id} {name}\n"));
    Ok(["# pack-refs with: sorted \n".to_owned()].into_iter().chain(lines).collect())
}

fn refused(why: &'static str) -> RepositoryError {
    RepositoryError::NoHistory(why)
}
