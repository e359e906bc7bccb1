//! One attempt of one node: a private copy of the workspace, one call of the node's component, and its result as an event to
//! commit.
//!
//! An attempt decides nothing about retries or routes. The result names only blobs that are already stored. The workspace is
//! unchanged until the result is committed. A stage that was killed changes nothing (decision killed-stages-commit-nothing).

mod branch_answers;
mod branch_files;
mod cache_sets;
mod change_list;
mod claims;
mod commands;
mod error;
pub mod exchanges;
mod execute;
mod failed_command;
mod feedback;
mod files;
mod fill_caches;
mod guardrail;
mod handed_on;
mod held;
mod hooks;
mod infra;
mod input;
mod jail_setting;
mod kept;
mod leak_check;
mod misses;
mod model;
mod paths;
mod preamble;
mod preparing;
mod program;
mod recovery;
mod redact;
mod required_tool;
mod revocation;
mod sandbox;
mod servers;
mod session;
mod shared_view;
mod side_files;
mod signature;
mod status_file;
mod subject;
mod tool_servers;
mod unmatched;
mod usage;
mod values;

pub use crate::run_dir::{QUARANTINE_DIR, REPOSITORIES_DIR, STAGE_DIR};
pub(crate) use cache_sets::is_checker;
pub use error::AttemptError;
pub use guardrail::GUARDRAIL;
use guardrail::replace;
pub use held::HeldSpending;
pub use model::TRANSCRIPT_FILE;
pub use sandbox::AttemptSandbox;
pub use session::CONVERSATION_BYTES_MAX;

use crate::assignment::{Assignment, AttemptResult};
use crate::holdouts::Holdouts;
use crate::live::{self, OutputWatch};
use crate::reserve;
use crate::run_dir::{LIVE_DIR, LIVENESS_FILE, RunDir, branch_folder};
use claims::{FilesAtEnd, Statement};
use glovebox_host::budget::Budget;
use glovebox_host::call::{
    AttemptProgress, Call, CallObserver, CommandSetting, FileSource, LiveOutput, PolicySetting, Report,
};
use glovebox_host::host::Host;
use glovebox_host::judgement::PolicySet;
use glovebox_host::llm::{ConversationSetting, Provider, is_of_another_model};
use glovebox_jail::subject::SubjectsReport;
use glovebox_journal::event::{
    Artifact, AttemptId, Ending, Isolation, Receipt, RefusedChange, StageCommands, StageFiles, StageFinished,
    StageModel, StageRefusals, StatusIngested, Work,
};
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_pipeline::ir::{Node, NodeId};
use glovebox_plan::plan::{Binding, HoldoutAccess, Plan, narrowed};
use glovebox_plan::prepare::admission::RevocationWatch;
use glovebox_plan::prepare::executor::{SandboxEnv, Targets};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use glovebox_record::{CommandEnding, Failure, FailureClass, FailureCode, Status, WaitKind};
use glovebox_workspace::commit;
use glovebox_workspace::ignored::IgnoreMatcher;
use glovebox_workspace::project::Base;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::quarantine::{QuarantineLimits, quarantine};
use glovebox_workspace::stage::{ChangeLimits, ChangeRules, FoundChange, StageChanges, StageError, WorkspaceView};
pub use handed_on::{Claims, ExchangeStore, HandedOn, KeptLine};
use paths::{AttemptPaths, Sealed};
pub use preparing::Preparing;
use recovery::Recovery;
use status_file::{StatusRule, StatusSetting};
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subject::WriteRule;
use tokio::sync::mpsc::Sender;

/// The log of a stage, in the same folder as its status.
pub const LOG_FILE: &str = "log.ndjson";

/// Everything that the attempts of a run share.
pub struct Workbench<B> {
    /// The plan, with the binding of each node.
    pub plan: Arc<Plan>,
    /// The host of the components.
    pub host: Arc<Host>,
    /// The run directory.
    pub run: Arc<RunDir>,
    /// The blob store.
    pub blobs: Arc<B>,
    /// What the sandbox of every stage needs to know about the machine.
    pub sandbox_env: SandboxEnv,
    /// Paths that no stage may change, whatever its scope is.
    pub protected: Protected,
    /// The files that the run began with. Empty if no stage of the plan needs them, and no repository of commands.
    pub base: Arc<Base>,
    /// The ignore rules of the project when the run began.
    pub ignored: Arc<IgnoreMatcher>,
    /// The remaining budget of the run's model calls.
    pub budget: Arc<Budget>,
    /// How models are reached.
    pub targets: Targets,
    /// The policies over tool calls.
    pub policies: Arc<PolicySet>,
    /// The lists of revocations, which are looked at before and during each call.
    pub revocations: Arc<RevocationWatch>,
    /// The hold-outs of the run. `None` if it has none.
    pub holdouts: Option<Arc<Holdouts>>,
    /// Receives progress events, which may be lost.
    pub progress: Sender<AttemptProgress>,
    /// Where other machines find the exchanges of the attempt. `None` if this machine alone makes it.
    pub handed_on: Option<HandedOn>,
    /// Gets the output of commands while they run. `None` if this process shows none.
    pub output_watch: Option<OutputWatch>,
    /// The attempts whose files are being prepared.
    pub preparing: Preparing,
    /// The spending of attempts that wait for a quota.
    pub held: HeldSpending,
}

/// An attempt whose component can be called.
pub struct Prepared {
    /// The call that is made to the host.
    pub call: Call,
    /// The files that the stage works on. `None` for a stage that can change nothing.
    pub sandbox: Option<AttemptSandbox>,
}

impl<B: BlobStore + 'static> Workbench<B> {
    /// Prepares everything that one call needs. Everything that the binding does not grant is denied. A stage without write
    /// scope and commands reads the workspace itself and cannot change it. Blocks.
    pub fn prepare(&self, assignment: &Assignment) -> Result<Prepared, AttemptError> {
        let _wait = assignment.pulse.wait(WaitKind::Sandbox);
        let (node, binding) = self.bound_now(assignment)?;
        let binding = &*binding;
        let workspace = self.run.path.join(self.workspace(assignment)?);
        let sandbox =
            if binding.needs_copy() { Some(self.open_sandbox(assignment, binding, &workspace)?) } else { None };
        let source = sandbox.as_ref().map_or_else(|| FileSource::Folder(workspace), AttemptSandbox::files);
        let jail = sandbox.as_ref().filter(|_| binding.runs_commands()).and_then(AttemptSandbox::jail);
        let hooks = sandbox.as_ref().and_then(|sandbox| sandbox.hooks(binding));
        let tools = self.tools(assignment, binding, sandbox.as_ref(), &source)?;
        let model = if binding.model { Some(self.model(node, assignment)?) } else { None };
        let conversation =
            if binding.model { self.conversation_setting(node, assignment)? } else { ConversationSetting::default() };
        // A script or a simulation also replaces an agent program.
        let is_live = model.as_ref().is_some_and(|model| model.provider() == Provider::Live);
        let call = Call {
            input: self.input(node, binding, assignment)?,
            tier: binding.tier,
            files: self.files(binding, source, sandbox.is_some()),
            commands: jail.map(|jail| CommandSetting {
                grant: binding.commands.clone(),
                jail,
                workdir: binding.command_access.workdir.clone(),
                live: self.live_output(assignment, binding),
            }),
            program: sandbox.as_ref().and_then(|sandbox| sandbox.program(binding)).filter(|_| is_live),
            model,
            conversation,
            hooks,
            policy: self.policy(binding),
            tools,
            limits: binding.limits,
            canceled: Arc::clone(&assignment.stop),
            // The caller sets it, because it looks too while the call blocks a thread.
            revocation: None,
            observer: self.observer(assignment),
        };
        Ok(Prepared { call, sandbox })
    }

    /// Returns the policies over the tool calls of the attempt's model. `None` without a model or policies.
    fn policy(&self, binding: &Binding) -> Option<PolicySetting> {
        let hides_arguments = binding.holdouts == HoldoutAccess::ReadOnly;
        let is_judged = binding.model && !self.policies.is_empty();
        is_judged.then(|| PolicySetting { policies: Arc::clone(&self.policies), hides_arguments })
    }

    /// Returns the observer of the attempt's call.
    fn observer(&self, assignment: &Assignment) -> CallObserver {
        CallObserver::new(assignment.attempt.id.clone(), self.progress.clone(), assignment.pulse.clone())
    }

    /// Returns the watcher of the attempt's commands. `None` for a stage that can read hold-outs, whatever its author discloses at
    /// its end: its output is never shown while it runs.
    fn live_output(&self, assignment: &Assignment, binding: &Binding) -> Option<LiveOutput> {
        let is_shown = binding.holdouts != HoldoutAccess::ReadOnly;
        let (attempt, node, watch) = (assignment.attempt.id.clone(), assignment.stage(), self.output_watch.clone());
        is_shown.then(|| live::watcher(Arc::clone(&self.run), attempt, node, watch))
    }

    /// Converts the report of the host to the result of the attempt: stores all bytes that it names, moves disallowed changes
    /// to the quarantine, checks claims, and removes the private copy. The result contains nothing that could disclose a
    /// hold-out. Blocks.
    pub fn finish(
        &self,
        assignment: &Assignment,
        report: Report,
        sandbox: Option<AttemptSandbox>,
    ) -> Result<AttemptResult, AttemptError> {
        let _wait = assignment.pulse.wait(WaitKind::Sandbox);
        let hints = self.hints(assignment, &report);
        let AttemptResult { mut ingested, finished } = self.settle(assignment, report, sandbox)?;
        let mut fact = self.checked(assignment, finished, hints)?;
        status_file::forget_removed_copy(ingested.as_deref_mut(), &fact);
        self.store_values(&mut fact, &assignment.branch)?;
        let mut stored = Ok(());
        fact.with_own_outcome(|fact| stored = self.store_values(fact, &assignment.branch));
        stored?;
        Ok(AttemptResult { ingested, finished: fact })
    }

    /// Returns the public hints of a stage of which builders get only verdict and hints. `None` for any other stage.
    fn hints(&self, assignment: &Assignment, report: &Report) -> Option<Vec<String>> {
        let holdouts = self.holdouts.as_ref().filter(|_| self.plan.withholds(&assignment.stage()))?;
        Some(redact::hints(report, holdouts.canary()))
    }

    /// Removes from a result everything that could disclose a hold-out. `withheld` has the hints of [`Workbench::hints`].
    fn checked(
        &self,
        assignment: &Assignment,
        mut fact: StageFinished,
        withheld: Option<Vec<String>>,
    ) -> Result<StageFinished, AttemptError> {
        let Some(holdouts) = &self.holdouts else { return self.signed(fact) };
        let says = self.plan.is_leak_checked(&assignment.stage());
        if says || withheld.is_some() {
            leak_check::check(&mut fact, holdouts.canary(), &*self.blobs, says)?;
            let check = |fact: &mut _| leak_check::check(fact, holdouts.canary(), &*self.blobs, says);
            recovery::check_own(&mut fact, check)?;
        }
        if let Some(hints) = withheld {
            let signature = self.sealed_signature(&fact, holdouts)?;
            fact.files.artifacts.push(self.whole_answer(&fact)?);
            redact::redact(&mut fact, &self.plan.pipeline, &hints);
            fact.follow_up.signature = match signature {
                // Only the redaction made a failure of it: no test ran.
                None => self.sealed_signature(&fact, holdouts)?,
                signature => signature,
            };
            return Ok(fact);
        }
        self.signed(fact)
    }

    fn settle(
        &self,
        assignment: &Assignment,
        report: Report,
        sandbox: Option<AttemptSandbox>,
    ) -> Result<AttemptResult, AttemptError> {
        let (node, binding) = self.bound(&assignment.stage())?;
        let (mut fact, statement) = self.record(assignment, node, report)?;
        fact.commands.isolation = subject::isolation(binding, &self.sandbox_env);
        fact.commands.sees = subject::sees(binding);
        let workspace = self.workspace(assignment)?;
        fact.files.unmatched = self.unmatched(assignment, node, binding, &workspace);
        let (_, bound_now) = self.bound_now(assignment)?;
        let scope = files::scope(&bound_now, sandbox.is_some());
        let Some(sandbox) = sandbox else {
            statement.check(&mut fact, &FilesAtEnd { run: &self.run.dir, workspace: &workspace, scope });
            return Ok(fact.into());
        };
        let examine = Examine {
            run: Arc::clone(&self.run),
            workspace,
            scope,
            blobs: Arc::clone(&self.blobs),
            protected: self.protected.clone(),
            ignored: Arc::clone(&self.ignored),
            limits: ChangeLimits::new(binding.limits),
            attempt_id: assignment.attempt.id.clone(),
            has_folder: binding.starts_processes(),
            recovery: Recovery::for_stage(&self.plan, &assignment.stage(), &assignment.attempt.task.branch),
            keeps: WriteRule::new(binding.separation.as_ref()),
            status: StatusSetting::for_stage(node, &bound_now),
        };
        if sandbox.begins_with_builders {
            fact.commands.isolation = Some(Isolation::BuildersCaches);
        }
        let ingested = examine.take(sandbox, &mut fact, &statement)?;
        Ok(AttemptResult { ingested, finished: fact })
    }

    /// Returns true if other stages get only the verdict of this stage. Also returns true for a node without a
    /// component if the run has hold-outs, because such a node passes on the results of other stages.
    fn is_withheld(&self, id: &NodeId) -> bool {
        self.plan.withholds(id) || (self.holdouts.is_some() && self.plan.binding(id).is_none())
    }

    fn bound(&self, id: &NodeId) -> Result<(&Node, &Binding), AttemptError> {
        self.plan.pipeline.node(id).zip(self.plan.binding(id)).ok_or_else(|| AttemptError::unbound(id))
    }

    /// Returns the node and its binding, including the files that people have allowed since the run began.
    fn bound_now(&self, assignment: &Assignment) -> Result<(&Node, Cow<'_, Binding>), AttemptError> {
        let (node, binding) = self.bound(&assignment.stage())?;
        let is_widened = !assignment.granted.is_empty() && assignment.attempt.task.work == Work::Handler;
        let granted = || Cow::Owned(binding.with_granted(&assignment.granted));
        Ok((node, if is_widened { granted() } else { Cow::Borrowed(binding) }))
    }

    fn open_sandbox(
        &self,
        assignment: &Assignment,
        binding: &Binding,
        workspace: &Path,
    ) -> Result<AttemptSandbox, AttemptError> {
        let folder = format!("{STAGE_DIR}/{}", assignment.attempt.id);
        let own = branch_folder(&assignment.attempt.task.branch);
        if !own.is_empty() {
            self.run.dir.create_dir_all(&own).map_err(AttemptError::Folder)?;
        }
        if binding.starts_processes() {
            for needed in servers::folders(binding, folder.as_ref()).chain([hooks::folders(binding, &folder)]) {
                self.run.dir.create_dir_all(needed).map_err(AttemptError::Folder)?;
            }
        }
        let has_builders_code =
            assignment.branch.has_changes() && self.plan.bindings.values().any(|binding| binding.is_builder());
        let stage = assignment.stage();
        let paths = AttemptPaths {
            node: stage.clone(),
            answering: (StatusRule::for_node(self.bound(&stage)?.0, binding) == StatusRule::Answer)
                .then(|| assignment.attempt.clone()),
            has_builders_code,
            workspace: workspace.to_owned(),
            run: self.run.path.clone(),
            kept: if own.is_empty() { self.run.path.clone() } else { self.run.path.join(own) },
            folder: self.run.path.join(folder),
            holdouts: self.holdouts_of(&stage),
            sealed: self.sealed(),
            git: assignment.run.workspace.git.clone(),
            base: Arc::clone(&self.base),
            closed: self.base.closed_after(assignment.branch.changes.values()),
            has_ignored: !self.ignored.is_empty(),
            plan: Arc::clone(&self.plan),
            cache_base: binding
                .runs_commands()
                .then(|| fill_caches::base(&self.run, &stage))
                .filter(|base| base.is_dir()),
            canceled: Arc::clone(&assignment.stop),
            pulse: assignment.pulse.clone(),
        };
        // The layer of a component without commands needs no preparation.
        let said = binding.starts_processes().then(|| sandbox::preparation(&self.sandbox_env, binding, &paths));
        let _underway = said.map(|said| self.preparing.begin(&assignment.attempt.id, said));
        AttemptSandbox::open(&self.sandbox_env, binding, &Arc::new(paths))
    }

    fn sealed(&self) -> Option<Sealed> {
        let folders = self.plan.folders.sealed.len();
        self.holdouts.as_ref().map(|holdouts| Sealed {
            holdouts: Arc::clone(holdouts),
            files: holdouts.files(),
            folders,
        })
    }

    /// Returns the sealed folders that a node can read, and the path of each sealed copy.
    fn holdouts_of(&self, node: &NodeId) -> Vec<(ScopePath, PathBuf)> {
        let Some(holdouts) = &self.holdouts else { return Vec::new() };
        let folders = self.plan.holdouts_of(node);
        folders.into_iter().map(|folder| (folder.path().clone(), holdouts.source(folder.path()))).collect()
    }

    /// Converts the report to the result of the attempt, and returns it with the statements of the stage.
    fn record(
        &self,
        assignment: &Assignment,
        node: &Node,
        mut report: Report,
    ) -> Result<(StageFinished, Statement), AttemptError> {
        let has_failed = matches!(report.outcome.status, Status::Fail | Status::Retry);
        let mut statement = Statement::from_report(&mut report);
        statement.failed_command = failed_command::find(node, &report);
        statement.misses_holdouts = misses::holdouts(&self.plan, node, &report);
        let dropped_checks = failed_command::dropped_checks(node, &report);
        let artifacts = report.artifacts.into_iter().map(|artifact| {
            let (digest, bytes) = self.store(&artifact.data)?;
            Ok(Artifact { name: artifact.name, media_type: artifact.media_type, digest, bytes })
        });
        let mut artifacts = artifacts.collect::<Result<Vec<_>, PortError>>()?;
        artifacts.extend(self.log(report.log)?);
        artifacts.extend(self.keep_conversation(report.conversation)?);
        artifacts.extend(self.keep_transcript(&report.transcript)?);
        let asks = self.plan.binding(&node.id).is_some_and(|binding| binding.model);
        let commands = StageCommands {
            receipts: report.receipts,
            tool_calls: report.tool_calls,
            failed_command: statement.failed_command.clone().filter(|_| report.outcome.failure.is_some()),
            misses_holdouts: statement.misses_holdouts && has_failed,
            dropped_checks,
            ..StageCommands::default()
        };
        let (stdout, stderr) = (self.captured(&report.stdout)?, self.captured(&report.stderr)?);
        let model = StageModel {
            asked: self.asked_model(&node.id, report.answered_by),
            session: asks.then(|| self.session(node, assignment).session),
            turns_used: report.turns_used,
            tokens: report.tokens,
            cost: report.cost,
            is_estimated: report.is_estimated,
            steered: report.steered,
            resume_at: report.resume_at,
        };
        let mut refusals = report.refusals;
        let narrowed = self.plan.binding(&node.id).map(|binding| binding.narrowed.as_slice());
        narrowed::name_in(&mut refusals, narrowed.unwrap_or_default());
        let mut fact = StageFinished {
            handler: node.handler.name().to_owned(),
            ending: report.ending,
            duration_ms: report.duration_ms,
            usage: report.usage,
            refusals: StageRefusals { listed: refusals, total: report.refusals_total },
            commands,
            files: StageFiles { artifacts, stdout, stderr, ..StageFiles::default() },
            model,
            ..StageFinished::new(assignment.attempt.clone(), report.outcome)
        };
        infra::classify(&mut fact, self.bound(&assignment.stage())?.1);
        self.hold_spending(&node.id, &fact);
        Ok((fact, statement))
    }
}

/// Removes the files of attempts that were interrupted. Must be called while no attempt runs.
pub fn sweep(run: &RunDir) {
    remove(run, STAGE_DIR);
    remove(run, LIVE_DIR);
    remove(run, LIVENESS_FILE);
}

fn remove(run: &RunDir, name: impl AsRef<Path>) {
    if let Err(error) = glovebox_workspace::tree::remove_all(&run.path.join(name.as_ref())) {
        tracing::warn!(name = %name.as_ref().display(), %error, "not removed");
    }
}

/// Everything that is needed to find the changes of a stage.
struct Examine<B> {
    run: Arc<RunDir>,
    /// The workspace from which the stage began, relative to the run directory.
    workspace: String,
    /// The scope of the component. `None` if it has no files.
    scope: Option<Scope>,
    blobs: Arc<B>,
    protected: Protected,
    ignored: Arc<IgnoreMatcher>,
    limits: ChangeLimits,
    attempt_id: AttemptId,
    /// True if the attempt had a folder, for its commands.
    has_folder: bool,
    /// Decides about disallowed writes together with a person. `None` without `[recovery]`.
    recovery: Option<Recovery>,
    keeps: WriteRule,
    status: StatusSetting,
}

impl<B: BlobStore> Examine<B> {
    fn take(
        self,
        mut sandbox: AttemptSandbox,
        fact: &mut StageFinished,
        statement: &Statement,
    ) -> Result<Option<Box<StatusIngested>>, AttemptError> {
        // It is measured while the files of the commands still exist.
        let is_full = has_failed_command(fact) && reserve::is_full(&self.run.dir);
        let taken = sandbox.close().and_then(|closed| {
            if is_full {
                return Err(AttemptError::DiskFull(io::ErrorKind::StorageFull.into()));
            }
            let SubjectsReport { usage: of_subjects, calls, views, .. } = closed.subjects;
            closed.spent.into_iter().chain(of_subjects).for_each(|spent| usage::of_jail(spent, fact));
            subject::receipts(calls, fact);
            if was_not_killed(fact) {
                sandbox.settle_caches()?;
            }
            // The changes of a stage are not kept if a model other than the named model has answered.
            let ingested = match fact.ending == Ending::Returned && !is_of_another_model(&fact.outcome) {
                true => self.changes(&sandbox, fact)?,
                false => None,
            };
            if !views.is_empty() {
                subject::set_aside(views, &self.quarantine()?, self.rules(), fact)?;
            }
            Ok(ingested)
        });
        if taken.is_ok() {
            let scope = self.scope.clone();
            statement.check(fact, &FilesAtEnd { run: &self.run.dir, workspace: &self.workspace, scope });
        }
        let had_folder = sandbox.remove().inspect_err(|error| {
            tracing::warn!(%error, "the stage's files were not removed");
        });
        if self.has_folder || had_folder.unwrap_or(true) {
            remove(&self.run, format!("{STAGE_DIR}/{}", self.attempt_id));
        }
        taken
    }

    fn rules(&self) -> ChangeRules<'_> {
        ChangeRules { limits: &self.limits, protected: &self.protected, ignored: &self.ignored }
    }

    /// Decides about the changes of the stage. A status file that is the answer of the stage is none of them.
    fn changes(
        &self,
        sandbox: &AttemptSandbox,
        fact: &mut StageFinished,
    ) -> Result<Option<Box<StatusIngested>>, AttemptError> {
        let view = &*sandbox.view();
        let mut changes = match view.examine(self.rules()) {
            Ok(examined) => examined,
            Err(error @ StageError::Limit { limit, .. }) => {
                fact.ending = Ending::LimitHit(limit.to_owned());
                replace(fact, Failure::new(FailureClass::Budget, FailureCode::limit(limit), error.to_string()));
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let ingested = self.status.apply(sandbox.status.as_ref(), view, &mut changes, fact, &*self.blobs)?;
        let StageChanges { mut found, ignored } = changes;
        usage::of_changes(&found, &ignored, fact);
        let violations = self.keeps.settle(&mut found);
        let keep = &mut |bytes: &mut dyn io::Read| self.blobs.put(bytes).map_err(io::Error::other);
        fact.files.changes = commit::store(&found, view, keep)?;
        self.set_aside(view, &found, fact)?;
        fact.files.ignored = guardrail::ignored_files(&ignored);
        sandbox.keep_ignored(view, &ignored);
        if !violations.is_empty() {
            let judged = self.recovery.as_ref().map(|recovery| recovery.judge(&found, view, keep)).transpose()?;
            guardrail::fail(fact, &violations, judged);
        }
        Ok(ingested)
    }

    /// Returns the quarantine folder of this attempt, and creates its parent folder.
    fn quarantine(&self) -> Result<PathBuf, AttemptError> {
        self.run.dir.create_dir_all(QUARANTINE_DIR).map_err(AttemptError::Folder)?;
        Ok(self.run.path.join(QUARANTINE_DIR).join(self.attempt_id.as_str()))
    }

    fn set_aside(
        &self,
        view: &WorkspaceView,
        found: &[FoundChange],
        fact: &mut StageFinished,
    ) -> Result<(), AttemptError> {
        if found.iter().all(FoundChange::is_allowed) {
            return Ok(());
        }
        let report = quarantine(view, found, &self.quarantine()?, &QuarantineLimits::default())?;
        fact.files.quarantined =
            report.kept.into_iter().map(|kept| RefusedChange { path: kept.path, reason: kept.reason }).collect();
        Ok(())
    }
}

/// Returns true if the attempt failed and one of its commands did.
fn has_failed_command(fact: &StageFinished) -> bool {
    !fact.outcome.status.satisfies_gate() && fact.commands.receipts.iter().any(|receipt| !receipt.passed())
}

/// Returns true if neither the attempt nor any of its commands was killed.
fn was_not_killed(fact: &StageFinished) -> bool {
    let has_ended = |receipt: &Receipt| receipt.how == CommandEnding::Exited;
    fact.ending == Ending::Returned && fact.commands.receipts.iter().all(has_ended)
}
