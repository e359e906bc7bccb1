# why: projects in Rust build and test without a network
# source: https://doc.rust-lang.org/cargo/commands/cargo-test.html
# needs: cargo rustc cc
mkdir -p own/src
printf '[package]\nname = "own"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n' > own/Cargo.toml
printf 'pub fn twice(x: i32) -> i32 { 2 * x }\n#[test]\nfn doubles() { assert_eq!(twice(2), 4); }\n' > own/src/lib.rs
cd own
cargo test --quiet --offline --lib
