//! Why a command failed in the sandbox, and the setting that fixes it.
//!
//! The output comes from the project's code, so it is only searched for known messages. A name from the output is used
//! in a setting only after a strict check. A setting that lets commands use the network, read the home folder, an ignored
//! file or the git history, or exceed a limit that the user has set, is written only if the user agrees.

use super::edit::{Change, Edit};
use super::found;
use glovebox_plan::config::{Config, HistorySetting};
use glovebox_plan::prepare::toolchain;
use glovebox_record::scope::Entry;
use glovebox_record::{LimitName, Limits};
use glovebox_state::refused_writes::Folded;
use std::path::{Path, PathBuf};

/// Exit code of a shell that does not find a program.
const NO_SUCH_PROGRAM: i32 = 127;
/// Factor by which a limit that was exceeded is raised.
const LIMIT_FACTOR: u64 = 4;

/// The result of a failed trial.
#[derive(Debug, Clone, Default)]
pub struct FailedTrial {
    /// Name of the limit that was exceeded; absent for other failures.
    pub limit: Option<String>,
    /// Exit code of the failed command.
    pub exit: Option<i32>,
    /// The failed command as a shell text.
    pub command: String,
    /// Standard output and standard error of the failed command.
    pub output: String,
    /// Files in the quarantine: path and reason.
    pub quarantined: Vec<(String, String)>,
    /// Hosts that the proxy refused.
    pub refused_hosts: Vec<String>,
    /// The copy of the project in which the command ran.
    pub workspace: PathBuf,
}

/// What a diagnosis may look at on this machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The project.
    pub project: PathBuf,
    /// The home folder of the user.
    pub home: Option<PathBuf>,
    /// The folders of the user's PATH.
    pub path: Vec<PathBuf>,
    /// An environment of Python outside of the project that belongs to it.
    pub environment: Option<String>,
}

impl Machine {
    /// Returns true for a folder in the user's home, in the home of another user, or on a mounted disk.
    fn is_private(&self, folder: &Path) -> bool {
        let homes = ["/home", "/root", "/Users", "/mnt", "/media"];
        let is_own = |home: &PathBuf| folder.starts_with(home);
        self.home.as_ref().is_none_or(is_own) || homes.iter().any(|known| folder.starts_with(known))
    }
}

/// What a failed trial shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Diagnosis {
    /// A setting fixes the failure.
    Setting {
        /// Why the command failed.
        why: String,
        /// The change of `glovebox.toml`.
        edit: Edit,
        /// What the change opens, if a person has to agree to it.
        opens: Option<String>,
    },
    /// The stage in the pipeline needs more time.
    Timeout,
    /// No setting fixes the failure, but the user can.
    Advice(String),
    /// The output shows no known reason. Perhaps the tests fail without a sandbox too.
    Unknown,
}

impl Diagnosis {
    fn setting(why: impl Into<String>, table: &'static str, key: &'static str, change: Change) -> Self {
        let why: String = why.into();
        let edit = Edit { table, key, change, comment: format!("`glovebox init --try`: {why}") };
        Self::Setting { why, edit, opens: None }
    }

    /// Marks a setting that a person has to agree to.
    fn if_agreed(self, what: impl Into<String>) -> Self {
        match self {
            Self::Setting { why, edit, .. } => Self::Setting { why, edit, opens: Some(what.into()) },
            other => other,
        }
    }
}

/// Finds the reason of a failure. The most certain signs come first: what the host measured, before what a program
/// printed.
pub fn diagnose(failed: &FailedTrial, config: &Config, machine: &Machine) -> Diagnosis {
    let findings: [&dyn Fn() -> Option<Diagnosis>; 10] = [
        &|| exceeded_limit(failed, config),
        &|| refused_host(failed),
        &|| quarantined(failed),
        &|| missing_program(failed, machine),
        &|| busy_folder(failed, config),
        &|| missing_history(failed, config),
        &|| missing_module(failed, config, machine),
        &|| ignored_file(failed, machine),
        &|| variable(failed),
        &|| network(failed).or_else(|| socket(failed)),
    ];
    findings.iter().find_map(|find| find()).unwrap_or(Diagnosis::Unknown)
}

/// A limit of the stage. `wall_ms` of a pipeline's stage comes from its `timeout`, unless glovebox.toml sets it.
fn exceeded_limit(failed: &FailedTrial, config: &Config) -> Option<Diagnosis> {
    let name: LimitName = failed.limit.as_ref()?.parse().ok()?;
    let own = config.limits.get(name);
    if name == LimitName::WallMs && own.is_none() {
        return Some(Diagnosis::Timeout);
    }
    let row = name.row();
    let amount = own.unwrap_or_else(|| Limits::default().get(name)).saturating_mul(LIMIT_FACTOR);
    let why = format!("the command exceeded the limit `{}`", row.name);
    let setting = Diagnosis::setting(why, "limits", row.name, Change::Number(amount));
    // A command without a bound would exceed the next limit too. More time takes nothing else from the machine.
    Some(if own.is_some() && name != LimitName::WallMs {
        setting.if_agreed(format!("commands could exceed the present limit and reach `{}` = {amount}", row.name))
    } else {
        setting
    })
}

/// A host that the proxy refused because glovebox.toml does not name it.
fn refused_host(failed: &FailedTrial) -> Option<Diagnosis> {
    let host = failed.refused_hosts.iter().find_map(|target| found::host(target))?;
    Some(needs_host(&host))
}

fn needs_host(host: &str) -> Diagnosis {
    let why = format!("the command asks the host {host}");
    let setting = Diagnosis::setting(why, "sandbox", "network", Change::Host(host.to_owned()));
    setting.if_agreed(format!("commands could send everything that they can read to {host}"))
}

/// Files outside of the write scope.
fn quarantined(failed: &FailedTrial) -> Option<Diagnosis> {
    let files = failed.quarantined.iter().map(|(path, reason)| (path.as_str(), reason.as_str()));
    let outside = Folded::group(files).into_iter().find(Folded::is_outside)?;
    let files = outside.paths().collect::<Vec<_>>();
    let above = files.first()?.split_once('/').map(|(folder, _)| format!("{folder}/"));
    // Only a folder that the project does not have can be given to the command completely.
    let is_new = |folder: &String| !failed.workspace.join(folder).exists();
    let folder = [Some(outside.at.clone()).filter(|at| at.ends_with('/')), above].into_iter().flatten().find(is_new);
    let named = files.first().map(|path| found::shown(path)).unwrap_or_default();
    Some(match folder.filter(|folder| Entry::parse(folder).is_ok()) {
        Some(folder) => {
            let why = format!("the command leaves files in `{folder}`, which are discarded after each stage");
            Diagnosis::setting(why, "sandbox", "scratch", Change::Add(folder))
        }
        None => Diagnosis::Advice(format!(
            "the command writes `{named}` and {} other files beside the sources: let git ignore them (a line in \
             `.gitignore`), or add them to `allowed_write_paths` of the stage",
            files.len() - 1
        )),
    })
}

/// A program that the shell did not find: of a toolchain, or in a folder of the user's PATH.
fn missing_program(failed: &FailedTrial, machine: &Machine) -> Option<Diagnosis> {
    let named = found::missing_program(&failed.output);
    if failed.exit != Some(NO_SUCH_PROGRAM) && named.is_none() {
        return None;
    }
    let words = named.into_iter().chain(found::words(&failed.command));
    let mut known = words.filter_map(|word| Some((word, program(word, machine)?)));
    Some(known.next().map(|(_, diagnosis)| diagnosis).unwrap_or_else(|| {
        let name = found::missing_program(&failed.output).unwrap_or("a program");
        Diagnosis::Advice(format!("`{name}` is not on this machine: install it, then run `glovebox init --try` again"))
    }))
}

/// Returns how commands can find a program that this machine has. `None` if they find it already.
fn program(name: &str, machine: &Machine) -> Option<Diagnosis> {
    if found::SYSTEM.iter().any(|folder| Path::new(folder).join(name).is_file()) {
        return None;
    }
    let known = toolchain::of_program(name).filter(|known| toolchain::missing(*known).is_none());
    if let Some(known) = known {
        let why = format!("`{name}` belongs to the toolchain `{}`", known.as_str());
        return Some(Diagnosis::setting(why, "exec", "toolchains", Change::Add(known.as_str().to_owned())));
    }
    let folder = machine.path.iter().find(|folder| folder.is_absolute() && folder.join(name).is_file())?;
    let folder = std::fs::canonicalize(folder).ok()?;
    let text = folder.to_str()?.to_owned();
    let setting = Diagnosis::setting(format!("`{name}` is in this folder"), "exec", "path", Change::Add(text));
    Some(match machine.is_private(&folder) {
        true => setting.if_agreed(format!("commands could read {}, which can contain private files", folder.display())),
        false => setting,
    })
}

/// A build that deletes a folder which is a mount point.
fn busy_folder(failed: &FailedTrial, config: &Config) -> Option<Diagnosis> {
    let lines = failed.output.lines().filter(|line| line.contains("EBUSY") || line.contains("resource busy"));
    let lines: Vec<&str> = lines.collect();
    let names = |entry: &Entry| lines.iter().any(|line| line.contains(entry.path().as_str()));
    let setting = &config.sandbox;
    let remove = |key, list: &[Entry]| {
        let entry = list.iter().find(|entry| names(entry))?;
        let why = format!("the command deletes `{entry}`, which cannot be deleted while it is a {key} folder");
        Some(Diagnosis::setting(why, "sandbox", key, Change::Remove(entry.to_string())))
    };
    remove("cache", &setting.cache).or_else(|| remove("scratch", &setting.scratch))
}

/// A command that needs commits, branches or tags which the repository of a stage does not have.
fn missing_history(failed: &FailedTrial, config: &Config) -> Option<Diagnosis> {
    const SIGNS: [&str; 7] = [
        "No names found, cannot describe anything",
        "No tags can describe",
        "unknown revision or path not in the working tree",
        "bad revision",
        "Invalid symmetric difference expression",
        "does not have any commits yet",
        "unable to detect version",
    ];
    let shows = SIGNS.iter().any(|sign| failed.output.contains(sign));
    if !shows || config.workspace.history == HistorySetting::Whole {
        return None;
    }
    let why = "the command reads the history of the repository";
    let setting = Diagnosis::setting(why, "workspace", "git", Change::Text("history".to_owned()));
    Some(setting.if_agreed("commands could read every file of every commit, deleted ones too"))
}

/// A module of Python or Node that commands do not see.
fn missing_module(failed: &FailedTrial, config: &Config, machine: &Machine) -> Option<Diagnosis> {
    let output = &failed.output;
    if output.contains("No module named") && config.exec.venv.is_none() {
        let Some(environment) = machine.environment.clone() else {
            return Some(Diagnosis::Advice(
                "a module of Python is missing: install the dependencies into `.venv/`, or name the environment with \
                 `venv` under `[exec]` in glovebox.toml"
                    .to_owned(),
            ));
        };
        let place = std::fs::canonicalize(&environment).unwrap_or_else(|_| PathBuf::from(&environment));
        let is_home = machine.is_private(&place);
        let opens = format!("commands could read {environment}, which can contain private files");
        let why = "the modules of the project are in this environment";
        let setting = Diagnosis::setting(why, "exec", "venv", Change::Text(environment));
        return Some(if is_home { setting.if_agreed(opens) } else { setting });
    }
    let is_node = output.contains("Cannot find module '") || output.contains("ERR_MODULE_NOT_FOUND");
    (is_node && !machine.project.join("node_modules").exists()).then(|| {
        Diagnosis::Advice(
            "a module of Node is missing: install the dependencies first, such as with `npm ci`".to_owned(),
        )
    })
}

/// A file that is in the project and not in the copy, because git ignores it.
fn ignored_file(failed: &FailedTrial, machine: &Machine) -> Option<Diagnosis> {
    let is_left_out = |path: &&str| {
        let is_file = std::fs::symlink_metadata(machine.project.join(path)).is_ok_and(|found| found.is_file());
        is_file && !failed.workspace.join(path).exists()
    };
    let project = machine.project.to_string_lossy();
    let path = found::missing_files(&failed.output, &project).find(is_left_out)?;
    let entry = Entry::parse(path).ok().filter(|entry| !entry.is_subtree())?;
    let why = format!("the command reads `{entry}`, which git ignores");
    let setting = Diagnosis::setting(why, "workspace", "include", Change::Add(entry.to_string()));
    Some(setting.if_agreed(format!("`{entry}` would be copied into every run; such files often contain secrets")))
}

/// A variable that commands need.
fn variable(failed: &FailedTrial) -> Option<Diagnosis> {
    let output = &failed.output;
    let set = |why: &str, name, value| Some(Diagnosis::setting(why, "exec", "env", Change::Variable { name, value }));
    if output.contains("LeakSanitizer has encountered a fatal error") || output.contains("LeakSanitizer does not work")
    {
        return set("the leak sanitizer cannot trace processes in the sandbox", "ASAN_OPTIONS", "detect_leaks=0");
    }
    if output.contains("unsupported locale setting") || output.contains("invalid byte sequence in US-ASCII") {
        return set("the command needs a locale with UTF-8", "LC_ALL", "C.UTF-8");
    }
    let name = found::missing_variable(output)?;
    let value = DEFAULTS.iter().find(|(known, _)| *known == name);
    if let Some((name, value)) = value {
        return set(&format!("the command needs the variable {name}"), name, value);
    }
    Some(Diagnosis::Advice(format!(
        "the command needs the variable {name}, and commands get none of yours: add `env = {{ {name} = \"…\" }}` under \
         `[exec]` in glovebox.toml"
    )))
}

/// Variables with a well-known value that contains no secret.
const DEFAULTS: [(&str, &str); 6] =
    [("TZ", "UTC"), ("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8"), ("TERM", "dumb"), ("EDITOR", "true"), ("CI", "true")];

/// A host that the command could not reach, because commands have no network.
fn network(failed: &FailedTrial) -> Option<Diagnosis> {
    if let Some(host) = found::unreachable_host(&failed.output) {
        return Some(needs_host(&host));
    }
    const SIGNS: [&str; 8] = [
        "Temporary failure in name resolution",
        "Name or service not known",
        "failed to lookup address information",
        "Network is unreachable",
        "ENETUNREACH",
        "EAI_AGAIN",
        "you're using offline mode",
        "offline mode",
    ];
    SIGNS.iter().any(|sign| failed.output.contains(sign)).then(|| {
        Diagnosis::Advice(
            "the command needs a network, and commands have none: install what it downloads before the run, or allow its \
             host with `network = { proxy = [\"HOST\"] }` under `[sandbox]` in glovebox.toml"
                .to_owned(),
        )
    })
}

/// A service or a port that the sandbox does not have.
fn socket(failed: &FailedTrial) -> Option<Diagnosis> {
    let output = &failed.output;
    let has = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
    let advice = if has(&["docker.sock", "Cannot connect to the Docker daemon"]) {
        "the command needs Docker, which the sandbox does not show: test without containers, or start the service in the command"
    } else if has(&["AF_UNIX path too long", "path too long for Unix domain socket"]) {
        "the path of a Unix socket is too long: let the command make it in `$TMPDIR`"
    } else if has(&["ECONNREFUSED", "Connection refused"]) {
        "the command asks a service on this machine, and the loopback of the sandbox is its own: start the service in the command"
    } else if has(&["Permission denied", "EACCES", "permission denied"]) && has(&["bind", "listen"]) {
        "commands cannot listen on ports below 1024: let the command use a higher port"
    } else {
        return None;
    };
    Some(Diagnosis::Advice(advice.to_owned()))
}
