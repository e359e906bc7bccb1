//! Sends each run that ends to a collector, while the server works.
//!
//! It is a thread of its own that looks at the folder of runs, so neither a request nor a run waits for the collector. It
//! keeps no queue: what was not sent is found again in the folder. If a run was sent and is sent again, it is the same
//! trace.

use super::Telemetry;
use super::send::{Collector, NotSent};
use crate::exit::Stop;
use crate::runs::journal;
use crate::runs::{self, RunFolder};
use crate::terminal::{self, visible};
use glovebox_workspace::run_folder::JOURNAL_FILE;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// Interval at which the folder of runs is examined.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Maximum time until a collector that did not answer is asked again. The time doubles from [`LOOK_EVERY`].
const AGAIN_MAX: Duration = Duration::from_secs(60);

/// Length and time of a journal.
type Stamp = (u64, i64, i64);

/// The runs of a folder that were examined.
struct Exporter {
    collector: Collector,
    runs_dir: PathBuf,
    /// The state of each run when nothing was left to send of it.
    done: BTreeMap<String, Stamp>,
    /// Number of the last record of each run that was sent.
    sent: BTreeMap<String, u64>,
    /// True if the user was told that the collector does not answer, and it has not answered since.
    is_away: bool,
}

/// Begins to send the runs of a folder that end from now on.
pub fn begin(collector: Collector, runs_dir: PathBuf) -> Result<(), Stop> {
    let mut exporter = Exporter { collector, runs_dir, done: BTreeMap::new(), sent: BTreeMap::new(), is_away: false };
    // A run that has ended before is not sent: `glovebox export` does that.
    for run in runs::list(&exporter.runs_dir)?.iter().filter(|run| !runs::is_live(run)) {
        exporter.done.extend(stamp(run).map(|stamp| (run.id.clone(), stamp)));
    }
    let thread = std::thread::Builder::new().name("telemetry".to_owned()).spawn(move || exporter.work());
    thread.map(drop).map_err(|error| Stop::io("start the export of telemetry", &error))
}

impl Exporter {
    fn work(&mut self) {
        let mut wait = LOOK_EVERY;
        loop {
            std::thread::sleep(wait);
            wait = match self.look() {
                Ok(()) => LOOK_EVERY,
                Err(()) => (wait * 2).min(AGAIN_MAX),
            };
        }
    }

    /// Sends what has ended. Returns an error if the collector did not take a run, so that the others are not tried now.
    fn look(&mut self) -> Result<(), ()> {
        let Ok(found) = runs::list(&self.runs_dir) else { return Ok(()) };
        self.done.retain(|id, _| found.iter().any(|run| run.id == *id));
        self.sent.retain(|id, _| found.iter().any(|run| run.id == *id));
        // The oldest run is sent first.
        for run in found.iter().rev() {
            // The journal is examined before the run: what is written later is seen the next time.
            let Ok(now) = stamp(run) else { continue };
            if self.done.get(&run.id) == Some(&now) || runs::is_live(run) {
                continue;
            }
            if let Some(last) = ended(run).filter(|last| self.sent.get(&run.id) != Some(last)) {
                self.send(run)?;
                self.sent.insert(run.id.clone(), last);
            }
            self.done.insert(run.id.clone(), now);
        }
        Ok(())
    }

    fn send(&mut self, run: &RunFolder) -> Result<(), ()> {
        // A run that cannot be read has no telemetry, and hides no other.
        let Ok(telemetry) = Telemetry::of(run) else { return Ok(()) };
        match self.collector.send(&telemetry) {
            Ok(()) => {
                self.is_away = false;
                Ok(())
            }
            Err(NotSent { stop, is_final: true }) => {
                let (id, why) = (visible::line(&run.id), visible::line(&stop.message));
                terminal::note(format_args!("warning: run {id} is not sent again: {why}\n"));
                Ok(())
            }
            Err(NotSent { stop, .. }) => {
                if !std::mem::replace(&mut self.is_away, true) {
                    let why = visible::line(&stop.message);
                    terminal::note(format_args!("warning: {why}; runs that have ended are sent when it answers\n"));
                }
                Err(())
            }
        }
    }
}

/// Returns the number of the last record of a run that has ended. `None` for one that is paused or cannot be read.
fn ended(run: &RunFolder) -> Option<u64> {
    let (ends, ..) = journal::read_ends(run, None).ok()?;
    ends.last().filter(|record| record.event.run_finished().is_some()).map(|record| record.seq)
}

fn stamp(run: &RunFolder) -> io::Result<Stamp> {
    let found = std::fs::symlink_metadata(run.path.join(JOURNAL_FILE))?;
    Ok((found.len(), found.mtime(), found.mtime_nsec()))
}
