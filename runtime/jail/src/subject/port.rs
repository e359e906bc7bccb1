//! A server under test: started with the stage, reachable at a port of the verifier's loopback.
//!
//! The program has a separate network. The host listens on the same port in the verifier's network and moves bytes
//! between the two networks, so neither network can reach the other.

use super::SubjectSetting;
use super::call::SubjectCall;
use super::sandbox::SubjectSandbox;
use super::service::SubjectError;
use crate::acceptor::{Acceptor, Threads};
use crate::exec::{Command, Program};
use crate::jail::{self, Jail};
use crate::relay::{Flow, Stop, pump};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::connect;
use rustix::net::sockopt::socket_error;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Name of the server's files in the attempt's folder.
const FILES: &str = "subject-server";
/// Maximum time to wait until the server's port accepts connections. Then the stage begins even if the port does not.
const READY_MAX: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(25);
const THREADS: Threads = Threads { name: "subject-port", connections: 64, stack_bytes: 256 << 10 };
/// Maximum time for the program to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(30);
/// Idle timeout: a connection ends if no byte is moved for this time.
const IDLE: Duration = Duration::from_secs(600);

/// A server under test. Dropping it kills the server.
#[derive(Debug)]
pub(super) struct Server {
    /// `None` once the server has ended.
    sandbox: Option<Arc<SubjectSandbox>>,
    accepting: Acceptor,
    running: Option<JoinHandle<()>>,
    canceled: Arc<AtomicBool>,
    ended: Arc<Mutex<Option<SubjectCall>>>,
}

impl Server {
    /// Starts the command, opens the port for the verifier, and waits until the program accepts connections or the run
    /// is stopped.
    pub(super) fn start(
        setting: &SubjectSetting,
        program: Program,
        port: u16,
        verifier: &Jail,
        is_stopped: &AtomicBool,
    ) -> Result<Self, SubjectError> {
        let sandbox = Arc::new(
            SubjectSandbox::make(setting, &setting.jail.folder.join(FILES), true)
                .map_err(|error| SubjectError::SubjectSandbox(error.to_string()))?,
        );
        let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let failed = |act| move |source| SubjectError::Port { port, act, source };
        let listener = verifier.listen(port).map_err(failed("listen at"))?;
        let (canceled, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let command =
            Command { program, cwd: setting.workdir.clone(), env: Vec::new(), stdin: None, timeout: setting.timeout };
        let running = {
            let (sandbox, canceled, ended) = (Arc::clone(&sandbox), Arc::clone(&canceled), Arc::clone(&ended));
            thread::Builder::new()
                .name("subject-server".to_owned())
                .spawn(move || run(&sandbox, &command, &canceled, &ended))
        };
        let running = Some(running.map_err(failed("start the server of"))?);
        let inside = Arc::clone(&sandbox);
        let accepting = Acceptor::start(listener, THREADS, move |client, stop| bridge(client, &inside.jail, at, stop));
        let accepting = accepting.map_err(failed("serve"))?;
        let server = Self { sandbox: Some(sandbox), accepting, running, canceled, ended };
        server.await_ready(at, is_stopped);
        Ok(server)
    }

    fn await_ready(&self, at: SocketAddrV4, is_stopped: &AtomicBool) {
        let Some(sandbox) = &self.sandbox else { return };
        let deadline = Instant::now() + READY_MAX;
        let has_ended = || self.running.as_ref().is_none_or(JoinHandle::is_finished);
        while Instant::now() < deadline && !has_ended() && !is_stopped.load(Ordering::Relaxed) {
            if reach(&sandbox.jail, at, for_a_look).is_ok() {
                return;
            }
            thread::sleep(LOOK);
        }
    }

    /// Ends the program. Returns its sandbox, and its call if the program was started.
    pub(super) fn end(mut self) -> (Option<SubjectSandbox>, Option<SubjectCall>) {
        self.stop();
        let call = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Every thread with a reference to the sandbox has ended.
        (self.sandbox.take().and_then(Arc::into_inner), call)
    }

    fn stop(&mut self) {
        jail::cancel(&self.canceled);
        self.accepting.end();
        if let Some(running) = self.running.take() {
            // A panic was already printed by its thread.
            let _ = running.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(sandbox: &SubjectSandbox, command: &Command, canceled: &AtomicBool, ended: &Mutex<Option<SubjectCall>>) {
    let Program::Shell(text) = &command.program else { return };
    match sandbox.jail.run(command, canceled) {
        Ok(exit) => {
            let words = ["sh", "-c", text].map(str::to_owned).to_vec();
            let (cwd, status) = (command.cwd.as_str().to_owned(), sandbox.jail.status().clone());
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(SubjectCall { words, cwd, exit, status });
        }
        Err(error) => tracing::warn!(%error, "the server under test did not run"),
    }
}

/// Connects without blocking, because a server with a full queue may not answer for minutes.
fn reach(server: &Jail, at: SocketAddrV4, await_it: impl FnOnce(&OwnedFd) -> io::Result<()>) -> io::Result<TcpStream> {
    let socket = server.socket()?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    match connect(&socket, &at) {
        Err(Errno::INPROGRESS) => await_it(&socket)?,
        other => other?,
    }
    socket_error(&socket)??;
    Ok(socket.into())
}

/// Waits for the connection for one interval.
fn for_a_look(socket: &OwnedFd) -> io::Result<()> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
    match poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&timeout))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

fn bridge(client: OwnedFd, server: &Jail, at: SocketAddrV4, stop: Stop<'_>) {
    let client = TcpStream::from(client);
    // If the server refuses, the connection of the client is closed.
    let connected = |socket: &OwnedFd| stop.wait_for(socket, PollFlags::OUT, Instant::now() + CONNECT_MAX);
    let pulse = server.pulse();
    let Ok(server) = reach(server, at, connected) else { return };
    let (mut up, mut down) = (Flow::whole(&client, &server), Flow::whole(&server, &client));
    // The client notices a broken connection itself.
    let _ = pump(&mut up, &mut down, stop, IDLE, pulse);
}
