//! A host for the built helper: it uses the protocol over a socket pair and keeps every descriptor close-on-exec.

use glovebox_jail_helper::control::{receive_frame, send_frame};
use glovebox_jail_helper::policy::{Bounds, Confinement, Network, Policy, Source, Workspace};
use glovebox_jail_helper::wire::{Command, CommandEnd, Enforcement, Failure, Program, Reply, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// Maximum wait for an event, long enough for a loaded machine. Only a failing test waits this long.
const TIMEOUT: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

/// The folders of one test.
pub(crate) struct Fixture {
    scratch: TempDir,
}

impl Fixture {
    /// Creates empty layers, and a workspace with one file.
    pub(crate) fn new() -> Self {
        let scratch = tempfile::tempdir().expect("a folder");
        let fixture = Self { scratch };
        for name in ["lower", "mask", "upper", "work", "copy", "home", "tmp", "outside"] {
            fs::create_dir(fixture.path(name)).expect("a folder");
        }
        for workspace in ["lower", "copy"] {
            fs::write(fixture.path(workspace).join("file.txt"), "content\n").expect("a file");
        }
        fs::write(fixture.path("outside/secret"), "secret\n").expect("a file");
        fixture
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().canonicalize().expect("a path").join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }

    /// Returns a policy with this confinement over the folders. The workspace has layers if the confinement supports
    /// them.
    pub(crate) fn policy(&self, confinement: Confinement) -> Policy {
        let full = confinement == Confinement::Full;
        let layers = Source::Overlay {
            lower: vec![self.path("mask"), self.path("lower")],
            upper: self.path("upper"),
            work: self.path("work"),
        };
        let workspace = Workspace {
            at: if full { "/home/dev/project".into() } else { self.path("copy") },
            source: if full { layers } else { Source::Directory(self.path("copy")) },
            inner: Vec::new(),
        };
        Policy {
            confinement,
            workspace,
            binds: Vec::new(),
            files: vec![
                ("/etc/passwd".into(), "dev:x:1000:1000::/home/dev:/bin/sh\n".into()),
                ("/etc/group".into(), "dev:x:1000:\n".into()),
                ("/etc/hosts".into(), "127.0.0.1 localhost\n".into()),
            ],
            home: if full { "/home/dev".into() } else { self.path("home") },
            tmp: if full { "/tmp".into() } else { self.path("tmp") },
            uid: 1000,
            gid: 1000,
            network: Network::None,
            sockets: false,
            bounds: bounds(),
            cgroup_procs: Vec::new(),
        }
    }
}

pub(crate) fn bounds() -> Bounds {
    Bounds {
        cpu_ms: 60_000,
        command_memory_bytes: 4 << 30,
        is_memory_counted: true,
        processes: 400,
        descriptors: 256,
        file_bytes: 64 << 20,
        tmp_bytes: 16 << 20,
    }
}

/// A jail that is ready, or that was and has ended.
pub(crate) struct Jail {
    pub(crate) control: Option<OwnedFd>,
    pub(crate) birth: OwnedFd,
    pub(crate) enforcement: Enforcement,
    pub(crate) beside: Vec<OwnedFd>,
    pub(crate) child: Child,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) ended: CommandEnd,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Jail {
    pub(crate) fn start(policy: &Policy) -> Self {
        Self::try_start(policy).unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    pub(crate) fn try_start(policy: &Policy) -> Result<Self, Failure> {
        let (control, mut child) = spawn();
        send_frame(&control, &Request::Setup(Box::new(policy.clone())), &[]).expect("sent");
        let birth = match next(&control) {
            (Reply::Spawned, mut beside) => beside.pop().expect("a pidfd"),
            (Reply::Failed(failure), _) => {
                child.wait().expect("ours");
                return Err(failure);
            }
            other => panic!("{other:?}"),
        };
        let mut reply = next(&control);
        if let (Reply::Stores, stores) = &reply {
            assert_eq!(stores.len(), 6, "lists and folders");
            reply = next(&control);
        }
        match reply {
            (Reply::Ready(enforcement), beside) => {
                Ok(Self { control: Some(control), birth, enforcement, beside, child })
            }
            (Reply::Failed(failure), _) => {
                child.wait().expect("ours");
                Err(failure)
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn request(&self, request: &Request, descriptors: &[rustix::fd::BorrowedFd<'_>]) {
        send_frame(self.control.as_ref().expect("open"), request, descriptors).expect("sent");
    }

    pub(crate) fn reply(&self) -> (Reply, Vec<OwnedFd>) {
        next(self.control.as_ref().expect("open"))
    }

    /// Starts a command. Returns the read ends of its output and its error.
    pub(crate) fn begin(&self, command: Command, input: &str) -> Result<(File, File), Failure> {
        let (stdin, mut feed) = std::io::pipe().expect("a pipe");
        let (out, stdout) = std::io::pipe().expect("a pipe");
        let (err, stderr) = std::io::pipe().expect("a pipe");
        self.request(&Request::Run(command), &[stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]);
        feed.write_all(input.as_bytes()).expect("room");
        drop((stdin, stdout, stderr, feed));
        match self.reply() {
            (Reply::Started, _) => Ok((OwnedFd::from(out).into(), OwnedFd::from(err).into())),
            (Reply::Failed(failure), _) => Err(failure),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn end(&self) -> CommandEnd {
        match self.reply() {
            (Reply::Ended(ended), _) => ended,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn try_run(&self, command: Command, input: &str) -> Result<CommandResult, Failure> {
        let (mut stdout, mut stderr) = self.begin(command, input)?;
        let (mut out, mut err) = (Vec::new(), Vec::new());
        stdout.read_to_end(&mut out).expect("a pipe");
        stderr.read_to_end(&mut err).expect("a pipe");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(CommandResult { ended: self.end(), out: text(out), err: text(err) })
    }

    pub(crate) fn shell(&self, script: &str) -> CommandResult {
        self.try_run(shell(script), "").unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    /// Closes the host's end of the socket and waits until the first process has ended.
    pub(crate) fn close(&mut self) {
        self.control = None;
        assert!(gone(&self.birth), "the jail outlives its lifeline");
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        self.control = None;
        self.child.wait().expect("ours");
    }
}

/// Starts a helper that has received no request yet.
pub(crate) fn spawn() -> (OwnedFd, Child) {
    let (here, there) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("sockets");
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_glovebox-jail"))
        .env_clear()
        .current_dir("/")
        .stdin(there)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the helper");
    (here, child)
}

pub(crate) fn next(control: &OwnedFd) -> (Reply, Vec<OwnedFd>) {
    let ready = poll(&mut [PollFd::new(control, PollFlags::IN)], Some(&TIMEOUT)).expect("a socket");
    assert_eq!(ready, 1, "the helper says nothing");
    receive_frame(control).expect("a frame").expect("a helper that is there")
}

/// Returns true if a process ends within the time limit.
pub(crate) fn gone(process: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&TIMEOUT)).expect("a pidfd") == 1
}

pub(crate) fn shell(script: &str) -> Command {
    Command {
        program: Program::Search { name: "sh".to_owned(), folders: vec!["/usr/bin".into(), "/bin".into()] },
        arguments: vec!["-c".to_owned(), script.to_owned()],
        env: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
        cwd: String::new(),
    }
}

/// Returns the names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
