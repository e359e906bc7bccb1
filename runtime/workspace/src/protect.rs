//! Paths that no stage may change, even if its write scope includes them: the table of [`glovebox_names::protected`]
//! and paths that a run adds.

use glovebox_names::protected::{inside, reason, segments};
use std::borrow::Cow;

/// Prefix of temporary files while changes are applied. A stage's file with such a name could prevent the creation of a
/// temporary file.
pub(crate) const PART_PREFIX: &str = ".glovebox-part-";

/// The protected paths: a fixed list, and paths that the caller adds, such as the pipeline file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protected {
    added: Vec<Vec<Cow<'static, str>>>,
}

impl Protected {
    /// Protects the fixed list and `added`. Each added path is relative to the workspace, and everything below it is
    /// protected too. A final slash is optional.
    pub fn new<S: AsRef<str>>(added: &[S]) -> Self {
        let owned = |path: &S| segments(path.as_ref()).into_iter().map(|name| Cow::Owned(name.into_owned())).collect();
        let added: Vec<Vec<_>> = added.iter().map(owned).collect();
        Self { added: added.into_iter().filter(|segments| !segments.is_empty()).collect() }
    }

    /// Returns the reason why `path` is protected, or `None` if it is not.
    pub fn reason(&self, path: &str) -> Option<String> {
        let segments = segments(path);
        let by_caller = || self.added_at(&segments);
        let by_prefix = || {
            let part = segments.iter().find(|segment| segment.starts_with(PART_PREFIX));
            part.map(|part| format!("`{part}` is protected: glovebox uses this name for unfinished files"))
        };
        reason(path).or_else(by_prefix).or_else(by_caller)
    }

    /// Returns true for a path that this run added, such as the pipeline file or a hold-out folder.
    pub(crate) fn is_of_run(&self, path: &str) -> bool {
        self.added_at(&segments(path)).is_some()
    }

    fn added_at(&self, segments: &[Cow<'_, str>]) -> Option<String> {
        let named = self.added.iter().find(|added| segments.starts_with(added));
        named.map(|added| format!("`{}` is protected by this run", added.join("/")))
    }

    /// Returns the reason why a folder may not be replaced: it is protected or contains a protected path.
    pub fn overlap(&self, folder: &str) -> Option<String> {
        let segments = segments(folder);
        let in_caller = || {
            let named = self.added.iter().find(|added| added.starts_with(&segments));
            named.map(|added| format!("`{}` is protected by this run", added.join("/")))
        };
        self.reason(folder).or_else(|| inside(folder)).or_else(in_caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_protected_paths_are_found() {
        let protected = Protected::new(&["pipelines/build.dot", "scripts/scenarios/"]);
        let yes = [
            ".git",
            ".git/hooks/post-checkout",
            "sub/.git/config",
            ".GIT/config",
            ".g\u{200c}it/config",
            ".git./config",
            ".git /config",
            ".git::$INDEX_ALLOCATION/config",
            "GIT~1/config",
            ".github/workflows/ci.yml",
            ".GitHub/Workflows",
            "glovebox.toml",
            "sub/Glovebox.lock",
            ".cargo/config.toml",
            ".envrc",
            "src/.Glovebox-part-0123456789abcdef",
            "Jenkinsfile",
            ".circleci/config.yml",
            ".devcontainer/devcontainer.json",
            ".husky/pre-commit",
            ".npmrc",
            "web/.codex/config.toml",
            ".Cursor/rules/x.mdc",
            ".direnv/bin/x",
            "pipelines/Build.dot",
            "scripts/scenarios",
            "scripts/scenarios/one.md",
        ];
        yes.iter().for_each(|path| assert!(protected.reason(path).is_some(), "{path:?}"));
        let no = [
            "src/main.rs",
            ".gitignore",
            ".factory/bin/tool",
            "AGENTS.md",
            "CLAUDE.md",
            "docs/jenkins",
            "git",
            ".github/CODEOWNERS",
            "pipelines",
            "scripts/scenarios2",
            "a.git",
            "...",
        ];
        no.iter().for_each(|path| assert_eq!(protected.reason(path), None, "{path:?}"));
        let holds = [".github/", "sub/.GitHub", "scripts/", "pipelines", ".config/", ".git/", "scripts/scenarios/a/"];
        holds.iter().for_each(|path| assert!(protected.overlap(path).is_some(), "{path:?}"));
        let holds_none = ["target/", "scripts2/", ".github/issues/", "src/"];
        holds_none.iter().for_each(|path| assert_eq!(protected.overlap(path), None, "{path:?}"));
    }
}
