//! Reports what `rm` and `gc` removed, or would remove: line by line, or as one document.

use super::{RunFolder, remove};
use crate::exit::Stop;
use crate::terminal::{self, about, counted, visible};
use glovebox_workspace::tree;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// The document that `rm --json` and `gc --json` print.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "removed.json")]
pub struct Removed {
    /// Version of this document.
    pub schema_version: u32,
    /// True if nothing was removed, and the document lists what would be removed.
    pub is_dry_run: bool,
    /// Total size on disk in bytes.
    pub bytes: u64,
    /// Runs that were removed.
    pub runs: Vec<RemovedRun>,
    /// Folders that were removed because no run needs them.
    pub folders: Vec<RemovedFolder>,
    #[serde(skip)]
    is_json: bool,
}

/// A run that was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedRun {
    /// Id of the run.
    pub run_id: String,
    /// Size of the run on disk in bytes.
    pub bytes: u64,
}

/// A folder that was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedFolder {
    /// Path of the folder.
    pub path: String,
    /// Size of the folder on disk in bytes.
    pub bytes: u64,
}

impl Removed {
    /// Creates an empty report.
    pub fn new(is_dry_run: bool, is_json: bool) -> Self {
        Self { schema_version: 1, is_dry_run, bytes: 0, runs: Vec::new(), folders: Vec::new(), is_json }
    }

    /// Removes a run, or checks only that it could be removed.
    pub fn run(&mut self, run: &RunFolder) -> Result<(), Stop> {
        let bytes = if self.is_dry_run { remove::check(run)? } else { remove::remove(run)? };
        self.note(&run.id, bytes);
        self.runs.push(RemovedRun { run_id: run.id.clone(), bytes });
        Ok(())
    }

    /// Removes a folder that no run needs, or only measures its size.
    pub fn folder(&mut self, folder: &Path) -> Result<(), Stop> {
        if std::fs::symlink_metadata(folder).is_err() {
            return Ok(());
        }
        let bytes = tree::bytes_on_disk(folder).unwrap_or(0);
        if !self.is_dry_run {
            let failed = |error| Stop::io(format!("remove `{}`", folder.display()), &error);
            tree::remove_all(folder).map_err(failed)?;
        }
        let path = folder.to_string_lossy().into_owned();
        self.note(&path, bytes);
        self.folders.push(RemovedFolder { path, bytes });
        Ok(())
    }

    fn note(&mut self, name: &str, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if !self.is_json {
            let verb = if self.is_dry_run { "would remove" } else { "removed" };
            terminal::print(format_args!("{verb} {} ({})\n", visible::line(name), about(bytes)));
        }
    }

    /// Prints the total, or the document.
    pub fn report(&self) -> Result<(), Stop> {
        if self.is_json {
            return terminal::print_json(self);
        }
        let verb = if self.is_dry_run { "would free" } else { "freed" };
        terminal::print(format_args!("{verb} {}: {}\n", about(self.bytes), counted(self.runs.len(), "run")));
        Ok(())
    }
}
