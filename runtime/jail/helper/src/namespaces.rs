//! The namespaces of a jail, and the only identity that exists in them.
//!
//! Only one user and one group are mapped, so no other identity can be assumed. Inside, their ids are never 0, because
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

/// Enters new namespaces. The PID namespace applies to processes from the next fork on.
pub(crate) fn enter(policy: &Policy) -> Result<(), Failure> {
    check_ids(policy.uid, policy.gid)?;
    let outside = Identity::current();
    raw::unshare(jail_namespaces(policy.network) | UnshareFlags::NEWCGROUP).at("unshare")?;
    // Without this, a user could leave a group that denies access. The kernel requires it.
    fs::write("/proc/self/setgroups", "deny").at("setgroups")?;
    map_ids(Identity { uid: policy.uid, gid: policy.gid }, outside)
}

/// Enters new user and mount namespaces, for a template that prepares mounts.
pub(crate) fn enter_template(uid: u32, gid: u32) -> Result<(), Failure> {
    check_ids(uid, gid)?;
    let outside = Identity::current();
    raw::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).at("unshare")?;
    fs::write("/proc/self/setgroups", "deny").at("setgroups")?;
    map_ids(Identity { uid, gid }, outside)
}

/// Copies this process into new namespaces of every kind. Returns `None` in the copy. Changing groups stays denied, as
/// in the parent user namespace. If this process is not dumpable, the copy must be dumpable until it has called
/// [`map_same_ids`].
pub(crate) fn fork_into_own() -> Result<Option<Pid>, Errno> {
    raw::fork_into(jail_namespaces(Network::None))
}

/// Maps the ids of the parent user namespace to themselves.
pub(crate) fn map_same_ids(uid: u32, gid: u32) -> Result<(), Failure> {
    set_dumpable_behavior(DumpableBehavior::Dumpable).at("set dumpable")?;
    let same = Identity { uid, gid };
    map_ids(same, same)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("set dumpable")
}

/// Makes the control group of this process the root of its view of control groups.
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
    if uid == 0 || gid == 0 {
        Err(refused("map ids", "the user id and the group id in the jail must not be 0"))
    } else {
        Ok(())
    }
}

/// Maps one user and one group. Each pair is the user id and the group id.
fn map_ids(inside: Identity, outside: Identity) -> Result<(), Failure> {
    fs::write("/proc/self/uid_map", format!("{} {} 1", inside.uid, outside.uid)).at("write uid_map")?;
    fs::write("/proc/self/gid_map", format!("{} {} 1", inside.gid, outside.gid)).at("write gid_map")
}

/// Forbids user namespaces inside the jail, in addition to seccomp. If `/proc` is that of the host, this is not
/// possible.
pub(crate) fn forbid_more(proc: impl AsFd) {
    let file = openat(proc, "sys/user/max_user_namespaces", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    // The result is ignored, because seccomp already prevents this.
    let _ = file.and_then(|file| rustix::io::write(file, b"0"));
}
