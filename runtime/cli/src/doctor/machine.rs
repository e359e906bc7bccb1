//! What this machine can enforce: the tier, what is missing for a better one, and what a run would need besides.
//!
//! The tier is found out by doing, see [`glovebox_sandbox::jail::probe`]; the rest explains it. Nothing here changes anything.

use crate::exit::Exit;
use crate::project::Project;
use crate::terminal::visible;
use crate::toolchain;
use glovebox_engine::plan::{Confinement, SandboxPlan};
use glovebox_record::Tier;
use glovebox_sandbox::jail::ProbeReport;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Version of [`MachineReport`].
pub const DOCTOR_VERSION: u32 = 1;

/// The answer of `glovebox doctor --json`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "doctor.json")]
pub struct MachineReport {
    /// Version of this document.
    pub version: u32,
    /// The best tier of confinement whose test passed; none when commands cannot be confined here.
    pub tier: Option<String>,
    /// The least tier that `glovebox.toml` accepts.
    pub required: String,
    /// Whether it can be met.
    pub is_met: bool,
    /// Landlock's ABI that is enforced; 0 where none is.
    pub landlock_abi: u32,
    /// What is weaker than the tier promises, such as `memory=soft`.
    pub degradations: Vec<String>,
    /// Why there is no better tier, best first.
    pub missing: Vec<MissingTier>,
    /// What the self-test tried in the tier.
    pub self_test: Vec<SelfTestCheck>,
    /// What commands can be given of the network in the tier.
    pub network: Vec<String>,
    /// What else was looked at.
    pub checks: Vec<Check>,
}

/// A tier this machine does not have.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MissingTier {
    /// The tier.
    pub tier: String,
    /// At which step it ended and what the system answered.
    pub reason: String,
    /// Lines to paste, or what to change.
    pub remedy: String,
}

/// One act of the self-test.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SelfTestCheck {
    /// What was tried.
    pub name: String,
    /// Whether it has to work, or to fail.
    pub must_work: bool,
    /// What the system answered.
    pub answer: String,
}

/// One thing that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    /// What, such as `kernel`.
    pub name: String,
    /// What was found.
    pub found: String,
    /// Whether it is as it should be.
    pub is_good: bool,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl MachineReport {
    /// Puts together what was found out.
    pub fn new(capability: &ProbeReport, project: &Project, cache: Option<&Path>) -> Self {
        let required = project.config.sandbox.require.as_str();
        let least = Tier::parse(required);
        Self {
            version: DOCTOR_VERSION,
            tier: capability.tier.map(|tier| tier.as_str().to_owned()),
            required: required.to_owned(),
            is_met: capability.tier.is_some() && capability.tier >= least,
            landlock_abi: capability.landlock_abi,
            degradations: capability.degradations.clone(),
            missing: capability.missing.iter().map(missing).collect(),
            self_test: capability.checks.iter().map(self_test_check).collect(),
            network: network(capability.tier),
            checks: checks(project, capability, cache),
        }
    }

    /// Success when the project's requirement is met.
    pub fn exit(&self) -> Exit {
        if self.is_met { Exit::Ok } else { Exit::Policy }
    }

    /// The same for people.
    pub fn render(&self) -> String {
        let tier = self.tier.as_deref().unwrap_or("none: commands cannot be confined on this machine");
        let met = if self.is_met { "met" } else { "NOT met" };
        let mut text = line("tier", tier) + &line("required", &format!("{} ({met})", self.required));
        text.push_str(&line("landlock", &format!("ABI {}", self.landlock_abi)));
        let weaker = if self.degradations.is_empty() { "nothing".to_owned() } else { self.degradations.join(", ") };
        text.push_str(&line("weaker", &weaker));
        text.push_str(&line("network", &self.network.join(", ")));
        text.push_str(&line("self-test", &format!("{} checks gave the expected result", self.self_test.len())));
        for check in &self.checks {
            let mark = if check.is_good { "" } else { " (!)" };
            text.push_str(&line(&check.name, &format!("{}{mark}", check.found)));
            text.push_str(&remedy(check.remedy.as_deref().unwrap_or("")));
        }
        for missing in &self.missing {
            text.push_str(&format!("\nno tier {}: {}\n", missing.tier, visible::block(&missing.reason)));
            text.push_str(&remedy(&missing.remedy));
        }
        if !self.is_met {
            let lower = "`[sandbox] require` in glovebox.toml names the least tier a run accepts";
            text.push_str(&format!("\nruns with commands are refused here: {lower}\n"));
        }
        text
    }
}

fn line(name: &str, found: &str) -> String {
    format!("{name:<16} {}\n", visible::line(found))
}

fn remedy(text: &str) -> String {
    text.lines().map(|line| format!("  {}\n", visible::line(line))).collect()
}

fn missing(missing: &glovebox_sandbox::jail::Missing) -> MissingTier {
    let (tier, reason, remedy) = (missing.tier.as_str().to_owned(), missing.reason.clone(), missing.remedy.clone());
    MissingTier { tier, reason, remedy }
}

fn self_test_check(check: &glovebox_sandbox::jail::SelfTestCheck) -> SelfTestCheck {
    SelfTestCheck { name: check.name.clone(), must_work: check.must_work, answer: check.answer.clone() }
}

fn network(tier: Option<Tier>) -> Vec<String> {
    let modes: &[&str] = match tier {
        Some(Tier::Full) => &["none (own loopback)", "proxy", "full"],
        Some(Tier::Bwrap) => &["none (own loopback)", "full"],
        Some(_) => &["none (no loopback)", "full"],
        None => &[],
    };
    modes.iter().map(|mode| (*mode).to_owned()).collect()
}

fn checks(project: &Project, capability: &ProbeReport, cache: Option<&Path>) -> Vec<Check> {
    let tier = capability.tier;
    let is_held = !capability.degradations.iter().any(|known| known.starts_with("memory="));
    vec![
        good("kernel", first_line("/proc/sys/kernel/osrelease").unwrap_or_else(|| std::env::consts::OS.to_owned())),
        good("user", who()),
        user_namespaces(tier),
        file_systems(),
        seccomp(),
        control_groups(tier.is_some() && is_held),
        program("git", "commands that use git will not find it"),
        toolchains(project, tier),
        compiled(cache),
    ]
}

fn good(name: &str, found: String) -> Check {
    Check { name: name.to_owned(), found, is_good: true, remedy: None }
}

fn poor(name: &str, found: String, remedy: &str) -> Check {
    Check { name: name.to_owned(), found, is_good: false, remedy: Some(remedy.to_owned()) }
}

fn first_line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned())
}

fn who() -> String {
    match rustix::process::geteuid().as_raw() {
        0 => "root: commands run as root's id without any of root's rights".to_owned(),
        id => format!("ordinary user {id}"),
    }
}

/// What the kernel's switches say; whether it is true, the tier says.
fn user_namespaces(tier: Option<Tier>) -> Check {
    if tier == Some(Tier::Full) {
        // Whatever is closed is so to others: root may, and a program with a profile.
        return good("user namespaces", "may be used".to_owned());
    }
    let switches = [
        (
            "/proc/sys/user/max_user_namespaces",
            "0",
            "user.max_user_namespaces",
            "sysctl -w user.max_user_namespaces=15000",
        ),
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "0",
            "kernel.unprivileged_userns_clone",
            "sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns",
            "give glovebox an AppArmor profile that allows `userns`",
        ),
    ];
    for (path, closed, name, remedy) in switches {
        if first_line(path).is_some_and(|value| value == closed) {
            return poor("user namespaces", format!("closed: {name} = {closed}"), remedy);
        }
    }
    good("user namespaces", "not switched off".to_owned())
}

fn file_systems() -> Check {
    let text = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    match text.lines().any(|line| line.trim_start_matches("nodev").trim() == "overlay") {
        true => good("overlay", "known to the kernel".to_owned()),
        false => poor("overlay", "not known to the kernel".to_owned(), "modprobe overlay; else workspaces are copied"),
    }
}

fn seccomp() -> Check {
    match first_line("/proc/sys/kernel/seccomp/actions_avail") {
        Some(actions) => good("seccomp", actions),
        None => poor("seccomp", "not there".to_owned(), "a kernel with CONFIG_SECCOMP_FILTER"),
    }
}

fn control_groups(is_held: bool) -> Check {
    let version = if Path::new("/sys/fs/cgroup/cgroup.controllers").is_file() {
        "version 2"
    } else if Path::new("/sys/fs/cgroup/memory").is_dir() {
        "version 1"
    } else {
        return good("control groups", "none: memory and processes are watched instead".to_owned());
    };
    let found = format!("{version}: no group can be made here, so memory and processes are watched instead");
    match (is_held, version, rustix::process::geteuid().is_root()) {
        (true, ..) => good("control groups", version.to_owned()),
        (false, "version 2", false) => {
            poor("control groups", found, "systemd-run --user --scope -p Delegate=yes glovebox …")
        }
        (false, "version 2", true) => poor("control groups", found, "systemd-run --scope glovebox …"),
        (false, ..) => poor("control groups", found, "in version 1 only root may; else a machine with version 2"),
    }
}

fn program(name: &str, missing: &str) -> Check {
    let folders = ["/usr/local/bin", "/usr/bin", "/bin"];
    let found = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
    match found {
        Some(path) => good(name, path.display().to_string()),
        None => poor(name, "not in the fixed PATH".to_owned(), missing),
    }
}

fn toolchains(project: &Project, tier: Option<Tier>) -> Check {
    let walls = tier.map_or(Confinement::NotNeeded, Confinement::Tier);
    let sandbox = SandboxPlan { confinement: walls, setting: project.config.sandbox.clone(), degradations: Vec::new() };
    match toolchain::exec_policy(&project.config.exec, &sandbox) {
        Ok(policy) => {
            let named = project.config.exec.toolchains.len();
            good("toolchains", format!("{named} named in glovebox.toml, {} folders in PATH", policy.path.len()))
        }
        Err(stop) => poor("toolchains", stop.message, stop.help.as_deref().unwrap_or("")),
    }
}

/// Whether compiled components can be kept.
fn compiled(cache: Option<&Path>) -> Check {
    let Some(folder) = cache else {
        return poor("component cache", "no folder for it".to_owned(), "set HOME or GLOVEBOX_CACHE_DIR");
    };
    let existing: Option<PathBuf> = folder.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned);
    let writable = existing.is_some_and(|folder| rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok());
    match writable {
        true => good("component cache", folder.display().to_string()),
        false => {
            let found = format!("{} cannot be written", folder.display());
            poor("component cache", found, "set GLOVEBOX_CACHE_DIR; else every run compiles anew")
        }
    }
}
