//! What a stage left outside of its scope, in words for the record: the reason of its failure, and the files that git ignores.
//!
//! The reason begins with a fixed sentence (decision stray-writes-fail-the-stage). It stays short, because the next stage gets it and every
//! projection contains it.

use glovebox_journal::event::{IgnoredFiles, Recoverable, StageFinished};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome};
use glovebox_state::refused_writes::Folded;
use glovebox_workspace::ignored::IgnoredChanges;
use std::borrow::Cow;
use std::fmt::Display;

/// The failure that hides behind disallowed writes (decision stray-writes-fail-the-stage).
pub const GUARDRAIL: &str = "guardrail_violation: wrote disallowed files: ";
/// Most files of one folder that it names.
const FILES_NAMED_MAX: usize = 3;
/// Most bytes of the paths it names.
const GUARDRAIL_BYTES_MAX: usize = 8 << 10;

/// The writes of the stage to paths that git ignores, if any.
pub(super) fn ignored_files(left_out: &IgnoredChanges) -> Option<IgnoredFiles> {
    let (files, bytes) = (left_out.files(), left_out.bytes());
    (files > 0).then(|| IgnoredFiles { files, bytes, names: left_out.names() })
}

/// Names the paths up to a bound, because the next stage gets the reason and every projection contains it. A folder stands for many files
/// in it.
fn reason(paths: &[String]) -> String {
    let (mut reason, mut unnamed) = (GUARDRAIL.to_owned(), 0_u64);
    let folded = Folded::group(paths.iter().map(|path| (path.as_str(), "")));
    let named = folded.iter().flat_map(|one| match one.files {
        0..=FILES_NAMED_MAX => one.paths().map(Cow::Borrowed).collect(),
        files => vec![Cow::Owned(format!("{} ({files} files)", one.at))],
    });
    for path in named {
        if unnamed > 0 || reason.len() + path.len() > GUARDRAIL_BYTES_MAX {
            unnamed += 1;
            continue;
        }
        let comma = if reason.len() == GUARDRAIL.len() { "" } else { "," };
        reason.push_str(comma);
        reason.push_str(&path);
    }
    if unnamed > 0 {
        reason.push_str(&format!(" and {unnamed} more"));
    }
    reason
}

/// Fails an attempt for its disallowed writes. Where a person may decide about them its own outcome is kept beside the failure; else the
/// notes say why nobody is asked.
pub(super) fn fail(fact: &mut StageFinished, paths: &[String], judged: Option<Result<Recoverable, String>>) {
    let own = fact.outcome.clone();
    replace(fact, Failure::new(FailureClass::Scope, FailureCode::SCOPE_WRITE, reason(paths)));
    match judged {
        Some(Ok(recoverable)) => fact.files.recoverable = Some(Box::new(Recoverable { outcome: own, ..recoverable })),
        Some(Err(why)) => note(fact, format_args!("write recovery did not ask: {why}")),
        None => {}
    }
}

fn note(fact: &mut StageFinished, line: impl Display) {
    let notes = &mut fact.outcome.notes;
    *notes = if notes.is_empty() { line.to_string() } else { format!("{notes}\n{line}") };
}

/// Puts a failure in the place of what the stage answered. The stage's own reason stays readable in the notes.
pub(super) fn replace(fact: &mut StageFinished, failure: Failure) {
    if let Some(own) = fact.outcome.failure.as_ref() {
        let line = format!("the stage itself failed: {}", own.reason);
        note(fact, line);
    }
    let notes = std::mem::take(&mut fact.outcome.notes);
    fact.outcome = Outcome { notes, ..Outcome::failed(failure) };
}
