//! Readable, writable and hidden paths of a stage, as entries over paths.
//!
//! An entry with a final `/` means the subtree, any other exactly that path. A hidden entry overrides all others, and hides everything
//! below it. This module knows rules, not disks: the sandbox enforces
//! them.

use crate::path::{ScopePath, ScopePathProblem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a text is no entry of a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no path of a scope: {problem}; expected `dir/` for a subtree, `dir/file` for one path or `./` for the whole workspace"
)]
pub struct EntryProblem {
    /// The text of the entry.
    pub text: String,
    /// The problem.
    pub problem: ScopePathProblem,
}

/// One path of a grant, as the user writes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Entry {
    path: ScopePath,
    subtree: bool,
}

impl Entry {
    /// Reads `dir/` (subtree), `dir/file` (exact), or `./` and `.` (the whole workspace); `./dir/` is `dir/`. Pipeline files and
    /// `glovebox.toml` have this one grammar; printed is always the spelling without `./`, and `./` for the whole workspace.
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

    /// The same path as a folder, with or without a final slash.
    pub fn as_folder(&self) -> Self {
        Self::folder(self.path.clone())
    }

    /// Returns the path without the final slash.
    pub fn path(&self) -> &ScopePath {
        &self.path
    }

    /// True when everything below the path is meant too.
    pub fn is_subtree(&self) -> bool {
        self.subtree
    }

    /// True when the entry means `path`; a subtree means its own directory too.
    pub fn contains(&self, path: &ScopePath) -> bool {
        if self.subtree { path.starts_with(&self.path) } else { *path == self.path }
    }

    /// True when every path another entry grants is granted by this one as well. `src/` does not cover the exact entry
    /// `src`, which for writing would allow to remove the directory.
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

/// Returns the entries that both lists grant; order of `left`, without doubles.
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

/// Access to one path, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Does not exist for the stage, with any grants.
    Hidden,
    /// Does not exist for the stage because nothing grants it.
    Absent,
    /// An ancestor of a granted path: can be examined and listed, and the listing shows only granted paths.
    Traverse,
    /// May be read.
    Read,
    /// May be read, created, changed, renamed and removed.
    Write,
}

/// The scope of a stage. Denies everything that no entry grants.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Readable paths.
    #[serde(default)]
    pub read: Vec<Entry>,
    /// Writable paths, which are readable too.
    #[serde(default)]
    pub write: Vec<Entry>,
    /// Hidden paths, with everything below them, final slash or not.
    #[serde(default)]
    pub hidden: Vec<Entry>,
    /// Paths that may be written like granted ones, and whose changes are dropped after the stage: neither committed nor a violation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<Entry>,
}

impl Scope {
    /// Makes a scope. Denied: every path that no entry of `read` or `write` names, and everything at or below `hidden`.
    pub fn new(read: Vec<Entry>, write: Vec<Entry>, hidden: Vec<Entry>) -> Self {
        Self { read, write, hidden, scratch: Vec::new() }
    }

    /// Adds what may be written and is dropped. Hidden entries win over it.
    #[must_use]
    pub fn with_scratch(self, scratch: Vec<Entry>) -> Self {
        Self { scratch, ..self }
    }

    /// Returns the scope that denies nothing inside the root.
    pub fn everything() -> Self {
        Self::new(vec![Entry::whole()], vec![Entry::whole()], Vec::new())
    }

    /// Says what may be done with `path`. For the write entry `out/` the directory `out` itself is only readable: it may not
    /// be removed, renamed or replaced (see [`Scope::may_create_directory`] for making it).
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

    /// True if everything may be read but what lies in hidden folders: then no single file is missing for the reader.
    pub fn shows_all_files(&self) -> bool {
        self.read.contains(&Entry::whole()) && self.hidden.iter().all(Entry::is_subtree)
    }

    /// True when `path` is at or below a hidden entry.
    pub fn is_hidden(&self, path: &ScopePath) -> bool {
        self.hidden.iter().any(|entry| path.starts_with(&entry.path))
    }

    /// True when a hidden entry lies at or below `path`, so that moving or removing `path` would take it along.
    pub fn hides_below(&self, path: &ScopePath) -> bool {
        self.hidden.iter().any(|entry| entry.path.starts_with(path))
    }

    /// True when something at or below `path` may be read.
    pub fn readable_below(&self, path: &ScopePath) -> bool {
        self.access(path) >= Access::Traverse
    }

    /// True when `path` and every possible path below it are writable, so that a directory may be moved there or away.
    pub fn writable_subtree(&self, path: &ScopePath) -> bool {
        !self.hides_below(path)
            && !self.is_hidden(path)
            && self.changeable().any(|entry| entry.subtree && path.is_below(&entry.path))
    }

    /// True when a directory may be made at `path`: below a subtree that may be written, or on the way to a write entry, which
    /// could not be used without it. An exact entry is a file's.
    pub fn may_create_directory(&self, path: &ScopePath) -> bool {
        let allows = |entry: &Entry| (entry.subtree && path.is_below(&entry.path)) || leads_to(path, entry);
        !self.is_hidden(path) && self.changeable().any(allows)
    }

    /// True when some path may be written.
    pub fn may_write(&self) -> bool {
        self.changeable().next().is_some()
    }

    /// True when changes at `path` are dropped after the stage.
    pub fn is_scratch(&self, path: &ScopePath) -> bool {
        !self.is_hidden(path) && self.scratch.iter().any(|entry| entry.contains(path))
    }

    /// True when a change of `path` itself may be committed: writable and not scratch.
    pub fn commits(&self, path: &ScopePath) -> bool {
        !self.is_hidden(path) && !self.is_scratch(path) && self.write.iter().any(|entry| writes(entry, path))
    }

    /// As [`Scope::commits`] for a directory that is made or removed: also those a write entry needs.
    pub fn commits_directory(&self, path: &ScopePath) -> bool {
        self.commits(path)
            || (!self.is_hidden(path) && !self.is_scratch(path) && self.write.iter().any(|entry| leads_to(path, entry)))
    }

    /// True when a directory may stand at `path`: below a subtree that is granted, or on the way to an entry. An exact entry is a
    /// file's.
    pub fn commits_as_directory(&self, path: &ScopePath) -> bool {
        let grants = |entry: &Entry| (entry.subtree && path.is_below(&entry.path)) || leads_to(path, entry);
        self.commits_directory(path) && self.write.iter().any(grants)
    }

    /// True when a scratch entry lies at or below `path`, so that the directory may be needed for it.
    pub fn leads_to_scratch(&self, path: &ScopePath) -> bool {
        !self.is_hidden(path) && self.scratch.iter().any(|entry| leads_to(path, entry))
    }

    /// True when every possible path below `path` is granted, except hidden ones.
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

/// True when a write entry allows to change `path` itself.
fn writes(entry: &Entry, path: &ScopePath) -> bool {
    if entry.subtree { path.is_below(&entry.path) } else { *path == entry.path }
}

fn leads_to(path: &ScopePath, entry: &Entry) -> bool {
    entry.path.is_below(path) || (entry.subtree && entry.path == *path)
}

impl fmt::Display for Scope {
    /// Prints the grants as the user would write them, such as `read = ["src/"], write = ["REVIEW.md"], hidden = []`.
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
