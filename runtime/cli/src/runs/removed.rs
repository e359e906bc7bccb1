//! What `rm` and `gc` removed, or would remove: told line by line, or as one document.

use super::{RunFolder, remove};
use crate::exit::Stop;
use crate::terminal::{self, about, counted, visible};
use glovebox_workspace::tree;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// What `rm --json` and `gc --json` print.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "removed.json")]
pub struct Removed {
    /// Version of this document.
    pub schema_version: u32,
    /// True when nothing was removed: this is what would be.
    pub is_dry_run: bool,
    /// Bytes on disk of all that follows.
    pub bytes: u64,
    /// Whole runs.
    pub runs: Vec<RemovedRun>,
    /// Folders that no run needs.
    pub folders: Vec<RemovedFolder>,
    #[serde(skip)]
    is_json: bool,
}

/// A run that was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedRun {
    /// The run.
    pub run_id: String,
    /// Its size on disk.
    pub bytes: u64,
}

/// A folder that was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RemovedFolder {
    /// Where it was.
    pub path: String,
    /// Its size on disk.
    pub bytes: u64,
}

impl Removed {
    /// Nothing yet.
    pub fn new(is_dry_run: bool, is_json: bool) -> Self {
        Self { schema_version: 1, is_dry_run, bytes: 0, runs: Vec::new(), folders: Vec::new(), is_json }
    }

    /// Removes a run.
    pub fn run(&mut self, run: &RunFolder) -> Result<(), Stop> {
        let bytes = if self.is_dry_run { remove::check(run)? } else { remove::remove(run)? };
        self.note(&run.id, bytes);
        self.runs.push(RemovedRun { run_id: run.id.clone(), bytes });
        Ok(())
    }

    /// Removes a folder that no run needs.
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

    /// Tells the sum, or the document.
    pub fn report(&self) -> Result<(), Stop> {
        if self.is_json {
            return terminal::print_json(self);
        }
        let verb = if self.is_dry_run { "would free" } else { "freed" };
        terminal::print(format_args!("{verb} {}: {}\n", about(self.bytes), counted(self.runs.len(), "run")));
        Ok(())
    }
}
