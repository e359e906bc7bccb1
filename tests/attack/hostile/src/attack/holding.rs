//! Attacks on limits that count only named files, resident pages or descriptors: they hold memory or disk space in
//! other ways.
//!
//! Each step creates a file without a name, fills it, and keeps it open, mapped, or in transit through a socket. The
//! steps are small, so that the host has time to measure.

use super::raw::{self, Errno, Text, raw};
use super::{AttackResult, number, word};
use std::path::{Path, PathBuf};
use std::time::Duration;

const STEP_BYTES: usize = 8 << 20;
const STEP: Duration = Duration::from_millis(15);
/// Time for which everything is held at the end.
const HOLD: Duration = Duration::from_secs(2);
/// The flag `IPC_CREAT` with a private mode.
const MAKE: usize = 0o1600;
const MESSAGE_BYTES: usize = 8 << 10;
/// Size of the messages of a POSIX queue with the default attributes.
const POSIX_QUEUE_BYTES: usize = 10 * MESSAGE_BYTES;
const SEMAPHORES: usize = 32_000;
const PAGE: usize = 4096;

/// Holds this many MiB. Arguments: the kind of object, how it is kept, the number of MiB, and the folder for files.
pub(crate) fn hold(arguments: &[String]) -> AttackResult {
    let steps = (number(arguments, 2).clamp(8, 1024) as usize) << 20 >> 23;
    let (resource, keeping) = (Resource::from_arguments(arguments), Keeping::from_arguments(arguments));
    for step in 0..steps {
        let done = resource.make().and_then(|made| keeping.keep(made));
        if let Err(error) = done {
            return AttackResult::stopped(format!("{error} after {} MiB", step * 8));
        }
        std::thread::sleep(STEP);
    }
    std::thread::sleep(HOLD);
    AttackResult::worked(format!("held {} MiB", steps * 8))
}

/// Holds this many MiB in a process that is not dumpable.
pub(crate) fn hold_undumpable(arguments: &[String]) -> AttackResult {
    match raw(libc::SYS_prctl, &[libc::PR_SET_DUMPABLE as usize, 0]) {
        Ok(_) => hold(arguments),
        Err(error) => AttackResult::stopped(error),
    }
}

/// Holds this many MiB in a process whose first thread has ended, so that `/proc` shows no details of the process.
pub(crate) fn hold_headless(arguments: &[String]) -> AttackResult {
    let words = arguments.to_vec();
    let started = std::thread::Builder::new().spawn(move || {
        // Waits until the first thread has ended.
        std::thread::sleep(STEP);
        let mut tried = hold(&words);
        tried.attack = "hold-headless";
        super::report(&tried);
        std::process::exit(0);
    });
    if started.is_ok() {
        // Ends only this thread.
        let _gone = raw(libc::SYS_exit, &[0]);
    }
    AttackResult::stopped("no second thread")
}

/// A new object: a descriptor, or an object that exists without one.
enum HeldObject {
    File(usize),
    Kept,
}

/// A resource that holds memory or disk.
enum Resource {
    Memfd,
    /// A removed file in this folder.
    Unlinked(PathBuf),
    /// A file in this folder that never had a name.
    Nameless(PathBuf),
    Segment,
    Queues,
    PosixQueue,
    Semaphores,
    /// Shared memory with one mapped page.
    Unmapped,
}

impl Resource {
    fn from_arguments(arguments: &[String]) -> Self {
        let folder = || PathBuf::from(word(arguments, 3));
        match word(arguments, 0) {
            "memfd" => Self::Memfd,
            "unlinked" => Self::Unlinked(folder()),
            "nameless" => Self::Nameless(folder()),
            "segment" => Self::Segment,
            "queues" => Self::Queues,
            "posix" => Self::PosixQueue,
            "semaphores" => Self::Semaphores,
            _ => Self::Unmapped,
        }
    }

    fn make(&self) -> Result<HeldObject, Errno> {
        match self {
            Self::Memfd => raw(libc::SYS_memfd_create, &[Text::new("held").at(), 0]).and_then(fill),
            Self::Unlinked(folder) => unlinked(&folder.join("unlinked")).and_then(fill),
            Self::Nameless(folder) => raw::open(folder, libc::O_TMPFILE | libc::O_RDWR, 0o600).and_then(fill),
            Self::Segment => segment(),
            Self::Queues => (0..STEP_BYTES / (2 * MESSAGE_BYTES)).try_for_each(|_| queue()).map(|()| HeldObject::Kept),
            Self::PosixQueue => {
                (0..STEP_BYTES / POSIX_QUEUE_BYTES).try_for_each(posix_queue).map(|()| HeldObject::Kept)
            }
            Self::Semaphores => (0..4).try_for_each(|_| semaphores()).map(|()| HeldObject::Kept),
            Self::Unmapped => unmapped(),
        }
    }
}

fn unlinked(path: &Path) -> Result<usize, Errno> {
    let file = raw::open(path, libc::O_CREAT | libc::O_EXCL | libc::O_RDWR, 0o600)?;
    raw(libc::SYS_unlinkat, &[raw::AT_CWD, Text::of_path(path).at(), 0])?;
    Ok(file)
}

/// Creates content that no file system can compress or store as a hole, and writes it to a file.
fn fill(file: usize) -> Result<HeldObject, Errno> {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let block: Vec<u8> = std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as u8
    })
    .take(STEP_BYTES)
    .collect();
    let mut done = 0;
    while done < block.len() {
        done += raw(libc::SYS_write, &[file, block[done..].as_ptr() as usize, block.len() - done])?;
    }
    Ok(HeldObject::File(file))
}

/// Creates a System V segment that no process has attached.
fn segment() -> Result<HeldObject, Errno> {
    let segment = raw(libc::SYS_shmget, &[0, STEP_BYTES, MAKE])?;
    let at = raw(libc::SYS_shmat, &[segment, 0, 0])?;
    touch(at)?;
    raw(libc::SYS_shmdt, &[at])?;
    Ok(HeldObject::Kept)
}

/// Creates a full System V message queue.
fn queue() -> Result<(), Errno> {
    let queue = raw(libc::SYS_msgget, &[0, MAKE])?;
    let mut message = vec![1_u8; 8 + MESSAGE_BYTES];
    message[..8].copy_from_slice(&1_u64.to_ne_bytes());
    for _ in 0..2 {
        raw(libc::SYS_msgsnd, &[queue, message.as_ptr() as usize, MESSAGE_BYTES, libc::IPC_NOWAIT as usize])?;
    }
    Ok(())
}

/// Creates a full POSIX message queue and keeps its descriptor open.
fn posix_queue(number: usize) -> Result<(), Errno> {
    let name =
        Text::new(&format!("held-{number}-{:?}", std::time::Instant::now()).replace([' ', '{', '}', ':', ','], ""));
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_NONBLOCK;
    let queue = raw(libc::SYS_mq_open, &[name.at(), flags as usize, 0o600, 0])?;
    let message = [1_u8; MESSAGE_BYTES];
    for _ in 0..POSIX_QUEUE_BYTES / MESSAGE_BYTES {
        raw(libc::SYS_mq_timedsend, &[queue, message.as_ptr() as usize, MESSAGE_BYTES, 0, 0])?;
    }
    Ok(())
}

fn semaphores() -> Result<(), Errno> {
    raw(libc::SYS_semget, &[0, SEMAPHORES, MAKE]).map(drop)
}

/// Creates shared memory without a file and with one mapped page. The written content stays in memory.
fn unmapped() -> Result<HeldObject, Errno> {
    let (both, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    let at = raw(libc::SYS_mmap, &[0, STEP_BYTES, both as usize, flags as usize, usize::MAX, 0])?;
    touch(at)?;
    raw(libc::SYS_munmap, &[at + PAGE, STEP_BYTES - PAGE])?;
    Ok(HeldObject::Kept)
}

/// Makes the kernel write to each page.
fn touch(at: usize) -> Result<(), Errno> {
    const POPULATE_WRITE: usize = 23;
    raw(libc::SYS_madvise, &[at, STEP_BYTES, POPULATE_WRITE]).map(drop)
}

/// How a file is kept.
#[derive(Clone, Copy)]
enum Keeping {
    Open,
    Mapped,
    Sent,
}

impl Keeping {
    fn from_arguments(arguments: &[String]) -> Self {
        match word(arguments, 1) {
            "mapped" => Self::Mapped,
            "sent" => Self::Sent,
            _ => Self::Open,
        }
    }

    fn keep(self, made: HeldObject) -> Result<(), Errno> {
        let HeldObject::File(file) = made else { return Ok(()) };
        match self {
            Self::Mapped => {
                let flags = libc::MAP_SHARED as usize;
                raw(libc::SYS_mmap, &[0, PAGE, libc::PROT_READ as usize, flags, file, 0])?;
                raw::close(file);
                Ok(())
            }
            Self::Sent => send(file),
            Self::Open => Ok(()),
        }
    }
}

/// Sends a descriptor through a socket pair of this process and closes it.
fn send(file: usize) -> Result<(), Errno> {
    let mut pair = [0_i32; 2];
    raw(libc::SYS_socketpair, &[libc::AF_UNIX as usize, libc::SOCK_STREAM as usize, 0, pair.as_mut_ptr() as usize])?;
    let byte = [0_u8];
    let vector = [byte.as_ptr() as usize, 1];
    // The control message: a header of two words and a length, then the descriptor.
    let mut control = [0_u8; 24];
    control[..8].copy_from_slice(&20_usize.to_ne_bytes());
    control[8..12].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
    control[12..16].copy_from_slice(&libc::SCM_RIGHTS.to_ne_bytes());
    control[16..20].copy_from_slice(&(file as i32).to_ne_bytes());
    let message = [0, 0, vector.as_ptr() as usize, 1, control.as_ptr() as usize, control.len(), 0];
    raw(libc::SYS_sendmsg, &[pair[0] as usize, message.as_ptr() as usize, 0])?;
    raw::close(file);
    Ok(())
}

/// Creates inotify instances up to the limit for the user on this machine.
pub(crate) fn inotify(_: &[String]) -> AttackResult {
    let taken = (0..1000).take_while(|_| raw(libc::SYS_inotify_init1, &[0]).is_ok()).count();
    std::thread::sleep(STEP);
    if taken >= 100 {
        AttackResult::worked(format!("took {taken}"))
    } else {
        AttackResult::stopped(format!("{taken} at most"))
    }
}

/// Creates a thread with its own descriptor table (`clone`), or gives one to the current thread (`range`).
pub(crate) fn own_table(arguments: &[String]) -> AttackResult {
    match word(arguments, 0) {
        // The new thread could not run. The attack only tests whether the filter refuses the flags.
        "clone" => AttackResult::reached(raw(libc::SYS_clone, &[libc::CLONE_THREAD as usize, 0, 0, 0, 0])),
        _ => AttackResult::from_result(raw(libc::SYS_close_range, &[60_000, 60_000, 2])),
    }
}

/// Creates a program with set-id bits by `openat2`, whose mode a filter cannot read. Arguments: path, mode.
pub(crate) fn openat2_mode(arguments: &[String]) -> AttackResult {
    let mode = u64::from_str_radix(word(arguments, 1), 8).unwrap_or(0o6755);
    let _mask = raw(libc::SYS_umask, &[0]);
    let how = [(libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY) as u64, mode, 0];
    let path = Text::new(word(arguments, 0));
    match raw(libc::SYS_openat2, &[raw::AT_CWD, path.at(), how.as_ptr() as usize, 24]) {
        Ok(_) => AttackResult::worked("created"),
        Err(error) => AttackResult::stopped(error),
    }
}
