//! A jail: one helper process and the whole sandbox of a stage's commands, from start to end.
//!
//! The host sends a policy, then one command at a time. The helper builds the jail and runs the commands. A jail keeps
//! no state after its end, knows neither stages nor grants, and always dies with Glovebox.

mod binary;
mod bounds;
mod bwrap;
mod cgroup;
mod control;
mod disk;
mod environment;
mod exec_policy;
mod loopback;
mod namespaces;
mod origin;
mod policy_builder;
mod poll_interval;
mod probe;
mod processes;
mod program;
mod reaper;
mod receipt;
mod run;
mod sockets;
mod spawner;
mod stores;
mod streaming;
mod template;
mod waker;
mod watchdog;

pub(crate) use binary::program_bytes;
pub use bounds::ResourceUsage;
pub use exec_policy::ExecPolicy;
pub use glovebox_jail_helper::policy::HOME_INSIDE;
pub use glovebox_jail_helper::policy::{Bind, Source};
pub use glovebox_jail_helper::wire::SelfTestCheck;
pub(crate) use policy_builder::STATUS_DIR;
pub use policy_builder::{JailChannels, JailSetting, is_system};
pub use probe::{MissingTier, ProbeReport, probe, probe_tier};
pub use reaper::wait_for_cleanup;
pub use receipt::CommandLine;
pub use streaming::OnBytes;
pub use template::retire_templates;
pub use waker::cancel;

use crate::exec::{Command, ExecError, Exit};
use crate::proxy::dialer::{Dialer, Internet};
use crate::proxy::{self, Proxy};
use crate::pulse::Pulse;
use cgroup::Cgroup;
use control::Control;
use disk::Disk;
use glovebox_jail_helper::policy::{Policy, Preparation};
use glovebox_jail_helper::wire::{Reply, Request};
use glovebox_record::{Limits, Network, Tier};
use namespaces::Namespaces;
use origin::Origin;
use policy_builder::{CheckedSetting, WritablePaths};
use processes::JailProcesses;
use reaper::JailCleanup;
use serde::{Deserialize, Serialize};
use sockets::Sockets;
use std::borrow::Cow;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use stores::Stores;

/// Maximum time for building a jail.
const OPEN_MAX: Duration = Duration::from_secs(20);
/// Maximum time for a template to fork a jail's first process.
const FORK_MAX: Duration = Duration::from_secs(5);

/// Why a jail could not be built, or did not end.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// A setting of the jail is not allowed.
    #[error("{0}")]
    Setting(String),
    /// The helper could not build the jail.
    #[error("could not build the `{tier}` sandbox: {step}: {text}; `glovebox doctor` shows what this machine lacks")]
    Build {
        /// The requested tier.
        tier: Tier,
        /// The step that failed.
        step: String,
        /// The error of the system.
        text: String,
    },
    /// Some processes of the jail could not be killed in time.
    #[error("processes of the sandbox could not be killed within {0:?}")]
    Survivors(Duration),
    /// The operating system refused.
    #[error("could not use the sandbox: failed to {act}: {source}")]
    Io {
        /// The failed action.
        act: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

/// The confinement of a jail that is in force. It is part of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JailStatus {
    /// The tier of the jail.
    pub tier: Tier,
    /// The Landlock ABI in force; 0 if Landlock is not used.
    pub landlock_abi: u32,
    /// Guarantees of the tier that are weaker on this machine, such as `memory=soft`.
    pub degradations: Vec<String>,
}

/// A jail that is ready. Dropping it kills the jail and everything in it.
#[derive(Debug)]
pub struct Jail {
    /// `None` once the jail cannot be used any more.
    control: Mutex<Option<Control>>,
    /// `None` once the jail is dead.
    origin: Option<Origin>,
    /// Readable when everything in the jail is dead.
    pidfd: Option<OwnedFd>,
    /// The root of the workspace as commands see it; `None` if it is a folder of the host.
    merged: Option<OwnedFd>,
    /// The folder of the workspace on the host; `None` if the workspace is an overlay.
    folder: Option<PathBuf>,
    proxy: Option<Proxy>,
    sockets: Option<Sockets>,
    workspace: PathBuf,
    writable: WritablePaths,
    home: PathBuf,
    tmp: PathBuf,
    kept: PathBuf,
    policy: ExecPolicy,
    /// Moved out when the proxy starts.
    network: Network,
    limits: Limits,
    disk: Disk,
    processes: JailProcesses,
    namespaces: Namespaces,
    status: JailStatus,
    usage: Mutex<ResourceUsage>,
    cgroup: Option<Cgroup>,
    pulse: Pulse,
}

impl Jail {
    /// Starts a helper and waits until it has built the jail. Blocks for milliseconds.
    ///
    /// With [`Tier::Full`], everything that runs in the jail is denied: every file other than the system's programs,
    /// the binds and the workspace; the network, the host's processes and its terminal; more than [`Limits`]; outliving
    /// the jail.
    ///
    /// # Errors
    /// Returns [`JailError::Setting`] before anything is started, or [`JailError::Build`] if this system cannot build
    /// the jail.
    pub fn open(setting: &JailSetting, source: Source) -> Result<Self, JailError> {
        Self::open_with_channels(setting, source, &JailChannels::default())
    }

    /// As [`Jail::open`], but with channels between the jail and Glovebox.
    ///
    /// # Errors
    /// Returns the errors of [`Jail::open`], and [`JailError::Build`] if the tier does not support such a channel.
    pub fn open_with_channels(
        setting: &JailSetting,
        source: Source,
        channels: &JailChannels,
    ) -> Result<Self, JailError> {
        Self::build(setting, source, channels, Arc::new(Internet))
    }

    /// As [`Jail::open`], but with another dialer for the proxy of [`Network::Proxy`].
    ///
    /// # Errors
    /// Returns the errors of [`Jail::open`].
    pub fn open_with_dialer(setting: &JailSetting, source: Source, dialer: Arc<dyn Dialer>) -> Result<Self, JailError> {
        Self::build(setting, source, &JailChannels::default(), dialer)
    }

    /// Begins to start the program that builds the jails of tier `full`, before their policy is known. Returns at once. An error is
    /// not reported here: the first jail tries again.
    pub fn anticipate() {
        if let Err(error) = template::start_spare() {
            tracing::debug!(%error, "no spare helper for jails");
        }
    }

    /// Begins to build what the jails of tier `full` with this policy have in common, so that the first of them opens sooner. Returns at
    /// once. An error is not reported here: the first jail tries again.
    pub fn prepare(policy: &ExecPolicy, network: &Network) {
        let prepared = policy_builder::preparation(policy, network).ok().flatten();
        let Some(preparation) = prepared.filter(|_| template::is_usable()) else { return };
        let start = move || {
            if let Err(error) = template::start(&preparation) {
                tracing::debug!(%error, "no template of jails");
            }
        };
        if let Err(error) = std::thread::Builder::new().name("jail-template".to_owned()).spawn(start) {
            tracing::debug!(%error, "no thread for the template of jails");
        }
    }

    /// Builds the jail with a template if possible, otherwise with a separate helper. Both enforce the same.
    fn build(
        setting: &JailSetting,
        source: Source,
        channels: &JailChannels,
        dialer: Arc<dyn Dialer>,
    ) -> Result<Self, JailError> {
        let checked = policy_builder::check(setting, channels, &source)?;
        let Some(preparation) = checked.policy.preparation().filter(|_| template::is_usable()) else {
            return Self::build_alone(setting, checked, dialer);
        };
        let why = match Self::build_forked(setting, checked, &preparation, Arc::clone(&dialer)) {
            Ok(jail) => return Ok(jail),
            Err(why) => why,
        };
        let jail = Self::build_alone(setting, policy_builder::check(setting, channels, &source)?, dialer)?;
        // Reported only after the separate helper has succeeded: if no helper can build the jail, the template is not
        // the cause.
        template::failed(&preparation, &why);
        Ok(jail)
    }

    fn build_forked(
        setting: &JailSetting,
        checked: CheckedSetting,
        preparation: &Preparation,
        dialer: Arc<dyn Dialer>,
    ) -> Result<Self, JailError> {
        let (control, theirs) = Control::pair().map_err(io_error("make the control socket of a jail"))?;
        template::fork(preparation, theirs).map_err(io_error("start the template of jails"))?;
        let jail = Self::raise(setting, checked, control, || Ok(Origin::Fork(None)), dialer)?;
        template::succeeded();
        Ok(jail)
    }

    fn build_alone(setting: &JailSetting, checked: CheckedSetting, dialer: Arc<dyn Dialer>) -> Result<Self, JailError> {
        let (control, theirs) = Control::pair().map_err(io_error("make the control socket of the jail helper"))?;
        let starting = spawner::spawn(theirs).map_err(io_error("start the jail helper"))?;
        Self::raise(setting, checked, control, || starting.wait().map(Origin::Program), dialer)
    }

    /// Completes a jail whose helper is starting. The host prepares its part at the same time, because the helper waits
    /// for its first request.
    fn raise(
        setting: &JailSetting,
        CheckedSetting { mut policy, writable }: CheckedSetting,
        control: Control,
        started: impl FnOnce() -> io::Result<Origin>,
        dialer: Arc<dyn Dialer>,
    ) -> Result<Self, JailError> {
        let cgroup = Cgroup::make(&setting.limits).inspect_err(|why| tracing::debug!(why, "no control group")).ok();
        let procs = cgroup.as_ref().map(Cgroup::procs).unwrap_or_default();
        policy.cgroup_procs = procs.into_iter().map(policy_builder::utf8).collect::<Result<_, _>>()?;
        policy.bounds.is_memory_counted = cgroup.is_some() || processes::can_look_at_any();
        let disk = watched(&policy.workspace.source, setting);
        let origin = started().map_err(io_error("start the jail helper"))?;
        let (home, tmp) = setting.home_and_tmp();
        let mut jail = Self {
            control: Mutex::new(None),
            processes: JailProcesses::for_origin(&origin),
            origin: Some(origin),
            pidfd: None,
            merged: None,
            folder: host_folder(&policy.workspace.source),
            proxy: None,
            sockets: None,
            workspace: policy.workspace.at.clone(),
            writable,
            home,
            tmp,
            kept: setting.kept_at(),
            policy: setting.policy.clone(),
            network: setting.network.clone(),
            limits: setting.limits,
            disk,
            namespaces: Namespaces::for_tier(setting.tier),
            status: JailStatus { tier: setting.tier, landlock_abi: 0, degradations: Vec::new() },
            usage: Mutex::default(),
            cgroup,
            pulse: setting.pulse.clone(),
        };
        if let Err(error) = jail.set_up(&control, policy, dialer) {
            // Closed before the jail is dropped, because this ends a helper without a namespace.
            drop(control);
            return Err(error);
        }
        let is_root = rustix::process::geteuid().is_root();
        jail.namespaces.correct(&mut jail.status.degradations, is_root);
        bounds::name_not_enforced(&mut jail.status.degradations, jail.cgroup.is_some(), || jail.processes.can_look());
        jail.control = Mutex::new(Some(control));
        Ok(jail)
    }

    /// Sends the setup and reads replies until the jail is ready.
    fn set_up(&mut self, control: &Control, policy: Policy, dialer: Arc<dyn Dialer>) -> Result<(), JailError> {
        let has_sockets = policy.sockets;
        let setup = Request::Setup(Box::new(policy));
        let (begin, is_forked) = (Instant::now(), matches!(self.origin, Some(Origin::Fork(_))));
        control.send(&setup, &[]).map_err(io_error("send the setup to the jail helper"))?;
        loop {
            let max = if is_forked && self.pidfd.is_none() { FORK_MAX } else { OPEN_MAX };
            let reply = control.receive_until(begin + max).map_err(io_error("read a reply of the jail helper"))?;
            let Some((reply, descriptors)) = reply else { return Err(self.silent()) };
            let mut descriptors = descriptors.into_iter();
            match reply {
                Reply::Spawned => {
                    self.pidfd = descriptors.next();
                    self.take_fork(&mut descriptors)?;
                    let spawned = self.namespaces.spawned(control, &setup, descriptors);
                    spawned.map_err(io_error("send the setup to the jail helper"))?;
                }
                Reply::Stores => self.processes.set_stores(Stores::new(descriptors.collect())),
                Reply::Ready(enforcement) => {
                    self.status.landlock_abi = enforcement.landlock_abi;
                    self.status.degradations = enforcement.degradations;
                    if self.folder.is_none() || self.status.tier == Tier::Full {
                        self.merged = descriptors.next();
                    }
                    self.check_complete()?;
                    let is_proxied = matches!(self.network, Network::Proxy(_));
                    let listener = if is_proxied { descriptors.next() } else { None };
                    if has_sockets {
                        let sockets = descriptors.next().ok_or_else(|| self.missing("the descriptor for sockets"))?;
                        self.sockets = Some(Sockets::new(sockets));
                    }
                    return self.start_proxy(listener, dialer);
                }
                Reply::Failed(failure) => {
                    return Err(JailError::Build { tier: self.status.tier, step: failure.step, text: failure.text });
                }
                Reply::Started | Reply::Ended(_) => return Err(self.missing("the expected reply")),
            }
        }
    }

    /// Stores the descriptors that the first process of a forked jail sends in addition to its pidfd.
    fn take_fork(&mut self, descriptors: &mut impl Iterator<Item = OwnedFd>) -> Result<(), JailError> {
        let Some(Origin::Fork(_)) = self.origin else { return Ok(()) };
        let mounts = descriptors.next().ok_or_else(|| self.missing("the mount namespace"))?;
        self.origin = Some(Origin::Fork(Some(mounts)));
        let first = self.pidfd.as_ref().map(OwnedFd::try_clone).transpose().map_err(io_error("copy a descriptor"))?;
        first.into_iter().for_each(|first| self.processes.set_first(first));
        Ok(())
    }

    /// Returns the counters of what the host observes of the commands.
    pub(crate) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn check_complete(&self) -> Result<(), JailError> {
        if self.pidfd.is_none() {
            return Err(self.missing("a descriptor of its first process"));
        }
        if self.merged.is_none() && self.folder.is_none() {
            return Err(self.missing("its workspace"));
        }
        Ok(())
    }

    /// Starts the proxy on the listening socket inside the jail.
    fn start_proxy(&mut self, listener: Option<OwnedFd>, dialer: Arc<dyn Dialer>) -> Result<(), JailError> {
        if let Network::Proxy(rules) = std::mem::take(&mut self.network) {
            let listener = listener.ok_or_else(|| self.missing("the proxy's socket"))?;
            let proxy = Proxy::start_with(listener, rules, proxy::ProxyBounds::default(), dialer, self.pulse.clone());
            self.proxy = Some(proxy.map_err(io_error("start the proxy"))?);
        }
        Ok(())
    }

    /// Returns the reason why a helper ended before it was ready.
    fn silent(&self) -> JailError {
        self.namespaces.explain_silence().unwrap_or_else(|| {
            let source = io::Error::new(io::ErrorKind::UnexpectedEof, "the helper ended and did not reply");
            JailError::Io { act: "read a reply of the jail helper", source }
        })
    }

    fn missing(&self, what: &str) -> JailError {
        let text = format!("the helper did not send {what}");
        JailError::Build { tier: self.status.tier, step: "start the helper".to_owned(), text }
    }

    /// Runs a command and returns when no process of it is alive. Blocks. Only one command may run at a time.
    ///
    /// The command is denied: the caller's environment, programs from folders that a stage can write, dangerous
    /// variables, a terminal, processes that outlive the command.
    ///
    /// # Errors
    /// Returns an [`ExecError`] if the command was not started, if a process of it could not be killed, or if the jail
    /// has ended.
    pub fn run(&self, command: &Command, canceled: &AtomicBool) -> Result<Exit, ExecError> {
        run::run(self, command, None, canceled)
    }

    /// As [`Jail::run`], but with pipes for standard input, output and error. Output and error are forwarded as they
    /// arrive, and only their length and digest are kept.
    ///
    /// # Errors
    /// Returns the errors of [`Jail::run`].
    pub fn run_piped(&self, command: &Command, pipes: [OwnedFd; 3], canceled: &AtomicBool) -> Result<Exit, ExecError> {
        run::run(self, command, Some(pipes), canceled)
    }

    /// Returns a path to open the workspace as commands see it: a folder, or the path of a descriptor that this jail
    /// holds.
    pub fn root(&self) -> Cow<'_, Path> {
        match (&self.folder, &self.merged) {
            (None, Some(merged)) => PathBuf::from(format!("/proc/self/fd/{}", merged.as_raw_fd())).into(),
            (Some(folder), _) => folder.into(),
            (None, None) => self.workspace.as_path().into(),
        }
    }

    /// Returns the path of the workspace inside the jail.
    pub fn inside(&self) -> &Path {
        &self.workspace
    }

    /// Returns the confinement that is in force.
    pub fn status(&self) -> &JailStatus {
        &self.status
    }

    /// Kills everything in the jail and returns when it is dead, with the resource usage of its commands.
    ///
    /// # Errors
    /// Returns [`JailError::Survivors`] if a process could not be killed in time.
    pub fn end(mut self) -> Result<ResourceUsage, JailError> {
        self.kill()?;
        let mut usage = std::mem::take(&mut *self.usage.lock().unwrap_or_else(PoisonError::into_inner));
        if usage.commands > 0 {
            usage.disk_peak_bytes = Some(self.disk.finish());
            usage.file_peak_bytes = Some(self.disk.largest()).filter(|bytes| *bytes > 0);
        }
        usage.traffic = self.proxy.take().map(Proxy::stop);
        Ok(usage)
    }

    fn control(&self) -> MutexGuard<'_, Option<Control>> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills the first process of a namespace and with it all processes, or closes the control socket so that the
    /// helper kills its processes. When this returns, all processes are dead. The mounts of a jail with namespaces are
    /// removed later.
    fn kill(&mut self) -> Result<(), JailError> {
        drop(self.control().take());
        self.await_death()?;
        let Some(origin) = self.origin.take() else { return Ok(()) };
        let (stores, merged, cgroup) = (self.processes.take_stores(), self.merged.take(), self.cgroup.take());
        let cleanup = JailCleanup { origin, stores, merged, cgroup };
        if self.pidfd.is_some() && self.status.tier.has_own_root() {
            reaper::reap_later(cleanup);
            return Ok(());
        }
        cleanup.run().map_err(io_error("end the jail helper"))
    }

    /// Waits until everything in the jail is dead. The host's end of the control socket must be closed, or the first
    /// process must be dead already.
    fn await_death(&self) -> Result<(), JailError> {
        let Some(pidfd) = &self.pidfd else { return Ok(()) };
        let max = self.policy.kill_max;
        let is_dead = self.namespaces.kill(pidfd, max).map_err(io_error("wait for the end of the sandbox"))?;
        // Without a namespace, a command may have killed the helper. The control group still lists every process.
        let left = match &self.cgroup {
            Some(group) if is_dead && !self.status.tier.has_own_root() => group.kill_all(Instant::now() + max),
            _ => 0,
        };
        if is_dead && left == 0 { Ok(()) } else { Err(JailError::Survivors(max)) }
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        if self.origin.is_some()
            && let Err(error) = self.kill()
        {
            tracing::error!(%error, "a sandbox did not end");
        }
    }
}

/// Returns the folder of the workspace on the host. Returns `None` for an overlay, whose merged folder exists only in
/// the jail.
fn host_folder(source: &Source) -> Option<PathBuf> {
    match source {
        Source::Directory(folder) => Some(folder.to_owned()),
        Source::Overlay { .. } => None,
    }
}

/// Returns the folders whose size is limited.
fn watched(source: &Source, setting: &JailSetting) -> Disk {
    let (home, tmp) = setting.home_and_tmp();
    let (mut folders, filled) = match source {
        Source::Overlay { upper, .. } => (vec![upper.to_owned()], false),
        Source::Directory(copy) => (vec![copy.to_owned()], true),
    };
    if !setting.tier.has_own_root() {
        folders.extend([home, tmp]);
    }
    // Caches contain files of earlier stages, so only additions are counted.
    let before = folders.len();
    let mounted = setting.inner.iter().chain(&setting.kept);
    let written = |bind: &Bind| bind.layer.as_ref().map_or_else(|| bind.source.clone(), |layer| layer.upper.clone());
    folders.extend(mounted.filter(|bind| bind.writable).map(written));
    let filled = filled || folders.len() > before;
    Disk::new(folders, setting.limits.disk_bytes, filled)
}

fn io_error(act: &'static str) -> impl Fn(io::Error) -> JailError {
    move |source| JailError::Io { act, source }
}
