//! `logs --follow`: prints the output of commands while they run.

use super::title;
use crate::arguments::LogsArguments;
use crate::exit::Stop;
use crate::runs::RunFolder;
use crate::runs::running_outputs::RunningOutputs;
use crate::terminal::command_output::Stream;
use crate::terminal::{self, visible};
use glovebox_engine::live::LiveFrame;
use glovebox_host::call::OutputStream;
use glovebox_journal::event::{Attempt, AttemptId, Record};

/// The output of running commands, and what is printed of it.
pub(super) struct Following<'a> {
    arguments: &'a LogsArguments,
    outputs: RunningOutputs,
    stdout: Stream,
    /// The attempt whose output was printed last.
    last: Option<AttemptId>,
}

impl<'a> Following<'a> {
    pub(super) fn new(arguments: &'a LogsArguments, run: &RunFolder) -> Result<Self, Stop> {
        Ok(Self { arguments, outputs: RunningOutputs::open(run)?, stdout: Stream::stdout(), last: None })
    }

    /// Takes note of the start of an attempt whose output is wanted.
    pub(super) fn begin(&mut self, record: &Record) {
        self.outputs.note(record);
    }

    /// Prints what the running commands have printed since the last call.
    pub(super) fn print(&mut self) {
        let Self { arguments, outputs, stdout, last } = self;
        outputs.read(|attempt, frame| print(arguments, stdout, last, attempt, frame));
    }

    /// Prints the rest of the output of an attempt that has ended. Returns true if all of its output was printed.
    pub(super) fn end(&mut self, attempt: &AttemptId) -> bool {
        let Self { arguments, outputs, stdout, last } = self;
        let is_whole = outputs.finish(attempt, |attempt, frame| print(arguments, stdout, last, attempt, frame));
        self.stdout.close();
        self.last = None;
        is_whole
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
