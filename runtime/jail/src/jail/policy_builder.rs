//! The settings of a jail, and the policy for the helper.
//!
//! Everything is checked before a helper exists. The sources of binds are resolved once, here. No bind may show the
//! run's record, the user's project or the kernel's own files.

use super::bounds::enforced_inside;
use super::{ExecPolicy, JailError};
use crate::pulse::Pulse;
use glovebox_jail_helper::policy::{
    self, Bind, BindLayer, Confinement, HOME_INSIDE, HOST_NAME, Policy, Preparation, Source, Workspace,
};
use glovebox_jail_helper::subject;
use glovebox_record::path::ScopePath;
use glovebox_record::{Limits, Network, Tier};
use std::fmt;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The variable with the path of the drop folder for a status file.
pub(crate) const STATUS_DIR: &str = "GLOVEBOX_STATUS_DIR";
/// The name of the user inside the jail.
pub(super) const USER: &str = "glovebox";
/// `TMPDIR` of commands in a tier with a private root.
const TMP_INSIDE: &str = "/tmp";
/// The user id and group id inside the jail if Glovebox runs as root. No command runs as root.
const ID_INSIDE: u32 = 1000;
/// Folders of the kernel and of services. These folders and their contents are never bound.
const KERNELS: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];
/// The permission bit with which all users may read a file.
const FOR_OTHERS: u32 = 0o004;
/// Folders of the system, which every command can read.
const SYSTEMS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Name services of a jail without the whole network: only files. A lookup then fails for good at once. With the machine's services,
/// the C library asks a name server that does not exist and reports a temporary failure, which clients repeat for up to a minute.
const NAME_SERVICES: &str =
    "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\nprotocols: files\nservices: files\n";
/// Settings of a resolver that does not read `/etc/nsswitch.conf`. Nothing answers at the address.
const RESOLVER: &str = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";

/// The settings of a jail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JailSetting {
    /// The tier of the sandbox.
    pub tier: Tier,
    /// The operator's rules for every command.
    pub policy: ExecPolicy,
    /// The network that commands can reach.
    pub network: Network,
    /// The limits of the commands.
    pub limits: Limits,
    /// Path of the workspace inside the jail, if the tier has a private root. Otherwise the workspace has the same path
    /// as outside.
    pub inside: PathBuf,
    /// Mounts inside the workspace, with absolute paths below `inside`. Their mount points exist in the layers.
    pub inner: Vec<Bind>,
    /// Folders of the run outside the workspace: writable ones, in which toolchains keep caches, and shared ones. `{kept}`
    /// in a variable is replaced by the first writable one.
    pub kept: Vec<Bind>,
    /// Folders of the host that no other bind may show, contain or be inside of: the run's folder and the user's
    /// project.
    pub hidden: Vec<PathBuf>,
    /// The folder of the attempt. `HOME` and `TMPDIR` are created in it if the tier has no private root.
    pub folder: PathBuf,
    /// Counts what the host observes of the commands.
    pub pulse: Pulse,
}

/// The channels between a jail and Glovebox, in addition to the control socket. By default there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JailChannels {
    /// A folder of Glovebox that is visible read-only at [`glovebox_jail_helper::subject::FOLDER`].
    pub client_folder: Option<PathBuf>,
    /// True if Glovebox may create sockets in the jail's network. Only for [`Tier::Full`].
    pub sockets: bool,
}

impl JailSetting {
    /// Puts the programs of a Python virtual environment in the workspace first in `PATH`, as activating the
    /// environment does.
    pub fn activate_environment(&mut self, folder: &ScopePath) {
        let at = self.inside.join(folder.as_str());
        self.policy.path.insert(0, at.join("bin"));
        self.policy.env.entry("VIRTUAL_ENV".to_owned()).or_insert_with(|| at.display().to_string());
    }

    /// Returns the path that replaces `{kept}` in the value of a variable. If `kept` has no writable folder that outlives the
    /// attempt, it is a folder that is removed with the jail.
    pub(super) fn kept_at(&self) -> PathBuf {
        let drop = self.policy.env.get(STATUS_DIR).map(Path::new);
        let kept = self.kept.iter().find(|bind| bind.writable && drop != Some(&*bind.at));
        kept.map_or_else(|| self.home_and_tmp().0.join(".cache/kept"), |bind| bind.at.to_owned())
    }

    /// Removes `HOME` and `TMPDIR` of a jail that has ended, so that the next jail with these settings starts with
    /// empty ones.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn remove_own_folders(&self) -> std::io::Result<()> {
        if self.tier.has_own_root() {
            return Ok(());
        }
        let (home, tmp) = self.home_and_tmp();
        [home, tmp].iter().try_for_each(|folder| glovebox_workspace::tree::remove_all(folder))
    }

    /// Returns `HOME` and `TMPDIR` as commands see them.
    pub(super) fn home_and_tmp(&self) -> (PathBuf, PathBuf) {
        if self.tier.has_own_root() {
            (HOME_INSIDE.into(), TMP_INSIDE.into())
        } else {
            (self.folder.join("home"), self.folder.join("tmp"))
        }
    }
}

/// Checked settings: the policy for the helper, and the paths from which no program is started.
#[derive(Debug)]
pub(super) struct CheckedSetting {
    pub(super) policy: Policy,
    /// Paths that a stage can write.
    pub(super) writable: WritablePaths,
}

/// Paths that a stage can write, and the read-only binds below them, which it cannot write.
#[derive(Debug, Clone, Default)]
pub(super) struct WritablePaths {
    folders: Vec<PathBuf>,
    shown: Vec<PathBuf>,
}

impl WritablePaths {
    /// Returns true if a stage could have written the file at this path, or the target of a link at this path.
    pub(super) fn holds(&self, path: &Path) -> bool {
        let deepest = |folders: &[PathBuf], path: &Path| {
            let above = folders.iter().filter(|folder| path.starts_with(folder));
            above.map(|folder| folder.components().count()).max()
        };
        let is_held = |path: &Path| deepest(&self.folders, path) > deepest(&self.shown, path);
        is_held(path) || glovebox_workspace::canonical::canonical(path).is_ok_and(|real| is_held(&real))
    }
}

/// Checks the settings, and creates the folders that a tier without a private root needs.
pub(super) fn check(
    setting: &JailSetting,
    channels: &JailChannels,
    source: &Source,
) -> Result<CheckedSetting, JailError> {
    let has_root = setting.tier.has_own_root();
    let (home, tmp) = setting.home_and_tmp();
    let source = checked_source(source)?;
    if !has_root {
        make_folders(&[&home, &tmp])?;
    }
    let hidden = hidden(setting, &source)?;
    let at = if has_root { normal(&setting.inside)? } else { main_folder(&source).to_owned() };
    let configuration = configuration(&setting.policy.configuration)?;
    let binds = if has_root {
        // The masks come after the requested binds, so that no bind lies over a mask.
        [binds(&setting.policy.binds, &hidden, &at)?, configuration, masks(setting, &hidden)?, offered(channels)?]
            .concat()
    } else {
        [unrooted(setting, &hidden)?, configuration].concat()
    };
    let kept: Vec<Bind> = setting.kept.iter().map(|bind| checked_kept(bind, setting)).collect::<Result<_, _>>()?;
    let binds = [binds, kept].concat();
    let inner: Vec<Bind> =
        setting.inner.iter().map(|bind| checked_inner(bind, setting, &at)).collect::<Result<_, _>>()?;
    let (uid, gid) = ids();
    let folders = if has_root {
        vec![at.clone(), home.clone(), tmp.clone()]
    } else {
        vec![at.clone(), canonical(&setting.folder)?]
    };
    let read_only = binds.iter().filter(|bind| has_root && !bind.writable);
    let read_only = read_only.chain(inner.iter().filter(|bind| !bind.writable));
    let shown = read_only.map(|bind| bind.at.to_owned()).collect();
    let written = inner.iter().chain(&binds).filter(|bind| bind.writable).map(|bind| bind.at.to_owned());
    let writable = WritablePaths { folders: folders.into_iter().chain(written).collect(), shown };
    check_path(&setting.policy, &writable, &inner)?;
    let policy = Policy {
        confinement: confinement(setting.tier),
        workspace: Workspace { at: utf8(at)?, source, inner },
        binds,
        files: if has_root { files(uid, gid, &setting.network) } else { Vec::new() },
        home: utf8(home)?,
        tmp: utf8(tmp)?,
        uid,
        gid,
        network: match setting.network {
            Network::None => policy::Network::None,
            Network::Proxy(_) => policy::Network::Proxy,
            Network::Full => policy::Network::Full,
        },
        sockets: channels.sockets,
        bounds: enforced_inside(&setting.limits),
        cgroup_procs: Vec::new(),
    };
    Ok(CheckedSetting { policy, writable })
}

/// Returns the template's part of the jails of tier `full` that have this policy. The checked policy of such a jail has the same one.
/// Returns `None` for jails with the network of the host, which have no template.
pub(super) fn preparation(policy: &ExecPolicy, network: &Network) -> Result<Option<Preparation>, JailError> {
    let (uid, gid) = ids();
    let configuration = configuration(&policy.configuration)?;
    let prepared = Preparation { uid, gid, files: files(uid, gid, network), configuration };
    Ok((*network != Network::Full).then_some(prepared))
}

fn confinement(tier: Tier) -> Confinement {
    match tier {
        Tier::Unconfined => Confinement::Unconfined,
        Tier::Landlock => Confinement::Landlock,
        Tier::Bwrap => Confinement::Bwrap,
        Tier::Full => Confinement::Full,
    }
}

/// Resolves the paths of the workspace's layers once.
fn checked_source(source: &Source) -> Result<Source, JailError> {
    let resolve = |path: &PathBuf| utf8(canonical(path)?);
    Ok(match source {
        Source::Directory(folder) => Source::Directory(resolve(folder)?),
        Source::Overlay { lower, upper, work } => {
            let (upper, work) = (resolve(upper)?, resolve(work)?);
            Source::Overlay { lower: lower.iter().map(resolve).collect::<Result<_, _>>()?, upper, work }
        }
    })
}

/// Returns the folder that receives the changes.
fn main_folder(source: &Source) -> &Path {
    match source {
        Source::Directory(folder) => folder,
        Source::Overlay { upper, .. } => upper,
    }
}

/// Returns the host paths that must stay hidden: those of the settings, the folder of the attempt, and the workspace's
/// layers.
fn hidden(setting: &JailSetting, source: &Source) -> Result<Vec<PathBuf>, JailError> {
    let mut hidden = vec![canonical(&setting.folder)?];
    // A folder that does not exist cannot become visible.
    hidden.extend(setting.hidden.iter().filter_map(|folder| canonical(folder).ok()));
    match source {
        Source::Directory(folder) => hidden.push(folder.to_owned()),
        Source::Overlay { lower, upper, work } => {
            hidden.extend([upper, work].into_iter().chain(lower).map(PathBuf::from));
        }
    }
    let seen = hidden.iter().find(|folder| is_in_any(folder, &SYSTEMS));
    if let (Tier::Landlock, Some(seen)) = (setting.tier, seen) {
        return Err(JailError::Setting(format!(
            "`{}` is in a system folder, which every command can read in tier `landlock`; move the project and its runs to another folder",
            seen.display()
        )));
    }
    Ok(hidden)
}

/// Returns binds of empty folders over the hidden folders below the system's folders, which are otherwise visible
/// completely.
fn masks(setting: &JailSetting, hidden: &[PathBuf]) -> Result<Vec<Bind>, JailError> {
    let nothing = setting.folder.join("nothing");
    let mut masks: Vec<Bind> = Vec::new();
    let mut below: Vec<&PathBuf> = hidden.iter().filter(|folder| is_in_any(folder, &SYSTEMS)).collect();
    below.sort();
    for folder in below {
        if !masks.iter().any(|mask| folder.starts_with(&mask.at)) {
            make_folders(&[&nothing])?;
            masks.push(Bind::read_only(utf8(canonical(&nothing)?)?, utf8(folder.to_owned())?));
        }
    }
    Ok(masks)
}

/// Returns the bind of the folder with the command `subject`, which starts the program under test.
fn offered(channels: &JailChannels) -> Result<Vec<Bind>, JailError> {
    let Some(folder) = &channels.client_folder else { return Ok(Vec::new()) };
    Ok(vec![Bind::read_only(utf8(canonical(folder)?)?, subject::FOLDER.into())])
}

/// Returns true for a path in the folders of the system, which every command can read.
pub fn is_system(path: &Path) -> bool {
    is_in_any(path, &SYSTEMS)
}

fn is_in_any(path: &Path, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Returns the binds of a tier with a private root without duplicates, parents first.
fn binds(requested: &[Bind], hidden: &[PathBuf], workspace: &Path) -> Result<Vec<Bind>, JailError> {
    let mut all: Vec<Bind> = Vec::new();
    for bind in requested {
        let at = normal(&bind.at)?;
        if at.starts_with(workspace) {
            return Err(refused(bind, &"it is in the workspace"));
        }
        if at == Path::new("/") || at.starts_with("/etc") || is_in_any(&at, &KERNELS) {
            return Err(refused(bind, &"the sandbox has its own files there"));
        }
        let source = match glovebox_workspace::canonical::canonical(&bind.source) {
            Ok(source) => source,
            Err(_) if bind.optional => continue,
            Err(error) => return Err(refused(bind, &error)),
        };
        check_shown(bind, &source, hidden)?;
        // The path already exists. In the system's folders, which are read-only, no mount point could be created.
        if source == at && is_in_any(&at, &SYSTEMS) || all.iter().any(|other| other.at == at) {
            continue;
        }
        all.push(Bind { source: utf8(source)?, at: utf8(at)?, ..bind.clone() });
    }
    all.sort_by_key(|bind| bind.at.components().count());
    Ok(all)
}

/// Returns the binds of files below `/etc` at their own paths. Refuses a file directly in `/etc`, a file behind a link,
/// and a file that not every user may read, because the system's own secrets are such files.
fn configuration(files: &[PathBuf]) -> Result<Vec<Bind>, JailError> {
    files.iter().map(|file| checked_configuration(file)).collect()
}

fn checked_configuration(file: &Path) -> Result<Bind, JailError> {
    let bind = Bind::read_only(file.to_owned(), file.to_owned());
    let path = normal(file)?;
    let below = path.strip_prefix("/etc").map(|below| below.components().count()).unwrap_or_default();
    if below < 2 || canonical(&path)? != path {
        return Err(refused(&bind, &"expected a file below a folder of `/etc`, with no symbolic link in its path"));
    }
    let status = fs::symlink_metadata(&path).map_err(|error| refused(&bind, &error))?;
    if !status.is_file() || status.permissions().mode() & FOR_OTHERS == 0 {
        return Err(refused(&bind, &"expected a file that every user may read"));
    }
    Ok(Bind::read_only(utf8(path.clone())?, path))
}

/// Returns the binds of paths that commands may read in a tier without a private root. A path is the same inside and
/// outside.
fn unrooted(setting: &JailSetting, hidden: &[PathBuf]) -> Result<Vec<Bind>, JailError> {
    let mut all = binds(&setting.policy.binds, hidden, &hidden[0])?;
    for bind in &mut all {
        bind.at.clone_from(&bind.source);
    }
    Ok(all)
}

/// Refuses a bind that would show a hidden path. The check uses the resolved path.
fn check_shown(bind: &Bind, source: &Path, hidden: &[PathBuf]) -> Result<(), JailError> {
    if source == Path::new("/") || is_in_any(source, &KERNELS) {
        return Err(refused(bind, &"it contains files of the kernel or of services"));
    }
    if let Some(folder) = hidden.iter().find(|folder| folder.starts_with(source) || source.starts_with(folder)) {
        return Err(refused(bind, &format_args!("it would show `{}`", folder.display())));
    }
    let kind = fs::symlink_metadata(source).map_err(|error| refused(bind, &error))?.file_type();
    if kind.is_socket() || kind.is_fifo() || kind.is_block_device() || kind.is_char_device() {
        return Err(refused(bind, &"it is neither a file nor a folder"));
    }
    Ok(())
}

fn checked_inner(bind: &Bind, setting: &JailSetting, workspace: &Path) -> Result<Bind, JailError> {
    let at = normal(&bind.at)?;
    let below = match at.strip_prefix(&setting.inside) {
        Ok(below) if !below.as_os_str().is_empty() => workspace.join(below),
        _ => {
            let reason = format!("`{}`, where they would see it, is not below the workspace", at.display());
            return Err(refused(bind, &reason));
        }
    };
    let source = canonical(&bind.source)?;
    let shows_record = canonical(&setting.folder)?.starts_with(&source);
    if shows_record || is_in_any(&source, &KERNELS) {
        return Err(refused(bind, &"it would show files that are hidden from all stages"));
    }
    let layer = bind.layer.as_ref().map(|layer| checked_layer(layer, setting)).transpose()?;
    if layer.is_some() && setting.tier != Tier::Full {
        return Err(refused(bind, &"only tier `full` can mount a layer over it"));
    }
    Ok(Bind { source: utf8(source)?, at: utf8(below)?, layer, ..bind.clone() })
}

/// Checks the folders of a layer over a bind: both belong to the attempt.
fn checked_layer(layer: &BindLayer, setting: &JailSetting) -> Result<BindLayer, JailError> {
    let attempt = canonical(&setting.folder)?;
    let checked = |folder: &Path| match canonical(folder)? {
        own if own.starts_with(&attempt) && own != attempt => utf8(own),
        _ => Err(JailError::Setting(format!("`{}` is not in the folder of the attempt", folder.display()))),
    };
    Ok(BindLayer { upper: checked(&layer.upper)?, work: checked(&layer.work)? })
}

/// Checks a folder of the run, which the run itself binds: it may be inside a hidden folder, but must not show the
/// attempt.
fn checked_kept(bind: &Bind, setting: &JailSetting) -> Result<Bind, JailError> {
    let (at, source) = (normal(&bind.at)?, canonical(&bind.source)?);
    let is_in_place = if setting.tier.has_own_root() { at.starts_with(HOME_INSIDE) } else { at == source };
    if !is_in_place || canonical(&setting.folder)?.starts_with(&source) {
        return Err(refused(bind, &"it would show files that are hidden from all stages"));
    }
    Ok(Bind { source: utf8(source)?, at: utf8(at)?, ..bind.clone() })
}

fn refused(bind: &Bind, reason: &dyn fmt::Display) -> JailError {
    JailError::Setting(format!("commands cannot see `{}`: {reason}", bind.source.display()))
}

/// Refuses a folder of the `PATH` of commands that a stage can write, because the stage could replace every program. A folder in
/// a layer over a bind inside the workspace is accepted: only the shells of commands look there, because no program is
/// looked up below the workspace.
fn check_path(policy: &ExecPolicy, writable: &WritablePaths, inner: &[Bind]) -> Result<(), JailError> {
    let is_layered = |folder: &Path| inner.iter().any(|bind| bind.layer.is_some() && folder.starts_with(&bind.at));
    let is_refused = |folder: &Path| !folder.is_absolute() || (writable.holds(folder) && !is_layered(folder));
    match policy.path.iter().find(|folder| is_refused(folder)) {
        None => Ok(()),
        Some(folder) => Err(JailError::Setting(format!(
            "`{}` cannot be in the PATH of commands, expected the absolute path of a folder that no stage can write",
            folder.display()
        ))),
    }
}

/// Returns the files of `/etc` that are created for the jail. Without the whole network, no name of a host exists, except those in
/// `/etc/hosts`.
fn files(uid: u32, gid: u32, network: &Network) -> Vec<(PathBuf, String)> {
    let resolver = [("/etc/nsswitch.conf", NAME_SERVICES), ("/etc/resolv.conf", RESOLVER)];
    let resolver = resolver.map(|(path, content)| (path.into(), content.to_owned()));
    let own = [
        ("/etc/passwd".into(), format!("{USER}:x:{uid}:{gid}::{HOME_INSIDE}:/bin/sh\n")),
        ("/etc/group".into(), format!("{USER}:x:{gid}:\n")),
        ("/etc/hosts".into(), format!("127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {HOST_NAME}\n")),
    ];
    own.into_iter().chain(resolver.into_iter().filter(|_| *network != Network::Full)).collect()
}

fn ids() -> (u32, u32) {
    let inside = |id: u32| if id == 0 { ID_INSIDE } else { id };
    (inside(rustix::process::geteuid().as_raw()), inside(rustix::process::getegid().as_raw()))
}

fn make_folders(folders: &[&PathBuf]) -> Result<(), JailError> {
    for folder in folders {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| JailError::Io { act: "make the folders of the sandbox", source })?;
    }
    Ok(())
}

/// Requires an absolute path without `..`, and removes `.` segments and double slashes.
fn normal(path: &Path) -> Result<PathBuf, JailError> {
    let mut parts = path.components();
    let rooted = parts.next() == Some(Component::RootDir);
    if rooted && parts.all(|part| matches!(part, Component::Normal(_))) {
        return Ok(path.components().collect());
    }
    Err(JailError::Setting(format!("`{}` must be an absolute path without `..`", path.display())))
}

fn canonical(path: &Path) -> Result<PathBuf, JailError> {
    glovebox_workspace::canonical::canonical(path)
        .map_err(|error| JailError::Setting(format!("`{}`: {error}", path.display())))
}

/// Requires a path that the policy, which is JSON, can contain.
pub(super) fn utf8(path: PathBuf) -> Result<PathBuf, JailError> {
    if path.to_str().is_some_and(|text| !text.contains('\0')) {
        return Ok(path);
    }
    Err(JailError::Setting(format!("`{}` must be a valid UTF-8 path", glovebox_workspace::tree::shown(&path))))
}
