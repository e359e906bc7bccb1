//! Makes one call of the component under test, and observes it.
//!
//! Each call has its own folder, its own layer of changes and its own log of host calls. The calls with the normal and the odd inputs are
//! made once and used by several checks.

use crate::TestRequest;
use crate::commands::{CallCommands, INSIDE};
use crate::error::TestError;
use crate::observed::{Observed, ObservedChange, Summary};
use crate::sample::{self, MakeOdd, ODD};
use crate::stage_file::{StageFile, StageFileInput, hidden};
use glovebox_host::call::{Call, CallObserver, FileSetting, FileSource, FileTier, HostCallLog};
use glovebox_host::component::Component;
use glovebox_host::grants::Grants;
use glovebox_host::host::Host;
use glovebox_host::inspect::Inspection;
use glovebox_host::llm::Model;
use glovebox_record::scope::Scope;
use glovebox_record::{Digest, LimitName, Limits, Tier};
use glovebox_workspace::protect::Protected;
use glovebox_workspace::stage::{
    ChangeLimits, ChangedFiles, FoundChange, Op, StageError, ViewOverrides, WorkspaceView,
};
use glovebox_workspace::tree;
use std::cell::{Cell, OnceCell, RefCell};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Maximum number of host calls of one call that are kept and compared one by one.
const CALLS_KEPT_MAX: usize = 10_000;
/// Maximum length of a written file whose content is kept, in bytes.
const CONTENT_BYTES_MAX: u64 = crate::stage_file::BYTES_MAX;
/// Time after which a call without host calls is canceled.
const CANCEL_AFTER: Duration = Duration::from_millis(20);

/// The component under test, and everything that its calls share.
pub(crate) struct Bench<'r> {
    host: &'r Host,
    runtime: tokio::runtime::Runtime,
    component: Arc<Component>,
    pub(crate) inspection: &'r Inspection,
    folder: &'r Path,
    tier: Option<Tier>,
    wall_ms: u64,
    input: Option<&'r StageFile>,
    made: Cell<u32>,
    summaries: RefCell<Vec<Summary>>,
    calls: [OnceCell<Observed>; 3],
    odd: [OnceCell<Observed>; ODD.len()],
}

/// How a call is made.
pub(crate) struct CallPlan<'s> {
    pub(crate) stage: &'s StageFile,
    pub(crate) grants: Grants,
    /// Maximum wall time, in milliseconds.
    pub(crate) wall_ms: u64,
    /// Number of the host call that cancels the call. `None` for a call that is not canceled.
    pub(crate) cancel_at: Option<u64>,
}

/// The files of one call.
struct CallFiles {
    folder: PathBuf,
    view: WorkspaceView,
    scope: Scope,
}

impl<'r> Bench<'r> {
    pub(crate) fn new(request: &'r TestRequest<'r>, component: Arc<Component>) -> Result<Self, TestError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Self {
            host: request.host,
            runtime,
            component,
            inspection: request.inspection,
            folder: &request.folder,
            tier: request.commands,
            wall_ms: request.wall_ms,
            input: request.input.as_ref(),
            made: Cell::new(0),
            summaries: RefCell::default(),
            calls: Default::default(),
            odd: Default::default(),
        })
    }

    /// Returns what the author of the component wants.
    pub(crate) fn wants(&self) -> Grants {
        self.inspection.manifest.as_ref().map(|manifest| manifest.wants.clone()).unwrap_or_default()
    }

    /// Returns what the calls of the kit are granted: everything that is wanted, except for commands that are not allowed.
    pub(crate) fn granted(&self) -> Grants {
        let wants = self.wants();
        if self.runs_commands() { wants } else { Grants { commands: Vec::new(), ..wants } }
    }

    /// Returns true if the component may run commands in this test.
    pub(crate) fn runs_commands(&self) -> bool {
        self.tier.is_some()
    }

    /// Returns the name of the component.
    pub(crate) fn name(&self) -> &str {
        self.inspection.manifest.as_ref().map_or("plugin", |manifest| manifest.name.as_str())
    }

    /// Returns the normal input with its files.
    pub(crate) fn normal_stage(&self) -> StageFile {
        self.changed_stage(|_| {})
    }

    /// Returns the normal input with a change. The kit's own input has all attributes that the component requires, unchanged.
    fn changed_stage(&self, change: impl FnOnce(&mut StageFileInput)) -> StageFile {
        let mut stage = self.input.cloned().unwrap_or_else(sample::normal);
        stage.files.get_or_insert_with(|| sample::files(&self.wants()));
        change(&mut stage.input);
        if self.input.is_none() {
            stage.input.attributes.extend(sample::required(self.inspection.manifest.as_ref()));
        }
        stage
    }

    /// Returns the call with the normal input.
    pub(crate) fn normal(&self) -> Result<&Observed, TestError> {
        self.once(&self.calls[0], "the normal input", || self.normal_stage())
    }

    /// Returns a second call with the normal input.
    pub(crate) fn normal_again(&self) -> Result<&Observed, TestError> {
        self.once(&self.calls[1], "the normal input, again", || self.normal_stage())
    }

    /// Returns the call with the empty input.
    pub(crate) fn empty(&self) -> Result<&Observed, TestError> {
        self.once(&self.calls[2], "the empty input", sample::empty)
    }

    /// Returns the call with an odd input, by its position in [`ODD`].
    pub(crate) fn odd(&self, at: usize) -> Result<&Observed, TestError> {
        let (name, make): (&str, MakeOdd) = ODD[at];
        self.once(&self.odd[at], &format!("the input `{name}`"), || self.changed_stage(make))
    }

    /// Returns the calls with the normal, the empty and all odd inputs. Only the first one, if it did not end in time.
    pub(crate) fn all_inputs(&self) -> Result<Vec<&Observed>, TestError> {
        let normal = self.normal()?;
        if self.is_unresponsive()? {
            return Ok(vec![normal]);
        }
        let others = (0..ODD.len()).map(|at| self.odd(at));
        [Ok(normal), self.empty()].into_iter().chain(others).collect()
    }

    /// Returns true if the call with the normal input did not end in time. More calls would take as long.
    pub(crate) fn is_unresponsive(&self) -> Result<bool, TestError> {
        Ok(self.normal()?.is_over(LimitName::WallMs))
    }

    /// Returns what is kept of all calls so far.
    pub(crate) fn summaries(&self) -> Vec<Summary> {
        self.summaries.borrow().clone()
    }

    /// Returns a plan with the wall time of the test.
    pub(crate) fn plan<'s>(&self, stage: &'s StageFile, grants: Grants) -> CallPlan<'s> {
        CallPlan { stage, grants, wall_ms: self.wall_ms, cancel_at: None }
    }

    fn once<'c>(
        &self,
        cell: &'c OnceCell<Observed>,
        title: &str,
        stage: impl FnOnce() -> StageFile,
    ) -> Result<&'c Observed, TestError> {
        if cell.get().is_none() {
            let observed = self.call(title, &self.plan(&stage(), self.granted()))?;
            let _empty = cell.set(observed);
        }
        cell.get().ok_or_else(|| TestError::Host("a call was not kept".to_owned()))
    }

    /// Makes one call.
    pub(crate) fn call(&self, title: &str, plan: &CallPlan<'_>) -> Result<Observed, TestError> {
        let number = self.made.get();
        self.made.set(number + 1);
        let limits = self.limits(plan);
        let files = CallFiles::make(&self.folder.join(number.to_string()), plan, self.tier)?;
        let commands = match self.tier.filter(|_| !plan.grants.commands.is_empty()) {
            Some(tier) => Some(CallCommands::offer(tier, &files.folder, &files.view, &plan.grants, limits)?),
            None => None,
        };
        let canceled = Cancellation::default();
        let log = HostCallLog::new(CALLS_KEPT_MAX);
        let log = match plan.cancel_at {
            Some(at) => {
                let canceled = canceled.clone();
                log.on_call(move |total| {
                    if total == at {
                        canceled.cancel()
                    }
                })
            }
            None => log,
        };
        let log = Arc::new(log);
        let call = Call {
            input: plan.stage.stage_input(self.name(), &plan.grants, self.inspection.manifest.as_ref()),
            tier: plan.grants.filesystem,
            files: files.setting(plan.grants.filesystem),
            commands: commands.as_ref().map(CallCommands::setting),
            program: None,
            model: self.model(plan)?,
            conversation: Default::default(),
            hooks: None,
            policy: None,
            tools: Default::default(),
            revocation: None,
            limits,
            canceled: Arc::clone(&canceled.flag),
            observer: CallObserver::unobserved().recording(Arc::clone(&log)),
        };
        let begin = Instant::now();
        let report = self.runtime.block_on(async {
            let timer = plan.cancel_at.map(|_| tokio::spawn(canceled.clone().after(CANCEL_AFTER)));
            let report = self.host.execute(&self.component, call).await;
            timer.inspect(|timer| timer.abort());
            report
        });
        let (took, after_cancel) = (begin.elapsed(), canceled.at.get().map(Instant::elapsed));
        commands.map(CallCommands::end).transpose()?;
        let changes = files.changes(limits)?;
        files.remove()?;
        let observed = Observed { title: title.to_owned(), report, calls: log.recorded(), changes, took, after_cancel };
        self.summaries.borrow_mut().push(observed.summary());
        Ok(observed)
    }

    fn limits(&self, plan: &CallPlan<'_>) -> Limits {
        let mut limits = Limits::default();
        let own = self.wants().limits.merge(&plan.grants.limits);
        limits.replace(&own);
        let wall_ms = own.get(LimitName::WallMs).map_or(plan.wall_ms, |own| own.min(plan.wall_ms));
        Limits { wall_ms, ..limits }
    }

    fn model(&self, plan: &CallPlan<'_>) -> Result<Option<Model>, TestError> {
        if !plan.grants.model {
            return Ok(None);
        }
        let script = plan.stage.script().map_err(TestError::StageFile)?;
        let bound = Model::bind(&plan.stage.node(), &[], script.as_ref(), 0, 0);
        bound.map(Some).map_err(|error| TestError::StageFile(error.to_string()))
    }
}

/// Cancels a call once, and keeps the time.
#[derive(Clone, Default)]
struct Cancellation {
    flag: Arc<AtomicBool>,
    at: Arc<OnceLock<Instant>>,
}

impl Cancellation {
    fn cancel(&self) {
        self.at.get_or_init(Instant::now);
        self.flag.store(true, Ordering::Relaxed);
    }

    async fn after(self, time: Duration) {
        tokio::time::sleep(time).await;
        self.cancel();
    }
}

impl CallFiles {
    /// Makes the project of a call, and an empty layer over it.
    fn make(folder: &Path, plan: &CallPlan<'_>, tier: Option<Tier>) -> Result<Self, TestError> {
        let project = folder.join("project");
        fs::create_dir_all(&project)?;
        let (hidden_path, canary) = sample::hidden_file();
        let given = plan.stage.files.iter().flatten().map(|(path, text)| (path.as_str(), text.as_str()));
        for (path, text) in given.chain([(hidden_path.as_str(), canary.as_str())]) {
            let file = project.join(path);
            fs::create_dir_all(file.parent().unwrap_or(&project))?;
            fs::write(file, text)?;
        }
        let scope = Scope::new(plan.grants.read.clone(), plan.grants.write.clone(), hidden());
        let (at, overrides) = (folder.join("files"), ViewOverrides::default());
        let view = match tier.filter(|_| !plan.grants.commands.is_empty()) {
            None => WorkspaceView::layer(&project, &at, &scope, &overrides)?,
            Some(Tier::Full) => WorkspaceView::layer_to_mount(&project, &at, &scope, &overrides)?,
            Some(_) => WorkspaceView::copy(&project, &at, &scope, &overrides)?,
        };
        Ok(Self { folder: folder.to_owned(), view, scope })
    }

    fn setting(&self, tier: FileTier) -> Option<FileSetting> {
        let source = match &self.view {
            WorkspaceView::Layer(layer) => FileSource::Layer(Arc::clone(layer)),
            other => FileSource::Folder(other.root()?.to_owned()),
        };
        let known_as = if tier == FileTier::Posix { vec![INSIDE.to_owned()] } else { Vec::new() };
        let setting = FileSetting {
            source,
            scope: self.scope.clone(),
            protected: Protected::default(),
            known_as,
            is_of_plugin: true,
        };
        (tier != FileTier::None).then_some(setting)
    }

    fn changes(&self, limits: Limits) -> Result<Vec<ObservedChange>, TestError> {
        match self.view.changes(&ChangeLimits::new(limits), &Protected::default()) {
            Ok(found) => found.into_iter().map(|change| self.observed(change)).collect(),
            // Only the component can cause this.
            Err(StageError::Limit { limit, max, path }) => {
                let refused = format!("its changes exceed the limit `{limit}` ({max})");
                Ok(vec![ObservedChange { path, op: "write", refused: Some(refused), digest: None, content: None }])
            }
            Err(error) => Err(error.into()),
        }
    }

    fn observed(&self, change: FoundChange) -> Result<ObservedChange, TestError> {
        let mut observed = ObservedChange {
            op: change.op.as_str(),
            refused: change.verdict.reason().map(str::to_owned),
            digest: None,
            content: None,
            path: change.path.clone(),
        };
        if matches!(change.op, Op::Write { .. }) {
            let (mut hasher, mut kept) = (blake3::Hasher::new(), Vec::new());
            let mut file = self.view.open(&change)?;
            file.by_ref().take(CONTENT_BYTES_MAX).read_to_end(&mut kept)?;
            hasher.update(&kept);
            let more = std::io::copy(&mut file, &mut hasher)?;
            observed.digest = Some(Digest::from_bytes(*hasher.finalize().as_bytes()));
            observed.content = (more == 0).then_some(kept);
        }
        Ok(observed)
    }

    fn remove(self) -> Result<(), TestError> {
        self.view.remove()?;
        Ok(tree::remove_all(&self.folder)?)
    }
}
