//! The devices of a jail: five that programs need, a private set of terminals, and shared memory and message queues of
//! its own. `tty`, `kmsg`, `fuse` and `kvm` do not exist there.
#![forbid(unsafe_code)]

use crate::fault::At;
use crate::root::{BindKind, Root, below_root, bind_at};
use glovebox_jail_helper::policy::Bind;
use glovebox_jail_helper::wire::Failure;
use rustix::fs::{Mode, symlinkat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use std::path::Path;

/// Names of devices that are bound from the host, because a user namespace does not give the privilege to create
/// devices.
pub(crate) const NODES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

const TERMINALS: &str = "/dev/pts";
const SHARED_MEMORY: &str = "/dev/shm";
/// The POSIX message queues of the jail's IPC namespace. Programs open them without this folder, but Landlock allows that
/// only through a rule for it. A resource limit bounds their size.
pub(crate) const QUEUES: &str = "/dev/mqueue";

const LINKS: [(&str, &str); 5] = [
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
    ("dev/ptmx", "pts/ptmx"),
];

/// Fills the part of `/dev` that is the same for all jails, in a new root, which is the current folder.
pub(crate) fn fill_fixed(root: &Root) -> Result<(), Failure> {
    for name in NODES {
        let path = Path::new("/dev").join(name);
        // Read-only: the device can still be written, but the owner cannot change the mode, which would also change it
        // on the host.
        bind_at(root, &Bind::read_only(path.clone(), path), BindKind::Device)?;
    }
    for folder in [TERMINALS, SHARED_MEMORY, QUEUES] {
        root.folder(Path::new(folder))?;
    }
    for (at, to) in LINKS {
        symlinkat(to, root, at).at(format!("link /{at}"))?;
    }
    Ok(())
}

/// Mounts the parts of `/dev` that belong to one jail alone: terminals, shared memory and message queues.
pub(crate) fn mount_own(root: &Root, shared_memory_bytes: u64) -> Result<(), Failure> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    mount("devpts", below_root(Path::new(TERMINALS)), "devpts", flags, options).at(format!("mount {TERMINALS}"))?;
    root.memory(Path::new(SHARED_MEMORY), Mode::from_raw_mode(0o1777), shared_memory_bytes)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    match mount("mqueue", below_root(Path::new(QUEUES)), "mqueue", flags, None) {
        // A kernel without message queues.
        Err(Errno::NODEV) => Ok(()),
        mounted => mounted.at(format!("mount {QUEUES}")),
    }
}
