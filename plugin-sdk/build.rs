//! Links the C library for rule plugins, which have no `std` to provide `memcmp`. Compiles and downloads nothing.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let is_wasm = std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm");
    if is_wasm && is_set("CARGO_FEATURE_RULES") && !is_set("CARGO_FEATURE_STAGE") {
        println!("cargo:rustc-link-lib=c");
    }
}
