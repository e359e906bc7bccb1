//! The test of the walls from behind them: acts that must fail and acts that must work.
//!
//! Runs as a command runs, after everything was given up. It says what happened; whether that is as it should be
//! the host decides, with its own witnesses, as a wall that lies would lie here.
#![forbid(unsafe_code)]

use crate::raw::{self, Foreign};
use glovebox_jail::policy::{Confinement, Network, Policy};
use glovebox_jail::wire::{Act, Targets};
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
use std::time::Duration;

/// Tries everything and writes the acts as JSON to standard output. False when that was not possible.
pub(crate) fn run(policy: &Policy, targets: &Targets) -> bool {
    let mut acts = Acts::default();
    files(&mut acts, policy, targets);
    neighbours(&mut acts, targets);
    kernel(&mut acts);
    if policy.network != Network::Full {
        network(&mut acts, policy, targets);
    }
    required(&mut acts, policy);
    let text = serde_json::to_vec(&acts.0).unwrap_or_default();
    let mut output = io::stdout().lock();
    output.write_all(&text).and_then(|()| output.flush()).is_ok()
}

#[derive(Debug, Default)]
struct Acts(Vec<Act>);

impl Acts {
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
        self.0.push(Act { name: name.to_owned(), must_work, worked, answer });
    }
}

fn files(acts: &mut Acts, policy: &Policy, targets: &Targets) {
    acts.forbid("read-outside", open(targets.secret.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()));
    acts.forbid("list-outside", fs::read_dir(&targets.folder));
    acts.forbid("write-outside", fs::write(format!("{}/written", targets.folder), "x"));
    acts.forbid("link-outside", fs::hard_link(&targets.secret, format!("{}/.linked", policy.tmp)));
    acts.forbid("read-shadow", fs::read("/etc/shadow"));
    acts.forbid("write-system", fs::write("/usr/glovebox-written", "x"));
    acts.forbid("write-kernel-setting", fs::write("/proc/sys/kernel/hostname", "x"));
    let device = rustix::fs::makedev(0, 0);
    let place = format!("{}/.device", policy.tmp);
    acts.forbid("make-device", mknodat(CWD, place.as_str(), FileType::CharacterDevice, Mode::RUSR, device));
    let lent = format!("{}/.lent", policy.tmp);
    let mode = Mode::RWXU | Mode::SUID;
    acts.forbid("make-setuid", open(lent.as_str(), OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC, mode));
    acts.forbid("read-first-process", fs::read("/proc/1/environ"));
}

fn neighbours(acts: &mut Acts, targets: &Targets) {
    // An id that means somebody in here says nothing about the host; those in here must not be signaled by mistake.
    if let Some(pid) = Pid::from_raw(targets.process) {
        acts.forbid("signal-host", test_kill_process(pid));
    }
    acts.forbid("read-host-memory", fs::read(format!("/proc/{}/mem", targets.process)));
    acts.forbid("read-host-environment", fs::read(format!("/proc/{}/environ", targets.process)));
    acts.forbid("inherited-descriptor", read(rustix::stdio::stdin(), &mut [0_u8; 0]).and_then(|_| leftover()));
}

/// Any descriptor beside the three that a command is given.
fn leftover() -> Result<(), Errno> {
    let folder = fs::read_dir("/proc/self/fd").map_err(|_| Errno::NOENT)?;
    // The listing itself needs one.
    let others =
        folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).filter(|fd| *fd > 2);
    if others.count() > 1 { Ok(()) } else { Err(Errno::BADF) }
}

fn kernel(acts: &mut Acts) {
    acts.forbid("user-namespace", raw::unshare(UnshareFlags::NEWUSER));
    acts.forbid("mount", mount("tmpfs", "/tmp", "tmpfs", MountFlags::empty(), None));
    for call in Foreign::ALL {
        acts.forbid(call.name(), raw::call_foreign(call));
    }
    acts.forbid("vsock", socket_with(AddressFamily::VSOCK, SocketType::STREAM, SocketFlags::CLOEXEC, None));
    acts.forbid("packet-socket", socket_with(AddressFamily::PACKET, SocketType::DGRAM, SocketFlags::CLOEXEC, None));
    acts.forbid("capabilities", crate::credentials::demand_none().map_or_else(|_| Ok(()), |()| Err(Errno::PERM)));
    let identity = rustix::process::geteuid();
    acts.forbid(
        "root-inside",
        if identity.is_root() && crate::credentials::is_mapped() { Ok(()) } else { Err(Errno::PERM) },
    );
}

fn network(acts: &mut Acts, policy: &Policy, targets: &Targets) {
    let host = SocketAddrV4::new(Ipv4Addr::LOCALHOST, targets.port);
    acts.forbid("tcp-host", TcpStream::connect_timeout(&host.into(), Duration::from_millis(200)));
    acts.forbid("udp-host", ask(host));
    let outside = SocketAddrV4::new(Ipv4Addr::new(169, 254, 169, 254), 80);
    acts.forbid("tcp-outside", TcpStream::connect_timeout(&outside.into(), Duration::from_millis(200)));
    acts.forbid("unix-host", knock(SocketAddrUnix::new(targets.socket.as_str())));
    acts.forbid("abstract-host", knock(SocketAddrUnix::new_abstract_name(targets.abstract_socket.as_bytes())));
    if policy.confinement == Confinement::Landlock {
        let pair = socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        acts.forbid("datagram-pair", pair);
    }
}

/// A datagram and an answer to it: sending alone is no sign that it arrived.
fn ask(host: SocketAddrV4) -> io::Result<usize> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    socket.connect(host)?;
    socket.send(b"glovebox")?;
    socket.recv(&mut [0; 16])
}

fn knock(address: Result<SocketAddrUnix, Errno>) -> Result<(), Errno> {
    connect(socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?, &address?)
}

fn required(acts: &mut Acts, policy: &Policy) {
    for (name, folder) in
        [("write-workspace", policy.workspace.at.as_str()), ("write-tmp", &policy.tmp), ("write-home", &policy.home)]
    {
        acts.demand(name, write_and_rename(folder));
    }
    acts.demand("write-null", fs::write("/dev/null", "x"));
    acts.demand(
        "read-random",
        fs::File::open("/dev/urandom").and_then(|mut file| io::Read::read_exact(&mut file, &mut [0; 8])),
    );
    acts.demand("fork", fork());
    acts.demand(
        "socket-pair",
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).and_then(|(here, there)| {
            send(&here, b"x", rustix::net::SendFlags::empty())?;
            recv(&there, &mut [0_u8; 1], rustix::net::RecvFlags::empty())
        }),
    );
    if policy.confinement.has_namespaces() {
        acts.demand("loopback", loopback());
        acts.demand("terminal", terminal());
    }
}

fn write_and_rename(folder: &str) -> io::Result<()> {
    let (first, second) = (format!("{folder}/.glovebox-first"), format!("{folder}/.glovebox-second"));
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
