//! Drops all privileges of a process irrevocably: groups and capabilities.
#![forbid(unsafe_code)]

use crate::fault::{At, refused};
use glovebox_jail_helper::wire::Failure;
use rustix::io::Errno;
use rustix::process::{Gid, geteuid};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
    set_thread_groups,
};

/// Drops the supplementary groups, which only root may do. An ordinary user keeps its groups, so files that are
/// readable only through a group must not be visible in the jail.
pub(crate) fn clear_groups() -> Result<(), Failure> {
    if !geteuid().is_root() {
        return Ok(());
    }
    match set_thread_groups(&[] as &[Gid]) {
        // Root of a container may lack this right and is then like an ordinary user.
        Err(Errno::PERM) => Ok(()),
        answer => answer.at("clear groups"),
    }
}

/// Drops the bounding and ambient sets, locks the secure bits, drops every capability, and forbids gaining any.
pub(crate) fn drop_all() -> Result<(), Failure> {
    let held = capabilities(None).at("check capabilities")?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        drop_bounding_set()?;
        let bits = CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
        set_capabilities_secure_bits(bits).at("set secure bits")?;
    }
    clear_ambient_capability_set().at("clear ambient capabilities")?;
    drop_held()?;
    // Without this, a program file with capabilities could give an ordinary user the capabilities of the bounding set.
    set_no_new_privs(true).at("set no_new_privs")
}

fn drop_bounding_set() -> Result<(), Failure> {
    for number in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // The first number without a capability in this kernel.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error).at("drop the bounding set"),
        }
    }
    Ok(())
}

/// Drops every capability from the current sets. A program that this process executes could get them back, so only a
/// process that executes no program may call this.
pub(crate) fn drop_held() -> Result<(), Failure> {
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none).at("drop capabilities")
}

/// Checks that no privilege is left, in the process that becomes a command.
pub(crate) fn demand_none() -> Result<(), Failure> {
    let held = capabilities(None).at("check capabilities")?;
    let all = held.effective | held.permitted | held.inheritable;
    let cannot_gain = rustix::thread::no_new_privs().at("read no_new_privs")?;
    if all.is_empty() && cannot_gain {
        Ok(())
    } else {
        Err(refused("check capabilities", "some capabilities are left"))
    }
}

/// Returns true if this process is in a user namespace that maps only one identity.
#[expect(clippy::disallowed_methods, reason = "the kernel's own file")]
pub(crate) fn is_mapped() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_ascii_whitespace().nth(2) == Some("1")
}
