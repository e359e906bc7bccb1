//! The beginning of a run: its private copy of the project and the journal's first record.
//!
//! Everything that `run.started` names is durable before the event is appended. A directory without this record is not a run,
//! even if it contains other files.

use super::machine::{PLUGINS, POLICIES};
use super::missing;
use super::packs;
use super::reuse::EarlierRun;
use super::{HOLDOUTS_DIR, HoldoutError, RunDir, Session};
use crate::driver::{Driver, Follow, RunError};
use crate::edge_check::EdgeCheck;
use crate::holdouts;
use crate::stores::{self, Embedded, OpenStores, Stores};
use glovebox_journal::event::{
    Event, Record, RunId, RunStarted, SCHEMA_VERSION, StartedModel, StartedPipeline, StartedPlan, StartedPlugin,
    StartedSandbox, StartedSettings, StartedWorkspace,
};
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_pipeline::ir::NodeId;
use glovebox_pipeline::ir::holdouts::Copies;
use glovebox_plan::plan::Plan;
use glovebox_plan::prepare::executor::Worker;
use glovebox_plan::prepare::shipped::{SettingFiles, ShippedComponent, ShippedComponents};
use glovebox_record::RunBounds;
use glovebox_record::SandboxRecord;
use glovebox_record::liveness::StallSettings;
use glovebox_record::spend::SpendBounds;
use glovebox_workspace::project::{self, Base, Include};
use glovebox_workspace::repository;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The inputs of a new run, in addition to its plan.
pub struct NewRun<'a> {
    /// The run's id.
    pub run_id: RunId,
    /// The source of the pipeline. It is stored so that a resume reads the same text.
    pub source: &'a str,
    /// The texts of the files that the source refers to. They are stored too.
    pub files: &'a BTreeMap<String, String>,
    /// The path of the source, for messages.
    pub pipeline_path: String,
    /// The user's project, which is only read.
    pub project: &'a Path,
    /// Ignored files that are copied nevertheless.
    pub include: Include,
    /// The script of a scripted model. `None` without a script.
    pub script: Option<&'a [u8]>,
    /// The values of `--set`.
    pub inputs: BTreeMap<String, String>,
    /// The node at which the run begins instead of the start node.
    pub from: Option<NodeId>,
    /// The value of `--max-steps`. If the pipeline has a limit too, the lower one applies.
    pub steps_max: Option<u64>,
    /// The value of `--max-wall-time`. If the pipeline has a limit too, the lower one applies.
    pub wall_max: Option<Duration>,
    /// The values of `--stall-timeout-ms` and `--stall-check-interval-ms`. If the pipeline has a value too, the lower one
    /// applies.
    pub stall: StallSettings,
    /// The values of `--max-tokens` and `--max-budget-usd`. For each of them, the lowest value of flag, pipeline and
    /// operator applies.
    pub spend_max: SpendBounds,
    /// Labels that the user chose.
    pub labels: BTreeMap<String, String>,
    /// Runs of the project that have ended, the newest first. The run may take over their build caches.
    pub earlier: Vec<EarlierRun>,
    /// The settings of the project, for a run whose stores several machines share. They are stored with the contents of the
    /// initial files. `None` for a run of this machine.
    pub shared: Option<SettingFiles>,
}

impl Session {
    /// Starts a run in an empty directory: copies the project, stores everything that the first record names, and appends
    /// this record with everything that follows up to the first attempt. Returns the appended records. `caches` takes over the
    /// build caches of an earlier run and returns its id. `follower` creates the follower of the run, given its blobs.
    pub async fn create<F: Follow>(
        dir: RunDir,
        worker: Worker,
        plan: &Plan,
        new: NewRun<'_>,
        caches: impl FnOnce(&RunDir, &Base) -> Option<RunId>,
        follower: impl FnOnce(&RunDir, &Arc<<Embedded as Stores>::Blobs>) -> Result<F, RunError>,
    ) -> Result<(Self, F, Vec<Record>), RunError> {
        let (stores, reserve) = stores::create(&dir, &new.run_id)?;
        let created = Self::create_in(dir, stores, worker, plan, new, caches, follower).await;
        created.map(|(session, follower, records)| (Self { reserve: Some(reserve), ..session }, follower, records))
    }
}

impl<S: Stores> Session<S> {
    /// As [`Session::create`], but in these stores, which are empty.
    pub async fn create_in<F: Follow>(
        dir: RunDir,
        stores: OpenStores<S>,
        worker: Worker,
        plan: &Plan,
        mut new: NewRun<'_>,
        caches: impl FnOnce(&RunDir, &Base) -> Option<RunId>,
        follower: impl FnOnce(&RunDir, &Arc<S::Blobs>) -> Result<F, RunError>,
    ) -> Result<(Self, F, Vec<Record>), RunError> {
        let OpenStores { journal, blobs, mail, lease, held } = stores;
        let mut include = std::mem::take(&mut new.include);
        // This must come first, so that everything that is later made from the project does not contain the hold-outs.
        let holdouts = holdouts::seal(&dir, new.project, &plan.holdout_plan(), &mut include).await?;
        let (from, to) = (new.project.to_path_buf(), dir.workspace());
        let git = repository::head(new.project);
        let mut base = copy(from, to, include).await?;
        let missing = missing::describe(plan, std::mem::take(&mut base.missing));
        let open_copies = match &holdouts {
            Some(_) => holdouts::open_copies(&dir, &base).map_err(|error| RunError::Holdouts(Box::new(error)))?,
            None => Vec::new(),
        };
        if !open_copies.is_empty() && plan.pipeline.scenario_copies == Copies::Refuse {
            return Err(RunError::Holdouts(Box::new(HoldoutError::Copied(open_copies))));
        }
        let bounds = RunBounds {
            steps_max: plan.pipeline.steps_max(new.steps_max),
            wall_max_ms: wall_max_ms(plan, &new),
            spend_max: plan.spend_max(new.spend_max),
            stall: plan.pipeline.stall(new.stall),
        };
        let capabilities = serde_json::to_vec(&plan.capabilities(bounds));
        let capabilities = capabilities.map_err(|error| RunError::Project(Box::new(error)))?;
        let transformed = plan.findings.rule_report.transformed.as_ref();
        let put_text = |(path, text): (&String, &String)| Ok((path.clone(), blobs.put_bytes(text.as_bytes())?));
        let (source, files, script) = (new.source, new.files, new.script);
        let shared = new.shared.take();
        let mut started = describe(&worker, plan, bounds, new);
        started.pipeline.digest = blobs.put_bytes(source.as_bytes())?;
        started.pipeline.files = files.iter().map(put_text).collect::<Result<_, RunError>>()?;
        started.pipeline.transformed_digest = transformed.map(|text| blobs.put_bytes(text.as_bytes())).transpose()?;
        started.plan.capabilities_digest = blobs.put_bytes(&capabilities)?;
        started.workspace.base_digest = blobs.put_bytes(&base.to_json())?;
        started.workspace.holdouts = holdouts;
        started.workspace.caches_from = caches(&dir, &base);
        if let Some(settings) = shared {
            started.settings = Some(Box::new(store_settings(&settings, &*blobs)?));
            if let Some(holdouts) = &mut started.workspace.holdouts {
                holdouts.packs_digest = Some(packs::store_holdouts(&holdouts::sealed(&dir)?, &*blobs)?);
            }
            started.workspace.packs_digest = Some(packs::store(&dir.workspace(), &base, &*blobs)?);
        }
        started.workspace.git = git;
        started.workspace.missing = missing;
        started.model.script_digest = script.map(|script| blobs.put_bytes(script)).transpose()?;
        flush(vec![dir.workspace(), dir.path.join(HOLDOUTS_DIR)]).await?;
        let run = started.run_id.clone();
        let mut follower = follower(&dir, &blobs)?;
        let mut driver = Driver {
            edge_check: Some(EdgeCheck(&worker.policies)),
            ..Driver::new(run, &plan.pipeline, &journal, &(), worker.name.clone(), &mut follower)
        };
        let records = driver.start(Event::RunStarted(Box::new(started))).await?;
        let clock = driver.clock;
        let (replay, pending) = driver.into_parts();
        let stores = OpenStores { journal, blobs, mail, lease, held };
        let session = Self::new(Arc::new(dir), stores, worker, replay, pending);
        let session = Self { open_copies, left_out: base.skipped, clock, ..session };
        Ok((session, follower, records))
    }
}

/// Copies the project, off the executor's threads.
async fn copy(from: PathBuf, to: PathBuf, include: Include) -> Result<Base, RunError> {
    match tokio::task::spawn_blocking(move || project::copy(&from, &to, &include)).await {
        Ok(base) => base.map_err(|error| RunError::Workspace(Box::new(error))),
        Err(panic) => Err(RunError::Workspace(Box::new(panic))),
    }
}

/// Makes the folders durable that the first record refers to.
async fn flush(folders: Vec<PathBuf>) -> Result<(), RunError> {
    let flushed = tokio::task::spawn_blocking(move || {
        let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        glovebox_workspace::flush::flush_all(&folders)
    });
    match flushed.await {
        Ok(flushed) => flushed.map_err(|error| RunError::Workspace(Box::new(error))),
        Err(panic) => Err(RunError::Workspace(Box::new(panic))),
    }
}

/// Stores the settings of a run that several machines share.
fn store_settings(settings: &SettingFiles, blobs: &impl BlobStore) -> Result<StartedSettings, RunError> {
    let put = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| blobs.put_bytes(bytes)).transpose();
    let plugin = |component: &ShippedComponent| {
        let signatures = component.signatures.iter().map(|signature| blobs.put_bytes(signature));
        let signatures = signatures.collect::<Result<_, PortError>>()?;
        Ok::<_, RunError>(StartedPlugin { digest: blobs.put_bytes(&component.bytes)?, signatures })
    };
    let ShippedComponents { plugins, policies } = &settings.components;
    let plugins = plugins.iter().map(|(name, component)| (format!("{PLUGINS}{name}"), component));
    let policies = policies.iter().map(|(name, component)| (format!("{POLICIES}{name}"), component));
    let components = plugins.chain(policies).map(|(key, component)| Ok((key, plugin(component)?)));
    let files = settings.files.iter().map(|(path, bytes)| Ok((path.clone(), blobs.put_bytes(bytes)?)));
    Ok(StartedSettings {
        config_digest: put(&settings.config)?,
        lock_digest: put(&settings.lock)?,
        plugins: components.collect::<Result<_, RunError>>()?,
        setting_files: files.collect::<Result<_, RunError>>()?,
    })
}

/// Creates the first record, without the digests of stored values.
fn describe(worker: &Worker, plan: &Plan, bounds: RunBounds, new: NewRun<'_>) -> RunStarted {
    let pipeline = &plan.pipeline;
    let attributes = &pipeline.attributes;
    RunStarted {
        schema_version: SCHEMA_VERSION,
        engine_version: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: new.run_id,
        forked_from: None,
        generation: 0,
        from: new.from,
        labels: new.labels,
        pipeline: StartedPipeline {
            name: pipeline.name.clone(),
            goal: pipeline.goal.clone(),
            graph: attributes.iter().map(|(key, attribute)| (key.to_string(), attribute.value.to_string())).collect(),
            inputs: new.inputs,
            path: new.pipeline_path,
            rules: plan.findings.rule_report.rules.clone(),
            ..StartedPipeline::default()
        },
        plan: StartedPlan {
            digest: plan.digest(),
            components: plan.components(),
            narrowed_scopes: plan.narrowed_scopes(),
            verifiers: pipeline.verifiers.clone(),
            verify_retry: plan.checks.verify.as_ref().map(|verify| verify.retry),
            ..StartedPlan::default()
        },
        workspace: StartedWorkspace { source_dir: new.project.display().to_string(), ..StartedWorkspace::default() },
        model: StartedModel {
            provider: plan.model_word().to_owned(),
            simulated: plan.simulated(),
            script_digest: None,
        },
        commands: StartedSandbox { tier: tier_word(worker.sandbox.as_ref()), sandbox: worker.sandbox.clone() },
        settings: None,
        bounds,
    }
}

fn wall_max_ms(plan: &Plan, new: &NewRun<'_>) -> Option<u64> {
    plan.pipeline.wall_max(new.wall_max).map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX))
}

fn tier_word(sandbox: Option<&SandboxRecord>) -> String {
    sandbox.map_or_else(|| glovebox_plan::plan::TIER_NONE.to_owned(), |sandbox| sandbox.tier.to_string())
}
