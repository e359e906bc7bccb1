//! Prepares the runs of a fleet on this machine: their files, and the binding of their plans.

use crate::commands::work::causes;
use crate::exit::Exit;
use crate::exit::Stop;
use crate::prepare;
use crate::runs::recorded;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::driver::RunError;
use glovebox_engine::run::{Contents, MachineError, RunDir, UnboundRun};
use glovebox_fleet::blobs::ObjectBlobs;
use glovebox_fleet::drive::DriveTurn;
use glovebox_fleet::log::NatsLog;
use glovebox_fleet::machine::{NotPrepared, Prepare, RunHere};
use glovebox_host::llm::Provider;
use glovebox_journal::event::{Digest, MachineId, RunId, RunStarted};
use glovebox_journal::ports::PortError;
use glovebox_plan::plan::ProgramFolders;
use glovebox_plan::prepare::binding::{Purpose, Request, bind_plan};
use glovebox_plan::prepare::capability;
use glovebox_plan::prepare::component_host::ComponentHost;
use glovebox_plan::prepare::executor::{Executor, Worker};
use glovebox_plan::prepare::refusal::{Class, Refusal};
use glovebox_plan::prepare::script;
use glovebox_plan::prepare::trust::Wanted;
use glovebox_record::Tier;
use glovebox_record::placement::{Label, ProgramName};
use glovebox_workspace::holdout;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, mpsc};

/// How long the files of a run stay on this machine after the last stage that needed them.
const KEPT: Duration = Duration::from_secs(600);
/// Maximum number of bytes that are fetched to one folder of contents that runs share. Further ones go to another folder, and the
/// earlier one is removed when no run needs it.
const CONTENTS_BYTES_MAX: u64 = 8 << 30;
/// Maximum number of progress events that wait. A machine of a fleet shows none of them.
const PROGRESS_MAX: usize = 16;

/// The transfers that the user of this machine allows, each `SOURCE to SINK`.
pub struct Allowed(BTreeSet<(String, String)>);

impl Allowed {
    /// Reads the values of `--allow`.
    pub fn parse(texts: &[String]) -> Result<Self, Stop> {
        let pair = |text: &String| {
            let pair = text.rsplit_once(" to ").map(|(source, sink)| (source.to_owned(), sink.to_owned()));
            pair.ok_or_else(|| {
                Stop::new(Exit::Usage, format!("`--allow {text}`: expected `SOURCE to SINK`"))
                    .with_help("`glovebox plan` names both, such as `env OPENAI_API_KEY to https://api.openai.com`")
            })
        };
        Ok(Self(texts.iter().map(pair).collect::<Result<_, _>>()?))
    }

    /// Returns true if the fleet may learn what is in a folder.
    fn shows_folder(&self, folder: &str) -> bool {
        self.0.contains(&(format!("folder {folder}"), "fleet".to_owned()))
    }

    /// Returns the first transfer that is not allowed.
    fn missing<'a>(&self, wanted: &'a [Wanted]) -> Option<&'a Wanted> {
        let is_allowed =
            |wanted: &&Wanted| self.0.contains(&(wanted.transfer.source.clone(), wanted.transfer.full_sink()));
        wanted.iter().find(|wanted| !is_allowed(wanted))
    }
}

/// What the user of this machine says about it.
pub struct MachineSettings {
    /// Its labels.
    pub labels: BTreeSet<Label>,
    /// The tier in which commands are confined. `None` for the best one.
    pub tier: Option<Tier>,
    /// The transfers that are allowed.
    pub allowed: Allowed,
    /// Folders that no command may see, whatever the settings of a run name.
    pub private: Vec<PathBuf>,
}

/// The runs that are prepared on this machine.
pub struct Prepared {
    dir: PathBuf,
    log: Arc<NatsLog>,
    id: MachineId,
    settings: MachineSettings,
    host: ComponentHost,
    runs: Mutex<HashMap<RunId, KeptRun>>,
    contents: Arc<StdMutex<SharedContents>>,
    /// The first run that this machine left to others because it binds another plan for it.
    other_plan: OnceLock<RunId>,
}

/// The contents of files that runs share.
#[derive(Default)]
struct SharedContents {
    last: Option<Arc<Contents>>,
    /// Number of folders that were created.
    folders: u64,
}

impl SharedContents {
    /// Returns the folder for a run with files of this size, in bytes. `None` if they are too large or no folder can be created:
    /// the run then has one of its own.
    fn get(&mut self, dir: &Path, bytes: u64) -> Option<Arc<Contents>> {
        if bytes > CONTENTS_BYTES_MAX {
            return None;
        }
        // A person may have removed the folder.
        self.last.take_if(|last| last.bytes() > CONTENTS_BYTES_MAX - bytes || !last.folder().is_dir());
        if self.last.is_none() {
            self.folders += 1;
            let folder = dir.join(format!("contents-{}", self.folders));
            let created = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
            self.last = created.is_ok().then(|| Arc::new(Contents::owning(folder)));
        }
        self.last.clone()
    }
}

struct KeptRun {
    here: Arc<RunHere>,
    /// Why this machine must not make stages of the run.
    refusal: Option<String>,
    used: Instant,
}

impl Prepared {
    /// Prepares runs below an empty folder.
    pub fn new(dir: PathBuf, log: Arc<NatsLog>, id: MachineId, settings: MachineSettings) -> Self {
        let (runs, contents, other_plan) = (Mutex::default(), Arc::default(), OnceLock::new());
        Self { dir, log, id, settings, host: prepare::component_host(), runs, contents, other_plan }
    }

    /// Returns the first run that this machine left to others because it binds another plan for it.
    pub fn other_plan(&self) -> Option<&RunId> {
        self.other_plan.get()
    }

    /// Returns a run to drive it. Its plan is the one that the journal names.
    pub async fn to_drive(&self, turn: &DriveTurn) -> Result<Arc<RunHere>, String> {
        let got = self.get(&turn.run).await;
        got.map(|(here, _)| here).map_err(|error| match error {
            NotPrepared::Unavailable(reason) | NotPrepared::Impossible(reason) => reason,
        })
    }

    /// Opens the directory of a run on this machine.
    pub fn run_dir(&self, run: &RunId) -> Result<RunDir, String> {
        // The name comes from another machine.
        let name = Digest::hash(run.as_str().as_bytes()).hex();
        let path = self.dir.join(name);
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        let opened = created.and_then(|()| Dir::open_ambient_dir(&path, ambient_authority()));
        let dir = opened.map_err(|error| format!("open `{}`: {error}", path.display()))?;
        Ok(RunDir { path, dir, key: None })
    }

    /// Returns a run, and why this machine must not make its stages.
    async fn get(&self, run: &RunId) -> Result<(Arc<RunHere>, Option<String>), NotPrepared> {
        // One run is prepared at a time, because the compiler uses all processors anyway.
        let mut runs = self.runs.lock().await;
        if let Some(kept) = runs.get_mut(run) {
            kept.used = Instant::now();
            return Ok((Arc::clone(&kept.here), kept.refusal.clone()));
        }
        let prepared = self.prepare(run).await;
        // The files of a run that cannot be prepared are removed. Otherwise many such runs would fill the disk.
        let (here, refusal) = prepared.inspect_err(|_| {
            self.remove_files(run);
            self.shared_contents().last.take();
        })?;
        let here = Arc::new(here);
        let kept = KeptRun { here: Arc::clone(&here), refusal: refusal.clone(), used: Instant::now() };
        runs.insert(run.clone(), kept);
        Ok((here, refusal))
    }

    async fn prepare(&self, run: &RunId) -> Result<(RunHere, Option<String>), NotPrepared> {
        let dir = self.run_dir(run).map_err(NotPrepared::Impossible)?;
        let blobs = self.log.blobs_of(run).await.map_err(|error| not_prepared(&RunError::from(error).into()))?;
        let (log, blobs) = (Arc::clone(&self.log), Arc::new(blobs));
        let (shared, folder) = (Arc::clone(&self.contents), self.dir.clone());
        let shared = move |bytes| shared.lock().unwrap_or_else(PoisonError::into_inner).get(&folder, bytes);
        let unbound = UnboundRun::open(dir, log, blobs, run, shared).await.map_err(|error| not_prepared(&error))?;
        let (executor, refusal) = self.bind(&unbound).map_err(|stop| NotPrepared::Impossible(one_line(stop)))?;
        let (progress, _unseen) = mpsc::channel(PROGRESS_MAX);
        let here = unbound.bind(executor, progress).map_err(|error| {
            if matches!(error, MachineError::OtherPlan { .. }) {
                self.other_plan.get_or_init(|| run.clone());
            }
            not_prepared(&error)
        })?;
        Ok((here, refusal.map(|refusal| one_line(refusal.into()))))
    }

    /// Binds the plan of a run with the settings that came with it.
    fn bind(&self, unbound: &UnboundRun<NatsLog, ObjectBlobs>) -> Result<(Executor, Option<Refusal>), Stop> {
        let started: &RunStarted = unbound.started();
        let mismatch = |error: &dyn std::error::Error| Stop::new(Exit::Mismatch, error.to_string());
        let text = |digest: &Digest| unbound.text(digest).map_err(|error| mismatch(&error));
        let folder =
            unbound.settings_folder().map_err(|error| Stop::io("create the folder of the settings", &error))?;
        let project = unbound.settings().map_err(|error| mismatch(&error))?.open(&unbound.workspace(), &folder)?;
        let source = recorded::read_with(started.run_id.as_str(), started, text)?;
        let script = started.model.script_digest.as_ref().map(text).transpose()?;
        let script = script.map(|text| script::parse_script(text, "of the run")).transpose()?;
        let folders = started.workspace.holdouts.as_ref().map_or(&[][..], |sealed| &sealed.folders);
        let sealed = holdout::entries(folders).map_err(|error| mismatch(&error))?;
        let simulate = started.model.provider == Provider::Simulated.as_str();
        let request = Request {
            script: script.as_ref(),
            purpose: Purpose::Run,
            sealed,
            parallel_max: None,
            simulate,
            tier: self.settings.tier,
            labels: self.settings.labels.clone(),
        };
        let bound = bind_plan(&self.host, &source, &project, request)?;
        let confirm = |wanted: &[Wanted]| match self.settings.allowed.missing(wanted) {
            None => Ok(true),
            Some(Wanted { transfer, .. }) => {
                let (source, sink) = (&transfer.source, transfer.full_sink());
                let message = format!("this machine does not allow that `{source}` goes to `{sink}`");
                Err(Refusal::new(Class::Policy, message)
                    .with_help(format!("`glovebox work --allow '{source} to {sink}'`")))
            }
        };
        let (mut executor, refusal) = bound.ready_in_fleet(&project, &source.file, &confirm)?;
        refuse_lower_tier(started, &executor)?;
        // Commands see the workspace at the path that the project has on the machine of its user.
        executor.sandbox_env.project = PathBuf::from(&started.workspace.source_dir);
        executor.sandbox_env.private.extend(self.settings.private.iter().cloned());
        executor.sandbox_env.private.push(self.dir.clone());
        executor.worker = Worker { name: self.id.to_string(), ..executor.worker };
        Ok((executor, refusal))
    }

    /// Removes the files of a run from this machine.
    fn remove_files(&self, run: &RunId) {
        let removed = self.run_dir(run).map(|RunDir { path, .. }| glovebox_workspace::tree::remove_all(&path));
        if let Ok(Err(error)) = removed {
            tracing::warn!(%run, %error, "the files of a run were not removed");
        }
    }

    /// Removes the files of runs that no stage has needed for a while, and contents of files that no run needs any more.
    pub async fn tidy(&self) {
        let mut runs = self.runs.lock().await;
        let is_idle = |kept: &KeptRun| kept.used.elapsed() > KEPT && Arc::strong_count(&kept.here) == 1;
        let idle: Vec<RunId> = runs.iter().filter(|(_, kept)| is_idle(kept)).map(|(run, _)| run.clone()).collect();
        for run in idle {
            runs.remove(&run);
            self.remove_files(&run);
        }
        drop(runs);
        self.shared_contents().last.take_if(|last| Arc::strong_count(last) == 1);
    }

    fn shared_contents(&self) -> MutexGuard<'_, SharedContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an error if commands of the run would be confined less here than where it was started.
fn refuse_lower_tier(started: &RunStarted, executor: &Executor) -> Result<(), Stop> {
    let (Some(needed), Some(found)) = (Tier::parse(&started.commands.tier), executor.plan.commands.sandbox.tier())
    else {
        return Ok(());
    };
    match found >= needed {
        true => Ok(()),
        false => {
            let message = format!("the run needs sandbox tier `{needed}`, and this machine has `{found}`");
            Err(Stop::new(Exit::Policy, message).with_help("see what is missing: `glovebox doctor`"))
        }
    }
}

/// Returns a reason with its help, as one line for the records of other machines.
fn one_line(stop: Stop) -> String {
    match stop.help {
        Some(help) => format!("{} ({help})", stop.message),
        None => stop.message,
    }
}

/// Returns why a run is not prepared. Only stores that do not answer may answer later.
fn not_prepared(error: &MachineError) -> NotPrepared {
    match error {
        MachineError::Run(RunError::Port(PortError::Unavailable(_))) => NotPrepared::Unavailable(causes(error)),
        // The reason is for everybody, and the cause may name hold-outs.
        MachineError::Run(RunError::Holdouts(_)) => {
            tracing::error!(error = causes(error), "the hold-outs of a run cannot be used here");
            NotPrepared::Impossible(
                "the hold-outs of the run cannot be used here; the machine's log says why".to_owned(),
            )
        }
        error => NotPrepared::Impossible(causes(error)),
    }
}

impl Prepare for Prepared {
    fn programs(&self, programs: &BTreeSet<ProgramName>, folders: ProgramFolders) -> BTreeMap<ProgramName, bool> {
        // The driver learns which programs are there, so the user must have allowed the folder.
        let allowed = |folder: &String| self.settings.allowed.shows_folder(folder);
        let ProgramFolders { toolchains, path, venv } = folders;
        let path = path.into_iter().filter(allowed).collect();
        capability::look_for(programs, &ProgramFolders { toolchains, path, venv: venv.filter(allowed) })
    }

    async fn remove(&self, run: &RunId) {
        let mut runs = self.runs.lock().await;
        if runs.get(run).is_some_and(|kept| Arc::strong_count(&kept.here) == 1) {
            runs.remove(run);
            self.remove_files(run);
        }
    }

    async fn run(&self, run: &RunId, plan: &Digest) -> Result<Arc<RunHere>, NotPrepared> {
        let (here, refusal) = self.get(run).await?;
        if let Some(refusal) = refusal {
            return Err(NotPrepared::Impossible(refusal));
        }
        let found = here.executor().plan.digest();
        match found == *plan {
            true => Ok(here),
            false => {
                let reason = format!("the plan of this machine has the digest {found}, expected {plan}");
                Err(NotPrepared::Impossible(reason))
            }
        }
    }
}
