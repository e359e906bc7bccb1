//! The output of the running attempts of a stage, and its turns with a model.

use super::problem::problem;
use crate::exit::Stop;
use crate::runs::hidden::Hidden;
use crate::runs::journal;
use crate::runs::running_outputs::RunningOutputs;
use crate::runs::running_turns::{CalledTool, RunningTurn, RunningTurns, TurnNews, tail};
use crate::runs::{self, RunFolder};
use crate::terminal;
use glovebox_engine::live::{DraftChange, LiveFrame};
use glovebox_host::call::OutputStream;
use glovebox_journal::event::Attempt;
use glovebox_journal::sqlite::{OpenJournal, VerifiedJournal};
use glovebox_record::NodeId;
use glovebox_serve::desk::{FollowOutput, OUTPUT_BYTES_MAX, OutputNews, Problem};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;

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
    /// With `event: output`, what was printed; with `event: command`, the command that begins; with `event: turn`, the end of
    /// what the model wrote, at most 16 KiB, if no later turn has ended; with `event: draft`, what the model has written of an
    /// unfinished answer since the last event, at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// With `event: missed`: number of bytes of output that were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// With `event: draft`: true if the text replaces that of the earlier `draft` events of the attempt; absent if it continues it.
    /// After `event: draft-end`, the answer is finished or discarded, and nothing of it counts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_new: bool,
    /// With `event: turn`: number of the turn in its attempt, from 1. `GET .../transcript` has all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<usize>,
    /// With `event: turn`: the model that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// With `event: turn`: the subagent that asked; absent if the stage itself asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// With `event: turn`: tokens that the model wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    /// With `event: turn`: the tools that the model called. They are under way until the next turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<CalledTool>,
}

impl<'a> OutputEvent<'a> {
    fn of(attempt: &'a Attempt) -> Self {
        let (stream, text, bytes, turn, model, agent, output_tokens) = (None, None, None, None, None, None, None);
        let (is_new, calls) = (false, Vec::new());
        Self { schema_version: 1, attempt, stream, text, bytes, is_new, turn, model, agent, output_tokens, calls }
    }
}

/// A follower of one stage. Between two reads the journal is closed, as that of the records.
pub(super) struct StageOutput {
    run: RunFolder,
    node: NodeId,
    outputs: RunningOutputs,
    verified: Option<VerifiedJournal>,
    position: u64,
    turns: RunningTurns,
}

impl StageOutput {
    /// Begins to follow a stage. Refused for a stage that can read hold-outs.
    pub(super) fn begin(run: RunFolder, node: NodeId) -> Result<Self, Problem> {
        let verified = journal::open_to_show(&run).map_err(problem)?.close();
        if Hidden::in_records(&verified.records).has(&node) {
            let message = format!("stage `{node}` can read hold-outs, so its output cannot be followed");
            return Err(Problem::new(403, "beside-holdouts", message));
        }
        let (outputs, turns) = (RunningOutputs::open(&run).map_err(problem)?, RunningTurns::new(run.clone()));
        Ok(Self { run, node, outputs, verified: Some(verified), position: 0, turns })
    }

    fn read(&mut self) -> Result<OutputNews, Stop> {
        // The process is looked at before the records: if none drives the run, no record is added later.
        let has_ended = !runs::is_live(&self.run);
        let mut turns = Vec::new();
        self.read_records(&mut turns)?;
        let (node, mut news) = (&self.node, Newest::default());
        self.outputs.read(|attempt, frame| {
            if attempt.task.node == *node {
                news.add(attempt, frame);
            }
        });
        self.turns.read(&mut |news| turns.push(event(news)))?;
        // A turn ends before the commands that it calls begin.
        let mut events = turns.into_iter().collect::<Result<Vec<_>, Stop>>()?;
        events.extend(news.finish()?);
        Ok(OutputNews { events, has_ended })
    }

    fn read_records(&mut self, turns: &mut Vec<Result<NamedEvent, Stop>>) -> Result<(), Stop> {
        let OpenJournal { reader, verified } = match self.verified.take() {
            Some(verified) => journal::read_on(&self.run, verified)?,
            None => journal::open_to_show(&self.run)?,
        };
        let failed = |error| journal::unreadable(&self.run, &error);
        let is_first = self.position == 0;
        for page in reader.pages(&verified, self.position).map_err(failed)? {
            for record in &page.map_err(failed)? {
                self.position = record.seq;
                if record.event.node() != Some(&self.node) {
                    continue;
                }
                self.outputs.note(record);
                self.turns.begin(record)?;
                if let Some(finished) = record.event.stage_finished() {
                    // What had ended before the client came is in the transcript.
                    let take = &mut |news: TurnNews<'_>| {
                        if !is_first {
                            turns.push(event(news))
                        }
                    };
                    self.turns.end(finished, take)?;
                }
            }
        }
        self.verified = Some(verified);
        Ok(())
    }
}

/// The name of an event, and its JSON in one line.
type NamedEvent = (&'static str, String);

fn event(news: TurnNews<'_>) -> Result<NamedEvent, Stop> {
    match news {
        TurnNews::Turn(turn) => turn_event(&turn),
        TurnNews::Draft(attempt, change) => draft_event(attempt, change),
    }
}

fn draft_event(attempt: &Attempt, change: DraftChange) -> Result<NamedEvent, Stop> {
    let (name, text, is_new) = match change {
        DraftChange::New(text) => ("draft", Some(text), true),
        DraftChange::More(text) => ("draft", Some(text), false),
        DraftChange::Gone => ("draft-end", None, false),
    };
    Ok((name, terminal::json_line(&OutputEvent { text, is_new, ..OutputEvent::of(attempt) })?))
}

fn turn_event(turn: &RunningTurn<'_>) -> Result<NamedEvent, Stop> {
    let event = OutputEvent {
        turn: Some(turn.number),
        text: Some(tail(&turn.whole_text()).to_owned()).filter(|text| turn.is_last && !text.is_empty()),
        model: turn.turn.answered_by.clone(),
        agent: turn.turn.agent.clone(),
        output_tokens: Some(turn.turn.usage.output),
        calls: if turn.is_last { turn.calls() } else { Vec::new() },
        ..OutputEvent::of(turn.attempt)
    };
    Ok(("turn", terminal::json_line(&event)?))
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

    fn finish(self) -> Result<Vec<NamedEvent>, Stop> {
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
