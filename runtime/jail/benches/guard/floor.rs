//! The kernel's part of the cost: the namespaces, mounts and filters of one jail, and `sh -c true` in it.
//!
//! The loop runs in a separate process with one thread. It has no protocol, no policy, no checks, no Landlock rules, no
//! limits and no control group, so no other program can give a command the same namespaces and the same root at a lower
//! cost.

#[path = "../../helper/src/raw.rs"]
#[allow(dead_code, unreachable_pub)]
mod raw;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat, symlinkat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags,
    fsconfig_create, fsmount, fsopen, mount, mount_bind, mount_bind_recursive, mount_change, move_mount, unmount,
};
use rustix::process::{chdir, fchdir, pivot_root};
use rustix::thread::UnshareFlags;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

/// The first argument with which the benchmark starts itself for this loop. The next argument is a folder.
pub(crate) const ARGUMENT: &str = "--floor";
/// Number of names and settings of `/proc` that a jail covers.
const COVERS: usize = 38 + 11;
const COVERED: &str = "proc/uptime";
/// Approximate number of system calls that a jail refuses with any arguments.
const REFUSED: i64 = 100;

/// Builds and removes a jail `times` times, in a folder that contains `lower`.
pub(crate) fn repeat(times: u32, folder: &Path) {
    let filters = [filter(), filter()];
    // Inside the namespace, the ids are not known before they are mapped.
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    for round in 0..times {
        let own = folder.join(round.to_string());
        let layers = ["upper", "work"].map(|name| own.join(name));
        layers.iter().for_each(|layer| fs::create_dir_all(layer).unwrap());
        let namespaces = UnshareFlags::NEWUSER
            | UnshareFlags::NEWNS
            | UnshareFlags::NEWPID
            | UnshareFlags::NEWIPC
            | UnshareFlags::NEWUTS
            | UnshareFlags::NEWNET;
        if raw::fork_into(namespaces).unwrap().is_none() {
            jail(user, group, &folder.join("lower"), &layers);
            filters.iter().for_each(|filter| apply_filter(filter).unwrap());
            raw::exit_now(command());
        }
        assert_eq!(raw::reap(raw::Wait::Until).unwrap().unwrap().code, Some(0));
        fs::remove_dir_all(own).unwrap();
    }
}

/// Builds the root of a jail around this process.
fn jail(user: u32, group: u32, lower: &Path, [upper, work]: &[PathBuf; 2]) {
    fs::write("/proc/self/setgroups", "deny").unwrap();
    fs::write("/proc/self/uid_map", format!("1000 {user} 1")).unwrap();
    fs::write("/proc/self/gid_map", format!("1000 {group} 1")).unwrap();
    raw::unshare(UnshareFlags::NEWCGROUP).unwrap();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
    let system = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).unwrap();
    fsconfig_create(&system).unwrap();
    let root = fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NOSUID).unwrap();
    move_mount(&root, "", CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).unwrap();
    fchdir(&root).unwrap();
    let folder = |name: &str| mkdirat(&root, name, Mode::from_raw_mode(0o755)).unwrap();
    for name in ["dev", "etc", "usr"] {
        folder(name);
        mount_bind_recursive(Path::new("/").join(name), name).unwrap();
    }
    ["bin", "lib", "lib64", "sbin"].iter().for_each(|name| symlinkat(format!("usr/{name}"), &root, *name).unwrap());
    ["tmp", "home", "proc", "workspace"].into_iter().for_each(folder);
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    mount("devpts", "dev/pts", "devpts", MountFlags::NOSUID, c"newinstance,ptmxmode=0666").unwrap();
    ["dev/shm", "tmp", "home"].iter().for_each(|at| mount("tmpfs", *at, "tmpfs", plain, c"mode=700").unwrap());
    mount("proc", "proc", "proc", plain, c"hidepid=ptraceable").unwrap();
    let cover = openat(&root, "empty", OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC, Mode::empty()).unwrap();
    drop(cover);
    (0..COVERS).for_each(|_| mount_bind("empty", COVERED).unwrap());
    let options = ["lowerdir", "upperdir", "workdir"].iter().zip([lower, upper, work]);
    let options: Vec<String> = options.map(|(name, path)| format!("{name}={}", path.display())).collect();
    let options = CString::new(options.join(",") + ",userxattr,volatile").unwrap();
    mount("overlay", "workspace", "overlay", plain, options.as_c_str()).unwrap();
    pivot_root(".", ".").unwrap();
    unmount(".", UnmountFlags::DETACH).unwrap();
    chdir("/").unwrap();
}

fn filter() -> BpfProgram {
    let arch = if cfg!(target_arch = "aarch64") { TargetArch::aarch64 } else { TargetArch::x86_64 };
    // Numbers that no system call has.
    let rules = (0..REFUSED).map(|number| (100_000 + number, Vec::new())).collect();
    let refused = SeccompAction::Errno(1);
    SeccompFilter::new(rules, SeccompAction::Allow, refused, arch).unwrap().try_into().unwrap()
}

/// Runs `sh -c true` and returns the exit code.
fn command() -> i32 {
    let arguments = ["sh", "-c", "true"].map(|word| CString::new(word).unwrap());
    let (arguments, environment) = (raw::ExecStrings::new(&arguments), raw::ExecStrings::new(&[]));
    let mut begin = || {
        let error = raw::execute(c"/bin/sh", &arguments, &environment);
        eprintln!("sh: {error}");
        127
    };
    raw::start(&mut begin).unwrap();
    raw::reap(raw::Wait::Until).unwrap().unwrap().code.unwrap_or(1)
}
