//! A part of a project: one kind in one folder, with the commands that build and test it.

use super::folder::Folder;
use super::kind::Kind;
use crate::config::Toolchain;

/// A part of a project: one kind in one folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// The name of its kind.
    pub kind: &'static str,
    /// Its folder with a final `/`; empty for the root.
    pub folder: String,
    /// What was found, for people.
    pub found: String,
    /// The toolchains that its commands need.
    pub toolchains: Vec<Toolchain>,
    /// Its commands in order.
    pub steps: Vec<Step>,
    /// Folders of build results, from the project's root.
    pub caches: Vec<String>,
    /// By-products that are dropped, from the project's root.
    pub scratch: Vec<String>,
    /// The scripts that its commands name. Who repairs a failure must be able to repair them too.
    pub scripts: Vec<&'static str>,
    /// What a user should know or do before the first run.
    pub notes: Vec<String>,
}

/// A command of a part.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is for: `build` or `test`.
    pub name: &'static str,
    /// The command for a shell, in the folder of its part.
    pub command: String,
    /// Why this command, for the reader of the pipeline.
    pub why: &'static str,
    /// Files that it may write besides by-products, relative to the folder of its part.
    pub writes: Vec<&'static str>,
}

impl Step {
    pub(super) fn new(name: &'static str, command: impl Into<String>, why: &'static str) -> Self {
        Self { name, command: command.into(), why, writes: Vec::new() }
    }
}

impl Part {
    /// A part without commands.
    pub(super) fn new(kind: &'static Kind, folder: &Folder) -> Self {
        let marker = kind.markers.iter().find(|marker| folder.has(marker)).unwrap_or(&"");
        let below = |names: &[&str], is_needed: &dyn Fn(&str) -> bool| -> Vec<String> {
            let needed = names.iter().filter(|name| is_needed(name) && !name.contains('*'));
            needed.map(|name| format!("{}{name}", folder.below())).collect()
        };
        // A folder that git keeps is a part of the project, and no by-product.
        let is_built = |name: &str| folder.ignores(name) || !folder.has(name.trim_end_matches('/'));
        Self {
            kind: kind.name,
            folder: folder.below().to_owned(),
            found: format!("{}{marker}", folder.below()),
            toolchains: kind.toolchains.to_vec(),
            steps: Vec::new(),
            caches: below(kind.caches, &is_built),
            scratch: below(kind.byproducts, &|name| {
                // One at any depth has no path. It is kept out of the tree by a variable.
                name.ends_with('/') && name != "__pycache__/" && folder.ignores(name)
            }),
            scripts: Vec::new(),
            notes: Vec::new(),
        }
    }
}
