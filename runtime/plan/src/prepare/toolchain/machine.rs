//! Where toolchains are found: the user's environment variables, and the folders that they name.

use super::{Missing, ToolchainFiles};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variables of a user on a machine.
#[derive(Debug)]
pub(super) struct Machine(BTreeMap<Variable, OsString>);

/// An environment variable that helps to find a toolchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variable {
    Path,
    Home,
    CargoHome,
    RustupHome,
    RustupToolchain,
    GoRoot,
    GoPath,
    GoModCache,
    PyenvRoot,
    PyenvVersion,
    JavaHome,
    GradleUserHome,
}

/// All variables with their names.
const VARIABLES: [(&str, Variable); 12] = [
    ("PATH", Variable::Path),
    ("HOME", Variable::Home),
    ("CARGO_HOME", Variable::CargoHome),
    ("RUSTUP_HOME", Variable::RustupHome),
    ("RUSTUP_TOOLCHAIN", Variable::RustupToolchain),
    ("GOROOT", Variable::GoRoot),
    ("GOPATH", Variable::GoPath),
    ("GOMODCACHE", Variable::GoModCache),
    ("PYENV_ROOT", Variable::PyenvRoot),
    ("PYENV_VERSION", Variable::PyenvVersion),
    ("JAVA_HOME", Variable::JavaHome),
    ("GRADLE_USER_HOME", Variable::GradleUserHome),
];

impl Machine {
    /// Reads the variables of this process.
    pub(super) fn here() -> Self {
        Self::with(|name| std::env::var_os(name))
    }

    /// Creates a machine with these variables.
    pub(super) fn with(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let named = VARIABLES.into_iter().filter_map(|(name, own)| Some((own, variable(name)?)));
        Self(named.filter(|(_, value)| !value.is_empty()).collect())
    }

    /// Returns the text of a variable.
    pub(super) fn text(&self, variable: Variable) -> Option<&str> {
        self.0.get(&variable)?.to_str()
    }

    /// Returns a folder that a variable names, or else the default folder below HOME. `None` if it does not exist.
    pub(super) fn folder(&self, variable: Variable, below_home: &Path) -> Option<PathBuf> {
        let named = self.0.get(&variable).map(PathBuf::from);
        let default = || Some(self.home()?.join(below_home));
        named.or_else(default).filter(|folder| folder.is_absolute() && folder.is_dir())
    }

    /// Returns the absolute folders of PATH that contain a program of this name, as they are written in PATH.
    pub(super) fn folders_with(&self, program: &str) -> impl Iterator<Item = PathBuf> {
        let path =
            self.0.get(&Variable::Path).map(|path| std::env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
        path.into_iter().filter(move |folder| folder.is_absolute() && folder.join(program).is_file())
    }

    /// Returns an existing folder in the user's home.
    pub(super) fn below_home(&self, name: impl AsRef<Path>) -> Option<PathBuf> {
        self.home().map(|home| home.join(name)).filter(|folder| folder.is_dir())
    }

    fn home(&self) -> Option<PathBuf> {
        self.0.get(&Variable::Home).map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// Refuses a toolchain that could only be shown together with the user's home, or with the whole machine.
    pub(super) fn presentable(&self, found: ToolchainFiles) -> Result<ToolchainFiles, Missing> {
        let home = self.home().map(|home| home.canonicalize().unwrap_or(home));
        let holds = |folder: &&PathBuf| {
            let real = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
            real.parent().is_none() || home.as_ref().is_some_and(|home| home.starts_with(&real))
        };
        match found.shown.iter().find(holds) {
            None => Ok(found),
            Some(folder) => Err(Missing {
                why: format!("it is installed in `{}`, which holds more than a toolchain", folder.display()),
                help: "install it in a folder of its own".to_owned(),
            }),
        }
    }
}

/// Returns the folder two levels above a program, after following symbolic links: `/opt/x` for `/opt/x/bin/node`.
pub(super) fn prefix_of(program: &Path) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    let bin = real.parent().filter(|bin| bin.ends_with("bin"))?;
    bin.parent().map(Path::to_owned)
}
