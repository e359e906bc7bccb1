//! Operations that must work inside the sandbox, because ordinary programs need them: servers, terminals, threads, file operations.

use super::raw::{self, Errno, raw};
use super::{AttackResult, number, terminal, word};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

/// Runs a server and its client on the loopback address.
pub(crate) fn loopback(_: &[String]) -> AttackResult {
    let talk = || -> io::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut client = TcpStream::connect(listener.local_addr()?)?;
        client.write_all(b"hello")?;
        let (mut server, _) = listener.accept()?;
        let mut said = [0; 5];
        server.read_exact(&mut said)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    };
    spoken(talk())
}

/// Runs a server and its client on a Unix socket.
pub(crate) fn unix_server(arguments: &[String]) -> AttackResult {
    let path = format!("{}/server", folder(arguments));
    let talk = || -> io::Result<String> {
        let listener = UnixListener::bind(&path)?;
        let mut client = UnixStream::connect(&path)?;
        client.write_all(b"hello")?;
        let (mut server, _) = listener.accept()?;
        let mut said = [0; 5];
        server.read_exact(&mut said)?;
        fs::remove_file(&path)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    };
    spoken(talk())
}

fn spoken(said: io::Result<String>) -> AttackResult {
    match said {
        Ok(text) if text == "hello" => AttackResult::worked("hello"),
        Ok(text) => AttackResult::stopped(text),
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

/// Returns the folder of the first argument, or the folder for temporary files.
fn folder(arguments: &[String]) -> String {
    match word(arguments, 0) {
        "" => std::env::var("TMPDIR").unwrap_or_else(|_| "/tmp".to_owned()),
        named => named.to_owned(),
    }
}

/// Opens a pseudo terminal, writes to its leader and reads from the terminal.
pub(crate) fn pty(_: &[String]) -> AttackResult {
    let talk = || -> Result<Vec<u8>, Errno> {
        let (leader, terminal) = terminal::pair()?;
        let line = *b"hello\n";
        raw(libc::SYS_write, &[leader, line.as_ptr() as usize, line.len()])?;
        raw::read(terminal, 16)
    };
    match talk() {
        Ok(said) if said.starts_with(b"hello") => AttackResult::worked("hello"),
        Ok(said) => AttackResult::stopped(String::from_utf8_lossy(&said)),
        Err(error) => AttackResult::stopped(error),
    }
}

/// Starts sixteen threads that each return a number.
pub(crate) fn threads(_: &[String]) -> AttackResult {
    let threads: Vec<_> = (0..16_u64).map(|index| std::thread::Builder::new().spawn(move || index)).collect();
    let sum: Option<u64> = threads.into_iter().map(|thread| thread.ok().and_then(|thread| thread.join().ok())).sum();
    if sum == Some(120) { AttackResult::worked("16 threads") } else { AttackResult::stopped(format!("{sum:?}")) }
}

/// Starts programs that start programs.
pub(crate) fn fork(_: &[String]) -> AttackResult {
    match Command::new("/bin/sh").args(["-c", "echo $(echo hello)"]).stdin(Stdio::null()).output() {
        Ok(output) if output.stdout == b"hello\n" => AttackResult::worked("hello"),
        Ok(output) => AttackResult::stopped(output.status),
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

/// Writes a new file in the same folder and renames it over the old one, as editors do.
pub(crate) fn replace_file(arguments: &[String]) -> AttackResult {
    let (path, beside) = (word(arguments, 0), format!("{}.new", word(arguments, 0)));
    let done = fs::write(&beside, "replaced\n").and_then(|()| fs::rename(&beside, path)).and_then(|()| fs::read(path));
    match done {
        Ok(text) if text == b"replaced\n" => AttackResult::worked("replaced"),
        Ok(_) => AttackResult::stopped("another text"),
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

/// Creates a file with `O_EXCL`, which fails if the file exists.
pub(crate) fn create_new(arguments: &[String]) -> AttackResult {
    let file = OpenOptions::new().write(true).create_new(true).open(word(arguments, 0));
    AttackResult::from_result(file.and_then(|mut file| file.write_all(b"created\n")))
}

/// Edits a file with `sed -i`.
pub(crate) fn edit_in_place(arguments: &[String]) -> AttackResult {
    match Command::new("/bin/sed").args(["-i", "s/^/edited /", word(arguments, 0)]).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => {
            let text = fs::read_to_string(word(arguments, 0)).unwrap_or_default();
            if text.starts_with("edited ") {
                AttackResult::worked("edited")
            } else {
                AttackResult::stopped("unchanged")
            }
        }
        Ok(status) => AttackResult::stopped(status),
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

/// Removes a file.
pub(crate) fn remove_file(arguments: &[String]) -> AttackResult {
    AttackResult::from_result(fs::remove_file(word(arguments, 0)))
}

/// Creates a file and removes it immediately.
pub(crate) fn temp_file(arguments: &[String]) -> AttackResult {
    let path = format!("{}/passing-{}", folder(arguments), number(arguments, 1));
    let done = fs::write(&path, "x").and_then(|()| fs::remove_file(&path));
    AttackResult::from_result(done)
}

/// Uses a file in `/dev/shm`, as Python's worker processes do.
pub(crate) fn shared_memory(_: &[String]) -> AttackResult {
    let done = fs::write("/dev/shm/required", "x").and_then(|()| fs::remove_file("/dev/shm/required"));
    AttackResult::from_result(done)
}

/// Uses the standard devices.
pub(crate) fn devices(_: &[String]) -> AttackResult {
    let try_all = || -> io::Result<()> {
        OpenOptions::new().write(true).open("/dev/null")?.write_all(b"x")?;
        for path in ["/dev/zero", "/dev/urandom", "/dev/random"] {
            fs::File::open(path)?.read_exact(&mut [0; 8])?;
        }
        Ok(())
    };
    AttackResult::from_result(try_all())
}

/// Reads information about the machine: processors, memory, load, versions, settings.
pub(crate) fn machine(_: &[String]) -> AttackResult {
    const ASKED: [&str; 11] = [
        "cpuinfo",
        "meminfo",
        "stat",
        "uptime",
        "loadavg",
        "filesystems",
        "version",
        "self/cgroup",
        "sys/kernel/osrelease",
        "sys/kernel/random/uuid",
        "sys/vm/overcommit_memory",
    ];
    let empty = ASKED.iter().find(|name| fs::read(format!("/proc/{name}")).unwrap_or_default().is_empty());
    match empty {
        None => AttackResult::worked("all of it"),
        Some(name) => AttackResult::stopped(format!("no /proc/{name}")),
    }
}

/// Reads information of the process about itself.
pub(crate) fn proc_self(_: &[String]) -> AttackResult {
    AttackResult::from_result(fs::read_to_string("/proc/self/maps").and_then(|_| fs::read_link("/proc/self/exe")))
}
