//! The `diff-limits` verifier: limits how much stages have changed, with `max_files`, `max_lines` and `max_binaries`.
//!
//! It imports only types. The host computes the list of changes from the journal, so no stage can have written it. Anything that the
//! verifier cannot decide is a failure: a missing list, a file whose lines were not counted, or a list that is not complete.
#![forbid(unsafe_code)]

mod limits;

use glovebox_plugin_sdk::{Handler, Outcome, Stage, export};
use limits::{ChangeList, Limits, Totals};

/// Key in `extra` of the stage's input. The value is the host's list of changed files.
const ENTRY: &str = "changes";
/// Maximum number of files that a failure reason names.
const NAMED_MAX: usize = 5;

struct DiffLimits;

impl Handler for DiffLimits {
    fn execute(stage: Stage) -> Outcome {
        let limits = match Limits::from_stage(&stage) {
            Ok(limits) => limits,
            Err(reason) => return Outcome::fail("diff-limits/syntax", reason),
        };
        let list = stage.extra(ENTRY).and_then(|text| serde_json::from_str::<ChangeList>(text).ok());
        let Some(list) = list else {
            return Outcome::fail("diff-limits/no-list", "the host sent no list of changed files");
        };
        match limits.check(&list) {
            Ok(counted) => Outcome::success().notes(format!("{counted}, within the limits")),
            Err(reasons) => Outcome::fail("diff-limits/exceeded", reasons.join("; ")),
        }
    }
}

export!(
    DiffLimits,
    manifest = concat!(
        r#"{"name":"diff-limits","version":""#,
        env!("CARGO_PKG_VERSION"),
        r#"","description":"Bounds how much stages changed.","wants":{"filesystem":"none"}}"#
    )
);

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { files, added, removed, binaries } = self;
        write!(f, "{files} changed files, {added} lines added, {removed} lines removed, {binaries} binary files")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::testing::{Host, stage};

    const LIST: &str = r#"{"total":4,"files":[
        {"path":"Cargo.lock","kind":"changed","bytes":9,"added":400,"removed":300},
        {"path":"src/a.rs","kind":"changed","bytes":9,"added":5,"removed":2},
        {"path":"src/b/logo.png","kind":"added","bytes":9,"added":0,"removed":0,"binary":true},
        {"path":"vendor/Cargo.lock","kind":"added","bytes":99,"added":0,"removed":0,"uncounted":"it is too long"}]}"#;

    fn check(list: &str, attributes: &[(&str, &str)], expected: &str) {
        let mut node = stage("n").extra("changes", list);
        for (name, value) in attributes {
            node = node.attribute(*name, *value);
        }
        let outcome = Host::new().execute::<DiffLimits>(node);
        let found = outcome.failure().map_or("", |failure| failure.reason.as_str());
        assert!(found.starts_with(expected) && expected.is_empty() == found.is_empty(), "{attributes:?}: {found}");
    }

    #[test]
    fn files_are_bounded() {
        check(LIST, &[("max_files", "4")], "");
        let named = "`Cargo.lock` (+400 -300), `src/a.rs` (+5 -2), `src/b/logo.png` (binary), `vendor/Cargo.lock` (not counted)";
        check(LIST, &[("max_files", "3")], &format!("4 files changed, expected at most 3: {named}"));
        check(LIST, &[("max_files", "1"), ("paths", "src/")], "2 files changed");
        check(LIST, &[("max_files", "1"), ("paths", "src/"), ("ignore", "*.png")], "");
        check(LIST, &[("max_files", "0"), ("paths", "src/*.rs")], "1 files changed");
        check(
            r#"{"total":20001,"files":[]}"#,
            &[("max_files", "20000")],
            "20001 files changed, but the list of changes names only 0",
        );
    }

    #[test]
    fn an_ignored_name_is_a_path_and_a_pattern_matches_in_every_folder() {
        let lines = [("max_lines", "7"), ("max_binaries", "1")];
        check(
            LIST,
            &[lines[0], lines[1], ("ignore", "Cargo.lock")],
            "the lines of `vendor/Cargo.lock` are not counted",
        );
        check(LIST, &[lines[0], lines[1], ("ignore", "*.lock")], "");
        check(LIST, &[lines[0], lines[1], ("ignore", "Cargo.lock, vendor/")], "");
        check(
            LIST,
            &[("max_lines", "6"), lines[1], ("ignore", "*.lock")],
            "7 lines changed (5 added, 2 removed), expected",
        );
    }

    #[test]
    fn a_binary_file_hides_no_lines() {
        let named = "1 binary files added or changed, expected at most 0: `src/b/logo.png` (binary)";
        check(LIST, &[("max_lines", "7"), ("ignore", "*.lock")], named);
        check(LIST, &[("max_files", "2"), ("ignore", "*.lock")], "");
        check(LIST, &[("max_binaries", "0")], named);
    }

    #[test]
    fn an_unclear_node_fails() {
        check(LIST, &[], "no limit is set");
        check(LIST, &[("max_files", "-1")], "`max_files` is `-1`");
        check(LIST, &[("max_files", "9"), ("ignore", "../x")], "`ignore` is `../x`");
        check(LIST, &[("max_files", "9"), ("paths", " , ")], "`paths` is empty");
        check("{", &[("max_files", "9")], "the host sent no list");
        let unnamed = stage("n").attribute("max_files", "9");
        let outcome = Host::new().execute::<DiffLimits>(unnamed);
        assert_eq!(outcome.failure().map(|failure| failure.code.as_str()), Some("diff-limits/no-list"));
    }
}
