//! Submodules of a project, and theirs: each that is checked out gets a repository of its own in a stage, in the same way as the
//! project.
//!
//! A project brings `.gitmodules` and the repositories that it leads to. So no link is followed on the way to a submodule, its
//! repository must name this folder as its work tree, and names and numbers are checked. A submodule that is left out has its files,
//! but no repository.

use super::digest::ObjectId;
use super::facts::{head, is_plain};
use super::{
    LastCommit, REPOSITORY_DIR, RepositoryError, RepositoryFacts, RepositorySource, make_with_history, open_or_make_at,
    shown,
};
use crate::regular_file::{self, Links};
use crate::tree::Tree;
use glovebox_names::visible::is_deceptive;
use glovebox_record::GitHead;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// File of a project that lists its submodules.
const LIST: &str = ".gitmodules";
/// Maximum size of the list, bytes.
const LIST_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of submodules that get a repository. Each takes two mounts.
const SUBMODULES_MAX: usize = 32;
/// Maximum number of folders whose repository is read. A project can make each refusal as slow as reading the largest allowed files.
const EXAMINED_MAX: usize = 2 * SUBMODULES_MAX;
/// Maximum number of paths that are taken from the list.
const LISTED_MAX: usize = 4_096;

/// A submodule that is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submodule {
    name: String,
    path: ScopePath,
    /// The submodule that lists this one. `None` if the project does.
    parent: Option<ScopePath>,
    head: GitHead,
}

/// A submodule with a repository in a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmoduleLink {
    name: String,
    /// Path in the repository that lists the submodule.
    pub(super) path: String,
    /// The commit that is checked out in the project.
    pub(super) head: ObjectId,
    /// The only commit of the repository in the stage.
    pub(super) commit: ObjectId,
}

impl SubmoduleLink {
    /// Returns the lines of the configuration with which git takes the submodule for an initialised one.
    pub(super) fn setting(&self) -> String {
        setting(&self.name)
    }
}

/// Returns the submodules of a project that are checked out and that a scope shows in the workspace, and their submodules. A
/// submodule comes after its own submodules.
pub fn submodules(project: &Path, workspace: &Path, scope: &Scope) -> Vec<Submodule> {
    let (Ok(own), Ok(copy)) = (Tree::open(project), Tree::open(workspace)) else { return Vec::new() };
    let mut search = Search { project, own, copy, scope, found: Vec::new(), examined: 0 };
    search.listed_by(None);
    let mut next = 0;
    while let Some(parent) = search.found.get(next).map(|found| found.path.clone()) {
        search.listed_by(Some(&parent));
        next += 1;
    }
    search.found.reverse();
    search.found
}

/// A search for submodules.
struct Search<'s> {
    project: &'s Path,
    own: Tree,
    copy: Tree,
    scope: &'s Scope,
    found: Vec<Submodule>,
    examined: usize,
}

impl Search<'_> {
    /// Adds the submodules that a submodule lists, or the project.
    fn listed_by(&mut self, parent: Option<&ScopePath>) {
        let folder = parent.map_or_else(|| self.project.to_owned(), |parent| self.project.join(parent.as_str()));
        let list = regular_file::read_text(&folder.join(LIST), Links::Within(self.project), LIST_BYTES_MAX);
        for (name, path) in listed(&list.unwrap_or_default()) {
            if self.found.len() == SUBMODULES_MAX || self.examined == EXAMINED_MAX {
                return;
            }
            let path = parent.map_or(Ok(path.clone()), |parent| parent.join(path.as_str()));
            let Ok(path) = path else { continue };
            let siblings = || self.found.iter().filter(|known| known.parent.as_ref() == parent);
            let is_apart = siblings().all(|known| !known.path.starts_with(&path) && !path.starts_with(&known.path));
            if !is_apart || !self.is_shown(&path) {
                continue;
            }
            self.examined += 1;
            // There is no commit if the repository does not belong to this folder.
            let head = head(&self.project.join(path.as_str()));
            if head.commit.is_some() {
                self.found.push(Submodule { name, path, parent: parent.cloned(), head });
            }
        }
    }

    fn is_shown(&self, path: &ScopePath) -> bool {
        let is_folder = |tree: &Tree| tree.directory(Path::new(path.as_str())).is_ok();
        self.scope.readable_below(path) && is_folder(&self.own) && is_folder(&self.copy)
    }
}

/// Returns the names and paths of a list of submodules, each path once.
fn listed(list: &str) -> Vec<(String, ScopePath)> {
    let (mut found, mut current, mut known) = (Vec::new(), None, BTreeSet::new());
    for line in list.lines().map(str::trim) {
        if line.starts_with('[') {
            let name = line.strip_prefix("[submodule \"").and_then(|rest| rest.strip_suffix("\"]"));
            current = name.filter(|name| is_plain(name));
        } else if let (Some(name), Some((key, value))) = (current, line.split_once('='))
            && key.trim() == "path"
            && found.len() < LISTED_MAX
        {
            let path = value.trim().trim_end_matches('/');
            let is_hidden = |name: &str| name.eq_ignore_ascii_case(REPOSITORY_DIR) || name == ".glovebox";
            let path = ScopePath::parse(path).ok().filter(|path| !path.is_root() && !path.names().any(is_hidden));
            let path = path.filter(|path| !path.as_str().chars().any(is_deceptive));
            found.extend(path.filter(|path| known.insert(path.clone())).map(|path| (name.to_owned(), path)));
        }
    }
    found
}

impl Submodule {
    /// Returns the path of the submodule in the project.
    pub fn path(&self) -> &ScopePath {
        &self.path
    }

    /// Returns the path of the submodule that lists this one. `None` if the project does.
    pub fn parent(&self) -> Option<&ScopePath> {
        self.parent.as_ref()
    }

    /// Returns the path at which the repository must be shown.
    pub fn repository_path(&self) -> Option<ScopePath> {
        self.path.join(REPOSITORY_DIR).ok()
    }

    /// Returns the repository of the submodule below `all`, and makes it if it does not exist. `project` is the source of the project
    /// itself, and `submodules` are those of the submodule.
    ///
    /// # Errors
    /// As [`super::make`].
    pub fn open_or_make(
        &self,
        workspace: &Path,
        scope: &Scope,
        all: &Path,
        project: &LastCommit<'_>,
        submodules: Vec<SubmoduleLink>,
    ) -> Result<(PathBuf, SubmoduleLink), RepositoryError> {
        let (below, scope) = (format!("{}/", self.path), scope.below(&self.path));
        let folder = project.project.join(self.path.as_str());
        let key = format!("{below} {:?}", shown(&scope));
        let source = || {
            let commit = self.head.commit.as_deref();
            let commit = commit.map(|id| LastCommit { project: &folder, id, below: &below, ..*project });
            RepositorySource { facts: RepositoryFacts::read(&folder, &self.head), commit, submodules }
        };
        let repository = open_or_make_at(&workspace.join(self.path.as_str()), &scope, all, &key, source)?;
        let link = self.link(&repository).ok_or(RepositoryError::NoHistory("a submodule has no commit"))?;
        Ok((repository, link))
    }

    /// As [`make_with_history`], for the repository of the submodule of `project`, which lists `submodules`.
    ///
    /// # Errors
    /// As [`make_with_history`].
    pub fn make_with_history(
        &self,
        project: &Path,
        at: &Path,
        objects: &Path,
        submodules: &[&Self],
    ) -> Result<PathBuf, RepositoryError> {
        make_with_history(&project.join(self.path.as_str()), at, objects, submodules)
    }

    /// Returns the lines of the configuration with which git takes the submodule for an initialised one.
    pub(super) fn setting(&self) -> String {
        setting(&self.name)
    }

    fn link(&self, repository: &Path) -> Option<SubmoduleLink> {
        let commit = ObjectId::from_hex(&head_of(repository)?)?;
        let head = ObjectId::from_hex(self.head.commit.as_deref()?)?;
        let below = self.parent.as_ref().map_or(0, |parent| parent.as_str().len() + 1);
        Some(SubmoduleLink { name: self.name.clone(), path: self.path.as_str().get(below..)?.to_owned(), head, commit })
    }
}

fn setting(name: &str) -> String {
    format!("[submodule \"{name}\"]\n\tactive = true\n")
}

/// Returns the commit that a repository of Glovebox is at.
fn head_of(repository: &Path) -> Option<String> {
    let read =
        |name: &str| regular_file::read_text(&repository.join(name), Links::Within(repository), LIST_BYTES_MAX).ok();
    let head = read("HEAD")?;
    let Some(reference) = head.trim().strip_prefix("ref: ") else { return Some(head.trim().to_owned()) };
    let packed = read("packed-refs")?;
    let is_meant = |line: &&str| line.split_once(' ').is_some_and(|(_, name)| name == reference);
    packed.lines().find(is_meant)?.split_once(' ').map(|(id, _)| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_only_folders_of_the_project() {
        let list = "[submodule \"a\"]\n\tpath = libs/a\n\turl = ../a\n[submodule \"b\"]\npath=b/\n[core]\npath = c\n";
        let found =
            |list: &str| listed(list).into_iter().map(|(name, path)| format!("{name} {path}")).collect::<Vec<_>>();
        assert_eq!(found(list), ["a libs/a", "b b"]);
        for path in ["../x", "/etc", ".", ".git", "a/.GIT/b", ".glovebox/runs", "a/../b", "a\u{202e}b", ""] {
            assert!(found(&format!("[submodule \"a\"]\npath = {path}\n")).is_empty(), "{path:?}");
        }
        for name in ["x\"]\n[core]\n\tfsmonitor = true", "-a", "a b", "..", "a\\"] {
            assert!(found(&format!("[submodule \"{name}\"]\npath = a\n")).is_empty(), "{name:?}");
        }
        let many: String = (0..LISTED_MAX + 10).map(|number| format!("path = {number}\npath = {number}/\n")).collect();
        assert_eq!(found(&format!("[submodule \"a\"]\n{many}")).len(), LISTED_MAX);
    }

    /// A repository that a submodule can have, but for its objects. It has a commit if `is_born`.
    fn plant(folder: &Path, is_born: bool) {
        let git = folder.join(".git");
        std::fs::create_dir_all(&git).unwrap();
        let head = if is_born { "1".repeat(40) } else { "ref: refs/heads/none".to_owned() };
        std::fs::write(git.join("HEAD"), head).unwrap();
    }

    /// Returns the paths of the submodules of a project with `refused` repositories without a commit, each listed `repeated` times, and
    /// then `accepted` repositories with a commit.
    fn after_refusals(refused: usize, repeated: usize, accepted: usize) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut list = "[submodule \"a\"]\n".to_owned();
        for (name, count, times) in [("bad", refused, repeated), ("good", accepted, 1)] {
            for number in 0..count {
                plant(&folder.path().join(format!("{name}{number}")), name == "good");
                list.push_str(&format!("path={name}{number}\n").repeat(times));
            }
        }
        std::fs::write(folder.path().join(LIST), list).unwrap();
        let found = submodules(folder.path(), folder.path(), &Scope::everything());
        found.into_iter().map(|found| found.path.to_string()).collect()
    }

    #[test]
    fn a_path_is_examined_once_and_the_number_of_examined_paths_is_bounded() {
        assert_eq!(after_refusals(1, 10 * EXAMINED_MAX, 1), ["good0"], "a repeated path counts once");
        assert_eq!(after_refusals(EXAMINED_MAX - 1, 1, 2), ["good0"]);
        assert!(after_refusals(EXAMINED_MAX, 1, 1).is_empty());
        assert_eq!(after_refusals(0, 1, SUBMODULES_MAX + 1).len(), SUBMODULES_MAX);
    }
}
