//! One command from start to end: its pipes, its clock, its signals.
//!
//! A single thread waits for whatever comes first. Output is always drained, so a command never blocks on us, and reading
//! ends at a deadline after the kill, so nothing that holds a pipe can make us wait.

use super::family::Family;
use super::pipes::Pipes;
use super::{Captured, ExecError, ExecPolicy, How, io_error};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often time and cancellation are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long output is still read when everything is dead: what is in the pipes, not what comes.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// Time, cancellation and output of a command.
pub(super) struct Bounds<'b> {
    pub(super) policy: &'b ExecPolicy,
    pub(super) timeout: Duration,
    pub(super) canceled: &'b AtomicBool,
}

/// How a command ended by itself or by us, with its output.
pub(super) struct Driven {
    pub(super) stopped: Option<How>,
    pub(super) status: std::process::ExitStatus,
    pub(super) killed: u32,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
}

/// Drives a started command to its end and kills whatever it leaves.
pub(super) fn drive(mut family: Family, stdin: Option<Vec<u8>>, bounds: &Bounds<'_>) -> Result<Driven, ExecError> {
    let child = family.child();
    let output = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
    let input = child.stdin.take().map(OwnedFd::from).zip(stdin);
    let mut pipes = Pipes::new(output, input, bounds.policy.output_bytes_max).map_err(io_error("open its pipes"))?;
    let stopped = wait(&family, &mut pipes, bounds)?;
    let kill_max = bounds.policy.kill_max;
    let (status, killed) = family.end(kill_max).map_err(|count| ExecError::Survivors { count, waited: kill_max })?;
    let status = status.map_err(io_error("reap it"))?;
    let deadline = Instant::now() + DRAIN_MAX;
    while pipes.any_open() && Instant::now() < deadline {
        pipes.turn(LOOK, &[]).map_err(io_error("read its output"))?;
    }
    let [stdout, stderr] = pipes.finish();
    Ok(Driven { stopped, status, killed, stdout, stderr })
}

/// Waits until the command itself has ended, or was told to and had its time. Returns why it was told.
fn wait(family: &Family, pipes: &mut Pipes, bounds: &Bounds<'_>) -> Result<Option<How>, ExecError> {
    let begin = Instant::now();
    let mut stopping: Option<(How, Instant)> = None;
    loop {
        // A dead command would end every wait at once while its children have their time.
        let held = if stopping.is_none() { family.held() } else { None };
        pipes.turn(LOOK, held.as_slice()).map_err(io_error("read its output"))?;
        let over = has_ended(family).map_err(io_error("wait for it"))?;
        match stopping {
            None if over => return Ok(None),
            Some((how, _)) if over && !family.has_others() => return Ok(Some(how)),
            Some((how, kill_at)) if Instant::now() >= kill_at => return Ok(Some(how)),
            Some(_) => {}
            None => {
                let how = if bounds.canceled.load(Ordering::Relaxed) {
                    How::Canceled
                } else if begin.elapsed() >= bounds.timeout {
                    How::TimedOut
                } else {
                    continue;
                };
                family.signal(Signal::TERM);
                stopping = Some((how, Instant::now() + bounds.policy.grace));
            }
        }
    }
}

/// True when the command itself is dead. It stays unreaped, so that its number keeps naming its session and group.
fn has_ended(family: &Family) -> io::Result<bool> {
    let Some(pid) = family.pid() else { return Ok(true) };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    match rustix::process::waitid(WaitId::Pid(pid), options) {
        Ok(status) => Ok(status.is_some()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
