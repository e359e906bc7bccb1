//! Confinement of a worker, which it sets up before it reads its input: resource limits and a list of allowed system
//! calls.
//!
//! At that time the child still runs only trusted code, so confining itself is as strong as being confined by the
//! parent. If a part of the confinement fails, that is an error. Every call that is not listed is refused: the child
//! cannot open a file or a socket, start a program, or signal another process. Calls on descriptors are allowed only
//! for standard input and output, so other inherited descriptors are useless.

use super::WorkerBounds;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, chdir, getpid, getppid, set_parent_process_death_signal, setrlimit,
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Why a worker could not be confined.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The argument is malformed.
    #[error("`{0}` is not a list of bounds")]
    Argument(String),
    /// The parent has ended.
    #[error("the parent process has ended")]
    Orphaned,
    /// The operating system refused.
    #[error("failed to {step}: {reason}")]
    Refused {
        /// The failed step.
        step: &'static str,
        /// The error of the system.
        reason: String,
    },
}

/// Returns the bounds and the parent's process id as an argument.
pub(super) fn argument(bounds: &WorkerBounds) -> String {
    format!("{},{},{},{}", bounds.memory_bytes, bounds.cpu_seconds, bounds.answer_bytes, getpid().as_raw_pid())
}

/// Confines this process irrevocably, with the bounds in `argument`. Must be called while the process has only one
/// thread.
pub fn confine(argument: &str) -> Result<(), ConfineError> {
    let wrong = || ConfineError::Argument(argument.to_owned());
    let numbers: Vec<u64> = argument.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
    let [memory_bytes, cpu_seconds, answer_bytes, parent] = numbers[..] else { return Err(wrong()) };
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(refused("set the parent death signal"))?;
    // If the parent ended before this call, this process has a new parent.
    if getppid().map(Pid::as_raw_pid) != i32::try_from(parent).ok() {
        return Err(ConfineError::Orphaned);
    }
    chdir("/").map_err(refused("change to `/`"))?;
    // Built before the memory limit is set.
    let filters = filters().map_err(refused("build the filter of system calls"))?;
    for (resource, soft, hard) in [
        (Resource::Core, 0, 0),
        (Resource::Nofile, 3, 3),
        (Resource::Fsize, answer_bytes, answer_bytes),
        (Resource::As, memory_bytes, memory_bytes),
        // The signal of the soft limit shows the reason. The hard limit ends a process that ignores that signal.
        (Resource::Cpu, cpu_seconds, cpu_seconds.saturating_add(1)),
    ] {
        let limit = Rlimit { current: Some(soft), maximum: Some(hard) };
        setrlimit(resource, limit).map_err(refused("limit resources"))?;
    }
    filters.iter().try_for_each(|program| seccompiler::apply_filter(program)).map_err(refused("filter system calls"))
}

fn refused<E: std::fmt::Display>(step: &'static str) -> impl Fn(E) -> ConfineError {
    move |error| ConfineError::Refused { step, reason: error.to_string() }
}

/// System calls for computing with threads, allowed with any arguments.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_close,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_membarrier,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // The first filter refuses this call with `ENOSYS`, so that the C library uses `clone`.
    libc::SYS_clone3,
];

fn filters() -> Result<[BpfProgram; 2], BackendError> {
    let arch = if cfg!(target_arch = "aarch64") { TargetArch::aarch64 } else { TargetArch::x86_64 };
    let unknown = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let first = SeccompFilter::new(unknown, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32), arch)?;
    let rules = rules()?;
    let second = SeccompFilter::new(rules, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow, arch)?;
    Ok([first.try_into()?, second.try_into()?])
}

fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(|number| (*number, Vec::new())).collect();
    let when = |condition: SeccompCondition| SeccompRule::new(vec![condition]);
    rules.insert(libc::SYS_read, vec![when(equal(0, 0)?)?]);
    rules.insert(libc::SYS_write, vec![when(equal(0, 1)?)?, when(equal(0, 2)?)?]);
    let anonymous = libc::MAP_ANONYMOUS as u64;
    rules.insert(libc::SYS_mmap, vec![when(masked(3, anonymous)?)?]);
    rules.insert(libc::SYS_clone, vec![when(masked(0, libc::CLONE_THREAD as u64)?)?]);
    rules.insert(libc::SYS_prctl, vec![when(equal(0, libc::PR_SET_NAME as u64)?)?]);
    // Reading a limit is allowed, setting one is not.
    rules.insert(
        libc::SYS_prlimit64,
        vec![when(SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?)?],
    );
    // A process may signal only itself, because this is how a failed allocation aborts it.
    rules.insert(libc::SYS_tgkill, vec![when(equal(0, getpid().as_raw_pid() as u64)?)?]);
    Ok(rules)
}

fn equal(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn masked(argument: u8, bit: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bit), bit)
}
