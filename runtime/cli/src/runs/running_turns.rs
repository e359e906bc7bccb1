//! The turns that running attempts have with their models, in another process.
//!
//! A turn is there when its answer is checked and stored, before the component gets it. So the tool calls of the last turn are
//! under way. Before that, the text of the answer is there while it grows. A stage that can read hold-outs has no turns here,
//! whoever asks.

use super::RunFolder;
use super::changes;
use super::conversations;
use super::hidden::Hidden;
use crate::exit::Stop;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::attempt::exchanges;
use glovebox_engine::live::{DraftChange, DraftFollower};
use glovebox_journal::event::{Attempt, AttemptId, Record, StageFinished};
use glovebox_models::chat::{FieldName, TEXT, TOOL_CALL};
use glovebox_record::transcript::Turn;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum length of the text of a turn, in bytes. Its beginning is left out.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Maximum length of the arguments of a call, in bytes. Their end is left out.
const ARGUMENTS_BYTES_MAX: usize = 1 << 10;
/// Maximum number of calls of a turn.
const CALLS_MAX: usize = 32;

/// The turns of the running attempts of a run.
pub struct RunningTurns {
    run: RunFolder,
    /// The stages that can read hold-outs; `None` before the first attempt.
    hidden: Option<Hidden>,
    running: BTreeMap<AttemptId, Running>,
}

struct Running {
    attempt: Attempt,
    /// Number of the turns that were passed on.
    passed: usize,
    /// Length of the log when it was last read.
    bytes: u64,
    /// The unfinished answer.
    draft: DraftFollower,
}

/// What is new about the turns of an attempt.
pub enum TurnNews<'a> {
    /// A turn has ended.
    Turn(RunningTurn<'a>),
    /// The text of an unfinished answer of this attempt has changed. It is gone before its turn has ended.
    Draft(&'a Attempt, DraftChange),
}

/// One turn.
pub struct RunningTurn<'a> {
    /// The attempt.
    pub attempt: &'a Attempt,
    /// Number of the turn in its attempt, from 1.
    pub number: usize,
    /// The call of the model and its answer.
    pub turn: &'a Turn,
    /// True if no later turn has ended.
    pub is_last: bool,
}

/// A tool that a model calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CalledTool {
    /// Its name.
    pub name: String,
    /// The arguments as JSON, at most 1 KiB of them.
    pub arguments: String,
}

impl RunningTurns {
    /// Creates the turns of a run of which no attempt is known.
    pub fn new(run: RunFolder) -> Self {
        Self { run, hidden: None, running: BTreeMap::new() }
    }

    /// Takes note of the start of an attempt. An attempt that can read hold-outs is left out.
    pub fn begin(&mut self, record: &Record) -> Result<(), Stop> {
        let Some(started) = record.event.stage_started() else { return Ok(()) };
        // The start of the run is on the disk, because a record follows it.
        let hidden = match self.hidden.take() {
            Some(hidden) => hidden,
            None => Hidden::of(&self.run)?,
        };
        let (task, ordinal) = (&started.attempt.task, started.attempt.ordinal);
        // An attempt that was cut off is executed again with the same number, and has the same log.
        self.running.retain(|_, before| (&before.attempt.task, before.attempt.ordinal) != (task, ordinal));
        if !hidden.has(&task.node) && !hidden.has(&task.stage()) {
            let running =
                Running { attempt: started.attempt.clone(), passed: 0, bytes: 0, draft: DraftFollower::default() };
            self.running.insert(started.attempt.id.clone(), running);
        }
        self.hidden = Some(hidden);
        Ok(())
    }

    /// Passes on the turns of an attempt that has ended which were not passed on before.
    pub fn end(&mut self, stage: &StageFinished, take: &mut dyn FnMut(TurnNews<'_>)) -> Result<(), Stop> {
        let Some(mut running) = self.running.remove(&stage.attempt.id) else { return Ok(()) };
        running.end_draft(take);
        let turns = conversations::kept(&self.run, stage, &changes::open_blobs(&self.run)?)?;
        running.pass(&turns, take);
        Ok(())
    }

    /// Passes on the turns that have ended since the last call, and the text of unfinished answers.
    pub fn read(&mut self, take: &mut dyn FnMut(TurnNews<'_>)) -> Result<(), Stop> {
        if self.running.is_empty() {
            return Ok(());
        }
        let failed = |error| Stop::io(format!("read the conversations of run `{}`", self.run.id), &error);
        let folder = Dir::open_ambient_dir(&self.run.path, ambient_authority()).map_err(failed)?;
        for running in self.running.values_mut() {
            let bytes = exchanges::logged_bytes(&folder, &running.attempt).map_err(failed)?;
            if bytes == running.bytes {
                running.follow_draft(&folder, take);
                continue;
            }
            let said = exchanges::transcript(&folder, &running.attempt).map_err(failed)?;
            running.bytes = bytes;
            running.end_draft(take);
            running.pass(&conversations::turns(&self.run, said.as_bytes())?, take);
        }
        Ok(())
    }
}

impl Running {
    fn pass(&mut self, turns: &[Turn], take: &mut dyn FnMut(TurnNews<'_>)) {
        for (turn, number) in turns.iter().zip(1..).skip(self.passed) {
            let is_last = number == turns.len();
            take(TurnNews::Turn(RunningTurn { attempt: &self.attempt, number, turn, is_last }));
        }
        self.passed = self.passed.max(turns.len());
    }

    /// Passes on the text of the unfinished answer. Without it, the turns can still be followed.
    fn follow_draft(&mut self, folder: &Dir, take: &mut dyn FnMut(TurnNews<'_>)) {
        match self.draft.read(folder, &self.attempt.id) {
            Ok(change) => change.into_iter().for_each(|change| take(TurnNews::Draft(&self.attempt, change))),
            Err(error) => tracing::warn!(%error, "the unfinished answer of a model cannot be read"),
        }
    }

    /// Passes on that the unfinished answer is gone.
    fn end_draft(&mut self, take: &mut dyn FnMut(TurnNews<'_>)) {
        self.draft.end().into_iter().for_each(|change| take(TurnNews::Draft(&self.attempt, change)));
    }
}

/// Returns the end of a text that is shown, at most 16 KiB.
pub fn tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(TEXT_BYTES_MAX))..]
}

impl RunningTurn<'_> {
    /// Returns the text that the model wrote.
    pub fn whole_text(&self) -> String {
        let texts = self.turn.answer.iter().filter(|part| part.kind == TEXT).map(|part| part.text.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the tools that the model calls.
    pub fn calls(&self) -> Vec<CalledTool> {
        let calls = self.turn.answer.iter().filter(|part| part.kind == TOOL_CALL).take(CALLS_MAX);
        let called = |arguments: &str| arguments[..arguments.floor_char_boundary(ARGUMENTS_BYTES_MAX)].to_owned();
        calls
            .map(|part| CalledTool { name: FieldName::Name.value_in(part).to_owned(), arguments: called(&part.text) })
            .collect()
    }
}
