//! Embeds the jail helper into the library, with its hash. This script does not build the helper: the helper is a separate static
//! program, built by `cargo xtask`.

use std::path::PathBuf;

fn main() {
    if std::env::var_os("CARGO_CFG_TARGET_OS").is_none_or(|system| system != "linux") {
        return;
    }
    let manifest_dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out_dir = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let source = manifest_dir.join("../../target/components/glovebox-jail");
    println!("cargo::rerun-if-changed={}", source.display());
    let embedded = std::fs::read(&source).and_then(|bytes| {
        std::fs::write(out_dir.join("glovebox-jail"), &bytes)?;
        std::fs::write(out_dir.join("glovebox-jail.blake3"), blake3::hash(&bytes).to_hex().as_str())
    });
    if embedded.is_err() {
        println!(
            "cargo::error=target/components has no glovebox-jail: run `cargo xtask components` (`cargo xtask jail` builds only this), then build again"
        );
    }
}
