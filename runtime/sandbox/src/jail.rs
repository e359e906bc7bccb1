//! A jail: one helper process with everything a stage's commands are behind, from its start to its certain end.
//!
//! The host decides and the helper does: it is told a policy, then one command at a time. A jail holds no state that matters
//! after its end, knows neither stages nor grants, and dies with this program, whichever way that ends.

mod binary;
mod bounds;
mod census;
mod cgroup;
mod complaint;
mod control;
mod disk;
mod probe;
mod run;
mod setting;
mod sockets;
mod spawner;
mod stores;
mod tier;
mod undertaker;
mod watching;

pub(crate) use binary::program_bytes;
pub use bounds::{Bounds, Spent};
pub use glovebox_jail::policy::{Bind, Source};
pub use glovebox_jail::wire::Act;
pub use probe::{Capability, Missing, probe, probe_tier};
pub use setting::{HOME_INSIDE, JailSetting, Network, Ties};
pub use tier::Tier;
pub use undertaker::settle;

use crate::exec::{Command, ExecError, ExecPolicy, Exit};
use crate::proxy::outside::{Internet, Outside};
use crate::proxy::{self, Proxy};
use census::Census;
use cgroup::Cgroup;
use complaint::BWRAP;
use control::{Control, wait_readable};
use disk::Disk;
use glovebox_jail::policy::Policy;
use glovebox_jail::wire::{Order, Word};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use setting::{Checked, Writable};
use sockets::Sockets;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use stores::Stores;
use undertaker::Remains;

/// Longest time the walls may take to stand.
const OPEN_MAX: Duration = Duration::from_secs(20);
/// Longest time a namespace of `bwrap`'s may take to die when its first process is killed.
const NAMESPACE_MAX: Duration = Duration::from_secs(5);
/// Why a jail does not stand, or did not end.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// What it was to be like is not allowed.
    #[error("{0}")]
    Setting(String),
    /// The helper could not build the walls.
    #[error("could not build the `{tier}` sandbox: {step}: {text}; `glovebox doctor` says what this machine lacks")]
    Walls {
        /// The tier asked for.
        tier: Tier,
        /// The step at which it ended.
        step: String,
        /// The system's answer.
        text: String,
    },
    /// Some of its processes could not be killed in time.
    #[error("processes of the sandbox could not be killed within {0:?}")]
    Survivors(Duration),
    /// The operating system refused.
    #[error("could not use the sandbox: failed to {act}: {source}")]
    Io {
        /// What was tried.
        act: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

/// What a jail came out as; part of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Which walls stand.
    pub tier: Tier,
    /// Landlock's ABI that is enforced; 0 where none is.
    pub landlock_abi: u32,
    /// What is weaker than the tier promises, such as `memory=soft`.
    pub degradations: Vec<String>,
}

/// A standing jail. Dropped, it is killed with everything in it.
#[derive(Debug)]
pub struct Jail {
    /// Nothing once the jail is lost.
    control: Mutex<Option<Control>>,
    /// The helper; nothing once the jail is dead.
    child: Option<Child>,
    /// Readable when everything in the jail is dead.
    pidfd: Option<OwnedFd>,
    /// The workspace's root as commands see it, where that is not a folder of the host.
    merged: Option<OwnedFd>,
    /// Where it is one.
    folder: Option<PathBuf>,
    proxy: Option<Proxy>,
    sockets: Option<Sockets>,
    workspace: PathBuf,
    writable: Writable,
    home: PathBuf,
    tmp: PathBuf,
    policy: ExecPolicy,
    network: Network,
    bounds: Bounds,
    disk: Disk,
    census: Census,
    standing: Standing,
    spent: Mutex<Spent>,
    cgroup: Option<Cgroup>,
}

impl Jail {
    /// Starts a helper, has it build the walls and waits until they stand. Blocks for milliseconds.
    ///
    /// Denied to everything that runs in it, with [`Tier::Full`]: every file that is not the system's own programs, a bind or
    /// the workspace; the network, the host's processes, its terminal; more than [`Bounds`]; outliving the jail.
    ///
    /// # Errors
    /// [`JailError::Setting`] before anything was started, [`JailError::Walls`] when the system does not let them be built.
    pub fn open(setting: &JailSetting, source: Source) -> Result<Self, JailError> {
        Self::open_tied(setting, source, &Ties::default())
    }

    /// The same with ties to a part of this program.
    ///
    /// # Errors
    /// As [`Jail::open`]; [`JailError::Walls`] where the tier has no such tie.
    pub fn open_tied(setting: &JailSetting, source: Source, ties: &Ties) -> Result<Self, JailError> {
        Self::build(setting, source, ties, Arc::new(Internet))
    }

    /// The same with another way out for the proxy of [`Network::Proxy`].
    ///
    /// # Errors
    /// As [`Jail::open`].
    pub fn open_with(setting: &JailSetting, source: Source, outside: Arc<dyn Outside>) -> Result<Self, JailError> {
        Self::build(setting, source, &Ties::default(), outside)
    }

    fn build(setting: &JailSetting, source: Source, ties: &Ties, outside: Arc<dyn Outside>) -> Result<Self, JailError> {
        let Checked { mut policy, workspace, folder, writable } = setting::check(setting, ties, &source)?;
        let (control, theirs) = Control::pair().map_err(io_error("make its socket"))?;
        // The helper waits for its first order: what is done here meanwhile costs no time.
        let starting = spawner::spawn(theirs).map_err(io_error("start the jail helper"))?;
        let cgroup = Cgroup::make(&setting.bounds).inspect_err(|why| tracing::debug!(why, "no control group")).ok();
        let procs = cgroup.as_ref().map(Cgroup::procs).unwrap_or_default();
        policy.cgroup_procs = procs.iter().map(|path| setting::text(path)).collect::<Result<_, _>>()?;
        let disk = watched(&policy.workspace.source, setting);
        let child = starting.wait().map_err(io_error("start the jail helper"))?;
        let (home, tmp) = setting.home_and_tmp();
        let census = Census::new(child.id());
        let mut jail = Self {
            control: Mutex::new(None),
            child: Some(child),
            pidfd: None,
            merged: None,
            folder,
            proxy: None,
            sockets: None,
            workspace,
            writable,
            home,
            tmp,
            policy: setting.policy.clone(),
            network: setting.network.clone(),
            bounds: setting.bounds,
            disk,
            census,
            standing: Standing { tier: setting.tier, landlock_abi: 0, degradations: Vec::new() },
            spent: Mutex::default(),
            cgroup,
        };
        if let Err(error) = jail.stand(&control, policy, outside) {
            // Closed before the jail is dropped: that is what ends a helper that has no other first process.
            drop(control);
            return Err(error);
        }
        let is_root = rustix::process::geteuid().is_root();
        bounds::take_back(&mut jail.standing.degradations, setting.tier, is_root);
        bounds::name_not_held(&mut jail.standing.degradations, jail.cgroup.is_some(), jail.census.can_look());
        jail.control = Mutex::new(Some(control));
        Ok(jail)
    }

    /// Gives the first order and takes the words that follow it.
    fn stand(&mut self, control: &Control, policy: Policy, outside: Arc<dyn Outside>) -> Result<(), JailError> {
        let has_sockets = policy.sockets;
        let setup = Order::Setup(Box::new(policy));
        let (deadline, mut complaint) = (Instant::now() + OPEN_MAX, None);
        control.send(&setup, &[]).map_err(io_error("tell the jail helper what to build"))?;
        loop {
            let word = control.receive_until(deadline).map_err(io_error("hear from the jail helper"))?;
            let Some((word, descriptors)) = word else { return Err(self.silent(complaint)) };
            let mut descriptors = descriptors.into_iter();
            match word {
                Word::Born => {
                    self.pidfd = descriptors.next();
                    complaint = descriptors.next();
                    if self.standing.tier == Tier::Bwrap {
                        // The helper that `bwrap` starts inside asks again: nothing of ours is in its arguments.
                        match control.send(&setup, &[]) {
                            // It was not started; why, the next word says.
                            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                            sent => sent.map_err(io_error("tell the jail helper what to build"))?,
                        }
                    }
                }
                Word::Stores => self.census.keep(Stores::of(std::mem::take(&mut descriptors).collect())),
                Word::Ready(standing) => {
                    self.standing.landlock_abi = standing.landlock_abi;
                    self.standing.degradations = standing.degradations;
                    if self.folder.is_none() || self.standing.tier == Tier::Full {
                        self.merged = descriptors.next();
                    }
                    self.check_standing()?;
                    let is_proxied = matches!(self.network, Network::Proxy(_));
                    let listener = if is_proxied { descriptors.next() } else { None };
                    if has_sockets {
                        let sockets = descriptors.next().ok_or_else(|| self.missing("the way to its sockets"))?;
                        self.sockets = Some(Sockets::new(sockets));
                    }
                    return self.serve(listener, outside);
                }
                Word::Failed(failure) => {
                    return Err(JailError::Walls { tier: self.standing.tier, step: failure.step, text: failure.text });
                }
                Word::Started | Word::Ended(_) => return Err(self.missing("the expected word")),
            }
        }
    }

    fn check_standing(&self) -> Result<(), JailError> {
        if self.pidfd.is_none() {
            return Err(self.missing("a handle of its first process"));
        }
        if self.merged.is_none() && self.folder.is_none() {
            return Err(self.missing("its workspace"));
        }
        Ok(())
    }

    /// Starts the proxy on the socket that listens inside.
    fn serve(&mut self, listener: Option<OwnedFd>, outside: Arc<dyn Outside>) -> Result<(), JailError> {
        if let Network::Proxy(domains) = &self.network {
            let rules = setting::rules(domains)?;
            let listener = listener.ok_or_else(|| self.missing("the proxy's socket"))?;
            let proxy = Proxy::start_with(listener, rules, proxy::Bounds::default(), outside);
            self.proxy = Some(proxy.map_err(io_error("start the proxy"))?);
        }
        Ok(())
    }

    /// Why a helper ended before it said anything.
    fn silent(&self, complaint: Option<OwnedFd>) -> JailError {
        if self.standing.tier == Tier::Bwrap && self.pidfd.is_some() {
            let text = complaint::explain(complaint);
            return JailError::Walls { tier: Tier::Bwrap, step: format!("start {BWRAP}"), text };
        }
        let source = io::Error::new(io::ErrorKind::UnexpectedEof, "it ended without a word");
        JailError::Io { act: "hear from the jail helper", source }
    }

    fn missing(&self, what: &str) -> JailError {
        let text = format!("the helper did not send {what}");
        JailError::Walls { tier: self.standing.tier, step: "report".to_owned(), text }
    }

    /// Runs a command and returns when nothing of it is alive any more. Blocks; one command at a time.
    ///
    /// Denied: the caller's environment, programs from folders a stage can write, dangerous variables, a terminal, outliving
    /// the command.
    ///
    /// # Errors
    /// [`ExecError`] when it was not started, when something of it could not be killed, or when the jail is gone.
    pub fn run(&self, command: &Command, canceled: &AtomicBool) -> Result<Exit, ExecError> {
        run::run(self, command, None, canceled)
    }

    /// The same with pipes for its standard input, output and error instead of what the command says. Output and error are passed on
    /// while they come; of both only length and digest are kept.
    ///
    /// # Errors
    /// As [`Jail::run`].
    pub fn run_piped(&self, command: &Command, pipes: [OwnedFd; 3], canceled: &AtomicBool) -> Result<Exit, ExecError> {
        run::run(self, command, Some(pipes), canceled)
    }

    /// Takes a TCP socket of the jail's network, to connect to a port of its loopback or to listen on one.
    ///
    /// # Errors
    /// Without [`Ties::sockets`], and when the jail is gone.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        let sockets = self.sockets.as_ref();
        sockets.ok_or_else(|| io::Error::other("the sandbox gives no sockets"))?.take()
    }

    /// Returns the workspace as commands see it, for opening: a folder, or the path of a descriptor this jail holds.
    pub fn root(&self) -> PathBuf {
        match (&self.folder, &self.merged) {
            (None, Some(merged)) => format!("/proc/self/fd/{}", merged.as_raw_fd()).into(),
            (Some(folder), _) => folder.clone(),
            (None, None) => self.workspace.clone(),
        }
    }

    /// Returns the workspace's path inside.
    pub fn inside(&self) -> &Path {
        &self.workspace
    }

    /// Returns what the jail came out as.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Kills everything in the jail and returns when it is dead, with what its commands used.
    ///
    /// # Errors
    /// [`JailError::Survivors`] when something could not be killed in time.
    pub fn end(mut self) -> Result<Spent, JailError> {
        self.kill()?;
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if spent.commands > 0 {
            spent.disk_peak_bytes = Some(self.disk.finish());
            spent.file_peak_bytes = Some(self.disk.largest()).filter(|bytes| *bytes > 0);
        }
        spent.traffic = self.proxy.take().map(Proxy::stop);
        Ok(spent)
    }

    fn control(&self) -> MutexGuard<'_, Option<Control>> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills the first process of a namespace, and with it everything in it, or has the helper kill what it started. When this returns
    /// all of it is dead; what is left of a jail with namespaces goes later.
    fn kill(&mut self) -> Result<(), JailError> {
        drop(self.control().take());
        self.await_death()?;
        let Some(child) = self.child.take() else { return Ok(()) };
        let remains = Remains { child, merged: self.merged.take(), cgroup: self.cgroup.take() };
        if self.pidfd.is_some() && self.standing.tier.has_own_root() {
            undertaker::bury(remains);
            return Ok(());
        }
        remains.remove().map_err(io_error("end the jail helper"))
    }

    /// Waits until everything in the jail is dead. Its end of the control socket must be closed, or its first process
    /// dead already.
    fn await_death(&self) -> Result<(), JailError> {
        let Some(pidfd) = &self.pidfd else { return Ok(()) };
        let signal = || {
            // Gone already is as good.
            let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
        };
        if self.standing.tier == Tier::Full {
            signal();
        }
        let max = self.policy.kill_max;
        let wait = |max| wait_readable(pidfd, Instant::now() + max).map_err(io_error("wait for the sandbox's end"));
        let mut is_dead = wait(max)?;
        if !is_dead && self.standing.tier == Tier::Bwrap {
            // The namespace is bwrap's: with it goes everything.
            signal();
            is_dead = wait(NAMESPACE_MAX)?;
        }
        // A helper without a namespace may have been killed by what it watched over; the group still knows everybody.
        let left = match &self.cgroup {
            Some(group) if is_dead && !self.standing.tier.has_own_root() => group.kill_all(Instant::now() + max),
            _ => 0,
        };
        if is_dead && left == 0 { Ok(()) } else { Err(JailError::Survivors(max)) }
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        if self.child.is_some()
            && let Err(error) = self.kill()
        {
            tracing::error!(%error, "a sandbox did not end");
        }
    }
}

/// The folders whose size is watched.
fn watched(source: &Source, setting: &JailSetting) -> Disk {
    let (home, tmp) = setting.home_and_tmp();
    let (mut folders, filled) = match source {
        Source::Overlay { upper, .. } => (vec![PathBuf::from(upper)], false),
        Source::Directory(copy) => (vec![PathBuf::from(copy)], true),
    };
    if !setting.tier.has_own_root() {
        folders.extend([home, tmp]);
    }
    // Caches keep what earlier stages left; only what is added counts.
    let before = folders.len();
    folders.extend(setting.inner.iter().filter(|bind| bind.writable).map(|bind| PathBuf::from(&bind.source)));
    let filled = filled || folders.len() > before;
    Disk::new(folders, setting.bounds.disk_bytes, filled)
}

fn io_error(act: &'static str) -> impl Fn(io::Error) -> JailError {
    move |source| JailError::Io { act, source }
}
