//! The branches of a run that another process drives, with their last signs of life from the run's liveness stream.
//!
//! Both files are only hints. A file that cannot be read, or is not what it should be, adds nothing.

use super::RunFolder;
use glovebox_engine::project::LIVE_FILE;
use glovebox_engine::run_dir::LIVENESS_FILE;
use glovebox_journal::liveness::LivenessLine;
use glovebox_state::evidence::BranchNow;
use glovebox_workspace::regular_file::{self, Links};
use jiff::Timestamp;
use serde::Deserialize;
use std::time::SystemTime;

/// Maximum length of each of the files. The engine writes less.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The part of `live.json` that has the branches.
#[derive(Deserialize)]
struct LiveBranches {
    #[serde(default)]
    branches: Vec<BranchNow>,
}

/// Returns the branches of a run, as its `live.json` has them, with their signs of life.
pub fn read(run: &RunFolder) -> Vec<BranchNow> {
    let live = serde_json::from_str(&text(run, LIVE_FILE)).ok();
    let mut branches = live.map(|live: LiveBranches| live.branches).unwrap_or_default();
    note(run, &mut branches);
    branches
}

/// Adds the signs of life of a run's stream to its branches.
pub fn note(run: &RunFolder, branches: &mut [BranchNow]) {
    for line in lines(run) {
        branches.iter_mut().for_each(|branch| branch.note(&line));
    }
    branches.iter_mut().for_each(|branch| branch.forget_old_wait(Timestamp::now()));
}

/// Reads the stream of a run again each time it has changed.
#[derive(Default)]
pub struct StreamReader {
    /// The length of the file and the time of its last change at the last read.
    seen: Option<(u64, SystemTime)>,
}

impl StreamReader {
    /// Returns the lines of the stream if it has changed since the last call.
    pub fn read(&mut self, run: &RunFolder) -> Vec<LivenessLine> {
        let found = run.path.join(LIVENESS_FILE).symlink_metadata().ok();
        let now = found.and_then(|found| Some((found.len(), found.modified().ok()?)));
        if now == std::mem::replace(&mut self.seen, now) { Vec::new() } else { lines(run) }
    }
}

fn lines(run: &RunFolder) -> Vec<LivenessLine> {
    text(run, LIVENESS_FILE).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn text(run: &RunFolder, name: &str) -> String {
    regular_file::read_text(&run.path.join(name), Links::Within(&run.path), FILE_BYTES_MAX).unwrap_or_default()
}
