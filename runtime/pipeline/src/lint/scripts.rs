//! Rules about the scripts in hold-out folders.
//!
//! The caller selects the files and passes their texts. The module `words` splits a text into words.

use super::holdout_reach::model_id;
use super::words::{Script, Word};
use super::{Diagnostic, Rule, isolation};
use crate::diagnostic::DIAGNOSTICS_MAX;
use crate::ir::Pipeline;
use crate::reach::HoldoutReach;

/// A finding in a script. The spans of the diagnostic refer to the text of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFinding {
    /// Path of the script, as the caller passed it.
    pub path: String,
    /// The finding.
    pub diagnostic: Diagnostic,
}

/// Describes the mistake in a word of a script. `None` if there is no mistake.
type Fault = fn(&Word<'_>) -> Option<String>;

/// Checks the scripts in the hold-out folders of a pipeline. Each rule returns at most [`DIAGNOSTICS_MAX`] findings for
/// each script.
pub fn scripts(pipeline: &Pipeline, scripts: &[Script<'_>]) -> Vec<ScriptFinding> {
    let checks: [(&str, Fault); 2] = [("fixed_temporary_name", temporary), ("hardcoded_model_in_scenario", model)];
    let rule = |id: &str| Rule::named(id).expect("the table contains the rule, as a test checks");
    let reach = HoldoutReach::new(pipeline);
    let mut found = Vec::new();
    for script in scripts {
        let finding = |diagnostic| ScriptFinding { path: script.path.to_owned(), diagnostic };
        let words = script.words();
        for (id, fault) in checks {
            let faults = words.iter().filter_map(|word| Some(rule(id).found(fault(word)?, word.span)));
            found.extend(faults.take(DIAGNOSTICS_MAX).map(finding));
        }
        let faults = isolation::check_script(rule("subject_not_isolated"), pipeline, &reach, script);
        found.extend(faults.into_iter().take(DIAGNOSTICS_MAX).map(finding));
    }
    found
}

/// Describes a file in a folder for temporary files whose name is the same in every run. `None` for any other word.
fn temporary(Word { text: word, .. }: &Word<'_>) -> Option<String> {
    const FOLDERS: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];
    let path = match word.find('/') {
        Some(0) => word,
        // The path follows a prefix, as in `${TMPDIR:-/tmp}/name`, `of=/tmp/name` and `@/tmp/name`.
        Some(at) if word[..at].ends_with([':', '-', '@']) => &word[at..],
        _ => return None,
    };
    let rest = FOLDERS.iter().find_map(|folder| path.strip_prefix(folder))?;
    let name = rest.strip_prefix('}').unwrap_or(rest).strip_prefix('/')?;
    let differs = name.contains(['$', '*', '{', '%']) || name.contains("XXX");
    let is_named = !name.trim_matches(['/', '.']).is_empty();
    (is_named && !differs).then(|| format!("`{word}` is the same file in every run"))
}

fn model(word: &Word<'_>) -> Option<String> {
    model_id(word.text).map(|id| format!("the script names the live model `{id}`"))
}
