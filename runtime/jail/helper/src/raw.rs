//! System calls that no safe crate offers. The only module of the helper with `unsafe` code.
//!
//! The helper always has one thread; the safety reasons below rely on that. This module makes no decisions.
#![allow(unsafe_code, reason = "fork, exec and a few calls without a safe wrapper; each block has its reason")]

use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::UnshareFlags;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::{ptr, time::Duration};

/// Copies this process. Returns `None` in the copy and the copy's id in the original.
pub(crate) fn fork() -> Result<Option<Pid>, Errno> {
    // SAFETY: the process has a single thread, so no lock can be held by a thread that is missing in the copy.
    let pid = unsafe { libc::fork() };
    if pid < 0 { Err(last_error()) } else { Ok(Pid::from_raw(pid)) }
}

/// Size of the stack of a process that is about to execute a program, bytes. Such a process uses a small part of it.
const START_STACK_BYTES: usize = 256 * 1024;

/// Starts a process that runs `begin` and executes a program, or exits with the exit code that `begin` returns. The new
/// process has a separate stack and otherwise shares the memory of this process, which waits until then. So no page is
/// copied, and writes of `begin` stay visible afterwards.
pub(crate) fn start(begin: &mut dyn FnMut() -> i32) -> Result<Pid, Errno> {
    extern "C" fn enter(begin: *mut libc::c_void) -> libc::c_int {
        // SAFETY: `start` passes this pointer, and its process waits until this one has ended or executed a program.
        let begin = unsafe { &mut *begin.cast::<&mut dyn FnMut() -> i32>() };
        exit_now(begin())
    }
    // The elements have 16 bytes, so that the end of the vector has the alignment that the stack of a function needs.
    let mut stack: Vec<u128> = Vec::with_capacity(START_STACK_BYTES / size_of::<u128>());
    let mut begin = begin;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: this process has a single thread, which the kernel stops until the new process no longer uses its memory.
    // So no memory is used by two threads at once, and the stack and `begin` live long enough. The stack grows down
    // from the end of its memory, which is larger than what `begin` needs. `enter` does not return and does not unwind:
    // a panic in an `extern "C"` function aborts the process.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        libc::clone(enter, top.cast(), flags, (&raw mut begin).cast())
    };
    checked(pid.into()).and_then(|_| Pid::from_raw(pid).ok_or(Errno::INVAL))
}

/// Copies this process into fresh namespaces. Returns `None` in the copy, which is the first process of a PID
/// namespace.
pub(crate) fn fork_into(namespaces: UnshareFlags) -> Result<Option<Pid>, Errno> {
    // `clone3` is used, because the filters refuse namespace flags in `clone`. The fields that stay zero are for
    // descriptors, thread ids, a stack and thread-local storage.
    let wanted = [u64::from(namespaces.bits()), 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    // SAFETY: as with `fork`, the process has a single thread. Without a separate stack, the copy continues on a copy
    // of this stack. The array has the layout of the first version of `clone_args`, outlives the call, and is passed
    // with its own size.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const wanted, size_of_val(&wanted)) };
    checked(pid).map(|pid| Pid::from_raw(pid as i32))
}

/// Lets the kernel reap children of this process.
pub(crate) fn ignore_children() {
    // SAFETY: the call takes only numbers, and no function of this program becomes a handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Makes this process reap its children, which is the default.
pub(crate) fn heed_children() {
    // SAFETY: the call takes only numbers, and no function of this program becomes a handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Ends this process at once, without running destructors or flushing buffers: they belong to the process that forked
/// this one.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` does not access the memory of this program and does not return.
    unsafe { libc::_exit(code) }
}

/// Moves this process into fresh namespaces.
pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: the call is unsound only with the flag `FILES` while other threads exist. There are none.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Marks every descriptor from 3 on close-on-exec, including those that Rust does not own.
pub(crate) fn close_rest_on_exec() -> Result<(), Errno> {
    close_range(libc::CLOSE_RANGE_CLOEXEC)
}

/// Closes every descriptor from 3 on, including those that an `OwnedFd` owns. Must be called only before any `OwnedFd`
/// exists, or before [`exit_now`].
pub(crate) fn close_rest() -> Result<(), Errno> {
    close_range(0)
}

fn close_range(flags: libc::c_uint) -> Result<(), Errno> {
    // SAFETY: the call takes three numbers. With flags 0 it also closes owned descriptors; `close_rest` documents when
    // that is allowed.
    let answer = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, flags) };
    checked(answer).map(drop)
}

/// Sets mount attributes (`MOUNT_ATTR_*`) on a mount. With `recursive`, also on all mounts below it.
pub(crate) fn set_mount_attributes(mount: impl AsFd, attributes: u64, recursive: bool) -> Result<(), Errno> {
    let wanted = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a literal, and the structure outlives the call and is passed with its own size.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    checked(answer).map(drop)
}

/// Strings in the form in which `execve` takes arguments and an environment.
pub(crate) struct ExecStrings<'t> {
    /// The addresses of strings that live for `'t`, followed by a null pointer.
    addresses: Vec<*const libc::c_char>,
    _texts: std::marker::PhantomData<&'t [CString]>,
}

impl<'t> ExecStrings<'t> {
    pub(crate) fn new(texts: &'t [CString]) -> Self {
        let addresses = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Self { addresses, _texts: std::marker::PhantomData }
    }
}

/// Executes another program. Returns only if that fails, with the error.
pub(crate) fn execute(path: &CStr, arguments: &ExecStrings<'_>, environment: &ExecStrings<'_>) -> Errno {
    // SAFETY: both arrays end with a null pointer. The arrays and the strings that they point to outlive the call.
    unsafe { libc::execve(path.as_ptr(), arguments.addresses.as_ptr(), environment.addresses.as_ptr()) };
    last_error()
}

/// Resets every signal to its default action, as the copies of this process and the programs that they execute expect.
pub(crate) fn reset_signals() {
    // SAFETY: the call takes only numbers, and no function of this program becomes a handler.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Unblocks all signals, as programs expect.
pub(crate) fn unblock_signals() {
    // SAFETY: `sigemptyset` initializes the set before it is used, and the other arguments are a number and a null
    // pointer.
    unsafe {
        let mut none = MaybeUninit::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

/// Blocks all signals that can be blocked. A write beyond a limit on file sizes then fails and does not end the process.
pub(crate) fn block_signals() {
    // SAFETY: `sigfillset` initializes the set before it is used, and the other arguments are a number and a null
    // pointer.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut());
    }
}

/// Returns a descriptor that is readable when a child has changed its state. From then on, `SIGCHLD` is delivered only
/// through this descriptor.
pub(crate) fn child_signals() -> Result<OwnedFd, Errno> {
    // SAFETY: `sigemptyset` initializes the set before any use. The descriptor is new, and no other owner exists.
    unsafe {
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) < 0 {
            return Err(last_error());
        }
        let descriptor = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if descriptor < 0 { Err(last_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

/// A child that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReapedChild {
    /// Process id of the child.
    pub(crate) pid: Pid,
    /// The exit code; `None` if a signal ended the child.
    pub(crate) code: Option<i32>,
    /// The signal that ended the child; `None` if the child exited.
    pub(crate) signal: Option<i32>,
    /// Processor time of the child and of its reaped children.
    pub(crate) cpu: Duration,
    /// Peak resident memory of the child or of one of its reaped children, bytes.
    pub(crate) memory_bytes: u64,
}

/// Whether [`reap`] waits for a child to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Waits until a child ends.
    Until,
    /// Returns at once.
    Never,
}

/// Reaps one ended child, own or inherited. Returns `None` if no child has ended yet, and `ECHILD` if there are no
/// children.
pub(crate) fn reap(wait: Wait) -> Result<Option<ReapedChild>, Errno> {
    let options = libc::__WALL | if wait == Wait::Never { libc::WNOHANG } else { 0 };
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let pid = loop {
        // SAFETY: both pointers are to local variables that outlive the call.
        let pid = unsafe { libc::wait4(-1, &raw mut status, options, usage.as_mut_ptr()) };
        match last_error() {
            Errno::INTR if pid < 0 => {}
            error if pid < 0 => return Err(error),
            _ => break pid,
        }
    };
    // SAFETY: all-zero bytes are a valid `rusage`, so it is initialised whether or not the system wrote to it.
    let usage = unsafe { usage.assume_init() };
    let time = |value: libc::timeval| Duration::new(value.tv_sec as u64, value.tv_usec as u32 * 1000);
    Ok(Pid::from_raw(pid).map(|pid| ReapedChild {
        pid,
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        memory_bytes: usage.ru_maxrss as u64 * 1024,
    }))
}

/// A system call of another process that waits for an answer of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingCall {
    /// Id for the answer.
    pub(crate) id: u64,
    /// The calling thread, as the PID namespace of this process names it.
    pub(crate) thread: i32,
    /// Number of the call.
    pub(crate) number: i64,
    /// Arguments of the call. The caller can change what pointers lead to at any time.
    pub(crate) arguments: [u64; 6],
}

/// Installs a filter program for this process and its children. Returns a descriptor at which the calls arrive for which
/// the program returns `SECCOMP_RET_USER_NOTIF`.
pub(crate) fn install_listener(program: &[seccompiler::sock_filter]) -> Result<OwnedFd, Errno> {
    let mut filter: Vec<libc::sock_filter> =
        program.iter().map(|step| libc::sock_filter { code: step.code, jt: step.jt, jf: step.jf, k: step.k }).collect();
    let len = libc::c_ushort::try_from(filter.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: the program and its steps outlive the call, which only reads them. The descriptor is new, and no other
    // owner exists.
    unsafe {
        let answer = libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program);
        checked(answer).map(|descriptor| OwnedFd::from_raw_fd(descriptor as i32))
    }
}

/// Returns the next call that waits at a listener. Fails with `NOENT` if its process has ended meanwhile.
pub(crate) fn waiting_call(listener: impl AsFd) -> Result<WaitingCall, Errno> {
    // SAFETY: all-zero bytes are a valid `seccomp_notif`, as the kernel demands. The structure outlives the call, and the
    // request has its size.
    let call = unsafe {
        let mut call = MaybeUninit::<libc::seccomp_notif>::zeroed();
        checked(libc::ioctl(listener.as_fd().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, call.as_mut_ptr()).into())?;
        call.assume_init()
    };
    let libc::seccomp_data { nr, args, .. } = call.data;
    Ok(WaitingCall { id: call.id, thread: call.pid as i32, number: nr.into(), arguments: args })
}

/// Lets the kernel execute a call that waits at a listener.
pub(crate) fn let_call_continue(listener: impl AsFd, id: u64) -> Result<(), Errno> {
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let mut answer = libc::seccomp_notif_resp { id, val: 0, error: 0, flags };
    let descriptor = listener.as_fd().as_raw_fd();
    // SAFETY: the structure outlives the call, and the request has its size.
    checked(unsafe { libc::ioctl(descriptor, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) }.into()).map(drop)
}

/// Copies memory of another process. Returns the number of bytes.
pub(crate) fn read_memory(thread: i32, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
    let own = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let other = libc::iovec { iov_base: address as usize as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the kernel writes at most `into.len()` bytes to `into`, and only reads the address, which it checks in the
    // other process.
    let answer = unsafe { libc::process_vm_readv(thread, &raw const own, 1, &raw const other, 1, 0) };
    checked(answer as libc::c_long).map(|bytes| bytes as usize)
}

/// Renames an entry. The flags of the call have a bit that the kernel ignores and that a filter program can see.
pub(crate) fn rename_marked(from: impl AsFd, old: &CStr, to: impl AsFd, new: &CStr, mark: u64) -> Result<(), Errno> {
    let (from, to) = (from.as_fd().as_raw_fd(), to.as_fd().as_raw_fd());
    // SAFETY: both paths are strings that outlive the call.
    checked(unsafe { libc::syscall(libc::SYS_renameat2, from, old.as_ptr(), to, new.as_ptr(), mark) }).map(drop)
}

/// Kills every process that this process may signal, except itself and PID 1. In a PID namespace, these are all its
/// processes. With Landlock's signal scope, these are all descendants. No fork can escape, because the kernel aborts a
/// fork with a pending kill.
pub(crate) fn kill_all_reachable() {
    // SAFETY: the call takes two numbers. It is used only if `KillScope` has proved that no process of the host can be
    // signaled.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

fn checked(answer: libc::c_long) -> Result<libc::c_long, Errno> {
    if answer < 0 { Err(last_error()) } else { Ok(answer) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// Calls that no command may make. Each call is harmless with the arguments that the self-test uses.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ForbiddenCall {
    /// `ptrace(PTRACE_SEIZE)` of process 1, which is the first process of a jail with a PID namespace.
    Trace,
    /// `io_uring_setup` without parameters.
    IoUring,
    /// `bpf` with the invalid command -1.
    Bpf,
    /// `add_key` without a type.
    Keys,
    /// `userfaultfd` for user mode only.
    UserFault,
    /// `perf_event_open` without attributes.
    Perf,
    /// `getpid` with its x32 number.
    X32,
    /// `getpid` through the entry for 32-bit programs.
    I386,
}

impl ForbiddenCall {
    /// All variants.
    pub(crate) const ALL: [Self; 8] =
        [Self::Trace, Self::IoUring, Self::Bpf, Self::Keys, Self::UserFault, Self::Perf, Self::X32, Self::I386];

    /// Returns the name of the call.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Trace => "ptrace",
            Self::IoUring => "io-uring",
            Self::Bpf => "bpf",
            Self::Keys => "keys",
            Self::UserFault => "user-fault",
            Self::Perf => "perf",
            Self::X32 => "x32",
            Self::I386 => "i386",
        }
    }
}

/// Makes a call in a forked process, so that its effects do not change this process. An error about arguments is
/// treated as success, because the filter let the call pass.
pub(crate) fn call_foreign(call: ForbiddenCall) -> Result<(), Errno> {
    let Some(child) = fork()? else {
        let refused = matches!(foreign(call), Err(Errno::PERM | Errno::NOSYS | Errno::ACCESS));
        exit_now(if refused { 1 } else { 0 })
    };
    match reap(Wait::Until)? {
        Some(reaped) if reaped.pid == child && reaped.code == Some(0) => Ok(()),
        _ => Err(Errno::PERM),
    }
}

fn foreign(call: ForbiddenCall) -> Result<(), Errno> {
    let number = match call {
        ForbiddenCall::Trace => libc::SYS_ptrace,
        ForbiddenCall::IoUring => libc::SYS_io_uring_setup,
        ForbiddenCall::Bpf => libc::SYS_bpf,
        ForbiddenCall::Keys => libc::SYS_add_key,
        ForbiddenCall::UserFault => libc::SYS_userfaultfd,
        ForbiddenCall::Perf => libc::SYS_perf_event_open,
        ForbiddenCall::X32 => 0x4000_0027,
        ForbiddenCall::I386 => return call_i386(),
    };
    let first = match call {
        ForbiddenCall::Bpf => -1,
        ForbiddenCall::UserFault => 1,
        ForbiddenCall::Trace => i64::from(libc::PTRACE_SEIZE),
        _ => 0,
    };
    let second = i64::from(matches!(call, ForbiddenCall::Trace));
    // SAFETY: with these numbers and without pointers, each of these calls returns an error or creates a descriptor, and
    // none writes to memory.
    checked(unsafe { libc::syscall(number, first, second, 0_usize, 0_usize, 0_usize) }).map(drop)
}

#[cfg(target_arch = "x86_64")]
fn call_i386() -> Result<(), Errno> {
    let answer: i64;
    // SAFETY: `getpid` takes no arguments and accesses no memory. The registers that the kernel entry may change are
    // declared.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("rax") 20_i64 => answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if answer > 0 { Ok(()) } else { Err(Errno::NOSYS) }
}

#[cfg(not(target_arch = "x86_64"))]
fn call_i386() -> Result<(), Errno> {
    Err(Errno::NOSYS)
}
