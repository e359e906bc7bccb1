//! The victim: a process outside of the sandbox that holds canaries and reports whether they have changed.
//!
//! It holds a canary in its memory, its arguments, an open file, a shared segment and a message queue. It answers each
//! line on its standard input with a line on its standard output. It ends when its input is closed, and leaves nothing
//! behind.

use super::raw::{Text, poke, raw};
use super::word;
use serde::Serialize;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;

/// Where the victim holds its canaries.
#[derive(Serialize)]
struct VictimReport<'q> {
    process: u32,
    address: usize,
    bytes: usize,
    descriptor: usize,
    shm: Option<usize>,
    queue: Option<&'q str>,
}

/// Holds the canary of the first argument, and an open descriptor of the file in the second argument, until standard
/// input is closed.
pub(crate) fn victim(arguments: &[String]) -> ExitCode {
    let kill = libc::SIGKILL as usize;
    let _dies_with_us = raw(libc::SYS_prctl, &[libc::PR_SET_PDEATHSIG as usize, kill, 0, 0, 0]);
    // Every process of the same user may trace this one, as far as the host allows.
    let _any_tracer = raw(libc::SYS_prctl, &[0x5961_6d61, usize::MAX, 0, 0, 0]);
    // A harmless signal that stays pending, so that the witness can see it.
    let (block, urgent) = (libc::SIG_BLOCK as usize, [1_u64 << (libc::SIGURG - 1)]);
    let _noted = raw(libc::SYS_rt_sigprocmask, &[block, urgent.as_ptr() as usize, 0, 8]);
    let canary = word(arguments, 0).as_bytes().to_vec();
    let memory = canary.clone();
    let queue = word(arguments, 2);
    let report = VictimReport {
        process: std::process::id(),
        address: memory.as_ptr() as usize,
        bytes: memory.len(),
        descriptor: super::raw::open(Path::new(word(arguments, 1)), libc::O_RDONLY, 0).unwrap_or(0),
        shm: shared(&canary),
        queue: post(queue, &canary).then_some(queue),
    };
    if serde_json::to_string(&report).is_ok_and(|line| print_line(&line)) {
        for line in std::io::stdin().lock().lines() {
            let intact = std::hint::black_box(&memory) == &canary;
            if line.is_err() || !print_line(if intact { "intact" } else { "changed" }) {
                break;
            }
        }
    }
    let _gone = raw(libc::SYS_mq_unlink, &[Text::new(queue).at()]);
    ExitCode::SUCCESS
}

fn print_line(line: &str) -> bool {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}

/// Creates a shared segment with the canary. It is marked for removal immediately and exists as long as this process.
fn shared(canary: &[u8]) -> Option<usize> {
    let segment = raw(libc::SYS_shmget, &[0, 4096, 0o666 | libc::IPC_CREAT as usize]).ok()?;
    let address = raw(libc::SYS_shmat, &[segment, 0, 0]).ok()?;
    poke(address, canary).ok()?;
    raw(libc::SYS_shmctl, &[segment, libc::IPC_RMID as usize, 0]).ok()?;
    Some(segment)
}

/// Creates a queue with the canary as its only message.
fn post(name: &str, canary: &[u8]) -> bool {
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
    let queue = raw(libc::SYS_mq_open, &[Text::new(name).at(), flags as usize, 0o666, 0]);
    let sent =
        queue.and_then(|queue| raw(libc::SYS_mq_timedsend, &[queue, canary.as_ptr() as usize, canary.len(), 0, 0]));
    sent.is_ok()
}
