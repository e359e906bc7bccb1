//! Decides which folders and files a stage that repairs the code may write: the folders and files with sources, but
//! never the tests.

use super::folder::{Entry, Folder};
use super::part::Part;
use glovebox_record::scope;
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum number of paths in a scope. A longer list would not help a reader.
const PATHS_MAX: usize = 20;
/// Maximum number of entries of the root that are read for a help text, and of paths that it offers, because `check` must
/// take only milliseconds.
const LOOKED_AT_MAX: usize = 40;
const OFFERED_MAX: usize = 4;
/// The scope if no folder has sources yet.
const NEW_PROJECT: &str = "src/";

/// File name endings of source files.
const SOURCES: [&str; 32] = [
    ".rs", ".go", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".vue", ".svelte", ".py", ".pyx", ".java", ".kt",
    ".scala", ".c", ".h", ".cc", ".cxx", ".cpp", ".hh", ".hxx", ".hpp", ".rb", ".php", ".cs", ".swift", ".lua", ".sh",
    ".bash", ".zsh", ".awk",
];
/// Folders in which a file without an ending is a source file too, such as a program of a shell project.
const PROGRAMS: [&str; 6] = ["bin/", "sbin/", "libexec/", "lib/", "src/", "share/"];

/// Folders that are not sources of the project: tests, documents, tools, and code of other authors.
const OTHERS: [&str; 24] = [
    "test/",
    "tests/",
    "spec/",
    "specs/",
    "__tests__/",
    "e2e/",
    "testdata/",
    "fixtures/",
    "doc/",
    "docs/",
    "examples/",
    "benches/",
    "scripts/",
    "tools/",
    "vendor/",
    "third_party/",
    "node_modules/",
    "target/",
    "dist/",
    "build/",
    "out/",
    "coverage/",
    "venv/",
    "env/",
];

/// Files in the root that decide how the project is built or tested.
const SETTINGS: [&str; 5] = ["setup.py", "conftest.py", "noxfile.py", "build.rs", "test.sh"];

/// Returns true for a folder that is not searched.
pub(super) fn is_built(name: &str) -> bool {
    OTHERS.contains(&name)
}

/// Returns the paths of the project's sources, for `allowed_write_paths`.
pub(super) fn write_scope(root: &Folder, parts: &[Part]) -> Vec<String> {
    let folders: BTreeSet<&str> = parts.iter().map(|part| part.folder.as_str()).collect();
    let mut found = BTreeSet::new();
    for below in &folders {
        let folder = root.at(below);
        let is_other_part = |entry: &Entry| {
            let path = format!("{below}{}", entry.name);
            folders.iter().any(|other| entry.is_folder() && other.starts_with(&path))
        };
        let own = folder.entries().into_iter().filter(|entry| !is_other_part(entry));
        found.extend(own.filter_map(|entry| source(&folder, &entry)));
    }
    if found.is_empty() {
        found.insert(NEW_PROJECT.to_owned());
    }
    let scripts = parts.iter().flat_map(|part| part.scripts.iter().map(|script| (*script).to_owned()));
    found.into_iter().take(PATHS_MAX).chain(scripts).collect()
}

/// Returns the folders and files with sources in a project's root, for a help text. Empty if none is found.
pub fn sources(project: &Path) -> Vec<scope::Entry> {
    let root = Folder::root(project);
    let looked_at = root.entries().into_iter().take(LOOKED_AT_MAX);
    let found = looked_at.filter_map(|entry| scope::Entry::parse(&source(&root, &entry)?).ok());
    found.take(OFFERED_MAX).collect()
}

/// Returns the path of an entry with sources. `None` if it has none.
fn source(folder: &Folder, entry: &Entry) -> Option<String> {
    let path = format!("{}{}", folder.below(), entry.name);
    if !entry.is_folder() {
        return is_source(&entry.name).then_some(path);
    }
    let inner = folder.inner(entry);
    // Maven and Gradle keep tests and sources in the same folder `src/`.
    let is_split = entry.name == "src/" && inner.has("main");
    let is_kept = !is_built(&entry.name) && !folder.ignores(&entry.name);
    let has_sources = || {
        let is_program = PROGRAMS.contains(&entry.name.as_str());
        inner.has_file(|name| !is_built(name), |_, name| is_source(name) || (is_program && !name.contains('.')))
    };
    (is_kept && has_sources()).then(|| if is_split { format!("{path}main/") } else { path })
}

/// Returns true for a source file that is neither a test nor a settings file.
fn is_source(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_test = matches!(stem, "test" | "tests")
        || stem.starts_with("test_")
        || ["_test", ".test", ".spec", "Test"].iter().any(|end| stem.ends_with(end));
    SOURCES.iter().any(|end| name.ends_with(end)) && !is_test && !SETTINGS.contains(&name) && !name.contains(".config.")
}
