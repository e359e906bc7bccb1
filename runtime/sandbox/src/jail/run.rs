//! One command in a standing jail, from its order to its end.
//!
//! A single thread waits for whatever comes first: output, the helper's word, the clock. The helper says `Ended` when nothing
//! of the command is alive, so reading ends soon after it, at a deadline in any case. A jail whose helper does not keep to
//! that is killed as a whole.

use super::cgroup::Usage;
use super::control::Control;
use super::stores::Stores;
use super::watching::{self, Peaks, Watching};
use super::{Jail, JailError, Network};
use crate::exec::environment::{self, Places};
use crate::exec::pipes::Pipes;
use crate::exec::{Command, ExecError, Exit, Program, io_error, not_begun, program, working_directory};
use glovebox_jail::wire::{self, Ended, Failure, Order, Word};
use glovebox_names::visible;
use glovebox_record::CommandEnding;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// How often time and cancellation are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How often the control group is asked what happened.
const GROUP_LOOK: Duration = Duration::from_millis(100);
/// How long output is still read when everything is dead: what is in the pipes, not what comes.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Longest time between an order and the start of its command.
const START_MAX: Duration = Duration::from_secs(20);
const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

/// Why we ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// At its time, or because the run was canceled; asked first.
    Asked(CommandEnding),
    /// It passed this limit.
    Over(&'static str),
}

/// How it came to its end.
struct Outcome {
    stop: Option<Stop>,
    /// Nothing when the jail died with it.
    ended: Option<Ended>,
}

/// What is asked of a jail beside the order itself.
pub(super) struct Asked<'a> {
    pub(super) order: Order,
    pub(super) streams: Streams,
    pub(super) timeout: Duration,
    pub(super) canceled: &'a AtomicBool,
    /// Whether a shell stands between the program and us.
    pub(super) is_shell: bool,
    /// What was to be started, for people.
    pub(super) name: String,
}

/// Where a command's input comes from and its output goes.
pub(super) enum Streams {
    /// No input.
    Silent,
    /// These bytes are its input.
    Fed(Vec<u8>),
    /// These pipes: its input, and where its output and error go while they come.
    Piped([OwnedFd; 3]),
}

pub(super) fn run(
    jail: &Jail,
    command: &Command,
    pipes: Option<[OwnedFd; 3]>,
    canceled: &AtomicBool,
) -> Result<Exit, ExecError> {
    let order = order(jail, command)?;
    let (name, is_shell) = match &command.program {
        Program::Shell(_) => ("/bin/sh", true),
        Program::Argv(argv) => (argv.first().map_or("", String::as_str), false),
    };
    let name = visible::line(name).into_owned();
    let streams = match (pipes, &command.stdin) {
        (Some(pipes), _) => Streams::Piped(pipes),
        (None, Some(bytes)) => Streams::Fed(bytes.clone()),
        (None, None) => Streams::Silent,
    };
    obey(jail, Asked { order, streams, timeout: command.timeout, canceled, is_shell, name })
}

/// Has an order obeyed and returns when nothing of it is alive.
pub(super) fn obey(jail: &Jail, asked: Asked<'_>) -> Result<Exit, ExecError> {
    let begin = Instant::now();
    if asked.canceled.load(Ordering::Relaxed) {
        return Ok(not_begun(begin.elapsed()));
    }
    let mut control = jail.control();
    let is_piped = matches!(asked.streams, Streams::Piped(_));
    let (theirs, mut pipes) = pipes(jail, asked.streams)?;
    // Taken out meanwhile: only a command that ended as it should gives the jail back.
    let held = control.take().ok_or(ExecError::Lost("it was killed, or its helper died"))?;
    jail.census.begin();
    let before = jail.cgroup.as_ref().map(|group| {
        group.forget_peaks();
        group.usage()
    });
    let descriptors = [theirs[0].as_fd(), theirs[1].as_fd(), theirs[2].as_fd()];
    held.send(&asked.order, &descriptors).map_err(io_error("order it"))?;
    drop(theirs);
    let watching = Watching::default();
    let (canceled, timeout) = (asked.canceled, asked.timeout);
    let mut driving = Driving { jail, control: &held, pipes: &mut pipes, canceled, begin, timeout };
    let driven = thread::scope(|scope| {
        let result = driving.drive(scope, before, &watching);
        watching.ended.store(true, Ordering::Relaxed);
        result
    });
    let outcome = match driven {
        Err(Driven::NotStarted(failure)) => {
            *control = Some(held);
            return Err(not_started(&asked.name, &failure));
        }
        Err(Driven::Failed(error)) => return Err(error),
        Ok(outcome) => outcome,
    };
    let mut outcome = settle(jail, held, outcome, before, &mut control)?;
    if outcome.stop.is_none() && jail.disk.is_over_at_end(begin.elapsed()) {
        outcome.stop = Some(Stop::Over("disk_bytes"));
    }
    // A reader at the other end of a pipe may be slow; what is kept here is read at once.
    let deadline =
        Instant::now() + if is_piped { DRAIN_MAX.max(timeout.saturating_sub(begin.elapsed())) } else { DRAIN_MAX };
    while pipes.any_open() && Instant::now() < deadline && !(is_piped && canceled.load(Ordering::Relaxed)) {
        pipes.turn(LOOK, &[]).map_err(io_error("read its output"))?;
    }
    let peaks = watching.peaks();
    Ok(exit(jail, Ran { outcome, pipes, before, peaks, begin, is_shell: asked.is_shell }))
}

fn order(jail: &Jail, command: &Command) -> Result<Order, ExecError> {
    let (program, arguments) = program::asked(&jail.policy, &command.program, &|path| jail.writable.holds(path))?;
    let places = Places { home: &jail.home, tmp: &jail.tmp, scratch: &jail.tmp };
    let has_proxy = matches!(jail.network, Network::Proxy(_));
    let environment = environment::build(&jail.policy, command, places, has_proxy)?;
    working_directory(&jail.root(), &command.cwd)?;
    let env = environment.into_iter().map(|(name, value)| match value.into_string() {
        Ok(value) => Ok((name, value)),
        Err(_) => Err(ExecError::Invalid(format!("the value of `{name}` is no UTF-8"))),
    });
    let env = env.collect::<Result<_, _>>()?;
    Ok(Order::Run(wire::Command { program, arguments, env, cwd: command.cwd.as_str().to_owned() }))
}

/// Makes the pipes: the command's ends and ours.
fn pipes(jail: &Jail, streams: Streams) -> Result<([OwnedFd; 3], Pipes), ExecError> {
    let failed = |error: Errno| io_error("open its pipes")(error.into());
    let pair = || pipe_with(PipeFlags::CLOEXEC).map_err(failed);
    let (stdin, input, forward) = match streams {
        Streams::Silent => (OwnedFd::from(File::open("/dev/null").map_err(io_error("open its input"))?), None, None),
        Streams::Fed(bytes) => {
            let (theirs, ours) = pair()?;
            (theirs, Some((ours, bytes)), None)
        }
        Streams::Piped([stdin, stdout, stderr]) => (stdin, None, Some([stdout, stderr])),
    };
    let ((out, stdout), (err, stderr)) = (pair()?, pair()?);
    let kept_bytes_max = if forward.is_some() { 0 } else { jail.policy.output_bytes_max };
    let opened = |error| io_error("open its pipes")(error);
    let mut pipes = Pipes::new([Some(out), Some(err)], input, kept_bytes_max).map_err(opened)?;
    forward.map_or(Ok(()), |forward| pipes.forward(forward)).map_err(opened)?;
    Ok(([stdin, stdout, stderr], pipes))
}

/// Why there is no outcome.
enum Driven {
    NotStarted(Failure),
    Failed(ExecError),
}

impl From<ExecError> for Driven {
    fn from(error: ExecError) -> Self {
        Self::Failed(error)
    }
}

struct Driving<'d> {
    jail: &'d Jail,
    control: &'d Control,
    pipes: &'d mut Pipes,
    canceled: &'d AtomicBool,
    begin: Instant,
    timeout: Duration,
}

impl<'d> Driving<'d> {
    /// Waits until the command has ended, or the jail died, or it had to be given up.
    fn drive<'s>(
        &mut self,
        scope: &'s Scope<'s, '_>,
        before: Option<Usage>,
        watching: &'s Watching,
    ) -> Result<Outcome, Driven>
    where
        'd: 's,
    {
        let (mut started, mut looks, mut walks) = (false, false, false);
        let (mut stop, mut kill_at, mut give_up_at) = (None, None, None);
        let mut group_look = self.begin + GROUP_LOOK;
        loop {
            match self.next_word()? {
                Heard::Word(Word::Started) => started = true,
                Heard::Word(Word::Ended(end)) => return Ok(Outcome { stop, ended: Some(end) }),
                Heard::Word(Word::Failed(failure)) if !started => return Err(Driven::NotStarted(failure)),
                // An order that came too late for its command.
                Heard::Word(Word::Failed(_)) | Heard::Nothing => {}
                Heard::Word(Word::Born | Word::Stores | Word::Ready(_)) => {
                    return Err(ExecError::Lost("it spoke out of turn").into());
                }
                Heard::Closed => return Ok(Outcome { stop, ended: None }),
            }
            let now = Instant::now();
            let jail = self.jail;
            if !looks && now >= self.begin + watching::PERIOD {
                looks = true;
                scope.spawn(move || watching.watch(jail));
            }
            if !walks && now >= self.begin + super::disk::LOOK_MIN {
                walks = true;
                scope.spawn(move || jail.disk.watch(watching));
            }
            if stop.is_none() {
                stop = self.reason(now, &mut group_look, before, watching);
                kill_at = match stop {
                    Some(Stop::Asked(_)) => Some(now + self.jail.policy.grace),
                    Some(Stop::Over(_)) => Some(now),
                    None if !started && now >= self.begin + START_MAX => {
                        return Err(ExecError::Lost("its helper does not answer").into());
                    }
                    None => None,
                };
                if matches!(stop, Some(Stop::Asked(_))) {
                    self.order(&Order::Terminate)?;
                }
            }
            if kill_at.is_some_and(|at| now >= at) {
                (kill_at, give_up_at) = (None, Some(now + self.jail.policy.kill_max));
                self.order(&Order::Kill)?;
            }
            if give_up_at.is_some_and(|at| now >= at) {
                return Ok(Outcome { stop, ended: None });
            }
        }
    }

    /// Moves output until the helper says something, at most for a look.
    fn next_word(&mut self) -> Result<Heard, ExecError> {
        self.pipes.turn(LOOK, &[self.control.as_fd()]).map_err(io_error("read its output"))?;
        let is_said = super::control::wait_readable(self.control, Instant::now());
        if !is_said.map_err(io_error("hear from the jail helper"))? {
            return Ok(Heard::Nothing);
        }
        match self.control.receive().map_err(io_error("hear from the jail helper"))? {
            Some((word, _)) => Ok(Heard::Word(word)),
            None => Ok(Heard::Closed),
        }
    }

    /// Says why the command must end now.
    fn reason(
        &self,
        now: Instant,
        group_look: &mut Instant,
        before: Option<Usage>,
        watching: &Watching,
    ) -> Option<Stop> {
        if self.canceled.load(Ordering::Relaxed) {
            return Some(Stop::Asked(CommandEnding::Canceled));
        }
        if now >= self.begin + self.timeout {
            return Some(Stop::Asked(CommandEnding::TimedOut));
        }
        if let Some(limit) = watching.over.get() {
            return Some(Stop::Over(limit));
        }
        if now >= *group_look {
            *group_look = now + GROUP_LOOK;
            if jail_ran_out(self.jail, before) {
                return Some(Stop::Over("command_memory_bytes"));
            }
        }
        None
    }

    fn order(&self, order: &Order) -> Result<(), ExecError> {
        match self.control.send(order, &[]) {
            // The helper is gone; its closed socket says so next.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(io_error("tell the jail helper")),
        }
    }
}

enum Heard {
    Word(Word),
    Nothing,
    Closed,
}

/// Gives the jail back when the command ended as it should; else makes sure that everything in it is dead.
fn settle(
    jail: &Jail,
    held: Control,
    outcome: Outcome,
    before: Option<Usage>,
    control: &mut Option<Control>,
) -> Result<Outcome, ExecError> {
    let survivors = outcome.ended.as_ref().map_or(0, |ended| ended.survivors);
    if outcome.ended.is_some() && survivors == 0 {
        *control = Some(held);
        return Ok(outcome);
    }
    // The end of its socket is what makes a helper without a namespace kill what is left.
    drop(held);
    match jail.await_death() {
        Ok(()) if survivors == 0 && outcome.stop.is_none() && !jail_ran_out(jail, before) => {
            Err(ExecError::Lost("its first process died in mid-command"))
        }
        Ok(()) if survivors == 0 => Ok(outcome),
        Ok(()) | Err(JailError::Survivors(_)) => {
            Err(ExecError::Survivors { count: survivors.max(1) as usize, waited: jail.policy.kill_max })
        }
        Err(JailError::Io { source, .. }) => Err(ExecError::Io { act: "end it", source }),
        Err(_) => Err(ExecError::Lost("its end could not be seen")),
    }
}

/// True when the control group killed something for memory since `before`.
fn jail_ran_out(jail: &Jail, before: Option<Usage>) -> bool {
    let usage = jail.cgroup.as_ref().map(|group| group.usage());
    usage.zip(before).is_some_and(|(usage, before)| usage.killed > before.killed)
}

/// Everything that is known of a command that has ended.
struct Ran {
    outcome: Outcome,
    pipes: Pipes,
    before: Option<Usage>,
    peaks: Peaks,
    begin: Instant,
    is_shell: bool,
}

fn exit(jail: &Jail, ran: Ran) -> Exit {
    let Ran { outcome, pipes, before, peaks, begin, is_shell } = ran;
    let usage = jail.cgroup.as_ref().map(|group| group.usage()).unwrap_or_default();
    let before = before.unwrap_or_default();
    let ended = outcome.ended.unwrap_or(Ended { signal: Some(SIGKILL), ..Ended::default() });
    let (how, code) = match (outcome.stop, ended.code, ended.signal) {
        (Some(Stop::Asked(how)), _, _) => (how, None),
        (_, Some(code), _) => (CommandEnding::Exited, Some(code)),
        (_, _, signal) => (CommandEnding::Signaled, signal.or(Some(SIGKILL))),
    };
    let over = match outcome.stop {
        Some(Stop::Over(limit)) => Some(limit.to_owned()),
        Some(Stop::Asked(_)) => None,
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
        tmp_bytes: jail.census.stores().map(Stores::fullest_folder_bytes),
        over,
    };
    add(jail, &exit);
    exit
}

/// Finds the limit for which a command did not go on although we did not end it. An exit code is no proof of it, as a command chooses
/// that; what was measured is.
fn over(jail: &Jail, is_shell: bool, ended: &Ended, usage: Usage, before: Usage) -> Option<String> {
    if usage.killed > before.killed {
        return Some("command_memory_bytes".to_owned());
    }
    // A shell says with 128 and the number which signal ended its program.
    let through_shell = ended.code.filter(|code| is_shell && *code > 128).map(|code| code - 128);
    let cpu_spent = ended.cpu_ms >= jail.bounds.told().cpu_seconds.saturating_mul(1000);
    match (ended.signal, through_shell) {
        (Some(SIGXCPU | SIGKILL), _) | (_, Some(SIGXCPU | SIGKILL)) if cpu_spent => Some("cpu_ms".to_owned()),
        // The kernel's answer to a file that is too large; a command that sends it to itself could as well make such a file.
        (Some(SIGXFSZ), _) => Some("file_bytes".to_owned()),
        (_, Some(SIGXFSZ)) if jail.disk.has_file_of(jail.bounds.file_bytes) => Some("file_bytes".to_owned()),
        _ if ended.code != Some(0) && usage.forks_refused > before.forks_refused => Some("processes".to_owned()),
        _ => None,
    }
}

fn add(jail: &Jail, exit: &Exit) {
    let mut spent = jail.spent.lock().unwrap_or_else(PoisonError::into_inner);
    spent.commands += 1;
    spent.cpu_ms = spent.cpu_ms.saturating_add(exit.cpu_ms);
    spent.memory_peak_bytes = spent.memory_peak_bytes.max(exit.memory_peak_bytes);
}

/// Says why a command was not started in the words of its caller.
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
