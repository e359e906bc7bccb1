//! Decides where commands find their programs: the fixed PATH, the operator's folders, and the toolchains of this machine.
//!
//! For commands, only this module reads PATH and HOME of the `glovebox` process. Commands get only what `glovebox.toml`
//! names, read-only, and from a toolchain's home only folders without secrets. The search for a toolchain runs no program.

mod configuration;
mod go;
mod java;
mod machine;
mod node;
mod python;
mod rust;
mod venv;

use super::refusal::{Class, Refusal};
use crate::config::sandbox::SandboxSetting;
use crate::config::{ExecSetting, Toolchain};
use glovebox_jail::jail::Bind;
use glovebox_jail::jail::ExecPolicy;
use glovebox_record::{Network, Tier};
use machine::Machine;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The folder of toolchain caches that are kept between the stages of one trust domain, below the HOME of commands.
const KEPT: &str = ".cache/kept";

/// What a toolchain adds to the sandbox of every command.
#[derive(Debug, Default, PartialEq, Eq)]
struct ToolchainFiles {
    /// Folders that are added to PATH.
    path: Vec<PathBuf>,
    /// Folders that are shown at the same path as on the machine.
    shown: Vec<PathBuf>,
    /// Folders of the toolchain's home that are shown below the HOME of commands: path on the machine, path below HOME.
    homed: Vec<(PathBuf, &'static str)>,
    /// Files of `/etc` that are shown at the same path as on the machine.
    configuration: Vec<PathBuf>,
    /// Folders whose compiled Python modules are kept between stages, as absolute paths.
    compiled: Vec<PathBuf>,
    /// Variables. `{home}` stands for the HOME of commands, `{kept}` for the folder of caches that are kept between the
    /// stages of one trust domain.
    env: Vec<(&'static str, String)>,
}

impl ToolchainFiles {
    /// Creates the files of a toolchain with its programs in `bin/` below this folder. The whole folder is shown.
    fn below(folder: &Path) -> Self {
        Self { path: vec![folder.join("bin")], shown: vec![folder.to_owned()], ..Self::default() }
    }
}

/// Why a toolchain cannot be used.
#[derive(Debug, PartialEq, Eq)]
struct Missing {
    why: String,
    help: String,
}

impl Missing {
    fn program(toolchain: Toolchain) -> Self {
        let help = format!("install it, or remove `{}` from `[exec] toolchains`", toolchain.as_str());
        Self { why: format!("no `{}` in PATH", program_of(toolchain)), help }
    }

    /// Returns the refusal for `[exec] venv`.
    fn in_venv(self) -> Refusal {
        Refusal::new(Class::Invalid, format!("`exec.venv` cannot be used: {}", self.why)).with_help(self.help)
    }
}

/// Returns the program with which a toolchain is found.
fn program_of(toolchain: Toolchain) -> &'static str {
    match toolchain {
        Toolchain::Rust => "cargo",
        Toolchain::Go => "go",
        Toolchain::Node => "node",
        Toolchain::Python => "python3",
        Toolchain::Java => "java",
        Toolchain::Maven => "mvn",
        Toolchain::Gradle => "gradle",
    }
}

/// Variables that keep a toolchain from looking for a network that commands do not have, also when a test starts it. Without them
/// a package manager tries for a minute before it fails.
const OFFLINE: [(Toolchain, &[(&str, &str)]); 3] = [
    (Toolchain::Rust, &[("CARGO_NET_OFFLINE", "true")]),
    (Toolchain::Node, &[("npm_config_offline", "true")]),
    (Toolchain::Python, &[("PIP_NO_INDEX", "1"), ("UV_OFFLINE", "1")]),
];

/// Variables that keep package managers of any origin from repeating a request that cannot succeed without a network.
const NO_RETRIES: [(&str, &str); 5] = [
    ("BUNDLE_RETRY", "0"),
    ("CARGO_NET_RETRY", "0"),
    ("PIP_RETRIES", "0"),
    ("npm_config_fetch_retries", "0"),
    ("YARN_HTTP_RETRY", "0"),
];

/// Returns the variables of a toolchain for commands without a network.
fn offline(toolchain: Toolchain) -> impl Iterator<Item = (String, String)> {
    let own = OFFLINE.into_iter().filter(move |(known, _)| *known == toolchain);
    own.flat_map(|(_, variables)| variables).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
}

/// Returns the policy of all commands of a run in this sandbox. Fails if this machine lacks a toolchain or a folder
/// that `glovebox.toml` names.
pub fn exec_policy(setting: &ExecSetting, tier: Option<Tier>, sandbox: &SandboxSetting) -> Result<ExecPolicy, Refusal> {
    let machine = Machine::here();
    let tier = tier.unwrap_or(Tier::Unconfined);
    let is_offline = sandbox.network == Network::None && tier != Tier::Unconfined;
    let mut policy = ExecPolicy::default();
    let no_retries = NO_RETRIES.into_iter().filter(|_| is_offline);
    policy.env.extend(no_retries.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let mut first = Vec::new();
    if let Some(environment) = &setting.venv {
        let found = venv::find(&machine, Path::new(&environment.path)).map_err(Missing::in_venv)?;
        first.extend(found.path.iter().cloned());
        add(&mut policy, found, tier)?;
        policy.env.extend(offline(Toolchain::Python).filter(|_| is_offline));
    }
    for toolchain in &setting.toolchains {
        let found = find(*toolchain, &machine, tier).and_then(|found| machine.presentable(found));
        let found = found.map_err(|missing| stop(*toolchain, missing))?;
        first.extend(found.path.iter().filter(|folder| !policy.path.contains(folder)).cloned());
        add(&mut policy, found, tier)?;
        policy.env.extend(offline(*toolchain).filter(|_| is_offline));
    }
    if !setting.toolchains.is_empty() || setting.venv.is_some() {
        // This must be the first entry, because variables contain its path where commands have no root of their own.
        policy.kept.insert(0, KEPT.into());
        policy.env.insert("XDG_CACHE_HOME".to_owned(), "{kept}".to_owned());
    }
    // The operator names toolchains explicitly, so their programs come before programs of the system with the same name.
    policy.path.splice(0..0, first);
    policy.path.extend(setting.path.iter().map(PathBuf::from));
    policy.env.extend(setting.env.clone());
    if let Some((folder, error)) =
        sandbox.read.iter().find_map(|folder| Some((folder, fs::canonicalize(folder).err()?)))
    {
        let message = format!("`[sandbox] read` names `{folder}`, which commands cannot read: {error}");
        return Err(
            Refusal::new(Class::Invalid, message).with_help("create the folder, or remove it from glovebox.toml")
        );
    }
    let optional = setting.path.iter().map(|folder| (folder, true));
    let shown = optional.chain(sandbox.read.iter().map(|folder| (folder, false)));
    let bind = |(folder, optional): (&String, bool)| Bind { optional, ..Bind::read_only(folder.into(), folder.into()) };
    policy.binds.extend(shown.map(bind));
    Ok(policy)
}

/// Returns the toolchain to which a program belongs.
pub fn of_program(program: &str) -> Option<Toolchain> {
    let programs = |toolchain: Toolchain| -> &[&str] {
        match toolchain {
            Toolchain::Rust => &["cargo", "rustc", "rustdoc", "rustfmt", "rustup"],
            Toolchain::Go => &["go", "gofmt"],
            Toolchain::Node => &["node", "npm", "npx", "pnpm", "yarn", "corepack"],
            Toolchain::Python => &["python3", "pip3"],
            Toolchain::Java => &["java", "javac", "jar"],
            Toolchain::Maven => &["mvn"],
            Toolchain::Gradle => &["gradle"],
        }
    };
    Toolchain::ALL.into_iter().find(|toolchain| programs(*toolchain).contains(&program))
}

/// Returns true if commands with a toolchain find a program: in the folders of the toolchain, or in those of the system.
pub fn shows(toolchain: Toolchain, program: &str) -> bool {
    finds(program, &[toolchain], &[])
}

/// Returns true if commands find a program: in the folders of the system, in those of toolchains, or in `further` ones.
pub fn finds(program: &str, toolchains: &[Toolchain], further: &[PathBuf]) -> bool {
    let is_in = |folder: &PathBuf| {
        let found = fs::metadata(folder.join(program));
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let of_toolchain = |toolchain: &Toolchain| find(*toolchain, &Machine::here(), Tier::Full).unwrap_or_default().path;
    ExecPolicy::default().path.iter().chain(further).any(is_in)
        || toolchains.iter().any(|toolchain| of_toolchain(toolchain).iter().any(is_in))
}

/// Returns what is wrong with the environment that `[exec] venv` names, and what to do. `None` if it can be used.
pub fn venv_problem(folder: &Path) -> Option<(String, String)> {
    let missing = venv::find(&Machine::here(), folder).err()?;
    Some((missing.why, missing.help))
}

/// Returns what to do if commands with these toolchains do not find a program. `None` if they find it.
pub fn missing_program(program: &str, toolchains: impl IntoIterator<Item = Toolchain>) -> Option<String> {
    let is_in_system = ExecPolicy::default().path.iter().any(|folder| folder.join(program).is_file());
    if is_in_system || toolchains.into_iter().any(|toolchain| shows(toolchain, program)) {
        return None;
    }
    Some(match Machine::here().folders_with(program).next() {
        None => format!("`{program}` is not on this machine: install it before the first run"),
        Some(folder) => format!(
            "commands do not see `{program}`: add `path = [\"{}\"]` under `[exec]` in glovebox.toml",
            folder.display()
        ),
    })
}

/// Returns why a toolchain cannot be used on this machine, and what to do. `None` if it can be used.
pub fn missing(toolchain: Toolchain) -> Option<String> {
    let machine = Machine::here();
    let found = find(toolchain, &machine, Tier::Full).and_then(|found| machine.presentable(found));
    let missing = found.err()?;
    Some(format!("the toolchain `{}` is not on this machine: {}; {}", toolchain.as_str(), missing.why, missing.help))
}

fn find(toolchain: Toolchain, machine: &Machine, tier: Tier) -> Result<ToolchainFiles, Missing> {
    match toolchain {
        Toolchain::Rust => rust::find(machine, tier),
        Toolchain::Go => go::find(machine),
        Toolchain::Node => node::find(machine),
        Toolchain::Python => python::find(machine),
        Toolchain::Java => java::find(machine),
        Toolchain::Maven => java::find_maven(machine, tier),
        Toolchain::Gradle => java::find_gradle(machine),
    }
}

fn stop(toolchain: Toolchain, missing: Missing) -> Refusal {
    let name = toolchain.as_str();
    let message = format!("the toolchain `{name}` of glovebox.toml is not on this machine: {}", missing.why);
    Refusal::new(Class::Invalid, message).with_help(missing.help)
}

fn add(policy: &mut ExecPolicy, found: ToolchainFiles, tier: Tier) -> Result<(), Refusal> {
    let homed = found.homed.into_iter().map(|(source, below)| (source, Some(below)));
    for (source, below) in found.shown.into_iter().map(|source| (source, None)).chain(homed) {
        require_utf8(&source)?;
        let at = match below {
            Some(below) if tier.has_own_root() => Path::new(glovebox_jail::jail::HOME_INSIDE).join(below),
            _ => source.clone(),
        };
        let bind = Bind::read_only(source, at);
        if !policy.binds.contains(&bind) {
            policy.binds.push(bind);
        }
    }
    for file in found.configuration {
        require_utf8(&file)?;
        if !policy.configuration.contains(&file) {
            policy.configuration.push(file);
        }
    }
    if tier.has_own_root() && !found.compiled.is_empty() {
        let below = |folder: PathBuf| Path::new(python::COMPILED).join(folder.strip_prefix("/").unwrap_or(&folder));
        policy.kept.extend(found.compiled.into_iter().map(below));
        policy.compiled = Some(python::COMPILED.into());
    }
    policy.env.extend(found.env.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Ok(())
}

fn require_utf8(path: &Path) -> Result<(), Refusal> {
    let named = || Refusal::new(Class::Invalid, format!("the path of a toolchain is not UTF-8: `{}`", path.display()));
    path.to_str().map(drop).ok_or_else(named)
}

#[cfg(test)]
mod tests;
