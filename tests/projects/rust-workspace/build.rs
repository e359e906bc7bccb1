//! Writes the name of the unit into the build.

fn main() {
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(format!("{folder}/unit.rs"), "const UNIT: &str = \"s\";").expect("OUT_DIR can be written");
}
