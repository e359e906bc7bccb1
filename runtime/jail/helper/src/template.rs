//! The template: a helper that prepares the common part of many jails, and forks the first process of each jail from
//! itself.
//!
//! The template never sees a policy, a file of a stage or data from a stage: the fork reads its policy from its own
//! control socket. Every jail gets fresh namespaces of every kind. Jails share only read-only files, filters and memory
//! from before any stage. A jail cannot name the template: the template is outside of the jail's PID namespace and
//! above its user namespace, and has no privilege itself. When the template dies, all its jails die.
#![forbid(unsafe_code)]

use crate::bounds::enter_cgroups;
use crate::build::{self, Base, FullJail, PreparedParts};
use crate::fault::{At, refused};
use crate::mounts::PreparedRoot;
use crate::seccomp::Filters;
use crate::{credentials, host, namespaces, raw};
use glovebox_jail_helper::control::{receive_frame, send_frame};
use glovebox_jail_helper::policy::{Confinement, Network, Policy, Preparation};
use glovebox_jail_helper::wire::{Failure, Reply, Request};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{DumpableBehavior, PidfdFlags, geteuid, getpid, pidfd_open, set_dumpable_behavior};
use std::process::ExitCode;

/// A template that is ready to be forked.
#[derive(Debug)]
struct Template {
    preparation: Preparation,
    is_root_outside: bool,
    prepared: PreparedParts,
    /// A descriptor of the template process. Its jails must not outlive it.
    own: OwnedFd,
}

/// Prepares, then forks jails until the host closes the socket. Returns after the last jail has ended.
pub(crate) fn serve(mut control: OwnedFd, preparation: Preparation) -> ExitCode {
    let template = match prepare(preparation) {
        Ok(template) => template,
        Err(failure) => return host::fail(&control, failure),
    };
    while let Ok(Some((request, descriptors))) = receive_frame::<Request>(&control) {
        let (Request::Fork, Ok([jail])) = (request, <[OwnedFd; 1]>::try_from(descriptors)) else { break };
        match namespaces::fork_into_own() {
            Ok(Some(_)) => {}
            // In the copy, the socket of the jail replaces that of the template.
            Ok(None) => match rustix::io::dup3(&jail, &mut control, rustix::io::DupFlags::CLOEXEC) {
                Ok(()) => {
                    drop(jail);
                    raw::exit_now(build::serve_or_fail(&control, first_process(&control, &template)))
                }
                Err(_) => raw::exit_now(1),
            },
            Err(error) => {
                let failed = Err::<(), _>(error).at("fork into namespaces").err();
                // If the host has ended, no reply is needed.
                failed.map(|failure| send_frame(&jail, &Reply::Failed(failure), &[]));
            }
        }
    }
    drop(control);
    // The kernel reaps the children, so this call returns when the last one has ended.
    while !matches!(raw::reap(raw::Wait::Until), Err(_) | Ok(None)) {}
    ExitCode::SUCCESS
}

fn prepare(preparation: Preparation) -> Result<Template, Failure> {
    host::die_with_host()?;
    host::release_stdin()?;
    let is_root_outside = geteuid().is_root();
    credentials::clear_groups()?;
    namespaces::enter_template(preparation.uid, preparation.gid)?;
    // This must follow the id maps, because their files exist only for a dumpable process.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("set dumpable")?;
    let root = PreparedRoot::build(&preparation, is_root_outside)?;
    let (carried, filters) = Filters::compile(Confinement::Full, Network::None)?.split();
    carried.enforce()?;
    credentials::drop_held()?;
    raw::ignore_children();
    let own = pidfd_open(getpid(), PidfdFlags::empty()).at("open a pidfd")?;
    Ok(Template { preparation, is_root_outside, prepared: PreparedParts { root, filters }, own })
}

/// Builds a jail around this process. The process was forked from the template, and is in fresh namespaces.
fn first_process(control: &OwnedFd, template: &Template) -> Result<FullJail, Failure> {
    host::die_with(&template.own)?;
    raw::heed_children();
    let policy = match receive_frame::<Request>(control) {
        Ok(Some((Request::Setup(policy), _))) => *policy,
        Ok(Some(_)) => return Err(refused("set up", "the first request must be `setup`")),
        Ok(None) => raw::exit_now(1),
        Err(error) => return Err(refused("set up", error.to_string())),
    };
    check(&policy, template)?;
    namespaces::map_same_ids(policy.uid, policy.gid)?;
    enter_cgroups(&policy)?;
    namespaces::hide_cgroups()?;
    announce(control)?;
    let base = Base { is_root_outside: template.is_root_outside, prepared: Some(&template.prepared) };
    build::full(control, policy, &base)
}

fn check(policy: &Policy, template: &Template) -> Result<(), Failure> {
    if policy.preparation().as_ref() == Some(&template.preparation) {
        return Ok(());
    }
    Err(refused("set up", "the policy differs from what the template has prepared"))
}

/// Announces this process to the host. With the descriptor of the mount namespace, the host can remove the mounts
/// later.
fn announce(control: &OwnedFd) -> Result<(), Failure> {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).at("open a pidfd")?;
    let mounts = open("/proc/self/ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let mounts = mounts.at("open the mount namespace")?;
    send_frame(control, &Reply::Spawned, &[own.as_fd(), mounts.as_fd()])
        .map_err(|error| refused("send a reply", error.to_string()))
}
