//! The output of the commands that a run is executing in another process.
//!
//! An attempt is followed from the record of its start. A stage that can read hold-outs has no such output.

use crate::exit::Stop;
use crate::runs::RunFolder;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::live::{LiveFollower, LiveFrame};
use glovebox_journal::event::{Attempt, AttemptId, Record};
use std::collections::BTreeMap;

/// The attempts that run, with what was read of their output.
pub struct RunningOutputs {
    dir: Dir,
    running: BTreeMap<AttemptId, Running>,
}

/// An attempt that runs.
struct Running {
    attempt: Attempt,
    follower: Option<LiveFollower>,
    /// True if the whole output so far was read.
    is_whole: bool,
}

impl RunningOutputs {
    /// Opens the folder of a run.
    pub fn open(run: &RunFolder) -> Result<Self, Stop> {
        let dir = Dir::open_ambient_dir(&run.path, ambient_authority());
        let dir = dir.map_err(|error| Stop::io(format!("open run `{}`", run.id), &error))?;
        Ok(Self { dir, running: BTreeMap::new() })
    }

    /// Takes note of a record: an attempt begins or ends.
    pub fn note(&mut self, record: &Record) {
        if let Some(started) = record.event.stage_started() {
            let running = Running { attempt: started.attempt.clone(), follower: None, is_whole: true };
            self.running.insert(started.attempt.id.clone(), running);
        } else if let Some(finished) = record.event.stage_finished() {
            self.running.remove(&finished.attempt.id);
        }
    }

    /// Passes on what the running commands have printed since the last call.
    pub fn read(&mut self, mut take: impl FnMut(&Attempt, LiveFrame<'_>)) {
        let dir = &self.dir;
        self.running.values_mut().for_each(|running| running.read(dir, &mut take));
    }

    /// Passes on the rest of the output of an attempt that has ended. Returns true if all of its output was passed on.
    pub fn finish(&mut self, attempt: &AttemptId, mut take: impl FnMut(&Attempt, LiveFrame<'_>)) -> bool {
        let Some(mut running) = self.running.remove(attempt) else { return false };
        if running.follower.is_none() {
            return false;
        }
        running.read(&self.dir, &mut take);
        running.is_whole && running.follower.is_some_and(|follower| follower.has_ended())
    }
}

impl Running {
    fn read(&mut self, dir: &Dir, take: &mut impl FnMut(&Attempt, LiveFrame<'_>)) {
        if self.follower.is_none() {
            self.follower = LiveFollower::open(dir, &self.attempt.id);
        }
        let Some(follower) = &mut self.follower else { return };
        let (attempt, is_whole) = (&self.attempt, &mut self.is_whole);
        let read = follower.read(dir, |frame| {
            *is_whole &= !matches!(frame, LiveFrame::Missed(_));
            take(attempt, frame);
        });
        if let Err(error) = read {
            tracing::warn!(%error, "the output of a running command cannot be read");
            self.is_whole = false;
        }
    }
}
