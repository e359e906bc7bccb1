//! Asks the person at the terminal the questions of a run of a fleet.
//!
//! The machine that drives the run records the answer, and the first answer counts: another person may have given one.

use super::pull;
use crate::ask::{self, Leave};
use crate::exit::Stop;
use crate::runs::journal;
use crate::runs::{self, RunId};
use crate::terminal::progress::Reporter;
use glovebox_engine::inbox::{GivenAnswer, Terminal};
use glovebox_engine::run::Pulled;
use glovebox_fleet::log::NatsLog;
use glovebox_journal::event::{Event, QuestionId, Record};
use glovebox_pipeline::ir::Pipeline;
use std::sync::Arc;

/// The person at the terminal.
#[derive(Default)]
pub(super) struct AtTerminal {
    /// True if the person can be asked.
    can_ask: bool,
    /// The questions that the person is asked.
    open: Vec<QuestionId>,
    /// The questions that the person has answered, until the run records it.
    answered: Vec<QuestionId>,
    asking: Option<Asking>,
}

/// The questions that the person was shown, in a copy of the run.
struct Asking {
    terminal: Terminal,
    leave: Leave,
    _held: Pulled,
    _folder: tempfile::TempDir,
}

impl AtTerminal {
    /// Creates the person at the terminal, who is asked only if `can_ask` is true.
    pub(super) fn new(can_ask: bool) -> Self {
        Self { can_ask, ..Self::default() }
    }

    /// Returns true if a run that is paused goes on: the person is asked, or has answered.
    pub(super) fn has_run_go_on(&self) -> bool {
        self.asking.is_some() && !self.open.is_empty() || !self.answered.is_empty()
    }

    /// Asks what is open after these records, of which the last `new` are new.
    pub(super) async fn look(
        &mut self,
        records: &[Record],
        new: usize,
        log: &NatsLog,
        pipeline: &Arc<Pipeline>,
        reporter: &Reporter,
    ) -> Result<(), Stop> {
        let is_about_questions = |record: &Record| {
            let event = &record.event;
            // A branch that was canceled asks no more, and no record says so of its question.
            let is_edge = event.run_resumed().is_some() || matches!(event, Event::RunPaused(_));
            is_edge || event.question_asked().is_some() || event.question_answered().is_some()
        };
        let new = &records[records.len() - new..];
        let recorded = new.iter().filter_map(|record| record.event.question_answered());
        recorded.for_each(|recorded| self.answered.retain(|question| *question != recorded.question));
        if !self.can_ask || !new.iter().any(is_about_questions) {
            return Ok(());
        }
        let state = journal::state(records)?;
        let open: Vec<QuestionId> = state.questions().map(|open| open.asked.question.clone()).collect();
        if open.iter().any(|question| !self.open.contains(question)) {
            // The thread of an earlier question ends with its copy of the run.
            self.asking = None;
            self.asking = Some(Asking::begin(records, log, pipeline, reporter).await?);
        }
        self.open.clone_from(&open);
        if let Some(Asking { terminal, .. }) = &self.asking {
            // The person may have left.
            let _nobody = terminal.open.send(open);
        }
        Ok(())
    }

    /// Waits for the next answer. `None` if the person leaves the questions open.
    pub(super) async fn answer(&mut self) -> Option<GivenAnswer> {
        let Some(Asking { terminal, .. }) = &mut self.asking else { return std::future::pending().await };
        let answer = terminal.answers.recv().await;
        match &answer {
            Some(given) => {
                // It is asked again only if the run still asks.
                self.open.retain(|question| *question != given.question);
                self.answered.push(given.question.clone());
                let _nobody = terminal.open.send(self.open.clone());
            }
            None => {
                self.asking = None;
                self.can_ask = false;
            }
        }
        answer
    }

    /// Stops waiting for an answer to the question on the screen. Returns false if no question is on the screen.
    pub(super) fn leave(&self) -> bool {
        self.asking.as_ref().is_some_and(|asking| asking.leave.leave())
    }
}

impl Asking {
    async fn begin(
        records: &[Record],
        log: &NatsLog,
        pipeline: &Arc<Pipeline>,
        reporter: &Reporter,
    ) -> Result<Self, Stop> {
        let started = records.first().and_then(|first| first.event.run_started());
        let id = RunId::parse(started.map_or("", |started| started.run_id.as_str()))?;
        let folder = tempfile::tempdir().map_err(|error| Stop::io("create a folder for a copy of the run", &error))?;
        let runs_dir = folder.path().join("runs");
        let run = runs::create(&runs_dir, id)?;
        let held = pull::into(&run, log, records, Arc::clone(pipeline), false).await?;
        let (terminal, leave) = ask::start(&run, runs_dir, reporter.notices());
        Ok(Self { terminal, leave, _held: held, _folder: folder })
    }
}
