//! Git's ignore rules of the project, as they were when the run began, and a matcher for paths.
//!
//! A stage's writes to an ignored path are scratch: they are never committed and are not a violation. The rules are
//! read once, from the user's project, so a stage that changes `.gitignore` does not change them. A file that was
//! copied from the project is never ignored, whatever the rules are, because git tracks it or `workspace.include` names
//! it. This module does not know scopes.

mod changes;
mod index;
mod rule_reader;

use glovebox_record::path::ScopePath;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) use changes::IgnoredChange;
pub use changes::IgnoredChanges;
pub(crate) use index::{IndexEntry, entries as index_entries, files as tracked_files, of_project as index_of};
pub(crate) use rule_reader::RuleReader;
pub use rule_reader::RulesTooLong;

/// The rules of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RuleFile {
    /// The project's path below the folder of the rule file; empty if the file is in the project.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    above: String,
    /// The folder of the project that contains the file; empty for the project itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    folder: String,
    text: String,
}

/// The rules of a project, as recorded in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoreRules {
    /// Rule files in order of precedence: a later file overrides an earlier one.
    files: Vec<RuleFile>,
    /// Files that were copied from the project and match a rule. They are not ignored.
    kept: BTreeSet<String>,
}

impl IgnoreRules {
    /// Returns true if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Reads the rules of a project: the `.gitignore` files in these folders and, within a repository, those above the
    /// project and `info/exclude`. Links are not followed. A file that cannot be read or is not UTF-8 has no rules.
    ///
    /// # Errors
    /// [`RulesTooLong`] if all files together exceed the limits.
    pub(crate) fn read<'a>(project: &Path, folders: impl Iterator<Item = &'a str>) -> Result<Self, RulesTooLong> {
        Ok(Self { files: rule_reader::files(project, folders)?, kept: BTreeSet::new() })
    }

    /// Marks files that were copied from the project as not ignored.
    pub(crate) fn keep<'a>(&mut self, files: impl Iterator<Item = &'a str>) {
        let ignored = IgnoreMatcher::new(self);
        let matching =
            |file: &&str| ScopePath::parse(file).is_ok_and(|path| ignored.covers(&path, EntryKind::File).is_some());
        self.kept = files.filter(matching).map(str::to_owned).collect();
    }
}

/// The files of a project as git sees them: tracked files and ignore rules.
#[derive(Debug)]
pub struct ProjectFiles {
    tracked: BTreeSet<String>,
    ignored: IgnoreMatcher,
}

impl ProjectFiles {
    /// Reads the index and the rules that apply to folders directly in the project; rule files in subfolders are not
    /// read. If the rules are too long, no path is reported as ignored here. A copy of such a project fails.
    pub fn for_project(project: &Path) -> Self {
        let rules = IgnoreRules::read(project, std::iter::empty()).unwrap_or_default();
        let tracked = tracked_files(&index_of(project)).map(str::to_owned).collect();
        Self { tracked, ignored: IgnoreMatcher::new(&rules) }
    }

    /// Returns true if git tracks a file in this folder.
    pub fn has_tracked(&self, folder: &ScopePath) -> bool {
        let below = format!("{folder}/");
        self.tracked.range(below.clone()..).next().is_some_and(|first| first.starts_with(&below))
    }

    /// Returns true if git ignores this folder.
    pub fn ignores(&self, folder: &ScopePath) -> bool {
        self.ignored.covers(folder, EntryKind::Directory).is_some()
    }
}

/// The kind of entry at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A file, a link, or a special file.
    File,
    /// A directory.
    Directory,
}

fn prepared(file: RuleFile) -> Option<(RuleFile, Gitignore)> {
    let mut builder = GitignoreBuilder::new("");
    for line in file.text.lines() {
        if let Err(error) = builder.add_line(None, line) {
            tracing::debug!(%error, "a line of a .gitignore file cannot be parsed");
        }
    }
    let rules = builder.build().ok()?;
    Some((file, rules))
}

/// The compiled rules.
#[derive(Debug, Default)]
pub struct IgnoreMatcher {
    files: Vec<(RuleFile, Gitignore)>,
    kept: BTreeSet<String>,
}

impl IgnoreMatcher {
    /// Compiles rules. A line that git would not understand is skipped.
    pub fn new(rules: &IgnoreRules) -> Self {
        Self { files: rules.files.iter().cloned().filter_map(prepared).collect(), kept: rules.kept.clone() }
    }

    /// Returns true if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns true if git ignores the path as a folder or as a file.
    pub fn ignores(&self, path: &ScopePath) -> bool {
        [EntryKind::Directory, EntryKind::File].into_iter().any(|kind| self.covers(path, kind).is_some())
    }

    /// Finds the topmost path at or above `path` that git ignores. Returns its length in bytes of `path`. Returns
    /// `None` if git does not ignore the path, and for a file that was copied from the project.
    pub(crate) fn covers(&self, path: &ScopePath, kind: EntryKind) -> Option<usize> {
        let text = path.as_str();
        if self.is_empty() || self.kept.contains(text) {
            return None;
        }
        let ends = text.match_indices('/').map(|(at, _)| (at, EntryKind::Directory));
        ends.chain([(text.len(), kind)]).find(|(end, kind)| self.is_ignored(&text[..*end], *kind)).map(|(end, _)| end)
    }

    /// Returns the result of the last rule that matches this path.
    fn is_ignored(&self, path: &str, kind: EntryKind) -> bool {
        for (file, rules) in self.files.iter().rev() {
            let below = match file.folder.as_str() {
                "" => path,
                folder => match path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) {
                    Some(below) => below,
                    None => continue,
                },
            };
            let known_as = Path::new(&file.above).join(below);
            match rules.matched(&known_as, kind == EntryKind::Directory) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
