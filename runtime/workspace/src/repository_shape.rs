//! Changes that would turn a folder into a git repository, or would change the programs that a repository runs.
//!
//! The merged result is checked: the existing files and the changes. So it does not matter which stage, branch or
//! person made which part of the repository. A *repository name* is the name of an entry in a repository, such as
//! `HEAD`, `objects`, `config` or `hooks`. Only folders in which a change touches a repository name, and their parents,
//! are read. A repository that existed before the changes stays usable: its objects and branches may change, but no
//! file that names programs.

use crate::change::{ChangedFiles, FoundChange, Op};
use crate::tree::{self, Tree};
use glovebox_names::protected::fold;
use glovebox_names::repository::{Kind, Part, names_reference, shape};
use glovebox_record::{ChangeOp, Digest, FileChange};
use rustix::fs::FileType;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Number of bytes of a `HEAD` that are read.
const HEAD_BYTES: u64 = 64;

/// The kind of an entry in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderEntry {
    /// A folder.
    Folder,
    /// A regular file.
    File,
    /// A link, or any other entry.
    Other,
}

/// Folders as they are before the changes. Paths are relative. The empty path is the top folder.
pub trait Folders {
    /// Lists the entries of a folder. The list is empty if the folder does not exist.
    ///
    /// # Errors
    /// The system's error.
    fn entries(&self, folder: &Path) -> io::Result<Vec<(String, FolderEntry)>>;

    /// Returns the beginning of a regular file, or `None` if it is unknown.
    ///
    /// # Errors
    /// The system's error.
    fn beginning(&self, file: &Path) -> io::Result<Option<Vec<u8>>>;
}

impl Folders for Tree {
    fn entries(&self, folder: &Path) -> io::Result<Vec<(String, FolderEntry)>> {
        let directory = match self.directory(folder) {
            Err(error) if tree::is_unreachable(&error) => return Ok(Vec::new()),
            other => other?,
        };
        let mut entries = Vec::new();
        for name in tree::names(&directory)? {
            let (Some(text), Some(stat)) = (name.to_str(), tree::stat_at(&directory, &name)?) else { continue };
            let entry = match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => FolderEntry::Folder,
                FileType::RegularFile => FolderEntry::File,
                _ => FolderEntry::Other,
            };
            entries.push((text.to_owned(), entry));
        }
        Ok(entries)
    }

    fn beginning(&self, file: &Path) -> io::Result<Option<Vec<u8>>> {
        beginning(self.file(file)?).map(Some)
    }
}

/// Reads the beginning of a file, enough to decide whether it names a branch or a commit.
///
/// # Errors
/// The system's error.
pub fn beginning(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// One change, reduced to its effect on repositories.
pub struct RepositoryChange<'s> {
    path: &'s str,
    /// The entry that exists at the path after the change; `None` for a removal.
    leaves: Option<FolderEntry>,
    open: Box<dyn Fn() -> io::Result<Option<Vec<u8>>> + 's>,
}

impl<'s> RepositoryChange<'s> {
    /// Creates the value for a recorded change. `open_blob` opens the bytes of the change. If it returns `None`, a
    /// `HEAD` is treated as one that names a branch.
    pub fn recorded<R: Read>(change: &'s FileChange, open_blob: &'s dyn Fn(&Digest) -> io::Result<Option<R>>) -> Self {
        let leaves = match change.op {
            ChangeOp::Write => Some(FolderEntry::File),
            ChangeOp::Symlink => Some(FolderEntry::Other),
            ChangeOp::Mkdir => Some(FolderEntry::Folder),
            ChangeOp::Delete | ChangeOp::Rmdir => None,
        };
        let open = move || change.digest.as_ref().map_or(Ok(None), open_blob)?.map(beginning).transpose();
        Self { path: change.path.as_str(), leaves, open: Box::new(open) }
    }

    fn found(change: &'s FoundChange, view: &'s dyn ChangedFiles) -> Self {
        let leaves = match &change.op {
            Op::Write { .. } => Some(FolderEntry::File),
            Op::MakeDir { .. } => Some(FolderEntry::Folder),
            Op::Link { .. } | Op::Special { .. } => Some(FolderEntry::Other),
            Op::Delete | Op::RemoveDir => None,
        };
        Self { path: &change.path, leaves, open: Box::new(move || beginning(view.open(change)?).map(Some)) }
    }

    /// Returns true if the change could create a part of a repository, or could change a file that names programs in one.
    pub fn may_touch_repository(&self) -> bool {
        self.leaves.is_some() && self.parts().next().is_some()
    }

    /// Returns each repository name in the path, with its folder, and whether the path ends with it.
    fn parts(&self) -> impl Iterator<Item = (&'s str, Part, bool)> {
        let path = self.path;
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.filter_map(move |end| {
            let (folder, name) = split(&path[..end]);
            Some((folder, Part::named(name)?, end == path.len()))
        })
    }
}

/// Why changes are refused: they touch a folder that is a repository or would become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryFault {
    /// The folder, with names folded for comparison.
    folder: Vec<String>,
    shown: String,
    names: &'static str,
    was_there: bool,
}

impl RepositoryFault {
    /// Returns the path of the repository name that a change touches in the folder, or `None` if it touches none.
    pub fn touched<'p>(&self, path: &'p str) -> Option<&'p str> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let mut parts = ends.filter(|end| {
            let (folder, name) = split(&path[..*end]);
            let counts = |part: Part| match self.was_there {
                true => part.names_programs(),
                false => part != Part::Inner,
            };
            Part::named(name).is_some_and(counts) && folded(folder) == self.folder
        });
        parts.next().map(|end| &path[..end])
    }

    /// Returns a description of the problem, for people.
    pub fn what(&self) -> String {
        let folder = if self.shown.is_empty() { "the top folder".to_owned() } else { format!("`{}`", self.shown) };
        let has = if self.was_there { "has" } else { "would have" };
        format!(
            "{folder} {has} the shape of a git repository ({}), and git runs programs that its files name",
            self.names
        )
    }

    /// Returns a description of the problem and the fix, for people.
    pub fn reason(&self) -> String {
        let remedy = match self.was_there {
            true => "change `HEAD`, settings and hooks of a repository yourself, outside of the run",
            false => "write these files under other names, or pack the folder in an archive",
        };
        format!("{}; {remedy}", self.what())
    }
}

/// Checks changes against the existing files. Returns a fault for each folder that must not be changed in this way.
///
/// # Errors
/// The system's error.
pub fn faults(before: &dyn Folders, steps: &[RepositoryChange<'_>]) -> io::Result<Vec<RepositoryFault>> {
    let mut known = FolderListings { before, listed: HashMap::new() };
    let gone: HashSet<&str> = steps.iter().filter(|step| step.leaves.is_none()).map(|step| step.path).collect();
    let mut faults = Vec::new();
    for (folder, touched) in by_folder(steps, |_, _| true) {
        let there = known.parts(&folder)?;
        let was: Vec<(Part, Kind)> = there.iter().map(|(_, part, kind)| (*part, *kind)).collect();
        let fault = |names, was_there| {
            let shown = touched.first().map_or("", |(shown, ..)| *shown).to_owned();
            RepositoryFault { folder: folder.clone(), shown, names, was_there }
        };
        if let Some(names) = shape(&was) {
            faults.extend(touched.iter().any(|(_, part, ..)| part.names_programs()).then(|| fault(names, true)));
            continue;
        }
        let stays = there.iter().filter(|(path, _, kind)| *kind == Kind::Folder || !gone.contains(path.as_str()));
        let mut parts: Vec<(Part, Kind)> = stays.map(|(_, part, kind)| (*part, *kind)).collect();
        for (_, part, step, is_whole) in &touched {
            parts.push((*part, kind_after(step, *part, *is_whole)?));
        }
        faults.extend(shape(&parts).map(|names| fault(names, false)));
    }
    Ok(faults)
}

/// Checks a folder that already contains the changes. Returns a fault for each repository in it that has a repository
/// name from the changes.
///
/// # Errors
/// The system's error.
pub fn faults_in_result(folder: &Path, steps: &[RepositoryChange<'_>]) -> io::Result<Vec<RepositoryFault>> {
    let result = Tree::open(folder)?;
    let mut known = FolderListings { before: &result, listed: HashMap::new() };
    let mut faults = Vec::new();
    for (folder, touched) in by_folder(steps, |part, is_whole| is_whole || part.names_programs()) {
        let parts: Vec<(Part, Kind)> = known.parts(&folder)?.iter().map(|(_, part, kind)| (*part, *kind)).collect();
        let shown = touched.first().map_or("", |(shown, ..)| *shown).to_owned();
        faults.extend(shape(&parts).map(|names| RepositoryFault { folder, shown, names, was_there: true }));
    }
    Ok(faults)
}

/// A folder as the change spells it, the repository name in it, the change, and whether the path of the change ends there.
type Touched<'s> = (&'s str, Part, &'s RepositoryChange<'s>, bool);

/// Returns the repository names that exist after the changes, by folder. Names of folders are folded for comparison.
fn by_folder<'s>(
    steps: &'s [RepositoryChange<'s>],
    counts: impl Fn(Part, bool) -> bool,
) -> BTreeMap<Vec<String>, Vec<Touched<'s>>> {
    let mut folders: BTreeMap<Vec<String>, Vec<Touched<'s>>> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.leaves.is_some()) {
        for (folder, part, is_whole) in step.parts().filter(|(_, part, is_whole)| counts(*part, *is_whole)) {
            folders.entry(folded(folder)).or_default().push((folder, part, step, is_whole));
        }
    }
    folders
}

fn kind_after(step: &RepositoryChange<'_>, part: Part, is_whole: bool) -> io::Result<Kind> {
    let leaves = if is_whole { step.leaves } else { Some(FolderEntry::Folder) };
    kind(part, leaves.unwrap_or(FolderEntry::Other), &*step.open)
}

/// Returns the kind of an entry as a part of a repository. A link `HEAD` is treated as one that names a branch, because git reads
/// its target.
fn kind(part: Part, entry: FolderEntry, open: &dyn Fn() -> io::Result<Option<Vec<u8>>>) -> io::Result<Kind> {
    Ok(match (entry, part) {
        (FolderEntry::Folder, _) => Kind::Folder,
        (FolderEntry::Other, Part::Head) => Kind::Reference,
        (FolderEntry::File, Part::Head) if open()?.is_none_or(|bytes| names_reference(&bytes)) => Kind::Reference,
        _ => Kind::Other,
    })
}

/// The entries before the changes. Each folder is listed only once.
struct FolderListings<'f> {
    before: &'f dyn Folders,
    listed: HashMap<PathBuf, Vec<(String, FolderEntry)>>,
}

impl FolderListings<'_> {
    fn entries(&mut self, folder: &Path) -> io::Result<&[(String, FolderEntry)]> {
        if !self.listed.contains_key(folder) {
            self.listed.insert(folder.to_owned(), self.before.entries(folder)?);
        }
        Ok(self.listed.get(folder).map_or(&[], Vec::as_slice))
    }

    /// Returns the repository names in a folder, in all spellings of the folder, because some file systems ignore case.
    fn parts(&mut self, folder: &[String]) -> io::Result<Vec<(String, Part, Kind)>> {
        let mut spellings = vec![String::new()];
        for name in folder {
            let mut below = Vec::new();
            for above in &spellings {
                let folders = self.entries(Path::new(above))?.iter().filter(|(_, entry)| *entry == FolderEntry::Folder);
                below.extend(folders.filter(|(found, _)| fold(found) == *name).map(|(found, _)| join(above, found)));
            }
            spellings = below;
        }
        let before = self.before;
        let mut parts = Vec::new();
        for spelling in &spellings {
            for (name, entry) in self.entries(Path::new(spelling))? {
                let Some(part) = Part::named(name) else { continue };
                let path = join(spelling, name);
                let kind = kind(part, *entry, &|| before.beginning(Path::new(&path)))?;
                parts.push((path, part, kind));
            }
        }
        Ok(parts)
    }
}

/// Refuses a stage's changes that would create or change a repository, even if the write scope or a person allows them.
pub(crate) fn refuse(found: &mut [FoundChange], workspace: &Tree, view: &dyn ChangedFiles) -> io::Result<()> {
    let counts = |change: &&FoundChange| change.is_allowed() || change.is_only_out_of_scope;
    let steps: Vec<RepositoryChange<'_>> =
        found.iter().filter(counts).map(|change| RepositoryChange::found(change, view)).collect();
    let faults = faults(workspace, &steps)?;
    drop(steps);
    for fault in &faults {
        found.iter_mut().filter(|change| counts(&&**change)).for_each(|change| {
            if !change.op.removes() && fault.touched(&change.path).is_some() {
                change.refuse(fault.reason());
            }
        });
    }
    Ok(())
}

fn folded(folder: &str) -> Vec<String> {
    folder.split('/').filter(|name| !name.is_empty()).map(|name| fold(name).into_owned()).collect()
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

#[cfg(test)]
mod tests;
