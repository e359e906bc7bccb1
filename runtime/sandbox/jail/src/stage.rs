//! Stage 1: takes the policy, raises the walls, and hands over to the loop of the jail's first process.
//!
//! With full walls there are two processes: this one stays outside, where it can wait for PID 1 and die with the host, and its copy
//! becomes PID 1. With the others it is the subreaper itself. It dies with the host only where the kernel then takes
//! everything with it; elsewhere the closed control socket tells it to kill first.
#![forbid(unsafe_code)]

use crate::command::Walling;
use crate::fault::{At, refused};
use crate::landlock::Rules;
use crate::reaper::Reach;
use crate::seccomp::Filters;
use crate::serve::{self, Jail};
use crate::stores::Stores;
use crate::{bounds, bwrap, credentials, mounts, namespaces, network, raw};
use glovebox_jail::control::{receive_frame, send_frame};
use glovebox_jail::policy::{Network, Policy, Source, Walls};
use glovebox_jail::wire::{Failure, Order, Standing, Word};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal, setsid,
};
use std::process::ExitCode;

/// Where the helper stands when it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the host.
    Outside,
    /// In what `bwrap` made; its first word says so.
    InsideBwrap,
}

/// The word with which `bwrap` starts the helper; after it comes the process namespace outside.
pub(crate) const INSIDE_BWRAP: &str = "inside-bwrap";

/// Takes the first frame and obeys until the host is gone. The code is 1 when the jail could not be built.
pub(crate) fn enter() -> ExitCode {
    let place = if std::env::args().nth(1).is_some_and(|word| word == INSIDE_BWRAP) {
        Place::InsideBwrap
    } else {
        Place::Outside
    };
    let control = match take_control(place) {
        Ok(control) => control,
        Err(_) => return ExitCode::FAILURE,
    };
    let policy = match receive_frame::<Order>(&control) {
        Ok(Some((Order::Setup(policy), _))) => *policy,
        Ok(Some(_)) => return fail(&control, refused("set up", "the first order is not `setup`")),
        Err(error) => return fail(&control, refused("set up", error.to_string())),
        Ok(None) => return ExitCode::FAILURE,
    };
    let built = match (policy.walls, place) {
        (Walls::Full, Place::Outside) => full(&control, policy),
        (Walls::Bwrap, Place::Outside) => bwrap::enter(&control, &policy),
        (Walls::Bwrap, Place::InsideBwrap) | (Walls::Landlock | Walls::Unconfined, Place::Outside) => {
            lesser(&control, policy, place)
        }
        (_, Place::InsideBwrap) => Err(refused("set up", "the policy inside `bwrap` is another than outside")),
    };
    match built {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&control, failure),
    }
}

/// The process namespace that we were started from, when that is told: only to the helper inside `bwrap`.
fn outside_namespace(place: Place) -> Option<String> {
    std::env::args().nth(2).filter(|_| place == Place::InsideBwrap)
}

/// The control socket under a number of its own, so that 0 can become a command's.
fn take_control(place: Place) -> Result<OwnedFd, Failure> {
    // Whatever else was inherited is nobody's yet.
    raw::close_rest().at("close_range")?;
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).at("control socket")?;
    if place == Place::Outside {
        // Signals of the host's terminal are not for us: they would end the one process that can end the others.
        setsid().at("setsid")?;
    }
    Ok(control)
}

fn fail(control: &OwnedFd, failure: Failure) -> ExitCode {
    // When nobody listens any more there is nothing to tell.
    let _ = send_frame(control, &Word::Failed(failure), &[]);
    ExitCode::FAILURE
}

/// Puts something harmless at 0: a second way to the control socket would keep it open.
fn release_stdin() -> Result<(), Failure> {
    rustix::stdio::dup2_stdin(rustix::stdio::stdout()).at("standard input")
}

fn enter_cgroups(policy: &Policy) -> Result<(), Failure> {
    policy.cgroup_procs.iter().try_for_each(|file| std::fs::write(file, "0").at(format!("enter cgroup {file}")))
}

/// Seven namespaces and a root of our own; this process stays outside them and waits.
fn full(control: &OwnedFd, policy: Policy) -> Result<(), Failure> {
    let host = getppid();
    set_parent_process_death_signal(Some(Signal::KILL)).at("parent death signal")?;
    if getppid() != host {
        return Err(refused("parent death signal", "the host is gone"));
    }
    release_stdin()?;
    enter_cgroups(&policy)?;
    credentials::clear_groups()?;
    namespaces::enter(&policy)?;
    // Not before the id maps: they are files of a process that can be looked into.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("dumpable")?;
    let outside = pidfd_open(getpid(), PidfdFlags::empty()).at("pidfd")?;
    let (told, tell) = pipe_with(PipeFlags::CLOEXEC).at("pipe")?;
    let Some(first) = raw::fork().at("fork")? else {
        drop(tell);
        let code = match first_process(control, policy, &outside, &told) {
            Ok(()) => 0,
            Err(failure) => {
                wait_for_birth(&told);
                fail(control, failure);
                1
            }
        };
        raw::exit_now(code)
    };
    announce(control, first, tell)
}

fn announce(control: &OwnedFd, first: Pid, tell: OwnedFd) -> Result<(), Failure> {
    let birth = pidfd_open(first, PidfdFlags::empty()).at("pidfd")?;
    send_frame(control, &Word::Born, &[birth.as_fd()]).map_err(|error| refused("control", error.to_string()))?;
    drop(tell);
    // Our copy of the control socket is closed with all others: only PID 1 may keep the jail's end open.
    raw::close_rest().at("close_range")?;
    while !matches!(raw::reap(raw::Wait::Until), Err(_) | Ok(None)) {}
    raw::exit_now(0)
}

/// Waits until the host has been told of us, so that its first word is `Born`.
fn wait_for_birth(told: &OwnedFd) {
    // The end of the pipe is the message.
    let _ = rustix::io::read(told, &mut [0_u8; 1]);
}

fn first_process(control: &OwnedFd, policy: Policy, outside: &OwnedFd, told: &OwnedFd) -> Result<(), Failure> {
    die_with(outside)?;
    let mut standing = Standing::default();
    let built = mounts::build(&policy, &mut standing)?;
    let is_bounded = bounds::limit_process_ids(&built.proc, &policy.bounds);
    namespaces::forbid_more(&built.proc);
    bounds::limit_shared(&built.proc, &policy.bounds);
    let stores = Stores::open(&built.proc, &policy)?;
    let workspace = mounts::seal(built)?;
    if policy.network != Network::Full {
        network::raise_loopback()?;
    }
    let listener = if policy.network == Network::Proxy { Some(network::listen()?) } else { None };
    // The user's limit on processes does not count for the host's root.
    if !is_bounded && policy.cgroup_procs.is_empty() && credentials::is_root_outside() {
        standing.degradations.push("processes=soft".to_owned());
    }
    let walling = wall(&policy, &mut standing)?;
    let (sockets, hosts_end) = if policy.sockets { socket_pair()? } else { (None, None) };
    let jail = Jail {
        control: control.try_clone().at("control socket")?,
        sockets,
        children: raw::child_signals().at("signalfd")?,
        workspace,
        walling,
        reach: Reach::Namespace,
        policy,
    };
    wait_for_birth(told);
    stores.send(&jail.control)?;
    drop(stores);
    let mut beside = vec![jail.workspace.as_fd()];
    beside.extend(listener.as_ref().map(AsFd::as_fd));
    beside.extend(hosts_end.as_ref().map(AsFd::as_fd));
    ready(&jail, standing, &beside)?;
    drop((listener, hosts_end));
    serve::serve(&jail);
    Ok(())
}

/// The two ends of the way on which the host asks for sockets: ours and its own.
fn socket_pair() -> Result<(Option<OwnedFd>, Option<OwnedFd>), Failure> {
    let (ours, hosts) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).at("socket pair")?;
    Ok((Some(ours), Some(hosts)))
}

/// Dies when the process outside does, also if it is gone already.
fn die_with(outside: &OwnedFd) -> Result<(), Failure> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    set_parent_process_death_signal(Some(Signal::KILL)).at("parent death signal")?;
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = poll(&mut [PollFd::new(outside, PollFlags::IN)], Some(&now)).at("poll")?;
    if gone > 0 { Err(refused("parent death signal", "the process outside is gone")) } else { Ok(()) }
}

/// Walls without namespaces of our own: this process is the subreaper.
fn lesser(control: &OwnedFd, policy: Policy, place: Place) -> Result<(), Failure> {
    let host = getppid();
    release_stdin()?;
    set_child_subreaper(Some(getpid())).at("subreaper")?;
    let mut standing = Standing::default();
    if place == Place::Outside {
        if matches!(policy.workspace.source, Source::Overlay { .. }) || !policy.workspace.inner.is_empty() {
            return Err(refused("workspace", "layers and inner mounts need full walls"));
        }
        if policy.network == Network::Proxy {
            return Err(refused("network", "a proxy needs a network namespace"));
        }
        if policy.sockets {
            return Err(refused("network", "sockets for the host need full walls"));
        }
        enter_cgroups(&policy)?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("dumpable")?;
    if policy.walls != Walls::Unconfined && place == Place::Outside {
        credentials::clear_groups()?;
    }
    if place == Place::Outside {
        standing.degradations.push("processes=shared".to_owned());
        // Folders of the host, which have no size.
        standing.degradations.push("tmp=none".to_owned());
    }
    if policy.cgroup_procs.is_empty() {
        // The user's own limit would count strangers here.
        standing.degradations.push("processes=soft".to_owned());
    }
    let stores = match place {
        Place::InsideBwrap => {
            let proc = open("/proc", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
            Some(Stores::open(proc.at("open /proc")?, &policy)?)
        }
        Place::Outside => None,
    };
    let walling = wall(&policy, &mut standing)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let jail = Jail {
        control: control.try_clone().at("control socket")?,
        sockets: None,
        children: raw::child_signals().at("signalfd")?,
        workspace: open(policy.workspace.at.as_str(), flags, Mode::empty()).at("open workspace")?,
        walling,
        reach: Reach::of_subreaper(policy.walls, host, outside_namespace(place).as_deref()),
        policy,
    };
    if place == Place::Outside {
        let own = pidfd_open(getpid(), PidfdFlags::empty()).at("pidfd")?;
        send_frame(control, &Word::Born, &[own.as_fd()]).map_err(|error| refused("control", error.to_string()))?;
    }
    stores.map_or(Ok(()), |stores| stores.send(&jail.control))?;
    ready(&jail, standing, &[])?;
    serve::serve(&jail);
    Ok(())
}

/// Gives up every privilege, confines this process, and keeps what is put around each command.
fn wall(policy: &Policy, standing: &mut Standing) -> Result<Walling, Failure> {
    if policy.walls == Walls::Unconfined {
        return Ok(Walling::default());
    }
    credentials::drop_all()?;
    let (filters, own) = (Filters::compile(policy.walls, policy.network)?, Filters::of_commands()?);
    let rules = Rules::build(policy)?;
    standing.landlock_abi = rules.enforce()?;
    if policy.walls == Walls::Landlock {
        // Opens a command's folder with a call that the filters take away, so each command puts them on by itself.
        return Ok(Walling { rules: Some(rules), filters: filters.and(own) });
    }
    // Inherited by every command: the kernel's work on a filter is done once, and this process has the wall as well.
    filters.enforce()?;
    Ok(Walling { rules: Some(rules), filters: own })
}

fn ready(jail: &Jail, standing: Standing, beside: &[BorrowedFd<'_>]) -> Result<(), Failure> {
    send_frame(&jail.control, &Word::Ready(standing), beside).map_err(|error| refused("control", error.to_string()))
}
