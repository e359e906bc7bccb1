//! A plugin's author outside of the repository: names and folders of new projects, the WIT package, and manifests of components that
//! were built in another way. `plugin_languages` builds and runs the projects.

use crate::guests;
use crate::workbench::{Workbench, root};

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
    assert!(bench.read("else/where/plugin.toml").contains("\nname = \"acme.x\"\n"));
}

#[test]
fn the_contract_is_written_as_it_is_frozen() {
    let bench = Workbench::new();
    bench.glovebox(&["plugin", "wit", "wit"]).ends(0).says("13 files");
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

#[test]
fn the_next_steps_begin_with_the_tools_of_the_language() {
    let bench = Workbench::new();
    for (language, install) in [
        ("rust", "rustup target add wasm32-wasip2"),
        ("js", "npm install"),
        ("python", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"),
        ("c", "apt install clang lld wasi-libc libclang-rt-dev-wasm32"),
    ] {
        let new = bench.glovebox(&["plugin", "new", "acme.todo", language, "--lang", language]);
        new.ends(0).says(&format!("\n  cd {language}\n  {install}\n  glovebox plugin dev "));
        assert!(bench.read(&format!("{language}/README.md")).contains(install));
    }
}

#[test]
fn a_project_is_not_written_through_a_link() {
    let bench = Workbench::new();
    let elsewhere = bench.outside().join("empty");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, bench.project().join("acme-x")).unwrap();
    bench.glovebox(&["plugin", "new", "acme.x"]).ends(2).says("is a link");
    assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
}
