//! The command `subject`: starts a program in the jail of the program under test and forwards its three streams.
//!
//! It runs in the verifier's jail with the verifier's rights and contains no secret. Its exit code is that of the
//! program. It only sends a request, and the host creates the pipes and starts the program.
#![forbid(unsafe_code)]

use glovebox_jail_helper::control::{receive_frame, send_frame};
use glovebox_jail_helper::subject::{FOLDER, NOT_STARTED, PROGRAM, Request, SOCKET, SubjectEnd, SubjectReply};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::fs::File;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::thread::{self, JoinHandle};

const USAGE: &str = "\
usage: subject [CMD [ARG…]]

Runs CMD in a sandbox of its own: it sees the project as builders see it, and no hold-out. Only its standard input, output and
error and its exit code reach the caller. Without CMD it runs the command of the node's `verify_subject`.";

/// Returns true if this process was started as the command `subject` and not as the helper.
pub(crate) fn is_called() -> bool {
    let name = std::env::args_os().next();
    name.is_some_and(|name| std::path::Path::new(&name).file_name().is_some_and(|name| name == PROGRAM))
}

/// Requests the program, forwards its streams, and exits with its exit code.
pub(crate) fn run() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if words.first().is_some_and(|word| word == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match request(words) {
        Ok(end) => {
            if let Some(note) = end.note {
                eprintln!("{PROGRAM}: {note}");
            }
            ExitCode::from(end.code)
        }
        Err(why) => {
            eprintln!("{PROGRAM}: {why}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn request(words: Vec<std::ffi::OsString>) -> Result<SubjectEnd, String> {
    let text = |word: std::ffi::OsString| word.into_string().map_err(|word| format!("{word:?} is not valid UTF-8"));
    let words = words.into_iter().map(text).collect::<Result<_, _>>()?;
    let cwd = std::env::current_dir().map_err(|error| format!("failed to find the current folder: {error}"))?;
    let cwd = text(cwd.into_os_string())?;
    let host = reach()?;
    let lost =
        |error: &dyn std::fmt::Display| format!("failed to reach the sandbox of the program under test: {error}");
    send_frame(&host, &Request { words, cwd }, &[]).map_err(|error| lost(&error))?;
    let mut moving: Vec<JoinHandle<()>> = Vec::new();
    loop {
        let (answer, pipes) = receive_frame::<SubjectReply>(&host)
            .map_err(|error| lost(&error))?
            .ok_or_else(|| "the stage ended before the program under test did".to_owned())?;
        match answer {
            SubjectReply::Waiting => {
                eprintln!("{PROGRAM}: waiting for another program under test of this stage to end")
            }
            SubjectReply::Refused(why) => return Err(why),
            SubjectReply::Started => moving = relay(pipes)?,
            SubjectReply::Ended(end) => {
                for one in moving {
                    // A broken stream was closed. The exit code of the program is reported nevertheless.
                    let _ = one.join();
                }
                return Ok(end);
            }
        }
    }
}

fn reach() -> Result<OwnedFd, String> {
    let refused = |error: rustix::io::Errno| format!("this stage has no sandbox for a program under test: {error}");
    let address = SocketAddrUnix::new(format!("{FOLDER}/{SOCKET}")).map_err(refused)?;
    let host = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).map_err(refused)?;
    connect(&host, &address).map_err(refused)?;
    Ok(host)
}

/// Forwards the streams, each on a separate thread. Returns the threads that must end before this process: output and
/// error.
fn relay(pipes: Vec<OwnedFd>) -> Result<Vec<JoinHandle<()>>, String> {
    let [input, output, error]: [OwnedFd; 3] =
        pipes.try_into().map_err(|_| "the sandbox sent no pipes for the program under test".to_owned())?;
    // This thread ends with the process: a caller that keeps its end of standard input open must not keep the process
    // alive.
    thread::spawn(move || pour(std::io::stdin(), File::from(input)));
    Ok(vec![
        thread::spawn(move || pour(File::from(output), std::io::stdout())),
        thread::spawn(move || pour(File::from(error), std::io::stderr())),
    ])
}

/// Copies until either end is closed, and forwards each read at once.
fn pour(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                if to.write_all(&buffer[..count]).and_then(|()| to.flush()).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
