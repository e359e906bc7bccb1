//! The namespaces of a jail, and the one identity that exists in them.
//!
//! A single user and a single group are mapped, so that no other owner can be taken on; inside they are never 0, as a
//! root inside would have privileges in what is mounted later.
#![forbid(unsafe_code)]

use crate::fault::{At, refused};
use crate::raw;
use glovebox_jail::policy::{Network, Policy};
use glovebox_jail::wire::Failure;
use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;
use std::fs;

/// Leaves the host's namespaces; processes are in the new PID namespace from the next fork on.
pub(crate) fn enter(policy: &Policy) -> Result<(), Failure> {
    if policy.uid == 0 || policy.gid == 0 {
        return Err(refused("map ids", "the ids inside must not be 0"));
    }
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let mut flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    if policy.network != Network::Full {
        flags |= UnshareFlags::NEWNET;
    }
    raw::unshare(flags).at("unshare")?;
    // Without this a user could leave a group that denies him something; the system demands it.
    fs::write("/proc/self/setgroups", "deny").at("setgroups")?;
    fs::write("/proc/self/uid_map", format!("{} {uid} 1", policy.uid)).at("write uid_map")?;
    fs::write("/proc/self/gid_map", format!("{} {gid} 1", policy.gid)).at("write gid_map")
}

/// Allows no user namespace inside ours, a second time beside seccomp. Where `/proc` is the host's that is not possible.
pub(crate) fn forbid_more(proc: impl AsFd) {
    let file = openat(proc, "sys/user/max_user_namespaces", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    // Only a second lock: what it would stop is stopped by the first.
    let _ = file.and_then(|file| rustix::io::write(file, b"0"));
}
