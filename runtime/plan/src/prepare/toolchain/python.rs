//! The toolchain `python`: the prefix of the interpreter, which a virtual environment uses too.
//!
//! Packages in the user's home and in a virtual environment are not shown.

use super::machine::{Machine, Variable, prefix_of};
use super::{Missing, ToolchainFiles};
use crate::config::Toolchain;
use glovebox_workspace::regular_file::{self, Links};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum size of the file with pyenv's versions, in bytes.
const VERSION_BYTES_MAX: u64 = 1 << 16;
/// The folder of compiled modules, below the HOME of commands. A module's path in it is that of its source. Compiled
/// modules of the interpreter are kept between stages.
pub(super) const COMPILED: &str = ".cache/pycache";

/// Variables that keep by-products of tools out of the workspace: compiled modules, and caches.
const KEPT_OUT: [(&str, &str); 7] = [
    ("PYTHONPYCACHEPREFIX", "{home}/.cache/pycache"),
    ("PYTEST_ADDOPTS", "-o 'cache_dir={kept}/pytest'"),
    ("MYPY_CACHE_DIR", "{kept}/mypy"),
    ("RUFF_CACHE_DIR", "{kept}/ruff"),
    ("HYPOTHESIS_STORAGE_DIRECTORY", "{kept}/hypothesis"),
    ("PIP_CACHE_DIR", "{kept}/pip"),
    ("UV_CACHE_DIR", "{kept}/uv"),
];

pub(super) fn find(machine: &Machine) -> Result<ToolchainFiles, Missing> {
    let programs =
        machine.folders_with("python3").map(|folder| chosen(machine, &folder).unwrap_or(folder).join("python3"));
    let mut first = None;
    for program in programs {
        if let Some(prefix) = prefix_of(&program).filter(|prefix| is_prefix(prefix)) {
            let env = variables();
            let compiled = vec![prefix.join("lib")];
            return Ok(ToolchainFiles {
                path: vec![prefix.join("bin")],
                shown: vec![prefix],
                compiled,
                env,
                ..ToolchainFiles::default()
            });
        }
        first.get_or_insert(program);
    }
    Err(first.map_or_else(
        || Missing::program(Toolchain::Python),
        |program| Missing {
            why: format!("`{}` starts a python that is installed elsewhere", program.display()),
            help: "put the folder with the real `python3` first in PATH".to_owned(),
        },
    ))
}

/// Returns the variables of commands with Python.
pub(super) fn variables() -> Vec<(&'static str, String)> {
    KEPT_OUT.map(|(name, value)| (name, value.to_owned())).to_vec()
}

fn is_prefix(prefix: &Path) -> bool {
    let mut versions = fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    versions
        .any(|entry| entry.file_name().to_string_lossy().starts_with("python3") && entry.path().join("os.py").is_file())
}

/// Returns the folder of the interpreter that pyenv's shims in `folder` start: the version in PYENV_VERSION, or else the
/// global one.
fn chosen(machine: &Machine, folder: &Path) -> Option<PathBuf> {
    let root = folder.parent().filter(|root| folder.ends_with("shims") && root.join("versions").is_dir())?;
    let global =
        || regular_file::read_text(&root.join("version"), Links::Follow, VERSION_BYTES_MAX).unwrap_or_default();
    let names = machine.text(Variable::PyenvVersion).map_or_else(global, str::to_owned);
    let name = names.split([':', '\n']).next().map(str::trim).filter(|name| !name.is_empty() && !name.contains('/'))?;
    Some(root.join("versions").join(name).join("bin")).filter(|bin| name != ".." && bin.join("python3").is_file())
}
