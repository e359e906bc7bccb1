//! Finds the repository that gets a branch: only that of the project's own work tree.
//!
//! A project may come with a `.git` that names another repository of the user. So the repository must name the project
//! too, as the repositories of linked work trees and submodules do. This is checked by reading files: git never runs
//! with the settings of a repository that is not known to belong to the project. Afterwards, git must find the same
//! repository.

use super::git::{self, Git};
use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use glovebox_names::shell;
use glovebox_workspace::regular_file::{self, Links};
use glovebox_workspace::work_tree;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Maximum size of a repository's configuration that is read, in bytes.
const SETTINGS_BYTES_MAX: u64 = 16 << 20;
/// Maximum size of a branch's file that is read, in bytes.
const REF_BYTES_MAX: u64 = 4096;
/// Folders of the shared folder to which git writes, whatever the name of the branch is.
const WRITTEN: [&str; 8] =
    ["objects", "objects/pack", "refs", "refs/heads", "logs", "logs/refs", "logs/refs/heads", "reftable"];

/// The repository of a work tree.
#[derive(Debug)]
pub struct Repository {
    /// The root of the work tree.
    pub root: PathBuf,
    /// Path of the project below the root: empty, or with a `/` at its end.
    pub prefix: String,
    /// The folder with branches and objects, which linked work trees share.
    pub shared: PathBuf,
}

impl Repository {
    /// Finds the repository of a project. The returned paths contain no symbolic links.
    ///
    /// # Errors
    /// Returns an error if the project is in no repository, or if its `.git` names one that does not name this work
    /// tree.
    pub fn for_project(project: &Path) -> Result<Self, Stop> {
        let none = || not_accepted(project);
        let whole = fs::canonicalize(project).map_err(|_| none())?;
        let root = work_tree::root(&whole).ok_or_else(none)?;
        let own = work_tree::own_folder(root).and_then(|own| fs::canonicalize(own).ok()).ok_or_else(none)?;
        let shared = fs::canonicalize(work_tree::shared_folder(&own)).map_err(|_| none())?;
        let below = whole.strip_prefix(root).ok().and_then(Path::to_str).ok_or_else(none)?;
        let prefix = if below.is_empty() { String::new() } else { format!("{below}/") };
        match is_of(&own, &shared, root)? {
            true => Ok(Self { root: root.to_owned(), prefix, shared }),
            false => Err(foreign(&own, &shared, root)),
        }
    }

    /// Returns an error unless git finds the same work tree and the same repository.
    pub fn confirm(&self, git: &Git<'_>) -> Result<(), Stop> {
        if !git.succeeds(&["rev-parse", "--git-dir"])? {
            return Err(not_accepted(&self.root));
        }
        for (question, expected) in [("--show-toplevel", &self.root), ("--git-common-dir", &self.shared)] {
            let answer = git::path(git.run(&["rev-parse", question], b"")?);
            if fs::canonicalize(self.root.join(&answer)).ok().as_ref() != Some(expected) {
                let (answer, root) = (shown(&answer), shown(&self.root));
                return Err(refused(format_args!("git reports `{answer}` as the place of the repository in `{root}`")));
            }
        }
        Ok(())
    }

    /// Returns an error if git would write through a symbolic link to another place.
    pub fn require_no_links(&self, reference: &str) -> Result<(), Stop> {
        let names = [reference.to_owned(), format!("logs/{reference}")];
        let above = names.iter().flat_map(|name| name.match_indices('/').map(|(at, _)| &name[..at]));
        let objects = (0..=u8::MAX).map(|first| format!("objects/{first:02x}")).collect::<Vec<_>>();
        let mut written = WRITTEN.iter().copied().chain(above).chain(names.iter().chain(&objects).map(String::as_str));
        if let Some(path) = written.find(|path| self.shared.join(path).is_symlink()) {
            let (path, shared) = (visible::line(path), shown(&self.shared));
            return Err(refused(format_args!("`{path}` of the repository `{shared}` is a link to another place")));
        }
        // Git found no branch, so a file here is a symbolic ref or damaged. A symbolic ref could name another ref,
        // which was not checked for links. An empty folder is what git leaves behind when it deletes branches.
        let file = self.shared.join(reference);
        if file.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            let text = regular_file::read(&file, Links::Within(&self.shared), REF_BYTES_MAX);
            let what = match text.is_ok_and(|text| text.starts_with(b"ref:")) {
                true => "is a symbolic ref",
                false => "is a file that git does not accept as a branch",
            };
            let (reference, shared) = (visible::line(reference), shown(&self.shared));
            return Err(refused(format_args!("`{reference}` of the repository `{shared}` {what}")));
        }
        Ok(())
    }
}

/// Returns true if a repository belongs to the work tree with this root.
fn is_of(own: &Path, shared: &Path, root: &Path) -> Result<bool, Stop> {
    let at = root.join(".git");
    let read = |folder: &Path, name: &str| match regular_file::read(
        &folder.join(name),
        Links::Within(folder),
        SETTINGS_BYTES_MAX,
    ) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(refused(format_args!("cannot read `{}`: {error}", shown(&folder.join(name))))),
    };
    let text = [read(shared, "config")?, read(own, "config.worktree")?].join(&b'\n');
    // Newer versions of git may store branches where the settings say.
    if git::setting(&text, "extensions.refStorage")?.is_some_and(|storage| storage.contains(&b'/')) {
        return Ok(false);
    }
    // An attacker can forge both links, but not an entry in another repository's `worktrees`.
    if own.join("commondir").symlink_metadata().is_ok() {
        let back = work_tree::back_link(own);
        let names_root = back.is_some_and(|back| {
            back.ends_with(".git")
                && back.parent().and_then(|root| fs::canonicalize(root).ok()).as_deref() == Some(root)
        });
        return Ok(own != at && own.parent() == Some(&shared.join("worktrees")) && names_root);
    }
    // If `.git` is a folder in the root itself, it needs no link back to the root.
    if own == at {
        return Ok(true);
    }
    let named = git::setting(&text, "core.worktree")?.map(|named| own.join(OsString::from_vec(named)));
    Ok(named.and_then(|named| fs::canonicalize(named).ok()).as_deref() == Some(root))
}

fn not_accepted(folder: &Path) -> Stop {
    let message = format!("`{}` is not in a git repository that git accepts", shown(folder));
    Stop::new(Exit::Usage, message).with_help("apply without `--branch`; or see `git status`")
}

/// Returns the error for a repository that does not name the work tree.
fn foreign(own: &Path, shared: &Path, root: &Path) -> Stop {
    let (at, place) = (root.join(".git"), shown(shared));
    let stop = refused(format_args!(
        "`{}` leads to the repository `{place}`, which does not name this folder as its work tree",
        shown(&at)
    ));
    if own == at {
        return stop;
    }
    let word = |path: &Path| shell::word(&shown(path)).into_owned();
    let remedy = match shared == own {
        true => format!("git config --file {} core.worktree {}", word(&own.join("config")), word(root)),
        false => format!("git -C {} worktree repair {}", word(shared), word(root)),
    };
    stop.with_help(format!(
        "if that repository belongs to this folder, run `{remedy}`; otherwise apply without `--branch`"
    ))
}

fn refused(problem: impl fmt::Display) -> Stop {
    Stop::new(Exit::Policy, format!("{problem}; nothing was written")).with_help("apply without `--branch`")
}

fn shown(path: &Path) -> String {
    visible::line(&path.to_string_lossy()).into_owned()
}
