//! [`WriteScope`]: the paths that a stage may write.
//!
//! The host computes the scope from the grants of the operator and the attributes of the node, and enforces it. A plugin only reads
//! it, to tell a model what is allowed, or to pass a part of it to another agent.

use std::fmt;

/// Paths that may be written.
///
/// The text of a scope continues "may write": `nothing`, or `only here: src/, docs/a.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteScope(Vec<Entry>);

/// A path as the host writes it: `src/` with everything below it, `src/a.rs` alone, or `./` for everything.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry(String);

impl WriteScope {
    /// Creates a scope of paths such as `src/`, `src/a.rs` and `./`.
    pub fn from_paths(paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(paths.into_iter().map(|path| Entry(path.into())).collect())
    }

    /// Returns the paths of the scope.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.0.as_str())
    }

    /// Returns true if the scope is the whole workspace.
    pub fn is_whole(&self) -> bool {
        self.0.iter().any(|entry| entry.is_folder() && names(&entry.0).next().is_none())
    }

    /// Returns a scope of these paths, for an agent that gets a part of this scope.
    ///
    /// # Errors
    /// The first path that is not within this scope.
    pub fn narrow(&self, paths: Vec<String>) -> Result<Self, String> {
        match paths.iter().find(|path| !self.covers(path)) {
            Some(path) => Err(path.clone()),
            None => Ok(Self::from_paths(paths)),
        }
    }

    /// Returns true if this scope allows everything that the other scope allows.
    pub fn covers_all(&self, other: &Self) -> bool {
        other.paths().all(|path| self.covers(path))
    }

    /// Returns true if a file at this path, relative to the workspace, may be written.
    pub fn contains(&self, path: &str) -> bool {
        names(path).all(|name| name != "..") && self.0.iter().any(|entry| entry.contains(path))
    }

    fn covers(&self, wanted: &str) -> bool {
        let is_folder = Entry(wanted.to_owned()).is_folder();
        let is_covered = |entry: &Entry| (entry.is_folder() || !is_folder) && entry.contains(wanted);
        !wanted.starts_with('/') && names(wanted).all(|name| name != "..") && self.0.iter().any(is_covered)
    }
}

impl Entry {
    fn is_folder(&self) -> bool {
        self.0.ends_with('/') || self.0 == "."
    }

    fn contains(&self, path: &str) -> bool {
        let mut rest = names(path);
        names(&self.0).all(|name| rest.next() == Some(name)) && (self.is_folder() || rest.next().is_none())
    }
}

/// Returns the components of a path. They are the same for `./a/b`, `a//b` and `a/b`.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !matches!(*name, "" | "."))
}

impl fmt::Display for WriteScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<&str> = self.paths().collect();
        if paths.is_empty() { f.write_str("nothing") } else { write!(f, "only here: {}", paths.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_never_more_than_the_whole() {
        let stage = WriteScope::from_paths(["src/", "docs/a.md"]);
        let is_part = |path: &str| stage.narrow(vec![path.to_owned()]).is_ok();
        for path in ["src/", "src/a.rs", "./src/deep/", "docs/a.md"] {
            assert!(is_part(path), "{path}");
        }
        for path in ["./", ".", "", "docs/", "docs/a.md/", "docs/b.md", "src2/", "/src/", "src/../docs/", "..", "src"] {
            assert_eq!(is_part(path), path == "src", "{path}");
        }
        let whole = WriteScope::from_paths(["./"]);
        assert!(whole.narrow(vec!["./".to_owned(), "a".to_owned()]).is_ok());
        assert_eq!(WriteScope::default().narrow(vec!["a".to_owned(), "b".to_owned()]), Err("a".to_owned()));
    }

    #[test]
    fn paths_are_compared_by_their_names() {
        let scope = WriteScope::from_paths(["src/", "a.md"]);
        let contains = |path| scope.contains(path);
        assert!(contains("src/x") && contains("./src//x") && contains("a.md"));
        assert!(!contains("src2/x") && !contains("src/../b") && !contains("a.md/x") && !contains("b") && !contains(""));
        assert!(scope.covers_all(&WriteScope::from_paths(["src/a"])));
        assert!(!scope.covers_all(&WriteScope::from_paths(["./"])));
    }

    #[test]
    fn a_scope_prints_what_may_be_written() {
        assert_eq!(WriteScope::from_paths(["src/", "a.md"]).to_string(), "only here: src/, a.md");
        assert_eq!(WriteScope::default().to_string(), "nothing");
        let is_whole = |path: &str| WriteScope::from_paths(["src/", path]).is_whole();
        assert!(
            is_whole("./") && is_whole(".") && !is_whole("a/") && !is_whole("") && !WriteScope::default().is_whole()
        );
    }
}
