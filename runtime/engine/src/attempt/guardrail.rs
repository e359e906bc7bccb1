//! Describes, for the record, the files that a stage wrote outside of its scope: in the reason of its failure, and in the
//! list of files that git ignores.
//!
//! The reason begins with a fixed sentence (decision stray-writes-fail-the-stage). It is short, because the next stage gets
//! it and every projection contains it.

use glovebox_journal::event::{IgnoredFiles, Recoverable, StageFinished};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome};
use glovebox_state::refused_writes::Folded;
use glovebox_workspace::ignored::IgnoredChanges;
use std::borrow::Cow;
use std::fmt::Display;

/// The beginning of the reason of a failure for disallowed writes (decision stray-writes-fail-the-stage).
pub const GUARDRAIL: &str = "guardrail_violation: wrote disallowed files: ";
/// Maximum number of files of one folder that are named one by one.
const FILES_NAMED_MAX: usize = 3;
/// Maximum number of bytes of the named paths.
const GUARDRAIL_BYTES_MAX: usize = 8 << 10;

/// Returns the writes of the stage to paths that git ignores. `None` if there are none.
pub(super) fn ignored_files(left_out: &IgnoredChanges) -> Option<IgnoredFiles> {
    let (files, bytes) = (left_out.files(), left_out.bytes());
    (files > 0).then(|| IgnoredFiles { files, bytes, names: left_out.names() })
}

/// Returns the reason, which names paths up to a maximum, because the next stage gets it and every projection contains
/// it. If many files are in one folder, the reason names the folder and their number instead.
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

/// Fails an attempt because of its disallowed writes. If a person may decide about the writes, the stage's own outcome is
/// kept with the failure. Otherwise the notes say why no person is asked.
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

/// Replaces the outcome of the stage with a failure. The stage's own failure reason is kept in the notes.
pub(super) fn replace(fact: &mut StageFinished, failure: Failure) {
    if let Some(own) = fact.outcome.failure.as_ref() {
        let line = format!("the stage itself failed: {}", own.reason);
        note(fact, line);
    }
    let notes = std::mem::take(&mut fact.outcome.notes);
    fact.outcome = Outcome { notes, ..Outcome::failed(failure) };
}
