//! Files and folders that make programs run, or decide which programs may run, merely because they exist at a path.
//!
//! The tables contain repositories and hooks, CI workflows, settings of editors, shells, agents and tools, and Glovebox's own
//! files. Names are compared without case, and without the characters that some file systems ignore ([`fold`]). The tables do not
//! contain ordinary code that a test runner or a build loads (`conftest.py`, `build.rs`, `Makefile`), plain texts (`AGENTS.md`),
//! and files that only choose among installed versions (`.nvmrc`, `.python-version`), because stages must be able to write these.

use super::visible::is_deceptive;
use std::borrow::Cow;
use std::sync::LazyLock;

/// The reason why settings of editors are protected.
const EDITOR_SETTINGS: &str = "editor settings";

/// Names that are protected in every folder, with everything below them, grouped by the reason.
#[rustfmt::skip]
const NAMES: &[(&str, &[&str])] = &[
    ("it belongs to a repository", &[
        ".git", ".hg", ".svn", ".jj", "git~1", ".bzr", ".sl", ".hgrc", "_svn", "_darcs", ".pijul", "_mtn", "_fossil_", ".fslckout",
        ".fos", ".fossil-settings", "{arch}", ".bk",
    ]),
    ("it can name programs that git runs", &[
        ".gitattributes", ".gitmodules", ".gitconfig",
    ]),
    ("it contains the runs of Glovebox", &[
        ".glovebox",
    ]),
    ("it contains the grants of this project", &[
        "glovebox.toml", "glovebox.lock",
    ]),
    ("a CI workflow", &[
        ".gitlab-ci.yml", ".travis.yml", ".circleci", ".buildkite", ".drone.yml", ".woodpecker", ".woodpecker.yml",
        ".woodpecker.yaml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml", ".cirrus.yml",
        "cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml", "jenkinsfile", ".build.yml", ".builds", ".drone.yaml",
        ".drone.star", ".drone.jsonnet", ".cirrus.star", "azure-pipelines.yaml", ".azure-pipelines", ".semaphore", ".tekton",
        ".teamcity", ".vela.yml", ".vela.yaml", ".zuul.yaml", ".zuul.d", "buildspec.yaml", ".scrutinizer.yml",
        ".readthedocs.yml", ".readthedocs.yaml",
    ]),
    ("hooks", &[
        ".husky", ".lefthook.yml", "lefthook.yml", ".pre-commit-config.yaml", ".pre-commit-config.yml",
        ".pre-commit-hooks.yaml", ".huskyrc", ".lintstagedrc", ".overcommit.yml", ".lefthook.yaml", ".lefthook.toml",
        ".lefthook.json", ".lefthook.jsonc", ".lefthook-local.yml", ".lefthook-local.yaml", ".lefthook-local.toml",
        ".lefthook-local.json", ".lefthook-local.jsonc", "lefthook.yaml", "lefthook.toml", "lefthook.json", "lefthook.jsonc",
        "lefthook-local.yml", "lefthook-local.yaml", "lefthook-local.toml", "lefthook-local.json", "lefthook-local.jsonc",
        ".lefthook", ".lefthook-local", ".githooks", ".pre-commit-hooks.yml", "prek.toml", ".huskyrc.js", ".huskyrc.json",
        ".lintstagedrc.json", ".lintstagedrc.yaml", ".lintstagedrc.yml", ".lintstagedrc.js", ".lintstagedrc.cjs",
        ".lintstagedrc.mjs", ".simple-git-hooks.js", ".simple-git-hooks.cjs", ".simple-git-hooks.json", "captainhook.json",
    ]),
    (EDITOR_SETTINGS, &[
        ".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".devcontainer.json", ".exrc", ".nvimrc", ".nvim.lua", ".vimrc",
        ".dir-locals.el", ".vim", ".helix", ".nvim", ".lvimrc", ".dir-locals-2.el", ".vs", ".theia", ".lite_project.lua",
        ".externaltoolbuilders", ".gitpod.yml", ".gitpod.yaml", ".idx", ".replit",
    ]),
    ("debugger settings", &[
        ".gdbinit", ".lldbinit", ".gdbearlyinit", ".pdbrc", ".pdbrc.toml", ".perldb",
    ]),
    ("agent settings", &[
        ".claude", ".codex", ".cursor", ".cursorrules", ".gemini", ".windsurf", ".windsurfrules", ".aider.conf.yml",
        ".continue", ".mcp.json", ".roo", ".clinerules", ".opencode", ".kiro", ".junie", ".goosehints", ".amazonq", ".augment",
        ".augment-guidelines", ".trae", ".qwen", ".crush.json", "crush.json", "opencode.json", "opencode.jsonc", ".openhands",
        ".openhands_instructions",
    ]),
    ("shell settings", &[
        ".envrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile",
        ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".inputrc", ".direnv", ".autoenv", ".autoenv.zsh",
        ".shadowenv.d", ".irbrc", ".pryrc", ".rprofile", ".ghci", ".ocamlinit", ".iex.exs",
    ]),
    ("toolchain settings that name programs", &[
        "rust-toolchain", "rust-toolchain.toml", ".tool-versions", ".mise", "mise.local.toml", ".mise.local.toml", "mise.toml",
        ".mise.toml",
    ]),
    ("build settings that name programs", &[
        ".cargo", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".bazelrc", ".yarnrc.yaml", ".yarn", ".pnp.cjs",
        ".pnp.js", ".pnp.loader.mjs", ".pnpmfile.mjs", "bunfig.toml", ".mvn", ".bazeliskrc", ".buckconfig",
        ".buckconfig.local", ".sbtopts", ".jvmopts",
    ]),
];

/// A folder, a name directly in it, and the reason why this pair is protected in every folder, with everything below it.
const PAIRS: &[(&str, &str, &str)] = &[
    ("cvs", "root", "it belongs to a repository"),
    ("bitkeeper", "triggers", "it belongs to a repository"),
    (".github", "workflows", "a CI workflow"),
    (".github", "actions", "a CI workflow"),
    (".gitea", "workflows", "a CI workflow"),
    (".forgejo", "workflows", "a CI workflow"),
    (".gitlab", "ci", "a CI workflow"),
    (".config", "nextest.toml", "build settings that name programs"),
    (".github", "copilot-instructions.md", "agent settings"),
    (".github", "instructions", "agent settings"),
    (".github", "prompts", "agent settings"),
    (".github", "chatmodes", "agent settings"),
    (".github", "agents", "agent settings"),
    (".github", "skills", "agent settings"),
    (".github", "hooks", "agent settings"),
    (".gitlab", "duo", "agent settings"),
    (".config", "mise", "toolchain settings that name programs"),
    (".config", "mise.toml", "toolchain settings that name programs"),
    ("mise", "config.toml", "toolchain settings that name programs"),
    (".bundle", "config", "build settings that name programs"),
    (".bundle", "plugin", "build settings that name programs"),
    ("gradle", "wrapper", "build settings that name programs"),
    (".config", "lefthook.yml", "hooks"),
    (".config", "lefthook.yaml", "hooks"),
    (".config", "lefthook.toml", "hooks"),
    (".config", "lefthook.json", "hooks"),
];

/// The names of [`NAMES`] with their reasons, sorted by name.
static REASONS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let mut rows: Vec<_> = NAMES.iter().flat_map(|(why, names)| names.iter().map(|name| (*name, *why))).collect();
    rows.sort_unstable();
    rows
});

/// Returns the reason why a path is protected, with the protected name in it. `None` if the path is not protected.
pub fn reason(path: &str) -> Option<String> {
    let by_name = names(path).find_map(|name| {
        let row = REASONS.binary_search_by(|(known, _)| (*known).cmp(&*name)).ok()?;
        Some(format!("`{name}` is protected: {}", REASONS[row].1))
    });
    let by_pair = || {
        names(path).zip(names(path).skip(1)).find_map(|(holder, name)| {
            let known = PAIRS.iter().find(|(folder, inside, _)| holder == *folder && name == *inside);
            known.map(|(folder, inside, why)| format!("`{folder}/{inside}` is protected: {why}"))
        })
    };
    by_name.or_else(by_pair)
}

/// Returns true if a path is protected because it belongs to the settings of an editor.
pub fn is_of_editor(path: &str) -> bool {
    let known = names(path).find_map(|name| REASONS.iter().find(|(known, _)| **known == *name));
    known.is_some_and(|(_, why)| *why == EDITOR_SETTINGS)
}

/// Returns the reason why a name directly in this folder is protected, although the folder itself is not. `None` if the
/// folder can contain no such name.
pub fn inside(folder: &str) -> Option<String> {
    let segments = segments(folder);
    let known = PAIRS.iter().find(|(holder, ..)| segments.last().is_some_and(|last| last == *holder));
    known.map(|(holder, name, why)| format!("`{holder}/{name}` is protected: {why}"))
}

/// Returns the names of a path, each folded by [`fold`], without empty names and `.`.
pub fn segments(path: &str) -> Vec<Cow<'_, str>> {
    names(path).collect()
}

fn names(path: &str) -> impl Iterator<Item = Cow<'_, str>> {
    path.split('/').map(fold).filter(|name| !name.is_empty() && name != ".")
}

/// Folds a name as the most permissive file systems do: without case, invisible characters, trailing dots and spaces, and stream
/// suffix (`:name`).
pub fn fold(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, b'!'..=b'~') && !byte.is_ascii_uppercase() && byte != b':';
    if name.bytes().all(is_plain) && !name.ends_with('.') {
        return Cow::Borrowed(name);
    }
    let kept = name.chars().filter(|character| !is_deceptive(*character));
    let folded: String = kept.flat_map(char::to_lowercase).map(|c| if c == 'ſ' { 's' } else { c }).collect();
    let plain = folded.split(':').next().unwrap_or_default();
    let trimmed = plain.trim_end_matches(['.', ' ']);
    Cow::Owned(if trimmed.is_empty() { folded } else { trimmed.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_in_every_spelling() {
        let names = NAMES.iter().flat_map(|(_, names)| names.iter().map(|name| (*name).to_owned()));
        let pairs = PAIRS.iter().map(|(folder, name, _)| format!("{folder}/{name}"));
        for name in names.chain(pairs) {
            assert_eq!(segments(&name).join("/"), name, "a row is written as it is compared");
            let (first, rest) = name.split_at(name.char_indices().nth(1).map_or(name.len(), |(at, _)| at));
            let spellings = [
                name.clone(),
                name.to_uppercase(),
                format!("deep/er/{name}/below"),
                format!("{name}. "),
                format!("{first}\u{200c}{rest}"),
                format!("{name}::$DATA"),
            ];
            spellings.iter().for_each(|path| assert!(reason(path).is_some(), "{path:?}"));
        }
    }

    #[test]
    fn no_row_stands_twice() {
        let mut names: Vec<&str> = NAMES.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn the_documentation_lists_every_row() {
        let page = include_str!("../../../docs/confinement.md");
        let names = NAMES.iter().flat_map(|(_, names)| names.iter().map(|name| format!("`{name}`")));
        let pairs = PAIRS.iter().map(|(folder, name, _)| format!("`{folder}/{name}`"));
        names.chain(pairs).for_each(|name| assert!(page.contains(&name), "docs/confinement.md lacks {name}"));
    }

    #[test]
    fn ordinary_code_and_texts_are_not_protected() {
        let free = [
            "src/main.rs",
            ".gitignore",
            ".factory/bin/tool",
            "AGENTS.md",
            "CLAUDE.md",
            "docs/jenkins",
            "git",
            ".github/CODEOWNERS",
            "a.git",
            "...",
            "conftest.py",
            "build.rs",
            "Makefile",
            ".nvmrc",
            ".python-version",
            "tools/bazel",
            "gradle/libs.toml",
            "lefthook.md",
            "src/lefthook.rs",
            "gradlew",
            ".bundle/cache",
            "copilot-instructions.md",
            "yarn.lock",
            "package.json",
        ];
        free.iter().for_each(|path| assert_eq!(reason(path), None, "{path:?}"));
        assert!(inside("gradle/").is_some() && inside("sub/.GitHub").is_some() && inside("src/").is_none());
    }
}
