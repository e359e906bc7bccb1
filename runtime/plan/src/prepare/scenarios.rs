//! Reads the scripts in a pipeline's hold-out folders, which `check` lints.
//!
//! A hold-out folder is looked for in the working folder, then in the folder of the pipeline. Symbolic links are not
//! followed, and at most 500 files of at most 256 KiB are read; other files are not checked. A run uses its sealed
//! copies instead.

use glovebox_pipeline::ir::Pipeline;
use glovebox_workspace::regular_file::{self, Links};
use std::path::{Path, PathBuf};

/// Maximum number of files for one pipeline.
const FILES_MAX: usize = 500;
/// Maximum size of a script, in bytes. A larger file is treated as data and is not read.
const BYTES_MAX: u64 = 256 << 10;
/// Maximum depth of folders.
const DEPTH_MAX: usize = 8;
/// File name endings of scripts. Other files are scripts if their first line begins with `#!`.
const ENDINGS: &[&str] = &["sh", "bash", "zsh", "fish", "py", "rb", "pl", "js", "mjs", "ts"];

/// The path of a script, as it is shown, and its text.
#[derive(Debug)]
pub struct Script {
    /// The path, relative to the working folder.
    pub path: String,
    /// The text.
    pub text: String,
}

/// Reads the scripts of a pipeline's hold-outs, sorted by path. Skips files that cannot be read.
pub fn read(file: &Path, pipeline: &Pipeline) -> Vec<Script> {
    let places = pipeline.scenario_folders().into_iter().filter_map(|folder| find_folder(file, Path::new(&folder)));
    let mut found = Vec::new();
    places.for_each(|place| walk(&place, DEPTH_MAX, &mut found));
    found.iter().filter_map(|path| script(path)).collect()
}

/// Finds a hold-out folder of a pipeline file: in the working folder, or else in the folder of the file.
pub fn find_folder(file: &Path, folder: &Path) -> Option<PathBuf> {
    let beside = file.parent().unwrap_or(Path::new(""));
    let is_folder = |place: &PathBuf| place.symlink_metadata().is_ok_and(|entry| entry.is_dir());
    [folder.to_owned(), beside.join(folder)].into_iter().find(is_folder)
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
    let text = regular_file::read_text(path, Links::Follow, BYTES_MAX).ok()?;
    let named = path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
    (named || text.starts_with("#!")).then(|| Script { path: path.display().to_string(), text })
}
