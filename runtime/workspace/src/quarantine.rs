//! Stores files that a stage was not allowed to write or that cannot be committed, in a form in which they are harmless.
//!
//! Files are numbered in one flat folder, with mode 0600. They never keep their original names, so that no `.git` or
//! `.envrc` takes effect when a person opens the folder. `report.json` lists the original paths.

use crate::change::{ChangedFiles, FoundChange, Op};
use crate::commit::CommitError;
use crate::tree::{self, Tree};
use rustix::fs::Mode;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Limits of a quarantine folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuarantineLimits {
    /// Maximum number of stored files. Further files are only listed.
    pub files_max: u64,
    /// Maximum total size of stored files in bytes. A file that would exceed it is only listed.
    pub bytes_max: u64,
}

impl Default for QuarantineLimits {
    fn default() -> Self {
        Self { files_max: 1_000, bytes_max: 256 << 20 }
    }
}

/// One change that was not committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedChange {
    /// The path in the workspace, with unprintable characters escaped.
    pub path: String,
    /// The kind of change, as in [`crate::stage::Op`].
    pub op: String,
    /// Why it was not committed.
    pub reason: String,
    /// Length in bytes.
    pub bytes: u64,
    /// File name in the quarantine folder; `None` if the content was not stored.
    pub stored_as: Option<String>,
}

/// The content of `report.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineReport {
    /// Changes that were not committed, by path.
    pub kept: Vec<QuarantinedChange>,
}

/// Copies the regular files of `found` that are not allowed to the new folder `into` and writes `report.json` there. If all
/// changes are allowed, the folder is not created.
///
/// # Errors
/// [`CommitError::Io`] if `into` exists or the system refuses.
pub fn quarantine(
    view: &dyn ChangedFiles,
    found: &[FoundChange],
    into: &Path,
    caps: &QuarantineLimits,
) -> Result<QuarantineReport, CommitError> {
    let mut report = QuarantineReport::default();
    if found.iter().all(FoundChange::is_allowed) {
        return Ok(report);
    }
    let failed = |source: io::Error| CommitError::io(into, source);
    let tree = Tree::create(into).map_err(failed)?;
    let folder = tree.directory(Path::new("")).map_err(failed)?;
    let (mut files_left, mut bytes_left) = (caps.files_max, caps.bytes_max);
    for change in found {
        let Some(reason) = change.verdict.reason() else { continue };
        let mut kept = QuarantinedChange {
            path: change.path.clone(),
            op: change.op.as_str().to_owned(),
            reason: reason.to_owned(),
            bytes: 0,
            stored_as: None,
        };
        if let Op::Write { bytes, .. } = change.op {
            kept.bytes = bytes;
            if files_left > 0 && bytes <= bytes_left {
                let name = stored_name(report.kept.len() + 1, &change.raw);
                keep(view, change, &folder, OsStr::new(&name), bytes).map_err(failed)?;
                kept.stored_as = Some(name);
                (files_left, bytes_left) = (files_left - 1, bytes_left - bytes);
            }
        }
        report.kept.push(kept);
    }
    let file = tree::create_file(&folder, OsStr::new("report.json"), OWNER_ONLY).map_err(failed)?;
    serde_json::to_writer_pretty(file, &report).map_err(|error| failed(error.into()))?;
    Ok(report)
}

fn keep(view: &dyn ChangedFiles, change: &FoundChange, folder: &OwnedFd, name: &OsStr, bytes: u64) -> io::Result<()> {
    let source = view.open(change)?;
    let mut target = tree::create_file(folder, name, OWNER_ONLY)?;
    io::copy(&mut source.take(bytes), &mut target)?;
    Ok(())
}

/// Returns a readable file name: a number, and the harmless characters of the last component of the path.
fn stored_name(number: usize, path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' });
    format!("{number:04}-{}", plain.take(64).collect::<String>())
}
