//! Attacks by processes: too many processes, endless ones, ones that ignore signals, and ones that leave their parent.
//!
//! Each attack ends without intervention after some seconds, so that a hole in the sandbox does not block the machine.

use super::raw::{Errno, raw};
use super::{AttackResult, again, number};
use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Maximum lifetime of a process that the attack leaves behind.
const LIFE: Duration = Duration::from_secs(20);

/// Forks this many children, which only sleep.
pub(crate) fn forks(arguments: &[String]) -> AttackResult {
    let wanted = number(arguments, 0).clamp(1, 600);
    for made in 0..wanted {
        match raw(libc::SYS_clone, &[libc::SIGCHLD as usize, 0, 0, 0, 0]) {
            Ok(0) => {
                std::thread::sleep(Duration::from_secs(5));
                std::process::exit(0);
            }
            Ok(_) => {}
            Err(error) => {
                std::thread::sleep(Duration::from_millis(300));
                return AttackResult::stopped(format!("{error} after {made}"));
            }
        }
    }
    std::thread::sleep(Duration::from_millis(500));
    AttackResult::worked(format!("{wanted} processes"))
}

/// Uses the processor in this many threads.
pub(crate) fn spin(arguments: &[String]) -> AttackResult {
    let end = Instant::now() + LIFE;
    let turn = move || {
        let mut turns = 0_u64;
        while Instant::now() < end {
            turns = std::hint::black_box(turns.wrapping_add(1));
        }
    };
    for _ in 1..number(arguments, 0).clamp(1, 64) {
        drop(std::thread::Builder::new().stack_size(64 << 10).spawn(turn));
    }
    turn();
    AttackResult::worked("spun to the end")
}

/// Sleeps longer than every time limit.
pub(crate) fn sleep(_: &[String]) -> AttackResult {
    std::thread::sleep(LIFE);
    AttackResult::worked("slept to the end")
}

/// Writes this many MiB to standard output, as lines or as one endless line.
pub(crate) fn flood(arguments: &[String]) -> AttackResult {
    let mut block = vec![b'x'; 1 << 20];
    if super::word(arguments, 1) == "lines" {
        block.iter_mut().skip(79).step_by(80).for_each(|byte| *byte = b'\n');
    }
    if super::word(arguments, 1) == "escapes" {
        block.chunks_exact_mut(4).for_each(|chunk| chunk.copy_from_slice(b"\x1b[2J"));
    }
    let mut out = std::io::stdout().lock();
    for _ in 0..number(arguments, 0).clamp(1, 256) {
        if out.write_all(&block).is_err() {
            break;
        }
    }
    let _over = out.write_all(b"\n");
    AttackResult::worked("all written")
}

/// Closes standard output and standard error and keeps running.
pub(crate) fn close_output(_: &[String]) -> AttackResult {
    super::raw::close(1);
    super::raw::close(2);
    std::thread::sleep(LIFE);
    AttackResult::worked("went on to the end")
}

/// Leaves a process behind by two forks and a new session. The witness searches for the argument in the process list.
pub(crate) fn daemon(arguments: &[String]) -> AttackResult {
    let left = Command::new("/proc/self/exe")
        .args(["linger", super::word(arguments, 0), "twice"])
        .stdin(Stdio::null())
        .status();
    match left {
        Ok(status) if status.success() => AttackResult::worked("left behind"),
        Ok(status) => AttackResult::stopped(status),
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

/// Forks twice, each time into a new session, ends the parents, and keeps running with open output.
pub(crate) fn linger(arguments: &[String]) -> AttackResult {
    for _ in 0..2 {
        match raw(libc::SYS_clone, &[libc::SIGCHLD as usize, 0, 0, 0, 0]) {
            Ok(0) => {}
            Ok(_) => std::process::exit(0),
            Err(error) => return AttackResult::stopped(error),
        }
        let _own = raw(libc::SYS_setsid, &[]);
    }
    ignore_signals();
    let _one_more = again(&["lie-low", super::word(arguments, 0)]);
    std::thread::sleep(LIFE);
    AttackResult::worked("stayed")
}

/// Ignores every signal that can be ignored, and keeps running.
pub(crate) fn stubborn(_: &[String]) -> AttackResult {
    ignore_signals();
    std::thread::sleep(LIFE);
    AttackResult::worked("stayed to the end")
}

/// Starts processes that continuously replace themselves by a fork, so that no list of them is complete.
pub(crate) fn racers(arguments: &[String]) -> AttackResult {
    for _ in 0..number(arguments, 0).clamp(1, 64) {
        if let Err(error) = again(&["race", super::word(arguments, 1)]) {
            return AttackResult::stopped(Errno::from(error));
        }
    }
    std::thread::sleep(Duration::from_millis(100));
    AttackResult::worked("running")
}

/// Forks and exits repeatedly for some seconds, as one of the processes of [`racers`].
pub(crate) fn race() -> ExitCode {
    let end = Instant::now() + Duration::from_secs(8);
    ignore_signals();
    while Instant::now() < end {
        match raw(libc::SYS_clone, &[libc::SIGCHLD as usize, 0, 0, 0, 0]) {
            Ok(0) => {
                let _own = raw(libc::SYS_setsid, &[]);
            }
            Ok(_) => return ExitCode::SUCCESS,
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    ExitCode::SUCCESS
}

/// Keeps running without output.
pub(crate) fn lie_low() -> ExitCode {
    ignore_signals();
    std::thread::sleep(LIFE);
    ExitCode::SUCCESS
}

/// Ignores every signal that can be ignored.
fn ignore_signals() {
    let ignore = [1_usize, 0, 0, 0];
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGALRM, libc::SIGXCPU] {
        let _ignored = raw(libc::SYS_rt_sigaction, &[signal as usize, ignore.as_ptr() as usize, 0, 8]);
    }
}
