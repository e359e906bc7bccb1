//! Paths no stage may change, whatever its write scope says.
//!
//! They make programs run or settle what a run may do: repositories and hooks, CI workflows, editor, shell and agent
//! settings, Glovebox's own files. Compared without case and without what some file systems ignore in names.

/// Names that are protected wherever they stand, with everything below them.
const NAMES: &[(&str, &str)] = &[
    (".git", "the repository"),
    (".hg", "the repository"),
    (".svn", "the repository"),
    (".jj", "the repository"),
    ("git~1", "the repository"),
    (".gitattributes", "it can name programs that git runs"),
    (".gitmodules", "it can name programs that git runs"),
    (".gitconfig", "it can name programs that git runs"),
    (".glovebox", "the runs of glovebox"),
    ("glovebox.toml", "the grants of this project"),
    ("glovebox.lock", "the grants of this project"),
    (".gitlab-ci.yml", "a CI workflow"),
    (".travis.yml", "a CI workflow"),
    (".circleci", "a CI workflow"),
    (".buildkite", "a CI workflow"),
    (".drone.yml", "a CI workflow"),
    (".woodpecker", "a CI workflow"),
    (".woodpecker.yml", "a CI workflow"),
    (".woodpecker.yaml", "a CI workflow"),
    ("azure-pipelines.yml", "a CI workflow"),
    ("bitbucket-pipelines.yml", "a CI workflow"),
    ("appveyor.yml", "a CI workflow"),
    (".appveyor.yml", "a CI workflow"),
    (".cirrus.yml", "a CI workflow"),
    ("cloudbuild.yaml", "a CI workflow"),
    ("cloudbuild.yml", "a CI workflow"),
    ("buildspec.yml", "a CI workflow"),
    ("jenkinsfile", "a CI workflow"),
    (".husky", "hooks"),
    (".lefthook.yml", "hooks"),
    ("lefthook.yml", "hooks"),
    (".pre-commit-config.yaml", "hooks"),
    (".pre-commit-config.yml", "hooks"),
    (".pre-commit-hooks.yaml", "hooks"),
    (".huskyrc", "hooks"),
    (".lintstagedrc", "hooks"),
    (".overcommit.yml", "hooks"),
    (".vscode", "editor settings"),
    (".idea", "editor settings"),
    (".zed", "editor settings"),
    (".fleet", "editor settings"),
    (".devcontainer", "editor settings"),
    (".devcontainer.json", "editor settings"),
    (".exrc", "editor settings"),
    (".nvimrc", "editor settings"),
    (".nvim.lua", "editor settings"),
    (".vimrc", "editor settings"),
    (".dir-locals.el", "editor settings"),
    (".vim", "editor settings"),
    (".gdbinit", "debugger settings"),
    (".lldbinit", "debugger settings"),
    (".claude", "agent settings"),
    (".codex", "agent settings"),
    (".cursor", "agent settings"),
    (".cursorrules", "agent settings"),
    (".gemini", "agent settings"),
    (".windsurf", "agent settings"),
    (".windsurfrules", "agent settings"),
    (".aider.conf.yml", "agent settings"),
    (".continue", "agent settings"),
    (".mcp.json", "agent settings"),
    (".roo", "agent settings"),
    (".clinerules", "agent settings"),
    (".opencode", "agent settings"),
    (".kiro", "agent settings"),
    (".junie", "agent settings"),
    (".envrc", "shell settings"),
    (".bashrc", "shell settings"),
    (".bash_profile", "shell settings"),
    (".bash_login", "shell settings"),
    (".bash_logout", "shell settings"),
    (".profile", "shell settings"),
    (".zshrc", "shell settings"),
    (".zshenv", "shell settings"),
    (".zprofile", "shell settings"),
    (".zlogin", "shell settings"),
    (".zlogout", "shell settings"),
    (".kshrc", "shell settings"),
    (".cshrc", "shell settings"),
    (".tcshrc", "shell settings"),
    (".inputrc", "shell settings"),
    (".direnv", "shell settings"),
    ("mise.toml", "shell settings"),
    (".mise.toml", "shell settings"),
    (".cargo", "build settings that name programs"),
    (".npmrc", "build settings that name programs"),
    (".yarnrc", "build settings that name programs"),
    (".yarnrc.yml", "build settings that name programs"),
    (".pnpmfile.cjs", "build settings that name programs"),
    (".bazelrc", "build settings that name programs"),
];

/// A folder and a name directly in it, protected wherever the pair stands, with everything below.
const PAIRS: &[(&str, &str, &str)] = &[
    (".github", "workflows", "a CI workflow"),
    (".github", "actions", "a CI workflow"),
    (".gitea", "workflows", "a CI workflow"),
    (".forgejo", "workflows", "a CI workflow"),
    (".gitlab", "ci", "a CI workflow"),
    (".config", "nextest.toml", "build settings that name programs"),
];

/// Beginning of the names that unfinished files have while changes are applied. A stage that made one could stand in the way.
pub(crate) const PART_PREFIX: &str = ".glovebox-part-";

/// The paths nobody may write: a fixed list and what the caller adds, such as the pipeline file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protected {
    added: Vec<Vec<String>>,
}

impl Protected {
    /// Protects the fixed list and `added`: workspace-relative, a folder with everything below it, final slash or not.
    pub fn new<S: AsRef<str>>(added: &[S]) -> Self {
        let added = added.iter().map(|path| segments(path.as_ref())).filter(|segments| !segments.is_empty());
        Self { added: added.collect() }
    }

    /// Returns why `path` is protected, if it is.
    pub fn reason(&self, path: &str) -> Option<String> {
        let segments = segments(path);
        let by_name = segments.iter().find_map(|segment| {
            NAMES.iter().find(|(name, _)| segment == name).map(|(name, why)| format!("`{name}` is protected: {why}"))
        });
        let by_pair = || {
            segments.windows(2).find_map(|pair| {
                let known = PAIRS.iter().find(|(folder, name, _)| pair[0] == *folder && pair[1] == *name);
                known.map(|(folder, name, why)| format!("`{folder}/{name}` is protected: {why}"))
            })
        };
        let by_caller = || {
            let named = self.added.iter().find(|added| segments.starts_with(added));
            named.map(|added| format!("`{}` is protected by this run", added.join("/")))
        };
        let by_prefix = || {
            let part = segments.iter().find(|segment| segment.starts_with(PART_PREFIX));
            part.map(|part| format!("`{part}` is protected: the name of an unfinished file of glovebox"))
        };
        by_name.or_else(by_pair).or_else(by_prefix).or_else(by_caller)
    }

    /// Returns why a folder may not stand in for what is there: it is protected, or something is that can only be in it.
    pub fn overlap(&self, folder: &str) -> Option<String> {
        let segments = segments(folder);
        let in_pair = || {
            let known = PAIRS.iter().find(|(holder, ..)| segments.last().is_some_and(|last| last == holder));
            known.map(|(holder, name, why)| format!("`{holder}/{name}` is protected: {why}"))
        };
        let in_caller = || {
            let named = self.added.iter().find(|added| added.starts_with(&segments));
            named.map(|added| format!("`{}` is protected by this run", added.join("/")))
        };
        self.reason(folder).or_else(in_pair).or_else(in_caller)
    }
}

fn segments(path: &str) -> Vec<String> {
    path.split('/').map(fold).filter(|segment| !segment.is_empty() && segment != ".").collect()
}

/// Folds a name as the most forgiving file systems do: no case, no ignorable code points, no dots or spaces at the end, no
/// stream suffix.
fn fold(name: &str) -> String {
    let kept = name.chars().filter(|character| !is_ignorable(*character));
    let folded: String = kept.flat_map(char::to_lowercase).map(|c| if c == 'ſ' { 's' } else { c }).collect();
    let plain = folded.split(':').next().unwrap_or_default();
    let trimmed = plain.trim_end_matches(['.', ' ']);
    if trimmed.is_empty() { folded } else { trimmed.to_owned() }
}

fn is_ignorable(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}')
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
