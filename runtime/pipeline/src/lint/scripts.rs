//! Rules about the scripts in hold-out folders (seed 2, scenario script reliability).
//!
//! Texts come in and findings go out: which files are scripts, and where they lie, is not known here. Comments do not count.
//! Shell syntax is not parsed; a word is what stands between spaces, quotes and operators.

use super::holdouts::model_id;
use super::{Diagnostic, Rule};
use crate::diagnostic::DIAGNOSTICS_MAX;
use crate::span::Span;

/// A finding in a script; the diagnostic's span is one of the script's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFinding {
    /// The script's path, as it came in.
    pub path: String,
    /// What was found.
    pub diagnostic: Diagnostic,
}

/// What is wrong with a word of a script.
type Fault = fn(&str) -> Option<String>;

/// Looks at scripts, given as path and text. Each rule gives at most [`DIAGNOSTICS_MAX`] findings for a script.
pub fn scripts(texts: &[(&str, &str)]) -> Vec<ScriptFinding> {
    let checks: [(&str, Fault); 2] = [("fixed_temporary_name", temporary), ("hardcoded_model_in_scenario", model)];
    let mut found = Vec::new();
    for (path, text) in texts {
        for (id, fault) in checks {
            let rule = Rule::named(id).expect("the table holds it: a test looks");
            let faults = words(text).filter_map(|(span, word)| Some((span, fault(word)?)));
            found.extend(faults.take(DIAGNOSTICS_MAX).map(|(span, message)| ScriptFinding {
                path: (*path).to_owned(),
                diagnostic: rule.found(message, span),
            }));
        }
    }
    found
}

/// The words of all lines that are no comment, with their places.
fn words(text: &str) -> impl Iterator<Item = (Span, &str)> {
    let mut start = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        (at, code(line))
    });
    lines.flat_map(|(at, line)| {
        let in_word = |letter: char| {
            !letter.is_whitespace()
                && !matches!(letter, '"' | '\'' | '`' | ';' | '|' | '&' | '<' | '>' | '(' | ')' | '=' | ',')
        };
        line.split(move |letter: char| !in_word(letter)).filter(|word| !word.is_empty()).map(move |word| {
            let offset = at + (word.as_ptr() as usize - line.as_ptr() as usize);
            (Span::new(offset, offset + word.len()), word)
        })
    })
}

/// The line up to a comment: `#` or `//` at its beginning or after white space.
fn code(line: &str) -> &str {
    let begins = |at: usize| at == 0 || line[..at].ends_with(char::is_whitespace);
    let comment = ["#", "//"].iter().flat_map(|mark| line.match_indices(*mark)).map(|(at, _)| at);
    let end = comment.filter(|at| begins(*at)).min().unwrap_or(line.len());
    &line[..end]
}

/// A file below a folder for temporary files, with nothing in its name that differs from run to run.
fn temporary(word: &str) -> Option<String> {
    const FOLDERS: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];
    let path = match word.find('/') {
        Some(0) => word,
        // `${TMPDIR:-/tmp}/name`, `of=/tmp/name`, `@/tmp/name`
        Some(at) if word[..at].ends_with([':', '-', '@']) => &word[at..],
        _ => return None,
    };
    let rest = FOLDERS.iter().find_map(|folder| path.strip_prefix(folder))?;
    let name = rest.strip_prefix('}').unwrap_or(rest).strip_prefix('/')?;
    let differs = name.contains(['$', '*', '{', '%']) || name.contains("XXX");
    let is_named = !name.trim_matches(['/', '.']).is_empty();
    (is_named && !differs).then(|| format!("`{word}` is the same file for every run"))
}

fn model(word: &str) -> Option<String> {
    model_id(word).map(|id| format!("the script names the live model `{id}`"))
}
