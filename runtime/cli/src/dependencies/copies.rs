//! Copies of hold-outs in installed dependencies: a packed or installed version of the project has its tests too.
//!
//! Compares bytes, not names. A length that no hold-out has is compared with nothing, so most files are only listed.

use glovebox_record::Digest;
use glovebox_record::scope::Entry;
use glovebox_sandbox::holdout::COPY_BYTES_MIN;
use std::collections::BTreeMap;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

/// The files of hold-outs by length and content.
#[derive(Debug, Default)]
pub(super) struct HoldoutFiles(BTreeMap<u64, BTreeMap<Digest, PathBuf>>);

impl HoldoutFiles {
    /// Reads the hold-outs of a project.
    pub(super) fn of(project: &Path, sealed: &[Entry]) -> Self {
        let mut found = Self::default();
        for folder in sealed {
            each_file(&project.join(folder.path().as_str()), &mut |file| {
                let Ok(bytes) = fs::read(file) else { return true };
                if bytes.len() as u64 >= COPY_BYTES_MIN {
                    let known = found.0.entry(bytes.len() as u64).or_default();
                    known.insert(Digest::of(&bytes), file.to_owned());
                }
                true
            });
        }
        found
    }

    /// The first file of a folder that is byte for byte a hold-out, with that hold-out.
    pub(super) fn copy_in(&self, folder: &Path) -> Option<(PathBuf, &Path)> {
        let mut copy = None;
        if self.0.is_empty() {
            return None;
        }
        each_file(folder, &mut |file| {
            let known = fs::symlink_metadata(file).ok().and_then(|found| self.0.get(&found.len()));
            let holdout = known.and_then(|known| known.get(&Digest::of(&fs::read(file).ok()?)));
            copy = holdout.map(|holdout| (file.to_owned(), holdout.as_path()));
            copy.is_none()
        });
        copy
    }
}

/// Visits every regular file at or below a path until `visit` returns false. Follows no link.
fn each_file(at: &Path, visit: &mut dyn FnMut(&Path) -> bool) {
    let kind = |path: &Path| fs::symlink_metadata(path).map(|found| found.file_type());
    let mut pending: Vec<(PathBuf, Option<FileType>)> = vec![(at.to_owned(), kind(at).ok())];
    while let Some((path, kind)) = pending.pop() {
        match kind {
            Some(kind) if kind.is_dir() => {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                pending.extend(entries.map(|entry| (entry.path(), entry.file_type().ok())));
            }
            Some(kind) if kind.is_file() && !visit(&path) => return,
            _ => {}
        }
    }
}
