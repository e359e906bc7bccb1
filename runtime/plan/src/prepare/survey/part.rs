//! A part of a project: one kind in one folder, with the commands that build and test it.

use super::folder::Folder;
use super::kind::Kind;
use crate::config::Toolchain;

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
    /// The commands, in order.
    pub steps: Vec<Step>,
    /// Folders of build results, relative to the project's root.
    pub caches: Vec<String>,
    /// By-products that are discarded, relative to the project's root.
    pub scratch: Vec<String>,
    /// The scripts that the commands name. A stage that repairs a failure must be able to change them too.
    pub scripts: Vec<&'static str>,
    /// What the user should know or do before the first run.
    pub notes: Vec<String>,
}

/// A command of a part.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// The purpose of the command: `build` or `test`.
    pub name: &'static str,
    /// The command as a shell text. It runs in the folder of its part.
    pub command: String,
    /// Why this command was chosen, for the reader of the pipeline.
    pub why: &'static str,
    /// Files other than by-products that the command may write, relative to the folder of its part.
    pub writes: Vec<&'static str>,
}

impl Step {
    pub(super) fn new(name: &'static str, command: impl Into<String>, why: &'static str) -> Self {
        Self { name, command: command.into(), why, writes: Vec::new() }
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
        // A folder that git tracks is a part of the project and not a by-product.
        let is_built = |name: &str| folder.ignores(name) || !folder.has(name.trim_end_matches('/'));
        Self {
            kind: kind.name,
            folder: folder.below().to_owned(),
            found: format!("{}{marker}", folder.below()),
            toolchains: kind.toolchains.to_vec(),
            steps: Vec::new(),
            caches: below(kind.caches, &is_built),
            scratch: below(kind.byproducts, &|name| {
                // A folder that can be at any depth has no fixed path. A variable keeps it out of the workspace instead.
                name.ends_with('/') && name != "__pycache__/" && folder.ignores(name)
            }),
            scripts: Vec::new(),
            notes: Vec::new(),
        }
    }
}
