//! The author's own calls: the given input with its outcome, and cases with what is expected of them.

use crate::bench::Bench;
use crate::commands;
use crate::error::TestError;
use crate::observed::Observed;
use crate::report::{CheckResult, Finding, InputChange, InputResult, milliseconds};
use crate::stage_file::{Expectation, StageFile};
use crate::text::quoted;
use glovebox_host::call::LogLine;
use glovebox_host::grants::Grants;
use glovebox_record::Outcome;
use std::collections::BTreeMap;

/// Group of the cases.
pub(crate) const GROUP: &str = "cases";
/// Group of the input that was given.
pub(crate) const INPUT_GROUP: &str = "input";

/// A case, and the call that was made for it.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseCall {
    /// The comparison with what the case expects.
    pub check: CheckResult,
    /// The outcome. `None` if the case was not run.
    pub outcome: Option<Outcome>,
    /// The lines that the plugin logged. The plugin chose their text.
    pub log: Vec<LogLine>,
}

/// Calls the component as a case says, and compares what it did with what is expected.
pub(crate) fn run(bench: &Bench<'_>, name: &str, file: &StageFile) -> Result<CaseCall, TestError> {
    let result = |finding| {
        let checks = "the outcome and the files are as the case expects";
        let help = "correct the plugin, or what the case expects";
        CheckResult::named(format!("{GROUP}.{name}").into(), checks.into(), help.into(), finding)
    };
    let grants = granted(bench, file);
    let runs_commands = commands::grant(&grants) != Default::default();
    if runs_commands && !bench.runs_commands() {
        let finding = Finding::NotRun("it needs commands: `--allow-commands` runs them in a sandbox".to_owned());
        return Ok(CaseCall { check: result(finding), outcome: None, log: Vec::new() });
    }
    let mut stage = file.clone();
    let before = stage.files.get_or_insert_default().clone();
    let observed = bench.call(&format!("the case {}", quoted(name)), &bench.plan(&stage, grants))?;
    let nothing = Expectation::default();
    let differences = differences(file.expect.as_ref().unwrap_or(&nothing), &observed, &before);
    let finding = Finding::of((!differences.is_empty()).then(|| differences.join("; ")));
    let report = observed.report;
    Ok(CaseCall { check: result(finding), outcome: Some(report.outcome), log: report.log })
}

/// Returns what a case is granted: of what the plugin wants, what the case grants. A plugin without a manifest gets what the case grants.
fn granted(bench: &Bench<'_>, file: &StageFile) -> Grants {
    match (&file.grants, &bench.inspection.manifest) {
        (None, _) => bench.wants(),
        (Some(grants), None) => grants.clone(),
        (Some(grants), Some(manifest)) => manifest.wants.intersect(grants),
    }
}

/// Returns the outcome of the given input, and adds a check if it says what is expected.
pub(crate) fn input(
    bench: &Bench<'_>,
    file: &StageFile,
    results: &mut Vec<CheckResult>,
) -> Result<InputResult, TestError> {
    let stage = bench.normal_stage();
    let before = stage.files.clone().unwrap_or_default();
    let observed = bench.normal()?;
    if let Some(expect) = &file.expect {
        let differences = differences(expect, observed, &before);
        let finding = Finding::of((!differences.is_empty()).then(|| differences.join("; ")));
        let checks = "the outcome and the files are as the input file expects";
        let help = "correct the plugin, or what the input file expects";
        let name = format!("{INPUT_GROUP}.expected");
        results.push(CheckResult::named(name.into(), checks.into(), help.into(), finding));
    }
    let change = |change: &crate::observed::ObservedChange| InputChange {
        path: change.path.clone(),
        op: change.op,
        refused: change.refused.clone(),
    };
    Ok(InputResult {
        outcome: observed.report.outcome.clone(),
        changes: observed.changes.iter().map(change).collect(),
        refused: observed.report.refusals.iter().map(ToString::to_string).collect(),
        host_calls: observed.calls.total,
        duration_ms: milliseconds(observed.took),
    })
}

/// Returns every difference between what is expected and what was observed, each as a part of a sentence.
fn differences(expect: &Expectation, observed: &Observed, before: &BTreeMap<String, String>) -> Vec<String> {
    let outcome = &observed.report.outcome;
    let mut found = Vec::new();
    let mut compare = |what: &str, expected: Option<&str>, is: Option<&str>| {
        if let Some(expected) = expected.filter(|expected| Some(*expected) != is) {
            let is = is.map_or_else(|| "none".to_owned(), quoted);
            found.push(format!("{what} is {is}, expected {}", quoted(expected)));
        }
    };
    let failure = outcome.failure.as_ref();
    compare("status", expect.status.map(|status| status.as_str()), Some(outcome.status.as_str()));
    compare("code", expect.code.as_deref(), failure.map(|failure| failure.code.as_str()));
    compare("label", expect.label.as_deref(), outcome.preferred_label.as_deref());
    for (key, value) in &expect.context {
        let is = outcome.context_updates.get(key);
        if is != Some(value) {
            let (expected, is) = (value.to_string(), is.map(ToString::to_string));
            compare(&format!("context key {}", quoted(key)), Some(&expected), is.as_deref());
        }
    }
    let reason = failure.map_or("", |failure| failure.reason.as_str());
    let parts = expect.notes_contain.iter().map(|part| ("notes", outcome.notes.as_str(), part));
    for (what, text, part) in parts.chain(expect.reason_contains.iter().map(|part| ("reason", reason, part))) {
        if !text.contains(part.as_str()) {
            found.push(format!("{what} {} have no {}", quoted(text), quoted(part)));
        }
    }
    found.extend(
        expect.files.iter().filter_map(|(path, text)| file_difference(path, text.as_deref(), observed, before)),
    );
    // The reason of a failure that was not expected explains the difference.
    if let (false, Some(failure)) = (found.is_empty(), failure) {
        found.push(format!("the failure is {}: {}", quoted(failure.code.as_str()), quoted(&failure.reason)));
    }
    found
}

/// Returns how a file after the call differs from what is expected.
fn file_difference(
    path: &str,
    expected: Option<&str>,
    observed: &Observed,
    before: &BTreeMap<String, String>,
) -> Option<String> {
    let last = observed.changes.iter().rfind(|change| change.path == path);
    let is: Option<Vec<u8>> = match last.map(|change| (change.op, change)) {
        None => before.get(path).map(|text| text.clone().into_bytes()),
        Some(("write", change)) if change.refused.is_some() => {
            return Some(format!("{} was written, but a run would not commit it", quoted(path)));
        }
        Some(("write", change)) => match &change.content {
            Some(content) => Some(content.clone()),
            None => return Some(format!("{} is longer than a case can expect", quoted(path))),
        },
        Some(_) => None,
    };
    match (expected, is) {
        (None, None) => None,
        (Some(expected), Some(is)) if expected.as_bytes() == is => None,
        (None, Some(_)) => Some(format!("{} exists", quoted(path))),
        (Some(_), None) => Some(format!("{} does not exist", quoted(path))),
        (Some(expected), Some(is)) => {
            let is = String::from_utf8_lossy(&is);
            let line = is.lines().zip(expected.lines()).position(|(is, expected)| is != expected);
            let line = line.unwrap_or_else(|| is.lines().count().min(expected.lines().count()));
            let at = |text: &str| text.lines().nth(line).map_or_else(|| "nothing".to_owned(), quoted);
            Some(format!("line {} of {} is {}, expected {}", line + 1, quoted(path), at(&is), at(expected)))
        }
    }
}
