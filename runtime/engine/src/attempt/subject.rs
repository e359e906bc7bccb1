//! The program under test of one attempt: its sandbox, and which of its files are kept.
//!
//! It has the builders' view of the workspace and its own sandbox. Its writes go to the quarantine and are never committed.
//! So do the writes of a stage that can read hold-outs, because builders could read them.

use super::AttemptError;
use super::jail_setting::{setting, tool_binds, tools};
use super::paths::AttemptPaths;
use glovebox_jail::jail::CommandLine;
use glovebox_jail::jail::JailSetting;
use glovebox_jail::subject::{FOLDER, SubjectCall, SubjectSetting, Subjects, SubjectsReport};
use glovebox_journal::event::{Isolation, Receipt, RefusedChange, StageFinished};
use glovebox_pipeline::ir::holdouts::Writes;
use glovebox_plan::plan::Binding;
use glovebox_plan::plan::Separation;
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{Network, Tier};
use glovebox_workspace::cache::Caches;
use glovebox_workspace::change::Verdict;
use glovebox_workspace::dependencies::DependencyAccess;
use glovebox_workspace::quarantine::{QuarantineLimits, quarantine};
use glovebox_workspace::stage::{ChangeRules, FoundChange, StageError, ViewOverrides, WorkspaceView};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between the request to end a program under test and its kill.
const GRACE: Duration = Duration::from_millis(200);
/// Maximum number of paths of a program under test in the record. The report in the quarantine lists all.
const NAMED_MAX: usize = 100;
/// Limits of the files that are kept from a program under test.
const CAPS: QuarantineLimits = QuarantineLimits { files_max: 100, bytes_max: 16 << 20 };
/// Why a stage's own writes are moved to the quarantine.
const BESIDE_HOLDOUTS: &str = "scratch: the stage had hold-outs in reach, so builders do not see what it writes";
/// Why writes inside of the node's `allowed_write_paths` are moved to the quarantine.
const DROPPED_BESIDE_HOLDOUTS: &str =
    "dropped: the stage had hold-outs in reach, so builders do not see what it writes";
/// Why writes outside of the node's `allowed_write_paths` are a violation. No grant is proposed, because the writes would not
/// be committed even with it.
const OUTSIDE_BESIDE_HOLDOUTS: &str = "not in the write scope of a stage with hold-outs in reach";
/// Why writes of a program under test are moved to the quarantine.
const UNDER_TEST: &str = "scratch: written by the program under test";

/// The caches that are removed with an attempt: their folder, and their initial content.
pub(super) struct Private<'a> {
    /// The attempt's folder.
    pub(super) folder: &'a Path,
    /// The folder of the caches that were filled when the run began. It may not exist.
    pub(super) base: Option<&'a Path>,
}

/// The commands that use a cache.
#[derive(Debug, Clone, Copy)]
pub(super) enum CacheOwner {
    /// The stage's own commands.
    Stage,
    /// The program under test.
    Subject,
}

impl AttemptPaths {
    /// Returns the caches that end with the attempt.
    pub(super) fn private(&self) -> Private<'_> {
        Private { folder: &self.folder, base: self.cache_base.as_deref() }
    }
}

impl CacheOwner {
    pub(super) const ALL: [Self; 2] = [Self::Stage, Self::Subject];

    /// Returns the name of the owner's folder among the caches that were filled when the run began.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Subject => "subject",
        }
    }

    /// Returns the name of the owner's folder of caches in an attempt's folder.
    pub(super) fn folder(self) -> String {
        format!("cache-{}", self.as_str())
    }
}

impl Private<'_> {
    /// Opens the caches of an owner.
    pub(super) fn caches(&self, owner: CacheOwner, entries: &[Entry]) -> Result<Caches, AttemptError> {
        let base = self.base.map(|base| base.join(owner.as_str()));
        Ok(Caches::private(&self.folder.join(owner.folder()), base.as_deref(), entries)?)
    }
}

/// Prepares the program under test for a stage that judges a program, if the sandbox can separate the stage from the
/// program.
pub(super) fn offer(
    env: &SandboxEnv,
    binding: &Binding,
    paths: &AttemptPaths,
) -> Result<Option<Subjects>, AttemptError> {
    let tier = env.tier.filter(|tier| tier.has_own_root());
    let Some((separation, tier)) = binding.separation.as_ref().zip(tier) else { return Ok(None) };
    let mounts = tier == Tier::Full;
    let limits = &binding.limits;
    let (cache, inside) = (&binding.command_access.cache, env.inside());
    let mut overrides = ViewOverrides::default();
    let mut inner = Vec::new();
    let tools = tools(env);
    let mut kept = Vec::new();
    if mounts && !(cache.is_empty() && tools.is_empty()) {
        let caches = paths.private().caches(CacheOwner::Subject, cache)?.with_tools(&tools)?;
        overrides.mount_points = caches.mount_points();
        inner = caches.binds(inside)?;
        kept = tool_binds(env, Some(&caches))?;
    }
    let shown = paths.dependencies(env, binding, DependencyAccess::ReadOnly)?;
    overrides.mount_points.extend(shown.mount_points());
    inner.extend(shown.binds(inside));
    let mut of_jail = setting(env, binding, paths);
    env.environment
        .iter()
        .filter(|entry| shown.has(entry))
        .for_each(|entry| of_jail.activate_environment(entry.path()));
    of_jail.policy.grace = GRACE;
    let subjects = Subjects::offer(SubjectSetting {
        jail: JailSetting { network: Network::None, inner, kept, ..of_jail },
        workspace: paths.workspace.clone(),
        scope: view(binding, &paths.plan.folders.sealed).with_scratch(cache.clone()),
        overrides,
        mounts,
        workdir: binding.command_access.workdir.clone(),
        command: separation.command.clone(),
        port: separation.port,
        timeout: Duration::from_millis(limits.command_ms.min(limits.wall_ms)),
        calls_max: limits.commands,
    });
    Ok(Some(subjects?))
}

/// Returns the builders' view: everything except hold-outs and paths that are hidden from all stages.
fn view(binding: &Binding, sealed: &[Entry]) -> Scope {
    let hidden = binding.scope.hidden.iter().chain(sealed).cloned().collect();
    Scope { hidden, ..Scope::everything() }
}

/// Puts the folder with the command `subject` first in the PATH of the stage's commands.
pub(super) fn in_path(setting: &mut JailSetting) {
    setting.policy.path.insert(0, PathBuf::from(FOLDER));
}

/// Which changes of a stage are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteRule {
    /// The scope of the stage decides.
    Scope,
    /// No changes are kept. A write outside of a named scope still fails the stage.
    Nothing {
        /// True if the node names a write scope.
        is_scope_named: bool,
    },
}

impl WriteRule {
    /// Returns the rule for a node with this separation.
    pub(super) fn new(separation: Option<&Separation>) -> Self {
        match separation {
            Some(&Separation { writes: Writes::Scratch, is_scope_named, .. }) => Self::Nothing { is_scope_named },
            _ => Self::Scope,
        }
    }

    /// Marks the changes that must not be committed. Returns the paths of the writes that are a violation.
    pub(super) fn settle(self, found: &mut [FoundChange]) -> Vec<String> {
        let mut violations = Vec::new();
        for change in found {
            let is_refused = change.is_violation();
            if is_refused && !matches!(self, Self::Nothing { is_scope_named: false }) {
                violations.push(change.path.clone());
            }
            match (is_refused, self) {
                (_, Self::Scope) => {}
                // Even a wider scope would not commit this write.
                (true, Self::Nothing { is_scope_named: true }) => {
                    change.verdict = Verdict::Disallowed(OUTSIDE_BESIDE_HOLDOUTS.to_owned());
                }
                (false, Self::Nothing { is_scope_named: true }) => {
                    change.verdict = Verdict::Disallowed(DROPPED_BESIDE_HOLDOUTS.to_owned());
                }
                (_, Self::Nothing { .. }) => change.verdict = Verdict::Disallowed(BESIDE_HOLDOUTS.to_owned()),
            }
        }
        violations
    }
}

/// Returns whether builders' code could influence a stage's verdict. `None` if the stage could not read hold-outs.
pub(super) fn isolation(binding: &Binding, env: &SandboxEnv) -> Option<Isolation> {
    let reaches = binding.holdouts == glovebox_plan::plan::HoldoutAccess::ReadOnly && !binding.is_builder();
    // If nothing can be mounted, a cache is the workspace's own folder, which may contain files of builders.
    let shows_caches = !binding.command_access.cache.is_empty() && !env.tier.is_some_and(Tier::can_mount);
    let is_isolated = binding.separation.as_ref().is_some_and(|separation| separation.is_isolated) && !shows_caches;
    reaches.then_some(if is_isolated { Isolation::Isolated } else { Isolation::NotIsolated })
}

/// Returns the part of the workspace that a verifier's own commands see. `None` if they see all of it, and for other stages.
pub(super) fn sees(binding: &Binding) -> Option<Vec<String>> {
    let (scope, access) = (&binding.scope, &binding.command_access);
    let shown = || scope.read.iter().chain(&scope.write).chain(&access.scratch).chain(&access.cache);
    let is_narrow = !binding.is_builder() && binding.runs_commands() && !shown().any(|entry| entry.path().is_root());
    is_narrow.then(|| shown().map(ToString::to_string).collect())
}

/// Adds the receipts of the programs under test, after those of the stage's own commands.
pub(super) fn receipts(calls: Vec<SubjectCall>, fact: &mut StageFinished) {
    for call in calls {
        let id = format!("{}/{}", fact.attempt.id, fact.commands.receipts.len() + 1);
        fact.commands.receipts.push(receipt(id, call));
    }
}

pub(super) fn receipt(id: String, call: SubjectCall) -> Receipt {
    let line = CommandLine { argv: call.words, program: None, cwd: call.cwd, env_names: Vec::new() };
    Receipt { subject: true, ..line.receipt(id, &call.exit, &call.status) }
}

/// Moves the writes of the programs under test to the quarantine, each sandbox to its own folder, and removes their files.
pub(super) fn set_aside(
    used: Vec<WorkspaceView>,
    into: &Path,
    rules: ChangeRules<'_>,
    fact: &mut StageFinished,
) -> Result<(), AttemptError> {
    for (number, view) in used.into_iter().enumerate() {
        let folder = into.with_file_name(format!("{}-subject-{}", fact.attempt.id, number + 1));
        let kept = keep(&view, &folder, rules, fact);
        if let Err(error) = view.remove() {
            tracing::warn!(%error, "the files of the program under test were not removed");
        }
        kept?;
    }
    Ok(())
}

fn keep(
    view: &WorkspaceView,
    folder: &Path,
    rules: ChangeRules<'_>,
    fact: &mut StageFinished,
) -> Result<(), AttemptError> {
    let mut found = match view.examine(rules) {
        Ok(examined) => examined.found,
        Err(StageError::Limit { limit, path, .. }) => {
            let reason = format!("{UNDER_TEST}; more than `limits.{limit}`, so none of it is kept");
            fact.files.quarantined.push(RefusedChange { path, reason });
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    if found.is_empty() {
        return Ok(());
    }
    for change in &mut found {
        change.verdict = Verdict::Disallowed(UNDER_TEST.to_owned());
    }
    let report = quarantine(view, &found, folder, &CAPS)?;
    let more = report.kept.len().saturating_sub(NAMED_MAX);
    let named = report.kept.into_iter().take(NAMED_MAX);
    fact.files.quarantined.extend(named.map(|kept| RefusedChange { path: kept.path, reason: kept.reason }));
    if more > 0 {
        let reason = format!("{UNDER_TEST}; `report.json` in the quarantine lists all paths");
        let noun = if more == 1 { "path" } else { "paths" };
        fact.files.quarantined.push(RefusedChange { path: format!("{more} more {noun}"), reason });
    }
    Ok(())
}

/// Ends the programs under test, and returns their usage and files.
pub(super) fn ended(subjects: Option<Subjects>) -> Result<SubjectsReport, AttemptError> {
    Ok(subjects.map(Subjects::end).transpose()?.unwrap_or_default())
}
