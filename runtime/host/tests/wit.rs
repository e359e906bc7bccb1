//! Tests that the WIT interfaces do not change unnoticed: the imports of every world and the text of the WIT files are
//! compared with committed files.

use glovebox_host::interfaces::{ImportState, state_of};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use wit_parser::{Resolve, WorldItem};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit")
}

fn resolve() -> Resolve {
    let mut resolve = Resolve::default();
    resolve.push_dir(folder()).unwrap();
    resolve
}

fn names<'a>(resolve: &Resolve, items: impl Iterator<Item = &'a WorldItem>) -> Vec<String> {
    let name = |item: &WorldItem| match item {
        WorldItem::Interface { id, .. } => resolve.id_of(*id).unwrap(),
        other => panic!("a world holds only interfaces, found {other:?}"),
    };
    let mut names: Vec<String> = items.map(name).collect();
    names.sort();
    names
}

#[test]
fn every_world_imports_what_the_committed_list_says() {
    let resolve = resolve();
    let mut worlds: Vec<_> = resolve.worlds.iter().map(|(_, world)| world).collect();
    worlds.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = String::new();
    for world in worlds {
        writeln!(text, "world {}", world.name).unwrap();
        for import in names(&resolve, world.imports.values()) {
            writeln!(text, "  import {import}").unwrap();
        }
        for export in names(&resolve, world.exports.values()) {
            writeln!(text, "  export {export}").unwrap();
        }
    }
    let committed = fs::read_to_string(folder().join("imports.txt")).unwrap();
    assert_eq!(committed, text, "wit/imports.txt is not what the worlds say; they say:\n{text}");
}

#[test]
fn a_released_contract_does_not_change() {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wit"));
    paths.sort();
    let mut text = String::new();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        writeln!(text, "{}  {name}", blake3::hash(&fs::read(&path).unwrap()).to_hex()).unwrap();
    }
    let committed = fs::read_to_string(folder().join("0.1.0.blake3")).unwrap();
    assert_eq!(committed, text, "a file of the released contract changed: add a version; digests now:\n{text}");
}

#[test]
fn every_import_of_every_world_is_provided_or_denied_with_a_reason() {
    let resolve = resolve();
    let imports = resolve.worlds.iter().flat_map(|(_, world)| names(&resolve, world.imports.values()));
    let (mut provided, mut denied) = (Vec::new(), Vec::new());
    for import in imports {
        match state_of(&import) {
            ImportState::Provided => provided.push(import),
            ImportState::Denied { .. } => denied.push(import),
            state => panic!("{import}: {state:?}"),
        }
    }
    for list in [&mut provided, &mut denied] {
        list.sort();
        list.dedup();
    }
    let short = |list: &[String]| list.iter().map(|name| name[16..].replace("@0.1.0", "")).collect::<Vec<_>>();
    assert_eq!(short(&provided), ["agents", "chat", "control", "exec", "files", "llm", "tools", "types"]);
    assert_eq!(short(&denied), ["human"]);
}
