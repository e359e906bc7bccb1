//! The turns that attempts had with their models.

use super::RunFolder;
use super::journal;
use crate::exit::Stop;
use glovebox_engine::attempt::TRANSCRIPT_FILE;
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::StageFinished;
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_record::transcript::Turn;

/// Maximum number of bytes of a transcript that are read.
const TRANSCRIPT_BYTES_MAX: u64 = 64 << 20;

/// Returns the turns that an attempt kept; empty if it asked no model.
pub fn kept(run: &RunFolder, stage: &StageFinished, blobs: &DirBlobs) -> Result<Vec<Turn>, Stop> {
    let Some(artifact) = stage.files.artifacts.iter().find(|artifact| artifact.name == TRANSCRIPT_FILE) else {
        return Ok(Vec::new());
    };
    let bytes = blobs.read_all(&artifact.digest, TRANSCRIPT_BYTES_MAX);
    let bytes = bytes.map_err(|error| journal::unreadable(run, &error))?;
    turns(run, &bytes)
}

/// Returns the turns in the lines of a transcript.
pub fn turns(run: &RunFolder, bytes: &[u8]) -> Result<Vec<Turn>, Stop> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(serde_json::from_slice).collect::<Result<_, _>>().map_err(|error| {
        let problem = format!("a line of `{TRANSCRIPT_FILE}` is not readable: {error}");
        journal::unreadable(run, &PortError::Unavailable(problem))
    })
}
