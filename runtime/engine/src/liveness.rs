//! Writes the liveness stream of a run: signs of life of the attempts, for other processes and for this one.
//!
//! An attempt that is shorter than a heartbeat interval writes nothing. The file is only a hint: it may be lost, it is not part of the
//! record, and an error while writing it does not stop the run. When the file is longer than 1 MiB, a new file replaces it, which
//! begins with the starts of the attempts in progress.

use crate::run_dir::LIVENESS_FILE;
use cap_std::fs::{Dir, File};
use glovebox_journal::event::{AttemptId, BranchId, Event, Record};
use glovebox_journal::liveness::{LivenessEvent, LivenessLine};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc::Sender;

/// Maximum length of the file in bytes. Lines that begin below this length are written completely.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The liveness stream of a run that this process drives.
pub struct LivenessStream<'a> {
    dir: &'a Dir,
    lines: Sender<LivenessLine>,
    file: Mutex<StreamFile>,
}

/// The file of the stream, which is created for the first line.
#[derive(Default)]
struct StreamFile {
    file: Option<File>,
    bytes: u64,
    has_failed: bool,
    /// The attempts in progress, with the line of their start.
    begun: BTreeMap<AttemptId, LivenessLine>,
    /// The branches with a line.
    branches: BTreeSet<(u32, BranchId)>,
}

impl<'a> LivenessStream<'a> {
    /// Creates the stream of a run. `lines` gets each line, too. If the channel is full, lines are dropped.
    pub fn new(dir: &'a Dir, lines: Sender<LivenessLine>) -> Self {
        Self { dir, lines, file: Mutex::default() }
    }

    /// Writes lines about one attempt.
    pub(crate) fn write(&self, lines: &[LivenessLine]) {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write(self.dir, lines);
        lines.iter().for_each(|line| drop(self.lines.try_send(line.clone())));
    }

    /// Writes the ends of branches that have a line.
    pub(crate) fn note(&self, records: &[Record]) {
        for record in records {
            let Event::BranchFinished(finished) = &record.event else { continue };
            let ended = (finished.generation, finished.branch.clone());
            let had_line = self.file.lock().unwrap_or_else(PoisonError::into_inner).branches.remove(&ended);
            if had_line {
                self.write(&[LivenessLine::of_branch(record.at, ended.0, ended.1)]);
            }
        }
    }
}

impl StreamFile {
    fn write(&mut self, dir: &Dir, lines: &[LivenessLine]) {
        let mut text = Vec::new();
        for line in lines {
            match (line.event, line.attempt_id()) {
                (LivenessEvent::StageAttemptStart, Some(id)) => {
                    self.begun.insert(id.clone(), line.clone());
                    self.branches.insert((line.run_generation, line.branch_id.clone()));
                }
                (LivenessEvent::StageAttemptEnd, Some(id)) => drop(self.begun.remove(id)),
                _ => {}
            }
            push(&mut text, line);
        }
        if self.has_failed {
            return;
        }
        if let Err(error) = self.append(dir, &text) {
            tracing::warn!(%error, "the liveness stream cannot be written");
            self.has_failed = true;
        }
    }

    fn append(&mut self, dir: &Dir, text: &[u8]) -> io::Result<()> {
        if self.bytes >= FILE_BYTES_MAX {
            return self.replace(dir);
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(dir.create(LIVENESS_FILE)?),
        };
        self.bytes += text.len() as u64;
        file.write_all(text)
    }

    /// Replaces the file with one that has only the starts of the attempts in progress. The lines that did not fit are lost.
    fn replace(&mut self, dir: &Dir) -> io::Result<()> {
        let mut text = Vec::new();
        self.begun.values().for_each(|line| push(&mut text, line));
        let name = format!(".{LIVENESS_FILE}.new");
        let mut file = dir.create(&name)?;
        file.write_all(&text)?;
        dir.rename(&name, dir, LIVENESS_FILE)?;
        (self.file, self.bytes) = (Some(file), text.len() as u64);
        Ok(())
    }
}

fn push(text: &mut Vec<u8>, line: &LivenessLine) {
    let length = text.len();
    match serde_json::to_writer(&mut *text, line) {
        Ok(()) => text.push(b'\n'),
        Err(_) => text.truncate(length),
    }
}

#[cfg(test)]
mod tests;
