//! A part of a project: one kind in one folder, with the commands that build and test it.

use super::environment::Environment;
use super::folder::Folder;
use super::kind::Kind;
use crate::config::Toolchain;

/// The test command of a project in which no tests were found. It fails, so that nothing counts as tested.
const NO_COMMAND: &str = "echo 'nothing tests this project yet: write your command into the stage test'; exit 1";

/// A part of a project: one kind in one folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// The name of the kind.
    pub kind: &'static str,
    /// The folder of the part, with a final `/`. Empty for the root.
    pub folder: String,
    /// The file that shows the kind, for messages.
    pub found: String,
    /// The toolchains that the commands need.
    pub toolchains: Vec<Toolchain>,
    /// Programs that the commands need and that no toolchain contains.
    pub programs: Vec<&'static str>,
    /// The commands, in order.
    pub steps: Vec<Step>,
    /// Folders of build results that git does not ignore, relative to the project's root.
    pub caches: Vec<String>,
    /// Folders of build results that git ignores, relative to the project's root.
    pub build_folders: Vec<String>,
    /// By-products that are discarded, relative to the project's root.
    pub scratch: Vec<String>,
    /// The scripts that the commands name. A stage that repairs a failure must be able to change them too.
    pub scripts: Vec<&'static str>,
    /// The Python environment in which the commands run.
    pub environment: Option<Environment>,
    /// What the user should know or do before the first run.
    pub notes: Vec<String>,
    /// True if the part has files with tests, or names its test command itself.
    pub(super) has_tests: bool,
}

/// A command of a part.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// The purpose of the command.
    pub purpose: Purpose,
    /// The command as a shell text. It runs in the folder of its part.
    pub command: String,
    /// Why this command was chosen, for the reader of the pipeline.
    pub why: &'static str,
    /// Files other than by-products that the command may write, relative to the folder of its part.
    pub writes: Vec<&'static str>,
}

/// The purpose of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Builds what the test needs.
    Build,
    /// Tests the project.
    Test,
}

impl Purpose {
    /// Returns the name of the stage with such a command.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Test => "test",
        }
    }
}

impl Step {
    /// Creates a command that builds.
    pub(super) fn build(command: impl Into<String>, why: &'static str) -> Self {
        Self { purpose: Purpose::Build, command: command.into(), why, writes: Vec::new() }
    }

    /// Creates a command that tests.
    pub(super) fn test(command: impl Into<String>, why: &'static str) -> Self {
        Self { purpose: Purpose::Test, command: command.into(), why, writes: Vec::new() }
    }

    /// Creates the test command of a project in which no tests were found.
    pub(super) fn missing() -> Self {
        Self::test(
            NO_COMMAND,
            "Nothing that tests the project was found. Write your command here; until then the stage fails.",
        )
    }
}

impl Part {
    /// Creates a part without commands.
    pub(super) fn new(kind: &'static Kind, folder: &Folder) -> Self {
        let marker = kind.markers.iter().find(|marker| folder.has(marker)).unwrap_or(&"");
        let below = |names: &[&str], is_needed: &dyn Fn(&str) -> bool| -> Vec<String> {
            let needed = names.iter().filter(|name| is_needed(name) && !name.contains('*'));
            needed.map(|name| format!("{}{name}", folder.below())).collect()
        };
        // Without a `.gitignore`, `glovebox init` writes one that names these folders.
        let has_rules = folder.project().join(".gitignore").symlink_metadata().is_ok();
        let is_cache = |name: &str| has_rules && !folder.has(name.trim_end_matches('/')) && !folder.ignores(name);
        Self {
            folder: folder.below().to_owned(),
            found: format!("{}{marker}", folder.below()),
            toolchains: kind.toolchains.to_vec(),
            // A folder that git tracks is a part of the project. A folder that git ignores is kept without a setting, and as
            // a cache it would be a mount point, which a build cannot delete.
            caches: below(kind.caches, &is_cache),
            build_folders: below(kind.caches, &|name| !is_cache(name)),
            scratch: below(kind.byproducts, &|name| {
                // A folder that can be at any depth has no fixed path. A variable keeps it out of the workspace instead.
                name.ends_with('/') && name != "__pycache__/" && folder.ignores(name)
            }),
            ..Self::plain(kind.name)
        }
    }

    /// Creates a part in the root without commands, toolchains and folders.
    pub(super) fn plain(kind: &'static str) -> Self {
        Self {
            kind,
            folder: String::new(),
            found: String::new(),
            toolchains: Vec::new(),
            programs: Vec::new(),
            steps: Vec::new(),
            caches: Vec::new(),
            build_folders: Vec::new(),
            scratch: Vec::new(),
            scripts: Vec::new(),
            environment: None,
            notes: Vec::new(),
            has_tests: false,
        }
    }

    /// Returns the test command, as a user would type it in the root of the project.
    pub(super) fn test_command(&self) -> Option<String> {
        let step = self.steps.iter().find(|step| step.purpose == Purpose::Test)?;
        Some(match self.folder.trim_end_matches('/') {
            "" => step.command.clone(),
            folder => format!("cd {folder} && {}", step.command),
        })
    }
}
