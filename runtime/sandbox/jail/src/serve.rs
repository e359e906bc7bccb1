//! The loop of the jail's first process: one order at a time, and no command outlives its end.
//!
//! When the process of a command ends, everything it started is killed and reaped before the host hears of it. When the host's end
//! of the control socket closes, everything dies at once.
#![forbid(unsafe_code)]

use crate::command::{self, Walling};
use crate::fault::{At, refused};
use crate::network;
use crate::program;
use crate::raw::{self, Reaped, Wait};
use crate::reaper::{self, Harvest, Reach};
use glovebox_jail::control::{receive_frame, send_frame};
use glovebox_jail::policy::Policy;
use glovebox_jail::wire::{Command, Ended, Failure, Order, Word};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use std::time::Duration;

/// A jail that stands.
#[derive(Debug)]
pub(crate) struct Jail {
    /// What it is like.
    pub(crate) policy: Policy,
    /// The control socket.
    pub(crate) control: OwnedFd,
    /// Where the host asks for sockets of this network, when it may.
    pub(crate) sockets: Option<OwnedFd>,
    /// Readable when a child has changed.
    pub(crate) children: OwnedFd,
    /// The workspace's root, as seen inside.
    pub(crate) workspace: OwnedFd,
    /// What is put around each command.
    pub(crate) walling: Walling,
    /// How everybody is killed.
    pub(crate) reach: Reach,
}

/// A command that runs, and what is known of it so far.
#[derive(Debug)]
struct Running {
    pid: Pid,
    ended: Ended,
    cpu: Duration,
}

/// Obeys until the host is gone. When this returns, nobody is alive any more, as far as [`Reach`] goes.
pub(crate) fn serve(jail: &Jail) {
    let mut running = None;
    while obey(jail, &mut running).is_some() {}
    reaper::harvest(jail.reach);
}

/// Waits for one thing to happen and answers it. `None` when the host is gone or cannot be understood any more.
fn obey(jail: &Jail, running: &mut Option<Running>) -> Option<()> {
    let Happened { is_ordered, is_child, is_socket_asked } = wait(jail)?;
    if let Some(sockets) = jail.sockets.as_ref().filter(|_| is_socket_asked) {
        receive_frame::<()>(sockets).ok()??;
        network::hand_out(sockets).ok()?;
    }
    if is_child {
        drain(&jail.children);
        reap(jail, running)?;
    }
    if is_ordered {
        let (order, descriptors) = receive_frame::<Order>(&jail.control).ok()??;
        follow(jail, running, order, descriptors)?;
    }
    Some(())
}

/// What there is to do.
struct Happened {
    is_ordered: bool,
    is_child: bool,
    is_socket_asked: bool,
}

fn wait(jail: &Jail) -> Option<Happened> {
    let descriptors = [&jail.control, &jail.children].into_iter().chain(&jail.sockets);
    let mut polled: Vec<PollFd<'_>> = descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
    match poll(&mut polled, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(_) => return None,
    }
    let is_ready = |index: usize| polled.get(index).is_some_and(|polled| !polled.revents().is_empty());
    Some(Happened { is_ordered: is_ready(0), is_child: is_ready(1), is_socket_asked: is_ready(2) })
}

fn follow(jail: &Jail, running: &mut Option<Running>, order: Order, descriptors: Vec<OwnedFd>) -> Option<()> {
    match (order, running.as_ref()) {
        (Order::Run(command), None) => {
            let word = match start(jail, &command, descriptors) {
                Ok(started) => {
                    *running = Some(started);
                    Word::Started
                }
                Err(failure) => {
                    reaper::harvest(jail.reach);
                    Word::Failed(failure)
                }
            };
            say(jail, &word)
        }
        (Order::Run(_), Some(_)) => say(jail, &Word::Failed(refused("run", "a command is running"))),
        (Order::Setup(_), _) => say(jail, &Word::Failed(refused("set up", "the jail stands"))),
        (Order::Terminate, Some(running)) => {
            // The group may be gone, which is what is asked for.
            let _ = kill_process_group(running.pid, Signal::TERM);
            Some(())
        }
        (Order::Kill, Some(_)) => {
            reaper::kill(jail.reach);
            Some(())
        }
        // The command has ended meanwhile.
        (Order::Terminate | Order::Kill, None) => Some(()),
    }
}

fn start(jail: &Jail, command: &Command, descriptors: Vec<OwnedFd>) -> Result<Running, Failure> {
    let stdio: [OwnedFd; 3] =
        descriptors.try_into().map_err(|_| refused("run", "a command needs three descriptors beside it"))?;
    let prepared = program::prepare(command, &jail.policy.workspace.at)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let cwd = if command.cwd.is_empty() { "." } else { command.cwd.as_str() };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat2(&jail.workspace, cwd, flags, Mode::empty(), resolve).at("open the command's folder")?;
    let pid = command::start(&jail.policy, &jail.walling, &prepared, folder, &stdio)?;
    Ok(Running { pid, ended: Ended::default(), cpu: Duration::ZERO })
}

/// Takes the children that have ended; after the command's own process, everybody.
fn reap(jail: &Jail, running: &mut Option<Running>) -> Option<()> {
    while let Ok(Some(reaped)) = raw::reap(Wait::Never) {
        let Some(current) = running.as_mut() else { continue };
        current.count(&reaped);
        if reaped.pid == current.pid {
            current.ended.code = reaped.code;
            current.ended.signal = reaped.signal;
            let ended = running.take()?.finish(jail);
            say(jail, &Word::Ended(ended))?;
        }
    }
    Some(())
}

impl Running {
    fn count(&mut self, reaped: &Reaped) {
        self.cpu += reaped.cpu;
        self.ended.memory_peak_bytes = self.ended.memory_peak_bytes.max(reaped.memory_bytes);
    }

    fn finish(mut self, jail: &Jail) -> Ended {
        // Zombies first, so that `killed` counts the living only.
        while let Ok(Some(reaped)) = raw::reap(Wait::Never) {
            self.count(&reaped);
        }
        let Harvest { reaped, survivors } = reaper::harvest(jail.reach);
        for one in &reaped {
            self.count(one);
        }
        let mut ended = self.ended;
        ended.killed = u32::try_from(reaped.len()).unwrap_or(u32::MAX);
        ended.survivors = survivors;
        ended.cpu_ms = u64::try_from(self.cpu.as_millis()).unwrap_or(u64::MAX);
        ended
    }
}

fn say(jail: &Jail, word: &Word) -> Option<()> {
    send_frame(&jail.control, word, &[]).ok()
}

/// Empties the signal descriptor; what happened is asked of `wait4`, as signals of one kind merge.
fn drain(children: &OwnedFd) {
    let mut record = [0; 128];
    while rustix::io::read(children, &mut record).is_ok_and(|bytes| bytes > 0) {}
}
