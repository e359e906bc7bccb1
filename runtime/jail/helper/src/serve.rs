//! The loop of the jail's first process: one request at a time, and no process outlives its command.
//!
//! When the process of a command ends, this process first waits for the move of a folder that is under way, then kills
//! and reaps everything that the command started, and only then replies. When the host closes its end of the control
//! socket, all processes of the jail are killed at once.
#![forbid(unsafe_code)]

use crate::command::{self, CommandConfinement};
use crate::fault::{At, refused};
use crate::network;
use crate::program;
use crate::raw::{self, ReapedChild, Wait};
use crate::reaper::{self, KillResult, KillScope};
use crate::renames::{FolderMoves, RenameListener};
use glovebox_jail_helper::control::{receive_frame, send_frame};
use glovebox_jail_helper::policy::Policy;
use glovebox_jail_helper::wire::{Command, CommandEnd, Failure, Reply, Request};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::Path;
use std::time::Duration;

/// A jail that is ready.
#[derive(Debug)]
pub(crate) struct Jail {
    /// The policy of the jail.
    pub(crate) policy: Policy,
    /// The control socket.
    pub(crate) control: OwnedFd,
    /// Receives the host's requests for sockets of the jail's network; `None` if the policy does not allow them.
    pub(crate) sockets: Option<OwnedFd>,
    /// Readable when a child has changed its state.
    pub(crate) children: OwnedFd,
    /// The root of the workspace, as seen inside the jail.
    pub(crate) workspace: OwnedFd,
    /// The confinement of each command.
    pub(crate) confinement: CommandConfinement,
    /// The processes that a kill reaches.
    pub(crate) reach: KillScope,
    /// Where renames of commands wait; `None` if the kernel can rename every folder of the workspace.
    pub(crate) renames: Option<RenameListener>,
}

/// What is under way in a jail.
#[derive(Debug, Default)]
struct Activity {
    command: Option<RunningCommand>,
    moves: FolderMoves,
}

/// A running command with its usage so far.
#[derive(Debug)]
struct RunningCommand {
    pid: Pid,
    ended: CommandEnd,
    cpu: Duration,
    /// True if the process of the command itself has ended.
    has_ended: bool,
    /// True if the host has killed the command.
    is_killed: bool,
}

/// Serves requests until the host closes the control socket. When this returns, all processes within [`KillScope`] are
/// dead.
pub(crate) fn serve(jail: &Jail) {
    let mut activity = Activity::default();
    while serve_next(jail, &mut activity).is_some() {}
    reaper::kill_all(jail.reach);
}

/// Waits for one event and handles it. Returns `None` if the host has closed the socket or sent something other than a
/// frame.
fn serve_next(jail: &Jail, activity: &mut Activity) -> Option<()> {
    let Events { has_request, has_dead_child, wants_socket, wants_rename } = wait(jail, activity)?;
    if let Some(sockets) = jail.sockets.as_ref().filter(|_| wants_socket) {
        receive_frame::<()>(sockets).ok()??;
        network::hand_out(sockets).ok()?;
    }
    if has_dead_child {
        drain(&jail.children);
        reap(jail, activity)?;
    }
    if has_request {
        let (request, descriptors) = receive_frame::<Request>(&jail.control).ok()??;
        serve_request(jail, &mut activity.command, request, descriptors)?;
    }
    if let Some(renames) = jail.renames.as_ref().filter(|_| wants_rename) {
        renames.examine_next(&mut activity.moves);
    }
    Some(())
}

/// Pending events.
struct Events {
    has_request: bool,
    has_dead_child: bool,
    wants_socket: bool,
    wants_rename: bool,
}

fn wait(jail: &Jail, activity: &Activity) -> Option<Events> {
    let (sockets, renames) = (jail.sockets.as_ref(), jail.renames.as_ref());
    let mut polled = vec![PollFd::new(&jail.control, PollFlags::IN), PollFd::new(&jail.children, PollFlags::IN)];
    polled.extend(sockets.map(|sockets| PollFd::new(sockets, PollFlags::IN)));
    let renames = renames.filter(|_| activity.moves.has_room());
    polled.extend(renames.map(|renames| PollFd::new(renames, PollFlags::IN)));
    match poll(&mut polled, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(_) => return None,
    }
    let mut ready = polled.iter().map(|polled| !polled.revents().is_empty());
    let mut next = |is_polled: bool| is_polled && ready.next().unwrap_or(false);
    Some(Events {
        has_request: next(true),
        has_dead_child: next(true),
        wants_socket: next(sockets.is_some()),
        wants_rename: next(renames.is_some()),
    })
}

fn serve_request(
    jail: &Jail,
    running: &mut Option<RunningCommand>,
    request: Request,
    descriptors: Vec<OwnedFd>,
) -> Option<()> {
    match (request, running.as_mut()) {
        (Request::Run(command), None) => {
            let reply = match start(jail, &command, descriptors) {
                Ok(started) => {
                    *running = Some(started);
                    Reply::Started
                }
                Err(failure) => {
                    reaper::kill_all(jail.reach);
                    Reply::Failed(failure)
                }
            };
            send_reply(jail, &reply)
        }
        (Request::Run(_), Some(_)) => {
            send_reply(jail, &Reply::Failed(refused("run a command", "another command is running")))
        }
        (Request::Setup(_) | Request::Prepare(_) | Request::Fork, _) => {
            send_reply(jail, &Reply::Failed(refused("set up", "the jail is already set up")))
        }
        (Request::Terminate, Some(running)) => {
            // A process group that has ended needs no signal.
            let _ = kill_process_group(running.pid, Signal::TERM);
            Some(())
        }
        (Request::Kill, Some(running)) => {
            running.is_killed = true;
            reaper::kill(jail.reach);
            Some(())
        }
        // The command ended before the request arrived.
        (Request::Terminate | Request::Kill, None) => Some(()),
    }
}

fn start(jail: &Jail, command: &Command, descriptors: Vec<OwnedFd>) -> Result<RunningCommand, Failure> {
    let stdio: [OwnedFd; 3] =
        descriptors.try_into().map_err(|_| refused("run a command", "a command needs three descriptors"))?;
    let prepared = program::prepare(command, &jail.policy.workspace.at)?;
    let folder = folder(&jail.workspace, Path::new(&command.cwd))?;
    let pid = command::start(&jail.policy, &jail.confinement, &prepared, folder, &stdio)?;
    Ok(RunningCommand { pid, ended: CommandEnd::default(), cpu: Duration::ZERO, has_ended: false, is_killed: false })
}

/// Opens the working directory of a command. The filters allow no call that restricts the lookup to the workspace, so
/// the real path of the opened folder is checked. The command gets exactly the opened folder, whatever links change
/// later.
fn folder(workspace: &OwnedFd, cwd: &Path) -> Result<OwnedFd, Failure> {
    let step = "open the command's folder";
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let relative = if cwd.as_os_str().is_empty() { Path::new(".") } else { cwd };
    let opened = openat(workspace, relative, flags, Mode::empty()).at(step)?;
    let place = |opened: &OwnedFd| std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).at(step);
    if cwd.is_absolute() || !place(&opened)?.starts_with(place(workspace)?) {
        return Err(refused(step, "it is outside the workspace"));
    }
    Ok(opened)
}

/// Reaps the children that have ended. If the command's own process has ended and no folder is being moved, kills all
/// others.
fn reap(jail: &Jail, activity: &mut Activity) -> Option<()> {
    // Zombies are reaped before the kill, so that `killed` counts only processes that were alive.
    while let Ok(Some(reaped)) = raw::reap(Wait::Never) {
        if let Some(current) = activity.command.as_mut() {
            current.count(&reaped);
            // While a folder is being moved, another process can get the id.
            if reaped.pid == current.pid && !current.has_ended {
                current.has_ended = true;
                current.ended.code = reaped.code;
                current.ended.signal = reaped.signal;
            }
        }
        if let Some(renames) = &jail.renames {
            let is_killed = activity.command.as_ref().is_none_or(|command| command.is_killed);
            renames.settle(&mut activity.moves, &reaped, is_killed);
        }
    }
    // A kill in the middle of a move would leave a part of the folder at another path.
    let is_idle = activity.moves.is_idle();
    if let Some(current) = activity.command.take_if(|current| current.has_ended && is_idle) {
        let ended = current.finish(jail);
        // `finish` has killed and reaped every process whose call waits.
        activity.moves = FolderMoves::default();
        return send_reply(jail, &Reply::Ended(ended));
    }
    if let Some(renames) = jail.renames.as_ref().filter(|_| is_running(activity)) {
        renames.start_next(&mut activity.moves);
    }
    Some(())
}

fn is_running(activity: &Activity) -> bool {
    activity.command.as_ref().is_some_and(|current| !current.has_ended && !current.is_killed)
}

impl RunningCommand {
    fn count(&mut self, reaped: &ReapedChild) {
        self.cpu += reaped.cpu;
        self.ended.memory_peak_bytes = self.ended.memory_peak_bytes.max(reaped.memory_bytes);
    }

    fn finish(mut self, jail: &Jail) -> CommandEnd {
        let KillResult { reaped, survivors } = reaper::kill_all(jail.reach);
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

fn send_reply(jail: &Jail, reply: &Reply) -> Option<()> {
    send_frame(&jail.control, reply, &[]).ok()
}

/// Empties the signal descriptor. The details come from `wait4`, because the kernel merges signals of one kind.
fn drain(children: &OwnedFd) {
    let mut record = [0; 128];
    while rustix::io::read(children, &mut record).is_ok_and(|bytes| bytes > 0) {}
}
