//! What dependencies link to outside of the project: the interpreter of a virtual environment, and stores of package managers.
//!
//! A link is only a hint, since a package may have made it: a folder is shown because it is a store by its name or an interpreter by
//! its content, and because it is not the user's own.

use glovebox_sandbox::regular_file::{self, Links};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How deep links are looked for: `.venv/lib/python3.12/site-packages/package`.
const DEPTH_MAX: usize = 5;
/// How many entries are looked at for each dependency.
const ENTRIES_MAX: usize = 50_000;
/// The longest settings file of an environment that is read. pnpm lists every package in its own.
const SETTINGS_BYTES_MAX: u64 = 64 << 20;
/// Names of folders in which package managers keep what they share between projects.
const STORES: [&str; 8] = ["pnpm", ".pnpm-store", "uv", ".bun", "yarn", ".yarn", "pypoetry", "virtualenvs"];
/// Folders of the system, which every command sees, and of the kernel and services, which none does.
const NEVER: [&str; 12] =
    ["/proc", "/sys", "/dev", "/run", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Adds the real folders outside of the project to which a dependency links: prefixes of interpreters, stores, or else the target itself.
pub(super) fn linked(dependency: &Path, project: &Path, targets: &mut BTreeSet<PathBuf>) {
    let mut add = |target: &Path| {
        let Ok(real) = target.canonicalize() else { return };
        if !real.starts_with(project) {
            targets.insert(interpreter(&real).or_else(|| store(&real)).unwrap_or(real));
        }
    };
    for (key, value) in settings(dependency, "pyvenv.cfg", '=') {
        if key == "home" {
            add(Path::new(&value));
        }
    }
    for (key, value) in settings(dependency, ".modules.yaml", ':') {
        if matches!(key.as_str(), "storeDir" | "virtualStoreDir") {
            add(&dependency.join(value));
        }
    }
    let (mut pending, mut left) = (vec![(dependency.to_owned(), 0)], ENTRIES_MAX);
    while let Some((at, depth)) = pending.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten().flatten().take(left) {
            left = left.saturating_sub(1);
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => add(&entry.path()),
                Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => pending.push((entry.path(), depth + 1)),
                _ => {}
            }
        }
    }
}

/// The lines `key: value` of a settings file, JSON or not, without quotes.
fn settings(dependency: &Path, name: &str, between: char) -> Vec<(String, String)> {
    let text = regular_file::read_text(&dependency.join(name), Links::Within(dependency), SETTINGS_BYTES_MAX);
    let text = text.unwrap_or_default();
    let plain = |text: &str| text.trim().trim_end_matches(',').trim_matches(['"', '\'']).to_owned();
    text.lines().filter_map(|line| line.split_once(between)).map(|(key, value)| (plain(key), plain(value))).collect()
}

/// The prefix of a Python in which a path lies.
fn interpreter(target: &Path) -> Option<PathBuf> {
    target.ancestors().find(|prefix| is_interpreter(prefix)).map(Path::to_owned)
}

fn is_interpreter(prefix: &Path) -> bool {
    // The root of a machine has `bin` and `lib` too.
    if prefix.parent().is_none() {
        return false;
    }
    let mut versions = fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    prefix.join("bin").is_dir() && versions.any(|entry| entry.path().join("os.py").is_file())
}

/// The store in which a path lies: one folder below the name of its package manager.
fn store(target: &Path) -> Option<PathBuf> {
    let mut at = PathBuf::new();
    let mut parts = target.components();
    while let Some(part) = parts.next() {
        at.push(part);
        if STORES.iter().any(|name| part.as_os_str() == *name) {
            at.extend(parts.next());
            return Some(at);
        }
    }
    None
}

/// True for a folder that commands may read: a store or an interpreter, not the user's own, nor the system's.
pub(super) fn may_be_shown(target: &Path, home: Option<&Path>, never: &[PathBuf]) -> bool {
    let is_known = is_interpreter(target) || store(target).is_some();
    let holds = |other: &Path| other.starts_with(target) || target.starts_with(other);
    let is_of_user = home.is_some_and(|home| home.starts_with(target));
    let is_hidden_of_user = home.and_then(|home| target.strip_prefix(home).ok()).is_some_and(|below| {
        let first = below.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
        first.is_some_and(|first| [".ssh", ".gnupg", ".aws", ".config", ".docker", ".kube"].contains(&first.as_str()))
    });
    let is_system = NEVER.iter().any(|folder| target.starts_with(folder)) || target.parent().is_none();
    is_known && !is_of_user && !is_hidden_of_user && !is_system && !never.iter().any(|other| holds(other))
}
