//! A plugin's author outside of the repository: a new crate, its test, its component, and a run.
//!
//! The crate is built with the packages with which the example's plugin was built, so nothing is downloaded.

use crate::guests;
use crate::workbench::{Answer, Workbench, root, wasm_sysroot};
use std::path::Path;
use std::process::Command;

/// Target folder of the example that `cargo xtask components` builds. It has the packages.
const BUILT: &str = "examples/quickstart/review-plugin/target";

/// Runs cargo in a crate.
fn cargo(folder: &Path, words: &[&str]) -> Answer {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(folder).args(words).arg("--locked");
    cargo.env("CARGO_NET_OFFLINE", "true").env("CARGO_BUILD_BUILD_DIR", root().join(BUILT));
    for name in ["RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "CARGO_ENCODED_RUSTFLAGS"] {
        cargo.env_remove(name);
    }
    if let Some(sysroot) = wasm_sysroot() {
        cargo.env("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS", format!("--sysroot={}", sysroot.display()));
    }
    Answer::of(&mut cargo)
}

#[test]
fn a_new_plugin_is_tested_built_locked_and_run() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  todo [type=\"acme.todo\"]\n  start -> todo -> done\n}\n",
    );
    let made = bench.glovebox(&["plugin", "new", "acme.todo"]);
    made.ends(0)
        .says("wrote `acme-todo`")
        .says("cargo build --release --target wasm32-wasip2")
        .says("[plugins.\"acme.todo\"]");
    let folder = bench.project().join("acme-todo");
    cargo(&folder, &["test"]).ends(0).says("a_todo_is_found_with_its_place ... ok");
    cargo(&folder, &["build", "--release", "--target", "wasm32-wasip2"]).ends(0);
    let component = folder.join("target/wasm32-wasip2/release/acme_todo.wasm");
    std::fs::copy(component, bench.project().join("todo.wasm")).unwrap();
    bench.glovebox(&["plugin", "inspect", "todo.wasm"]).ends(0).says("acme.todo 0.1.0").says("Looks for TODO");
    bench.write(
        "glovebox.toml",
        "[plugins.\"acme.todo\"]\npath = \"todo.wasm\"\ngrants = { filesystem = \"workspace\", read = [\"src/\"] }\n",
    );
    bench.write("src/a.rs", "fn a() {}\n");
    bench.glovebox(&["plugin", "lock"]).ends(0).says("  wants    read src/\n").says("  granted  read src/\n");
    bench.glovebox(&["run", "pipeline.dot"]).ends(0).says("success");
    bench.write("src/a.rs", "// TODO\n");
    bench.glovebox(&["run", "pipeline.dot"]).ends(1).says("src/a.rs:1 has a TODO");
}

#[test]
fn nothing_is_overwritten_and_names_are_names() {
    let bench = Workbench::new();
    for name in ["review", "Acme.review", "acme.", "../acme.x", "acme.x/y", "acme.x\n"] {
        bench.glovebox(&["plugin", "new", name]).ends(2).says("is not a plugin name").says("help: ");
    }
    bench.write("acme-x/src/lib.rs", "mine");
    bench.write("wit/mine.wit", "mine");
    let before = bench.snapshot();
    bench.glovebox(&["plugin", "new", "acme.x"]).ends(2).says("`acme-x` is not empty");
    bench.glovebox(&["plugin", "wit", "wit"]).ends(2).says("`wit` is not empty");
    bench.glovebox(&["plugin", "wit", "wit/mine.wit"]).ends(2);
    assert_eq!(bench.snapshot(), before);
    bench.glovebox(&["plugin", "new", "acme.x", "else/where"]).ends(0);
    assert!(bench.read("else/where/src/lib.rs").contains("\"name\":\"acme.x\""));
}

#[test]
fn the_contract_is_written_as_it_is_frozen() {
    let bench = Workbench::new();
    bench.glovebox(&["plugin", "wit", "wit"]).ends(0).says("12 files");
    for entry in root().join("wit").read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        if entry.extension().is_some_and(|extension| extension == "wit") {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            assert_eq!(bench.read(&format!("wit/{name}")), std::fs::read_to_string(&entry).unwrap());
        }
    }
}

#[test]
fn a_manifest_is_embedded_into_a_component_of_another_language() {
    let bench = Workbench::new();
    std::fs::write(bench.project().join("bare.wasm"), guests::component("(func $execute)")).unwrap();
    bench.write("manifest.json", "{\"name\":\"acme.c\",\"version\":\"1.0.0\",\"wants\":{\"model\":true}}\n");
    bench.write("wrong.json", "{\"name\":\"acme.c\",\"version\":\"1.0.0\",\"wants\":{\"network\":true}}\n");
    let embed =
        |manifest: &str| bench.glovebox(&["plugin", "embed-manifest", "bare.wasm", manifest, "-o", "acme.wasm"]);
    embed("wrong.json").ends(7).says("the host cannot enforce `network`");
    assert!(!bench.has("acme.wasm"));
    embed("manifest.json").ends(0).says("wrote `acme.wasm`");
    bench.glovebox(&["plugin", "inspect", "bare.wasm"]).ends(0).says("has no manifest");
    bench.glovebox(&["plugin", "inspect", "acme.wasm"]).ends(0).says("acme.c 1.0.0").says("model = true");
    bench.glovebox(&["plugin", "embed-manifest", "bare.wasm", "manifest.json"]).ends(0).says("wrote `bare.wasm`");
    bench.glovebox(&["plugin", "embed-manifest", "bare.wasm", "manifest.json"]).ends(7).says("several sections");
    bench.glovebox(&["plugin", "embed-manifest", "manifest.json", "manifest.json"]).ends(7).says("not WebAssembly");
}
