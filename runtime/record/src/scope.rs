//! The paths that a stage may read and write, and the paths that are hidden from it.
//!
//! An entry with a final `/` matches a folder and everything below it; any other entry matches exactly one path. A hidden entry
//! overrides all other entries, and hides everything below it. This module only evaluates the rules; the sandbox enforces them.

use crate::path::{ScopePath, ScopePathProblem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a text is not an entry of a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a path of a scope: {problem}; expected `dir/` for a subtree, `dir/file` for one path or `./` for the whole workspace"
)]
pub struct EntryProblem {
    /// The text of the entry.
    pub text: String,
    /// What is wrong with the path.
    pub problem: ScopePathProblem,
}

/// One path of a scope, as the user writes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Entry {
    path: ScopePath,
    subtree: bool,
}

impl Entry {
    /// Parses `dir/` (a folder and everything below it), `dir/file` (exactly this path), or `./` and `.` (the whole workspace).
    /// `./dir/` is the same as `dir/`. Pipeline files and `glovebox.toml` have the same syntax. Entries are printed without `./`,
    /// except for the whole workspace.
    pub fn parse(text: &str) -> Result<Self, EntryProblem> {
        let refused = |problem| EntryProblem { text: text.to_owned(), problem };
        if matches!(text, "." | "./") {
            return Ok(Self::whole());
        }
        let plain = text.strip_prefix("./").unwrap_or(text);
        let (path, subtree) = match plain.strip_suffix('/') {
            Some("") => return Err(refused(ScopePathProblem::Absolute)),
            Some(path) => (path, true),
            None => (plain, false),
        };
        let path = ScopePath::parse(path).map_err(refused)?;
        if path.is_root() { Err(refused(ScopePathProblem::Empty)) } else { Ok(Self { path, subtree }) }
    }

    /// Returns the entry for the whole workspace, written `./`.
    pub fn whole() -> Self {
        Self::folder(ScopePath::root())
    }

    /// Returns the entry for a folder and everything below it.
    pub fn folder(path: ScopePath) -> Self {
        Self { path, subtree: true }
    }

    /// Returns the entry for the path as a folder, whether or not it had a final slash.
    pub fn as_folder(&self) -> Self {
        Self::folder(self.path.clone())
    }

    /// Returns the path without the final slash.
    pub fn path(&self) -> &ScopePath {
        &self.path
    }

    /// Returns true if the entry includes everything below the path.
    pub fn is_subtree(&self) -> bool {
        self.subtree
    }

    /// Returns true if the entry matches `path`. A folder entry also matches the folder itself.
    pub fn contains(&self, path: &ScopePath) -> bool {
        if self.subtree { path.starts_with(&self.path) } else { *path == self.path }
    }

    /// Returns the entry as it is relative to a folder: the whole folder for an entry that includes it, and `None` for one that is not
    /// below it.
    fn below(&self, folder: &ScopePath) -> Option<Self> {
        if self.subtree && folder.starts_with(&self.path) {
            return Some(Self::whole());
        }
        let path = self.path.below(folder)?;
        Some(Self { path, subtree: self.subtree })
    }

    /// Returns true if this entry grants every path that the other entry grants. `src/` does not cover the exact entry
    /// `src`, because a write grant of `src` would allow to remove the directory.
    pub fn covers(&self, other: &Self) -> bool {
        self == other || (self.subtree && (other.path.is_below(&self.path)))
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.path, if self.subtree { "/" } else { "" })
    }
}

impl TryFrom<String> for Entry {
    type Error = EntryProblem;

    fn try_from(text: String) -> Result<Self, EntryProblem> {
        Self::parse(&text)
    }
}

impl From<Entry> for String {
    fn from(entry: Entry) -> Self {
        entry.to_string()
    }
}

/// Returns the entries that both lists grant, in the order of `left`, without duplicates.
pub fn intersect(left: &[Entry], right: &[Entry]) -> Vec<Entry> {
    let mut both: Vec<Entry> = Vec::new();
    for a in left {
        for b in right {
            let narrower = if a.covers(b) {
                b
            } else if b.covers(a) {
                a
            } else {
                continue;
            };
            if !both.contains(narrower) {
                both.push(narrower.clone());
            }
        }
    }
    both
}

/// Folders that do not exist for any stage: files in `.git/` can make programs run, and `.glovebox/` contains the records
/// of runs.
pub const ALWAYS_HIDDEN: [&str; 2] = [".git/", ".glovebox/"];

/// What a stage may do with one path. Later values allow more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// The path does not exist for the stage, whatever is granted.
    Hidden,
    /// The path does not exist for the stage, because nothing grants it.
    Absent,
    /// The path is an ancestor of a granted path. It can be examined and listed; the list contains only granted paths.
    Traverse,
    /// The path may be read.
    Read,
    /// The path may be read, created, changed, renamed and removed.
    Write,
}

/// The scope of a stage. It denies everything that no entry grants.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Paths that may be read.
    #[serde(default)]
    pub read: Vec<Entry>,
    /// Paths that may be written and read.
    #[serde(default)]
    pub write: Vec<Entry>,
    /// Paths that are hidden with everything below them, whether or not they have a final slash.
    #[serde(default)]
    pub hidden: Vec<Entry>,
    /// Paths that may be written, but whose changes are deleted after the stage. Such changes are not committed, and they are not
    /// a violation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<Entry>,
}

impl Scope {
    /// Creates a scope. It denies every path that no entry of `read` or `write` grants, and everything at or below `hidden`.
    pub fn new(read: Vec<Entry>, write: Vec<Entry>, hidden: Vec<Entry>) -> Self {
        Self { read, write, hidden, scratch: Vec::new() }
    }

    /// Adds paths that may be written and are deleted after the stage. Hidden entries override them.
    #[must_use]
    pub fn with_scratch(self, scratch: Vec<Entry>) -> Self {
        Self { scratch, ..self }
    }

    /// Returns the scope that grants the whole workspace.
    pub fn everything() -> Self {
        Self::new(vec![Entry::whole()], vec![Entry::whole()], Vec::new())
    }

    /// Returns the scope of a folder that is not hidden, relative to the folder.
    #[must_use]
    pub fn below(&self, folder: &ScopePath) -> Self {
        let below = |entries: &[Entry]| entries.iter().filter_map(|entry| entry.below(folder)).collect();
        Self {
            read: below(&self.read),
            write: below(&self.write),
            hidden: below(&self.hidden),
            scratch: below(&self.scratch),
        }
    }

    /// Returns what the stage may do with `path`. With the write entry `out/` the directory `out` itself can only be read: it
    /// must not be removed, renamed or replaced. [`Scope::may_create_directory`] decides whether it may be created.
    pub fn access(&self, path: &ScopePath) -> Access {
        if self.is_hidden(path) {
            return Access::Hidden;
        }
        if self.changeable().any(|entry| writes(entry, path)) {
            return Access::Write;
        }
        if self.granted().any(|entry| entry.contains(path)) {
            return Access::Read;
        }
        if path.is_root() || self.granted().any(|entry| entry.path.is_below(path)) {
            return Access::Traverse;
        }
        Access::Absent
    }

    /// Returns true if everything may be read except hidden folders. Then no single file is hidden from a reader of its folder.
    pub fn shows_all_files(&self) -> bool {
        self.read.contains(&Entry::whole()) && self.hidden.iter().all(Entry::is_subtree)
    }

    /// Returns true if everything may be read except these folders and those that are hidden from every stage.
    pub fn shows_all_but(&self, folders: &[Entry]) -> bool {
        let is_always = |entry: &Entry| ALWAYS_HIDDEN.contains(&entry.to_string().as_str());
        self.read.contains(&Entry::whole())
            && self.hidden.iter().all(|entry| is_always(entry) || folders.contains(entry))
    }

    /// Returns true if `path` is at or below a hidden entry.
    pub fn is_hidden(&self, path: &ScopePath) -> bool {
        self.hidden.iter().any(|entry| path.starts_with(&entry.path))
    }

    /// Returns true if a hidden entry is at or below `path`, so that moving or removing `path` would also affect hidden files.
    pub fn hides_below(&self, path: &ScopePath) -> bool {
        self.hidden.iter().any(|entry| entry.path.starts_with(path))
    }

    /// Returns true if something at or below `path` may be read.
    pub fn readable_below(&self, path: &ScopePath) -> bool {
        self.access(path) >= Access::Traverse
    }

    /// Returns true if `path` and every possible path below it may be written, so that a directory may be moved there or away.
    pub fn writable_subtree(&self, path: &ScopePath) -> bool {
        !self.hides_below(path)
            && !self.is_hidden(path)
            && self.changeable().any(|entry| entry.subtree && path.is_below(&entry.path))
    }

    /// Returns true if a directory may be created at `path`: below a writable folder, or as an ancestor of a write entry that
    /// needs it. A path with an exact entry is a file, not a directory.
    pub fn may_create_directory(&self, path: &ScopePath) -> bool {
        let allows = |entry: &Entry| (entry.subtree && path.is_below(&entry.path)) || leads_to(path, entry);
        !self.is_hidden(path) && self.changeable().any(allows)
    }

    /// Returns true if some path may be written.
    pub fn may_write(&self) -> bool {
        self.changeable().next().is_some()
    }

    /// Returns true if changes at `path` are deleted after the stage.
    pub fn is_scratch(&self, path: &ScopePath) -> bool {
        !self.is_hidden(path) && self.scratch.iter().any(|entry| entry.contains(path))
    }

    /// Returns true if a change of `path` itself may be committed: the path is writable and not scratch.
    pub fn commits(&self, path: &ScopePath) -> bool {
        !self.is_hidden(path) && !self.is_scratch(path) && self.write.iter().any(|entry| writes(entry, path))
    }

    /// As [`Scope::commits`], but for a directory that is created or removed. Also returns true for a directory that a
    /// write entry needs.
    pub fn commits_directory(&self, path: &ScopePath) -> bool {
        self.commits(path)
            || (!self.is_hidden(path) && !self.is_scratch(path) && self.write.iter().any(|entry| leads_to(path, entry)))
    }

    /// Returns true if the result of a commit may have a directory at `path`: below a granted folder, or as an ancestor of a
    /// write entry. A path with an exact entry is a file, not a directory.
    pub fn commits_as_directory(&self, path: &ScopePath) -> bool {
        let grants = |entry: &Entry| (entry.subtree && path.is_below(&entry.path)) || leads_to(path, entry);
        self.commits_directory(path) && self.write.iter().any(grants)
    }

    /// Returns true if a scratch entry is at or below `path`, so that the entry may need the directory.
    pub fn leads_to_scratch(&self, path: &ScopePath) -> bool {
        !self.is_hidden(path) && self.scratch.iter().any(|entry| leads_to(path, entry))
    }

    /// Returns true if every possible path below `path` is granted, except hidden ones.
    pub fn grants_all_below(&self, path: &ScopePath) -> bool {
        self.granted().any(|entry| entry.subtree && entry.contains(path))
    }

    fn granted(&self) -> impl Iterator<Item = &Entry> {
        self.read.iter().chain(self.changeable())
    }

    fn changeable(&self) -> impl Iterator<Item = &Entry> {
        self.write.iter().chain(&self.scratch)
    }
}

/// Returns true if a write entry allows to change `path` itself.
fn writes(entry: &Entry, path: &ScopePath) -> bool {
    if entry.subtree { path.is_below(&entry.path) } else { *path == entry.path }
}

fn leads_to(path: &ScopePath, entry: &Entry) -> bool {
    entry.path.is_below(path) || (entry.subtree && entry.path == *path)
}

impl fmt::Display for Scope {
    /// Writes the scope in the form in which the user would write it, such as
    /// `read = ["src/"], write = ["REVIEW.md"], hidden = []`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |entries: &[Entry]| {
            entries.iter().map(|entry| format!("{:?}", entry.to_string())).collect::<Vec<_>>().join(", ")
        };
        write!(f, "read = [{}], write = [{}], hidden = [{}]", list(&self.read), list(&self.write), list(&self.hidden))?;
        if self.scratch.is_empty() { Ok(()) } else { write!(f, ", scratch = [{}]", list(&self.scratch)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(texts: &[&str]) -> Vec<Entry> {
        texts.iter().map(|text| Entry::parse(text).unwrap()).collect()
    }

    fn path(text: &str) -> ScopePath {
        ScopePath::parse(text).unwrap()
    }

    #[test]
    fn entries_print_as_written() {
        for text in ["src/", "src/main.rs", "./"] {
            assert_eq!(Entry::parse(text).unwrap().to_string(), text);
        }
        for (text, printed) in [(".", "./"), ("./src/", "src/"), ("./a", "a")] {
            assert_eq!(Entry::parse(text).unwrap().to_string(), printed);
        }
        for text in ["", "/", "..", "../x", "/etc/", "a//b", "././src", ".//", ".//etc", "a/./b", "a\0", "src//"] {
            assert!(Entry::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_folder_has_the_part_of_the_scope_that_is_about_it() {
        let scope = Scope::new(
            entries(&["./", "lib/src/", "lib/a", "library/"]),
            entries(&["lib/out/"]),
            entries(&[".git/", "lib/secret", "lib/x/"]),
        );
        let below = scope.below(&path("lib"));
        assert_eq!(below.read, entries(&["./", "src/", "a"]));
        assert_eq!((below.write, below.hidden), (entries(&["out/"]), entries(&["secret", "x/"])));
        let narrow = Scope::new(entries(&["lib/src/", "lib"]), Vec::new(), Vec::new());
        assert_eq!(narrow.below(&path("lib")).read, entries(&["src/"]));
        assert_eq!(narrow.below(&path("lib/src/deep")).read, entries(&["./"]));
    }

    #[test]
    fn access_follows_the_most_permissive_grant_and_hidden_wins() {
        let scope = Scope::new(
            entries(&["src/", "docs/a.md"]),
            entries(&["out/", "src/main.rs"]),
            entries(&["src/secret", "out/h/"]),
        );
        let check = |text: &str, expected: Access| assert_eq!(scope.access(&path(text)), expected, "{text}");
        check("", Access::Traverse);
        check("src", Access::Read);
        check("src/lib.rs", Access::Read);
        check("src/main.rs", Access::Write);
        check("src/main.rs/x", Access::Read);
        check("src/secret", Access::Hidden);
        check("src/secret/deep", Access::Hidden);
        check("src/secret2", Access::Read);
        check("docs", Access::Traverse);
        check("docs/a.md", Access::Read);
        check("docs/b.md", Access::Absent);
        check("out", Access::Read);
        check("out/x/y", Access::Write);
        check("out/h", Access::Hidden);
        check("outer", Access::Absent);
    }

    #[test]
    fn a_path_that_is_hidden_from_one_stage_is_missing_in_the_whole() {
        let shows = |read: &[&str], hidden: &[&str], folders: &[&str]| {
            Scope::new(entries(read), Vec::new(), entries(hidden)).shows_all_but(&entries(folders))
        };
        assert!(shows(&["./"], &ALWAYS_HIDDEN, &[]) && shows(&["./"], &[".git/", "tests/held/"], &["tests/held/"]));
        assert!(!shows(&["./"], &["secret/"], &[]) && !shows(&["./"], &["tests/held/a/"], &["tests/held/"]));
        assert!(!shows(&["src/"], &[], &[]));
    }

    #[test]
    fn only_a_whole_scope_without_hidden_files_shows_all_files() {
        let shows =
            |read: &[&str], hidden: &[&str]| Scope::new(entries(read), Vec::new(), entries(hidden)).shows_all_files();
        assert!(shows(&["./"], &[]) && shows(&["src/", "./"], &[".git/", "scenarios/"]));
        assert!(!shows(&["src/"], &[]) && !shows(&["./"], &["AGENTS.md"]) && !shows(&[], &[]));
    }

    #[test]
    fn subtree_rules_guard_renames() {
        let scope = Scope::new(entries(&["./"]), entries(&["out/", "a/b/c.md"]), entries(&["out/x/hold/"]));
        assert!(
            scope.hides_below(&path("out/x")) && scope.hides_below(&path("out")) && !scope.hides_below(&path("out/y"))
        );
        assert!(scope.writable_subtree(&path("out/y")));
        assert!(!scope.writable_subtree(&path("out/x")) && !scope.writable_subtree(&path("out")));
        assert!(!scope.writable_subtree(&path("a/b/c.md")) && !scope.writable_subtree(&path("out/x/hold/z")));
        for (text, expected) in [
            ("out", true),
            ("a", true),
            ("a/b", true),
            ("a/z", false),
            ("a/b/c.md", false),
            ("a/b/c.md/d", false),
            ("out/n", true),
            ("out/x/hold", false),
        ] {
            assert_eq!(scope.may_create_directory(&path(text)), expected, "{text}");
        }
    }

    #[test]
    fn everything_denies_only_the_root_itself() {
        assert_eq!(Scope::everything().access(&path("a/b")), Access::Write);
        assert_eq!(Scope::everything().access(&ScopePath::root()), Access::Read);
        assert_eq!(Scope::default().access(&path("a")), Access::Absent);
    }

    #[test]
    fn scratch_is_writable_and_never_committed() {
        let scope = Scope::new(entries(&["./"]), entries(&["src/"]), entries(&["src/tmp/secret"]))
            .with_scratch(entries(&["src/tmp/", "cache/deep/", "one.db"]));
        for (text, access, commits, scratch) in [
            ("src/a", Access::Write, true, false),
            ("src/tmp", Access::Write, false, true),
            ("src/tmp/a", Access::Write, false, true),
            ("src/tmp/secret", Access::Hidden, false, false),
            ("cache", Access::Read, false, false),
            ("cache/deep/x", Access::Write, false, true),
            ("one.db", Access::Write, false, true),
            ("one.db/x", Access::Read, false, false),
        ] {
            let path = path(text);
            let got = (scope.access(&path), scope.commits(&path), scope.is_scratch(&path));
            assert_eq!(got, (access, commits, scratch), "{text}");
        }
        assert!(scope.leads_to_scratch(&path("cache")) && !scope.commits_directory(&path("cache")));
        assert!(scope.may_create_directory(&path("cache")) && !scope.commits_directory(&path("cache/deep")));
    }

    #[test]
    fn intersection_keeps_the_narrower_entry() {
        let check = |a: &[&str], b: &[&str], expected: &[&str]| {
            assert_eq!(intersect(&entries(a), &entries(b)), entries(expected));
        };
        check(&["src/"], &["src/main.rs"], &["src/main.rs"]);
        check(&["src/main.rs"], &["./"], &["src/main.rs"]);
        check(&["src/"], &["docs/"], &[]);
        check(&["src/"], &["src"], &[]);
        check(&["src/", "docs/"], &["./", "src/a/"], &["src/", "src/a/", "docs/"]);
    }

    #[test]
    fn a_scope_prints_as_grants() {
        let scope = Scope::new(entries(&["src/"]), entries(&["REVIEW.md"]), vec![]);
        assert_eq!(scope.to_string(), r#"read = ["src/"], write = ["REVIEW.md"], hidden = []"#);
    }
}
