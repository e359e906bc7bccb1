//! Canaries, listeners and a victim on the host, which no attack may reach, and the detection of changes to them.
//!
//! A battery creates all of them in a new folder and removes the folder afterwards. Invariant: [`HostFixture::touched`]
//! reports each change once.

mod marks;

pub use marks::{Canary, Mark};

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

const NAP: Duration = Duration::from_millis(5);

/// The line that the victim prints when it starts. It says where the victim holds its canaries.
#[derive(Debug, Deserialize)]
struct VictimReport {
    process: u32,
    address: usize,
    bytes: usize,
    descriptor: usize,
    shm: Option<usize>,
    queue: Option<String>,
}

/// The parts of the host that an attack must not reach.
pub struct HostFixture {
    victim: Victim,
    listeners: Listeners,
    canary: Canary,
    words: BTreeMap<&'static str, String>,
    /// State of every file when it was last checked.
    seen: BTreeMap<PathBuf, String>,
    victim_state: String,
    /// The last field, because everything else is in these folders and must be dropped first.
    folders: Folders,
}

/// The folders of one fixture. Dropping this value removes the folders and their content.
struct Folders {
    mark: Mark,
    folder: PathBuf,
    /// A folder next to the other one. Inside the sandbox, neither the other folder nor its path may exist.
    attacker: PathBuf,
}

struct Listeners {
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    unix: UnixListener,
    datagram: UnixDatagram,
    abstract_name: UnixListener,
    /// Listens where `glovebox serve` listens by default: on a port of the loopback.
    server: TcpListener,
    /// Listens as `glovebox serve --socket` does: only the user may open the file.
    server_socket: UnixListener,
    /// A socket that is bound but does not listen, so that the kernel assigns its port to no other process.
    _free: OwnedFd,
    port: u16,
}

struct Victim {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    report: VictimReport,
}

impl HostFixture {
    /// Creates everything in a new folder below `parent`, with a copy of the hostile program.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub fn create(parent: &Path, program: &[u8]) -> io::Result<Self> {
        let (folders, canary) = (Folders::make(parent)?, Canary::new()?);
        let (folder, mark) = (&folders.folder, &folders.mark);
        let (hostile, secret) = (folders.attacker.join("glovebox-hostile"), folder.join("outside/secret.txt"));
        write_program(&hostile, program)?;
        fs::write(folders.attacker.join("cache.txt"), "cached")?;
        for file in [&secret, &folder.join("outside/home/.ssh/id_rsa")] {
            fs::write(file, &canary)?;
        }
        runs(&folder.join("outside"), &canary)?;
        project(&folder.join("project"), &canary)?;
        let listeners = Listeners::open(folder, mark)?;
        let victim = Victim::start(&hostile, &canary, &secret, mark)?;
        let _where_there_is_one = fs::write(folders.shared_memory(), &canary);
        let words = words(&folders, &listeners, &victim.report);
        let (seen, victim_state) = (BTreeMap::new(), String::new());
        let mut fixture = Self { victim, listeners, canary, words, seen, victim_state, folders };
        fixture.seen = fixture.look();
        fixture.victim_state = fixture.victim.state();
        Ok(fixture)
    }

    /// Returns the folder of everything that must stay hidden: canaries, the project, the sandbox's own files.
    pub fn folder(&self) -> &Path {
        &self.folders.folder
    }

    /// Returns the workspace as it is before any stage.
    pub fn project(&self) -> PathBuf {
        self.folders.folder.join("project")
    }

    /// Returns a folder for the sandbox's own files.
    pub fn stage(&self) -> PathBuf {
        self.folders.folder.join("stage")
    }

    /// Returns the folder with the hostile program, which is readable inside the sandbox.
    pub fn attacker(&self) -> &Path {
        &self.folders.attacker
    }

    /// Returns the path of a file that contains the canary.
    pub fn secret(&self) -> PathBuf {
        self.folders.folder.join("outside/secret.txt")
    }

    /// Returns the secret text.
    pub fn canary(&self) -> &Canary {
        &self.canary
    }

    /// Returns the name by which the host finds processes of an attack.
    pub fn mark(&self) -> &Mark {
        &self.folders.mark
    }

    /// Returns a port on which no process of the host listens.
    pub fn port(&self) -> u16 {
        self.listeners.port
    }

    /// Replaces the placeholders in an argument or shell text of an attack. `project` is the path of the workspace
    /// inside the sandbox.
    pub fn fill(&self, text: &str, project: &Path) -> String {
        let project = project.display().to_string();
        let mut filled = text.replace("{project}", &project).replace("{out}", &format!("{project}/out"));
        for (name, value) in &self.words {
            filled = filled.replace(&format!("{{{name}}}"), value);
        }
        filled
    }

    /// Returns what has changed or was reached since the last call: files, listeners, the victim.
    pub fn touched(&mut self) -> Vec<String> {
        let mut found = self.listeners.visited();
        let now = self.look();
        for path in self.seen.keys().chain(now.keys()) {
            if self.seen.get(path) != now.get(path) {
                let what = path.strip_prefix(&self.folders.folder).unwrap_or(path);
                found.push(format!("`{}` was changed", what.display()));
            }
        }
        self.seen = now;
        let state = self.victim.state();
        if state != self.victim_state {
            found.push(format!("the victim: {} became {state}", self.victim_state));
            self.victim_state = state;
        }
        found.sort();
        found.dedup();
        found
    }

    fn look(&self) -> BTreeMap<PathBuf, String> {
        let mut seen = BTreeMap::new();
        for part in [&self.folders.folder.join("outside"), &self.folders.folder.join("project"), &self.folders.attacker]
        {
            remember(part, &mut seen);
        }
        seen.extend(planted(&self.folders.mark).map(|path| (path, "there".to_owned())));
        seen
    }
}

impl Folders {
    fn make(parent: &Path) -> io::Result<Self> {
        let mark = Mark::new()?;
        let (folder, attacker) = (parent.join(mark.as_str()), parent.join(format!("{}-program", mark.as_str())));
        let folders = Self { mark, folder, attacker };
        fs::create_dir(&folders.attacker)?;
        for part in ["outside/home/.ssh", "outside/open", "project", "stage"] {
            fs::create_dir_all(folders.folder.join(part))?;
        }
        fs::set_permissions(folders.folder.join("outside/open"), fs::Permissions::from_mode(0o777))?;
        Ok(folders)
    }

    /// Returns the path of named shared memory of the host.
    fn shared_memory(&self) -> PathBuf {
        Path::new("/dev/shm").join(self.mark.as_str())
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        let _where_there_was_one = fs::remove_file(self.shared_memory());
        let _gone = fs::remove_dir_all(&self.folder);
        let _gone = fs::remove_dir_all(&self.attacker);
    }
}

impl Drop for Victim {
    /// Closes the input of the victim, which then ends and removes its queue.
    fn drop(&mut self) {
        drop(self.input.take());
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(NAP);
        }
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn write_program(hostile: &Path, program: &[u8]) -> io::Result<()> {
    fs::write(hostile, program)?;
    fs::set_permissions(hostile, fs::Permissions::from_mode(0o755))
}

/// Creates the files that Glovebox keeps for its user: the user's key, the owner's token of the server, and another run
/// with hold-outs, withheld answers and a journal.
fn runs(outside: &Path, canary: &Canary) -> io::Result<()> {
    for file in [
        "state/run.key",
        "state/serve/owner.token",
        "runs/other/journal.sqlite",
        "runs/other/judge/withheld.json",
        "runs/other/holdouts/files/scenarios/answer.sh",
    ] {
        let file = outside.join(file);
        fs::create_dir_all(file.parent().unwrap_or(outside))?;
        fs::write(file, canary)?;
    }
    fs::set_permissions(outside.join("state/serve/owner.token"), fs::Permissions::from_mode(0o600))
}

/// Creates the workspace: files in the write scope, files outside of it, a hidden file, and a file with the name of a
/// tool.
fn project(root: &Path, canary: &Canary) -> io::Result<()> {
    for (file, text) in [
        ("keep.txt", "kept\n"),
        ("tool", "a file\n"),
        (".github/workflows/ci.yml", "on: push\n"),
        ("out/own.txt", "own\n"),
        ("out/removable.txt", "removable\n"),
        ("out/folder/kept.txt", "kept\n"),
        ("guard/inner/kept.txt", "kept\n"),
        ("scenarios/holdout-canary.txt", canary.as_str()),
    ] {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap_or(root))?;
        fs::write(file, text)?;
    }
    Ok(())
}

/// Returns files that an attack planted in folders that every user may write to.
fn planted(mark: &Mark) -> impl Iterator<Item = PathBuf> {
    let planted = mark.planted();
    ["/tmp", "/var/tmp", "/dev/shm", "/etc", "/usr/bin", "/root"]
        .map(|folder| Path::new(folder).join(&planted))
        .into_iter()
        .filter(|path| path.symlink_metadata().is_ok())
}

fn remember(path: &Path, seen: &mut BTreeMap<PathBuf, String>) {
    let Ok(meta) = path.symlink_metadata() else { return };
    let mut hasher = DefaultHasher::new();
    if meta.is_file() {
        fs::read(path).unwrap_or_default().hash(&mut hasher);
    }
    let mut names = [0_u8; 512];
    let attributes = rustix::fs::llistxattr(path, &mut names).unwrap_or(0);
    names[..attributes.min(names.len())].hash(&mut hasher);
    let times = if meta.is_dir() { (0, 0) } else { (meta.mtime(), meta.mtime_nsec()) };
    let owner = (meta.uid(), meta.gid(), meta.nlink());
    seen.insert(path.to_owned(), format!("{:o} {owner:?} {times:?} {:x}", meta.mode(), hasher.finish()));
    if meta.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            remember(&entry.path(), seen);
        }
    }
}

fn words(folders: &Folders, listeners: &Listeners, victim: &VictimReport) -> BTreeMap<&'static str, String> {
    let Folders { mark, folder, attacker } = folders;
    let name = mark.as_str();
    let path = |part: &str| folder.join(part).to_string_lossy().into_owned();
    let number = |value: Option<usize>| value.map_or_else(|| "-1".to_owned(), |value| value.to_string());
    BTreeMap::from([
        ("secret", path("outside/secret.txt")),
        ("key", path("outside/home/.ssh/id_rsa")),
        ("home", path("outside/home")),
        ("outside", path("outside")),
        ("open", path("outside/open")),
        ("folder", folder.to_string_lossy().into_owned()),
        ("attacker", attacker.to_string_lossy().into_owned()),
        ("run_key", path("outside/state/run.key")),
        ("runs", path("outside/runs")),
        ("server", address(&listeners.server)),
        ("server_folder", path("outside/state/serve")),
        ("server_socket", path("outside/server.socket")),
        ("server_token", path("outside/state/serve/owner.token")),
        ("socket", path("outside/socket")),
        ("datagram", path("outside/datagram")),
        ("holdout_name", "holdout-canary".to_owned()),
        ("abstract", name.to_owned()),
        ("mark", name.to_owned()),
        ("planted", mark.planted()),
        ("shm_file", format!("/dev/shm/{name}")),
        ("victim", victim.process.to_string()),
        ("victim_address", victim.address.to_string()),
        ("victim_bytes", victim.bytes.to_string()),
        ("victim_descriptor", victim.descriptor.to_string()),
        ("shm", number(victim.shm)),
        ("queue", victim.queue.as_deref().unwrap_or("none").to_owned()),
        ("host", std::process::id().to_string()),
        ("tcp", address(&listeners.tcp)),
        ("tcp6", listeners.tcp6.as_ref().map_or_else(|| "[::1]:1".to_owned(), address)),
        ("udp", listeners.udp.local_addr().map_or_else(|_| String::new(), |at| format!("127.0.0.1:{}", at.port()))),
        ("lan", lan(&listeners.tcp)),
        ("port", listeners.port.to_string()),
    ])
}

fn address(listener: &TcpListener) -> String {
    listener.local_addr().map_or_else(
        |_| String::new(),
        |at| match at.is_ipv4() {
            true => format!("127.0.0.1:{}", at.port()),
            false => format!("[::1]:{}", at.port()),
        },
    )
}

/// Returns the address of the listener in the local network. Finding the route sends nothing.
fn lan(listener: &TcpListener) -> String {
    let own = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    let port = listener.local_addr().map_or(0, |at| at.port());
    own.map_or_else(|_| format!("127.0.0.2:{port}"), |own| format!("{}:{port}", own.ip()))
}

/// Reserves a free port (`SO_REUSEADDR`), so that an attack can bind it later.
fn hold_port() -> io::Result<(OwnedFd, u16)> {
    let held = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&held, true)?;
    bind(&held, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let port = SocketAddrV4::try_from(getsockname(&held)?)?.port();
    Ok((held, port))
}

impl Listeners {
    fn open(folder: &Path, mark: &Mark) -> io::Result<Self> {
        let (free, port) = hold_port()?;
        let all = Self {
            tcp: TcpListener::bind("0.0.0.0:0")?,
            tcp6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0")?,
            unix: UnixListener::bind(folder.join("outside/socket"))?,
            datagram: UnixDatagram::bind(folder.join("outside/datagram"))?,
            abstract_name: UnixListener::bind_addr(&UnixAddress::from_abstract_name(mark.as_str())?)?,
            server: TcpListener::bind("127.0.0.1:0")?,
            server_socket: UnixListener::bind(folder.join("outside/server.socket"))?,
            _free: free,
            port,
        };
        for file in ["outside/socket", "outside/datagram"] {
            fs::set_permissions(folder.join(file), fs::Permissions::from_mode(0o777))?;
        }
        fs::set_permissions(folder.join("outside/server.socket"), fs::Permissions::from_mode(0o600))?;
        all.tcp.set_nonblocking(true)?;
        all.tcp6.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
        all.udp.set_nonblocking(true)?;
        all.unix.set_nonblocking(true)?;
        all.datagram.set_nonblocking(true)?;
        all.abstract_name.set_nonblocking(true)?;
        all.server.set_nonblocking(true)?;
        all.server_socket.set_nonblocking(true)?;
        Ok(all)
    }

    /// Accepts everything that has arrived, and returns the listeners that were reached.
    fn visited(&self) -> Vec<String> {
        let mut buffer = [0; 16];
        let came = [
            ("the TCP listener", self.tcp.accept().is_ok()),
            ("the IPv6 listener", self.tcp6.as_ref().is_some_and(|listener| listener.accept().is_ok())),
            ("the UDP socket", self.udp.recv(&mut buffer).is_ok()),
            ("the Unix socket", self.unix.accept().is_ok()),
            ("the Unix datagram socket", self.datagram.recv(&mut buffer).is_ok()),
            ("the abstract socket", self.abstract_name.accept().is_ok()),
            ("the server's port", self.server.accept().is_ok()),
            ("the server's socket", self.server_socket.accept().is_ok()),
        ];
        came.into_iter().filter(|(_, came)| *came).map(|(name, _)| format!("{name} was reached")).collect()
    }
}

impl Victim {
    fn start(hostile: &Path, canary: &Canary, secret: &Path, mark: &Mark) -> io::Result<Self> {
        let mut command = Command::new(hostile);
        command.arg("victim").arg(canary.as_str()).arg(secret).arg(mark.as_str());
        command.env_clear().env("CANARY", canary.as_str());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = start(&mut command)?;
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        let mut output = output.ok_or_else(|| io::Error::other("the victim has no output"))?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        let report = serde_json::from_str(&line).map_err(io::Error::other)?;
        Ok(Self { child, input, output, report })
    }

    /// Returns everything about the victim that an attack could change, as one text.
    fn state(&mut self) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.report.process)).unwrap_or_default();
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.report.process)).unwrap_or_default();
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.report.process)).unwrap_or_default();
        let score = fs::read_to_string(format!("/proc/{}/oom_score_adj", self.report.process)).unwrap_or_default();
        let line = |text: &str, name: &str| {
            let found = text.lines().find(|line| line.starts_with(name)).unwrap_or("");
            found.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
        };
        let state = match line(&status, "State:").chars().next() {
            Some('R' | 'S' | 'D' | 'I') => "alive",
            Some('T' | 't') => return "stopped".to_owned(),
            _ => return "dead".to_owned(),
        };
        let nice = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(16)).unwrap_or("").to_owned();
        let (tracer, processors) = (line(&status, "TracerPid:"), line(&status, "Cpus_allowed_list:"));
        let files = line(&limits, "Max open files");
        let pending = line(&status, "ShdPnd:");
        format!(
            "{state} {} pending={pending} tracer={tracer} nice={nice} on={processors} {files} score={}",
            self.memory(),
            score.trim()
        )
    }

    /// Returns what the victim reports about its own memory.
    fn memory(&mut self) -> String {
        let Some(input) = &mut self.input else { return "silent".to_owned() };
        let mut line = String::new();
        let said = input.write_all(b"?\n").and_then(|()| self.output.read_line(&mut line));
        said.map_or_else(|_| "silent".to_owned(), |_| line.trim().to_owned())
    }
}

/// Starts a program that was just written, and repeats the start while the file is busy. A child that another thread
/// has just forked may still hold the file open for writing.
fn start(command: &mut Command) -> io::Result<Child> {
    for _ in 0..200 {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => std::thread::sleep(NAP),
            other => return other,
        }
    }
    command.spawn()
}
