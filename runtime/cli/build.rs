//! Embeds the built-in components. It never builds them: they are another target's artefacts, made by one named command.

use std::path::{Path, PathBuf};

const COMPONENTS: [&str; 3] = ["codergen", "tool", "verify"];

fn main() {
    let manifest_dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out_dir = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let folder = manifest_dir.join("../../target/components");
    let mut missing = Vec::new();
    for name in COMPONENTS {
        let source = folder.join(format!("{name}.wasm"));
        println!("cargo::rerun-if-changed={}", source.display());
        if !copy(&source, &out_dir.join(format!("{name}.wasm"))) {
            missing.push(format!("{name}.wasm"));
        }
    }
    if !missing.is_empty() {
        println!(
            "cargo::error=target/components has no {}: run `cargo xtask components`, then build again",
            missing.join(", ")
        );
    }
}

fn copy(source: &Path, target: &Path) -> bool {
    source.is_file() && std::fs::copy(source, target).is_ok()
}
