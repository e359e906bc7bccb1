//! `glovebox steer`: sends a message to an agent that is at work.
//!
//! The process that drives the run records the message for the current attempts of the node, and for no later one. When
//! this command succeeds, the message is in the journal. When it reports that no attempt was at work, the message was
//! removed and will not be recorded.

use super::control::{LOOK_EVERY, how, read};
use crate::answer_sources;
use crate::arguments::SteerArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs::journal;
use crate::runs::recorded;
use crate::runs::{self, RunFolder};
use crate::terminal::{self, visible};
use glovebox_engine::inbox::{GivenSteering, Message};
use glovebox_journal::event::{NodeId, Record};
use glovebox_pipeline::nearest::nearest;
use glovebox_record::MessageId;
use glovebox_record::steering::STEERING_BYTES_MAX;
use glovebox_state::evidence::RunSummary;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the process that drives the run may take to record a message.
const RECORDED_WITHIN: Duration = Duration::from_secs(20);

/// The document that `steer --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "steer.json")]
pub struct SteerFile<'a> {
    /// Version of this document.
    pub schema_version: u32,
    /// Id of the run.
    pub run_id: &'a str,
    /// The node whose agent gets the message.
    pub node: &'a NodeId,
    /// Id of the message, as in `stage.steered` and in `steered` of `stage.finished`.
    pub message: &'a MessageId,
    /// Always `recorded`: the model gets the message with its next turn, if there is one.
    pub state: &'a str,
}

impl<'a> SteerFile<'a> {
    /// Returns the document for a message that the journal has.
    pub fn of(run: &'a RunFolder, given: &'a GivenSteering) -> Self {
        Self { schema_version: 1, run_id: &run.id, node: &given.node, message: &given.message, state: "recorded" }
    }
}

/// Sends a message to an agent.
pub fn steer(arguments: &SteerArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let by = answer_sources::name(arguments.name.as_ref());
    let given = send(&run, &arguments.runs.runs_dir, &arguments.node, &arguments.text, by)?;
    if arguments.json {
        terminal::print_json(&SteerFile::of(&run, &given))?;
        return Ok(Exit::Ok);
    }
    let node = visible::line(given.node.as_str());
    let named = runs::spelled(&run.id, &arguments.runs.runs_dir);
    terminal::print(format!(
        "sent the message to {node}; its model gets it with the next turn; see `glovebox show {named} {node}`\n"
    ));
    Ok(Exit::Ok)
}

/// Sends a message to the agent of a node, and returns it when the journal has it. `by` is the name that the record
/// gets.
pub fn send(run: &RunFolder, runs_dir: &Path, node: &NodeId, text: &str, by: String) -> Result<GivenSteering, Stop> {
    let text = text.trim();
    if !(1..=STEERING_BYTES_MAX).contains(&text.len()) {
        let message = format!("the text has {} bytes, expected 1 to {STEERING_BYTES_MAX}", text.len());
        return Err(Stop::new(Exit::Usage, message).with_help("put a long text into a file that the stage may read"));
    }
    let is_live = runs::is_live(run);
    let records = read(run, runs_dir)?;
    let given = GivenSteering::new(node.clone(), text.to_owned(), by);
    refuse(run, runs_dir, is_live, &records, &given)?;
    answer_sources::send(run, &Message::Steer(given.clone()))?;
    recorded(run, runs_dir, &given)?;
    Ok(given)
}

/// Returns an error if no agent would get the message.
fn refuse(
    run: &RunFolder,
    runs_dir: &Path,
    is_live: bool,
    records: &[Record],
    given: &GivenSteering,
) -> Result<(), Stop> {
    let terms = journal::current_start(run, records)?;
    let (summary, named) = (RunSummary::from_records(records), runs::spelled(&run.id, runs_dir));
    if !is_live && summary.end.finished_at.is_some() {
        let message = format!("run `{}` has ended ({}), so no agent can get the message", run.id, how(&summary));
        return Err(Stop::new(Exit::Usage, message));
    }
    let shown = visible::line(given.node.as_str());
    let pipeline = recorded::read(run, &terms)?.pipeline;
    let Some(node) = pipeline.node(&given.node) else {
        let known = pipeline.nodes.iter().map(|node| node.id.as_str());
        let help = match nearest(given.node.as_str(), known) {
            Some(nearest) => format!("did you mean `{}`?", visible::line(nearest)),
            None => format!("`glovebox show {named}` lists the visited nodes"),
        };
        return Err(Stop::new(Exit::Usage, format!("run `{}` has no node `{shown}`", run.id)).with_help(help));
    };
    if !node.asks_model() {
        let message = format!("`{shown}` is a `{}` node, which asks no model", node.handler.name());
        return Err(Stop::new(Exit::Usage, message).with_help("name a node that runs an agent"));
    }
    if !is_live {
        let message = format!("no process drives run `{}`, so no agent is at work", run.id);
        return Err(Stop::new(Exit::Usage, message).with_help(format!("continue it: `glovebox resume {named}`")));
    }
    let state = journal::state(records)?;
    match state.steerable(&given.node, &given.message).next() {
        Some(_) => Ok(()),
        None => Err(not_at_work(run, given)),
    }
}

fn not_at_work(run: &RunFolder, given: &GivenSteering) -> Stop {
    let node = visible::line(given.node.as_str());
    let message =
        format!("the message was not sent: no running attempt of `{node}` in run `{}` can get another message", run.id);
    Stop::new(Exit::Usage, message).with_help("an attempt can get at most 64 messages, and only while it is running")
}

/// Waits until the process that drives the run has recorded the message, or has discarded it because no attempt can get
/// it.
fn recorded(run: &RunFolder, runs_dir: &Path, given: &GivenSteering) -> Result<(), Stop> {
    let (began, message) = (Instant::now(), Message::Steer(given.clone()));
    loop {
        let (was_live, was_waiting) = (runs::is_live(run), answer_sources::is_waiting(run, &message));
        let records = read(run, runs_dir)?;
        let mut steered = records.iter().filter_map(|record| record.event.stage_steered());
        if steered.any(|steered| steered.message == given.message) {
            return Ok(());
        }
        if !was_live || !was_waiting {
            answer_sources::take_back(run, &message);
            return Err(not_at_work(run, given));
        }
        if began.elapsed() > RECORDED_WITHIN {
            let message = format!("the process that drives run `{}` has not recorded the message yet", run.id);
            let named = runs::spelled(&run.id, runs_dir);
            let help = format!(
                "`glovebox show {named} {}` shows whether the agent got it",
                visible::line(given.node.as_str())
            );
            return Err(Stop::new(Exit::Transient, message).with_help(help));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
