//! Attacks on other processes: inspection, memory writes, signals, limits and priorities.

use super::raw::{Errno, pipe, raw};
use super::{AttackResult, number, word};
use std::fs;

fn process(arguments: &[String]) -> usize {
    number(arguments, 0) as usize
}

/// Attaches to a process.
pub(crate) fn ptrace(arguments: &[String]) -> AttackResult {
    for request in [libc::PTRACE_ATTACH, libc::PTRACE_SEIZE] {
        if raw(libc::SYS_ptrace, &[request as usize, process(arguments)]).is_ok() {
            return AttackResult::worked("attached");
        }
    }
    AttackResult::from_result(raw(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, process(arguments)]))
}

/// Reads the memory of another process. Arguments: process, address, length.
pub(crate) fn vm_read(arguments: &[String]) -> AttackResult {
    let bytes = number(arguments, 2).clamp(1, 4096) as usize;
    let mut buffer = vec![0_u8; bytes];
    let (here, there) = ([buffer.as_mut_ptr() as usize, bytes], [number(arguments, 1) as usize, bytes]);
    let vectors = [process(arguments), here.as_ptr() as usize, 1, there.as_ptr() as usize, 1, 0];
    match raw(libc::SYS_process_vm_readv, &vectors) {
        Ok(_) => AttackResult::worked("read").with(buffer),
        Err(error) => AttackResult::stopped(error),
    }
}

/// Writes to the memory of another process. Arguments: process, address.
pub(crate) fn vm_write(arguments: &[String]) -> AttackResult {
    let bytes = *b"hostile";
    let (here, there) = ([bytes.as_ptr() as usize, bytes.len()], [number(arguments, 1) as usize, bytes.len()]);
    let vectors = [process(arguments), here.as_ptr() as usize, 1, there.as_ptr() as usize, 1, 0];
    AttackResult::from_result(raw(libc::SYS_process_vm_writev, &vectors))
}

/// Duplicates a descriptor of another process. Arguments: process, number of the descriptor there.
pub(crate) fn pidfd_getfd(arguments: &[String]) -> AttackResult {
    let taken = raw(libc::SYS_pidfd_open, &[process(arguments), 0])
        .and_then(|pidfd| raw(libc::SYS_pidfd_getfd, &[pidfd, number(arguments, 1) as usize, 0]));
    let read = taken.and_then(|taken| {
        raw(libc::SYS_lseek, &[taken, 0, 0]).ok();
        super::raw::read(taken, 256)
    });
    match read {
        Ok(bytes) => AttackResult::worked("taken").with(bytes),
        Err(error) => AttackResult::stopped(error),
    }
}

/// Compares kernel objects of two processes.
pub(crate) fn kcmp(arguments: &[String]) -> AttackResult {
    let own = std::process::id() as usize;
    AttackResult::from_result(raw(libc::SYS_kcmp, &[own, process(arguments), 1, 0, 0]))
}

/// Sends a signal. Arguments: process (negative for a group, -1 for all processes), signal.
pub(crate) fn kill(arguments: &[String]) -> AttackResult {
    AttackResult::from_result(raw(libc::SYS_kill, &[process(arguments), number(arguments, 1) as usize]))
}

pub(crate) fn tgkill(arguments: &[String]) -> AttackResult {
    AttackResult::from_result(raw(
        libc::SYS_tgkill,
        &[process(arguments), process(arguments), number(arguments, 1) as usize],
    ))
}

pub(crate) fn pidfd_signal(arguments: &[String]) -> AttackResult {
    let pidfd = raw(libc::SYS_pidfd_open, &[process(arguments), 0]);
    AttackResult::from_result(
        pidfd.and_then(|pidfd| raw(libc::SYS_pidfd_send_signal, &[pidfd, number(arguments, 1) as usize, 0, 0])),
    )
}

/// Sends a signal with a value.
pub(crate) fn sigqueue(arguments: &[String]) -> AttackResult {
    let mut said = [0_i32; 32];
    said[0] = number(arguments, 1) as i32;
    said[2] = -1;
    let vectors = [process(arguments), number(arguments, 1) as usize, said.as_ptr() as usize];
    AttackResult::from_result(raw(libc::SYS_rt_sigqueueinfo, &vectors))
}

/// Makes the kernel send a signal: the other process becomes the owner of a pipe that then becomes readable. Only the
/// victim knows whether the signal arrived.
pub(crate) fn owner_signal(arguments: &[String]) -> AttackResult {
    let send = || -> Result<usize, Errno> {
        let (reader, writer) = pipe()?;
        raw(libc::SYS_fcntl, &[reader, libc::F_SETOWN as usize, process(arguments)])?;
        raw(libc::SYS_fcntl, &[reader, 10, number(arguments, 1) as usize])?; // F_SETSIG
        raw(libc::SYS_fcntl, &[reader, libc::F_SETFL as usize, libc::O_ASYNC as usize])?;
        let byte = [0_u8];
        raw(libc::SYS_write, &[writer, byte.as_ptr() as usize, 1])
    };
    AttackResult::from_result(send())
}

/// Returns true for process 1. Without a sandbox it belongs to the machine, so attacks set only values that it already
/// has.
fn is_first(arguments: &[String]) -> bool {
    process(arguments) == 1
}

/// Lowers another process's priority.
pub(crate) fn renice(arguments: &[String]) -> AttackResult {
    // The call returns 20 minus the value.
    let now = 20 - raw(libc::SYS_getpriority, &[0, process(arguments)]).unwrap_or(20) as isize;
    let wanted = if is_first(arguments) { now } else { 19 };
    AttackResult::from_result(raw(libc::SYS_setpriority, &[0, process(arguments), wanted as usize]))
}

/// Gives another process idle priority.
pub(crate) fn schedule(arguments: &[String]) -> AttackResult {
    let now = raw(libc::SYS_sched_getscheduler, &[process(arguments)]).unwrap_or(0);
    let wanted = if is_first(arguments) { now } else { libc::SCHED_IDLE as usize };
    let priority = [0_i32];
    AttackResult::from_result(raw(
        libc::SYS_sched_setscheduler,
        &[process(arguments), wanted, priority.as_ptr() as usize],
    ))
}

/// Lowers another process's limit on open files.
pub(crate) fn prlimit(arguments: &[String]) -> AttackResult {
    let (resource, mut limit) = (libc::RLIMIT_NOFILE as usize, [4_u64, 4]);
    if is_first(arguments) {
        let now = raw(libc::SYS_prlimit64, &[process(arguments), resource, 0, limit.as_mut_ptr() as usize]);
        if let Err(error) = now {
            return AttackResult::stopped(error);
        }
    }
    AttackResult::from_result(raw(libc::SYS_prlimit64, &[process(arguments), resource, limit.as_ptr() as usize, 0]))
}

/// Pins another process to one processor.
pub(crate) fn affinity(arguments: &[String]) -> AttackResult {
    let mut mask = [1_u64; 16];
    if is_first(arguments) {
        let now = raw(libc::SYS_sched_getaffinity, &[process(arguments), 128, mask.as_mut_ptr() as usize]);
        if let Err(error) = now {
            return AttackResult::stopped(error);
        }
    }
    AttackResult::from_result(raw(libc::SYS_sched_setaffinity, &[process(arguments), 128, mask.as_ptr() as usize]))
}

/// Searches all visible processes for one whose command line contains a text.
pub(crate) fn processes(arguments: &[String]) -> AttackResult {
    let wanted = word(arguments, 0);
    let Ok(entries) = fs::read_dir("/proc") else { return AttackResult::stopped("no /proc") };
    let numbers: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.chars().all(|c| c.is_ascii_digit()))
        .collect();
    let words = |number: &String| fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    let found: Vec<String> = numbers
        .iter()
        .map(|number| String::from_utf8_lossy(&words(number)).replace('\0', " "))
        .filter(|line| line.contains(wanted) && !line.contains("processes"))
        .collect();
    if found.is_empty() {
        AttackResult::stopped(format!("not among {} processes", numbers.len()))
    } else {
        AttackResult::worked("seen").with(found.join("\n"))
    }
}

/// Raises this process's own priority.
pub(crate) fn priority(_: &[String]) -> AttackResult {
    AttackResult::from_result(raw(libc::SYS_setpriority, &[0, 0, (-10_isize) as usize]))
}

/// Requests real-time priority.
pub(crate) fn realtime(_: &[String]) -> AttackResult {
    let priority = [1_i32];
    AttackResult::from_result(raw(
        libc::SYS_sched_setscheduler,
        &[0, libc::SCHED_FIFO as usize, priority.as_ptr() as usize],
    ))
}
