//! Checks citations of `docs/decisions.md`: every cited rule exists on the page, every rule on the page is cited, and
//! its tests exist.
//!
//! A comment cites a rule by the word for it and the name of its heading, a page by a link. A citation that a reader of
//! the repository cannot open is a finding.

use crate::{files, none, root};
use std::collections::BTreeSet;
use std::fs;

const PAGE: &str = "docs/decisions.md";
/// Marks a rule that no comment cites.
const UNCITED: &str = "Cited by no code.";
const EXTENSIONS: [&str; 7] = ["rs", "md", "toml", "wit", "dot", "json", "snap"];

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// Returns the rules of the page: the name of each, and the text below its heading.
fn rules(page: &str) -> Vec<(&str, &str)> {
    page.split("\n### ").skip(1).filter_map(|section| section.split_once('\n')).collect()
}

/// Returns the name of a rule at the start of `text`, or `None`. A name consists of words with a `-` between them.
fn name(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !matches!(c, 'a'..='z' | '0'..='9' | '-')).unwrap_or(text.len());
    let name = text[..end].trim_end_matches('-');
    name.contains('-').then_some(name)
}

/// Returns the names of the rules that a line cites.
fn cited(line: &str) -> Vec<&str> {
    let places = ["decision ", "decisions.md#"].into_iter().flat_map(|mark| line.split(mark).skip(1));
    places.filter_map(name).collect()
}

/// Returns true if a line cites a document that is not in the repository: a numbered document, or the design.
fn is_out_of_reach(line: &str) -> bool {
    let line = line.to_lowercase();
    let numbered = ["seed ", "seeds "].into_iter().flat_map(|mark| line.split(mark).skip(1));
    numbered.into_iter().any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        || line.contains(concat!("design", " §"))
}

#[test]
fn citations_name_what_a_reader_can_open() {
    let page = read(PAGE);
    let known: BTreeSet<&str> = rules(&page).into_iter().map(|(name, _)| name).collect();
    assert!(known.len() > 60, "{} rules", known.len());
    let (mut findings, mut used) = (Vec::new(), BTreeSet::new());
    for path in EXTENSIONS.into_iter().flat_map(files) {
        for (index, line) in read(&path).lines().enumerate() {
            let at = format!("{path}:{}", index + 1);
            if is_out_of_reach(line) || line.ends_with("(decision") {
                findings.push(format!("{at}: cite a rule of {PAGE} by its name, on one line: {line}"));
            }
            for name in cited(line).into_iter().filter(|_| path != PAGE) {
                if !known.contains(name) {
                    findings.push(format!("{at}: {PAGE} has no `{name}`"));
                }
                used.insert(name.to_owned());
            }
        }
    }
    for (name, text) in rules(&page) {
        if used.contains(name) == text.contains(UNCITED) {
            findings.push(format!("{PAGE}: `{name}` is either cited or marked `{UNCITED}`"));
        }
    }
    none(&findings);
}

/// Returns true if the test exists: `suite::name` of a black-box suite, or `path/of/file::name`. That the file is
/// part of the build is a test of `suites`.
fn exists(test: &str) -> bool {
    let Some((file, name)) = test.split_once("::") else { return false };
    let path = if file.contains('/') { format!("{file}.rs") } else { format!("tests/{file}.rs") };
    let text = read(&path);
    let marked =
        |line: &str| text.contains(&format!("{line}fn {name}(")) || text.contains(&format!("{line}async fn {name}("));
    let attributes = ["#[test]\n", "#[test]\n    ", "#[tokio::test]\n", "#[tokio::test(start_paused = true)]\n"];
    attributes.iter().any(|line| marked(line))
}

#[test]
fn tests_of_decisions_exist() {
    let page = read(PAGE);
    let mut findings = Vec::new();
    for (name, text) in rules(&page) {
        let tests: Vec<&str> = text.split('`').skip(1).step_by(2).filter(|span| span.contains("::")).collect();
        if tests.is_empty() {
            findings.push(format!("{PAGE}: `{name}` names no test"));
        }
        let missing = tests.into_iter().filter(|test| !exists(test));
        findings.extend(missing.map(|test| format!("{PAGE}: `{name}`: no test `{test}`")));
    }
    none(&findings);
}

#[test]
fn citations_are_recognised() {
    assert_eq!(
        cited("/// Stops (spec §3.7, decision exit-codes), then (decision edge-order)."),
        ["exit-codes", "edge-order"]
    );
    assert_eq!(cited("see [rule](decisions.md#exit-codes); a decision of people is none"), ["exit-codes"]);
    assert!(is_out_of_reach(concat!("what Seed", " 4 says")) && is_out_of_reach(concat!("(design", " §7)")));
    assert!(!is_out_of_reach("a seed of chance, spec §3.7"));
    assert!(exists("tidy::nothing_is_left_undone") && !exists("tidy::nothing_at_all"));
}
