//! `wkg` of the Bytecode Alliance: both programs read what the other one publishes. `cargo xtask wkg` builds it.

use super::{Project, component, debian};
use crate::workbench::{self, not_run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `wkg oci` without TLS for this registry.
fn wkg(program: &Path, folder: &Path, words: &[&str]) {
    let output = Command::new(program).current_dir(folder).arg("oci").args(words).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "wkg oci {words:?}: {printed}");
}

#[test]
fn wkg_and_glovebox_read_each_other() {
    let program: PathBuf = workbench::root().join("target/wkg/bin/wkg");
    if !program.is_file() {
        return not_run("plugins of `wkg`", "no wkg: run `cargo xtask wkg`");
    }
    let Some(registry) = debian::start("plugins of `wkg`", "") else { return };
    let project = Project::new();
    let folder = project.bench.outside();
    let file = project.file("ours.wasm", &component("0.1.0", r#""src/""#));
    let named = |tag: &str| format!("{}/acme/todo:{tag}", registry.address);
    project.plugin(&["push", &file, &named("0.1.0")]).ends(0);
    wkg(&program, folder, &["pull", &named("0.1.0"), "--insecure", &registry.address, "-o", "theirs.wasm"]);
    assert_eq!(std::fs::read(folder.join("theirs.wasm")).unwrap(), component("0.1.0", r#""src/""#));
    project.file("new.wasm", &component("0.2.0", r#""src/""#));
    wkg(&program, folder, &["push", &named("0.2.0"), "new.wasm", "--insecure", &registry.address]);
    project.plugin(&["add", &named("0.2.0"), "--accept"]).ends(0);
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}
