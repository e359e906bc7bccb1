//! The kernel's surface: what a program has no business to call.

use crate::row::{Proof, Row};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::program("unshare-user", "sandbox 34", "enter a user namespace of our own", "seccomp", &["unshare", "user"]),
    Row::program("unshare-mount", "sandbox 34", "enter a mount namespace of our own", "seccomp", &["unshare", "mount"]),
    Row::program("unshare-net", "sandbox 34", "enter a network namespace of our own", "seccomp", &["unshare", "net"]),
    Row::program("clone-user", "sandbox 34", "start a child in a user namespace", "seccomp", &["clone", "user"]),
    Row::program("clone-pid", "sandbox 34", "start a child in a process namespace", "seccomp", &["clone", "pid"]),
    Row::program("clone3-user", "sandbox 34", "the same by the call whose flags no filter sees", "seccomp", &["clone3", "user"]),
    Row::program("setns-init", "sandbox 34", "join the namespaces of the first process", "seccomp", &["setns", "1"]),
    Row::program("setns-victim", "sandbox 34", "join the namespaces of the victim", "seccomp", &["setns", "{victim}"]),
    Row::program("user-namespaces", "sandbox 66", "make room for user namespaces again", "sysctl", &["user-namespaces"]),
    Row::program("mount", "sandbox 35", "mount, remount, unmount", "seccomp", &["call", "mount", "remount", "umount2"]),
    Row::program("mount-new", "sandbox 35", "the same by the newer calls", "seccomp", &["call", "open_tree", "fsopen", "fspick", "fsconfig", "fsmount", "move_mount", "mount_setattr"]),
    Row::program("chroot", "sandbox 35", "change the root", "seccomp", &["call", "chroot", "pivot_root"]),
    Row::program("io-uring", "sandbox 37", "make calls by a ring that no filter sees", "seccomp", &["io-uring"]),
    Row::program("bpf", "sandbox 38", "load a program into the kernel", "seccomp", &["call", "bpf"]),
    Row::program("perf", "sandbox 38", "measure the kernel", "seccomp", &["call", "perf_event_open"]),
    Row::program("userfaultfd", "sandbox 38", "hold the kernel while it copies", "seccomp", &["call", "userfaultfd"]),
    Row::program("keyring", "sandbox 38", "use the session's keys", "seccomp", &["keyring"]),
    Row::program("fanotify", "sandbox 38", "watch every file", "seccomp", &["call", "fanotify_init"]),
    Row::program("personality", "sandbox 38", "turn address randomisation off", "seccomp", &["personality"]),
    Row::program("memfd-secret", "sandbox 38", "hide memory from everybody", "seccomp", &["call", "memfd_secret"]),
    Row::program("syslog", "sandbox 38", "read the kernel's log by its call", "seccomp", &["call", "syslog"]),
    Row::program("modules", "sandbox 38", "load or remove a module", "seccomp", &["call", "init_module", "finit_module", "delete_module"]),
    Row::program("kexec", "sandbox 38", "start another kernel", "seccomp", &["call", "kexec_load", "kexec_file_load", "reboot"]),
    Row::program("swap", "sandbox 38", "change swap, accounting or quotas", "seccomp", &["call", "swapon", "swapoff", "acct", "quotactl"]),
    Row::program("clock", "sandbox 38", "set the clock or the machine's name", "seccomp", &["call", "settimeofday", "clock_settime", "clock_adjtime", "sethostname"]),
    #[cfg(target_arch = "x86_64")]
    Row::program("ports", "sandbox 38", "use the machine's ports or old segments", "seccomp", &["call", "iopl", "ioperm", "modify_ldt"]),
    Row::program("numa", "sandbox 38", "move pages of others about", "seccomp", &["call", "move_pages", "migrate_pages", "process_madvise"]),
    Row::program("i386", "sandbox 39", "make the calls of another architecture", "seccomp", &["foreign"]),
    Row::program("x32", "sandbox 39", "make a call by its x32 number", "seccomp", &["x32"]),
    Row::program("memfd-exec", "sandbox 40", "run a program from memory and read a secret from there", "view", &["memfd-exec", "read", "{secret}"]),
    Row::program("memfd-unshare", "sandbox 40", "run a program from memory and leave from there", "seccomp", &["memfd-exec", "unshare", "user"]),
    Row::shell("nested-bwrap", "sandbox 66", "build a sandbox inside that shows more", "seccomp", "unshare -Ur sh -c 'echo inside'; command -v bwrap >/dev/null && bwrap --ro-bind / / echo inside").proof(Proof::Never("inside")),
];
