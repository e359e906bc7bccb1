//! The output of the running attempts of a stage, and its turns with a model.

use super::problem::problem;
use crate::exit::Stop;
use crate::runs::conversations;
use crate::runs::hidden::Hidden;
use crate::runs::journal;
use crate::runs::running_outputs::RunningOutputs;
use crate::runs::{self, RunFolder};
use crate::terminal;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::attempt::exchanges;
use glovebox_engine::live::LiveFrame;
use glovebox_host::call::OutputStream;
use glovebox_journal::event::{Attempt, AttemptId, Record};
use glovebox_journal::sqlite::{OpenJournal, VerifiedJournal};
use glovebox_record::NodeId;
use glovebox_serve::desk::{FollowOutput, OUTPUT_BYTES_MAX, OutputNews, Problem};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// The data of an event of `GET /runs/{id}/stages/{node}/output`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "serve-output.json")]
pub struct OutputEvent<'a> {
    /// Version of this document.
    schema_version: u32,
    /// The attempt.
    #[serde(flatten)]
    attempt: &'a Attempt,
    /// With `event: output`: `stdout` or `stderr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<&'static str>,
    /// With `event: output`, what was printed; with `event: command`, the command that begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// With `event: missed`: number of bytes of output that were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// With `event: turn`: number of the turn in its attempt, from 1. `GET .../transcript` has its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<usize>,
    /// With `event: turn`: the model that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// With `event: turn`: tokens that the model wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
}

impl<'a> OutputEvent<'a> {
    fn of(attempt: &'a Attempt) -> Self {
        let (stream, text, bytes, turn, model, output_tokens) = (None, None, None, None, None, None);
        Self { schema_version: 1, attempt, stream, text, bytes, turn, model, output_tokens }
    }
}

/// A follower of one stage. Between two reads the journal is closed, as that of the records.
pub(super) struct StageOutput {
    run: RunFolder,
    node: NodeId,
    outputs: RunningOutputs,
    verified: Option<VerifiedJournal>,
    position: u64,
    /// The running attempts of the stage, with the number of turns that were sent.
    running: BTreeMap<AttemptId, (Attempt, usize)>,
}

impl StageOutput {
    /// Begins to follow a stage. Refused for a stage that can read hold-outs.
    pub(super) fn begin(run: RunFolder, node: NodeId) -> Result<Self, Problem> {
        let verified = journal::open_to_show(&run).map_err(problem)?.close();
        if Hidden::in_records(&verified.records).has(&node) {
            let message = format!("stage `{node}` can read hold-outs, so its output cannot be followed");
            return Err(Problem::new(403, "beside-holdouts", message));
        }
        let outputs = RunningOutputs::open(&run).map_err(problem)?;
        Ok(Self { run, node, outputs, verified: Some(verified), position: 0, running: BTreeMap::new() })
    }

    fn read(&mut self) -> Result<OutputNews, Stop> {
        // The process is looked at before the records: if none drives the run, no record is added later.
        let has_ended = !runs::is_live(&self.run);
        self.read_records()?;
        let (node, mut news) = (&self.node, Newest::default());
        self.outputs.read(|attempt, frame| {
            if attempt.task.node == *node {
                news.add(attempt, frame);
            }
        });
        let mut events = news.finish()?;
        self.read_turns(&mut events)?;
        Ok(OutputNews { events, has_ended })
    }

    fn read_records(&mut self) -> Result<(), Stop> {
        let OpenJournal { reader, verified } = match self.verified.take() {
            Some(verified) => journal::read_on(&self.run, verified)?,
            None => journal::open_to_show(&self.run)?,
        };
        let failed = |error| journal::unreadable(&self.run, &error);
        for page in reader.pages(&verified, self.position).map_err(failed)? {
            for record in &page.map_err(failed)? {
                self.position = record.seq;
                note(&mut self.running, &mut self.outputs, &self.node, record);
            }
        }
        self.verified = Some(verified);
        Ok(())
    }

    /// Adds an event for each turn that has ended since the last call.
    fn read_turns(&mut self, events: &mut Vec<(&'static str, String)>) -> Result<(), Stop> {
        if self.running.is_empty() {
            return Ok(());
        }
        let failed = |error| Stop::io(format!("read the conversations of run `{}`", self.run.id), &error);
        let folder = Dir::open_ambient_dir(&self.run.path, ambient_authority()).map_err(failed)?;
        for (attempt, sent) in self.running.values_mut() {
            let said = exchanges::transcript(&folder, attempt).map_err(failed)?;
            let turns = conversations::turns(&self.run, said.as_bytes())?;
            for (turn, number) in turns.iter().zip(1..).skip(*sent) {
                let (model, output_tokens) = (turn.answered_by.clone(), Some(turn.usage.output));
                let event = OutputEvent { turn: Some(number), model, output_tokens, ..OutputEvent::of(attempt) };
                events.push(("turn", terminal::json_line(&event)?));
            }
            *sent = turns.len();
        }
        Ok(())
    }
}

/// Takes note of a record: an attempt of the stage begins or ends.
fn note(
    running: &mut BTreeMap<AttemptId, (Attempt, usize)>,
    outputs: &mut RunningOutputs,
    node: &NodeId,
    record: &Record,
) {
    if record.event.node() != Some(node) {
        return;
    }
    outputs.note(record);
    if let Some(started) = record.event.stage_started() {
        running.insert(started.attempt.id.clone(), (started.attempt.clone(), 0));
    } else if let Some(finished) = record.event.stage_finished() {
        running.remove(&finished.attempt.id);
    }
}

/// The newest output of one read, at most [`OUTPUT_BYTES_MAX`] bytes of it.
#[derive(Default)]
struct Newest {
    parts: VecDeque<Part>,
    bytes: usize,
    missed: u64,
}

struct Part {
    attempt: Attempt,
    name: &'static str,
    stream: Option<&'static str>,
    text: Vec<u8>,
}

impl Newest {
    fn add(&mut self, attempt: &Attempt, frame: LiveFrame<'_>) {
        let (name, stream, text) = match frame {
            LiveFrame::Command(text) => ("command", None, text.as_bytes()),
            LiveFrame::Output(OutputStream::Stdout, bytes) => ("output", Some("stdout"), bytes),
            LiveFrame::Output(OutputStream::Stderr, bytes) => ("output", Some("stderr"), bytes),
            LiveFrame::Missed(bytes) => {
                self.missed += bytes;
                return;
            }
        };
        let excess = text.len().saturating_sub(OUTPUT_BYTES_MAX);
        self.missed += excess as u64;
        let text = &text[excess..];
        self.bytes += text.len();
        match self
            .parts
            .back_mut()
            .filter(|last| last.name == "output" && last.stream == stream && last.attempt.id == attempt.id)
        {
            Some(last) => last.text.extend_from_slice(text),
            None => self.parts.push_back(Part { attempt: attempt.clone(), name, stream, text: text.to_vec() }),
        }
        while let Some(over) = self.bytes.checked_sub(OUTPUT_BYTES_MAX).filter(|over| *over > 0) {
            let Some(first) = self.parts.front_mut() else { return };
            let dropped = over.min(first.text.len());
            first.text.drain(..dropped);
            (self.bytes, self.missed) = (self.bytes - dropped, self.missed + dropped as u64);
            if first.text.is_empty() {
                self.parts.pop_front();
            }
        }
    }

    fn finish(self) -> Result<Vec<(&'static str, String)>, Stop> {
        let mut events = Vec::new();
        if let Some(first) = self.parts.front().filter(|_| self.missed > 0) {
            let event = OutputEvent { bytes: Some(self.missed), ..OutputEvent::of(&first.attempt) };
            events.push(("missed", terminal::json_line(&event)?));
        }
        for Part { attempt, name, stream, text } in &self.parts {
            let text = Some(String::from_utf8_lossy(text).into_owned());
            let event = OutputEvent { stream: *stream, text, ..OutputEvent::of(attempt) };
            events.push((*name, terminal::json_line(&event)?));
        }
        Ok(events)
    }
}

impl FollowOutput for StageOutput {
    fn next(&mut self) -> Result<OutputNews, Problem> {
        self.read().map_err(problem)
    }
}
