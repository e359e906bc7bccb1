//! Rules about the scripts in hold-out folders (seed 2, scenario script reliability).
//!
//! Texts come in and findings go out: which files are scripts, and where they lie, is not known here. Words are those of `words`.

use super::holdouts::model_id;
use super::words::{Language, words};
use super::{Diagnostic, Rule, isolation};
use crate::diagnostic::DIAGNOSTICS_MAX;
use crate::ir::Pipeline;

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

/// Looks at the scripts among the hold-outs of a pipeline, given as path and text. Each rule gives at most [`DIAGNOSTICS_MAX`] findings
/// for a script.
pub fn scripts(pipeline: &Pipeline, texts: &[(&str, &str)]) -> Vec<ScriptFinding> {
    let checks: [(&str, Fault); 2] = [("fixed_temporary_name", temporary), ("hardcoded_model_in_scenario", model)];
    let rule = |id: &str| Rule::named(id).expect("the table holds it: a test looks");
    let mut found = Vec::new();
    for (path, text) in texts {
        let finding = |diagnostic| ScriptFinding { path: (*path).to_owned(), diagnostic };
        let words = words(text, Language::of(path, text));
        for (id, fault) in checks {
            let faults = words.iter().filter_map(|word| Some(rule(id).found(fault(word.text)?, word.span)));
            found.extend(faults.take(DIAGNOSTICS_MAX).map(finding));
        }
        let faults = isolation::of_script(rule("subject_not_isolated"), pipeline, path, text);
        found.extend(faults.into_iter().take(DIAGNOSTICS_MAX).map(finding));
    }
    found
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
