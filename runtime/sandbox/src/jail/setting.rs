//! What a jail is to be like, and the policy the helper is told.
//!
//! Everything is checked before a helper exists: what is bound is followed once here, and nothing that would show the run's
//! record, the user's project or the kernel's own files is accepted, whoever asks for it.

use super::bounds::enforced_inside;
use super::{ExecPolicy, JailError};
use glovebox_jail::policy::{self, Bind, Confinement, Policy, Source, Workspace};
use glovebox_jail::subject;
use glovebox_record::{Limits, Network, Tier};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Component, Path, PathBuf};

/// The user's name inside.
const USER: &str = "glovebox";
/// HOME of commands in walls with a root of their own: empty, theirs, gone with the jail.
pub const HOME_INSIDE: &str = "/home/glovebox";
const TMP_INSIDE: &str = "/tmp";
/// The user and group inside when ours is root's, which no command ever sees.
const ID_INSIDE: u32 = 1000;
/// Folders with everything in them that are never bound.
const KERNELS: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];
/// What exists in every root of our own: what lies below can be read by every command.
const SYSTEMS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What a jail is to be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JailSetting {
    /// Which walls.
    pub tier: Tier,
    /// What the operator allows every command.
    pub policy: ExecPolicy,
    /// What can be reached.
    pub network: Network,
    /// What may be used up.
    pub limits: Limits,
    /// Path of the workspace inside, where the tier has a root of its own; else it is where its files are.
    pub inside: PathBuf,
    /// Mounts inside the workspace: absolute paths below `inside`, whose mount points exist in its layers.
    pub inner: Vec<Bind>,
    /// Folders of the host that no other bind may show, hold or lie in: the run's folder, the user's project.
    pub hidden: Vec<PathBuf>,
    /// The attempt's folder; HOME and TMPDIR are made in it where the tier has no root of its own.
    pub folder: PathBuf,
}

/// What ties a jail to a part of this program, beyond its control socket. The default: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JailChannels {
    /// A folder of this program's own that is shown read-only at [`glovebox_jail::subject::FOLDER`].
    pub client_folder: Option<PathBuf>,
    /// Whether this program may take sockets of the jail's network; [`Tier::Full`] only.
    pub sockets: bool,
}

impl JailSetting {
    /// Returns HOME and TMPDIR as commands see them.
    pub(super) fn home_and_tmp(&self) -> (PathBuf, PathBuf) {
        if self.tier.has_own_root() {
            (HOME_INSIDE.into(), TMP_INSIDE.into())
        } else {
            (self.folder.join("home"), self.folder.join("tmp"))
        }
    }
}

/// A setting that was checked: what the helper is told, and from where no program is started.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) policy: Policy,
    /// Path of the workspace for commands.
    pub(super) workspace: PathBuf,
    /// The workspace's folder on the host, where it is one; the helper hands over the others.
    pub(super) folder: Option<PathBuf>,
    /// Where a stage can write.
    pub(super) writable: Writable,
}

/// Where a stage can write, and where a read-only bind lies over that.
#[derive(Debug, Clone, Default)]
pub(super) struct Writable {
    folders: Vec<PathBuf>,
    shown: Vec<PathBuf>,
}

impl Writable {
    /// True when what is at the path, or what it is a link to on this machine, could be a stage's work.
    pub(super) fn holds(&self, path: &Path) -> bool {
        let deepest = |folders: &[PathBuf], path: &Path| {
            let above = folders.iter().filter(|folder| path.starts_with(folder));
            above.map(|folder| folder.components().count()).max()
        };
        let is_held = |path: &Path| deepest(&self.folders, path) > deepest(&self.shown, path);
        is_held(path) || fs::canonicalize(path).is_ok_and(|real| is_held(&real))
    }
}

/// Checks everything and makes the folders walls without a root of their own need.
pub(super) fn check(setting: &JailSetting, channels: &JailChannels, source: &Source) -> Result<Checked, JailError> {
    let has_root = setting.tier.has_own_root();
    let (home, tmp) = setting.home_and_tmp();
    let (source, from) = checked_source(source)?;
    if !has_root {
        make_folders(&[&home, &tmp])?;
    }
    let hidden = hidden(setting, &from)?;
    let at = if has_root { normal(&setting.inside)? } else { first_of(&from)?.clone() };
    let binds = if has_root {
        // After what was asked for, so that nothing lies over a mask.
        [binds(&setting.policy.binds, &hidden, &at)?, masks(setting, &hidden)?, offered(channels)?].concat()
    } else {
        unrooted(setting, &hidden)?
    };
    let inner = setting.inner.iter().map(|bind| checked_inner(bind, setting, &at)).collect::<Result<_, _>>()?;
    let (uid, gid) = ids();
    let folders = if has_root {
        vec![at.clone(), home.clone(), tmp.clone()]
    } else {
        vec![at.clone(), canonical(&setting.folder)?]
    };
    let read_only = binds.iter().filter(|bind| has_root && !bind.writable);
    let writable = Writable { folders, shown: read_only.map(|bind| PathBuf::from(&bind.at)).collect() };
    check_path(&setting.policy, &writable)?;
    let policy = Policy {
        confinement: confinement(setting.tier),
        workspace: Workspace { at: text(&at)?, source, inner },
        binds,
        files: if has_root { files(uid, gid) } else { Vec::new() },
        home: text(&home)?,
        tmp: text(&tmp)?,
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
    let folder = matches!(policy.workspace.source, Source::Directory(_)).then(|| from[0].clone());
    Ok(Checked { policy, workspace: at, folder, writable })
}

fn confinement(tier: Tier) -> Confinement {
    match tier {
        Tier::Unconfined => Confinement::Unconfined,
        Tier::Landlock => Confinement::Landlock,
        Tier::Bwrap => Confinement::Bwrap,
        Tier::Full => Confinement::Full,
    }
}

/// Follows the paths of the workspace's layers once, and returns them beside the source.
fn checked_source(source: &Source) -> Result<(Source, Vec<PathBuf>), JailError> {
    match source {
        Source::Directory(folder) => {
            let folder = canonical(Path::new(folder))?;
            Ok((Source::Directory(text(&folder)?), vec![folder]))
        }
        Source::Overlay { lower, upper, work } => {
            let follow = |path: &String| canonical(Path::new(path));
            let mut all = vec![follow(upper)?, follow(work)?];
            for layer in lower {
                all.push(follow(layer)?);
            }
            let texts = all.iter().map(|path| text(path)).collect::<Result<Vec<_>, _>>()?;
            let source =
                Source::Overlay { upper: texts[0].clone(), work: texts[1].clone(), lower: texts[2..].to_vec() };
            Ok((source, all))
        }
    }
}

fn first_of(folders: &[PathBuf]) -> Result<&PathBuf, JailError> {
    folders.first().ok_or_else(|| JailError::Setting("the workspace has no folder".to_owned()))
}

/// Everything of the host that must not be seen: what the setting names, the attempt, the workspace's own layers.
fn hidden(setting: &JailSetting, layers: &[PathBuf]) -> Result<Vec<PathBuf>, JailError> {
    let mut hidden = vec![canonical(&setting.folder)?];
    // One that does not exist cannot be shown.
    hidden.extend(setting.hidden.iter().filter_map(|folder| canonical(folder).ok()));
    hidden.extend(layers.iter().cloned());
    let seen = hidden.iter().find(|folder| is_in_any(folder, &SYSTEMS));
    if let (Tier::Landlock, Some(seen)) = (setting.tier, seen) {
        return Err(JailError::Setting(format!(
            "`{}` lies in a folder of the system, which every command can read in tier `landlock`; expected the project and its runs elsewhere",
            seen.display()
        )));
    }
    Ok(hidden)
}

/// Empty folders over what is hidden below the system's own folders, which are shown as a whole.
fn masks(setting: &JailSetting, hidden: &[PathBuf]) -> Result<Vec<Bind>, JailError> {
    let nothing = setting.folder.join("nothing");
    let mut masks: Vec<Bind> = Vec::new();
    let mut below: Vec<&PathBuf> = hidden.iter().filter(|folder| is_in_any(folder, &SYSTEMS)).collect();
    below.sort();
    for folder in below {
        if !masks.iter().any(|mask| folder.starts_with(&mask.at)) {
            make_folders(&[&nothing])?;
            masks.push(Bind {
                source: text(&canonical(&nothing)?)?,
                at: text(folder)?,
                writable: false,
                optional: false,
            });
        }
    }
    Ok(masks)
}

/// The folder with the command that starts the program under test.
fn offered(channels: &JailChannels) -> Result<Vec<Bind>, JailError> {
    let Some(folder) = &channels.client_folder else { return Ok(Vec::new()) };
    let at = subject::FOLDER.to_owned();
    Ok(vec![Bind { source: text(&canonical(folder)?)?, at, writable: false, optional: false }])
}

fn is_in_any(path: &Path, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// The binds of walls with a root of their own, shallow paths first, each path once.
fn binds(asked: &[Bind], hidden: &[PathBuf], workspace: &Path) -> Result<Vec<Bind>, JailError> {
    let mut all: Vec<Bind> = Vec::new();
    for bind in asked {
        let at = normal(Path::new(&bind.at))?;
        let at = at.as_path();
        if at.starts_with(workspace) {
            return Err(refused(bind, "it lies in the workspace"));
        }
        if at == Path::new("/") || at.starts_with("/etc") || is_in_any(at, &KERNELS) {
            return Err(refused(bind, "the jail has its own"));
        }
        let source = match fs::canonicalize(&bind.source) {
            Ok(source) => source,
            Err(_) if bind.optional => continue,
            Err(error) => return Err(refused(bind, &error.to_string())),
        };
        check_shown(bind, &source, hidden)?;
        // There already, and the system's folders are read-only: no mount point could be made.
        if source == at && is_in_any(at, &SYSTEMS) || all.iter().any(|other| Path::new(&other.at) == at) {
            continue;
        }
        all.push(Bind { source: text(&source)?, at: text(at)?, ..bind.clone() });
    }
    all.sort_by_key(|bind| Path::new(&bind.at).components().count());
    Ok(all)
}

/// What may be read in walls without a root of their own: a path there means what it means outside.
fn unrooted(setting: &JailSetting, hidden: &[PathBuf]) -> Result<Vec<Bind>, JailError> {
    let mut all = binds(&setting.policy.binds, hidden, &hidden[0])?;
    for bind in &mut all {
        bind.at.clone_from(&bind.source);
    }
    Ok(all)
}

/// Refuses to show what is never shown, by its real path.
fn check_shown(bind: &Bind, source: &Path, hidden: &[PathBuf]) -> Result<(), JailError> {
    if source == Path::new("/") || is_in_any(source, &KERNELS) {
        return Err(refused(bind, "it would show what belongs to the kernel or to services"));
    }
    if let Some(folder) = hidden.iter().find(|folder| folder.starts_with(source) || source.starts_with(folder)) {
        return Err(refused(bind, &format!("it would show `{}`", folder.display())));
    }
    let kind = fs::symlink_metadata(source).map_err(|error| refused(bind, &error.to_string()))?.file_type();
    if kind.is_socket() || kind.is_fifo() || kind.is_block_device() || kind.is_char_device() {
        return Err(refused(bind, "it is neither a file nor a folder"));
    }
    Ok(())
}

fn checked_inner(bind: &Bind, setting: &JailSetting, workspace: &Path) -> Result<Bind, JailError> {
    let at = normal(Path::new(&bind.at))?;
    let below = match at.strip_prefix(&setting.inside) {
        Ok(below) if !below.as_os_str().is_empty() => workspace.join(below),
        _ => return Err(refused(bind, "it does not lie in the workspace")),
    };
    let source = canonical(Path::new(&bind.source))?;
    let shows_record = [canonical(&setting.folder)?].iter().any(|folder| folder.starts_with(&source));
    if shows_record || is_in_any(&source, &KERNELS) {
        return Err(refused(bind, "it would show what no stage may see"));
    }
    Ok(Bind { source: text(&source)?, at: text(&below)?, ..bind.clone() })
}

fn refused(bind: &Bind, why: &str) -> JailError {
    JailError::Setting(format!("`{}` cannot be shown to commands: {why}", bind.source))
}

/// A folder of the fixed PATH from which a stage's own file could be started would make every name its choice.
fn check_path(policy: &ExecPolicy, writable: &Writable) -> Result<(), JailError> {
    match policy.path.iter().find(|folder| !folder.is_absolute() || writable.holds(folder)) {
        None => Ok(()),
        Some(folder) => Err(JailError::Setting(format!(
            "`{}` cannot be in the fixed PATH, expected an absolute folder outside the workspace",
            folder.display()
        ))),
    }
}

/// The few files of `/etc` that are made and not shown.
fn files(uid: u32, gid: u32) -> Vec<(String, String)> {
    vec![
        ("/etc/passwd".to_owned(), format!("{USER}:x:{uid}:{gid}::{HOME_INSIDE}:/bin/sh\n")),
        ("/etc/group".to_owned(), format!("{USER}:x:{gid}:\n")),
        ("/etc/hosts".to_owned(), "127.0.0.1 localhost\n::1 localhost\n".to_owned()),
    ]
}

fn ids() -> (u32, u32) {
    let inside = |id: u32| if id == 0 { ID_INSIDE } else { id };
    (inside(rustix::process::geteuid().as_raw()), inside(rustix::process::getegid().as_raw()))
}

fn make_folders(folders: &[&PathBuf]) -> Result<(), JailError> {
    for folder in folders {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| JailError::Io { act: "make the folders of its commands", source })?;
    }
    Ok(())
}

/// Demands an absolute path without `..` and returns it without what means nothing.
fn normal(path: &Path) -> Result<PathBuf, JailError> {
    let mut parts = path.components();
    let rooted = parts.next() == Some(Component::RootDir);
    if rooted && parts.all(|part| matches!(part, Component::Normal(_))) {
        return Ok(path.components().collect());
    }
    Err(JailError::Setting(format!("`{}` is no absolute path without `..`", path.display())))
}

fn canonical(path: &Path) -> Result<PathBuf, JailError> {
    fs::canonicalize(path).map_err(|error| JailError::Setting(format!("`{}`: {error}", path.display())))
}

/// The policy is JSON, and so is every path in it.
pub(super) fn text(path: &Path) -> Result<String, JailError> {
    let text = path.to_str().filter(|text| !text.contains('\0'));
    text.map(str::to_owned).ok_or_else(|| {
        JailError::Setting(format!("`{}` is no UTF-8, expected a path that is", crate::tree::shown(path)))
    })
}
