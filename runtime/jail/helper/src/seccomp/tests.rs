//! Tests of the filter programs with an interpreter for the few instructions that they use, and tables of calls.
#![cfg(test)]

use super::*;
use seccompiler::sock_filter;

const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
const HIGH: u64 = 0xdead_beef_0000_0000;

#[cfg(target_arch = "x86_64")]
const OWN: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OWN: u32 = 0xc000_00b7;

fn run(program: &[sock_filter], arch: u32, number: i64, arguments: &[u64]) -> u32 {
    let mut call = Vec::new();
    call.extend((number as u32).to_ne_bytes());
    call.extend(arch.to_ne_bytes());
    call.extend(0_u64.to_ne_bytes());
    for index in 0..6 {
        call.extend(arguments.get(index).copied().unwrap_or(0).to_ne_bytes());
    }
    let (mut at, mut accumulator) = (0, 0_u32);
    loop {
        let sock_filter { code, jt, jf, k } = program[at];
        at += 1;
        let jump = |holds: bool| usize::from(if holds { jt } else { jf });
        match u32::from(code) {
            0x20 => accumulator = u32::from_ne_bytes(call[k as usize..k as usize + 4].try_into().expect("four bytes")),
            0x54 => accumulator &= k,
            0x05 => at += k as usize,
            0x15 => at += jump(accumulator == k),
            0x25 => at += jump(accumulator > k),
            0x35 => at += jump(accumulator >= k),
            0x06 => return k,
            other => panic!("instruction {other:#x}"),
        }
    }
}

/// Returns the strictest result of all filters, as the kernel does: kill before an error, and an error before allow.
fn answer(confinement: Confinement, network: Network, arch: u32, number: i64, arguments: &[u64]) -> u32 {
    let filters = Filters::compile(confinement, network).expect("a program");
    let answers: Vec<u32> = filters.0.iter().map(|program| run(program, arch, number, arguments)).collect();
    *answers.iter().min_by_key(|answer| (**answer & 0xffff_0000) as i32).expect("programs")
}

fn full(number: i64, arguments: &[u64]) -> u32 {
    answer(Confinement::Full, Network::None, OWN, number, arguments)
}

fn lesser(number: i64, arguments: &[u64]) -> u32 {
    answer(Confinement::Landlock, Network::None, OWN, number, arguments)
}

#[test]
fn calls_of_another_architecture_kill() {
    for arch in [0x4000_0003, 0x4000_0028, 0x8000_0016] {
        assert_eq!(answer(Confinement::Full, Network::None, arch, 39, &[]), KILL, "{arch:#x}");
        assert_eq!(answer(Confinement::Landlock, Network::Full, arch, 39, &[]), KILL, "{arch:#x}");
    }
}

#[test]
fn numbers_of_x32_are_unknown() {
    for number in [0x4000_0000_i64, 0x4000_0000 + libc::SYS_mount, 0x4000_0000 + libc::SYS_getpid, -1] {
        assert_eq!(full(number, &[]), UNKNOWN, "{number:#x}");
        assert_eq!(lesser(number, &[]), UNKNOWN, "{number:#x}");
    }
}

#[test]
fn every_listed_call_is_refused_and_the_usual_ones_pass() {
    for number in calls::REFUSED {
        assert_eq!((full(*number, &[]), lesser(*number, &[])), (REFUSED, REFUSED), "{number}");
    }
    for number in calls::UNKNOWN {
        assert_eq!((full(*number, &[]), lesser(*number, &[])), (UNKNOWN, UNKNOWN), "{number}");
    }
    for number in [libc::SYS_read, libc::SYS_execve, libc::SYS_getpid, libc::SYS_kill, libc::SYS_seccomp] {
        assert_eq!((full(number, &[]), lesser(number, &[])), (ALLOW, ALLOW), "{number}");
    }
    assert_eq!((full(libc::SYS_openat2, &[]), lesser(libc::SYS_openat2, &[])), (UNKNOWN, UNKNOWN));
}

#[test]
fn processes_are_traced_only_in_a_separate_process_namespace() {
    for number in calls::DEBUGGING {
        assert_eq!((full(number, &[]), lesser(number, &[])), (ALLOW, REFUSED), "{number}");
        assert_eq!(answer(Confinement::Bwrap, Network::None, OWN, number, &[]), REFUSED, "{number}");
    }
}

#[test]
fn namespaces_by_clone_are_refused_and_threads_are_not() {
    for bit in calls::NAMESPACE_BITS {
        assert_eq!(full(libc::SYS_clone, &[bit | libc::SIGCHLD as u64]), REFUSED, "{bit:#x}");
        assert_eq!(full(libc::SYS_clone, &[HIGH | bit]), REFUSED, "{bit:#x}");
    }
    let thread = libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_FILES;
    for flags in [thread as u64, libc::SIGCHLD as u64, (libc::CLONE_VM | libc::CLONE_VFORK) as u64] {
        assert_eq!(full(libc::SYS_clone, &[flags]), ALLOW, "{flags:#x}");
    }
}

#[test]
fn threads_share_their_descriptors() {
    let thread = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u64;
    assert_eq!(full(libc::SYS_clone, &[thread]), REFUSED);
    assert_eq!(full(libc::SYS_clone, &[HIGH | thread]), REFUSED);
    assert_eq!(full(libc::SYS_clone, &[thread | libc::CLONE_FILES as u64]), ALLOW);
    for (flags, expected) in [(0, ALLOW), (4, ALLOW), (2, REFUSED), (6, REFUSED)] {
        assert_eq!(full(libc::SYS_close_range, &[3, u64::from(u32::MAX), flags]), expected, "{flags}");
    }
}

#[test]
fn the_page_cache_is_neither_asked_nor_emptied() {
    let fadvise = |advice: i32| full(libc::SYS_fadvise64, &[3, 0, 0, advice as u64]);
    assert_eq!((fadvise(libc::POSIX_FADV_DONTNEED), fadvise(libc::POSIX_FADV_WILLNEED)), (REFUSED, ALLOW));
    let madvise = |advice: i32| full(libc::SYS_madvise, &[0, 4096, advice as u64]);
    assert_eq!((madvise(libc::MADV_PAGEOUT), madvise(libc::MADV_COLD)), (REFUSED, REFUSED));
    assert_eq!((madvise(libc::MADV_DONTNEED), madvise(libc::MADV_FREE)), (ALLOW, ALLOW));
    for number in [libc::SYS_preadv2, libc::SYS_pwritev2] {
        let with = |flags: u64| full(number, &[3, 0, 0, 0, 0, flags]);
        assert_eq!((with(0), with(2), with(0x10)), (ALLOW, ALLOW, ALLOW));
        assert_eq!((with(0x08), with(0x80), with(0x88), with(HIGH | 0x09)), (REFUSED, REFUSED, REFUSED, REFUSED));
    }
}

#[test]
fn arguments_count_on_their_low_half_only() {
    for (number, arguments, expected) in [
        (libc::SYS_personality, [0, 0, 0, 0], ALLOW),
        (libc::SYS_personality, [0xffff_ffff, 0, 0, 0], ALLOW),
        (libc::SYS_personality, [0x0004_0000, 0, 0, 0], ALLOW),
        (libc::SYS_personality, [0x0044_0000, 0, 0, 0], REFUSED),
        (libc::SYS_personality, [0x0040_0000, 0, 0, 0], REFUSED),
        (libc::SYS_personality, [8, 0, 0, 0], REFUSED),
        (libc::SYS_ioctl, [0, libc::TIOCSTI, 0, 0], REFUSED),
        (libc::SYS_ioctl, [0, HIGH | libc::TIOCSTI, 0, 0], REFUSED),
        (libc::SYS_ioctl, [0, libc::TIOCLINUX, 0, 0], REFUSED),
        (libc::SYS_ioctl, [0, libc::TCGETS, 0, 0], ALLOW),
        (libc::SYS_mknodat, [0, 0, 0o020_000, 0], REFUSED),
        (libc::SYS_mknodat, [0, 0, HIGH | 0o060_644, 0], REFUSED),
        (libc::SYS_mknodat, [0, 0, 0o010_644, 0], ALLOW),
        (libc::SYS_fchmod, [0, 0o4755, 0, 0], REFUSED),
        (libc::SYS_fchmodat, [0, 0, 0o2755, 0], REFUSED),
        (452, [0, 0, 0o6755, 0], REFUSED),
        (libc::SYS_fchmodat, [0, 0, 0o1777, 0], ALLOW),
        (libc::SYS_openat, [0, 0, libc::O_CREAT as u64, 0o4755], REFUSED),
        (libc::SYS_openat, [0, 0, libc::O_TMPFILE as u64, 0o2755], REFUSED),
        (libc::SYS_openat, [0, 0, libc::O_CREAT as u64, 0o644], ALLOW),
        (libc::SYS_openat, [0, 0, libc::O_DIRECTORY as u64, 0o7777], ALLOW),
        (libc::SYS_mkdirat, [0, 0, 0o2755, 0], REFUSED),
    ] {
        assert_eq!(full(number, &arguments), expected, "{number} {arguments:x?}");
    }
}

#[test]
fn sockets_by_family() {
    let (unix, inet, inet6) = (libc::AF_UNIX as u64, libc::AF_INET as u64, libc::AF_INET6 as u64);
    let (netlink, vsock) = (libc::AF_NETLINK as u64, libc::AF_VSOCK as u64);
    let socket = |confinement, network, family, protocol| {
        answer(confinement, network, OWN, libc::SYS_socket, &[family, 1, protocol])
    };
    for family in [unix, inet, inet6, netlink] {
        assert_eq!(socket(Confinement::Full, Network::None, family, 0), ALLOW, "{family}");
        assert_eq!(socket(Confinement::Full, Network::None, HIGH | family, 0), ALLOW, "{family}");
        assert_eq!(socket(Confinement::Landlock, Network::None, family, 0), REFUSED, "{family}");
    }
    for (family, protocol) in [(vsock, 0), (libc::AF_PACKET as u64, 0), (libc::AF_ALG as u64, 0), (netlink, 12), (0, 0)]
    {
        assert_eq!(socket(Confinement::Full, Network::Full, family, protocol), REFUSED, "{family}");
    }
    assert_eq!(socket(Confinement::Landlock, Network::Full, inet6, 0), ALLOW);
    assert_eq!(socket(Confinement::Landlock, Network::Full, unix, 0), REFUSED);
}

#[test]
fn pairs_that_can_be_connected_anew_are_refused_without_a_root_of_our_own() {
    let flags = libc::SOCK_CLOEXEC as u64;
    for (kind, expected) in [(1, ALLOW), (5, ALLOW), (2, REFUSED), (3, REFUSED), (0, REFUSED)] {
        assert_eq!(lesser(libc::SYS_socketpair, &[1, kind | flags, 0]), expected, "{kind}");
        assert_eq!(full(libc::SYS_socketpair, &[1, kind | flags, 0]), ALLOW, "{kind}");
    }
}

#[test]
fn limits_and_priorities_of_others_are_left_alone() {
    for (number, target) in calls::OF_ANOTHER {
        let with = |pid| {
            let mut arguments = [0; 4];
            arguments[usize::from(target)] = pid;
            (full(number, &arguments), lesser(number, &arguments))
        };
        assert_eq!(with(0), (ALLOW, ALLOW), "{number}");
        assert_eq!(with(1), (REFUSED, REFUSED), "{number}");
        assert_eq!(with(HIGH | 1), (REFUSED, REFUSED), "{number}");
        assert_eq!(with(1234), (ALLOW, REFUSED), "{number}");
    }
    for (number, everybody) in calls::OF_EVERYBODY {
        assert_eq!((full(number, &[everybody]), lesser(number, &[everybody])), (REFUSED, REFUSED), "{number}");
    }
    for number in calls::SHARED {
        assert_eq!((full(number, &[]), lesser(number, &[])), (ALLOW, REFUSED), "{number}");
    }
}
