//! The tables of expected findings: one line for each file, followed by one line for each rule with the number of its findings.
//!
//! This module does not know pipelines. The whole table is compared, so that a rule which begins to report false positives is
//! noticed in every file.

use glovebox_pipeline::diagnostic::{Diagnostic, Severity};
use glovebox_pipeline::lint::Rule;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The number of findings of one file by severity and rule, the most severe first.
pub(crate) type Counts = BTreeMap<(Severity, String), usize>;

/// The counts of all files in a table, by file name.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) files: BTreeMap<String, Counts>,
}

/// Counts the findings of a file.
pub(crate) fn counts(diagnostics: &[Diagnostic]) -> Counts {
    let mut counts = Counts::new();
    for found in diagnostics {
        *counts.entry((found.severity, found.rule.to_string())).or_default() += 1;
    }
    counts
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name)
}

fn severity(word: &str) -> Severity {
    let known = [Severity::Error, Severity::Warning, Severity::Info];
    known.into_iter().find(|severity| severity.as_str() == word).unwrap_or_else(|| panic!("no severity: {word}"))
}

/// Reads a table.
pub(crate) fn read(name: &str) -> Table {
    let text = std::fs::read_to_string(file(name)).unwrap_or_default();
    let mut table = Table::default();
    let mut current = String::new();
    for line in text.lines() {
        let Some(finding) = line.strip_prefix("  ") else {
            current = line.to_owned();
            table.files.insert(current.clone(), Counts::new());
            continue;
        };
        let words: Vec<&str> = finding.split_whitespace().collect();
        let [level, rule, "×", times] = words[..] else { panic!("{name}: `{line}` is no finding") };
        let counts = table.files.get_mut(&current).expect("a file stands above its findings");
        counts.insert((severity(level), rule.to_owned()), times.parse().unwrap());
    }
    table
}

/// Checks that each rule in the table exists, and has the severity that the table says.
pub(crate) fn check_rules(table: &Table) {
    for (name, counts) in &table.files {
        for (severity, id) in counts.keys() {
            let rule = Rule::named(id).unwrap_or_else(|| panic!("{name}: no rule `{id}`"));
            assert_eq!(rule.severity, *severity, "{name}: {id}");
        }
    }
}

fn write_file(text: &mut String, name: &str, counts: &Counts) {
    writeln!(text, "{name}").unwrap();
    for ((severity, rule), times) in counts {
        writeln!(text, "  {} {rule} × {times}", severity.as_str()).unwrap();
    }
}

/// Compares the findings with the stored table, or replaces the stored table.
pub(crate) fn compare(name: &str, seen: &Table) {
    if std::env::var_os("UPDATE_CORPUS").is_some() {
        let mut text = String::new();
        seen.files.iter().for_each(|(name, counts)| write_file(&mut text, name, counts));
        std::fs::write(file(name), text).unwrap();
    }
    let expected = read(name);
    let mut changed = String::new();
    for name in expected.files.keys().chain(seen.files.keys().filter(|name| !expected.files.contains_key(*name))) {
        let (before, now) = (expected.files.get(name), seen.files.get(name));
        if before != now {
            write!(changed, "{name}\n  before: {before:?}\n  now:    {now:?}\n").unwrap();
        }
    }
    assert!(changed.is_empty(), "{name}: look at what has changed, then run with UPDATE_CORPUS=1\n{changed}");
}
