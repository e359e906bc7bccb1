//! The namespaces of a jail, and the one identity that exists in them.
//!
//! A single user and a single group are mapped, so that no other identity can be assumed. Inside they are never 0, because
//! root inside would have privileges on later mounts.
#![forbid(unsafe_code)]

use crate::fault::{At, refused};
use crate::raw;
use glovebox_jail_helper::policy::{Network, Policy};
use glovebox_jail_helper::wire::Failure;
use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, getegid, geteuid, set_dumpable_behavior};
use rustix::thread::UnshareFlags;
use std::fs;

/// The user and the group of a process.
#[derive(Clone, Copy)]
struct Identity {
    uid: u32,
    gid: u32,
}

impl Identity {
    fn current() -> Self {
        Self { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }
}

/// Leaves the host's namespaces; processes are in the new PID namespace from the next fork on.
pub(crate) fn enter(policy: &Policy) -> Result<(), Failure> {
    check_ids(policy.uid, policy.gid)?;
    let outside = Identity::current();
    raw::unshare(jail_namespaces(policy.network) | UnshareFlags::NEWCGROUP).at("unshare")?;
    // Without this a user could leave a group that denies him something; the system demands it.
    fs::write("/proc/self/setgroups", "deny").at("setgroups")?;
    map_ids(Identity { uid: policy.uid, gid: policy.gid }, outside)
}

/// Leaves the host's users and mounts, for a template that prepares mounts.
pub(crate) fn enter_template(uid: u32, gid: u32) -> Result<(), Failure> {
    check_ids(uid, gid)?;
    let outside = Identity::current();
    raw::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).at("unshare")?;
    fs::write("/proc/self/setgroups", "deny").at("setgroups")?;
    map_ids(Identity { uid, gid }, outside)
}

/// Copies this process into new namespaces of every kind; none in the copy. Groups stay denied as in the user namespace
/// above. The copy of a process that is not dumpable must be dumpable until it has called [`map_same_ids`].
pub(crate) fn fork_into_own() -> Result<Option<Pid>, Errno> {
    raw::fork_into(jail_namespaces(Network::None))
}

/// Maps the ids of the user namespace above to themselves. Leaves the host's control groups for a view that begins at the own one.
pub(crate) fn map_same_ids(uid: u32, gid: u32) -> Result<(), Failure> {
    set_dumpable_behavior(DumpableBehavior::Dumpable).at("set dumpable")?;
    let same = Identity { uid, gid };
    map_ids(same, same)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("set dumpable")
}

/// Makes the process's control group the root of its view of control groups.
pub(crate) fn hide_cgroups() -> Result<(), Failure> {
    raw::unshare(UnshareFlags::NEWCGROUP).at("unshare")
}

fn jail_namespaces(network: Network) -> UnshareFlags {
    let flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS;
    if network == Network::Full { flags } else { flags | UnshareFlags::NEWNET }
}

fn check_ids(uid: u32, gid: u32) -> Result<(), Failure> {
    if uid == 0 || gid == 0 { Err(refused("map ids", "the ids inside must not be 0")) } else { Ok(()) }
}

/// Maps one user and one group inside to those outside.
fn map_ids(inside: Identity, outside: Identity) -> Result<(), Failure> {
    fs::write("/proc/self/uid_map", format!("{} {} 1", inside.uid, outside.uid)).at("write uid_map")?;
    fs::write("/proc/self/gid_map", format!("{} {} 1", inside.gid, outside.gid)).at("write gid_map")
}

/// Allows no user namespace inside ours, a second time beside seccomp. Where `/proc` is the host's that is not possible.
pub(crate) fn forbid_more(proc: impl AsFd) {
    let file = openat(proc, "sys/user/max_user_namespaces", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    // Defence in depth: seccomp already prevents this.
    let _ = file.and_then(|file| rustix::io::write(file, b"0"));
}
