//! Checks that no commit of the branch has a folder that git takes for a repository because of its files.
//!
//! Each state of the files that becomes a commit is checked, together with the other files at HEAD.

use super::Source;
use super::compare::{CommitFiles, SUBMODULE};
use super::git::Git;
use crate::exit::{Exit, Stop};
use glovebox_record::path::ScopePath;
use glovebox_record::{Digest, FileChange};
use glovebox_workspace::apply::{self, Conflict};
use glovebox_workspace::commit::fold;
use glovebox_workspace::repository_shape::{self, FolderEntry, Folders, RepositoryChange, beginning};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

const LINK: &str = "120000";
/// Maximum size of a `HEAD` file that is read, in bytes. A larger file is treated as if it named a branch.
const HEAD_BYTES_MAX: u64 = 4096;

/// Returns the conflicts of the first commit that has such a folder: the changed paths by which git recognizes a
/// repository.
pub fn conflicts(
    git: &Git<'_>,
    commit: &CommitFiles<'_>,
    source: &Source<'_>,
    selected: &BTreeSet<&ScopePath>,
) -> Result<Vec<Conflict>, Stop> {
    let open = |digest: &Digest| source.changes.open(digest).map(Some);
    if !source.selected.iter().any(|change| RepositoryChange::recorded(change, &open).may_touch_repository()) {
        return Ok(Vec::new());
    }
    let before = InHead { git, commit };
    let mut made: Vec<FileChange> = Vec::new();
    for (_, stage) in &source.changes.stages {
        made.extend(stage.files.changes.iter().filter(|change| selected.contains(&change.path)).cloned());
        let state = fold(&made);
        let steps: Vec<RepositoryChange<'_>> =
            state.iter().map(|change| RepositoryChange::recorded(change, &open)).collect();
        let faults = repository_shape::faults(&before, &steps)
            .map_err(|error| Stop::new(Exit::Usage, format!("look for repositories in HEAD: {error}")))?;
        if !faults.is_empty() {
            return Ok(apply::conflicts(&faults, state.iter()));
        }
    }
    Ok(Vec::new())
}

/// The project's folder in the commit at HEAD.
struct InHead<'h> {
    git: &'h Git<'h>,
    commit: &'h CommitFiles<'h>,
}

impl InHead<'_> {
    fn whole(&self, path: &Path) -> String {
        self.commit.whole(path.display())
    }
}

impl Folders for InHead<'_> {
    fn entries(&self, folder: &Path) -> io::Result<Vec<(String, FolderEntry)>> {
        let folder = if folder.as_os_str().is_empty() {
            self.commit.prefix.to_owned()
        } else {
            format!("{}/", self.whole(folder))
        };
        let mut entries: Vec<(String, FolderEntry)> = Vec::new();
        let below = self.commit.by_path.range(folder.clone()..).take_while(|(path, _)| path.starts_with(&folder));
        for (path, (mode, _)) in below {
            let rest = &path[folder.len()..];
            let (name, entry) = match rest.split_once('/') {
                Some((name, _)) => (name, FolderEntry::Folder),
                None if mode == SUBMODULE => (rest, FolderEntry::Folder),
                None if mode == LINK => (rest, FolderEntry::Other),
                None => (rest, FolderEntry::File),
            };
            if entries.last().is_none_or(|(known, _)| known != name) {
                entries.push((name.to_owned(), entry));
            }
        }
        Ok(entries)
    }

    fn beginning(&self, file: &Path) -> io::Result<Option<Vec<u8>>> {
        let Some((_, object)) = self.commit.by_path.get(&self.whole(file)) else { return Ok(None) };
        let run = |words: &[&str]| self.git.run(words, b"").map_err(|stop| io::Error::other(stop.message));
        let bytes = super::git::line(&run(&["cat-file", "-s", object])?).parse();
        match bytes.is_ok_and(|bytes: u64| bytes <= HEAD_BYTES_MAX) {
            true => beginning(&*run(&["cat-file", "blob", object])?).map(Some),
            false => Ok(None),
        }
    }
}
