//! What this machine can enforce: the tier, what is missing for a better one, and what else a run needs.
//!
//! The sandbox finds the tier by building it, see [`glovebox_jail::jail::probe`]; the rest explains the result. Nothing
//! here changes the machine.

use crate::exit::Exit;
use crate::terminal::rows::Rows;
use crate::terminal::{self, visible};
use glovebox_jail::jail::ProbeReport;
use glovebox_plan::prepare::project::Project;
use glovebox_plan::prepare::toolchain;
use glovebox_record::Tier;
use glovebox_workspace::regular_file;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// Version of [`MachineReport`].
pub const DOCTOR_VERSION: u32 = 1;

/// The document that `glovebox doctor --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "doctor.json")]
pub struct MachineReport {
    /// Version of this document.
    pub version: u32,
    /// The best tier that passed its self-test; null if this machine cannot confine commands.
    pub tier: Option<String>,
    /// The lowest tier that `glovebox.toml` accepts.
    pub required: String,
    /// Whether the machine has the required tier or a better one.
    pub is_met: bool,
    /// Version of the Landlock ABI that the tier enforces; 0 if it enforces none.
    pub landlock_abi: u32,
    /// Degradations of the tier, such as `memory=soft`.
    pub degradations: Vec<String>,
    /// The tiers that this machine does not have, best first.
    pub missing: Vec<MissingTier>,
    /// The checks of the tier's self-test.
    pub self_test: Vec<SelfTestCheck>,
    /// The network access that the tier can give to commands.
    pub network: Vec<String>,
    /// Other properties of the machine.
    pub checks: Vec<Check>,
}

/// A tier that this machine does not have.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MissingTier {
    /// The tier.
    pub tier: String,
    /// The step that failed, and the error of the operating system.
    pub reason: String,
    /// Lines to paste, or a description of what to change.
    pub remedy: String,
}

/// One check of the self-test.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SelfTestCheck {
    /// Name of the tested operation.
    pub name: String,
    /// True if the operation must work; false if it must fail.
    pub must_work: bool,
    /// Result of the operation, as the operating system reported it.
    pub answer: String,
}

/// One property of the machine.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    /// Name of the property, such as `kernel`.
    pub name: String,
    /// What the machine has.
    pub found: String,
    /// False if the property limits what Glovebox can do.
    pub is_good: bool,
    /// How to change the property; null if nothing needs to change.
    pub remedy: Option<String>,
}

impl MachineReport {
    /// Combines the result of the probe with the project's requirement and with other properties of the machine.
    pub fn new(capability: ProbeReport, project: &Project, cache: Option<&Path>) -> Self {
        let required = project.config.sandbox.require.as_str();
        let least = Tier::parse(required);
        Self {
            version: DOCTOR_VERSION,
            tier: capability.tier.map(|tier| tier.as_str().to_owned()),
            required: required.to_owned(),
            is_met: capability.tier.is_some() && capability.tier >= least,
            landlock_abi: capability.landlock_abi,
            network: network(capability.tier),
            checks: checks(project, &capability, cache),
            degradations: capability.degradations,
            missing: capability.missing.into_iter().map(missing).collect(),
            self_test: capability.checks.into_iter().map(self_test_check).collect(),
        }
    }

    /// Returns success if the machine meets the project's requirement.
    pub fn exit(&self) -> Exit {
        if self.is_met { Exit::Ok } else { Exit::Policy }
    }

    /// Renders the report as text.
    pub fn render(&self) -> String {
        let mut rows = Rows::new(16);
        rows.row("tier", self.tier.as_deref().unwrap_or("none: this machine cannot confine commands"));
        rows.row("required", format_args!("{} ({})", self.required, if self.is_met { "met" } else { "NOT met" }));
        rows.row("landlock", format_args!("ABI {}", self.landlock_abi));
        let weaker = self.degradations.join(", ");
        rows.row("weaker", if weaker.is_empty() { "no protection is missing" } else { &weaker });
        rows.row("network", self.network.join(", "));
        rows.row("self-test", format_args!("all {} checks passed", self.self_test.len()));
        for check in &self.checks {
            rows.row(&check.name, format_args!("{}{}", check.found, if check.is_good { "" } else { " (!)" }));
            rows.indented(check.remedy.as_deref().unwrap_or_default());
        }
        let mut text = rows.finish();
        for missing in &self.missing {
            let mut remedy = Rows::new(0);
            remedy.indented(&missing.remedy);
            let reason = visible::block(&missing.reason);
            text.push_str(&format!("\nno tier {}: {reason}\n{}", missing.tier, remedy.finish()));
        }
        if !self.is_met {
            text.push_str(
                "\nGlovebox refuses runs with commands on this machine; to allow a lower tier, set `require` under \
                           `[sandbox]` in glovebox.toml\n",
            );
        }
        text
    }
}

fn missing(missing: glovebox_jail::jail::MissingTier) -> MissingTier {
    MissingTier { tier: missing.tier.as_str().to_owned(), reason: missing.reason, remedy: missing.remedy }
}

fn self_test_check(check: glovebox_jail::jail::SelfTestCheck) -> SelfTestCheck {
    SelfTestCheck { name: check.name, must_work: check.must_work, answer: check.answer }
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
    let has_exact_memory = !capability.degradations.iter().any(|known| known.starts_with("memory="));
    let kernel = first_line(Path::new("/proc/sys/kernel/osrelease"));
    vec![
        Property::Kernel.good(kernel.unwrap_or_else(|| std::env::consts::OS.to_owned())),
        user(),
        user_namespaces(tier),
        overlay(),
        seccomp(),
        control_groups(tier.is_some() && has_exact_memory),
        git(),
        toolchains(project, tier),
        component_cache(cache),
    ]
}

/// A property of the machine that limits what Glovebox can do.
#[derive(Debug, Clone, Copy)]
enum Property {
    Kernel,
    User,
    UserNamespaces,
    Overlay,
    Seccomp,
    ControlGroups,
    Git,
    Toolchains,
    ComponentCache,
}

impl Property {
    fn as_str(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::User => "user",
            Self::UserNamespaces => "user namespaces",
            Self::Overlay => "overlay",
            Self::Seccomp => "seccomp",
            Self::ControlGroups => "control groups",
            Self::Git => "git",
            Self::Toolchains => "toolchains",
            Self::ComponentCache => "component cache",
        }
    }

    fn good(self, found: impl Into<String>) -> Check {
        Check { name: self.as_str().to_owned(), found: found.into(), is_good: true, remedy: None }
    }

    fn poor(self, found: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { name: self.as_str().to_owned(), found: found.into(), is_good: false, remedy: Some(remedy.into()) }
    }
}

fn first_line(file: &Path) -> Option<String> {
    Some(regular_file::kernel_text(file).ok()?.lines().next()?.trim().to_owned())
}

fn user() -> Check {
    Property::User.good(match rustix::process::geteuid().as_raw() {
        0 => "root: commands have root's user id, but none of its privileges".to_owned(),
        id => format!("ordinary user {id}"),
    })
}

/// Checks the sysctls that disable user namespaces. The tier shows whether user namespaces can be used.
fn user_namespaces(tier: Option<Tier>) -> Check {
    if tier == Some(Tier::Full) {
        // The sysctls do not restrict root, or a program with an AppArmor profile for it.
        return Property::UserNamespaces.good("available");
    }
    let switches = [
        (
            "/proc/sys/user/max_user_namespaces",
            "0",
            "user.max_user_namespaces",
            "sudo sysctl -w user.max_user_namespaces=15000",
        ),
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "0",
            "kernel.unprivileged_userns_clone",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns",
            "give glovebox an AppArmor profile that allows `userns`",
        ),
    ];
    for (file, closed, name, remedy) in switches {
        if first_line(Path::new(file)).is_some_and(|value| value == closed) {
            return Property::UserNamespaces.poor(format!("disabled: {name} = {closed}"), remedy);
        }
    }
    Property::UserNamespaces.good("not disabled")
}

fn overlay() -> Check {
    let text = regular_file::kernel_text("/proc/filesystems").unwrap_or_default();
    match text.lines().any(|line| line.trim_start_matches("nodev").trim() == "overlay") {
        true => Property::Overlay.good("available"),
        false => Property::Overlay
            .poor("not in the kernel: Glovebox copies the workspace instead, which is slower", "sudo modprobe overlay"),
    }
}

fn seccomp() -> Check {
    match first_line(Path::new("/proc/sys/kernel/seccomp/actions_avail")) {
        Some(actions) => Property::Seccomp.good(actions),
        None => Property::Seccomp.poor("not in the kernel", "use a kernel with CONFIG_SECCOMP_FILTER"),
    }
}

fn control_groups(has_exact_memory: bool) -> Check {
    let version = if Path::new("/sys/fs/cgroup/cgroup.controllers").is_file() {
        "version 2"
    } else if Path::new("/sys/fs/cgroup/memory").is_dir() {
        "version 1"
    } else {
        return Property::ControlGroups.good("none: Glovebox polls memory and processes instead");
    };
    if has_exact_memory {
        return Property::ControlGroups.good(version);
    }
    let found = format!("{version}, but Glovebox cannot make a group: it polls memory and processes instead");
    let remedy = match (version, rustix::process::geteuid().is_root()) {
        ("version 2", false) => "systemd-run --user --scope -p Delegate=yes glovebox run FILE",
        ("version 2", true) => "systemd-run --scope glovebox run FILE",
        _ => "run Glovebox as root, or on a machine with control groups of version 2",
    };
    Property::ControlGroups.poor(found, remedy)
}

fn git() -> Check {
    let folders = ["/usr/local/bin", "/usr/bin", "/bin"];
    match folders.iter().map(|folder| Path::new(folder).join("git")).find(|path| path.is_file()) {
        Some(path) => Property::Git.good(path.display().to_string()),
        None => Property::Git.poor(
            "not in /usr/local/bin, /usr/bin or /bin: commands cannot find it",
            "install git, or add its folder to `path` under `[exec]` in glovebox.toml",
        ),
    }
}

fn toolchains(project: &Project, tier: Option<Tier>) -> Check {
    match toolchain::exec_policy(&project.config.exec, tier, &project.config.sandbox) {
        Ok(policy) => {
            let named = terminal::counted(project.config.exec.toolchains.len(), "toolchain");
            Property::Toolchains.good(format!("{named} in glovebox.toml, {} folders in PATH", policy.path.len()))
        }
        Err(stop) => Property::Toolchains.poor(stop.message, stop.help.unwrap_or_default()),
    }
}

/// Checks whether Glovebox can keep compiled components.
fn component_cache(cache: Option<&Path>) -> Check {
    let Some(folder) = cache else {
        return Property::ComponentCache.poor(
            "no folder: each command compiles its components again",
            "set HOME, or GLOVEBOX_CACHE_DIR to a folder of your own",
        );
    };
    let existing = folder.ancestors().find(|folder| folder.is_dir());
    let writable = existing.is_some_and(|folder| rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok());
    match writable {
        true => Property::ComponentCache.good(folder.display().to_string()),
        false => {
            let found = format!("{} is not writable: each command compiles its components again", folder.display());
            Property::ComponentCache.poor(found, "set GLOVEBOX_CACHE_DIR to a folder of your own")
        }
    }
}
