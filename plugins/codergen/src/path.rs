//! Paths of files, as a model names them and as the workspace knows them.

use std::fmt;

/// A path as the model names it; it may be absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedPath<'a>(pub(crate) &'a str);

/// A path relative to the workspace's root, with `/` between names; it may still lead nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkspacePath<'a>(pub(crate) &'a str);

impl<'a> WorkspacePath<'a> {
    /// Returns the names that lead to it: `./a/b`, `a//b` and `a/b` have the same.
    pub(crate) fn names(self) -> impl Iterator<Item = &'a str> {
        self.0.split('/').filter(|name| !matches!(*name, "" | "."))
    }
}

impl fmt::Display for WorkspacePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
