//! Confinement by `/usr/bin/bwrap`, for systems that allow namespaces only to that program.
//!
//! The helper writes the arguments of `bwrap` into a memfd, so that `/proc` shows no part of the policy. Then it
//! executes `bwrap`, which starts the helper again inside the namespaces. There, the helper receives the same policy
//! again and adds the confinement that `bwrap` lacks. `bwrap` is never looked up in `PATH`: only the distribution's
//! program has the permission. Its errors go into a memfd that the host reads. The rights of a set-user-id `bwrap` are
//! dropped, because with them it cannot limit the size of a tmpfs.
#![forbid(unsafe_code)]

use crate::bounds::enter_cgroups;
use crate::fault::{At, refused};
use crate::mounts::{ETC, SYSTEM};
use crate::raw::{self, ExecStrings};
use crate::reaper::{self, KillScope};
use crate::stores::Stores;
use glovebox_jail_helper::control::send_frame;
use glovebox_jail_helper::policy::{Bind, HOST_NAME, Network, Policy, Source};
use glovebox_jail_helper::wire::{Failure, Reply};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, SeekFrom, memfd_create, open, readlinkat, seek, stat};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, geteuid, getpid, pidfd_open};
use rustix::thread::set_no_new_privs;
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::path::Path;

const PROGRAM: &str = "/usr/bin/bwrap";
/// Path of the helper inside the jail.
const INSIDE: &str = "/.glovebox-jail";
/// First argument of the helper inside the jail. The second argument is the PID namespace of the helper outside.
const INSIDE_BWRAP: &str = "inside-bwrap";

/// The helper inside the namespaces of `bwrap`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inside {
    outside_namespace: Option<String>,
}

impl Inside {
    /// Reads the arguments of this process. Returns `None` if `bwrap` did not start it.
    pub(crate) fn for_this_process() -> Option<Self> {
        let mut arguments = std::env::args().skip(1);
        let is_inside = arguments.next().is_some_and(|word| word == INSIDE_BWRAP);
        is_inside.then(|| Self { outside_namespace: arguments.next() })
    }

    /// Opens the stores of the namespaces, which belong to the jail alone.
    pub(crate) fn stores(&self, policy: &Policy) -> Result<Stores, Failure> {
        let proc = open("/proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        Stores::open(proc.at("open /proc")?, policy)
    }

    /// Returns the processes that a kill by this process reaches. Only a PID namespace that differs from the one
    /// outside proves that a kill of all processes affects only the jail.
    pub(crate) fn reach(&self) -> KillScope {
        let is_other = |outside: &str| reaper::pid_namespace().is_ok_and(|own| own != outside);
        if self.outside_namespace.as_deref().is_some_and(is_other) { KillScope::Domain } else { KillScope::Descendants }
    }
}

/// Executes `bwrap`. Returns only if that fails.
pub(crate) fn enter(control: &OwnedFd, policy: &Policy) -> Result<(), Failure> {
    enter_cgroups(policy)?;
    crate::credentials::clear_groups()?;
    let image = open("/proc/self/exe", OFlags::RDONLY, Mode::empty()).at("open /proc/self/exe")?;
    let mut open_files = Vec::new();
    let mut file_of = |content: &[u8]| -> Result<i32, Failure> {
        let file = memory_file(content)?;
        let number = file.as_raw_fd();
        open_files.push(file);
        Ok(number)
    };
    let words = arguments(policy, image.as_raw_fd(), &mut file_of)?;
    let list = memory_file(&words.iter().flat_map(|word| word.bytes().chain([0])).collect::<Vec<u8>>())?;
    give_up_set_user_id()?;
    let own = pidfd_open(getpid(), PidfdFlags::empty()).at("open a pidfd")?;
    let errors = memfd_create("bwrap-errors", MemfdFlags::CLOEXEC).at("make a memory file")?;
    rustix::stdio::dup2_stderr(&errors).at("redirect standard error")?;
    let beside = [own.as_fd(), errors.as_fd()];
    send_frame(control, &Reply::Spawned, &beside).map_err(|error| refused("send a reply", error.to_string()))?;
    // `bwrap` reads its command only from its arguments. This command reveals no part of the policy.
    let outside = reaper::pid_namespace().at("read the PID namespace")?;
    let arguments = [PROGRAM, "--args", &list.as_raw_fd().to_string(), "--", INSIDE, INSIDE_BWRAP, &outside];
    let arguments: Vec<CString> =
        arguments.into_iter().map(CString::new).collect::<Result<_, _>>().at("set up bwrap")?;
    let program = CString::new(PROGRAM).at("set up bwrap")?;
    Err(raw::execute(&program, &ExecStrings::new(&arguments), &ExecStrings::new(&[]))).at(format!("exec {PROGRAM}"))
}

/// Drops the rights of a set-user-id `bwrap`. Root gains nothing from the set-user-id bit.
fn give_up_set_user_id() -> Result<(), Failure> {
    let gives_rights = stat(PROGRAM).is_ok_and(|file| Mode::from_raw_mode(file.st_mode).contains(Mode::SUID));
    if gives_rights && !geteuid().is_root() { set_no_new_privs(true).at("set no_new_privs") } else { Ok(()) }
}

/// Creates a memfd that stays open across the exec.
fn memory_file(content: &[u8]) -> Result<OwnedFd, Failure> {
    let mut file = File::from(memfd_create("bwrap", MemfdFlags::empty()).at("make a memory file")?);
    file.write_all(content).at("make a memory file")?;
    seek(&file, SeekFrom::Start(0)).at("make a memory file")?;
    Ok(file.into())
}

/// Returns the arguments for `bwrap`. Small files are passed as descriptors.
fn arguments(
    policy: &Policy,
    image: i32,
    file_of: &mut dyn FnMut(&[u8]) -> Result<i32, Failure>,
) -> Result<Vec<String>, Failure> {
    let Source::Directory(source) = &policy.workspace.source else {
        return Err(refused("set up bwrap", "the workspace must be a copy: layers need tier `full`"));
    };
    if policy.network == Network::Proxy {
        return Err(refused("set up bwrap", "a proxy needs tier `full`"));
    }
    let mut words = Arguments::default();
    words.add(&[
        "--die-with-parent",
        "--new-session",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
    ]);
    words.add(&["--hostname", HOST_NAME, "--unshare-cgroup-try", "--cap-drop", "ALL", "--clearenv"]);
    if policy.network != Network::Full {
        words.add(&["--unshare-net"]);
    }
    words.add(&["--uid", &policy.uid.to_string(), "--gid", &policy.gid.to_string()]);
    words.system();
    words.add(&["--proc", "/proc", "--dev", "/dev"]);
    for (mode, path) in [("1777", Path::new("/dev/shm")), ("1777", &policy.tmp), ("0700", &policy.home)] {
        // `bwrap` refuses 0, and for the kernel 0 means no limit.
        let bytes = policy.bounds.tmp_bytes.max(4096).to_string();
        words.add(&["--perms", mode, "--size", &bytes, "--tmpfs", &text(path)]);
    }
    let resolver = (policy.network == Network::Full).then_some("resolv.conf");
    for path in ETC.iter().copied().chain(resolver).map(|name| format!("/etc/{name}")) {
        words.add(&["--ro-bind-try", &path, &path]);
    }
    policy.binds.iter().for_each(|bind| words.bind(bind));
    words.add(&["--bind", &text(source), &text(&policy.workspace.at)]);
    for above in policy.workspace.above_inner() {
        words.add(&["--bind", &text(&source.join(above)), &text(&policy.workspace.at.join(above))]);
    }
    policy.workspace.inner.iter().for_each(|bind| words.bind(bind));
    for (path, content) in &policy.files {
        words.add(&["--perms", "0644", "--ro-bind-data", &file_of(content.as_bytes())?.to_string(), &text(path)]);
    }
    words.add(&["--perms", "0555", "--ro-bind-data", &image.to_string(), INSIDE, "--remount-ro", "/"]);
    words.add(&["--chdir", &text(&policy.workspace.at)]);
    Ok(words.0)
}

/// Returns a path as an argument. Every path of a policy is valid UTF-8, because the policy is JSON.
fn text(path: &Path) -> String {
    path.display().to_string()
}

#[derive(Debug, Default)]
struct Arguments(Vec<String>);

impl Arguments {
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
        self.add(&[option, &text(&bind.source), &text(&bind.at)]);
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
