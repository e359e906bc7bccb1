//! The scripts in a pipeline's hold-out folders, for `check` to look at.
//!
//! Looks in the working folder, then beside the pipeline, as the author has them; a run has sealed copies of its own. Follows
//! no link, and reads at most [`FILES_MAX`] files of [`BYTES_MAX`] bytes: what is beyond is not judged.

use crate::files;
use glovebox_pipeline::ir::Pipeline;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most files looked at for one pipeline.
const FILES_MAX: usize = 500;
/// The longest script that is read; a longer one is data.
const BYTES_MAX: u64 = 256 << 10;
/// How deep folders are walked into.
const DEPTH_MAX: usize = 8;
/// Endings of scripts; other files count by a first line that begins with `#!`.
const ENDINGS: &[&str] = &["sh", "bash", "zsh", "fish", "py", "rb", "pl", "js", "mjs", "ts"];

/// A script's path, as it is shown, and its text.
#[derive(Debug)]
pub struct Script {
    /// The path from where the command was given.
    pub path: String,
    /// The text.
    pub text: String,
}

/// Reads the scripts of a pipeline's hold-outs, in order of their paths. What cannot be read is left out.
pub fn read(file: &Path, pipeline: &Pipeline) -> Vec<Script> {
    let places = pipeline.scenario_folders().into_iter().filter_map(|folder| place(file, &folder));
    let mut found = Vec::new();
    places.for_each(|place| walk(&place, DEPTH_MAX, &mut found));
    found.iter().filter_map(|path| script(path)).collect()
}

/// Where a hold-out folder of a pipeline's file lies: in the working folder, else beside the file.
pub fn place(file: &Path, folder: &str) -> Option<PathBuf> {
    let beside = file.parent().unwrap_or(Path::new(""));
    let is_folder = |place: &PathBuf| place.symlink_metadata().is_ok_and(|entry| entry.is_dir());
    [PathBuf::from(folder), beside.join(folder)].into_iter().find(is_folder)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if found.len() >= FILES_MAX {
            return;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => walk(&entry.path(), depth - 1, found),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

fn script(path: &Path) -> Option<Script> {
    let mut bytes = Vec::new();
    files::open(path).ok()?.take(BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= BYTES_MAX)?;
    let named = path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
    (named || text.starts_with("#!")).then(|| Script { path: path.display().to_string(), text })
}
