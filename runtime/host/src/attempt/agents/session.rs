//! A running agent program. A thread waits for it, and the component receives its events.

use super::gateway::Gateway;
use super::lines::OutputLines;
use super::programs::{Launch, ProgramOutput, ProgramStep};
use super::{ProgramSetting, failed, to_guest};
use crate::attempt::Attempt;
use crate::bindings::agents::Event;
use crate::progress::{Artifact, LogLine, Progress};
use crate::stop::Stop;
use glovebox_jail::exec::{Command, ExecError, Exit, Program};
use glovebox_jail::jail::{CommandLine, Jail};
use glovebox_jail::pulse::ToolCallGuard;
use glovebox_record::path::ScopePath;
use glovebox_record::program::AgentProgram;
use glovebox_record::{CommandEnding, Failure, FailureClass, LimitName};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wasmtime::component::Resource;
use wasmtime::{Error, Result};

/// Maximum number of steps that wait for the component. Further steps are dropped, because they are only progress.
const STEPS_MAX: usize = 256;
/// Interval at which a waiting call checks for cancellation.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum length of the text of one event, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// An agent program of this attempt, as the component sees it.
pub struct ProgramSession {
    steps: Receiver<ProgramStep>,
    waiting: VecDeque<Event>,
    stopped: Arc<AtomicBool>,
    /// True once the last event was created.
    is_over: bool,
    /// Maximum silence before the host reports that the program still runs; `None` for no report.
    heartbeat: Option<Duration>,
    last: Instant,
}

/// The jail of a program, its working directory in it, and its gateway.
pub(super) struct ProgramPlace {
    pub(super) jail: Arc<Jail>,
    pub(super) cwd: ScopePath,
    pub(super) gateway: Gateway,
}

/// State that is needed after the program has ended. [`Attempt::end_program`] ends a program that still runs.
pub(super) struct RunningProgram {
    stopped: StopOnDrop,
    thread: JoinHandle<ProgramEnd>,
    jail: Arc<Jail>,
    line: CommandLine,
    begin: Instant,
    gateway: Gateway,
    prompt: String,
    title: String,
    /// Timeout from the program's options, if it is shorter than the wall time of the call.
    own_timeout: Option<Duration>,
    /// Counts the end of the program.
    call: ToolCallGuard,
}

/// Asks a program to end when it is dropped, so that no program outlives a caller that panicked. A program that has ended
/// does not notice it.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        glovebox_jail::jail::cancel(&self.0);
    }
}

/// The exit of a program and its output.
struct ProgramEnd {
    exit: std::result::Result<Exit, ExecError>,
    reading: ProgramOutput,
    output: OutputLines,
    error: OutputLines,
}

impl std::fmt::Debug for ProgramSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgramSession").finish_non_exhaustive()
    }
}

impl ProgramSession {
    /// Starts a program on its own thread.
    pub(super) fn start(
        attempt: &mut Attempt,
        setting: &ProgramSetting,
        launch: Launch,
        place: ProgramPlace,
    ) -> std::result::Result<Self, super::StartError> {
        let ProgramPlace { jail, cwd, gateway } = place;
        let options = &setting.options;
        let left = attempt.call.remaining();
        let timeout = options.timeout.map_or(left, |own| own.min(left));
        let (title, argv) = (setting.program.to_string(), launch.shown_argv());
        let command =
            Command { program: Program::Argv(launch.argv), cwd, env: launch.env, stdin: Some(launch.stdin), timeout };
        let line = CommandLine { argv, ..jail.line(&command) };
        let (sender, steps) = sync_channel(STEPS_MAX);
        let stopped = Arc::new(AtomicBool::new(false));
        let (of_thread, in_jail, program) = (Arc::clone(&stopped), Arc::clone(&jail), setting.program);
        let thread = std::thread::Builder::new()
            .name("agent-program".to_owned())
            .spawn(move || run(&in_jail, &command, ProgramOutput::new(program), &sender, &of_thread));
        let thread = match thread {
            Ok(thread) => thread,
            Err(error) => {
                gateway.close(attempt);
                let reason = format!("the thread for the program could not be started: {error}");
                return Err(failed(FailureClass::Internal, "agent/not-started", reason).into());
            }
        };
        attempt.call.report(Progress::CommandStarted(title.clone()));
        attempt.agents.running = Some(RunningProgram {
            stopped: StopOnDrop(Arc::clone(&stopped)),
            thread,
            jail,
            line,
            begin: Instant::now(),
            gateway,
            prompt: launch.prompt,
            title,
            own_timeout: options.timeout.filter(|own| *own < left),
            call: attempt.call.observer.pulse().tool_call(),
        });
        let heartbeat = options.heartbeat;
        let waiting = VecDeque::new();
        Ok(Self { steps, waiting, stopped, is_over: false, heartbeat, last: Instant::now() })
    }

    /// Asks the program to end.
    pub(super) fn stop(&self) {
        glovebox_jail::jail::cancel(&self.stopped);
    }
}

/// Runs the program until it ends.
fn run(
    jail: &Jail,
    command: &Command,
    mut reading: ProgramOutput,
    steps: &SyncSender<ProgramStep>,
    stopped: &AtomicBool,
) -> ProgramEnd {
    let (mut output, mut error) = (OutputLines::default(), OutputLines::default());
    // A step may be dropped: `reading` keeps what is needed later.
    let send = |step: ProgramStep| drop(steps.try_send(step));
    let exit = {
        let mut on_output =
            |bytes: &[u8]| output.take(bytes, |line| reading.read_line(line).into_iter().for_each(send));
        let mut on_error = |bytes: &[u8]| error.take(bytes, |_| ());
        jail.run_streamed(command, [&mut on_output, &mut on_error], stopped)
    };
    output.end(|line| reading.read_line(line).into_iter().for_each(send));
    ProgramEnd { exit, reading, output, error }
}

impl Attempt {
    /// Returns up to `max` events. Waits at most `wait_ms` for the first one.
    pub(super) fn next_events(
        &mut self,
        this: &Resource<ProgramSession>,
        max: u32,
        wait_ms: u32,
    ) -> Result<Vec<Event>> {
        let until = Instant::now() + Duration::from_millis(u64::from(wait_ms));
        let max = usize::try_from(max).unwrap_or(usize::MAX).min(STEPS_MAX);
        loop {
            self.call.check_stop()?;
            let ticker = self.call.ticker.clone();
            let session = self.wasi.table.get_mut(this)?;
            if let Some(events) = session.take_events(max) {
                return Ok(events);
            }
            let has_ended = ticker.while_guest_waits(|| session.wait(LOOK));
            if has_ended {
                let event = self.settle_running()?;
                let session = self.wasi.table.get_mut(this)?;
                session.is_over = true;
                session.waiting.extend(event);
            } else if Instant::now() >= until {
                return Ok(Vec::new());
            }
            self.note_silence(this)?;
        }
    }

    /// Waits for the program, if one runs, and records its result.
    pub(super) fn settle_running(&mut self) -> Result<Option<Event>> {
        self.agents.running.take().map(|running| self.settle(running)).transpose()
    }

    /// Ends the program of a call that is over, and records its result.
    ///
    /// # Errors
    /// The limit that ended the program. The guest must not turn it into a success.
    pub(crate) fn end_program(&mut self) -> Result<()> {
        self.agents.running.iter().for_each(|running| glovebox_jail::jail::cancel(&running.stopped.0));
        self.settle_running().map(drop)
    }

    /// Reports at intervals that a silent program still runs.
    fn note_silence(&mut self, this: &Resource<ProgramSession>) -> Result<()> {
        let session = self.wasi.table.get_mut(this)?;
        let is_due = session.heartbeat.is_some_and(|heartbeat| session.last.elapsed() >= heartbeat);
        if is_due {
            session.last = Instant::now();
            let message = "the agent program is still running".to_owned();
            self.call.report(Progress::Log(LogLine { level: "info".to_owned(), message, fields: Vec::new() }));
        }
        Ok(())
    }

    /// Records the receipt, output and conversation of a program that has ended, and returns the last event.
    fn settle(&mut self, running: RunningProgram) -> Result<Event> {
        let RunningProgram {
            thread,
            jail,
            line,
            begin,
            gateway,
            prompt,
            title,
            own_timeout,
            call: _call,
            stopped: _stopped,
        } = running;
        let ended = self.call.ticker.while_guest_waits(|| thread.join());
        gateway.close(self);
        let Ok(ProgramEnd { exit, reading, output, error }) = ended else {
            return Err(Error::msg("the thread of an agent program panicked"));
        };
        self.keep_output("program.stdout.log", output.kept());
        self.keep_output("program.stderr.log", error.kept());
        let exit = match exit {
            Ok(exit) => exit,
            Err(problem) if problem.is_lost() => {
                let receipt = line.lost_receipt(self.exec.next_id(&self.call.id), begin.elapsed(), jail.status());
                self.call.report(Progress::CommandEnded(title, receipt.how, receipt.code, receipt.duration_ms));
                self.exec.receipts.push(receipt);
                return Err(Error::new(problem));
            }
            Err(ExecError::NotFound(program)) => {
                let reason = format!("configured {title} executable not found: {program}");
                return Ok(failure(failed(FailureClass::Deterministic, "agent/not-found", reason)));
            }
            Err(problem) => {
                return Ok(failure(failed(FailureClass::Deterministic, "agent/not-started", problem.to_string())));
            }
        };
        let receipt = line.receipt(self.exec.next_id(&self.call.id), &exit, jail.status());
        self.call.report(Progress::CommandEnded(title.clone(), receipt.how, receipt.code, receipt.duration_ms));
        let over = receipt.over;
        let end = ReceiptEnd { how: receipt.how, code: receipt.code, receipt: receipt.id.clone() };
        self.exec.add(receipt, &exit);
        match (end.how, over, own_timeout) {
            (CommandEnding::Canceled, ..) if self.call.is_canceled() => return Err(Error::new(Stop::Canceled)),
            (CommandEnding::TimedOut, _, Some(own)) => {
                let reason = format!("{title} exec timeout after {}s", own.as_secs());
                return Ok(failure(failed(FailureClass::Transient, "agent/timeout", reason)));
            }
            (CommandEnding::TimedOut, ..) => return Err(Error::new(Stop::Limit(LimitName::WallMs))),
            (_, Some(over), _) => return Err(Error::new(Stop::Limit(over))),
            _ => {}
        }
        self.llm.access.conversation.keep_program(&prompt, reading.final_message());
        let tails = [&error, &output].map(OutputLines::tail);
        Ok(answer(end, reading, tails))
    }

    fn keep_output(&mut self, name: &str, bytes: &[u8]) {
        if !bytes.is_empty() {
            let (name, media_type) = (name.to_owned(), "text/plain".to_owned());
            self.control.artifacts.push(Artifact { name, media_type, data: bytes.to_vec() });
        }
    }
}

impl ProgramSession {
    /// Takes up to `max` available events; `None` if there is none.
    fn take_events(&mut self, max: usize) -> Option<Vec<Event>> {
        self.waiting.extend(self.steps.try_iter().take(STEPS_MAX).filter_map(event));
        let count = self.waiting.len().min(max);
        let events: Vec<Event> = self.waiting.drain(..count).collect();
        if !events.is_empty() {
            self.last = Instant::now();
        }
        (!events.is_empty()).then_some(events)
    }

    /// Waits for the next step. Returns true if the program has ended and no step follows.
    fn wait(&mut self, most: Duration) -> bool {
        match self.steps.recv_timeout(most) {
            Ok(step) => {
                self.waiting.extend(event(step));
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => !self.is_over,
        }
    }
}

/// Converts a step to the event for the component.
fn event(step: ProgramStep) -> Option<Event> {
    let (text, data) = match step {
        ProgramStep::Text(text) => (text, None),
        ProgramStep::ToolCall { name, detail } => (detail, Some(json!({ "tool": name }).to_string())),
    };
    Some(Event { kind: "step".to_owned(), text: cut(text), data, failure: None }).filter(|event| !event.text.is_empty())
}

/// The ending of a program in its receipt, and the receipt's id.
struct ReceiptEnd {
    how: CommandEnding,
    code: Option<i32>,
    receipt: String,
}

/// Converts the end of a program to the last event of its session.
fn answer(end: ReceiptEnd, reading: ProgramOutput, tails: [String; 2]) -> Event {
    let [error, output] = tails;
    let ReceiptEnd { how, code, receipt } = end;
    let program = reading.program();
    let lines_unknown = reading.unknown();
    let blocked = reading.blocked().map(str::to_owned);
    let (message, problem) = reading.end();
    let has_succeeded = (how, code) == (CommandEnding::Exited, Some(0)) && problem.is_none();
    if let Some(why) = blocked.filter(|_| has_succeeded) {
        let reason = format!("{program} could run none of its tools: {}", cut(why));
        return failure(failed(FailureClass::Contract, "agent/blocked", reason));
    }
    if has_succeeded {
        let data = json!({ "receipt": receipt, "lines_unknown": lines_unknown });
        return Event { kind: "done".to_owned(), text: cut(message), data: Some(data.to_string()), failure: None };
    }
    let how = code.map_or_else(|| how.to_string(), |code| format!("exit code {code}"));
    let tail = problem.unwrap_or(error);
    let tail = if tail.is_empty() { output } else { tail };
    let title = match program {
        AgentProgram::Exec => "agent program".to_owned(),
        other => format!("{other} exec"),
    };
    failure(failed(FailureClass::Deterministic, "agent/failed", format!("{title} failed: {how}: {}", cut(tail))))
}

fn failure(failure: Failure) -> Event {
    let converted = to_guest(&failure);
    Event { kind: "failed".to_owned(), text: failure.reason, data: None, failure: Some(converted) }
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_program_whose_caller_is_gone_is_asked_to_end() {
        let stopped = Arc::new(AtomicBool::new(false));
        let guard = StopOnDrop(Arc::clone(&stopped));
        let panicked = std::thread::spawn(move || {
            let _guard = guard;
            panic!("the caller");
        });
        assert!(panicked.join().is_err() && stopped.load(Ordering::SeqCst));
    }
}
