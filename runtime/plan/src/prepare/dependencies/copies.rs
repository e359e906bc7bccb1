//! Finds copies of hold-outs in installed dependencies. A packed or installed version of the project contains its tests too.
//!
//! Contents are compared, not names. A file is read only if some hold-out has the same length, so most files are only listed.

use glovebox_record::scope::Entry;
use glovebox_workspace::holdout::COPY_BYTES_MIN;
use glovebox_workspace::regular_file::{self, Links};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

/// The files of hold-outs, by length and content.
#[derive(Debug, Default)]
pub(super) struct HoldoutFiles(BTreeMap<u64, HashMap<blake3::Hash, PathBuf>>);

impl HoldoutFiles {
    /// Reads the hold-outs of a project.
    pub(super) fn find(project: &Path, sealed: &[Entry]) -> Self {
        let mut found = Self::default();
        for folder in sealed {
            each_file(&project.join(folder.path().as_str()), &mut |file| {
                if let Some((bytes, digest)) = digest(file, project).filter(|(bytes, _)| *bytes >= COPY_BYTES_MIN) {
                    found.0.entry(bytes).or_default().insert(digest, file.to_owned());
                }
                true
            });
        }
        found
    }

    /// Returns the first file of a folder that is byte for byte equal to a hold-out, and that hold-out.
    pub(super) fn copy_in(&self, folder: &Path) -> Option<(PathBuf, &Path)> {
        let mut copy = None;
        if self.0.is_empty() {
            return None;
        }
        each_file(folder, &mut |file| {
            let known = fs::symlink_metadata(file).ok().and_then(|found| self.0.get(&found.len()));
            let holdout = known.and_then(|known| known.get(&digest(file, folder)?.1));
            copy = holdout.map(|holdout| (file.to_owned(), holdout.as_path()));
            copy.is_none()
        });
        copy
    }
}

/// Returns the length and the digest of a file, read in chunks.
fn digest(file: &Path, folder: &Path) -> Option<(u64, blake3::Hash)> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(regular_file::open(file, Links::Within(folder)).ok()?).ok()?;
    Some((hasher.count(), hasher.finalize()))
}

/// Calls `visit` for every regular file at or below a path until `visit` returns false. Does not follow symbolic links.
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
