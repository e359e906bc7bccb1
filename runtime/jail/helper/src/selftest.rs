//! The self-test of the sandbox from inside: actions that must fail and actions that must work.
//!
//! The self-test runs like a command, after it has dropped all rights. It reports the result of each action. The host
//! compares the results with its own witnesses, because a broken sandbox could deceive this process.
#![expect(clippy::disallowed_methods, reason = "each of these reads must fail, or reads a device whose content ends")]
#![forbid(unsafe_code)]

use crate::raw::{self, ForbiddenCall};
use glovebox_jail_helper::policy::{Confinement, Network, Policy};
use glovebox_jail_helper::wire::{SelfTestCheck, Targets};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::io::{Errno, read};
use rustix::mount::{MountFlags, mount};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with, socketpair,
};
use rustix::process::{Pid, test_kill_process};
use rustix::thread::UnshareFlags;
use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

/// Tries all actions and writes the results as JSON to standard output. Returns false if that was not possible.
pub(crate) fn run(policy: &Policy, targets: &Targets) -> bool {
    let mut checks = SelfTestChecks::default();
    files(&mut checks, policy, targets);
    neighbours(&mut checks, targets);
    kernel(&mut checks);
    if policy.network != Network::Full {
        network(&mut checks, policy, targets);
    }
    required(&mut checks, policy);
    let text = serde_json::to_vec(&checks.0).unwrap_or_default();
    let mut output = io::stdout().lock();
    output.write_all(&text).and_then(|()| output.flush()).is_ok()
}

#[derive(Debug, Default)]
struct SelfTestChecks(Vec<SelfTestCheck>);

impl SelfTestChecks {
    fn forbid<T>(&mut self, name: &str, answer: Result<T, impl Into<io::Error>>) {
        self.note(name, false, answer);
    }

    fn demand<T>(&mut self, name: &str, answer: Result<T, impl Into<io::Error>>) {
        self.note(name, true, answer);
    }

    fn note<T>(&mut self, name: &str, must_work: bool, answer: Result<T, impl Into<io::Error>>) {
        let (worked, answer) = match answer {
            Ok(_) => (true, "ok".to_owned()),
            Err(error) => (false, error.into().to_string()),
        };
        self.0.push(SelfTestCheck { name: name.to_owned(), must_work, worked, answer });
    }
}

fn files(checks: &mut SelfTestChecks, policy: &Policy, targets: &Targets) {
    checks.forbid("read-outside", open(&targets.secret, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()));
    checks.forbid("list-outside", fs::read_dir(&targets.folder));
    checks.forbid("write-outside", fs::write(targets.folder.join("written"), "x"));
    checks.forbid("link-outside", fs::hard_link(&targets.secret, policy.tmp.join(".linked")));
    checks.forbid("read-shadow", fs::read("/etc/shadow"));
    checks.forbid("write-system", fs::write("/usr/glovebox-written", "x"));
    checks.forbid("write-kernel-setting", fs::write("/proc/sys/kernel/hostname", "x"));
    let device = rustix::fs::makedev(0, 0);
    let path = policy.tmp.join(".device");
    checks.forbid("make-device", mknodat(CWD, &path, FileType::CharacterDevice, Mode::RUSR, device));
    let path = policy.tmp.join(".lent");
    let mode = Mode::RWXU | Mode::SUID;
    checks.forbid("make-setuid", open(&path, OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC, mode));
    checks.forbid("read-first-process", fs::read("/proc/1/environ"));
}

fn neighbours(checks: &mut SelfTestChecks, targets: &Targets) {
    // Inside the jail, the id may belong to another process, which must not be signaled by mistake and is no evidence
    // about the host.
    if let Some(pid) = Pid::from_raw(targets.process) {
        checks.forbid("signal-host", test_kill_process(pid));
    }
    checks.forbid("read-host-memory", fs::read(format!("/proc/{}/mem", targets.process)));
    checks.forbid("read-host-environment", fs::read(format!("/proc/{}/environ", targets.process)));
    checks.forbid("inherited-descriptor", read(rustix::stdio::stdin(), &mut [0_u8; 0]).and_then(|_| leftover()));
}

/// Returns success if a descriptor is open other than the three that a command gets.
fn leftover() -> Result<(), Errno> {
    let folder = fs::read_dir("/proc/self/fd").map_err(|_| Errno::NOENT)?;
    // Listing the folder needs one descriptor itself.
    let others =
        folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).filter(|fd| *fd > 2);
    if others.count() > 1 { Ok(()) } else { Err(Errno::BADF) }
}

fn kernel(checks: &mut SelfTestChecks) {
    checks.forbid("user-namespace", raw::unshare(UnshareFlags::NEWUSER));
    checks.forbid("mount", mount("tmpfs", "/tmp", "tmpfs", MountFlags::empty(), None));
    for call in ForbiddenCall::ALL {
        checks.forbid(call.name(), raw::call_foreign(call));
    }
    checks.forbid("vsock", socket_with(AddressFamily::VSOCK, SocketType::STREAM, SocketFlags::CLOEXEC, None));
    checks.forbid("packet-socket", socket_with(AddressFamily::PACKET, SocketType::DGRAM, SocketFlags::CLOEXEC, None));
    checks.forbid("capabilities", crate::credentials::demand_none().map_or_else(|_| Ok(()), |()| Err(Errno::PERM)));
    let identity = rustix::process::geteuid();
    checks.forbid(
        "root-inside",
        if identity.is_root() && crate::credentials::is_mapped() { Ok(()) } else { Err(Errno::PERM) },
    );
}

fn network(checks: &mut SelfTestChecks, policy: &Policy, targets: &Targets) {
    let host = SocketAddrV4::new(Ipv4Addr::LOCALHOST, targets.port);
    checks.forbid("tcp-host", TcpStream::connect_timeout(&host.into(), Duration::from_millis(200)));
    checks.forbid("udp-host", exchange_datagrams(host));
    let outside = SocketAddrV4::new(Ipv4Addr::new(169, 254, 169, 254), 80);
    checks.forbid("tcp-outside", TcpStream::connect_timeout(&outside.into(), Duration::from_millis(200)));
    checks.forbid("unix-host", connect_unix(SocketAddrUnix::new(&targets.socket)));
    checks.forbid("abstract-host", connect_unix(SocketAddrUnix::new_abstract_name(targets.abstract_socket.as_bytes())));
    if policy.confinement == Confinement::Landlock {
        let pair = socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        checks.forbid("datagram-pair", pair);
    }
}

/// Sends a datagram and receives the answer, because sending alone does not prove that it arrived.
fn exchange_datagrams(host: SocketAddrV4) -> io::Result<usize> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    socket.connect(host)?;
    socket.send(b"glovebox")?;
    socket.recv(&mut [0; 16])
}

fn connect_unix(address: Result<SocketAddrUnix, Errno>) -> Result<(), Errno> {
    connect(socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?, &address?)
}

fn required(checks: &mut SelfTestChecks, policy: &Policy) {
    for (name, folder) in
        [("write-workspace", &policy.workspace.at), ("write-tmp", &policy.tmp), ("write-home", &policy.home)]
    {
        checks.demand(name, write_and_rename(folder));
    }
    checks.demand("write-null", fs::write("/dev/null", "x"));
    checks.demand(
        "read-random",
        fs::File::open("/dev/urandom").and_then(|mut file| io::Read::read_exact(&mut file, &mut [0; 8])),
    );
    checks.demand("fork", fork());
    checks.demand(
        "socket-pair",
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).and_then(|(here, there)| {
            send(&here, b"x", rustix::net::SendFlags::empty())?;
            recv(&there, &mut [0_u8; 1], rustix::net::RecvFlags::empty())
        }),
    );
    if policy.confinement.has_namespaces() {
        checks.demand("loopback", loopback());
        checks.demand("terminal", terminal());
    }
}

fn write_and_rename(folder: &Path) -> io::Result<()> {
    let (first, second) = (folder.join(".glovebox-first"), folder.join(".glovebox-second"));
    fs::write(&first, "x")?;
    fs::rename(&first, &second)?;
    fs::remove_file(&second)
}

fn fork() -> Result<(), Errno> {
    match raw::fork()? {
        None => raw::exit_now(7),
        Some(child) => match raw::reap(raw::Wait::Until)? {
            Some(reaped) if reaped.pid == child && reaped.code == Some(7) => Ok(()),
            _ => Err(Errno::CHILD),
        },
    }
}

fn loopback() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    client.write_all(b"x")?;
    io::Read::read_exact(&mut server, &mut [0])
}

fn terminal() -> Result<(), Errno> {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&main)?;
    unlockpt(&main)?;
    open(ptsname(&main, Vec::new())?, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).map(drop)
}
