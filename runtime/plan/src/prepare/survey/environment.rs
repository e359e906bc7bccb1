//! Python environments: in the project, and in the folders in which tools keep them for a project.
//!
//! Nothing is executed. An environment outside of the project is used only if its tool records that it belongs to this
//! project, if the project names it, or if it is active in the shell of the user.

use super::folder::{Folder, is_plain};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use glovebox_workspace::regular_file::{self, Links};
use ring::digest::{SHA256, digest};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Usual names of the environment of a project.
const USUAL: [&str; 3] = [".venv", "venv", "env"];
/// Folders of tools with one environment for each of their tasks.
const MANAGED: [(&str, Tool); 3] = [(".tox", Tool::Tox), (".nox", Tool::Nox), (".hatch", Tool::Hatch)];
/// Folders that are not searched for environments.
const NOT_SEARCHED: [&str; 5] = [".git", ".glovebox", "node_modules", "target", "__pycache__"];
/// Folders of the home and of the system in which conda is installed, each with a folder `envs`.
const CONDA_HOMES: [&str; 7] =
    ["miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda", ".local/share/mamba"];
const CONDA_SYSTEM: [&str; 4] = ["/opt/conda", "/opt/miniconda3", "/opt/anaconda3", "/opt/miniforge3"];
/// Maximum number of entries of a folder that are read.
const ENTRIES_MAX: usize = 1_000;
/// Maximum size of the file in which a tool records the project of an environment, in bytes.
const RECORD_BYTES_MAX: u64 = 1 << 12;
/// Number of characters of a hash of the project's path in the names of Poetry and Hatch.
const HASH_CHARS: usize = 8;

/// The tool that creates an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Pip,
    Uv,
    Poetry,
    Pipenv,
    Pdm,
    Conda,
    Hatch,
    Tox,
    Nox,
}

impl Tool {
    /// Returns the name of the tool.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Pip => "pip",
            Self::Uv => "uv",
            Self::Poetry => "poetry",
            Self::Pipenv => "pipenv",
            Self::Pdm => "pdm",
            Self::Conda => "conda",
            Self::Hatch => "hatch",
            Self::Tox => "tox",
            Self::Nox => "nox",
        }
    }

    /// Returns the command that creates the environment with the dependencies of the tests.
    pub(super) fn install(self) -> &'static str {
        match self {
            Self::Pip => "python3 -m venv .venv && .venv/bin/pip install pytest",
            Self::Uv => "uv sync",
            Self::Poetry => "poetry install",
            Self::Pipenv => "pipenv install --dev",
            Self::Pdm => "pdm install",
            Self::Conda => "conda env create",
            Self::Hatch => "hatch env create",
            Self::Tox => "tox run --notest",
            Self::Nox => "nox --install-only",
        }
    }
}

/// A Python environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The place of the environment.
    pub place: Place,
    /// The tool that created the environment, if the place shows the tool.
    pub(super) tool: Option<Tool>,
    /// The folder of the environment on this machine.
    path: PathBuf,
}

/// The place of an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the project: the path from the folder of the part.
    Project(String),
    /// Outside of the project: an absolute path.
    Machine(String),
}

impl Environment {
    /// Returns true if a package is installed.
    pub(super) fn has(&self, package: &str) -> bool {
        self.packages().iter().any(|packages| packages.join(package).is_dir())
    }

    /// Returns true if a copy of a package in `src/` is installed, so that tests would not see a change of the source.
    pub(super) fn has_copy_of_sources(&self, folder: &Folder) -> bool {
        let sources = folder.at("src/").entries();
        sources.iter().filter(|entry| entry.is_folder()).any(|entry| self.has(entry.name.trim_end_matches('/')))
    }

    fn packages(&self) -> Vec<PathBuf> {
        let versions = fs::read_dir(self.path.join("lib")).into_iter().flatten().flatten().take(ENTRIES_MAX);
        versions.map(|version| version.path().join("site-packages")).filter(|packages| packages.is_dir()).collect()
    }
}

/// Returns true for the folder of an environment.
pub(in crate::prepare) fn is_environment(path: &Path) -> bool {
    path.join("pyvenv.cfg").is_file() || path.join("conda-meta").is_dir()
}

/// Returns the paths of the environments in a folder of the project, relative to it: the usual one first.
pub(in crate::prepare) fn in_project(folder: &Path) -> Vec<String> {
    let found = candidates(folder).into_iter().map(|(name, _)| name);
    found.filter(|name| is_environment(&folder.join(name))).collect()
}

/// Returns the paths at which an environment in a folder of the project could be.
fn candidates(folder: &Path) -> Vec<(String, Option<Tool>)> {
    let mut found: Vec<(String, Option<Tool>)> = USUAL.map(|name| (name.to_owned(), None)).into();
    for (name, tool) in MANAGED {
        let mut inner = folders_in(&folder.join(name));
        // Environments of linters and documents have other names.
        inner.sort_by_key(|inner| !(inner.starts_with("py") || inner.starts_with("test")));
        found.extend(inner.into_iter().map(|inner| (format!("{name}/{inner}"), Some(tool))));
    }
    for name in folders_in(folder) {
        let is_known = |path: &str| USUAL.contains(&path) || MANAGED.iter().any(|(managed, _)| *managed == path);
        if !is_known(&name) {
            let inner = folders_in(&folder.join(&name));
            let below: Vec<_> = inner.into_iter().map(|inner| (format!("{name}/{inner}"), None)).collect();
            found.push((name, None));
            found.extend(below);
        }
    }
    found
}

/// Returns the names of the folders in a folder, sorted. A name may begin with a dot, but is plain otherwise.
fn folders_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
    let is_wanted = |name: &String| !NOT_SEARCHED.contains(&name.as_str()) && is_plain(name.trim_start_matches('.'));
    let mut names: Vec<String> = names.filter(is_wanted).collect();
    names.sort();
    names
}

/// The folders of the user in which tools keep environments, and the active environments.
#[derive(Debug, Default)]
pub(super) struct User {
    home: Option<PathBuf>,
    poetry: Vec<PathBuf>,
    hatch: Option<PathBuf>,
    shared: Vec<PathBuf>,
    conda: Vec<PathBuf>,
    active: Vec<PathBuf>,
}

impl User {
    /// Reads the folders from the environment variables of a user. A relative path is ignored.
    pub(super) fn new(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let named = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = named("HOME");
        let below = |path: &str| home.as_ref().map(|home| home.join(path));
        let data = named("XDG_DATA_HOME").or_else(|| below(".local/share"));
        let cache = named("XDG_CACHE_HOME").or_else(|| below(".cache"));
        let poetry_cache = named("POETRY_CACHE_DIR").or_else(|| Some(cache?.join("pypoetry")));
        let poetry = [named("POETRY_VIRTUALENVS_PATH"), poetry_cache.map(|cache| cache.join("virtualenvs"))];
        let hatch = named("HATCH_DATA_DIR").or_else(|| Some(data.as_ref()?.join("hatch")));
        let shared = [named("WORKON_HOME"), data.as_ref().map(|data| data.join("virtualenvs")), below(".virtualenvs")];
        let conda_prefix = named("CONDA_PREFIX");
        let roots = CONDA_HOMES.into_iter().filter_map(&below);
        let roots = roots.chain(CONDA_SYSTEM.iter().map(PathBuf::from)).chain(named("MAMBA_ROOT_PREFIX"));
        let beside = conda_prefix.as_ref().and_then(|prefix| prefix.parent()).map(Path::to_owned);
        let active = [named("VIRTUAL_ENV"), conda_prefix.filter(|prefix| is_in_envs(prefix))];
        Self {
            poetry: poetry.into_iter().flatten().collect(),
            hatch,
            shared: shared.into_iter().flatten().collect(),
            conda: roots
                .map(|root| root.join("envs"))
                .chain(beside.filter(|folder| folder.ends_with("envs")))
                .collect(),
            active: active.into_iter().flatten().collect(),
            home,
        }
    }

    /// Returns the environments of a folder of the project, best first.
    pub(super) fn environments(&self, folder: &Folder, tool: Tool) -> Vec<Environment> {
        let mut found = Vec::new();
        for (name, tool) in candidates(folder.path()) {
            let path = folder.path().join(&name);
            found.extend(is_environment(&path).then_some(Environment { place: Place::Project(name), tool, path }));
        }
        let Ok(project) = folder.path().canonicalize() else { return found };
        let outside = [
            (Tool::Poetry, if tool == Tool::Poetry { self.of_poetry(&project) } else { Vec::new() }),
            (Tool::Hatch, self.of_hatch(&project)),
            (Tool::Conda, self.of_conda(folder)),
            (tool, self.of_record(&project)),
            (tool, self.active.clone()),
        ];
        for (tool, path) in
            outside.into_iter().flat_map(|(tool, paths)| paths.into_iter().map(move |path| (tool, path)))
        {
            let place = path.to_str().filter(|text| is_plain_path(text)).map(str::to_owned);
            let is_usable = is_environment(&path) && !path.starts_with(&project) && Some(&path) != self.home.as_ref();
            if let Some(text) =
                place.filter(|_| is_usable && !found.iter().any(|known: &Environment| known.path == path))
            {
                found.push(Environment { place: Place::Machine(text), tool: Some(tool), path });
            }
        }
        found
    }

    /// Poetry names the folder `<project>-<hash of the path>-py<version>`. The newest version is first.
    fn of_poetry(&self, project: &Path) -> Vec<PathBuf> {
        let wanted = format!("-{}-py", hash(project));
        let inner =
            self.poetry.iter().flat_map(|folder| folders_in(folder).into_iter().map(move |name| (folder, name)));
        let mut found: Vec<PathBuf> =
            inner.filter(|(_, name)| name.contains(&wanted)).map(|(folder, name)| folder.join(name)).collect();
        found.sort_by_key(|path| std::cmp::Reverse(version(path)));
        found
    }

    /// Hatch uses `env/virtual/<project>/<hash of the path>/<environment>`.
    fn of_hatch(&self, project: &Path) -> Vec<PathBuf> {
        let Some(root) = self.hatch.as_ref().map(|hatch| hatch.join("env/virtual")) else { return Vec::new() };
        let projects = folders_in(&root).into_iter().map(|name| root.join(name).join(hash(project)));
        projects.flat_map(|own| folders_in(&own).into_iter().map(move |name| own.join(name))).collect()
    }

    /// `environment.yml` names the environment.
    fn of_conda(&self, folder: &Folder) -> Vec<PathBuf> {
        let text = CONDA_FILES.into_iter().map(|name| folder.text(name)).find(|text| !text.is_empty());
        let text = text.unwrap_or_default();
        let name =
            text.lines().find_map(|line| line.strip_prefix("name:")).map(|name| name.trim().trim_matches(['"', '\'']));
        let Some(name) = name.filter(|name| is_plain(name)) else { return Vec::new() };
        self.conda.iter().map(|folder| folder.join(name)).collect()
    }

    /// Pipenv and virtualenvwrapper write the path of the project into the file `.project` of the environment.
    fn of_record(&self, project: &Path) -> Vec<PathBuf> {
        let inner =
            self.shared.iter().flat_map(|folder| folders_in(folder).into_iter().map(move |name| folder.join(name)));
        let is_own = |path: &PathBuf| {
            let text = regular_file::read_text(&path.join(".project"), Links::Within(path), RECORD_BYTES_MAX);
            text.is_ok_and(|text| Path::new(text.trim()) == project)
        };
        inner.filter(is_own).collect()
    }
}

/// Files that describe an environment of conda.
pub(super) const CONDA_FILES: [&str; 2] = ["environment.yml", "environment.yaml"];

/// Returns true for an environment of conda with a name. The base environment belongs to no project.
fn is_in_envs(prefix: &Path) -> bool {
    prefix.parent().is_some_and(|folder| folder.ends_with("envs"))
}

/// Returns the beginning of the hash of a project's path, as Poetry and Hatch compute it.
fn hash(project: &Path) -> String {
    let mut text = URL_SAFE_NO_PAD.encode(digest(&SHA256, project.as_os_str().as_encoded_bytes()));
    text.truncate(HASH_CHARS);
    text
}

/// Returns the version at the end of a name: 3 and 12 for `x-py3.12`.
fn version(path: &Path) -> Vec<u32> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let version = name.rsplit_once("-py").map(|(_, version)| version.to_owned()).unwrap_or_default();
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}

/// Returns true for an absolute path that needs no escapes in TOML and contains no separator of PATH.
fn is_plain_path(text: &str) -> bool {
    text.starts_with('/') && text.chars().all(|character| character.is_alphanumeric() || "/._-+@ ".contains(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_poetry_and_hatch() {
        // base64.urlsafe_b64encode(hashlib.sha256(b"/home/dev/clock").digest())[:8]
        assert_eq!(hash(Path::new("/home/dev/clock")), "DHdpv70x");
        assert_eq!(version(Path::new("/x/clock-AbCdEfGh-py3.12")), [3, 12]);
    }

    /// Creates a project and a home with environments, and returns the places that are found outside of the project.
    fn outside(tool: Tool, environments: impl Fn(&Path) -> Vec<String>) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let project = root.join("project");
        fs::create_dir_all(&project).unwrap();
        for environment in environments(&project) {
            fs::create_dir_all(root.join("home").join(environment).join("conda-meta")).unwrap();
        }
        let user = User::new(&|name| (name == "HOME").then(|| root.join("home").into()));
        let found = user.environments(&Folder::root(&project), tool).into_iter();
        let places = found.map(|environment| match environment.place {
            Place::Machine(path) => path.strip_prefix(root.join("home").to_str().unwrap()).unwrap().to_owned(),
            Place::Project(path) => panic!("{path}"),
        });
        places.collect()
    }

    #[test]
    fn an_environment_of_another_project_is_not_used() {
        let poetry = ".cache/pypoetry/virtualenvs";
        let of_poetry = |project: &Path| {
            let own = hash(project);
            vec![
                format!("{poetry}/clock-{own}-py3.9"),
                format!("{poetry}/clock-{own}-py3.12"),
                format!("{poetry}/clock-AbCdEfGh-py3.13"),
            ]
        };
        let newest_first = outside(Tool::Poetry, of_poetry);
        assert!(newest_first.len() == 2 && newest_first[0].ends_with("py3.12"), "{newest_first:?}");
        assert_eq!(outside(Tool::Uv, of_poetry), [] as [&str; 0], "the project does not use Poetry");
        let hatch = ".local/share/hatch/env/virtual";
        let of_hatch = |project: &Path| {
            vec![format!("{hatch}/clock/{}/clock", hash(project)), format!("{hatch}/clock/AbCdEfGh/clock")]
        };
        assert_eq!(outside(Tool::Hatch, of_hatch).len(), 1);
    }
}
