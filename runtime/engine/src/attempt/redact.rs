//! What remains of the answer of a stage that had hold-outs in reach: verdict, counts, and the lines its scenarios call public
//! (design §7).
//!
//! Applied before the answer becomes a fact, so that neither the next stage nor a file of the run tells more. Every text is taken to
//! be the program's under test, which may print what it is judged by. The whole answer is kept as an artifact, for people.

use crate::event::{Ending, StageFinished};
use crate::outcome::{Failure, Outcome};
use glovebox_host::call::Report;
use glovebox_pipeline::ir::Pipeline;
use glovebox_sandbox::holdout::canary::Canary;
use serde_json::Value;

/// The artifact with the whole answer.
pub(super) const WITHHELD_FILE: &str = "withheld.json";
/// Endings of artifacts with output, and the lines the handler adds to it.
const PRINTED: [(&str, usize); 3] = [(".stdout.txt", 0), (".stderr.txt", 0), (".output", 3)];
/// Longest key or code that is kept.
const WORD_BYTES_MAX: usize = 64;
/// What stands in the place of a text.
const WITHHELD: &str = "withheld: hold-out scenarios were in reach of that stage";

/// What may be told of what a stage printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Public {
    lines: usize,
    hints: Vec<String>,
}

impl Public {
    /// Counts lines and finds the public ones.
    pub(super) fn of(report: &Report, canary: &Canary) -> Self {
        let mut public = Self::default();
        let artifacts = report.artifacts.iter().filter_map(|artifact| {
            let (_, added) = PRINTED.iter().find(|(end, _)| artifact.name.ends_with(end))?;
            Some((&artifact.data, *added))
        });
        for (data, added) in artifacts.chain([(&report.stdout, 0), (&report.stderr, 0)]) {
            let text = String::from_utf8_lossy(data);
            public.lines += text.lines().count().saturating_sub(added);
            for hint in canary.hints([text.as_ref()]) {
                if !public.hints.contains(&hint) {
                    public.hints.push(hint);
                }
            }
        }
        public
    }
}

/// Takes everything out of a fact that is not known to be public.
pub(super) fn redact(fact: &mut StageFinished, pipeline: &Pipeline, public: &Public) {
    let summary = summary(fact, public);
    let outcome = std::mem::replace(&mut fact.outcome, Outcome::of(crate::outcome::Status::Fail));
    let is_edge = |text: &String| {
        let mut outgoing = pipeline.edges.iter().filter(|edge| edge.from.as_str() == fact.node);
        outgoing.any(|edge| edge.label == *text || edge.to.as_str() == text)
    };
    let updates = outcome.context_updates.into_iter().filter(|(key, _)| is_word(key));
    let updates = updates.map(|(key, value)| match value {
        Value::Bool(_) | Value::Number(_) | Value::Null => (key, value),
        _ => (key, Value::String(summary.clone())),
    });
    fact.outcome = Outcome {
        status: outcome.status,
        preferred_label: outcome.preferred_label.filter(is_edge),
        suggested_next_ids: outcome.suggested_next_ids.into_iter().filter(is_edge).collect(),
        context_updates: updates.collect(),
        failure: outcome.failure.map(|failure| redacted(fact, failure)),
        notes: summary,
    };
    if let Ending::Trapped(text) | Ending::NotLinked(text) = &mut fact.ending {
        WITHHELD.clone_into(text);
    }
}

fn summary(fact: &StageFinished, public: &Public) -> String {
    let (run, failed) = (fact.receipts.len(), fact.receipts.iter().filter(|receipt| receipt.code != Some(0)));
    let ends: Vec<String> =
        failed.map(|receipt| receipt.code.map_or_else(|| receipt.how.clone(), |code| format!("exit {code}"))).collect();
    let mut text = format!("{run} commands run, {} failed", ends.len());
    if !ends.is_empty() {
        text.push_str(&format!(" ({})", ends.join(", ")));
    }
    text.push_str(&format!("\noutput: {} lines, {WITHHELD}", public.lines));
    public.hints.iter().for_each(|hint| text.push_str(&format!("\n{hint}")));
    text
}

/// Keeps class and code. Reasons stay where the host or the `tool` handler words them out of numbers and names of ours alone.
fn redacted(fact: &StageFinished, failure: Failure) -> Failure {
    let is_numbers = (fact.handler == "tool" && failure.code.starts_with("tool/"))
        || ["limit/", "holdout/", "canceled"].iter().any(|start| failure.code.starts_with(start));
    let code = if is_word(&failure.code) { failure.code } else { "stage/failed".to_owned() };
    let reason = match code.as_str() {
        _ if is_numbers => failure.reason,
        "scope/write" => format!("{}{} paths, {WITHHELD}", super::GUARDRAIL, fact.quarantined.len()),
        _ => format!("{code}: {WITHHELD}"),
    };
    Failure { class: failure.class, code, reason }
}

/// True for a name, as opposed to a text.
fn is_word(text: &str) -> bool {
    let plain = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-' | b'.' | b'/');
    !text.is_empty() && text.len() <= WORD_BYTES_MAX && text.bytes().all(plain)
}

#[cfg(test)]
mod tests;
