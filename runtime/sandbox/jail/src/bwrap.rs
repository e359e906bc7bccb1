//! Walls that `/usr/bin/bwrap` makes, on systems that let only it make namespaces.
//!
//! The helper writes its words into a memory file, so that nothing of the policy stands in a process's arguments, and becomes
//! `bwrap`, which starts the helper again inside. There it takes the same policy a second time and adds what `bwrap` does not do.
//! Never looked up in a path: only the distribution's own program has the permission. What it complains of goes into a file in memory
//! that the host can read. Rights of a set-user-id file are not taken: with them `bwrap` bounds no file system in memory.
#![forbid(unsafe_code)]

use crate::fault::{At, refused};
use crate::mounts::{ETC, SYSTEM};
use crate::raw;
use crate::stage::INSIDE_BWRAP;
use glovebox_jail::control::send_frame;
use glovebox_jail::policy::{Bind, Network, Policy, Source};
use glovebox_jail::wire::{Failure, Word};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, SeekFrom, memfd_create, open, readlinkat, seek, stat};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, geteuid, getpid, pidfd_open};
use rustix::thread::set_no_new_privs;
use std::ffi::CString;
use std::fs::File;
use std::io::Write;

const PROGRAM: &str = "/usr/bin/bwrap";
/// Where the helper is inside.
const INSIDE: &str = "/.glovebox-jail";

/// Becomes `bwrap`. Comes back only when that was not possible.
pub(crate) fn enter(control: &OwnedFd, policy: &Policy) -> Result<(), Failure> {
    policy.cgroup_procs.iter().try_for_each(|file| std::fs::write(file, "0").at(format!("enter cgroup {file}")))?;
    crate::credentials::clear_groups()?;
    let image = open("/proc/self/exe", OFlags::RDONLY, Mode::empty()).at("open own program")?;
    let mut open_files = Vec::new();
    let mut file_of = |content: &[u8]| -> Result<i32, Failure> {
        let file = memory_file(content)?;
        let number = file.as_raw_fd();
        open_files.push(file);
        Ok(number)
    };
    let words = words(policy, image.as_raw_fd(), &mut file_of)?;
    let list = memory_file(&words.iter().flat_map(|word| word.bytes().chain([0])).collect::<Vec<u8>>())?;
    forgo_its_rights()?;
    let own = pidfd_open(getpid(), PidfdFlags::empty()).at("pidfd")?;
    let complaint = memfd_create("complaint", MemfdFlags::CLOEXEC).at("memory file")?;
    rustix::stdio::dup2_stderr(&complaint).at("standard error")?;
    let beside = [own.as_fd(), complaint.as_fd()];
    send_frame(control, &Word::Born, &beside).map_err(|error| refused("control", error.to_string()))?;
    // The command cannot stand in the list; it says nothing of the policy.
    let outside = crate::reaper::namespace_of_processes().at("process namespace")?;
    let arguments = [PROGRAM, "--args", &list.as_raw_fd().to_string(), "--", INSIDE, INSIDE_BWRAP, &outside];
    let arguments: Vec<CString> = arguments.into_iter().map(CString::new).collect::<Result<_, _>>().at("bwrap")?;
    let program = CString::new(PROGRAM).at("bwrap")?;
    Err(raw::execute(&program, &arguments, &[])).at(format!("exec {PROGRAM}"))
}

/// Makes a set-user-id `bwrap` an ordinary one. Root gains nothing from it.
fn forgo_its_rights() -> Result<(), Failure> {
    let gives_rights = stat(PROGRAM).is_ok_and(|file| Mode::from_raw_mode(file.st_mode).contains(Mode::SUID));
    if gives_rights && !geteuid().is_root() { set_no_new_privs(true).at("no_new_privs") } else { Ok(()) }
}

/// A file in memory that survives the exec.
fn memory_file(content: &[u8]) -> Result<OwnedFd, Failure> {
    let mut file = File::from(memfd_create("bwrap", MemfdFlags::empty()).at("memory file")?);
    file.write_all(content).at("memory file")?;
    seek(&file, SeekFrom::Start(0)).at("memory file")?;
    Ok(file.into())
}

/// The words for `bwrap`; small files are handed over by descriptor.
fn words(
    policy: &Policy,
    image: i32,
    file_of: &mut dyn FnMut(&[u8]) -> Result<i32, Failure>,
) -> Result<Vec<String>, Failure> {
    let Source::Directory(source) = &policy.workspace.source else {
        return Err(refused("bwrap", "the workspace must be a copy: layers need full walls"));
    };
    if policy.network == Network::Proxy {
        return Err(refused("bwrap", "a proxy needs full walls"));
    }
    let mut words = Words::default();
    words.add(&[
        "--die-with-parent",
        "--new-session",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
    ]);
    words.add(&["--unshare-cgroup-try", "--cap-drop", "ALL", "--clearenv"]);
    if policy.network != Network::Full {
        words.add(&["--unshare-net"]);
    }
    words.add(&["--uid", &policy.uid.to_string(), "--gid", &policy.gid.to_string()]);
    words.system();
    words.add(&["--proc", "/proc", "--dev", "/dev"]);
    for (mode, path) in [("1777", "/dev/shm"), ("1777", &policy.tmp), ("0700", &policy.home)] {
        // 0 is no size for it, and would mean without bound for the kernel.
        let bytes = policy.bounds.tmp_bytes.max(4096).to_string();
        words.add(&["--perms", mode, "--size", &bytes, "--tmpfs", path]);
    }
    let resolver = (policy.network == Network::Full).then_some("resolv.conf");
    for path in ETC.iter().copied().chain(resolver).map(|name| format!("/etc/{name}")) {
        words.add(&["--ro-bind-try", &path, &path]);
    }
    policy.binds.iter().for_each(|bind| words.bind(bind));
    words.add(&["--bind", source, &policy.workspace.at]);
    for above in policy.workspace.above_inner() {
        words.add(&["--bind", &format!("{source}/{above}"), &format!("{}/{above}", policy.workspace.at)]);
    }
    policy.workspace.inner.iter().for_each(|bind| words.bind(bind));
    for (path, content) in &policy.files {
        words.add(&["--perms", "0644", "--ro-bind-data", &file_of(content.as_bytes())?.to_string(), path]);
    }
    words.add(&["--perms", "0555", "--ro-bind-data", &image.to_string(), INSIDE, "--remount-ro", "/"]);
    words.add(&["--chdir", &policy.workspace.at]);
    Ok(words.0)
}

#[derive(Debug, Default)]
struct Words(Vec<String>);

impl Words {
    fn add(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|word| (*word).to_owned()));
    }

    fn bind(&mut self, bind: &Bind) {
        let option = match (bind.writable, bind.optional) {
            (false, false) => "--ro-bind",
            (false, true) => "--ro-bind-try",
            (true, false) => "--bind",
            (true, true) => "--bind-try",
        };
        self.add(&[option, &bind.source, &bind.at]);
    }

    fn system(&mut self) {
        for path in SYSTEM {
            match readlinkat(CWD, *path, Vec::new()).map(|to| to.into_string()) {
                Ok(Ok(to)) => self.add(&["--symlink", &to, path]),
                Err(Errno::NOENT) => {}
                _ => self.add(&["--ro-bind", path, path]),
            }
        }
    }
}

#[cfg(test)]
mod tests;
