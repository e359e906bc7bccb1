//! Checks that every file with tests is part of a test binary: the module above it declares it, or it is the root of a
//! test binary of its crate. A file that nobody declares is not compiled, and its tests never run.

use crate::{files, none, root};
use std::fs;
use std::path::{Path, PathBuf};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Projects that a test reads as data.
const DATA: &str = "runtime/workspace/tests/alarm/";

/// Returns true if the file is in a folder of tests: that of a crate, or one within its sources.
fn is_test_file(path: &str) -> bool {
    let below = path.rsplit_once("/src/").map_or(path, |(_, below)| below);
    (below.starts_with("tests/") || below.contains("/tests/")) && !path.starts_with(DATA)
}

/// Returns true if the module above the file declares it.
fn is_declared(file: &Path) -> bool {
    let (Some(folder), Some(stem)) = (file.parent(), file.file_stem()) else { return false };
    let line = format!("mod {};", stem.to_string_lossy());
    let above = [folder.join("lib.rs"), folder.join("main.rs"), folder.join("mod.rs"), folder.with_extension("rs")];
    above.iter().any(|parent| read(parent).lines().any(|found| found == line))
}

/// Returns true if a manifest names the file as the root of a binary.
fn is_named(manifest: &Path, file: &Path) -> bool {
    let folder = manifest.parent().unwrap();
    let text = read(manifest);
    let named = text.lines().filter_map(|line| line.strip_prefix("path = \"")?.strip_suffix('"'));
    named.into_iter().any(|path| folder.join(path).canonicalize().is_ok_and(|found| found == file))
}

/// Returns true if cargo finds the file itself: `tests/name.rs` or `tests/name/main.rs` of a crate that allows it.
fn is_found_by_cargo(manifest: &Path, file: &Path) -> bool {
    let tests = manifest.with_file_name("tests");
    let is_root = file.parent() == Some(&tests)
        || file.ends_with("main.rs") && file.parent().and_then(Path::parent) == Some(&tests);
    is_root && !read(manifest).contains("\nautotests = false\n")
}

#[test]
fn every_file_with_tests_is_built() {
    let manifests: Vec<_> = files("toml").into_iter().filter(|path| path.ends_with("Cargo.toml")).collect();
    let manifests: Vec<_> = manifests.iter().map(|path| root().join(path)).collect();
    let has_tests = |text: &str| text.contains("#[test]\n") || text.contains("#[tokio::test");
    let (mut findings, mut count) = (Vec::new(), 0);
    for path in files("rs").into_iter().filter(|path| is_test_file(path)) {
        let file = root().join(&path);
        if !has_tests(&read(&file)) {
            continue;
        }
        count += 1;
        let is_root = |manifest: &PathBuf| is_named(manifest, &file) || is_found_by_cargo(manifest, &file);
        if !is_declared(&file) && !manifests.iter().any(is_root) {
            findings.push(format!("{path}: its tests never run: add `mod` to the `main.rs` of its test binary"));
        }
    }
    assert!(count > 200, "the search found {count} files");
    none(&findings);
}
