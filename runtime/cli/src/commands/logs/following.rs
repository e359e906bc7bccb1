//! `logs --follow`: prints the output of commands while they run, and what the models of running stages said.

use super::printed_drafts::{DISCARDED, PrintedDrafts, indented};
use super::title;
use crate::arguments::LogsArguments;
use crate::exit::Stop;
use crate::runs::RunFolder;
use crate::runs::running_outputs::RunningOutputs;
use crate::runs::running_turns::{self, RunningTurn, RunningTurns, TurnNews};
use crate::terminal::command_output::Stream;
use crate::terminal::{self, visible};
use glovebox_engine::live::LiveFrame;
use glovebox_host::call::OutputStream;
use glovebox_journal::event::{Attempt, AttemptId, Record, StageFinished};

/// The output of running commands and the turns of their stages, and what is printed of them.
pub(super) struct Following<'a> {
    arguments: &'a LogsArguments,
    outputs: RunningOutputs,
    turns: RunningTurns,
    stdout: Stream,
    drafts: PrintedDrafts,
    /// The attempt whose output was printed last.
    last: Option<AttemptId>,
    /// True until the records that were there at the beginning are read.
    is_catching_up: bool,
}

impl<'a> Following<'a> {
    pub(super) fn new(arguments: &'a LogsArguments, run: &RunFolder) -> Result<Self, Stop> {
        let (outputs, turns) = (RunningOutputs::open(run)?, RunningTurns::new(run.clone()));
        Ok(Self {
            arguments,
            outputs,
            turns,
            stdout: Stream::stdout(),
            drafts: PrintedDrafts::default(),
            last: None,
            is_catching_up: true,
        })
    }

    /// Takes note of the start of an attempt whose output is wanted.
    pub(super) fn begin(&mut self, record: &Record) -> Result<(), Stop> {
        self.outputs.note(record);
        self.turns.begin(record)
    }

    /// Prints what the models and the running commands have said since the last call.
    pub(super) fn print(&mut self) -> Result<(), Stop> {
        let Self { arguments, outputs, turns, stdout, drafts, last, is_catching_up } = self;
        *is_catching_up = false;
        turns.read(&mut |news| say(stdout, drafts, news))?;
        outputs.read(|attempt, frame| print(arguments, stdout, last, attempt, frame));
        Ok(())
    }

    /// Prints the rest of the output of an attempt that has ended. Returns true if all of its output was printed.
    pub(super) fn end(&mut self, stage: &StageFinished) -> Result<bool, Stop> {
        let Self { arguments, outputs, turns, stdout, drafts, last, is_catching_up } = self;
        let attempt = &stage.attempt.id;
        let is_whole = outputs.finish(attempt, |attempt, frame| print(arguments, stdout, last, attempt, frame));
        // What had ended before is in the transcript.
        let was_there = *is_catching_up;
        turns.end(stage, &mut |news| {
            if !was_there {
                say(stdout, drafts, news)
            }
        })?;
        drafts.forget(&stage.attempt.id);
        self.stdout.close();
        self.last = None;
        Ok(is_whole)
    }
}

/// Says what a model wrote and which tools it calls. The output of commands alone is on standard output.
fn say(stdout: &mut Stream, drafts: &mut PrintedDrafts, news: TurnNews<'_>) {
    match news {
        TurnNews::Turn(turn) => say_turn(stdout, drafts, &turn),
        TurnNews::Draft(attempt, change) => {
            let lines = drafts.change(attempt, change);
            if !lines.is_empty() {
                stdout.close();
            }
            lines.iter().for_each(|line| terminal::say(format_args!("{line}\n")));
        }
    }
}

fn say_turn(stdout: &mut Stream, drafts: &mut PrintedDrafts, turn: &RunningTurn<'_>) {
    stdout.close();
    let whole = turn.whole_text();
    let printed = drafts.finish(&turn.attempt.id, &whole);
    if printed.is_none() {
        terminal::say(format_args!("==> {}: {DISCARDED}\n", title(turn.attempt)));
    }
    let (title, number) = (title(turn.attempt), turn.number);
    let agent = turn.turn.agent.as_deref().map(|agent| format!(", subagent {agent}")).unwrap_or_default();
    let model = turn.turn.answered_by.as_deref().map(|model| format!(", {model}")).unwrap_or_default();
    terminal::say(format_args!("==> {title}: turn {number}{}\n", visible::line(&(agent + &model))));
    if !turn.is_last {
        return;
    }
    // What was printed of the unfinished answer is not printed again.
    let first = printed.unwrap_or_default().max(whole.len() - running_turns::tail(&whole).len());
    indented(&whole[first..]).iter().for_each(|line| terminal::say(format_args!("{line}\n")));
    for call in turn.calls() {
        let (name, arguments) = (visible::line(&call.name), visible::line(&call.arguments));
        terminal::say(format_args!("    calls {name} {arguments}\n"));
    }
}

fn print(
    arguments: &LogsArguments,
    stdout: &mut Stream,
    last: &mut Option<AttemptId>,
    attempt: &Attempt,
    frame: LiveFrame<'_>,
) {
    let is_other = last.as_ref().is_some_and(|last| *last != attempt.id);
    if is_other {
        stdout.close();
    }
    if is_other && matches!(frame, LiveFrame::Output(..)) {
        terminal::say(format_args!("==> {}\n", title(attempt)));
    }
    *last = Some(attempt.id.clone());
    match frame {
        LiveFrame::Command(command) => {
            terminal::say(format_args!("==> {}: {}\n", title(attempt), visible::line(command)))
        }
        LiveFrame::Output(OutputStream::Stdout, _) if arguments.stderr => {}
        LiveFrame::Output(OutputStream::Stderr, _) if arguments.stdout => {}
        LiveFrame::Output(_, bytes) => stdout.write(bytes),
        LiveFrame::Missed(bytes) => terminal::say(format_args!("==> {}: {bytes} bytes were missed\n", title(attempt))),
    }
}
