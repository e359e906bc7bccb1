//! What a stage left outside of its scope, in words for the record: the reason of its failure, and the files that git ignores.
//!
//! The reason has the sentence of seed 2. It stays short, because the next stage gets it and every projection contains it.

use crate::event::IgnoredFiles;
use crate::folded::Folded;
use glovebox_sandbox::ignored::LeftOut;
use std::borrow::Cow;

/// The failure that hides behind disallowed writes (seed 2).
pub const GUARDRAIL: &str = "guardrail_violation: wrote disallowed files: ";
/// Most files of one folder that it names.
const FILES_NAMED_MAX: usize = 3;
/// Most bytes of the paths it names.
const GUARDRAIL_BYTES_MAX: usize = 8 << 10;

/// What the stage wrote at paths that git ignores, if anything.
pub(super) fn ignored_files(left_out: &LeftOut) -> Option<IgnoredFiles> {
    let (files, bytes) = (left_out.files(), left_out.bytes());
    (files > 0).then(|| IgnoredFiles { files, bytes, names: left_out.names() })
}

/// Names the paths up to a bound, because the next stage gets the reason and every projection contains it. A folder stands for many files
/// in it.
pub(super) fn reason(paths: &[String]) -> String {
    let (mut reason, mut unnamed) = (GUARDRAIL.to_owned(), 0_u64);
    let folded = Folded::of(paths.iter().map(|path| (path.as_str(), "")));
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
