//! The sandbox of one attempt: its files, and the jail of its commands.
//!
//! The files are a layer over the run's workspace, which becomes an overlay with the first command; if nothing can be
//! mounted, they are a copy. The jail is opened with the first command and lives as long as the attempt. Both follow from the
//! binding and the operator's settings, never from the stage. The functions block: they must not run on the executor's
//! threads if a process may start.

use super::AttemptError;
use super::cache_sets::{begins_with_builders, protect_compiled, set};
use super::commands::Commands;
use super::hooks::HookSandbox;
use super::jail_setting::{setting, tool_binds, tools};
use super::paths::AttemptPaths;
use super::servers::{self, ServerSandbox};
use super::shared_view::{SharedSubjects, SharedView};
use super::status_file;
use super::subject::{self, CacheOwner};
use crate::run_dir::REPOSITORIES_DIR;
use glovebox_host::call::{FileSource, HookSetting};
use glovebox_host::grants::FileTier;
use glovebox_jail::jail::{Bind, JailSetting, ResourceUsage};
use glovebox_jail::lazy_jail::LazyJail;
use glovebox_jail::private_home::PrivateHome;
use glovebox_jail::status_drop::StatusDrop;
use glovebox_jail::subject::SubjectsReport;
use glovebox_plan::plan::Binding;
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::Tier;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use glovebox_workspace::cache::{self, CacheSet, Caches};
use glovebox_workspace::dependencies::{Dependencies, DependencyAccess};
use glovebox_workspace::ignored::IgnoredChanges;
use glovebox_workspace::ignored_store::IgnoredStore;
use glovebox_workspace::repository::{self, REPOSITORY_DIR, Submodule};
use glovebox_workspace::stage::{ViewOverrides, WorkspaceView};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The files of an attempt and its jail.
pub struct AttemptSandbox {
    view: SharedView,
    jail: Option<Arc<LazyJail>>,
    caches: Option<Caches>,
    /// The run's or branch's folder of caches, and the cache set. The next stage gets the set if no command was killed.
    unsettled: Option<(PathBuf, CacheSet)>,
    subjects: Option<SharedSubjects>,
    hooks: Option<HookSandbox>,
    /// The home folder of the agent program.
    pub(super) home: Option<PrivateHome>,
    /// The folder in which the stage's program leaves its status file. `None` if the stage does not answer by a file.
    pub(super) status: Option<StatusDrop>,
    servers: Vec<ServerSandbox>,
    /// Keeps ignored files for the next stage of the same trust domain.
    ignored: Option<IgnoredStore>,
    /// True if the stage judges and began with caches in which code of builders may have left files.
    pub(super) begins_with_builders: bool,
}

/// Resource usage and ended programs under test, after every process of an attempt has ended.
pub(super) struct Closed {
    /// The usage of the stage's own commands. Empty if the attempt had no jail.
    pub(super) spent: Vec<ResourceUsage>,
    /// The usage and the files of the programs under test.
    pub(super) subjects: SubjectsReport,
}

/// Mounts and layers over the workspace for one stage.
#[derive(Default)]
struct Mounts {
    overrides: ViewOverrides,
    binds: Vec<Bind>,
    scratch: Vec<Entry>,
}

impl AttemptSandbox {
    /// Prepares the files and, if commands may run, the jail that the first command opens. If nothing can be mounted, the
    /// files are a copy, which takes long to make, and the jail is opened immediately.
    pub(super) fn open(env: &SandboxEnv, binding: &Binding, paths: &Arc<AttemptPaths>) -> Result<Self, AttemptError> {
        let mounts = env.tier.map_or(env.can_mount, |tier| tier == Tier::Full);
        let inside = env.inside();
        let set = set(binding, paths);
        let caches = caches(env, binding, paths, set.as_ref())?;
        let Mounts { mut overrides, mut binds, scratch } =
            if mounts { mounted(inside, binding, paths, caches.as_ref())? } else { copied(binding, paths)? };
        let has_repository = mounts && wants_repository(env, binding);
        overrides.mount_points.extend(has_repository.then(|| ScopePath::parse(REPOSITORY_DIR)).into_iter().flatten());
        let submodules = match has_repository {
            true => repository::submodules(&env.project, &paths.workspace, &binding.scope),
            false => Vec::new(),
        };
        overrides.mount_points.extend(submodules.iter().filter_map(Submodule::repository_path));
        let shown = paths.dependencies(env, binding, dependency_access(env, binding, paths))?;
        overrides.mount_points.extend(shown.mount_points());
        binds.extend(shown.binds(inside));
        let ignored = set.as_ref().filter(|_| paths.has_ignored);
        let ignored = ignored.and_then(|set| open_store(&paths.kept, set));
        overrides.closed.clone_from(&paths.closed);
        overrides.below = ignored.as_ref().map(|store| store.folder().to_owned());
        let scope = status_file::hide_old(paths, binding.scope.clone().with_scratch(scratch), &mut overrides)?;
        let (workspace, at) = (&paths.workspace, paths.folder.join(FILES_DIR));
        let view = match (binding.runs_commands(), mounts) {
            (false, _) => WorkspaceView::layer(workspace, &at, &scope, &overrides)?,
            (true, true) if env.copies_files => WorkspaceView::copy(workspace, &at, &scope, &overrides)?,
            (true, true) => WorkspaceView::layer_to_mount(workspace, &at, &scope, &overrides)?,
            (true, false) => WorkspaceView::copy(workspace, &at, &scope, &overrides)?,
        };
        let begins_with_builders = begins_with_builders(env, binding, paths, set.as_ref(), |compiled| {
            let in_caches = caches.as_ref().is_some_and(|caches| caches.has_content(compiled));
            in_caches || ignored.as_ref().is_some_and(IgnoredStore::has_content)
        })?;
        let subjects = subject::offer(env, binding, paths)?.map(|subjects| Arc::new(Mutex::new(subjects)));
        let unsettled = set.filter(|_| caches.is_some()).map(|set| (paths.kept.to_path_buf(), set));
        let hooks = HookSandbox::offer(env, binding, paths);
        let servers = ServerSandbox::offer(env, binding, paths);
        let (home, status) = own_folders(binding, paths).map_err(AttemptError::Folder)?;
        let view = SharedView::new(view);
        let mut made = Self {
            jail: None,
            view,
            caches,
            unsettled,
            subjects,
            hooks,
            home,
            status,
            servers,
            ignored,
            begins_with_builders,
        };
        if !binding.runs_commands() {
            return Ok(made);
        }
        let setting = made.jail_setting(env, binding, paths, binds, &shown)?;
        let commands = Commands {
            setting,
            env: env.clone(),
            binding: binding.clone(),
            paths: Arc::clone(paths),
            has_repository,
            submodules,
            view: made.view.share(),
            subjects: made.subjects.clone(),
            status: made.status.clone(),
        };
        made.jail = Some(Arc::new(commands.into_jail()?));
        Ok(made)
    }

    /// Returns the settings of the jail of the stage's own commands.
    fn jail_setting(
        &self,
        env: &SandboxEnv,
        binding: &Binding,
        paths: &AttemptPaths,
        binds: Vec<Bind>,
        shown: &Dependencies<'_>,
    ) -> Result<JailSetting, AttemptError> {
        let network = binding.command_access.network.clone();
        let mut kept = tool_binds(env, self.caches.as_ref())?;
        if paths.has_builders_code && !binding.is_builder() {
            protect_compiled(env, &mut kept);
        }
        kept.extend(self.home.as_ref().map(PrivateHome::bind));
        let mut setting = JailSetting { inner: binds, kept, network, ..setting(env, binding, paths) };
        if let Some((status, attempt)) = self.status.as_ref().zip(paths.answering.as_ref()) {
            status.offer(&mut setting, attempt);
        }
        let environment = env.environment.iter().filter(|entry| shown.has(entry));
        environment.for_each(|entry| setting.activate_environment(entry.path()));
        Ok(setting)
    }

    /// Returns the files, with the changes of the component and its commands.
    pub(super) fn view(&self) -> MutexGuard<'_, WorkspaceView> {
        self.view.locked()
    }

    /// Keeps the files that the stage wrote at paths that git ignores. An error is only logged, because a stage can work
    /// without these files. Must be called after all other files of the stage are stored.
    pub(super) fn keep_ignored(&self, view: &WorkspaceView, left_out: &IgnoredChanges) {
        let Some(store) = &self.ignored else { return };
        match store.take(view, left_out, cache::BYTES_MAX) {
            Ok(true) => {}
            Ok(false) => tracing::warn!("the files that git ignores exceeded the limit of caches and were removed"),
            Err(error) => tracing::warn!(%error, "the files that git ignores could not be kept and were removed"),
        }
    }

    /// Gives the caches to the next stage. Must be called only if no process of the attempt was killed. Without this
    /// call the caches begin empty.
    pub(super) fn settle_caches(&mut self) -> Result<(), AttemptError> {
        Ok(self.unsettled.take().map_or(Ok(()), |(kept, set)| set.settle(&kept))?)
    }

    /// Returns the files, as host code opens them.
    pub fn files(&self) -> FileSource {
        match (&*self.view(), &self.jail) {
            (WorkspaceView::Layer(layer), _) => FileSource::Layer(Arc::clone(layer)),
            (WorkspaceView::Copy(copy), _) => FileSource::Folder(copy.root().to_owned()),
            // An overlay always has an open jail. If it had none, the empty path would open nothing.
            (WorkspaceView::Overlay(_), jail) => {
                let jail = jail.as_ref().and_then(|jail| jail.if_opened());
                FileSource::Folder(jail.map(|jail| jail.root().into_owned()).unwrap_or_default())
            }
        }
    }

    /// Returns the files after their last use.
    pub(super) fn into_view(mut self) -> Result<WorkspaceView, AttemptError> {
        // The jail holds a reference to the files, so it is dropped first.
        self.jail = None;
        self.view.into_view().ok_or_else(|| AttemptError::Thread("the stage's files are still in use".to_owned()))
    }

    /// Removes the files. Returns true if the attempt had a folder.
    pub(super) fn remove(self) -> Result<bool, AttemptError> {
        let view = self.into_view()?;
        let had_folder = view.has_folder();
        view.remove()?;
        Ok(had_folder)
    }

    /// Returns the jail, which lives as long as the attempt. `None` if no commands may run.
    pub(super) fn jail(&self) -> Option<Arc<LazyJail>> {
        self.jail.as_ref().map(Arc::clone)
    }

    /// Returns the hooks before and after the tool calls of the stage's model.
    pub(super) fn hooks(&self, binding: &Binding) -> Option<HookSetting> {
        self.hooks.as_ref().map(|hooks| hooks.setting(binding))
    }

    /// Returns the sandboxes of the tool servers that the stage may start.
    pub(super) fn servers(&self) -> &[ServerSandbox] {
        &self.servers
    }

    /// Ends the jail. After this no process of the stage is alive, and its files can be examined.
    pub(super) fn close(&mut self) -> Result<Closed, AttemptError> {
        let of_hooks = self.hooks.take().map(HookSandbox::end);
        let of_servers = servers::end_all(&mut self.servers);
        let spent = self.close_jail()?.into_iter().chain(of_hooks.transpose()?.flatten()).chain(of_servers?).collect();
        let in_use = || AttemptError::Thread("the program under test is still in use".to_owned());
        let subjects = self.subjects.take().map(|subjects| Arc::into_inner(subjects).ok_or_else(in_use)).transpose()?;
        let subjects = subjects.map(|subjects| subjects.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(Closed { spent, subjects: subject::ended(subjects)? })
    }

    /// Ends the jail of the stage's commands. Returns the resource usage of each jail that was opened.
    fn close_jail(&mut self) -> Result<Vec<ResourceUsage>, AttemptError> {
        let Some(jail) = self.jail.take() else { return Ok(Vec::new()) };
        // The call has ended, so there is no other reference.
        let jail =
            Arc::into_inner(jail).ok_or_else(|| AttemptError::Thread("the stage's jail is still in use".to_owned()))?;
        let mut spent = jail.used_before();
        let Some(jail) = jail.into_jail().map_err(AttemptError::Commands)? else { return Ok(spent) };
        spent.push(jail.end()?);
        if let Some(usage) = self.caches.take().map(|caches| caches.enforce_limit(cache::BYTES_MAX)).transpose()?
            && usage.dropped
        {
            tracing::warn!(bytes = usage.bytes, "the build caches exceeded their limit and were removed");
        }
        Ok(spent)
    }
}

/// Makes the home folder of an agent program, and the drop folder of a stage that answers by a status file.
fn own_folders(binding: &Binding, paths: &AttemptPaths) -> io::Result<(Option<PrivateHome>, Option<StatusDrop>)> {
    let home = binding.program.as_ref().map(|_| PrivateHome::make(&paths.folder)).transpose()?;
    let status = paths.answering.as_ref().map(|_| StatusDrop::make(&paths.folder)).transpose()?;
    Ok((home, status))
}

/// Opens the ignored files that stages of this set kept. On an error the stage begins without them.
fn open_store(run: &Path, set: &CacheSet) -> Option<IgnoredStore> {
    let opened = IgnoredStore::open(run, set);
    opened.inspect_err(|error| tracing::warn!(%error, "could not open the kept files that git ignores; the stage begins without them")).ok()
}

/// Returns the message about the step that may take long while a stage's files are prepared.
pub(super) fn preparation(env: &SandboxEnv, binding: &Binding, paths: &AttemptPaths) -> &'static str {
    match wants_repository(env, binding) && !repository::has_any(&paths.kept.join(REPOSITORIES_DIR)) {
        true => "making the files of the stage, and a repository for git",
        false => "making the files of the stage",
    }
}

/// The folder of a stage's files in the attempt's folder.
const FILES_DIR: &str = "files";

/// Returns hold-outs and caches as mounts.
fn mounted(
    inside: &Path,
    binding: &Binding,
    paths: &AttemptPaths,
    caches: Option<&Caches>,
) -> Result<Mounts, AttemptError> {
    // Files at the path of a cache in the workspace itself are discarded, because the cache is mounted over them.
    let scratch = binding.command_access.scratch.iter().chain(&binding.command_access.cache).cloned().collect();
    let mut inner = Mounts { scratch, ..Mounts::default() };
    // A component with files sees the copy or the merged folder, in which a mount may not be visible. So the hold-outs that
    // it reads are added as a layer.
    let laid = if binding.tier == FileTier::None { Vec::new() } else { layers(paths)? };
    let by_mount = if laid.is_empty() { &paths.holdouts[..] } else { &[] };
    inner.overrides.layers.extend(laid);
    for (path, source) in by_mount {
        inner.overrides.mount_points.push(path.clone());
        inner.binds.push(Bind::read_only(source.clone(), inside.join(path.as_str())));
    }
    if let Some(caches) = caches {
        inner.overrides.mount_points.extend(caches.mount_points());
        inner.binds.extend(caches.binds(inside)?);
    }
    Ok(inner)
}

/// Opens the caches of a stage's own commands: folders of the workspace if they can be mounted, and those of toolchains. If
/// builders' code could run among the commands while hold-outs are readable, the caches end with the attempt, because files
/// of that code would influence the next verdict.
fn caches(
    env: &SandboxEnv,
    binding: &Binding,
    paths: &AttemptPaths,
    set: Option<&CacheSet>,
) -> Result<Option<Caches>, AttemptError> {
    let tools = tools(env);
    let can_mount = env.tier.map_or(env.can_mount, Tier::can_mount);
    let entries = if can_mount { &binding.command_access.cache[..] } else { &[] };
    if !binding.runs_commands() || (entries.is_empty() && tools.is_empty()) {
        return Ok(None);
    }
    let caches = match set {
        Some(set) => {
            set.begin(&paths.kept)?;
            Caches::open(&paths.kept, set, entries)?
        }
        None => paths.private().caches(CacheOwner::Stage, entries)?,
    };
    Ok(Some(caches.with_tools(&tools)?))
}

/// Returns hold-outs as a layer that is copied. Caches are scratch folders, since nothing can be mounted.
fn copied(binding: &Binding, paths: &AttemptPaths) -> Result<Mounts, AttemptError> {
    let scratch = binding.command_access.scratch.iter().chain(&binding.command_access.cache).cloned().collect();
    Ok(Mounts {
        scratch,
        overrides: ViewOverrides { layers: layers(paths)?, ..ViewOverrides::default() },
        ..Mounts::default()
    })
}

/// Returns the hold-outs as one layer. Fails if the stage may read only some of them, because the layer shows all.
fn layers(paths: &AttemptPaths) -> Result<Vec<PathBuf>, AttemptError> {
    let Some(sealed) = paths.sealed.as_ref().filter(|_| !paths.holdouts.is_empty()) else { return Ok(Vec::new()) };
    if paths.holdouts.len() < sealed.folders { Err(AttemptError::Holdouts) } else { Ok(vec![sealed.files.clone()]) }
}

/// Returns whether the commands of an attempt may write to dependencies. A stage whose write scope is the default must not
/// change the tools that decide its verdict.
fn dependency_access(env: &SandboxEnv, binding: &Binding, paths: &AttemptPaths) -> DependencyAccess {
    let node = paths.plan.pipeline.node(&paths.node);
    let names_writes = node.is_some_and(|node| node.access.allowed_write_paths.is_some());
    let may_write = binding.keeps_writes() && paths.holdouts.is_empty();
    match env.tier {
        Some(Tier::Full) if names_writes && may_write => DependencyAccess::Layered,
        Some(Tier::Full) => DependencyAccess::CachesLayered,
        _ => DependencyAccess::ReadOnly,
    }
}

/// Returns true if the project has a repository and the sandbox of commands can show one.
fn wants_repository(env: &SandboxEnv, binding: &Binding) -> bool {
    let can_show = binding.runs_commands() && env.tier == Some(Tier::Full);
    can_show && repository::is_wanted(&env.project, &env.policy.path)
}
