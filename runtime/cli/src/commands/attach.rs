//! `glovebox attach`: shows what a run does from now on, and its summary at the end. The run continues if this command
//! is stopped.

use crate::arguments::AttachArguments;
use crate::commands::control::{LOOK_EVERY, read, refuse_killed};
use crate::drive;
use crate::exit::{CommandResult, Exit};
use crate::runs;
use crate::runs::branches_now::StreamReader;
use crate::runs::journal;
use crate::runs::recorded;
use crate::runs::running_outputs::RunningOutputs;
use crate::terminal::progress::{ProgressFormat, Reporter};
use glovebox_engine::live::LiveFrame;
use glovebox_journal::event::{Event, Record, Task};
use glovebox_state::evidence::{RunSummary, VerdictFile};
use std::collections::BTreeMap;
use std::time::Instant;

/// Follows a run to its end, and returns its exit code.
pub fn attach(arguments: &AttachArguments) -> CommandResult {
    let runs_dir = &arguments.runs.runs_dir;
    let run = runs::select(runs_dir, &arguments.run)?;
    let mut records = read(&run, runs_dir)?;
    let format = ProgressFormat::choose(arguments.json, false);
    let pipeline = recorded::read(&run, &journal::current_start(&run, &records)?)?.pipeline;
    let mut reporter = Reporter::new(format, &pipeline);
    let (mut outputs, mut signs) = (RunningOutputs::open(&run)?, StreamReader::default());
    // A board shows the state of every node, so it needs all records.
    let is_whole = arguments.all || format == ProgressFormat::Live;
    let mut told = if is_whole { 0 } else { records.len() };
    if !is_whole && format == ProgressFormat::Lines {
        under_way(&records).for_each(|record| reporter.record(record));
    }
    loop {
        records.iter().skip(told).for_each(|record| {
            outputs.note(record);
            reporter.record(record);
        });
        told = records.len();
        // Only a board shows the output of running commands.
        outputs.read(|attempt, frame| {
            if let LiveFrame::Output(_, bytes) = frame {
                reporter.output(&attempt.task.node, bytes);
            }
        });
        signs.read(&run).iter().for_each(|line| reporter.liveness(line));
        let began = Instant::now();
        let is_live = runs::is_live(&run);
        // The records are read after `is_live`: if no process drives the run, no record is added later.
        records = read(&run, runs_dir)?;
        if !is_live && records.len() <= told {
            break;
        }
        if records.len() <= told {
            std::thread::sleep(LOOK_EVERY.max(began.elapsed() * 10));
        }
    }
    reporter.close();
    let summary = RunSummary::from_records(&records);
    refuse_killed(&run, &summary, runs_dir)?;
    let started = journal::beginning(&run, &records)?;
    drive::print_end(&run, &summary, Some(VerdictFile::new(&summary, started)), format, runs_dir)?;
    Ok(Exit::from(summary.end.exit))
}

/// Returns the last records of attempts that have not ended: `stage.started`, or `stage.held` if the attempt waits for
/// a quota.
fn under_way(records: &[Record]) -> impl Iterator<Item = &Record> {
    let mut last: BTreeMap<&Task, &Record> = BTreeMap::new();
    for record in records {
        match &record.event {
            Event::StageStarted(started) => drop(last.insert(&started.attempt.task, record)),
            Event::StageHeld(held) => drop(last.insert(&held.attempt.task, record)),
            Event::StageFinished(finished) => drop(last.remove(&finished.attempt.task)),
            _ => {}
        }
    }
    let mut last: Vec<&Record> = last.into_values().collect();
    last.sort_by_key(|record| record.seq);
    last.into_iter()
}
