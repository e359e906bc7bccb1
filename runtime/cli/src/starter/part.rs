//! The look at a project: which kinds of project it has, in which folders, and what each of them can run.

use super::folder::Folder;
use super::{node, plain, python, scope};
use crate::toolchain::kind::{KINDS, Kind};
use glovebox_plan::config::Toolchain;
use std::collections::BTreeSet;
use std::path::Path;

/// What a project is made of.
#[derive(Debug, PartialEq, Eq)]
pub struct Survey {
    /// Its parts; at least one.
    pub parts: Vec<Part>,
    /// The folders and files that a stage which repairs the code may write, as `allowed_write_paths` has them.
    pub scope: Vec<String>,
    /// What a user should know or do before the first run.
    pub notes: Vec<String>,
}

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

impl Survey {
    /// Looks at a project: at its root, and at the folders directly in it for kinds that the root does not have.
    pub fn of(project: &Path) -> Self {
        let root = Folder::root(project);
        let mut parts = parts_in(&root, &BTreeSet::new());
        let at_root: BTreeSet<&str> = parts.iter().map(|part| part.kind).collect();
        for entry in root.entries().iter().filter(|entry| entry.is_folder() && !scope::is_built(&entry.name)) {
            parts.extend(parts_in(&root.inner(entry), &at_root));
        }
        if parts.is_empty() {
            parts.push(without_a_marker(&root));
        }
        let notes = parts.iter_mut().flat_map(|part| std::mem::take(&mut part.notes)).collect();
        Self { scope: scope::of(&root, &parts), parts, notes }
    }

    /// The toolchains of all parts, each once.
    pub fn toolchains(&self) -> BTreeSet<Toolchain> {
        self.parts.iter().flat_map(|part| part.toolchains.iter().copied()).collect()
    }
}

/// The kinds of one folder, without those that the root has already.
fn parts_in(folder: &Folder, known: &BTreeSet<&str>) -> Vec<Part> {
    let is_here = |kind: &&Kind| !known.contains(kind.name) && kind.markers.iter().any(|marker| folder.has(marker));
    KINDS.iter().filter(is_here).filter_map(|kind| part(kind, folder)).collect()
}

/// A project without a file that shows its kind: its own test command, else what its files tell.
fn without_a_marker(root: &Folder) -> Part {
    let plain = plain::part(root);
    let kind = KINDS.iter().find(|kind| kind.name == "Python" && plain.found == plain::NO_TESTS);
    let Some((kind, file)) = kind.zip(python::test_file(root)) else { return plain };
    let mut part = Part { found: file, ..Part::of(kind, root) };
    python::look(root, &mut part);
    part
}

fn part(kind: &'static Kind, folder: &Folder) -> Option<Part> {
    let mut part = Part::of(kind, folder);
    match kind.name {
        "Rust" => rust(folder, &mut part),
        "Go" => go(&mut part),
        "Node" => node::look(folder, &mut part),
        "Python" => python::look(folder, &mut part),
        "Maven" => maven(folder, &mut part),
        _ => part.steps.push(Step::new(
            "test",
            "gradle --offline --no-daemon test",
            "`--offline`: stages have no network. `gradle` is the one of the wrapper, if it has been downloaded.",
        )),
    }
    (!part.steps.is_empty()).then_some(part)
}

impl Part {
    fn of(kind: &'static Kind, folder: &Folder) -> Self {
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

fn rust(folder: &Folder, part: &mut Part) {
    let mut test = Step::new(
        "test",
        "cargo test --offline",
        "`--offline`: stages have no network. `cargo fetch` brings new crates before a run.",
    );
    if !folder.has("Cargo.lock") {
        test.writes.push("Cargo.lock");
    }
    part.steps.push(test);
}

fn go(part: &mut Part) {
    part.steps.push(Step::new(
        "test",
        "go test ./...",
        "Stages have no network. `go mod download` brings new modules before a run.",
    ));
}

fn maven(folder: &Folder, part: &mut Part) {
    let command = if folder.has("mvnw") && !folder.text("mvnw").is_empty() { "sh mvnw" } else { "mvn" };
    part.steps.push(Step::new(
        "test",
        format!("{command} --offline --batch-mode test"),
        "`--offline`: stages have no network. `mvn dependency:go-offline` brings what is missing before a run.",
    ));
}
