//! `glovebox work`: makes stages of a fleet's runs on this machine, and drives runs.
//!
//! The process serves every run of the fleet. SIGINT or SIGTERM drains it: it takes nothing new, gives the runs that it
//! drives to other machines, and ends when its stages have ended. A second signal ends it at once.

use crate::arguments::WorkArguments;
use crate::commands::fleet::machine::{Allowed, MachineSettings, Prepared};
use crate::exit::{CommandResult, Exit, Stop};
use crate::fleet_connection::ConnectedFleet;
use crate::fleet_keys::FleetKey;
use crate::prepare;
use crate::terminal::{self, visible};
use glovebox_fleet::drive::{DriveQueue, DriveTurn, Drivers, TurnEnd};
use glovebox_fleet::fleet::Fleet;
use glovebox_fleet::machine::Machine;
use glovebox_fleet::presence::{Presence, Present};
use glovebox_fleet::statement::{Admission, Role};
use glovebox_journal::event::MachineId;
use glovebox_plan::prepare::capability;
use glovebox_plan::prepare::folders::cache_dir;
use glovebox_record::{Label, Tier};
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

/// Maximum number of runs that this process drives at the same time.
const DRIVES_MAX: usize = 256;
/// Time between two looks for runs whose files are not needed any more.
const TIDY: Duration = Duration::from_secs(60);
/// The roles of which a machine needs one to make stages.
const EXECUTES: [Role; 2] = [Role::Build, Role::Verify];
/// Name of the file whose lock keeps a second process of the same name away.
const LOCK_FILE: &str = "lock";

/// Works until a signal ends it.
pub fn work(arguments: &WorkArguments) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Stop::io("start the executor", &error))?;
    let local = LocalSet::new();
    local.block_on(&runtime, serve(arguments))
}

async fn serve(arguments: &WorkArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.workdir, None)?;
    // The first time, the error says which key the operator must admit.
    FleetKey::Machine.read_or_create(&arguments.workdir)?;
    let connected = arguments.fleet.connect(&project.config, &arguments.workdir).await?;
    let admission = connected.require(&wanted(arguments)).await?;
    require_tier(&admission)?;
    let executes = !arguments.no_execute && admission.has_any(&EXECUTES);
    let drives = !arguments.no_drive && admission.has_any(&[Role::Drive]);
    let id = MachineId::from(admission.name.as_str());
    let (dir, _lock) = open_dir(arguments, &id)?;
    let _files = Files(dir.clone());
    let ConnectedFleet { fleet, blobs, store, .. } = &connected;
    let log = Arc::new(fleet.log(blobs.clone()));
    let is_draining = Arc::new(AtomicBool::new(false));
    let stop = |error| crate::fleet_connection::stop(&error);
    let (labels, tier) = (labels(arguments, &admission)?, arguments.tier);
    let best = capability::find().tier;
    let facts = capability::facts(labels.clone(), best.map(|best| tier.map_or(best, |tier| tier.min(best))));
    let private = store.folder().map(Path::to_owned).into_iter().collect();
    let settings = MachineSettings { labels, tier, allowed: Allowed::parse(&arguments.allow)?, private };
    let prepared = Rc::new(Prepared::new(dir, Arc::clone(&log), id.clone(), settings));
    let mut tasks = JoinSet::new();
    let mut busy = Arc::default();
    if executes {
        let draining = Arc::clone(&is_draining);
        let machine = Machine::new(fleet, Arc::clone(&log), id.clone(), facts.clone(), draining).await;
        let machine = machine.map_err(stop)?;
        busy = machine.busy();
        let machine = Rc::new(machine);
        for _ in 0..seats(arguments) {
            let (machine, prepared) = (Rc::clone(&machine), Rc::clone(&prepared));
            tasks.spawn_local(async move { machine.seat(&*prepared).await });
        }
    }
    if drives {
        let queue = DriveQueue::open(fleet).await.map_err(stop)?;
        let drivers = Drivers { fleet: fleet.clone(), log, queue };
        tasks.spawn_local(drive_all(Rc::new(drivers), Rc::clone(&prepared), Arc::clone(&is_draining)));
    }
    let seats = if executes { seats(arguments) } else { 0 };
    let presence = Presence { version: env!("CARGO_PKG_VERSION").to_owned(), facts, drives, seats, busy: 0 };
    let present = Present { machine: id.clone(), presence, busy, is_draining: Arc::clone(&is_draining) };
    tokio::spawn(say_present(fleet.clone(), present));
    let does = match (drives, executes) {
        (true, true) => "drives runs and makes stages",
        (true, false) => "drives runs",
        (false, _) => "makes stages",
    };
    terminal::say(format_args!("machine `{id}` works for the fleet ({does}); SIGTERM drains it\n"));
    until_drained(tasks, &prepared, &is_draining).await
}

/// Says that the machine is there to those who ask.
async fn say_present(fleet: Fleet, present: Present) {
    if let Err(error) = fleet.say_present(present).await {
        tracing::warn!(%error, "other machines cannot ask whether this one is there");
    }
}

/// Waits until a signal drains the machine and its stages have ended, or a second signal ends it.
async fn until_drained(mut tasks: JoinSet<()>, prepared: &Prepared, is_draining: &AtomicBool) -> CommandResult {
    let mut terminated = signal(SignalKind::terminate()).map_err(|error| Stop::io("listen for signals", &error))?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|error| Stop::io("listen for signals", &error))?;
    let tidy = async {
        loop {
            tokio::time::sleep(TIDY).await;
            prepared.tidy().await;
        }
    };
    let mut tidy = std::pin::pin!(tidy);
    loop {
        let exit = tokio::select! {
            never = &mut tidy => match never {},
            ended = tasks.join_next() => match ended {
                None => return after_drain(prepared),
                Some(Ok(())) => continue,
                Some(Err(error)) => return Err(Stop::new(Exit::Internal, error.to_string())),
            },
            _ = terminated.recv() => Exit::Terminated,
            _ = interrupted.recv() => Exit::Interrupted,
        };
        if is_draining.swap(true, Ordering::Relaxed) {
            return Ok(exit);
        }
        terminal::say("draining: no new stage begins here; a second signal ends the stages too\n");
    }
}

/// Returns how the work of a drained machine ends.
fn after_drain(prepared: &Prepared) -> CommandResult {
    let Some(run) = prepared.other_plan() else { return Ok(Exit::Ok) };
    let run = visible::line(run.as_str());
    let message = format!("run `{run}` was left to other machines: this machine binds another plan for it");
    let help = "have all machines of the fleet, and those who begin runs, use the same version of Glovebox";
    Err(Stop::new(Exit::Mismatch, message).with_help(help))
}

/// Drives runs until the machine drains. Then its runs are given to other machines.
async fn drive_all(drivers: Rc<Drivers>, prepared: Rc<Prepared>, is_draining: Arc<AtomicBool>) {
    let (room, mut driving) = (Arc::new(Semaphore::new(DRIVES_MAX)), JoinSet::new());
    while !is_draining.load(Ordering::Relaxed) {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        if let Some(turn) = drivers.queue.next().await {
            let (drivers, prepared) = (Rc::clone(&drivers), Rc::clone(&prepared));
            let draining = Arc::clone(&is_draining);
            driving.spawn_local(async move {
                let _place = place;
                let end = tokio::select! {
                    end = drive(&drivers, &prepared, &turn) => end,
                    () = drained(&draining) => TurnEnd::Again(Duration::ZERO),
                };
                drivers.queue.end(&turn, &end).await;
            });
        }
        while driving.try_join_next().is_some() {}
    }
    while driving.join_next().await.is_some() {}
}

async fn drained(is_draining: &AtomicBool) {
    while !is_draining.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn drive(drivers: &Drivers, prepared: &Prepared, turn: &DriveTurn) -> TurnEnd {
    let driven = async {
        if let Some(end) = drivers.left_to_others(turn).await.map_err(|error| causes(&error))? {
            return Ok(end);
        }
        let here = prepared.to_drive(turn).await?;
        drivers.drive(turn, &here, prepared.run_dir(&turn.run)?).await.map_err(|error| causes(&*error))
    };
    driven.await.unwrap_or_else(|reason: String| {
        tracing::error!(run = %turn.run, reason, "the run cannot be driven here");
        terminal::say(format_args!("run {}: {}\n", visible::line(turn.run.as_str()), visible::line(&reason)));
        drivers.queue.after_error(turn)
    })
}

/// Returns an error with its causes, as one line.
pub fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let texts = std::iter::successors(Some(error), |error| (*error).source()).map(ToString::to_string);
    texts.collect::<Vec<_>>().join(": ")
}

fn seats(arguments: &WorkArguments) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    arguments.seats.map_or_else(processors, usize::from)
}

/// Returns the labels of this machine: those of its admission, or the ones among them that `--label` names.
fn labels(arguments: &WorkArguments, admission: &Admission) -> Result<BTreeSet<Label>, Stop> {
    let named = arguments.labels.set();
    if let Some(other) = named.difference(&admission.labels).next() {
        let message = format!("`{}` is not admitted with the label `{other}`", admission.name);
        return Err(Stop::new(Exit::Policy, message).with_help("the operator admits it again with the label"));
    }
    Ok(if named.is_empty() { admission.labels.clone() } else { named })
}

/// Refuses a machine that confines commands less than its admission demands.
fn require_tier(admission: &Admission) -> Result<(), Stop> {
    let Some(least) = admission.tier else { return Ok(()) };
    let found = capability::find().tier;
    if found >= Some(least) {
        return Ok(());
    }
    let found = found.map_or("no tier", Tier::as_str);
    let message = format!("`{}` is admitted with the tier `{least}`, and this machine has {found}", admission.name);
    Err(Stop::new(Exit::Policy, message).with_help("see what is missing: `glovebox doctor`"))
}

/// Returns the roles of which this machine needs one.
fn wanted(arguments: &WorkArguments) -> Vec<Role> {
    let executes = EXECUTES.into_iter().filter(|_| !arguments.no_execute);
    executes.chain((!arguments.no_drive).then_some(Role::Drive)).collect()
}

/// Opens the folder for the files of runs, and locks it against a second process of the same name.
fn open_dir(arguments: &WorkArguments, id: &MachineId) -> Result<(PathBuf, File), Stop> {
    let folder = match &arguments.dir {
        Some(folder) => std::path::absolute(folder).map_err(|error| Stop::io("find the folder of `--dir`", &error))?,
        None => cache_dir().map(|folder| folder.join("fleet")).ok_or_else(|| {
            Stop::new(Exit::Usage, "there is no folder for the files of runs").with_help("name one: `--dir D`")
        })?,
    };
    let folder = folder.join(id.as_str());
    let failed = |error| Stop::io(format!("open `{}`", folder.display()), &error);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
    let lock = File::create(folder.join(LOCK_FILE)).map_err(failed)?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        let message = format!("another process works as machine `{id}` in `{}`", folder.display());
        return Err(Stop::new(Exit::Usage, message).with_help("one process can make several stages: `--seats N`"));
    }
    clear(&folder).map_err(failed)?;
    Ok((folder, lock))
}

/// The files of runs, which are removed when the process ends. Some are hold-outs.
struct Files(PathBuf);

impl Drop for Files {
    fn drop(&mut self) {
        if let Err(error) = clear(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "the files of runs were not removed");
        }
    }
}

/// Removes the files of runs, and those of an earlier process.
fn clear(folder: &Path) -> std::io::Result<()> {
    let mut cleared = Ok(());
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            continue;
        }
        while let Err(error) = glovebox_workspace::tree::remove_all(&entry.path()) {
            // Contents of files that no run needs are being removed by a thread of their own.
            if error.kind() != ErrorKind::NotFound {
                cleared = Err(error);
                break;
            }
        }
    }
    cleared
}
