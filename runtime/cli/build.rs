//! Embeds the built-in components, and the C bindings of the WIT package. It never builds components: they have another target, and
//! `cargo xtask components` builds them.

#[path = "../../xtask/src/sources.rs"]
mod sources;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;

/// The built-in components, and the component that attacks the host.
const COMPONENTS: [&str; 9] =
    ["codergen", "diff-limits", "json-schema", "junit", "tool", "tree-assert", "verify", "verification", "intruder"];
/// The program that attacks the sandbox. It exists on Linux only.
const HOSTILE: &str = "glovebox-hostile";

/// The worlds of the WIT package, each with its own bindings in C.
const C_WORLDS: [&str; 6] = ["handler", "agent", "verifier", "tool-provider", "rules", "policy"];

fn main() {
    let manifest_dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out_dir = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let repository = manifest_dir.join("../..");
    write_c_bindings(&repository.join("wit"), &out_dir);
    let folder = repository.join("target/components");
    let is_linux = std::env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|system| system == "linux");
    let files = COMPONENTS.iter().map(|name| format!("{name}.wasm"));
    let mut missing = Vec::new();
    for name in files.chain(is_linux.then(|| HOSTILE.to_owned())) {
        let source = folder.join(&name);
        println!("cargo::rerun-if-changed={}", source.display());
        match std::fs::read(&source) {
            Ok(bytes) => write(&out_dir.join(&name), &bytes),
            Err(_) => missing.push(name),
        }
    }
    if !missing.is_empty() {
        println!(
            "cargo::error=target/components has no {}: run `cargo xtask components`, then build again",
            missing.join(", ")
        );
    }
    if !are_fresh(&repository, &folder) {
        println!(
            "cargo::error=the components in target/components are older than their source: run `cargo xtask components`, then build again"
        );
    }
}

/// Returns true if the components were built from the current sources of the repository.
fn are_fresh(repository: &Path, folder: &Path) -> bool {
    for name in sources::FOLDERS {
        println!("cargo::rerun-if-changed={}", repository.join(name).display());
    }
    let written = folder.join(sources::FILE);
    println!("cargo::rerun-if-changed={}", written.display());
    let built_from = std::fs::read_to_string(written);
    built_from.is_ok_and(|built_from| sources::digest(repository).is_ok_and(|present| present == built_from))
}

/// Writes a file, and beside it a file with its digest.
fn write(path: &Path, bytes: &[u8]) {
    let digest = blake3::hash(bytes);
    for (path, bytes) in [(path.to_owned(), bytes), (path.with_extension("digest"), digest.as_bytes())] {
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }
}

/// Generates the C bindings of each world into the output folder, with a table of their files.
fn write_c_bindings(wit: &Path, out_dir: &Path) {
    println!("cargo::rerun-if-changed={}", wit.display());
    let mut table = "&[\n".to_owned();
    for world in C_WORLDS {
        let mut resolve = Resolve::default();
        let (package, _) =
            resolve.push_dir(wit).unwrap_or_else(|error| panic!("cannot read the WIT package: {error:#}"));
        let id = resolve.select_world(&[package], Some(world)).expect("a world of the WIT package");
        let mut files = Files::default();
        let mut generator = wit_bindgen_c::Opts::default().build();
        generator.generate(&mut resolve, id, &mut files).expect("bindings of a world");
        let folder = out_dir.join("c").join(world);
        std::fs::create_dir_all(&folder).expect("the output folder can be written");
        writeln!(table, "({world:?}, &[").expect("a string can be written");
        for (name, bytes) in files.iter() {
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
            writeln!(table, "({name:?}, include_bytes!({path:?})),").expect("a string can be written");
        }
        table.push_str("]),\n");
    }
    table.push_str("]\n");
    std::fs::write(out_dir.join("c_bindings.rs"), table).expect("the output folder can be written");
}
