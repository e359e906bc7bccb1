//! What to do about a tier this machine does not have, as lines to paste.
//!
//! Reads the settings that are known to stand in the way; where none does, it says so and guesses nothing.

use super::super::Tier;
use std::fs;
use std::path::Path;

/// Where `bwrap` is looked for; never in a PATH, never in a workspace.
pub(in super::super) const BWRAP: &str = "/usr/bin/bwrap";

/// Returns the remedies for what stands in the way of a tier.
pub(super) fn of(tier: Tier, reason: &str) -> String {
    let mut lines = Vec::new();
    if tier.has_own_root() {
        lines.extend(namespaces());
    }
    if tier == Tier::Bwrap && !Path::new(BWRAP).exists() {
        lines.push("sudo apt install bubblewrap".to_owned());
    }
    lines.extend(landlock());
    lines.extend(container());
    if lines.is_empty() {
        lines.push(format!("no known setting stands in the way; it ended at: {reason}"));
    }
    lines.join("\n")
}

fn namespaces() -> Vec<String> {
    let mut lines = Vec::new();
    let setting = |name: &str| fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/")));
    let has = |name: &str, value: &str| setting(name).is_ok_and(|found| found.trim() == value);
    if has("kernel.unprivileged_userns_clone", "0") {
        lines.push("sudo sysctl -w kernel.unprivileged_userns_clone=1".to_owned());
    }
    if has("user.max_user_namespaces", "0") {
        lines.push("sudo sysctl -w user.max_user_namespaces=15000".to_owned());
    }
    if has("kernel.apparmor_restrict_unprivileged_userns", "1") {
        lines.push(apparmor());
    }
    if has("vm.memfd_noexec", "2") {
        lines.push("sudo sysctl -w vm.memfd_noexec=1".to_owned());
    }
    lines
}

/// A profile that gives this program and what it starts back what an ordinary program has, user namespaces included.
fn apparmor() -> String {
    let program = std::env::current_exe().map_or("/usr/bin/glovebox".to_owned(), |path| path.display().to_string());
    format!(
        "sudo tee /etc/apparmor.d/glovebox <<'END' && sudo apparmor_parser -r /etc/apparmor.d/glovebox\n\
         abi <abi/4.0>,\n\
         include <tunables/global>\n\
         profile glovebox \"{program}\" flags=(unconfined) {{\n  userns,\n}}\n\
         END\n\
         or, for every program: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    )
}

fn landlock() -> Option<String> {
    let active = fs::read_to_string("/sys/kernel/security/lsm").ok()?;
    let active = active.trim();
    if active.is_empty() || active.split(',').any(|name| name == "landlock") {
        return None;
    }
    Some(format!("boot the kernel with `lsm=landlock,{active}`: Landlock is not switched on"))
}

fn container() -> Option<String> {
    let marked = ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists());
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let filtered = status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]));
    (marked || filtered).then(|| {
        "start the container with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined`"
            .to_owned()
    })
}
