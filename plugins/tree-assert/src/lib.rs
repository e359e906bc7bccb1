//! The `tree-assert` verifier: checks which files exist and what they contain, with `exists`, `absent` and `matches`.
//!
//! It imports neither a model nor commands, and the host does not let a verifier write. Anything that it cannot decide is a failure: a
//! tree that is too large, or a file that is not text. A symbolic link is neither a file nor a folder.
#![forbid(unsafe_code)]

mod assertion;

use assertion::{Assertion, Tree};
use glovebox_plugin_sdk::{Handler, Outcome, Stage, export};

/// Maximum number of failures that a reason lists.
const NAMED_MAX: usize = 10;

struct TreeAssert;

impl Handler for TreeAssert {
    fn execute(stage: Stage) -> Outcome {
        let assertions = match Assertion::all_of(&stage) {
            Ok(assertions) if assertions.is_empty() => {
                let reason = "no assertion, expected `exists`, `absent` or `matches` on the node";
                return Outcome::fail("tree-assert/no-assertion", reason);
            }
            Ok(assertions) => assertions,
            Err(reason) => return Outcome::fail("tree-assert/syntax", reason),
        };
        let mut tree = Tree::default();
        let failures: Vec<String> =
            assertions.iter().filter_map(|assertion| assertion.check(&mut tree).err()).collect();
        if failures.is_empty() {
            return Outcome::success().notes(format!("tree-assert passed: {} assertions", assertions.len()));
        }
        let more = failures.len().saturating_sub(NAMED_MAX);
        let mut reason = failures[..failures.len() - more].join("; ");
        if more > 0 {
            reason += &format!("; and {more} more");
        }
        Outcome::fail("tree-assert/failed", reason)
    }
}

export!(
    TreeAssert,
    manifest = concat!(
        r#"{"name":"tree-assert","version":""#,
        env!("CARGO_PKG_VERSION"),
        r#"","description":"Checks which files exist and what they contain.","#,
        r#""wants":{"filesystem":"workspace","read":["./"]}}"#
    )
);

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::testing::{Host, stage};

    fn check(attributes: &[(&str, &str)], expected: &str) {
        let host = Host::new();
        host.write("src/lib.rs", "pub fn a() {}\n");
        host.write("notes.tmp", "");
        host.write("raw.bin", [0xff, 0xfe]);
        host.write("long.txt", vec![b'a'; assertion::FILE_BYTES_MAX + 1]);
        let mut node = stage("n");
        for (name, value) in attributes {
            node = node.attribute(*name, *value);
        }
        let outcome = host.execute::<TreeAssert>(node);
        let found = outcome.failure().map_or("", |failure| failure.reason.as_str());
        assert!(found.starts_with(expected) && expected.is_empty() == found.is_empty(), "{attributes:?}: {found}");
    }

    #[test]
    fn what_exists_is_checked() {
        check(&[("exists", "src/lib.rs, src/ ,*.tmp")], "");
        check(&[("exists", "src/none.rs,src/lib.rs/")], "`src/none.rs` does not exist; `src/lib.rs/` is not a folder");
        check(&[("exists", "**/*.py")], "no file matches `**/*.py`");
        check(&[("exists", "../x")], "`../x`");
    }

    #[test]
    fn what_must_be_absent_is_checked() {
        check(&[("absent", "*.py,target/,none")], "");
        check(&[("absent", "*.tmp")], "`notes.tmp` exists, but `*.tmp` must be absent");
        check(&[("absent", "**/{a,lib}.rs,none")], "`src/lib.rs` exists, but `**/{a,lib}.rs` must be absent");
        check(&[("absent", "src/")], "`src/` exists");
        check(&[("absent", "../x")], "`../x`");
    }

    #[test]
    fn what_a_file_contains_is_checked() {
        check(&[("matches", "src/lib.rs: fn \\w+\\(\\)\nsrc/lib.rs: ^pub")], "");
        check(&[("matches", "src/lib.rs: unsafe")], "`src/lib.rs` does not match `unsafe`");
        check(&[("matches", "none.rs: a")], "`none.rs`");
        check(&[("matches", "raw.bin: a")], "`raw.bin` is not valid UTF-8");
        check(&[("matches", "long.txt: a")], "`long.txt` has over");
    }

    #[test]
    fn an_unclear_node_fails() {
        check(&[], "no assertion");
        check(&[("exists", " , ")], "no assertion");
        for pattern in ["{a,*.rs", "a}.rs", "[z-a].rs", "[a.rs"] {
            check(
                &[("absent", pattern)],
                &format!("`{pattern}`: a brace or a bracket is not closed, or a range is reversed"),
            );
        }
        check(&[("matches", "src/lib.rs")], "`matches` is `src/lib.rs`, expected `path: regular expression`");
        check(&[("matches", "src/lib.rs: (")], "`matches` is `src/lib.rs: (`:");
    }
}
