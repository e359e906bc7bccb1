//! Child pipelines: `check` follows `stack.child_dotfile` from file to file.
//!
//! A pipeline has one child at most, so there is one way down. It ends at a file without a child, at one that was met before,
//! or at [`DEPTH_MAX`]. What is wrong with a child's file is told at its own place, that it cannot be had where it is named.

use crate::commands::check::{Looked, judged};
use crate::house::Houses;
use crate::references::Folder;
use crate::source::{Opened, TEXT_BYTES_MAX};
use crate::terminal::diagnostics::Findings;
use glovebox_pipeline::Inputs;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::files::{Wanted, endless_child, unreadable_child};
use std::path::{Path, PathBuf};

/// The most files in a row, the first not counted.
const DEPTH_MAX: usize = 16;

/// Checks the child of a file, its child, and so on, each by the rules of its own project and none of them with the first file's
/// inputs; adds to the findings of who names a child that cannot be had.
pub fn check(file: &Path, parent: &mut Findings, mut wanted: Wanted, houses: &mut Houses) -> Vec<Findings> {
    let mut file = file.to_owned();
    let mut met: Vec<PathBuf> = std::fs::canonicalize(&file).into_iter().collect();
    let mut found: Vec<Findings> = Vec::new();
    while let Some((path, _)) = &wanted.child {
        let child = file.with_file_name("").join(path);
        match next(&file, &wanted, &mut met) {
            Ok(source) => {
                let opened = Opened::of(&child, source, &Inputs::default());
                let Looked { findings, wanted: below, .. } = judged(opened, houses);
                found.push(findings);
                (file, wanted) = (child, below);
            }
            Err(fault) => {
                let named = found.last_mut().unwrap_or(parent);
                named.diagnostics.push(*fault);
                named.diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.severity));
                break;
            }
        }
    }
    found
}

/// Reads the child of a file, which is not among those met.
fn next(file: &Path, wanted: &Wanted, met: &mut Vec<PathBuf>) -> Result<String, Box<Diagnostic>> {
    let Some((path, span)) = &wanted.child else { return Ok(String::new()) };
    let unreadable = |reason: String| Box::new(unreadable_child(path, &reason, *span));
    let folder = Folder::of(file).map_err(unreadable)?;
    let place = folder.place(path).map_err(unreadable)?;
    if met.contains(&place) {
        return Err(Box::new(endless_child(path, "leads back to itself", *span)));
    }
    if met.len() > DEPTH_MAX {
        return Err(Box::new(endless_child(path, &format!("is more than {DEPTH_MAX} files below the first"), *span)));
    }
    met.push(place);
    folder.read(path, &wanted.sealed, TEXT_BYTES_MAX).map_err(unreadable)
}
