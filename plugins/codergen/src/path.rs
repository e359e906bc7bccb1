//! Paths of files, as the model names them and relative to the workspace.

use std::fmt;

/// A path as the model named it. It may be absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedPath<'a>(pub(crate) &'a str);

/// A path relative to the root of the workspace, with `/` between components. It may not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkspacePath<'a>(pub(crate) &'a str);

impl<'a> WorkspacePath<'a> {
    /// Returns the components of the path. They are the same for `./a/b`, `a//b` and `a/b`.
    pub(crate) fn names(self) -> impl Iterator<Item = &'a str> {
        self.0.split('/').filter(|name| !matches!(*name, "" | "."))
    }
}

impl fmt::Display for WorkspacePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
