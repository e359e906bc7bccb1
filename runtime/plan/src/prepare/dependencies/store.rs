//! Folders outside of the project to which symbolic links in dependencies lead: the interpreter of a virtual
//! environment, and stores of package managers.
//!
//! A link alone is not trusted, since a package may have created it. A folder is shown only if it is not inside of a
//! repository. In addition, a package manager must keep packages at exactly this place, or the folder must contain an
//! interpreter.

use glovebox_workspace::regular_file::{self, Links};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum depth at which links are looked for, such as `.venv/lib/python3.12/site-packages/package`.
const DEPTH_MAX: usize = 5;
/// Maximum number of entries that are read for each dependency.
const ENTRIES_MAX: usize = 50_000;
/// Maximum size of a settings file of an environment, in bytes. pnpm lists every package in its file.
const SETTINGS_BYTES_MAX: u64 = 64 << 20;
/// Folders of the system, which every command sees, and of the kernel and of services, which no command sees.
const SYSTEM: [&str; 12] =
    ["/proc", "/sys", "/dev", "/run", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Paths at or below the folders of `SYSTEM` that commands see unchanged. A symbolic link to them also works in the
/// sandbox.
const SEEN: [&str; 8] = ["/dev/null", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Folders in which programs are installed without the package manager of the system.
const MACHINE: [&str; 3] = ["/", "/opt", "/var/cache"];
/// The store that pnpm creates at the root of a file system that does not contain the home folder.
const STORE_OF_DISK: &str = ".pnpm-store";
/// Version managers that are git repositories themselves, and the folder of each in which the interpreters are.
const IN_REPOSITORIES: [(&str, &str); 3] = [(".pyenv", "versions"), ("pyenv", "versions"), (".asdf", "installs")];

/// The place of a package manager's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In `$XDG_DATA_HOME`, or in a folder of [`MACHINE`].
    Data,
    /// In `$XDG_CACHE_HOME`, or in a folder of [`MACHINE`].
    Cache,
    /// In the home folder itself.
    Home,
    /// At the path in this environment variable.
    Variable(&'static str),
}

/// The folders that package managers share between projects. A row has the place, the manager's folder there, and the
/// stores in that folder; `*` means each folder in it. Other folders of a manager contain credentials and settings.
#[rustfmt::skip]
const STORES: [(Place, &str, &[&str]); 19] = [
    (Place::Data, "pnpm", &["store", "global"]),
    (Place::Home, STORE_OF_DISK, &[""]),
    (Place::Variable("PNPM_HOME"), "", &["store", "global"]),
    (Place::Data, "uv", &["python", "tools", "cache", "archive-v0"]),
    (Place::Cache, "uv", &["cache", "archive-v0", "builds-v0", "environments-v2"]),
    (Place::Variable("UV_CACHE_DIR"), "", &["archive-v0", "builds-v0", "environments-v2"]),
    (Place::Variable("UV_PYTHON_INSTALL_DIR"), "", &[""]),
    (Place::Variable("UV_TOOL_DIR"), "", &[""]),
    (Place::Home, ".bun", &["install/cache", "install/global"]),
    (Place::Variable("BUN_INSTALL"), "", &["install/cache", "install/global"]),
    (Place::Cache, "yarn", &["v6"]),
    (Place::Data, "yarn", &["global", "berry/cache", "berry/store", "berry/index"]),
    (Place::Home, ".yarn", &["berry/cache", "berry/store", "berry/index"]),
    (Place::Variable("YARN_GLOBAL_FOLDER"), "", &["cache", "store", "index"]),
    (Place::Cache, "pypoetry", &["virtualenvs/*", "artifacts"]),
    (Place::Variable("POETRY_CACHE_DIR"), "", &["virtualenvs/*", "artifacts"]),
    (Place::Data, "virtualenvs", &["*"]),
    (Place::Home, ".virtualenvs", &["*"]),
    (Place::Variable("WORKON_HOME"), "", &["*"]),
];

/// A folder with packages that projects share.
#[derive(Debug)]
struct Store {
    folder: PathBuf,
    /// True if each folder in the store is an environment of another project. Then only the linked environment is
    /// shown.
    is_of_environments: bool,
}

/// Folders of the machine that may be shown, from the user's environment.
#[derive(Debug)]
pub(super) struct Places {
    home: Option<PathBuf>,
    stores: Vec<Store>,
    /// Folders of the user. A folder that is shown must not contain any of them.
    user: Vec<PathBuf>,
    /// Folders that must not overlap a folder that is shown: keys, settings, and what Glovebox keeps for the user.
    private: Vec<PathBuf>,
}

impl Places {
    /// Reads the places from the environment. A variable with a relative path is ignored.
    pub(super) fn new(variable: impl Fn(&str) -> Option<PathBuf>, private: impl IntoIterator<Item = PathBuf>) -> Self {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let named = |name: &str| variable(name).filter(|path| path.is_absolute()).map(real);
        let home = named("HOME");
        let in_home = |below: &str| home.as_ref().map(|home| home.join(below));
        let data = named("XDG_DATA_HOME").or_else(|| in_home(".local/share"));
        let cache = named("XDG_CACHE_HOME").or_else(|| in_home(".cache"));
        let roots = |place: Place| -> Vec<PathBuf> {
            let of_machine = |own: &Option<PathBuf>| MACHINE.iter().map(PathBuf::from).chain(own.clone()).collect();
            match place {
                Place::Data => of_machine(&data),
                Place::Cache => of_machine(&cache),
                Place::Home => home.iter().cloned().collect(),
                Place::Variable(name) => named(name).into_iter().collect(),
            }
        };
        let mut stores = Vec::new();
        for (place, manager, below) in STORES {
            for (root, below) in roots(place).iter().flat_map(|root| below.iter().map(move |below| (root, below))) {
                let parent = below.strip_suffix('*');
                let folder = root.join(manager).join(parent.unwrap_or(below));
                let folder = folder.canonicalize().ok().filter(|folder| folder.is_dir());
                stores.extend(folder.map(|folder| Store { folder, is_of_environments: parent.is_some() }));
            }
        }
        let keys = [".ssh", ".gnupg", ".aws", ".config", ".docker", ".kube"];
        let private = keys.iter().filter_map(|name| in_home(name)).chain(private).map(real).collect();
        let user = [home.clone(), data.map(real), cache.map(real)].into_iter().flatten().collect();
        Self { home, stores, user, private }
    }

    /// Returns the folder that is shown because of a link to `target`: a store or the prefix of an interpreter. `None` for
    /// folders of the user or of the system.
    pub(super) fn shown(&self, target: &Path) -> Option<PathBuf> {
        let folder = self.store(target).or_else(|| interpreter(target))?;
        let holds_user = self.user.iter().any(|other| other.starts_with(&folder));
        let is_private = self.private.iter().any(|other| folder.starts_with(other) || other.starts_with(&folder));
        let is_system = SYSTEM.iter().any(|system| folder.starts_with(system)) || folder.parent().is_none();
        let is_kept_out = holds_user || is_private || is_system || self.is_in_repository(target);
        (!is_kept_out).then_some(folder)
    }

    fn store(&self, target: &Path) -> Option<PathBuf> {
        let around = self.stores.iter().filter(|store| target.starts_with(&store.folder));
        let known = around.filter_map(|store| {
            if !store.is_of_environments {
                return Some(store.folder.clone());
            }
            let name = target.strip_prefix(&store.folder).ok()?.components().next()?;
            let environment = store.folder.join(name);
            environment.join("pyvenv.cfg").is_file().then_some(environment)
        });
        known.min_by_key(|folder| folder.components().count()).or_else(|| store_of_disk(target))
    }

    /// Returns true if the path is inside of a repository. A home folder that is itself a repository is ignored.
    fn is_in_repository(&self, target: &Path) -> bool {
        let is_repository = |folder: &&Path| fs::symlink_metadata(folder.join(".git")).is_ok();
        let holds_interpreters = |folder: &Path| {
            let name = folder.file_name().unwrap_or_default();
            IN_REPOSITORIES.iter().any(|(manager, below)| name == *manager && target.starts_with(folder.join(below)))
        };
        let around = target.ancestors().filter(|folder| self.home.as_deref() != Some(*folder));
        around.filter(is_repository).any(|folder| !holds_interpreters(folder))
    }
}

/// Adds the targets of a dependency's symbolic links that are outside of the project: the real path of each target,
/// with the first link to it.
pub(super) fn linked(dependency: &Path, project: &Path, targets: &mut BTreeMap<PathBuf, PathBuf>) {
    let mut add = |link: PathBuf, target: &Path| {
        let Ok(real) = target.canonicalize() else { return };
        if !real.starts_with(project) {
            targets.entry(real).or_insert(link);
        }
    };
    for (key, value) in settings(dependency, "pyvenv.cfg", '=') {
        if key == "home" {
            add(dependency.join("pyvenv.cfg"), Path::new(&value));
        }
    }
    for (key, value) in settings(dependency, ".modules.yaml", ':') {
        if matches!(key.as_str(), "storeDir" | "virtualStoreDir") {
            add(dependency.join(".modules.yaml"), &dependency.join(value));
        }
    }
    let (mut pending, mut left) = (vec![(dependency.to_owned(), 0)], ENTRIES_MAX);
    while let Some((at, depth)) = pending.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten().flatten().take(left) {
            left = left.saturating_sub(1);
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => add(entry.path(), &entry.path()),
                Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => pending.push((entry.path(), depth + 1)),
                _ => {}
            }
        }
    }
}

/// Returns true if commands see the path even without any store.
pub(super) fn is_seen_anyway(target: &Path) -> bool {
    SEEN.iter().any(|folder| target.starts_with(folder))
}

/// Returns the keys and values of a settings file, one pair a line, without quotes. `between` separates key and value.
/// A JSON file is read in the same way.
fn settings(dependency: &Path, name: &str, between: char) -> Vec<(String, String)> {
    let text = regular_file::read_text(&dependency.join(name), Links::Within(dependency), SETTINGS_BYTES_MAX);
    let text = text.unwrap_or_default();
    let plain = |text: &str| text.trim().trim_end_matches(',').trim_matches(['"', '\'']).to_owned();
    text.lines().filter_map(|line| line.split_once(between)).map(|(key, value)| (plain(key), plain(value))).collect()
}

/// Returns the prefix of the Python interpreter that contains a path.
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

/// Returns the store at the root of a file system that contains a path.
fn store_of_disk(target: &Path) -> Option<PathBuf> {
    let folder = target.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == STORE_OF_DISK))?;
    let root = folder.parent()?;
    let device = |path: &Path| Some(fs::metadata(path).ok()?.dev());
    let is_root = root.parent().is_none_or(|above| device(above) != device(root));
    is_root.then(|| folder.to_owned())
}
