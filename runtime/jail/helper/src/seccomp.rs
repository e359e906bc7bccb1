//! The filter of system calls. It refuses calls that stages do not need and that widen the kernel's attack surface.
//!
//! The filter is a deny-list, because allow-lists break toolchains every few months. A listed call is refused
//! (`EPERM`), or reported as unknown (`ENOSYS`) so that callers fall back to another call. There are two filter
//! programs. The first one handles calls that are refused with any arguments, and is fast. It also refuses x32 call
//! numbers, which a deny-list would miss. The second one checks arguments. Calls of another architecture kill the
//! process. Both programs are compiled once, before the first command. They also apply to the first process of a jail.
#![forbid(unsafe_code)]

mod calls;
mod lookup;
mod renames;

pub(crate) use renames::{RENAME_MARK, renames};

use crate::fault::refused;
use glovebox_jail_helper::policy::{Confinement, Network};
use glovebox_jail_helper::wire::Failure;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Rules by call number. An empty list means that the call is refused with any arguments.
type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// Filter programs for the kernel, in the order in which they are installed.
#[derive(Debug, Default, Clone)]
pub(crate) struct Filters(Vec<BpfProgram>);

impl Filters {
    /// Compiles the filters of a policy.
    pub(crate) fn compile(confinement: Confinement, network: Network) -> Result<Self, Failure> {
        let mut rules = refused_calls(confinement, network).map_err(broken)?;
        let mut always: BTreeMap<i64, i32> = calls::UNKNOWN.iter().map(|number| (*number, libc::ENOSYS)).collect();
        always.extend(
            rules.iter().filter(|(_, conditions)| conditions.is_empty()).map(|(number, _)| (*number, libc::EPERM)),
        );
        rules.retain(|_, conditions| !conditions.is_empty());
        Ok(Self(vec![lookup::compile(&always)?, by_arguments(rules).map_err(broken)?]))
    }

    /// Splits the filters of a policy into those that a template installs for all its jails, and those that each jail
    /// adds. The template installs only the filter that checks arguments, because it allows `clone3`, with which the
    /// template creates namespaces.
    pub(crate) fn split(mut self) -> (Self, Self) {
        let by_arguments = self.0.split_off(1);
        (Self(by_arguments), self)
    }

    /// Installs the filters irrevocably for this process and all its children.
    pub(crate) fn enforce(&self) -> Result<(), Failure> {
        self.0.iter().try_for_each(|program| seccompiler::apply_filter(program)).map_err(broken)
    }
}

fn by_arguments(rules: SyscallRules) -> Result<BpfProgram, BackendError> {
    let arch = if cfg!(target_arch = "aarch64") { TargetArch::aarch64 } else { TargetArch::x86_64 };
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32), arch)?.try_into()
}

fn refused_calls(confinement: Confinement, network: Network) -> Result<SyscallRules, BackendError> {
    let mut rules: SyscallRules = calls::REFUSED.iter().map(|number| (*number, Vec::new())).collect();
    for bit in calls::NAMESPACE_BITS {
        add(&mut rules, libc::SYS_clone, vec![masked(0, bit, bit)?])?;
    }
    // Refuses any personality except the usual one, with or without random addresses. The query is allowed.
    let personalities = [0, 0xffff_ffff, calls::NO_RANDOM_ADDRESSES];
    let others = personalities.iter().map(|personality| other_than(0, *personality)).collect::<Result<_, _>>()?;
    add(&mut rules, libc::SYS_personality, others)?;
    for (number, terminal) in [(libc::SYS_ioctl, libc::TIOCSTI), (libc::SYS_ioctl, libc::TIOCLINUX)] {
        // The kernel uses only the lower half of the argument, so the upper half must not matter here.
        add(&mut rules, number, vec![equal(1, terminal)?])?;
    }
    refuse_own_tables(&mut rules)?;
    refuse_cache(&mut rules)?;
    refuse_devices(&mut rules)?;
    refuse_lent_rights(&mut rules)?;
    match (confinement, network) {
        (Confinement::Landlock, Network::Full) => {
            refuse_sockets(&mut rules, &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK])?
        }
        (Confinement::Landlock, _) => refuse_sockets(&mut rules, &[])?,
        _ => refuse_sockets(&mut rules, &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK])?,
    }
    refuse_others(&mut rules, confinement)?;
    if confinement != Confinement::Full {
        rules.extend(calls::DEBUGGING.map(|number| (number, Vec::new())));
    }
    if confinement == Confinement::Landlock {
        // Resources that all processes of the machine share, because no namespace separates them.
        rules.extend(calls::SHARED.map(|number| (number, Vec::new())));
    }
    Ok(rules)
}

/// Refuses a thread with a separate descriptor table: the host counts the descriptors of a process and would miss those
/// of the thread.
fn refuse_own_tables(rules: &mut SyscallRules) -> Result<(), BackendError> {
    let (thread, files) = (libc::CLONE_THREAD as u64, libc::CLONE_FILES as u64);
    add(rules, libc::SYS_clone, vec![masked(0, thread | files, thread)?])?;
    let own = calls::CLOSE_RANGE_UNSHARE;
    add(rules, libc::SYS_close_range, vec![masked(2, own, own)?])
}

/// Refuses calls that drop pages from the page cache, which all stages share, or that query it.
fn refuse_cache(rules: &mut SyscallRules) -> Result<(), BackendError> {
    for (number, argument, advice) in calls::CACHE_ADVICE {
        add(rules, number, vec![equal(argument, advice)?])?;
    }
    for flag in calls::CACHE_FLAGS {
        for number in [libc::SYS_preadv2, libc::SYS_pwritev2] {
            add(rules, number, vec![masked(5, flag, flag)?])?;
        }
    }
    Ok(())
}

/// Refuses creating character and block devices, including whiteouts.
fn refuse_devices(rules: &mut SyscallRules) -> Result<(), BackendError> {
    for &(number, mode) in calls::MAKE_NODE {
        for kind in [libc::S_IFCHR, libc::S_IFBLK] {
            add(rules, number, vec![masked(mode, libc::S_IFMT.into(), kind.into())?])?;
        }
    }
    Ok(())
}

/// Refuses creating files with set-user-id or set-group-id bits.
fn refuse_lent_rights(rules: &mut SyscallRules) -> Result<(), BackendError> {
    for bit in [u64::from(libc::S_ISUID), u64::from(libc::S_ISGID)] {
        for &(number, mode) in calls::SET_MODE {
            add(rules, number, vec![masked(mode, bit, bit)?])?;
        }
        for &(number, flags, mode) in calls::OPEN {
            // Without one of these flags, the kernel ignores the mode.
            for creates in [libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64] {
                add(rules, number, vec![masked(flags, creates, creates)?, masked(mode, bit, bit)?])?;
            }
        }
    }
    Ok(())
}

/// Refuses sockets of all families except these. Only the route protocol of netlink is allowed.
fn refuse_sockets(rules: &mut SyscallRules, allowed: &[i32]) -> Result<(), BackendError> {
    if allowed.is_empty() {
        rules.insert(libc::SYS_socket, Vec::new());
    } else {
        let others = allowed.iter().map(|family| other_than(0, *family as u64)).collect::<Result<_, _>>()?;
        add(rules, libc::SYS_socket, others)?;
        let netlink = equal(0, libc::AF_NETLINK as u64)?;
        add(rules, libc::SYS_socket, vec![netlink, other_than(2, libc::NETLINK_ROUTE as u64)?])?;
    }
    if !allowed.contains(&libc::AF_UNIX) {
        // A pair of datagram sockets can be reconnected to any path.
        for kind in (0..16).filter(|kind| !matches!(*kind, libc::SOCK_STREAM | libc::SOCK_SEQPACKET)) {
            add(rules, libc::SYS_socketpair, vec![masked(1, 0xf, kind as u64)?])?;
        }
    }
    Ok(())
}

/// Refuses changing limits and priorities of other processes of the same user: of the jail's first process, which a
/// limit could kill, and without separate namespaces also of the host's processes.
fn refuse_others(rules: &mut SyscallRules, confinement: Confinement) -> Result<(), BackendError> {
    for (number, target) in calls::OF_ANOTHER {
        let condition = if confinement == Confinement::Full { equal(target, 1)? } else { other_than(target, 0)? };
        add(rules, number, vec![condition])?;
    }
    for (number, everybody) in calls::OF_EVERYBODY {
        add(rules, number, vec![equal(0, everybody)?])?;
    }
    Ok(())
}

/// Refuses a call whose arguments meet all these conditions. A call that is already refused with any arguments stays
/// refused.
fn add(rules: &mut SyscallRules, number: i64, conditions: Vec<SeccompCondition>) -> Result<(), BackendError> {
    if rules.get(&number).is_none_or(|known| !known.is_empty()) {
        rules.entry(number).or_default().push(SeccompRule::new(conditions)?);
    }
    Ok(())
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}

fn equal(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn other_than(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn broken(error: impl std::fmt::Display) -> Failure {
    refused("build the seccomp filter", error.to_string())
}

#[cfg(test)]
mod tests;
