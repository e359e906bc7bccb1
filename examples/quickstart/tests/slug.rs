//! Titles and the slugs that they must have.

use slug::slugify;

#[test]
fn words_are_joined_by_single_hyphens() {
    assert_eq!(slugify("Hello,  Wide World!"), "hello-wide-world");
}

#[test]
fn only_letters_and_digits_survive() {
    assert_eq!(slugify("--Rust & Wasm 2--"), "rust-wasm-2");
}
