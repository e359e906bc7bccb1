//! Components that were built against the WIT package 0.1.0, which every later version of Glovebox must run.
//!
//! `tests/golden/0.1.0/components/` has those of Rust and C as files: what `plugin new` and `plugin build` made when 0.1.0 was current. Those of
//! JavaScript and Python have 2 and 18 MB, so their sources are kept instead, with the WIT package 0.1.0. They are built here with the
//! versions of the tools that the tests use, so they are built against 0.1.0 even when the package has grown.
//!
//! A file below `tests/golden/0.1.0/` never changes. A later version of the package gets a folder beside it.

use crate::plugin_languages::BEHAVIOURS;
use crate::workbench::{Answer, Workbench, as_author, copy_tree, is_plugin_tool_here, not_run, root};
use glovebox_record::Digest;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn folder() -> PathBuf {
    root().join("tests/golden/0.1.0")
}

fn component(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("components/{name}.wasm"))).unwrap()
}

/// Returns the digests of the files of a folder by their names, as hexadecimal digits.
fn digests(folder: &str) -> BTreeMap<String, String> {
    let entries = self::folder().join(folder).read_dir().unwrap().map(|entry| entry.unwrap());
    let file = |entry: std::fs::DirEntry| {
        let bytes = std::fs::read(entry.path()).unwrap();
        (entry.file_name().to_string_lossy().into_owned(), Digest::hash(&bytes).hex())
    };
    entries.map(file).collect()
}

/// Reads lines of digests and names.
fn listed(path: PathBuf) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(path).unwrap();
    let pair = |line: &str| line.split_once("  ").map(|(digest, name)| (name.to_owned(), digest.to_owned())).unwrap();
    text.lines().map(pair).collect()
}

#[test]
fn the_kept_files_are_those_of_the_release() {
    assert_eq!(digests("components"), listed(folder().join("components.blake3")));
    let mut wit = digests("wit");
    assert!(wit.remove("project.wit").is_some(), "the world of the projects");
    assert_eq!(wit, listed(root().join("wit/0.1.0.blake3")));
}

#[test]
fn handlers_of_rust_and_c_do_what_they_did() {
    for name in ["rust-handler", "c-handler"] {
        let component = component(name);
        BEHAVIOURS.iter().for_each(|behaviour| behaviour.check(&component, name));
    }
}

#[test]
fn the_cases_of_that_version_still_pass() {
    let has_sandbox = !Workbench::new().glovebox(&["doctor", "--json"]).json()["tier"].is_null();
    let bench = Workbench::new();
    for (language, world) in [
        ("rust", "handler"),
        ("rust", "agent"),
        ("rust", "verifier"),
        ("c", "handler"),
        ("c", "agent"),
        ("c", "verifier"),
    ] {
        std::fs::write(bench.project().join("kept.wasm"), component(&format!("{language}-{world}"))).unwrap();
        let cases = folder().join("cases").join(world);
        let test = ["plugin", "test", "kept.wasm", "--only", "cases", "--cases", cases.to_str().unwrap()];
        match world {
            "verifier" if !has_sandbox => not_run("the cases of a kept verifier", "this machine has no sandbox"),
            "verifier" => drop(bench.glovebox(&[&test[..], &["--allow-commands"]].concat()).ends(0).says("2 passed;")),
            _ => drop(bench.glovebox(&test).ends(0).says("2 passed;")),
        }
    }
}

#[test]
fn rules_find_what_they_found() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  build [shape=box, prompt=\"Do it\", allowed_write_paths=\"src/\"]\n\
         \x20 start -> build -> done\n}\n",
    );
    std::fs::write(bench.project().join("house.wasm"), component("rust-rules")).unwrap();
    bench.write("glovebox.toml", "[rules.\"acme.house\"]\npath = \"house.wasm\"\n");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let check = bench.glovebox(&["check", "pipeline.dot"]);
    check.ends(3).says("error[acme.house/timeout]: `build` has no timeout").says("help: add `timeout=\"15m\"`");
}

/// Builds the kept sources of a language against the kept WIT package, and runs the component.
fn builds_and_runs(language: &str, tool: &str) {
    if !is_plugin_tool_here(tool) {
        return not_run(&format!("a kept component in {language}"), &format!("no {tool}"));
    }
    let author = Workbench::new();
    let project = author.project().join("kept");
    copy_tree(&folder().join(language), &project);
    copy_tree(&folder().join("wit"), &project.join("wit"));
    Answer::of(as_author(&mut author.bare(&["plugin", "build", "kept"]))).ends(0);
    let file = "kept/dist/acme.todo-0.1.0.wasm";
    let found = author.glovebox(&["plugin", "inspect", "--json", file]).ends(0).json();
    let names = found["imports"].as_array().unwrap().iter().filter_map(|import| import["name"].as_str());
    let own: Vec<&str> = names.filter(|name| name.starts_with("glovebox:plugin/")).collect();
    assert!(own.len() >= 2 && own.iter().all(|name| name.ends_with("@0.1.0")), "{own:?}");
    let component = std::fs::read(author.project().join(file)).unwrap();
    BEHAVIOURS.iter().for_each(|behaviour| behaviour.check(&component, language));
}

#[test]
fn javascript_is_built_against_it_and_runs() {
    builds_and_runs("js", "componentize-qjs");
}

#[test]
fn python_is_built_against_it_and_runs() {
    builds_and_runs("python", "componentize-py");
}
