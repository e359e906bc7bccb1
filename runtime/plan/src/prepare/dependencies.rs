//! Installed dependencies of a project: which folders commands see read-only, the folders of the machine to which their
//! symbolic links lead, and which dependencies are missing.
//!
//! The names come from the table of project kinds, or from `[workspace] dependencies`. A folder with files that git tracks,
//! or that `[workspace] include` names, is part of the project and not a dependency. Outside of the project, only stores of
//! known package managers and interpreters are shown: never the home folder, a folder above it, or the files that Glovebox
//! keeps for the user.

mod copies;
mod store;

use super::folders::private_dirs;
use super::project::Project;
use super::refusal::Warning;
use super::survey::kind::KINDS;
use super::survey::{environments_in, is_environment};
use crate::config::Toolchain;
use crate::plan::capability::MachineFolder;
use copies::HoldoutFiles;
use glovebox_jail::jail::Bind;
use glovebox_record::scope::Entry;
use glovebox_workspace::ignored::ProjectFiles;
use glovebox_workspace::regular_file::{self, Links};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use store::Places;

/// Maximum number of folders in which projects inside the project are looked for.
const FOLDERS_MAX: usize = 2_000;
/// Maximum depth of a folder in which projects inside the project are looked for.
const DEPTH_MAX: usize = 3;
/// Maximum size of a `package.json` that is read, in bytes.
const PACKAGE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of broken links that a warning names.
const LINKS_NAMED_MAX: usize = 6;
/// Folders that are always dependencies in a project of their kind, even if git does not ignore them.
const CERTAIN: [&str; 3] = ["node_modules/", ".venv/", "venv/"];
/// Folders of tools that create virtual environments. Only the environments in them are dependencies.
const MANAGED: [&str; 2] = [".tox/", ".nox/"];
/// Folders that are not searched.
const SKIPPED: [&str; 5] = ["node_modules", "target", "vendor", "venv", "__pycache__"];

/// The installed dependencies of a project.
#[derive(Debug, Default)]
pub struct Dependencies {
    /// Folders of the project, by path.
    pub folders: Vec<Entry>,
    /// Folders of the machine to which the folders of the project link.
    pub stores: Vec<Bind>,
    /// Warnings that the user should see before a run.
    pub warnings: Vec<Warning>,
}

impl Dependencies {
    /// Returns the folders of the machine, as a plan names them.
    pub fn machine_folders(&self) -> Vec<MachineFolder> {
        self.stores.iter().map(|store| MachineFolder(store.source.display().to_string())).collect()
    }
}

/// Finds the dependencies of a project. A dependency never contains hold-outs and is never inside of them.
pub fn find(project: &Project, sealed: &[Entry]) -> Dependencies {
    let mut found = Dependencies::default();
    let setting = &project.config.workspace;
    let files = ProjectFiles::for_project(&project.workdir);
    let include: Vec<Entry> = setting.include.iter().filter_map(|text| Entry::parse(text).ok()).collect();
    let candidates = match &setting.dependencies {
        Some(named) => Cow::Borrowed(named.as_slice()),
        None => Cow::Owned(by_kind(&project.workdir)),
    };
    for folder in candidates.into_owned() {
        let at = project.workdir.join(folder.path().as_str());
        let overlaps = |other: &Entry| other.covers(&folder) || folder.covers(other);
        if include.iter().any(overlaps) {
            continue;
        }
        if sealed.iter().any(overlaps) {
            let help = "keep hold-outs and dependencies in separate folders".to_owned();
            let problem = format!("`{folder}` is not shown to commands: it overlaps hold-outs");
            found.warnings.push(Warning { problem, help });
            continue;
        }
        let is_folder = fs::symlink_metadata(&at).is_ok_and(|at| at.is_dir());
        if setting.dependencies.is_some() {
            if is_folder {
                found.folders.push(folder);
            } else {
                let help = "install it, or remove it from `[workspace] dependencies` in glovebox.toml".to_owned();
                found.warnings.push(Warning { problem: format!("`{folder}` is not a folder of the project"), help });
            }
            continue;
        }
        let is_certain = CERTAIN.iter().any(|name| ends_with(&folder, name));
        if is_folder && !files.has_tracked(folder.path()) && (is_certain || files.ignores(folder.path())) {
            found.folders.push(folder);
        }
    }
    found.folders.sort();
    found.folders.dedup();
    drop_copies(project, sealed, &mut found);
    let (stores, hidden) = stores(project, &found.folders);
    found.stores = stores;
    found.warnings.extend(hidden);
    found.warnings.extend(missing(project, &found.folders, setting.dependencies.is_some()));
    found
}

/// Removes dependencies that contain a copy of a hold-out, because every stage would see the copy.
fn drop_copies(project: &Project, sealed: &[Entry], found: &mut Dependencies) {
    let holdouts = HoldoutFiles::find(&project.workdir, sealed);
    let shown = |path: &Path| path.strip_prefix(&project.workdir).unwrap_or(path).display().to_string();
    let Dependencies { folders, warnings, .. } = found;
    folders.retain(|folder| {
        let Some((copy, holdout)) = holdouts.copy_in(&project.workdir.join(folder.path().as_str())) else {
            return true;
        };
        let copied = format!("`{}` is byte for byte the hold-out `{}`", shown(&copy), shown(holdout));
        let help = "remove the copy, or install the project without its hold-outs".to_owned();
        warnings.push(Warning { problem: format!("`{folder}` is not shown to commands: {copied}"), help });
        false
    });
}

fn ends_with(folder: &Entry, name: &str) -> bool {
    folder.path().names().last().is_some_and(|last| last == name.trim_end_matches('/'))
}

/// Returns the virtual environment in the project's folder, if it is among the dependencies.
pub fn environment(workdir: &Path, folders: &[Entry]) -> Option<Entry> {
    let is_one = |folder: &&Entry| is_environment(&workdir.join(folder.path().as_str()));
    folders.iter().filter(|folder| folder.path().parent().is_some_and(|above| above.is_root())).find(is_one).cloned()
}

/// Returns the dependency folders of the project's kinds, and of projects below the project.
fn by_kind(workdir: &Path) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut pending = vec![(workdir.to_owned(), 0)];
    let mut seen = 0;
    while let Some((at, depth)) = pending.pop() {
        seen += 1;
        for kind in KINDS.iter().filter(|kind| kind.markers.iter().any(|marker| at.join(marker).is_file())) {
            let fixed = kind.dependencies.iter().filter(|name| name.ends_with('/') && !MANAGED.contains(name));
            let mut names: Vec<String> = fixed.map(|name| (*name).to_owned()).collect();
            if kind.toolchains.contains(&Toolchain::Python) {
                // A tool that creates environments also keeps packed versions of the project, including tests, beside them.
                names.extend(environments_in(&at).into_iter().map(|name| format!("{name}/")));
            }
            let paths = names.iter().map(|name| at.join(name));
            let inside = paths.filter_map(|path| Some(path.strip_prefix(workdir).ok()?.to_str()?.to_owned()));
            found.extend(inside.filter_map(|inside| Entry::parse(&format!("{}/", inside.trim_end_matches('/'))).ok()));
        }
        if depth < DEPTH_MAX && seen < FOLDERS_MAX {
            let mut below: Vec<PathBuf> = folders_in(&at).collect();
            below.sort();
            pending.extend(below.into_iter().rev().map(|folder| (folder, depth + 1)));
        }
    }
    found
}

fn folders_in(at: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(at).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let plain = folders.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        !name.starts_with('.') && !SKIPPED.contains(&name.as_ref())
    });
    plain.map(|entry| entry.path())
}

/// Returns the folders of the machine that commands may see because symbolic links in dependencies lead to them, and a
/// warning that names all other symbolic links.
fn stores(project: &Project, folders: &[Entry]) -> (Vec<Bind>, Option<Warning>) {
    let mut targets = BTreeMap::new();
    for folder in folders {
        store::linked(&project.workdir.join(folder.path().as_str()), &project.workdir, &mut targets);
    }
    if targets.is_empty() {
        return (Vec::new(), None);
    }
    let private = private_dirs().chain([project.workdir.clone()]);
    let places = Places::new(|name| std::env::var_os(name).map(PathBuf::from), private);
    let (mut shown, mut hidden) = (BTreeSet::new(), Vec::new());
    for (target, link) in targets {
        match places.shown(&target) {
            Some(folder) => _ = shown.insert(folder),
            None if store::is_seen_anyway(&target) => {}
            None => hidden.push((link, target)),
        }
    }
    let is_outer = |at: &&PathBuf| !shown.iter().any(|other| *at != other && at.starts_with(other));
    let binds = shown.iter().filter(is_outer);
    let binds = binds.map(|at| Bind { optional: true, ..Bind::read_only(at.to_owned(), at.to_owned()) }).collect();
    (binds, hidden_links(&project.workdir, &hidden))
}

/// Returns the warning about links that are broken for commands.
fn hidden_links(project: &Path, hidden: &[(PathBuf, PathBuf)]) -> Option<Warning> {
    let told = |(link, target): &(PathBuf, PathBuf)| {
        format!("`{}` to `{}`", link.strip_prefix(project).unwrap_or(link).display(), target.display())
    };
    let named: Vec<String> = hidden.iter().take(LINKS_NAMED_MAX).map(told).collect();
    let more = match hidden.len().saturating_sub(LINKS_NAMED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let problem = format!("symbolic links of dependencies are broken in this run: {}{more}", named.join(", "));
    let help = "outside of the project, commands see only stores of package managers and interpreters; if they need the target \
                of a link, name its folder with `read = [\"/path\"]` under `[sandbox]` in glovebox.toml";
    (!named.is_empty()).then(|| Warning { problem, help: help.to_owned() })
}

/// Returns a warning for each dependency that the project names and that is not installed, with the command that installs it.
fn missing(project: &Project, shown: &[Entry], is_set: bool) -> Vec<Warning> {
    let at = |name: &str| project.workdir.join(name);
    let has = |name: &str| at(name).exists();
    let is_shown = |name: &str| shown.iter().any(|folder| folder.to_string() == name);
    let includes = |name: &str| project.config.workspace.include.iter().any(|text| text == name || text == "./");
    let mut found = Vec::new();
    let mut tell = |name: &str, install: &str| {
        if !has(name.trim_end_matches('/')) {
            found.push(Warning {
                problem: format!("`{name}` does not exist, so commands find no installed dependencies"),
                help: format!("run `{install}` first"),
            });
        } else if is_set && !is_shown(name) && !includes(name) {
            let help = format!(
                "add `dependencies = [\"{name}\"]` under `[workspace]` in glovebox.toml, or `include` to copy it"
            );
            let problem = format!("`{name}` is not in this run: `[workspace] dependencies` does not name it");
            found.push(Warning { problem, help });
        }
    };
    if names_packages(&at("package.json"), &project.workdir) {
        let managers =
            [("pnpm-lock.yaml", "pnpm install"), ("yarn.lock", "yarn install"), ("package-lock.json", "npm ci")];
        let install = managers.iter().find(|(lock, _)| has(lock)).map_or("npm install", |(_, install)| install);
        if !has(".pnp.cjs") {
            tell("node_modules/", install);
        }
    }
    let is_active = |folder: &Entry| is_environment(&at(folder.path().as_str()));
    let has_environment = project.config.exec.venv.is_some() || shown.iter().any(is_active);
    if !has("venv") && !has_environment {
        let managers = [("uv.lock", "uv sync"), ("poetry.lock", "poetry install")];
        if let Some((_, install)) = managers.iter().find(|(lock, _)| has(lock)) {
            tell(".venv/", install);
        }
    }
    found
}

/// Returns true if a `package.json` names dependencies.
fn names_packages(file: &Path, project: &Path) -> bool {
    let text = regular_file::read_text(file, Links::Within(project), PACKAGE_BYTES_MAX).unwrap_or_default();
    let Ok(parsed) = serde_json::from_str::<serde_json::Value>(&text) else { return false };
    let named =
        ["dependencies", "devDependencies"].map(|name| parsed[name].as_object().is_some_and(|all| !all.is_empty()));
    named.contains(&true)
}

#[cfg(test)]
mod tests;
