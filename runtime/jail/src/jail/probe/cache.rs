//! The cached probe result for this machine, in a file of this user.
//!
//! The result is valid for one boot, kernel, user, helper, control group and user namespace, and for the same rights
//! and namespace limits. A cache file that another user owns or can read, a symbolic link, a file of another version,
//! or an impossible result is treated as absent, and the probe runs again.

use super::super::binary;
use super::{ProbeReport, evaluate, witness};
use glovebox_record::Tier;
use glovebox_workspace::regular_file;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const VERSION: u32 = 3;
/// Maximum size of a cache file, bytes. A report has about forty checks of a hundred bytes.
const BYTES_MAX: u64 = 256 << 10;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CachedResult<R> {
    version: u32,
    machine: MachineKey,
    report: R,
}

/// The conditions under which a result is valid.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineKey {
    boot: String,
    helper: String,
    user: u32,
    kernel: String,
    /// The parent of the control groups, because it decides which limits are exact.
    groups: String,
    /// The user namespace, because a process has other rights in another user namespace.
    namespace: String,
    /// Kernel settings that restrict this user's namespaces. The value of a setting that the kernel does not have is
    /// empty.
    switches: [String; 3],
    /// Capabilities and filters of this process.
    rights: Vec<String>,
}

/// Kernel settings that can forbid creating user namespaces, or remove the rights in them.
const SWITCHES: [&str; 3] = [
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
];
/// The lines of `/proc/self/status` with the rights that a jail inherits.
const RIGHTS: [&str; 4] = ["CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"];

impl MachineKey {
    fn this() -> io::Result<Self> {
        let read = |path: &str| regular_file::kernel_text(path).map(|text| text.trim().to_owned());
        Ok(Self {
            boot: read("/proc/sys/kernel/random/boot_id")?,
            helper: binary::digest().to_owned(),
            user: rustix::process::geteuid().as_raw(),
            kernel: read("/proc/sys/kernel/osrelease")?,
            groups: read("/proc/self/cgroup")?,
            namespace: fs::read_link("/proc/self/ns/user").unwrap_or_default().to_string_lossy().into_owned(),
            switches: SWITCHES.map(|path| read(path).unwrap_or_default()),
            rights: rights(&read("/proc/self/status")?),
        })
    }
}

fn rights(status: &str) -> Vec<String> {
    let is_right = |line: &&str| RIGHTS.iter().any(|name| line.starts_with(name));
    status.lines().filter(is_right).map(str::to_owned).collect()
}

/// Returns the cached result, if it is valid for this machine.
pub(super) fn read(path: &Path) -> Option<ProbeReport> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let meta = file.metadata().ok()?;
    let own = meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0;
    if !own || meta.len() > BYTES_MAX {
        return None;
    }
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    let kept: CachedResult<ProbeReport> = serde_json::from_str(&text).ok()?;
    let sound = kept.version == VERSION
        && kept.machine == MachineKey::this().ok()?
        && kept.report.tier == Some(Tier::Full)
        && evaluate(&kept.report.checks).is_ok();
    sound.then_some(kept.report)
}

/// Writes a result. The rename is atomic: a concurrent reader sees the old file or the new one.
pub(super) fn write(path: &Path, report: &ProbeReport) -> io::Result<()> {
    let kept = CachedResult { version: VERSION, machine: MachineKey::this()?, report };
    let fresh = path.with_extension(format!("{}.new", witness::draw()?));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(&fresh, flags, Mode::RUSR | Mode::WUSR)?);
    let written = serde_json::to_vec_pretty(&kept).map_err(io::Error::other).and_then(|json| file.write_all(&json));
    written.and_then(|()| fs::rename(&fresh, path)).inspect_err(|_| {
        let _ = fs::remove_file(&fresh);
    })
}

#[cfg(test)]
mod tests {
    use super::super::SelfTestCheck;
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn found() -> ProbeReport {
        let check =
            |must_work| SelfTestCheck { name: "a".to_owned(), must_work, worked: must_work, answer: String::new() };
        ProbeReport {
            tier: Some(Tier::Full),
            landlock_abi: 6,
            degradations: Vec::new(),
            missing: Vec::new(),
            checks: vec![check(true), check(false)],
        }
    }

    #[test]
    fn only_a_file_that_a_probe_wrote_here_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("probe.json");
        assert_eq!(read(&path), None);
        write(&path, &found()).unwrap();
        assert_eq!(read(&path), Some(found()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing beside it is left");
        let text = fs::read_to_string(&path).unwrap();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let namespace = fs::read_link("/proc/self/ns/user").unwrap().into_os_string().into_string().unwrap();
        let most = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap();
        let forged = [
            text.replace(boot.trim(), "another"),
            text.replace("\"version\": 3", "\"version\": 4"),
            text.replace(binary::digest(), &"0".repeat(64)),
            text.replace("\"groups\": \"", "\"groups\": \"0::/elsewhere\\n"),
            text.replace(&namespace, "user:[1]"),
            text.replace(&format!("\"{}\"", most.trim()), "\"0\""),
            text.replace("\"CapBnd:", "\"CapBnd:\\t0"),
            text.replace("\"worked\": true", "\"worked\": false"),
            text.replace("\"landlock_abi\": 6", "\"landlock_abi\": 6, \"more\": 1"),
            text.replace("\"full\"", "\"landlock\""),
            text[..text.len() / 2].to_owned(),
        ];
        for (number, forgery) in forged.iter().enumerate() {
            assert_ne!(forgery, &text, "forgery {number} changes something");
            fs::write(&path, forgery).unwrap();
            assert_eq!(read(&path), None, "forgery {number}");
        }
        fs::write(&path, &text).unwrap();
        assert!(read(&path).is_some());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read(&path), None, "others could read it, and so it was not ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(&path, dir.path().join("real")).unwrap();
        symlink("real", &path).unwrap();
        assert_eq!(read(&path), None, "a link");
    }
}
