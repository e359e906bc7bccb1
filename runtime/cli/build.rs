//! Embeds the built-in components. It never builds them: they are another target's artefacts, made by one named command.

use std::path::{Path, PathBuf};

/// The handlers and the component that attacks the host.
const COMPONENTS: [&str; 4] = ["codergen", "tool", "verify", "intruder"];
/// The program that attacks the sandbox; there is one on Linux only.
const HOSTILE: &str = "glovebox-hostile";

fn main() {
    let manifest_dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out_dir = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let folder = manifest_dir.join("../../target/components");
    let is_linux = std::env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|system| system == "linux");
    let files = COMPONENTS.iter().map(|name| format!("{name}.wasm"));
    let mut missing = Vec::new();
    for name in files.chain(is_linux.then(|| HOSTILE.to_owned())) {
        let source = folder.join(&name);
        println!("cargo::rerun-if-changed={}", source.display());
        if !copy(&source, &out_dir.join(&name)) {
            missing.push(name);
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
