//! Tables of the refused calls: their numbers and the positions of their arguments.
#![forbid(unsafe_code)]

/// Calls that are refused with any arguments.
pub(super) const REFUSED: &[i64] = &[
    // Memory and descriptors of other processes.
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Large parts of the kernel with frequent vulnerabilities.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Mounts (old and new interface), roots and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    // Access to files without a path.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Control of the machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    // Clocks.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    // Memory pages of other processes.
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_sysfs,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
];

/// Calls of debuggers, tracers and the leak sanitizer, which read and write the memory of other processes. In tier
/// `full`, a command can reach only its own processes: those of the machine do not exist in its PID namespace, and the
/// first process is not dumpable. In the other tiers, these calls are refused.
pub(super) const DEBUGGING: [i64; 3] = [libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];

/// The personality of a process whose addresses are not randomized. Debuggers and the thread sanitizer set it.
pub(super) const NO_RANDOM_ADDRESSES: u64 = libc::ADDR_NO_RANDOMIZE as u64;

/// Calls that are reported as unknown, so that callers fall back to another call. `clone3` has its flags in memory,
/// which filters cannot read. `mincore` and `cachestat` reveal the page cache, which all stages of a machine share. The
/// same is true of flags that `io_submit` reads from memory.
pub(super) const UNKNOWN: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The mode is in memory, which filters cannot read, so the call could create files with set-user-id bits.
    libc::SYS_openat2,
    MEMFD_SECRET,
    libc::SYS_io_setup,
    libc::SYS_io_submit,
    libc::SYS_mincore,
    CACHESTAT,
];

/// Numbers of calls that are newer than the tables of the `libc` crate. They are the same on all architectures.
const OPEN_TREE_ATTR: i64 = 467;
const MEMFD_SECRET: i64 = 447;
const FCHMODAT2: i64 = 452;
const CACHESTAT: i64 = 451;

/// The bits of `clone` that create a namespace.
pub(super) const NAMESPACE_BITS: [u64; 7] = [
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWCGROUP as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWNET as u64,
];

/// Advice that drops pages from memory: call, position of the argument, value.
pub(super) const CACHE_ADVICE: [(i64, u8, u64); 3] = [
    (libc::SYS_fadvise64, 3, libc::POSIX_FADV_DONTNEED as u64),
    (libc::SYS_madvise, 2, libc::MADV_COLD as u64),
    (libc::SYS_madvise, 2, libc::MADV_PAGEOUT as u64),
];

/// Bits of the sixth argument of `preadv2` and `pwritev2` that reveal or drop cached pages: `RWF_NOWAIT` and
/// `RWF_DONTCACHE`.
pub(super) const CACHE_FLAGS: [u64; 2] = [0x08, 0x80];

/// Flag of `close_range` that gives the caller a private descriptor table.
pub(super) const CLOSE_RANGE_UNSHARE: u64 = 1 << 1;

/// Calls that create device nodes, with the position of the mode.
pub(super) const MAKE_NODE: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];

/// Calls that set a mode, with the position of the mode.
pub(super) const SET_MODE: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknodat, 2),
];

/// Calls that open files, with the positions of the flags and of the mode.
pub(super) const OPEN: &[(i64, u8, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
    (libc::SYS_openat, 2, 3),
];

/// Calls that change a process, with the position of the process id. The id 0 is the caller.
pub(super) const OF_ANOTHER: [(i64, u8); 7] = [
    (libc::SYS_prlimit64, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setaffinity, 0),
];

/// Calls that change all processes of a user if their first argument has this value.
pub(super) const OF_EVERYBODY: [(i64, u64); 2] = [
    (libc::SYS_setpriority, libc::PRIO_USER as u64),
    // `IOPRIO_WHO_USER`, which the `libc` crate does not define.
    (libc::SYS_ioprio_set, 3),
];

/// Calls on memory, semaphores and queues that all processes of the machine share.
pub(super) const SHARED: [i64; 12] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
];
