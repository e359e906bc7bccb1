//! The workspace of a jail: an overlay or a copy, and the mounts inside it.
#![forbid(unsafe_code)]

use crate::fault::At;
use crate::root::{BindKind, Root, attach, below_root, open_source};
use glovebox_jail_helper::policy::{Bind, BindLayer, Source, Workspace};
use glovebox_jail_helper::wire::Failure;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
use rustix::io::Errno;
use rustix::mount::{self, MountFlags};
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// Maximum number of jails that are built over the same layers after the first.
const WORKS_MAX: u32 = 64;

/// Mounts the workspace, then the mounts inside it. Returns a descriptor of the workspace's root, as seen inside.
pub(crate) fn mount(root: &Root, workspace: &Workspace) -> Result<OwnedFd, Failure> {
    let at = root.folder(&workspace.at)?;
    match &workspace.source {
        Source::Overlay { lower, upper, work } => overlay(below_root(&workspace.at), lower, upper, work)?,
        Source::Directory(source) => {
            let copy = open_source(source).at(format!("open workspace {}", source.display()))?;
            attach(&copy, &at, true, BindKind::Files).at("bind workspace")?;
        }
    }
    // The folder is opened again, because `at` refers to the folder below the mount.
    let mounted =
        openat(root, below_root(&workspace.at), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .at("open workspace")?;
    for path in workspace.above_inner() {
        pin(&mounted, path)?;
    }
    for bind in &workspace.inner {
        inner(&mounted, workspace, bind)?;
    }
    openat(root, below_root(&workspace.at), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .at("open workspace")
}

/// Mounts an overlay that the kernel does not flush, because a stage's changes are stored elsewhere or dropped. Without
/// this option, the end of each overlay would flush the whole file system that contains its layers.
fn overlay(at: &Path, lower: &[PathBuf], upper: &Path, work: &Path) -> Result<(), Failure> {
    let open = |path: &Path| open_source(path).at(format!("open layer {}", path.display()));
    let lower: Vec<OwnedFd> = lower.iter().map(|path| open(path)).collect::<Result<_, _>>()?;
    let (upper, work) = (open(upper)?, open(work)?);
    match mount_layers(at, &lower, &upper, &work) {
        // The kernel mounts such an overlay only once over a work folder. When a jail is built again, it gets a new
        // work folder.
        Err(Errno::INVAL) => {
            let again = next_work(&work).at("make a work folder")?;
            mount_layers(at, &lower, &upper, &again)
        }
        answer => answer,
    }
    .at("mount overlay")
}

/// Names layers by descriptor, because a path with `:`, `,` or `\` would split the options.
fn mount_layers(at: &Path, lower: &[OwnedFd], upper: &OwnedFd, work: &OwnedFd) -> Result<(), Errno> {
    let name = |layer: &OwnedFd| format!("/proc/self/fd/{}", layer.as_raw_fd());
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr,redirect_dir=nofollow,metacopy=off,index=off,xino=off,volatile",
        lower.iter().map(name).collect::<Vec<_>>().join(":"),
        name(upper),
        name(work),
    );
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount::mount("overlay", at, "overlay", flags, options.as_c_str())
}

/// Creates the first folder of a work folder that does not exist yet. Commands cannot see these folders.
fn next_work(work: &OwnedFd) -> Result<OwnedFd, Errno> {
    for number in 1..=WORKS_MAX {
        let name = format!("again-{number}");
        match mkdirat(work, &name, Mode::RWXU) {
            Err(Errno::EXIST) => {}
            made => return made.and_then(|()| below(work, Path::new(&name))),
        }
    }
    Err(Errno::EXIST)
}

/// Mounts a path inside the workspace. Follows no symbolic link, because a stage could have created one.
fn inner(mounted: &OwnedFd, workspace: &Workspace, bind: &Bind) -> Result<(), Failure> {
    let step = || format!("mount {} inside the workspace", bind.at.display());
    let source = match open_source(&bind.source) {
        Err(Errno::NOENT) if bind.optional => return Ok(()),
        opened => opened.at(step())?,
    };
    let path = bind.at.strip_prefix(&workspace.at).ok().filter(|path| !path.as_os_str().is_empty());
    let path = path.ok_or_else(|| crate::fault::refused(step(), "it is outside the workspace"))?;
    let target = below(mounted, path).at(step())?;
    match &bind.layer {
        // The descriptor names the checked folder, whatever a link at its path leads to.
        Some(BindLayer { upper, work }) => {
            let named = format!("/proc/self/fd/{}", target.as_raw_fd());
            overlay(Path::new(&named), std::slice::from_ref(&bind.source), upper, work)?;
            if bind.writable {
                return Ok(());
            }
            let mounted = below(mounted, path).at(step())?;
            attach(&mounted, &mounted, false, BindKind::Files).at(step())
        }
        None => attach(&source, &target, bind.writable, BindKind::Files).at(step()),
    }
}

/// Mounts a folder on itself, so that no command can move the folder and the mounts below it.
fn pin(mounted: &OwnedFd, path: &Path) -> Result<(), Failure> {
    let step = || format!("pin {}", path.display());
    let folder = below(mounted, path).at(step())?;
    attach(&folder, &folder, true, BindKind::Files).at(step())
}

fn below(mounted: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(mounted, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}
