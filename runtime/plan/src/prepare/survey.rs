//! Inspects a project: its kinds of project, their folders, and the commands that build and test them.
//!
//! The survey reads a few files of the project and runs no program. Texts from the project's files never become part of a
//! command: each command is one of the texts in this module, and contains the name of a folder only if the name has plain
//! characters.

mod folder;
pub mod kind;
mod node;
mod part;
mod plain;
mod python;
mod scope;

pub use part::{Part, Step};
pub use scope::sources;

use crate::config::Toolchain;
use folder::Folder;
use kind::{KINDS, Kind};
use std::collections::BTreeSet;
use std::path::Path;

/// The parts of a project.
#[derive(Debug, PartialEq, Eq)]
pub struct Survey {
    /// The parts of the project; at least one.
    pub parts: Vec<Part>,
    /// The folders and files that a stage which repairs the code may write, in the syntax of `allowed_write_paths`.
    pub scope: Vec<String>,
    /// What the user should know or do before the first run.
    pub notes: Vec<String>,
}

impl Survey {
    /// Inspects a project: the root, and the folders directly in it for kinds that the root does not have.
    pub fn for_project(project: &Path) -> Self {
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
        Self { scope: scope::write_scope(&root, &parts), parts, notes }
    }

    /// Returns the toolchains of all parts, each once.
    pub fn toolchains(&self) -> BTreeSet<Toolchain> {
        self.parts.iter().flat_map(|part| part.toolchains.iter().copied()).collect()
    }
}

/// Returns the parts of one folder, without the kinds that the root already has.
fn parts_in(folder: &Folder, known: &BTreeSet<&str>) -> Vec<Part> {
    let is_here = |kind: &&Kind| !known.contains(kind.name) && kind.markers.iter().any(|marker| folder.has(marker));
    KINDS.iter().filter(is_here).filter_map(|kind| part(kind, folder)).collect()
}

/// Returns the part of a project without a file that shows its kind. Its test command comes from a makefile or a test
/// script, or else from the names of Python test files.
fn without_a_marker(root: &Folder) -> Part {
    let plain = plain::part(root);
    let kind = KINDS.iter().find(|kind| kind.name == "Python" && plain.found == plain::NO_TESTS);
    let Some((kind, file)) = kind.zip(python::test_file(root)) else { return plain };
    let mut part = Part { found: file, ..Part::new(kind, root) };
    python::look(root, &mut part);
    part
}

fn part(kind: &'static Kind, folder: &Folder) -> Option<Part> {
    let mut part = Part::new(kind, folder);
    match kind.name {
        "Rust" => rust(folder, &mut part),
        "Go" => go(&mut part),
        "Node" => node::look(folder, &mut part),
        "Python" => python::look(folder, &mut part),
        "Maven" => maven(folder, &mut part),
        _ => part.steps.push(Step::new(
            "test",
            "gradle --offline --no-daemon test",
            "`--offline`: stages have no network. `gradle` is the version of the wrapper, if that version has been downloaded.",
        )),
    }
    (!part.steps.is_empty()).then_some(part)
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
