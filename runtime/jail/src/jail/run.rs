//! One command in a jail, from its request to its end.
//!
//! A single thread waits for output, the helper's reply, a wake-up or the clock, whichever is first. The helper replies
//! `Ended` when no process of the command is alive, so reading ends soon after the reply, and at a deadline in any
//! case. A jail whose helper violates this protocol is killed as a whole.

use super::cgroup::GroupUsage;
use super::control::Control;
use super::disk::LOOK_MIN;
use super::environment::{self, OwnFolders};
use super::policy_builder;
use super::poll_interval::PERIOD;
use super::program;
use super::stores::Stores;
use super::watchdog::{Peaks, Watchdog};
use super::{Jail, JailError};
use crate::exec::pipes::Pipes;
use crate::exec::{Command, ExecError, Exit, Program, io_error, working_directory};
use glovebox_jail_helper::wire::{self, CommandEnd, Failure, Reply, Request};
use glovebox_names::visible;
use glovebox_record::{CommandEnding, LimitName};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Interval at which cancellation is checked while the pipes are drained.
const POLL: Duration = Duration::from_millis(20);
/// Maximum time for draining the pipes after all processes are dead.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Maximum time between a request and the start of its command.
const START_MAX: Duration = Duration::from_secs(20);
const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

/// Why the host ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopReason {
    /// The timeout of the command, or a cancellation of the run. The command gets SIGTERM first.
    Requested(CommandEnding),
    /// The command exceeded this limit.
    Over(LimitName),
}

/// The outcome of a command.
struct CommandOutcome {
    stop: Option<StopReason>,
    /// `None` if the jail died with the command.
    ended: Option<CommandEnd>,
}

/// One request to a jail, with everything that is needed to run it.
pub(super) struct Invocation<'a> {
    pub(super) request: Request,
    pub(super) streams: Streams,
    pub(super) timeout: Duration,
    pub(super) canceled: &'a AtomicBool,
    /// True if a shell starts the program.
    pub(super) is_shell: bool,
    /// The name of the program, for messages.
    pub(super) name: String,
}

/// The source of a command's input and the receivers of its output.
pub(super) enum Streams {
    /// No input.
    Empty,
    /// These bytes are the input.
    Bytes(Vec<u8>),
    /// Pipes for input, output and error.
    Piped([OwnedFd; 3]),
}

pub(super) fn run(
    jail: &Jail,
    command: &Command,
    pipes: Option<[OwnedFd; 3]>,
    canceled: &AtomicBool,
) -> Result<Exit, ExecError> {
    let request = request(jail, command)?;
    let (name, is_shell) = match &command.program {
        Program::Shell(_) => ("/bin/sh", true),
        Program::Argv(argv) => (argv.first().map_or("", String::as_str), false),
    };
    let name = visible::line(name).into_owned();
    let streams = match (pipes, &command.stdin) {
        (Some(pipes), _) => Streams::Piped(pipes),
        (None, Some(bytes)) => Streams::Bytes(bytes.clone()),
        (None, None) => Streams::Empty,
    };
    run_request(jail, Invocation { request, streams, timeout: command.timeout, canceled, is_shell, name })
}

/// Sends a request and returns when no process of the command is alive.
pub(super) fn run_request(jail: &Jail, invocation: Invocation<'_>) -> Result<Exit, ExecError> {
    let begin = Instant::now();
    if invocation.canceled.load(Ordering::Relaxed) {
        return Ok(Exit::unmeasured(CommandEnding::Canceled, begin.elapsed()));
    }
    let mut control = jail.control();
    let is_piped = matches!(invocation.streams, Streams::Piped(_));
    let (theirs, mut pipes) = pipes(jail, invocation.streams)?;
    // The control socket is taken out. Only a command that ended as expected puts it back.
    let held = control.take().ok_or(ExecError::Lost("it was killed or the jail helper died"))?;
    jail.disk.note_begin();
    jail.processes.note_first(jail.cgroup.is_some());
    let is_first = jail.usage.lock().unwrap_or_else(PoisonError::into_inner).commands == 0;
    let before = jail.cgroup.as_ref().map(|group| {
        group.forget_peaks();
        // The group is as new as the jail, so its usage is zero.
        if is_first { GroupUsage::default() } else { group.usage() }
    });
    let descriptors = [theirs[0].as_fd(), theirs[1].as_fd(), theirs[2].as_fd()];
    if let Err(error) = held.send(&invocation.request, &descriptors) {
        return Err(not_sent(jail, held, error));
    }
    drop(theirs);
    let watchdog = Watchdog::new().map_err(io_error("watch the command"))?;
    let (canceled, timeout) = (invocation.canceled, invocation.timeout);
    let mut driver = CommandDriver { jail, control: &held, pipes: &mut pipes, canceled, begin, timeout };
    let driven = thread::scope(|scope| {
        let result = driver.drive(scope, before, &watchdog);
        watchdog.end();
        result
    });
    let outcome = match driven {
        Err(DriveError::NotStarted(failure)) => {
            *control = Some(held);
            return Err(not_started(&invocation.name, &failure));
        }
        Err(DriveError::Failed(error)) => return Err(error),
        Ok(outcome) => outcome,
    };
    let mut outcome = return_control(jail, held, outcome, before, &mut control)?;
    if outcome.stop.is_none() && jail.disk.is_over_at_end(begin.elapsed()) {
        outcome.stop = Some(StopReason::Over(LimitName::DiskBytes));
    }
    // The reader of a pipe may be slow. Output that the host stores is read at once.
    let deadline =
        Instant::now() + if is_piped { DRAIN_MAX.max(timeout.saturating_sub(begin.elapsed())) } else { DRAIN_MAX };
    while pipes.any_open() && Instant::now() < deadline && !(is_piped && canceled.load(Ordering::Relaxed)) {
        pipes.turn(POLL, []).map_err(io_error("read the command's output"))?;
    }
    let peaks = watchdog.peaks();
    Ok(exit(jail, CommandResult { outcome, pipes, before, peaks, begin, is_shell: invocation.is_shell }))
}

fn request(jail: &Jail, command: &Command) -> Result<Request, ExecError> {
    let (program, arguments) = program::resolve(&jail.policy, &command.program, &|path| jail.writable.holds(path))?;
    let folders = OwnFolders {
        home: &jail.home,
        tmp: &jail.tmp,
        user: jail.status.tier.has_own_root().then_some(policy_builder::USER),
        scratch: &jail.tmp,
        kept: &jail.kept,
    };
    let has_proxy = jail.proxy.is_some();
    let environment = environment::build(&jail.policy, command, folders, has_proxy)?;
    working_directory(&jail.root(), &command.cwd)?;
    let env = environment.into_iter().map(|(name, value)| match value.into_string() {
        Ok(value) => Ok((name, value)),
        Err(_) => Err(ExecError::Invalid(format!("the value of `{name}` is not valid UTF-8"))),
    });
    let env = env.collect::<Result<_, _>>()?;
    Ok(Request::Run(wire::Command { program, arguments, env, cwd: command.cwd.as_str().to_owned() }))
}

/// Creates the pipes: the command's ends and the host's ends.
fn pipes(jail: &Jail, streams: Streams) -> Result<([OwnedFd; 3], Pipes), ExecError> {
    let failed = |error: Errno| io_error("open the command's pipes")(error.into());
    let pair = || pipe_with(PipeFlags::CLOEXEC).map_err(failed);
    let (stdin, input, forward) = match streams {
        Streams::Empty => {
            let nothing = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
            (nothing.map_err(|error| io_error("open the command's input")(error.into()))?, None, None)
        }
        Streams::Bytes(bytes) => {
            let (theirs, ours) = pair()?;
            (theirs, Some((ours, bytes)), None)
        }
        Streams::Piped([stdin, stdout, stderr]) => (stdin, None, Some([stdout, stderr])),
    };
    let ((out, stdout), (err, stderr)) = (pair()?, pair()?);
    let kept_bytes_max = if forward.is_some() { 0 } else { jail.policy.output_bytes_max };
    let opened = |error| io_error("open the command's pipes")(error);
    let mut pipes = Pipes::new([Some(out), Some(err)], input, kept_bytes_max).map_err(opened)?;
    forward.map_or(Ok(()), |forward| pipes.forward(forward)).map_err(opened)?;
    Ok(([stdin, stdout, stderr], pipes))
}

/// Why a command has no outcome.
enum DriveError {
    NotStarted(Failure),
    Failed(ExecError),
}

impl From<ExecError> for DriveError {
    fn from(error: ExecError) -> Self {
        Self::Failed(error)
    }
}

struct CommandDriver<'d> {
    jail: &'d Jail,
    control: &'d Control,
    pipes: &'d mut Pipes,
    canceled: &'d AtomicBool,
    begin: Instant,
    timeout: Duration,
}

impl<'d> CommandDriver<'d> {
    /// Waits until the command has ended, the jail has died, or the maximum time is over.
    fn drive<'s>(
        &mut self,
        scope: &'s Scope<'s, '_>,
        before: Option<GroupUsage>,
        watchdog: &'s Watchdog,
    ) -> Result<CommandOutcome, DriveError>
    where
        'd: 's,
    {
        let (mut started, mut looks, mut walks) = (false, false, false);
        let mut ending = EndProgress::default();
        loop {
            let clock = self.clock(started, looks, walks, &ending);
            match self.next_reply(clock, watchdog)? {
                ControlMessage::Reply(Reply::Started) => started = true,
                ControlMessage::Reply(Reply::Ended(end)) => {
                    return Ok(CommandOutcome { stop: ending.stop, ended: Some(end) });
                }
                ControlMessage::Reply(Reply::Failed(failure)) if !started => {
                    return Err(DriveError::NotStarted(failure));
                }
                // This is the reply to a request that arrived after the end of its command.
                ControlMessage::Reply(Reply::Failed(_)) | ControlMessage::Nothing => {}
                ControlMessage::Reply(Reply::Spawned | Reply::Stores | Reply::Ready(_)) => {
                    return Err(ExecError::Lost("the jail helper broke the protocol").into());
                }
                ControlMessage::Closed => return Ok(CommandOutcome { stop: ending.stop, ended: None }),
            }
            let now = Instant::now();
            let (jail, canceled) = (self.jail, self.canceled);
            if !looks && now >= self.begin + PERIOD {
                looks = true;
                scope.spawn(move || watchdog.watch(jail, before.map(|before| before.killed), canceled));
            }
            if !walks && now >= self.begin + LOOK_MIN {
                walks = true;
                scope.spawn(move || jail.disk.watch(watchdog));
            }
            if ending.stop.is_none() {
                if let Some(stop) = self.reason(now, watchdog) {
                    self.begin_end(&mut ending, stop, now)?;
                } else if !started && now >= self.begin + START_MAX {
                    return Err(ExecError::Lost("the jail helper does not answer").into());
                }
            }
            if ending.kill_at.is_some_and(|at| now >= at) {
                (ending.kill_at, ending.give_up_at) = (None, Some(now + self.jail.policy.kill_max));
                self.send(&Request::Kill)?;
            }
            if ending.give_up_at.is_some_and(|at| now >= at) {
                return Ok(CommandOutcome { stop: ending.stop, ended: None });
            }
        }
    }

    /// Begins to end a command: sends SIGTERM if the command gets a grace period, and sets the time of the kill.
    fn begin_end(&self, ending: &mut EndProgress, stop: StopReason, now: Instant) -> Result<(), ExecError> {
        ending.stop = Some(stop);
        ending.kill_at = Some(match stop {
            StopReason::Requested(_) => now + self.jail.policy.grace,
            StopReason::Over(_) => now,
        });
        if matches!(stop, StopReason::Requested(_)) { self.send(&Request::Terminate) } else { Ok(()) }
    }

    /// Returns the next time at which this thread must wake up.
    fn clock(&self, started: bool, looks: bool, walks: bool, ending: &EndProgress) -> Instant {
        let of_start =
            [(started, START_MAX), (looks, PERIOD), (walks, LOOK_MIN), (ending.stop.is_some(), self.timeout)];
        let of_start = of_start.into_iter().filter(|(is_over, _)| !is_over).map(|(_, after)| self.begin + after);
        let next = of_start.chain(ending.kill_at).chain(ending.give_up_at).min();
        next.unwrap_or_else(|| Instant::now() + START_MAX)
    }

    /// Moves output until the helper replies, the waker wakes, or `until` is reached.
    fn next_reply(&mut self, until: Instant, watchdog: &Watchdog) -> Result<ControlMessage, ExecError> {
        let timeout = until.saturating_duration_since(Instant::now());
        let others = [self.control.as_fd(), watchdog.waker.as_fd()];
        let before = self.pipes.read_bytes();
        let [has_reply, is_woken] = self.pipes.turn(timeout, others).map_err(io_error("read the command's output"))?;
        self.jail.pulse.output(self.pipes.read_bytes() - before);
        if is_woken {
            watchdog.waker.reset();
        }
        if !has_reply {
            return Ok(ControlMessage::Nothing);
        }
        match self.control.receive().map_err(io_error("read a reply of the jail helper"))? {
            Some((reply, _)) => Ok(ControlMessage::Reply(reply)),
            None => Ok(ControlMessage::Closed),
        }
    }

    /// Returns the reason why the command must end now, if there is one.
    fn reason(&self, now: Instant, watchdog: &Watchdog) -> Option<StopReason> {
        if self.canceled.load(Ordering::SeqCst) {
            return Some(StopReason::Requested(CommandEnding::Canceled));
        }
        if now >= self.begin + self.timeout {
            return Some(StopReason::Requested(CommandEnding::TimedOut));
        }
        watchdog.over().map(StopReason::Over)
    }

    fn send(&self, request: &Request) -> Result<(), ExecError> {
        match self.control.send(request, &[]) {
            // The helper has ended. The closed socket reports it next.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(io_error("send a request to the jail helper")),
        }
    }
}

/// The progress of ending a command by the host.
#[derive(Default)]
struct EndProgress {
    stop: Option<StopReason>,
    kill_at: Option<Instant>,
    give_up_at: Option<Instant>,
}

enum ControlMessage {
    Reply(Reply),
    Nothing,
    Closed,
}

/// Puts the control socket back if the command ended as expected. Otherwise makes sure that everything in the jail is
/// dead.
fn return_control(
    jail: &Jail,
    held: Control,
    outcome: CommandOutcome,
    before: Option<GroupUsage>,
    control: &mut Option<Control>,
) -> Result<CommandOutcome, ExecError> {
    let survivors = outcome.ended.as_ref().map_or(0, |ended| ended.survivors);
    if outcome.ended.is_some() && survivors == 0 {
        *control = Some(held);
        return Ok(outcome);
    }
    // A helper without a namespace kills the remaining processes when its socket is closed.
    drop(held);
    match jail.await_death() {
        Ok(()) if survivors == 0 && outcome.stop.is_none() && !is_out_of_memory(jail, before) => Err(ExecError::Killed),
        Ok(()) if survivors == 0 => Ok(outcome),
        Ok(()) | Err(JailError::Survivors(_)) => {
            Err(ExecError::Survivors { count: survivors.max(1) as usize, waited: jail.policy.kill_max })
        }
        Err(JailError::Io { source, .. }) => Err(ExecError::Io { act: "end the command", source }),
        Err(_) => Err(ExecError::Lost("the jail helper did not confirm the end of its processes")),
    }
}

/// Returns the error for a request that could not be sent. A closed socket means that the first process was killed while
/// the jail waited for a request.
fn not_sent(jail: &Jail, held: Control, error: io::Error) -> ExecError {
    drop(held);
    if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) {
        return io_error("send the request to the jail helper")(error);
    }
    jail.await_death().map_or(ExecError::Lost("the jail helper did not confirm its end"), |()| ExecError::Killed)
}

/// Returns true if the control group has killed a process because of the memory limit since `before`.
fn is_out_of_memory(jail: &Jail, before: Option<GroupUsage>) -> bool {
    let killed = jail.cgroup.as_ref().map(|group| group.killed());
    killed.zip(before).is_some_and(|(killed, before)| killed > before.killed)
}

/// Everything that is known about a command that has ended.
struct CommandResult {
    outcome: CommandOutcome,
    pipes: Pipes,
    before: Option<GroupUsage>,
    peaks: Peaks,
    begin: Instant,
    is_shell: bool,
}

fn exit(jail: &Jail, finished: CommandResult) -> Exit {
    let CommandResult { outcome, pipes, before, peaks, begin, is_shell } = finished;
    let usage = jail.cgroup.as_ref().map(|group| group.usage()).unwrap_or_default();
    let before = before.unwrap_or_default();
    let ended = outcome.ended.unwrap_or(CommandEnd { signal: Some(SIGKILL), ..CommandEnd::default() });
    let (how, code) = match (outcome.stop, ended.code, ended.signal) {
        (Some(StopReason::Requested(how)), _, _) => (how, None),
        (_, Some(code), _) => (CommandEnding::Exited, Some(code)),
        (_, _, signal) => (CommandEnding::Signaled, signal.or(Some(SIGKILL))),
    };
    let over = match outcome.stop {
        Some(StopReason::Over(limit)) => Some(limit),
        Some(StopReason::Requested(_)) => None,
        None => over(jail, is_shell, &ended, usage, before),
    };
    let [stdout, stderr] = pipes.finish();
    let exit = Exit {
        how,
        code,
        duration: begin.elapsed(),
        stdout,
        stderr,
        killed: ended.killed,
        cpu_ms: ended.cpu_ms,
        memory_peak_bytes: ended.memory_peak_bytes.max(usage.memory_peak_bytes).max(peaks.memory_bytes.unwrap_or(0)),
        processes_peak: peaks.processes.max(Some(usage.processes_peak).filter(|count| *count > 0)),
        descriptors_peak: peaks.descriptors,
        file_peak_bytes: peaks.file_bytes,
        tmp_bytes: jail.processes.stores().map(Stores::fullest_folder_bytes),
        over,
    };
    add_usage(jail, &exit);
    exit
}

/// Returns the limit that ended a command or made it fail, if the host did not end the command. A command chooses its
/// exit code, so only measurements are used.
fn over(jail: &Jail, is_shell: bool, ended: &CommandEnd, usage: GroupUsage, before: GroupUsage) -> Option<LimitName> {
    if usage.killed > before.killed {
        return Some(LimitName::CommandMemoryBytes);
    }
    // A shell exits with 128 plus the number of the signal that ended its program.
    let through_shell = ended.code.filter(|code| is_shell && *code > 128).map(|code| code - 128);
    let cpu_spent = ended.cpu_ms >= jail.limits.cpu_ms.div_ceil(1000).saturating_mul(1000);
    match (ended.signal, through_shell) {
        (Some(SIGXCPU | SIGKILL), _) | (_, Some(SIGXCPU | SIGKILL)) if cpu_spent => Some(LimitName::CpuMs),
        // The kernel sends the signal for a file that is too large. A command that sends it to itself could also create
        // such a file.
        (Some(SIGXFSZ), _) => Some(LimitName::FileBytes),
        (_, Some(SIGXFSZ)) if jail.disk.has_file_of(jail.limits.file_bytes) => Some(LimitName::FileBytes),
        _ if ended.code != Some(0) && usage.forks_refused > before.forks_refused => Some(LimitName::Processes),
        _ => None,
    }
}

fn add_usage(jail: &Jail, exit: &Exit) {
    let mut total = jail.usage.lock().unwrap_or_else(PoisonError::into_inner);
    total.commands += 1;
    total.cpu_ms = total.cpu_ms.saturating_add(exit.cpu_ms);
    total.memory_peak_bytes = total.memory_peak_bytes.max(exit.memory_peak_bytes);
}

/// Converts a failed start to the error for the user.
fn not_started(name: &str, failure: &Failure) -> ExecError {
    match Errno::from_raw_os_error(failure.errno) {
        Errno::NOENT | Errno::ACCESS | Errno::NOTDIR
            if failure.step == "find program" || failure.step.starts_with("exec ") =>
        {
            ExecError::NotFound(name.to_owned())
        }
        _ => ExecError::Invalid(format!("`{name}` was not started: {}: {}", failure.step, failure.text)),
    }
}
