//! Attacks on the kernel: namespaces, mounts, modules, tracing, system calls of other architectures.

use super::raw::{self, AT_CWD, Errno, Text, raw};
use super::{AttackResult, word};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

const NAMESPACES: &[(&str, usize)] = &[
    ("user", libc::CLONE_NEWUSER as usize),
    ("mount", libc::CLONE_NEWNS as usize),
    ("net", libc::CLONE_NEWNET as usize),
    ("pid", libc::CLONE_NEWPID as usize),
    ("ipc", libc::CLONE_NEWIPC as usize),
    ("uts", libc::CLONE_NEWUTS as usize),
];

fn namespace(arguments: &[String]) -> usize {
    NAMESPACES.iter().find(|(name, _)| *name == word(arguments, 0)).map_or(0, |(_, flag)| *flag)
}

/// Creates and enters a namespace.
pub(crate) fn unshare(arguments: &[String]) -> AttackResult {
    AttackResult::from_result(raw(libc::SYS_unshare, &[namespace(arguments)]))
}

/// Starts a child in a new namespace.
pub(crate) fn clone(arguments: &[String]) -> AttackResult {
    let child = raw(libc::SYS_clone, &[namespace(arguments) | libc::SIGCHLD as usize, 0, 0, 0, 0]);
    if child == Ok(0) {
        std::process::exit(0);
    }
    AttackResult::from_result(child)
}

/// Starts a child in a new namespace by `clone3`, whose flags a filter cannot read.
pub(crate) fn clone3(arguments: &[String]) -> AttackResult {
    let mut wanted = [0_u64; 8];
    wanted[0] = namespace(arguments) as u64;
    wanted[4] = libc::SIGCHLD as u64;
    let child = raw(libc::SYS_clone3, &[wanted.as_ptr() as usize, 64]);
    if child == Ok(0) {
        std::process::exit(0);
    }
    AttackResult::from_result(child)
}

/// Joins the namespaces of another process.
pub(crate) fn setns(arguments: &[String]) -> AttackResult {
    let mut last = AttackResult::stopped("nothing tried");
    for kind in ["user", "mnt", "net", "pid"] {
        let opened = raw::open(Path::new(&format!("/proc/{}/ns/{kind}", word(arguments, 0))), libc::O_RDONLY, 0);
        last = AttackResult::from_result(opened.and_then(|namespace| raw(libc::SYS_setns, &[namespace, 0])));
        if last.worked {
            return last;
        }
    }
    last
}

/// Makes each of the named system calls with empty arguments. The attack succeeds if the kernel examined the arguments.
pub(crate) fn call(arguments: &[String]) -> AttackResult {
    let mut answers = Vec::new();
    for name in arguments {
        let Some((_, number, vector)) = CALLS.iter().find(|(known, ..)| known == name) else {
            return AttackResult::worked(format!("no such call: {name}"));
        };
        let (path, kind) = (Text::new("/"), Text::new("tmpfs"));
        let filled: Vec<usize> = vector
            .iter()
            .map(|argument| match argument {
                Root => path.at(),
                Kind => kind.at(),
                Here => AT_CWD,
                Number(number) => *number,
            })
            .collect();
        let tried = AttackResult::reached(raw(*number, &filled));
        if tried.worked {
            return AttackResult::worked(format!("{name}: {}", tried.answer));
        }
        answers.push(tried.answer);
    }
    answers.dedup();
    AttackResult::stopped(answers.join(", "))
}

/// An argument of a system call in [`CALLS`].
enum Argument {
    /// The text `/`.
    Root,
    /// The text `tmpfs`.
    Kind,
    /// The working directory.
    Here,
    /// This number.
    Number(usize),
}

use Argument::{Here, Kind, Number, Root};

/// System calls that must be unreachable. The arguments do no harm if a call is reachable.
#[rustfmt::skip]
const CALLS: &[(&str, libc::c_long, &[Argument])] = &[
    ("mount", libc::SYS_mount, &[Kind, Root, Kind, Number(libc::MS_REC as usize | libc::MS_PRIVATE as usize | 0x8000_0000)]),
    ("remount", libc::SYS_mount, &[Kind, Root, Kind, Number((libc::MS_REMOUNT | libc::MS_BIND | 0x8000_0000) as usize)]),
    ("umount2", libc::SYS_umount2, &[Root, Number(0x4000_0000)]),
    ("open_tree", libc::SYS_open_tree, &[Here, Root, Number(1)]),
    ("fsopen", libc::SYS_fsopen, &[Kind, Number(0)]),
    ("fspick", libc::SYS_fspick, &[Here, Root, Number(0)]),
    ("fsconfig", libc::SYS_fsconfig, &[Number(999), Number(0)]),
    ("fsmount", libc::SYS_fsmount, &[Number(999), Number(0), Number(0)]),
    ("move_mount", libc::SYS_move_mount, &[Number(999), Root, Number(999), Root, Number(0)]),
    ("mount_setattr", libc::SYS_mount_setattr, &[Here, Root, Number(0), Number(0), Number(0)]),
    ("chroot", libc::SYS_chroot, &[Root]),
    ("pivot_root", libc::SYS_pivot_root, &[Root, Root]),
    ("bpf", libc::SYS_bpf, &[Number(99), Number(0), Number(0)]),
    ("perf_event_open", libc::SYS_perf_event_open, &[Number(0), Number(0), Number(0), Number(0), Number(0)]),
    ("userfaultfd", libc::SYS_userfaultfd, &[Number(1)]),
    ("fanotify_init", libc::SYS_fanotify_init, &[Number(0x200), Number(0)]),
    ("memfd_secret", libc::SYS_memfd_secret, &[Number(0xff)]),
    ("syslog", libc::SYS_syslog, &[Number(10), Number(0), Number(0)]),
    ("init_module", libc::SYS_init_module, &[Number(0), Number(0), Number(0)]),
    ("finit_module", libc::SYS_finit_module, &[Number(999), Number(0), Number(0)]),
    ("delete_module", libc::SYS_delete_module, &[Number(0), Number(0)]),
    ("kexec_load", libc::SYS_kexec_load, &[Number(0), Number(99), Number(0), Number(0)]),
    ("kexec_file_load", libc::SYS_kexec_file_load, &[Number(999), Number(999), Number(0), Number(0), Number(0)]),
    ("reboot", libc::SYS_reboot, &[Number(0), Number(0), Number(0)]),
    ("swapon", libc::SYS_swapon, &[Number(0), Number(0)]),
    ("swapoff", libc::SYS_swapoff, &[Number(0)]),
    ("acct", libc::SYS_acct, &[Number(1)]),
    ("quotactl", libc::SYS_quotactl, &[Number(0x8000_0100), Number(0), Number(0), Number(0)]),
    ("settimeofday", libc::SYS_settimeofday, &[Number(1), Number(0)]),
    ("clock_settime", libc::SYS_clock_settime, &[Number(0), Number(1)]),
    ("clock_adjtime", libc::SYS_clock_adjtime, &[Number(0), Number(1)]),
    ("sethostname", libc::SYS_sethostname, &[Number(1), Number(4)]),
    ("move_pages", libc::SYS_move_pages, &[Number(0), Number(1), Number(0), Number(0), Number(0), Number(0xff)]),
    ("migrate_pages", libc::SYS_migrate_pages, &[Number(0), Number(usize::MAX), Number(1), Number(1)]),
    ("mincore", libc::SYS_mincore, &[Number(0), Number(0), Number(0)]),
    ("io_setup", libc::SYS_io_setup, &[Number(1), Number(0)]),
    ("io_submit", libc::SYS_io_submit, &[Number(0), Number(0), Number(0)]),
    ("cachestat", 451, &[Number(999), Number(0), Number(0), Number(0)]),
    ("fadvise_dontneed", libc::SYS_fadvise64, &[Number(999), Number(0), Number(0), Number(libc::POSIX_FADV_DONTNEED as usize)]),
    ("madvise_cold", libc::SYS_madvise, &[Number(0), Number(0), Number(libc::MADV_COLD as usize)]),
    ("madvise_pageout", libc::SYS_madvise, &[Number(0), Number(0), Number(libc::MADV_PAGEOUT as usize)]),
    ("preadv2_nowait", libc::SYS_preadv2, &[Number(999), Number(0), Number(0), Number(0), Number(0), Number(0x08)]),
    ("preadv2_dontcache", libc::SYS_preadv2, &[Number(999), Number(0), Number(0), Number(0), Number(0), Number(0x80)]),
    ("pwritev2_dontcache", libc::SYS_pwritev2, &[Number(999), Number(0), Number(0), Number(0), Number(0), Number(0x80)]),
    ("ioprio_set", libc::SYS_ioprio_set, &[Number(3), Number(0), Number(0x7 << 13)]),
    ("process_madvise", libc::SYS_process_madvise, &[Number(999), Number(0), Number(0), Number(99), Number(0)]),
    #[cfg(target_arch = "x86_64")]
    ("iopl", libc::SYS_iopl, &[Number(99)]),
    #[cfg(target_arch = "x86_64")]
    ("ioperm", libc::SYS_ioperm, &[Number(usize::MAX), Number(1), Number(1)]),
    #[cfg(target_arch = "x86_64")]
    ("modify_ldt", libc::SYS_modify_ldt, &[Number(1), Number(0), Number(0)]),
];

/// Sets up or uses an io_uring, whose operations a filter cannot see.
pub(crate) fn io_uring(_: &[String]) -> AttackResult {
    let setup = [0_u32; 30];
    for (number, vector) in [
        (libc::SYS_io_uring_setup, [4, setup.as_ptr() as usize, 0, 0]),
        (libc::SYS_io_uring_enter, [999, 0, 0, 0]),
        (libc::SYS_io_uring_register, [999, 0, 0, 0]),
    ] {
        let tried = AttackResult::reached(raw(number, &vector));
        if tried.worked {
            return tried;
        }
    }
    AttackResult::stopped(Errno::NOSYS)
}

/// Reads or adds keys in the session keyring.
pub(crate) fn keyring(_: &[String]) -> AttackResult {
    let (kind, name, bytes) = (Text::new("user"), Text::new("glovebox-hostile"), *b"planted");
    let session = -3_isize as usize;
    let made = raw(libc::SYS_add_key, &[kind.at(), name.at(), bytes.as_ptr() as usize, bytes.len(), session]);
    let asked = raw(libc::SYS_request_key, &[kind.at(), name.at(), 0, session]);
    let looked = raw(libc::SYS_keyctl, &[0, session, 0]);
    for answer in [made, asked, looked] {
        let tried = AttackResult::reached(answer);
        if tried.worked {
            return tried;
        }
    }
    AttackResult::stopped(Errno::PERM)
}

/// Makes all readable memory executable, for this process and the programs that it starts.
pub(crate) fn personality(_: &[String]) -> AttackResult {
    AttackResult::from_result(raw(libc::SYS_personality, &[0x0040_0000]))
}

/// Raises the limit on user namespaces, then creates one.
pub(crate) fn user_namespaces(_: &[String]) -> AttackResult {
    match fs::write("/proc/sys/user/max_user_namespaces", "1000") {
        Ok(()) => unshare(&["user".to_owned()]),
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

/// Starts a minimal program that makes i386 system calls.
pub(crate) fn foreign(_: &[String]) -> AttackResult {
    if !cfg!(target_arch = "x86_64") {
        return AttackResult::stopped("no such calls on this machine");
    }
    // mov eax, 20 (getpid); int 0x80; xor ebx, ebx; mov eax, 1 (exit); int 0x80
    let code = [0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0x31, 0xdb, 0xb8, 1, 0, 0, 0, 0xcd, 0x80];
    match run_from_memory(&program(&code), &[]) {
        Ok(status) if status.success() => AttackResult::worked("int 0x80 was answered"),
        Ok(status) => AttackResult::stopped(match status.signal() {
            Some(libc::SIGSYS) => "SIGSYS".to_owned(),
            _ => format!("{status}"),
        }),
        Err(error) => AttackResult::stopped(error),
    }
}

/// Makes a system call by its x32 number.
pub(crate) fn x32(_: &[String]) -> AttackResult {
    AttackResult::from_result(raw(0x4000_0000 | libc::SYS_getpid, &[]))
}

/// Runs this program from memory, without a file on disk. The other arguments are the attack that the copy tries.
pub(crate) fn memfd_exec(arguments: &[String]) -> AttackResult {
    let own = match fs::read("/proc/self/exe") {
        Ok(bytes) => bytes,
        Err(error) => return AttackResult::stopped(Errno::from(error)),
    };
    let memory = match keep_in_memory(&own) {
        Ok(descriptor) => descriptor,
        Err(error) => return AttackResult::stopped(error),
    };
    let ran = Command::new(format!("/proc/self/fd/{memory}")).args(arguments).stdin(Stdio::null()).output();
    match ran {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let worked = text.contains("\"worked\":true");
            if worked {
                AttackResult::worked("from memory").with(text)
            } else {
                AttackResult::stopped(format!("ran, {}", text.trim()))
            }
        }
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

fn keep_in_memory(bytes: &[u8]) -> Result<usize, Errno> {
    let name = Text::new("hostile");
    let memory = raw(libc::SYS_memfd_create, &[name.at(), 0])?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let wrote = raw(libc::SYS_write, &[memory, rest.as_ptr() as usize, rest.len()])?;
        rest = &rest[wrote.min(rest.len())..];
    }
    Ok(memory)
}

fn run_from_memory(bytes: &[u8], words: &[&str]) -> Result<std::process::ExitStatus, Errno> {
    let memory = keep_in_memory(bytes)?;
    let status = Command::new(format!("/proc/self/fd/{memory}")).args(words).status();
    raw::close(memory);
    Ok(status?)
}

/// Returns a minimal ELF program: a header, one segment, and these instructions.
fn program(code: &[u8]) -> Vec<u8> {
    let (base, start) = (0x40_0000_u64, 120_u64);
    let bytes = start + code.len() as u64;
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0, 1, 0, 0, 0];
    for word in [base + start, 64, 0] {
        file.extend_from_slice(&u64::to_le_bytes(word));
    }
    file.extend_from_slice(&[0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    file.extend_from_slice(&[1, 0, 0, 0, 5, 0, 0, 0]);
    for word in [0, base, base, bytes, bytes, 0x1000] {
        file.extend_from_slice(&u64::to_le_bytes(word));
    }
    file.extend_from_slice(code);
    file
}
