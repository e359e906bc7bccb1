//! `/etc` of a jail: an allow-list, because the whole folder contains secrets.
#![forbid(unsafe_code)]

use crate::fault::At;
use crate::root::{BindKind, Root, below_root, bind_at};
use glovebox_jail_helper::policy::{Bind, Network};
use glovebox_jail_helper::wire::Failure;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, readlinkat, symlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Files of the host's `/etc` that programs need and every user may read. The folders `ssl` and `tls` are never
/// included completely, because they also contain keys.
pub(crate) const ETC: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "chromium",
    "chromium.d",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "host.conf",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "profile",
    "protocols",
    "services",
    "shells",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];
/// The list of name services, which the policy provides unless commands have the whole network. It can be a link on the host.
const NAME_SERVICES: &str = "nsswitch.conf";
/// Files that the policy provides. In a tier without a separate root, commands read those of the host.
pub(crate) const ETC_OWN: &[&str] = &["group", "hosts", "passwd"];

/// Maximum size of a file that is copied instead of mounted, bytes. Copying a small file is cheaper than a mount.
const COPIED_BYTES_MAX: u64 = 64 << 10;
const FOR_OTHERS: u32 = 0o004;

/// Fills `/etc` of the new root.
pub(crate) fn fill(root: &Root, network: Network) -> Result<(), Failure> {
    root.folder(Path::new("/etc"))?;
    let is_shown = |name: &&str| network == Network::Full || *name != NAME_SERVICES;
    let resolver = (network == Network::Full).then_some("resolv.conf");
    let names = ETC.iter().copied().filter(is_shown).chain(resolver);
    names.into_iter().try_for_each(|name| copy_or_bind(root, &Path::new("/etc").join(name)))
}

/// Copies or binds one entry, if it exists and every user may read it.
fn copy_or_bind(root: &Root, path: &Path) -> Result<(), Failure> {
    let step = || format!("copy or bind {}", path.display());
    let opened = match openat(
        CWD,
        path,
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Ok(opened) => opened,
        Err(Errno::LOOP) => return link(root, path),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => return Ok(()),
        Err(error) => return Err(error).at(step()),
    };
    let status = fstat(&opened).at(step())?;
    if status.st_mode & FOR_OTHERS == 0 {
        return Ok(());
    }
    let kind = FileType::from_raw_mode(status.st_mode);
    if kind == FileType::RegularFile && status.st_size as u64 <= COPIED_BYTES_MAX {
        let mut content = Vec::with_capacity(status.st_size as usize);
        File::from(opened).take(COPIED_BYTES_MAX).read_to_end(&mut content).at(step())?;
        return root.file(path, &content);
    }
    if !matches!(kind, FileType::RegularFile | FileType::Directory) {
        return Ok(());
    }
    // On some systems, a parent folder is a symbolic link. The path is then left out.
    let bind = Bind { optional: true, ..Bind::read_only(path.to_owned(), path.to_owned()) };
    bind_at(root, &bind, BindKind::Files)
}

/// Creates the same symbolic link as on the host. The target is visible or does not exist. `resolv.conf` is often a
/// link into `/run`, so its content is copied instead.
#[expect(clippy::disallowed_methods, reason = "a system file, never a file of a project")]
fn link(root: &Root, path: &Path) -> Result<(), Failure> {
    if path.ends_with("resolv.conf") {
        return match std::fs::read(path) {
            Ok(content) => root.file(path, &content),
            Err(_) => Ok(()),
        };
    }
    let step = || format!("link {}", path.display());
    let to = readlinkat(CWD, path, Vec::new()).at(step())?;
    root.folder(path.parent().unwrap_or(Path::new("/")))?;
    symlinkat(to.as_c_str(), root, below_root(path)).at(step())
}
