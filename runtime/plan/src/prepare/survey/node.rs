//! Node projects: the scripts of `package.json`, and the program that runs them.
//!
//! From `package.json`, only the names of scripts that are in a table in this file are used. Its texts are never written into
//! the pipeline.

use super::folder::Folder;
use super::part::{Part, Step};
use crate::config::Toolchain;
use crate::prepare::toolchain;
use serde_json::Value;

/// A part of the text that `npm init` writes as the script `test`.
const NO_TESTS: &str = "no test specified";
/// Folders into which build scripts write their results. The test stage may need them.
const RESULTS: [&str; 5] = ["dist/", "build/", "lib/", "out/", ".next/"];

pub(super) fn look(folder: &Folder, part: &mut Part) {
    let package: Value = serde_json::from_str(&folder.text("package.json")).unwrap_or_default();
    if !package.is_object() {
        let file = format!("{}package.json", folder.below());
        part.notes.push(format!(
            "`{file}` could not be read, so its scripts are not used: it is not a JSON object, or larger than 1 MiB"
        ));
    }
    let script = |name: &str| package["scripts"][name].as_str().filter(|text| !text.contains(NO_TESTS));
    let installer = installer(folder);
    part.found.push_str(&format!(" ({installer})"));
    if script("build").is_some() {
        part.steps.push(Step::new("build", "npm run build", "The script `build` of package.json."));
        part.caches
            .extend(RESULTS.iter().filter(|name| folder.ignores(name)).map(|name| format!("{}{name}", folder.below())));
    }
    // A result that a later stage reads must not be discarded.
    part.scratch.retain(|name| !part.caches.contains(name));
    if script("test").is_some() {
        // With Plug'n'Play, only yarn finds the dependencies.
        let command = if folder.has(".pnp.cjs") { "yarn run test" } else { "npm test" };
        part.steps.push(Step::new(
            "test",
            command,
            "The script `test` of package.json. npm can run it without a network, whichever tool installed the dependencies.",
        ));
    }
    if part.steps.is_empty() {
        part.steps.push(Step::new(
            "test",
            "node --test",
            "No script `test` was found in package.json: node's own runner finds `*.test.js` and `test/`.",
        ));
        if !has_tests(folder) {
            part.notes.push(format!(
                "no tests found in `./{}`, and `node --test` passes without any: nothing is verified there until it has tests",
                folder.below()
            ));
        }
    }
    let is_called = ["build", "test"].into_iter().filter_map(script).any(|text| text.contains(installer));
    if installer != "npm" && is_called && !toolchain::shows(Toolchain::Node, installer) {
        part.notes.push(format!(
            "a script calls `{installer}`, which is not in the folder of node: run `npm install --global {installer}` before the first run"
        ));
    }
    let wants = |field: &str| package[field].as_object().is_some_and(|listed| !listed.is_empty());
    let is_installed = folder.has("node_modules") || folder.has(".pnp.cjs");
    if (wants("dependencies") || wants("devDependencies")) && !is_installed {
        part.notes.push(format!(
            "`{}node_modules/` is missing: run `{installer} install` before the first run",
            folder.below()
        ));
    }
}

/// Returns true if the test runner of Node would find a test in the folder or in a folder directly in it.
fn has_tests(folder: &Folder) -> bool {
    let is_test = |name: &str| {
        let stem = [".js", ".mjs", ".cjs"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or_default();
        let ends = [".test", "-test", "_test"].iter().any(|end| stem.ends_with(end));
        stem == "test" || stem.starts_with("test-") || ends
    };
    let entries = folder.entries();
    let inner = entries.iter().filter(|entry| entry.is_folder()).flat_map(|entry| folder.inner(entry).entries());
    let has_one = entries.iter().chain(&inner.collect::<Vec<_>>()).any(|entry| is_test(&entry.name));
    has_one || entries.iter().any(|entry| entry.name == "test/")
}

/// Returns the package manager, derived from its lock file.
fn installer(folder: &Folder) -> &'static str {
    let locks = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];
    locks.into_iter().find(|(lock, _)| folder.has(lock)).map_or("npm", |(_, installer)| installer)
}
