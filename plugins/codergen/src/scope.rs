//! What a subagent may write: paths within those of its stage.
//!
//! The host holds the stage to its own paths, whatever is decided here.

use crate::path::WorkspacePath;
use std::fmt;

/// Paths that may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WriteBounds(Vec<Entry>);

/// A path as a node writes it: `src/` with all below it, `src/a.rs` alone, `./` for all.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry(String);

impl WriteBounds {
    /// The paths of a stage; all if it names none.
    pub(crate) fn of_stage(allowed_write_paths: Option<&str>) -> Self {
        let paths = allowed_write_paths.unwrap_or("./").split(',').map(str::trim);
        Self(paths.filter(|path| !path.is_empty()).map(|path| Entry(path.to_owned())).collect())
    }

    /// The paths that a subagent is given.
    ///
    /// # Errors
    /// The first one that is not within those of the stage.
    pub(crate) fn within(&self, paths: Vec<String>) -> Result<Self, String> {
        let asked = Self(paths.into_iter().map(Entry).collect());
        match asked.0.iter().find(|entry| !self.covers(entry)) {
            Some(entry) => Err(format!("`{}` is not within what this stage may write: {self}", entry.0)),
            None => Ok(asked),
        }
    }

    /// True if everything of the other is in it.
    pub(crate) fn covers_all(&self, other: &Self) -> bool {
        other.0.iter().all(|entry| self.covers(entry))
    }

    pub(crate) fn contain(&self, path: WorkspacePath<'_>) -> bool {
        path.names().all(|name| name != "..") && self.0.iter().any(|entry| entry.leads_to(path))
    }

    fn covers(&self, wanted: &Entry) -> bool {
        let path = WorkspacePath(&wanted.0);
        let is_covered = |entry: &Entry| (entry.is_folder() || !wanted.is_folder()) && entry.leads_to(path);
        !wanted.0.starts_with('/') && path.names().all(|name| name != "..") && self.0.iter().any(is_covered)
    }
}

impl Entry {
    fn is_folder(&self) -> bool {
        self.0.ends_with('/') || self.0 == "."
    }

    /// True if it means this path.
    fn leads_to(&self, path: WorkspacePath<'_>) -> bool {
        let mut names = path.names();
        WorkspacePath(&self.0).names().all(|name| names.next() == Some(name))
            && (self.is_folder() || names.next().is_none())
    }
}

impl fmt::Display for WriteBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<&str> = self.0.iter().map(|entry| entry.0.as_str()).collect();
        if paths.is_empty() { f.write_str("nothing") } else { write!(f, "only here: {}", paths.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagent_gets_a_part_and_never_more() {
        let stage = WriteBounds::of_stage(Some("src/, docs/a.md"));
        let within = |path: &str| stage.within(vec![path.to_owned()]).is_ok();
        for path in ["src/", "src/a.rs", "./src/deep/", "docs/a.md"] {
            assert!(within(path), "{path}");
        }
        for path in ["./", ".", "", "docs/", "docs/a.md/", "docs/b.md", "src2/", "/src/", "src/../docs/", "..", "src"] {
            assert_eq!(within(path), path == "src", "{path}");
        }
        assert!(WriteBounds::of_stage(None).within(vec!["./".to_owned(), "a".to_owned()]).is_ok());
        assert!(WriteBounds::of_stage(Some("")).within(vec!["a".to_owned()]).is_err());
        assert_eq!(WriteBounds::of_stage(Some("")).to_string(), "nothing");
    }

    #[test]
    fn paths_are_compared_by_their_names() {
        let bounds = WriteBounds::of_stage(Some("src/,a.md"));
        let contains = |path| bounds.contain(WorkspacePath(path));
        assert!(contains("src/x") && contains("./src//x") && contains("a.md"));
        assert!(!contains("src2/x") && !contains("src/../b") && !contains("a.md/x") && !contains("b") && !contains(""));
        assert!(bounds.covers_all(&WriteBounds::of_stage(Some("src/a"))));
        assert!(!bounds.covers_all(&WriteBounds::of_stage(None)));
    }
}
