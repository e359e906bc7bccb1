//! Tests of the built components' imports, which are read from their bytes: a component imports only what its handler needs.
//!
//! `cargo xtask test` builds the components first. A missing component is a failure, and its test is not skipped.

use std::path::Path;
use wasmparser::{ComponentExternalKind, Parser, Payload};

const PREFIX: &str = "glovebox:plugin/";

/// Imports that are allowed in addition to Glovebox's own interfaces. The standard library links them, and the host decides how to
/// answer them.
const WASI: [&str; 5] = ["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/"];

/// What can be read of a component without running it.
#[derive(Default)]
struct Surface {
    imports: Vec<String>,
    exports: Vec<String>,
    manifests: Vec<String>,
}

fn surface(name: &str) -> Surface {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/components");
    let path = folder.join(format!("{name}.wasm"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| {
        panic!("`{}`: {error}; run `cargo xtask components` first", path.display());
    });
    let (mut surface, mut depth) = (Surface::default(), 0);
    for payload in Parser::new(0).parse_all(&bytes) {
        match payload.expect("a well-formed component") {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 0 => {
                surface.imports.extend(
                    section.into_iter().map(|import| import.expect("a well-formed import").name.name.to_owned()),
                );
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                let instances = section.into_iter().map(Result::unwrap);
                let instances = instances.filter(|export| export.kind == ComponentExternalKind::Instance);
                surface.exports.extend(instances.map(|export| export.name.name.to_owned()));
            }
            Payload::CustomSection(section) if section.name() == "glovebox:manifest" => {
                surface.manifests.push(String::from_utf8(section.data().to_vec()).expect("a manifest in UTF-8"));
            }
            _ => {}
        }
    }
    surface
}

fn check(name: &str, own_imports: &[&str]) {
    let surface = surface(name);
    let (own, others): (Vec<_>, Vec<_>) = surface.imports.iter().partition(|import| import.starts_with(PREFIX));
    let expected: Vec<String> = own_imports.iter().map(|interface| format!("{PREFIX}{interface}@0.1.0")).collect();
    let mut own: Vec<&str> = own.into_iter().map(String::as_str).collect();
    own.sort_unstable();
    assert_eq!(own, expected, "own imports of {name}");
    for import in others {
        assert!(WASI.iter().any(|prefix| import.starts_with(prefix)), "{name} imports `{import}`");
    }
    assert_eq!(surface.exports, [format!("{PREFIX}stage@0.1.0")], "exports of {name}");
    assert_eq!(surface.manifests.len(), 1, "manifests of {name}");
    let manifest = &surface.manifests[0];
    assert!(manifest.starts_with(&format!(r#"{{"name":"{name}","version":"0.1.0","#)), "{manifest}");
}

#[test]
fn codergen_imports_what_an_agent_needs() {
    check("codergen", &["agents", "chat", "control", "exec", "files", "llm", "tools", "types"]);
}

#[test]
fn tool_cannot_ask_a_model_nor_open_files() {
    check("tool", &["control", "exec", "types"]);
}

#[test]
fn verify_cannot_ask_a_model_nor_open_files() {
    check("verify", &["control", "exec", "types"]);
}

#[test]
fn verification_reads_files_and_cannot_ask_a_model() {
    check("verification", &["control", "exec", "files", "types"]);
}

#[test]
fn verifiers_of_files_cannot_ask_a_model() {
    check("diff-limits", &["types"]);
    check("json-schema", &["files", "types"]);
    check("junit", &["control", "exec", "files", "types"]);
    check("tree-assert", &["files", "types"]);
}

#[test]
fn the_intruder_asks_for_everything_there_is() {
    check("intruder", &["chat", "control", "exec", "files", "llm", "types"]);
}
