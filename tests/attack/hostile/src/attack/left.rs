//! Attacks across two sandboxes: the first one leaves something, the second one searches for it. A second sandbox from
//! the same template must find no trace of the first one: no port, no name, no segment, no counter, no lock.
//!
//! The first attack may fail. The verdict depends only on what the second attack finds. Processes that keep something
//! open end after a few seconds.

use super::raw::{Errno, Text, close, raw};
use super::{AttackResult, number, word};
use std::fs::{self, File};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

const LIFE: Duration = Duration::from_secs(4);
const PORT: u16 = 39_117;
const NAME: &str = "glovebox-left";
const KEY: usize = 0x676c_6f76;
const DATAGRAMS: u64 = 2_000;
const SHARED_FILE: &str = "/etc/hosts";
const FILES: [&str; 3] = ["/tmp/glovebox-left", "/dev/shm/glovebox-left", "/home/glovebox/left"];

/// Leaves the object with this name.
pub(crate) fn leave(arguments: &[String]) -> AttackResult {
    match word(arguments, 0) {
        "listener" => keep(TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))),
        "closed-port" => close_port(),
        "abstract" => keep(SocketAddr::from_abstract_name(NAME).and_then(|address| UnixListener::bind_addr(&address))),
        "counter" => count(),
        "segment" => AttackResult::from_result(raw(libc::SYS_shmget, &[KEY, 4096, (libc::IPC_CREAT | 0o666) as usize])),
        "queue" => AttackResult::from_result(raw(libc::SYS_msgget, &[KEY, (libc::IPC_CREAT | 0o666) as usize])),
        "semaphore" => AttackResult::from_result(raw(libc::SYS_semget, &[KEY, 1, (libc::IPC_CREAT | 0o666) as usize])),
        "host-name" => AttackResult::from_result(raw(libc::SYS_sethostname, &[Text::new(NAME).at(), NAME.len()])),
        "files" => FILES.iter().fold(AttackResult::stopped(Errno::PERM), |so_far, path| {
            let written = AttackResult::from_result(fs::write(path, "left"));
            if written.worked { written } else { so_far }
        }),
        "lock" => lock(true),
        "shared-file" => change_shared(),
        "setting" => AttackResult::from_result(fs::write("/proc/sys/net/ipv4/ip_default_ttl", "77")),
        other => AttackResult::stopped(format!("cannot leave `{other}`")),
    }
}

/// Searches for the object with this name, and removes the object if possible.
pub(crate) fn find(arguments: &[String]) -> AttackResult {
    match word(arguments, 0) {
        "listener" => AttackResult::from_result(TcpStream::connect((Ipv4Addr::LOCALHOST, PORT))),
        "closed-port" => find_closed_port(),
        "abstract" => AttackResult::from_result(
            SocketAddr::from_abstract_name(NAME).and_then(|address| UnixStream::connect_addr(&address)),
        ),
        "counter" => match sent_datagrams() {
            Some(sent) if sent >= DATAGRAMS => AttackResult::worked(format!("{sent} datagrams")),
            sent => AttackResult::stopped(format!("{sent:?} datagrams")),
        },
        "segment" => found(raw(libc::SYS_shmget, &[KEY, 0, 0]), libc::SYS_shmctl, &[libc::IPC_RMID as usize, 0]),
        "queue" => found(raw(libc::SYS_msgget, &[KEY, 0]), libc::SYS_msgctl, &[libc::IPC_RMID as usize, 0]),
        "semaphore" => found(raw(libc::SYS_semget, &[KEY, 0, 0]), libc::SYS_semctl, &[0, libc::IPC_RMID as usize]),
        "host-name" => of_text("/proc/sys/kernel/hostname", NAME),
        "files" => {
            let left: Vec<&str> = FILES.into_iter().filter(|path| fs::metadata(path).is_ok()).collect();
            left.iter().for_each(|path| drop(fs::remove_file(path)));
            if left.is_empty() {
                AttackResult::stopped(Errno(libc::ENOENT))
            } else {
                AttackResult::worked(left.join(", "))
            }
        }
        "lock" => match lock(false) {
            free if free.worked => AttackResult::stopped("not locked"),
            locked => AttackResult::worked(locked.answer),
        },
        "shared-file" => of_text(SHARED_FILE, NAME),
        "setting" => of_text("/proc/sys/net/ipv4/ip_default_ttl", "77"),
        other => AttackResult::stopped(format!("cannot find `{other}`")),
    }
}

/// Requests the parent or the owner of a namespace of this process. That would be a namespace of the template.
pub(crate) fn namespace_above(arguments: &[String]) -> AttackResult {
    const NS_GET_USERNS: usize = 0xb701;
    const NS_GET_PARENT: usize = 0xb702;
    let space = match File::open(format!("/proc/self/ns/{}", word(arguments, 0))) {
        Ok(space) => space,
        Err(error) => return AttackResult::stopped(Errno::from(error)),
    };
    let request = if word(arguments, 1) == "owner" { NS_GET_USERNS } else { NS_GET_PARENT };
    AttackResult::from_result(raw(libc::SYS_ioctl, &[space.as_raw_fd() as usize, request]))
}

/// Sends signal 0 to every process number, and reports the first existing process that is neither this one nor its
/// parent.
pub(crate) fn foreign_process(arguments: &[String]) -> AttackResult {
    let own = [std::process::id() as usize, 1];
    let exists = |process: usize| raw(libc::SYS_kill, &[process, 0]) != Err(Errno(libc::ESRCH));
    let of_parents = raw(libc::SYS_getppid, &[]).unwrap_or(0);
    match (2..number(arguments, 0).max(2) as usize).find(|id| !own.contains(id) && *id != of_parents && exists(*id)) {
        Some(process) => AttackResult::worked(format!("process {process}")),
        None => AttackResult::stopped(Errno(libc::ESRCH)),
    }
}

/// Keeps the created object open in a process that outlives this one.
fn keep<T>(made: std::io::Result<T>) -> AttackResult {
    let made = match made {
        Ok(made) => made,
        Err(error) => return AttackResult::stopped(Errno::from(error)),
    };
    if let Ok(0) = raw(libc::SYS_clone, &[libc::SIGCHLD as usize, 0, 0, 0, 0]) {
        close(1);
        close(2);
        let _ = raw(libc::SYS_setsid, &[]);
        std::thread::sleep(LIFE);
        std::process::exit(0);
    }
    drop(made);
    AttackResult::worked("kept")
}

/// Leaves a port in the state `TIME_WAIT`, after a connection that its owner closed first.
fn close_port() -> AttackResult {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).and_then(|listener| {
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT))?;
        drop(listener.accept()?);
        client.read(&mut [0; 1])
    });
    AttackResult::from_result(closed)
}

/// Binds the port without `SO_REUSEADDR`, which fails if the port is in the state `TIME_WAIT`.
fn find_closed_port() -> AttackResult {
    let socket = raw(libc::SYS_socket, &[libc::AF_INET as usize, libc::SOCK_STREAM as usize, 0]);
    let mut address = [0_u8; 16];
    address[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&PORT.to_be_bytes());
    address[4..8].copy_from_slice(&Ipv4Addr::LOCALHOST.octets());
    match socket.and_then(|socket| raw(libc::SYS_bind, &[socket, address.as_ptr() as usize, address.len()])) {
        Err(error) if error == Errno(libc::EADDRINUSE) => AttackResult::worked(error.to_string()),
        Err(error) => AttackResult::stopped(error),
        Ok(_) => AttackResult::stopped("not in use"),
    }
}

/// Sends datagrams to its own socket, which the network's counters count.
fn count() -> AttackResult {
    let sent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| {
        let own = socket.local_addr()?;
        (0..DATAGRAMS).try_for_each(|_| socket.send_to(b"x", own).map(drop))
    });
    AttackResult::from_result(sent)
}

fn sent_datagrams() -> Option<u64> {
    let text = fs::read_to_string("/proc/net/snmp").ok()?;
    text.lines().filter_map(|line| line.strip_prefix("Udp: ")).nth(1)?.split(' ').nth(3)?.parse().ok()
}

/// Tries to lock a file that all sandboxes see. With `keeps`, the lock is kept.
fn lock(keeps: bool) -> AttackResult {
    let file = match File::open(SHARED_FILE) {
        Ok(file) => file,
        Err(error) => return AttackResult::stopped(Errno::from(error)),
    };
    let flags = (libc::LOCK_EX | libc::LOCK_NB) as usize;
    match raw(libc::SYS_flock, &[file.as_raw_fd() as usize, flags]) {
        Ok(_) if keeps => keep(Ok(file)),
        answer => AttackResult::from_result(answer),
    }
}

/// Tries to change the content and the mode of a file that all sandboxes see.
fn change_shared() -> AttackResult {
    let path = Text::new(SHARED_FILE);
    let _ = raw(libc::SYS_chmod, &[path.at(), 0o666]);
    let _ = raw(libc::SYS_unlink, &[path.at()]);
    AttackResult::from_result(fs::write(SHARED_FILE, NAME))
}

fn of_text(path: &str, wanted: &str) -> AttackResult {
    match fs::read_to_string(path) {
        Ok(text) if text.contains(wanted) => AttackResult::worked(path),
        Ok(_) => AttackResult::stopped("unchanged"),
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

/// Reports a System V object and removes it.
fn found(object: Result<usize, Errno>, call: libc::c_long, request: &[usize]) -> AttackResult {
    match object {
        Ok(id) => {
            let words = [&[id], request].concat();
            let _ = raw(call, &words);
            AttackResult::worked(format!("id {id}"))
        }
        Err(error) => AttackResult::stopped(error),
    }
}
