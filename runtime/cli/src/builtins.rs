//! The built-in components. They are loaded like plugins, but their bytes are in the binary.
//!
//! Each one has the name of the handler that it implements, and is identified by its digest. The build script copies the
//! components and computes their digests.

use glovebox_plan::components::Builtin;
use glovebox_record::Digest;
use std::borrow::Cow;

macro_rules! builtin {
    ($name:literal) => {
        (
            $name,
            Builtin {
                digest: Digest::from_bytes(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".digest"))),
                bytes: Cow::Borrowed(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".wasm"))),
            },
        )
    };
}
/// Every built-in component, by the name of its handler.
pub static BUILTINS: [(&str, Builtin); 8] = [
    builtin!("codergen"),
    builtin!("diff-limits"),
    builtin!("json-schema"),
    builtin!("junit"),
    builtin!("tool"),
    builtin!("tree-assert"),
    builtin!("verification"),
    builtin!("verify"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_of_the_build_are_those_of_the_bytes() {
        for (name, builtin) in &BUILTINS {
            assert_eq!(builtin.digest, Digest::hash(&builtin.bytes), "{name}");
        }
    }
}
