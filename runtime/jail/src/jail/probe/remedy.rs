//! Remedies for a tier that this machine does not support, as lines to paste.
//!
//! This module reads the settings that are known to prevent a tier. If none of them is the cause, the remedy contains
//! only the failed step.

use super::super::bwrap::BWRAP;
use super::ProbeFailure;
use glovebox_record::Tier;
use glovebox_workspace::regular_file;
use std::path::{Path, PathBuf};

/// The setting with which AppArmor removes all rights in a new user namespace.
const APPARMOR: &str = "kernel.apparmor_restrict_unprivileged_userns";

/// Returns the remedies for the cause that prevents a tier.
pub(super) fn remedy_for(tier: Tier, failure: &ProbeFailure) -> String {
    let program = std::env::current_exe().map_or("/usr/bin/glovebox".to_owned(), |path| path.display().to_string());
    MachineFacts { root: PathBuf::from("/"), program }.remedies(tier, failure)
}

/// Facts about the machine that decide the remedy.
struct MachineFacts {
    /// The root folder that contains `/proc`, `/sys` and programs.
    root: PathBuf,
    /// Path of the `glovebox` binary.
    program: String,
}

impl MachineFacts {
    fn remedies(&self, tier: Tier, failure: &ProbeFailure) -> String {
        let mut lines = Vec::new();
        if tier.has_own_root() {
            lines.extend(self.namespaces(failure));
        }
        if tier == Tier::Bwrap && !self.has(Path::new(BWRAP)) {
            lines.push("sudo apt install bubblewrap".to_owned());
        }
        lines.extend(self.landlock());
        lines.extend(self.container());
        if lines.is_empty() {
            lines.push(format!("the cause is not a known setting; the failed step: {}", failure.0));
        }
        lines.join("\n")
    }

    fn path(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn has(&self, path: &Path) -> bool {
        self.path(path).exists()
    }

    fn namespaces(&self, failure: &ProbeFailure) -> Vec<String> {
        let mut lines = Vec::new();
        let setting =
            |name: &str| regular_file::kernel_text(self.path(Path::new("/proc/sys")).join(name.replace('.', "/")));
        let is_set = |name: &str, value: &str| setting(name).is_ok_and(|found| found.trim() == value);
        if is_set("kernel.unprivileged_userns_clone", "0") {
            lines.push("sudo sysctl -w kernel.unprivileged_userns_clone=1".to_owned());
        }
        if is_set("user.max_user_namespaces", "0") {
            lines.push("sudo sysctl -w user.max_user_namespaces=15000".to_owned());
        }
        if is_set(APPARMOR, "1") && failure.is_denial() {
            lines.push(self.apparmor());
        }
        if is_set("vm.memfd_noexec", "2") {
            lines.push("sudo sysctl -w vm.memfd_noexec=1".to_owned());
        }
        lines
    }

    /// Returns an AppArmor profile that allows Glovebox and its children everything that an ordinary program may
    /// do, including user namespaces. Because the profile is `unconfined`, children inherit it: the helper in memory,
    /// and a `bwrap` without its own profile.
    fn apparmor(&self) -> String {
        let program = &self.program;
        format!(
            "AppArmor takes all capabilities in a new user namespace from programs without a profile ({APPARMOR} is 1). \
             To add a profile for this program alone:\n\
             sudo tee /etc/apparmor.d/glovebox <<'END' && sudo apparmor_parser -r /etc/apparmor.d/glovebox\n\
             abi <abi/4.0>,\n\
             include <tunables/global>\n\
             profile glovebox \"{program}\" flags=(unconfined) {{\n  userns,\n}}\n\
             END\n\
             or, for every program: sudo sysctl -w {APPARMOR}=0"
        )
    }

    fn landlock(&self) -> Option<String> {
        let active = regular_file::kernel_text(self.path(Path::new("/sys/kernel/security/lsm"))).ok()?;
        let active = active.trim();
        if active.is_empty() || active.split(',').any(|name| name == "landlock") {
            return None;
        }
        Some(format!("Landlock is disabled. Boot the kernel with `lsm=landlock,{active}`"))
    }

    fn container(&self) -> Option<String> {
        let marked = ["/.dockerenv", "/run/.containerenv"].iter().any(|path| self.has(Path::new(path)));
        let status = regular_file::kernel_text(self.path(Path::new("/proc/self/status"))).unwrap_or_default();
        let filtered = status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]));
        (marked || filtered).then(|| {
            "start the container with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined`"
                .to_owned()
        })
    }
}

impl ProbeFailure {
    /// Returns true if the system denied a step, as AppArmor does: `unshare` if no profile covers the namespace,
    /// otherwise the first step that needs a capability (`setgroups`, an id map, a mount, an address of the loopback).
    fn is_denial(&self) -> bool {
        ["Permission denied", "not permitted", "No permissions"].iter().any(|answer| self.0.contains(answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io;
    use tempfile::TempDir;

    const EPERM: i32 = 1;
    const EACCES: i32 = 13;
    const EINVAL: i32 = 22;

    /// Returns a machine with these files.
    fn machine(files: &[(&str, &str)]) -> (TempDir, MachineFacts) {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let machine = MachineFacts { root: folder.path().to_owned(), program: "/opt/bin/glovebox".to_owned() };
        (folder, machine)
    }

    /// Returns the failure of a jail at this step.
    fn failure(step: &str, errno: i32) -> ProbeFailure {
        let text = io::Error::from_raw_os_error(errno).to_string();
        let step = step.to_owned();
        ProbeFailure(super::super::super::JailError::Build { tier: Tier::Full, step, text }.to_string())
    }

    #[test]
    fn what_apparmor_denies_is_answered_with_a_profile_for_this_program() {
        let setting = "proc/sys/kernel/apparmor_restrict_unprivileged_userns";
        let (_folder, ubuntu) = machine(&[(setting, "1\n"), ("usr/bin/bwrap", "")]);
        let said = |line: &str| ProbeFailure(format!("start /usr/bin/bwrap: `bwrap: {line}`, expected version 0.7"));
        let denied = [
            (Tier::Full, failure("unshare", EACCES)),
            (Tier::Full, failure("setgroups", EACCES)),
            (Tier::Full, failure("write uid_map", EPERM)),
            (Tier::Full, failure("make mounts private", EACCES)),
            (Tier::Bwrap, said("setting up uid map: Permission denied")),
            (Tier::Bwrap, said("loopback: Failed RTM_NEWADDR: Operation not permitted")),
        ];
        for (tier, failure) in denied {
            let remedy = ubuntu.remedies(tier, &failure);
            for line in ["AppArmor takes all capabilities", "profile glovebox \"/opt/bin/glovebox\"", "  userns,\n"] {
                assert!(remedy.contains(line), "{failure:?}: {remedy}");
            }
        }
        let by_itself = ProbeFailure("self-test: `a` did not work: `ENOENT`".to_owned());
        for failure in [failure("mount overlay", EINVAL), by_itself] {
            let remedy = ubuntu.remedies(Tier::Full, &failure);
            assert!(remedy.starts_with("the cause is not a known setting"), "{failure:?}: {remedy}");
        }
        let denied = failure("setgroups", EACCES);
        assert!(!ubuntu.remedies(Tier::Landlock, &denied).contains("AppArmor"), "no namespaces, no question");
        for content in ["0\n", ""] {
            let (_folder, other) = machine(&[(setting, content)]);
            assert!(!other.remedies(Tier::Full, &denied).contains("AppArmor"), "{content:?}");
        }
    }

    #[test]
    fn each_setting_that_prevents_a_tier_has_its_line() {
        let denied = failure("unshare", EPERM);
        let cases = [
            ("proc/sys/kernel/unprivileged_userns_clone", "0\n", "kernel.unprivileged_userns_clone=1"),
            ("proc/sys/user/max_user_namespaces", "0\n", "user.max_user_namespaces=15000"),
            ("proc/sys/vm/memfd_noexec", "2\n", "vm.memfd_noexec=1"),
            ("sys/kernel/security/lsm", "lockdown,apparmor\n", "lsm=landlock,lockdown,apparmor"),
            (".dockerenv", "", "--security-opt seccomp=unconfined"),
            ("proc/self/status", "Name:\tx\nSeccomp:\t2\n", "--security-opt seccomp=unconfined"),
        ];
        for (path, content, expected) in cases {
            let (_folder, machine) = machine(&[(path, content), ("usr/bin/bwrap", "")]);
            let remedy = machine.remedies(Tier::Bwrap, &denied);
            assert!(remedy.contains(expected) && remedy.lines().count() == 1, "{path}: {remedy}");
        }
        let (_folder, bare) = machine(&[]);
        assert_eq!(bare.remedies(Tier::Bwrap, &denied), "sudo apt install bubblewrap");
    }
}
