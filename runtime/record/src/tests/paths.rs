//! Tests that paths stay within their bounds, and that a scope commits nothing that no write entry grants.

use crate::path::{NAME_BYTES_MAX, PATH_BYTES_MAX, ScopePath, ScopePathProblem};
use crate::scope::{Entry, Scope};
use std::collections::BTreeMap;

fn path(text: &str) -> ScopePath {
    ScopePath::parse(text).unwrap()
}

fn entries(texts: &[&str]) -> Vec<Entry> {
    texts.iter().map(|text| Entry::parse(text).unwrap()).collect()
}

#[test]
fn a_path_may_be_as_long_as_its_bounds_and_no_longer() {
    let too_long = Err(ScopePathProblem::TooLong);
    assert!(ScopePath::parse(&"n".repeat(NAME_BYTES_MAX)).is_ok());
    assert_eq!(ScopePath::parse(&"n".repeat(NAME_BYTES_MAX + 1)), too_long);
    // Names of 63 letters and a slash each. The last name ends at the bound.
    let whole = vec!["n".repeat(63); PATH_BYTES_MAX / 64].join("/") + "n";
    assert_eq!(whole.len(), PATH_BYTES_MAX);
    assert!(ScopePath::parse(&whole).is_ok());
    assert_eq!(ScopePath::parse(&format!("{whole}n")), too_long);
    let base = path(&whole[..64 * 10 - 1]);
    let rest = &whole[64 * 10..];
    assert_eq!(base.resolve(rest).map(|resolved| resolved.as_str().len()), Ok(PATH_BYTES_MAX));
    assert_eq!(base.resolve(&format!("{rest}n")), too_long);
}

#[test]
fn a_path_is_read_from_bytes_and_from_files_by_the_same_rules() {
    assert_eq!(ScopePath::parse_bytes(b"a/b"), Ok(path("a/b")));
    assert_eq!(ScopePath::parse_bytes(b"a/\xff"), Err(ScopePathProblem::NotUtf8));
    assert_eq!(ScopePath::parse_bytes(b"../a"), Err(ScopePathProblem::ParentSegment));
    let read: ScopePath = serde_json::from_str("\"a/b\"").unwrap();
    assert_eq!((serde_json::to_string(&read).unwrap(), read), ("\"a/b\"".to_owned(), path("a/b")));
    assert!(serde_json::from_str::<ScopePath>("\"../a\"").is_err());
    let known = BTreeMap::from([(path("a/b"), 1)]);
    assert_eq!((known.get("a/b"), known.get("a")), (Some(&1), None), "a path is found by its text");
    assert_eq!(path("a/b").names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(ScopePath::root().names().count(), 0);
}

/// Each row: a path, whether a change of it as a file is committed, whether creating or removing it as a folder is committed, and
/// whether a folder may be there after a commit.
#[test]
fn a_folder_is_committed_only_where_a_write_entry_needs_it() {
    let scope = Scope::new(entries(&["./"]), entries(&["src/", "a/b/c.md", "h/x/y", "t/x"]), entries(&["h/x"]))
        .with_scratch(entries(&["t/"]));
    for (text, file, folder, may_stand) in [
        ("src", false, true, true),
        ("src/x", true, true, true),
        ("a", false, true, true),
        ("a/b", false, true, true),
        ("a/b/c.md", true, true, false),
        ("a/b/c.md/z", false, false, false),
        ("a/z", false, false, false),
        ("other", false, false, false),
        ("h", false, true, true),
        ("h/x", false, false, false),
        ("h/x/y", false, false, false),
        ("t", false, false, false),
        ("t/x", false, false, false),
    ] {
        let path = path(text);
        let found = (scope.commits(&path), scope.commits_directory(&path), scope.commits_as_directory(&path));
        assert_eq!(found, (file, folder, may_stand), "{text}");
    }
}

#[test]
fn a_folder_leads_to_scratch_unless_it_is_hidden() {
    let scope = |hidden: &[&str]| {
        Scope::new(entries(&["./"]), Vec::new(), entries(hidden)).with_scratch(entries(&["cache/deep/", "one.db"]))
    };
    let leads = |hidden: &[&str], text: &str| scope(hidden).leads_to_scratch(&path(text));
    assert!(leads(&[], "cache") && leads(&[], "cache/deep") && leads(&[], ""));
    assert!(!leads(&[], "other") && !leads(&[], "one.db") && !leads(&["cache"], "cache"));
    assert!(scope(&[]).may_write(), "scratch is written");
    assert!(!Scope::new(entries(&["./"]), Vec::new(), Vec::new()).may_write());
}

#[test]
fn what_is_granted_below_a_folder_is_known() {
    let scope = Scope::new(entries(&["src/", "docs/a.md"]), entries(&["out/"]), entries(&["src/secret"]));
    for (text, all, readable) in [
        ("src", true, true),
        ("src/a", true, true),
        ("src/secret", true, false),
        ("docs", false, true),
        ("docs/a.md", false, true),
        ("docs/b.md", false, false),
        ("out/x", true, true),
        ("other", false, false),
    ] {
        let path = path(text);
        assert_eq!((scope.grants_all_below(&path), scope.readable_below(&path)), (all, readable), "{text}");
    }
}
