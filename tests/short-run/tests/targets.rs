//! Each target of `fuzz/` is declared, has a corpus, and is run by a test. There is no corpus without a target.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// Appends the text of all Rust files below a folder, without white space.
fn sources(folder: &Path, joined: &mut String) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            sources(&path, joined);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            joined.extend(fs::read_to_string(&path).unwrap().split_whitespace());
        }
    }
}

#[test]
fn every_target_is_run_without_a_fuzzer() {
    let targets = names("fuzz/fuzz_targets");
    assert!(targets.len() >= 8, "{targets:?}");
    assert_eq!(names("fuzz/corpus"), targets, "folders of `fuzz/corpus/`");
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    let mut tests = String::new();
    sources(&root().join("runtime"), &mut tests);
    for target in targets {
        let declared = format!("name = \"{target}\"\npath = \"fuzz_targets/{target}.rs\"");
        assert!(manifest.contains(&declared), "`fuzz/Cargo.toml` must declare `{target}`");
        let calls = [format!("run(\"{target}\","), format!("run_within(\"{target}\",")];
        assert!(calls.iter().any(|call| tests.contains(call)), "no test in `runtime/` runs `{target}`");
    }
}
