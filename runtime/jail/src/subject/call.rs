//! One call of `subject`: reads the request, starts the program, and reports its end.
//!
//! The caller runs in the verifier's jail and is not trusted. It decides only what runs, how long it waits and when it
//! disconnects.

use super::sandbox::SubjectSandbox;
use super::service::StageState;
use crate::exec::{Command, Exit, Program};
use crate::jail::{self, JailStatus};
use crate::relay::{Stop, WakeReason};
use glovebox_jail_helper::control::{receive_frame, send_frame};
use glovebox_jail_helper::subject::{NOT_STARTED, Request, SubjectEnd, SubjectReply};
use glovebox_record::{CommandEnding, LimitName};
use rustix::event::PollFlags;
use rustix::net::RecvFlags;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time without a byte of a request. A stage does not end before its callers do.
const REQUEST_MAX: Duration = Duration::from_secs(2);
/// Interval at which a waiting caller is checked.
const LOOK: Duration = Duration::from_millis(10);
/// Time after which a waiting caller gets a notice.
const NOTICE_AFTER: Duration = Duration::from_secs(3);
/// Maximum size of one call's arguments, bytes. Every receipt contains them.
const WORDS_BYTES_MAX: usize = 64 << 10;
/// Maximum size of a request, bytes: the arguments in JSON, where a byte takes at most six bytes. All callers of a
/// stage may send requests at the same time.
const REQUEST_BYTES_MAX: usize = 6 * WORDS_BYTES_MAX + (64 << 10);
/// Exit code for a call that reached its timeout, as with the `timeout` command.
const TIMED_OUT: u8 = 124;
const SIGKILL: u8 = 9;
const SIGTERM: u8 = 15;

/// One program under test that ran, for its receipt.
#[derive(Debug, Clone)]
pub struct SubjectCall {
    /// The requested program and its arguments.
    pub words: Vec<String>,
    /// Working directory, relative to the workspace.
    pub cwd: String,
    /// The exit of the program. Only the length and digest of output and error are stored.
    pub exit: Exit,
    /// The confinement of the second jail.
    pub status: JailStatus,
}

/// Serves one connection.
pub(super) fn serve(shared: &StageState, caller: &OwnedFd, stop: Stop<'_>) {
    let answer = match request(caller).and_then(|request| checked(shared, request)) {
        Ok(checked) => run(shared, caller, checked, stop),
        Err(why) => Some(SubjectReply::Refused(why)),
    };
    if let Some(answer) = answer {
        // A caller that has disconnected needs no answer.
        let _ = send_frame(caller, &answer, &[]);
    }
}

fn request(caller: &OwnedFd) -> Result<Request, String> {
    let lost = |error: &dyn std::fmt::Display| format!("the request could not be read: {error}");
    rustix::io::ioctl_fionbio(caller, false).map_err(|error| lost(&error))?;
    for direction in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(caller, direction, Some(REQUEST_MAX)).map_err(|error| lost(&error))?;
    }
    let bytes = announced(caller).map_err(|error| lost(&error))?;
    if bytes > REQUEST_BYTES_MAX {
        return Err(format!("the request has {bytes} bytes, expected at most {REQUEST_BYTES_MAX}"));
    }
    let frame = receive_frame::<Request>(caller).map_err(|error| lost(&error))?;
    frame.map(|(request, _)| request).ok_or_else(|| "the request is missing".to_owned())
}

/// Returns the length in a frame's header without removing it from the socket. The `subject` command sends the header
/// at once.
fn announced(caller: &OwnedFd) -> io::Result<usize> {
    let mut head = [0; 4];
    let (got, _) = rustix::net::recv(caller, &mut head[..], RecvFlags::PEEK)?;
    match got {
        4 => Ok(u32::from_le_bytes(head) as usize),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A checked request.
struct CheckedRequest {
    program: Program,
    words: Vec<String>,
    cwd: String,
}

fn checked(shared: &StageState, request: Request) -> Result<CheckedRequest, String> {
    let Request { words, cwd } = request;
    let bytes = words.iter().map(|word| word.len() + 1).sum::<usize>() + cwd.len();
    if bytes > WORDS_BYTES_MAX {
        return Err(format!("the arguments have {bytes} bytes, expected at most {WORDS_BYTES_MAX}"));
    }
    if !words.is_empty() {
        // The shell looks up a name in `PATH` and runs a path directly, as for every command of the caller.
        let script = ["/bin/sh", "-c", "exec \"$@\"", "sh"].into_iter().map(str::to_owned);
        return Ok(CheckedRequest {
            program: Program::Argv(script.chain(words.iter().cloned()).collect()),
            words,
            cwd,
        });
    }
    match (&shared.setting.command, shared.setting.port) {
        (Some(_), Some(port)) => Err(format!("the command of `verify_subject` is already running at 127.0.0.1:{port}")),
        (Some(text), None) => {
            let words = ["sh", "-c", text].map(str::to_owned).to_vec();
            Ok(CheckedRequest { program: Program::Shell(text.clone()), words, cwd })
        }
        (None, _) => {
            Err("expected a program, because the node has no `verify_subject`; see `subject --help`".to_owned())
        }
    }
}

/// Runs the program when no other call runs. Returns `None` if the caller has disconnected.
fn run(shared: &StageState, caller: &OwnedFd, request: CheckedRequest, stop: Stop<'_>) -> Option<SubjectReply> {
    let mut turn = wait_for_turn(shared, caller, stop)?;
    if let Err(why) = shared.count() {
        return Some(SubjectReply::Refused(why));
    }
    let files = shared.setting.jail.folder.join(super::service::FILES);
    let sandbox = match turn.as_mut() {
        Some(sandbox) => sandbox,
        None => match SubjectSandbox::make(&shared.setting, &files, false) {
            Ok(sandbox) => turn.insert(sandbox),
            Err(error) => return Some(SubjectReply::Refused(error.to_string())),
        },
    };
    let (theirs, ours) = match pipes() {
        Ok(pipes) => pipes,
        Err(error) => return Some(SubjectReply::Refused(format!("failed to make pipes: {error}"))),
    };
    let [input, output, error] = theirs.each_ref().map(AsFd::as_fd);
    send_frame(caller, &SubjectReply::Started, &[input, output, error]).ok()?;
    drop(theirs);
    let cwd = sandbox.cwd(Path::new(&request.cwd), &shared.setting);
    let command =
        Command { program: request.program, cwd, env: Vec::new(), stdin: None, timeout: shared.setting.timeout };
    let ran = while_there(caller, stop, |gone| sandbox.jail.run_piped(&command, ours, gone));
    match ran {
        Ok(exit) => {
            let end = end(&exit);
            let status = sandbox.jail.status().clone();
            shared.record(SubjectCall { words: request.words, cwd: command.cwd.as_str().to_owned(), exit, status });
            Some(SubjectReply::Ended(end))
        }
        Err(error) => Some(SubjectReply::Ended(SubjectEnd { code: NOT_STARTED, note: Some(error.to_string()) })),
    }
}

/// Waits until no other call of the stage runs. Returns `None` if the caller disconnects first.
fn wait_for_turn<'s>(
    shared: &'s StageState,
    caller: &OwnedFd,
    stop: Stop<'_>,
) -> Option<MutexGuard<'s, Option<SubjectSandbox>>> {
    let mut notice_at = Some(Instant::now() + NOTICE_AFTER);
    loop {
        if let Some(turn) = shared.turn() {
            return Some(turn);
        }
        // A readable socket means that the caller has disconnected, because it sends nothing after its request.
        match stop.wait(&[(caller.as_fd(), PollFlags::IN)], Instant::now() + LOOK) {
            Ok(WakeReason::Late) => {}
            Ok(WakeReason::Ready | WakeReason::Stopped) | Err(_) => return None,
        }
        if notice_at.is_some_and(|at| Instant::now() >= at) {
            notice_at = None;
            send_frame(caller, &SubjectReply::Waiting, &[]).ok()?;
        }
    }
}

/// Returns the caller's ends of three pipes and the host's ends, in the order of the streams.
fn pipes() -> io::Result<([OwnedFd; 3], [OwnedFd; 3])> {
    let pair = || pipe_with(PipeFlags::CLOEXEC);
    let ((input, feed), (output, out), (error, err)) = (pair()?, pair()?, pair()?);
    Ok(([feed, output, error], [input, out, err]))
}

/// Calls `act` with a flag that is set when the caller disconnects or the stage ends.
fn while_there<T>(caller: &OwnedFd, stop: Stop<'_>, act: impl FnOnce(&AtomicBool) -> T) -> T {
    let (gone, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let Ok((ended, end)) = io::pipe() else { return act(&gone) };
    thread::scope(|scope| {
        scope.spawn(|| watch(caller, stop, &ended, &gone, &done));
        let result = act(&gone);
        done.store(true, Ordering::Relaxed);
        drop(end);
        result
    })
}

fn watch(caller: &OwnedFd, stop: Stop<'_>, ended: &PipeReader, gone: &AtomicBool, done: &AtomicBool) {
    let on = [(caller.as_fd(), PollFlags::IN), (ended.as_fd(), PollFlags::IN)];
    while !done.load(Ordering::Relaxed) {
        match stop.wait(&on, Instant::now() + REQUEST_MAX) {
            Ok(WakeReason::Late) => {}
            Ok(WakeReason::Ready | WakeReason::Stopped) | Err(_) => {
                jail::cancel(gone);
                return;
            }
        }
    }
}

/// Returns the end of a program, for the caller.
fn end(exit: &Exit) -> SubjectEnd {
    let number = exit.code.and_then(|code| u8::try_from(code & 0xff).ok()).unwrap_or(SIGKILL);
    let limit = exit.over.or((exit.how == CommandEnding::TimedOut).then_some(LimitName::CommandMs));
    let code = match exit.how {
        // The program exited with 0, but exceeded a limit, so this is not a success.
        CommandEnding::Exited if number == 0 && limit.is_some() => 128 + SIGKILL,
        CommandEnding::Exited => number,
        CommandEnding::Signaled => 128_u8.saturating_add(number),
        CommandEnding::TimedOut => TIMED_OUT,
        CommandEnding::Canceled => 128 + SIGTERM,
        CommandEnding::Lost => 128 + SIGKILL,
    };
    SubjectEnd { code, note: limit.map(|limit| format!("the program under test reached `limits.{limit}`")) }
}
