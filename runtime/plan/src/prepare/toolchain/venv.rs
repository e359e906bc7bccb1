//! `[exec] venv`: a Python environment outside of the project, such as those of Poetry and conda.
//!
//! The environment and the interpreter to which it links are shown read-only. The programs of the environment come
//! first in PATH.

use super::machine::{Machine, prefix_of};
use super::{Missing, ToolchainFiles, python};
use crate::prepare::survey::is_environment;
use std::path::Path;

/// Folders of the system, which every command sees.
const SYSTEM: [&str; 3] = ["/usr", "/bin", "/lib"];

/// Finds a Python environment by its absolute path.
pub(super) fn find(machine: &Machine, folder: &Path) -> Result<ToolchainFiles, Missing> {
    let shown = folder.display();
    let recreate = || "create it again with the tool that made it, or remove `venv`".to_owned();
    if !folder.is_dir() {
        return Err(Missing { why: format!("there is no folder `{shown}`"), help: recreate() });
    }
    if !is_environment(folder) {
        return Err(Missing {
            why: format!("`{shown}` is not an environment of Python: it has neither `pyvenv.cfg` nor `conda-meta/`"),
            help: "name the folder that contains `bin/python`: `python -c 'import sys; print(sys.prefix)'` prints it"
                .to_owned(),
        });
    }
    let python = folder.join("bin/python");
    let Ok(real) = python.canonicalize() else {
        return Err(Missing { why: format!("`{}` leads to no interpreter", python.display()), help: recreate() });
    };
    let mut found = ToolchainFiles::below(folder);
    // An environment without an interpreter of its own links to that of the machine.
    let interpreter = prefix_of(&real).filter(|prefix| !folder.canonicalize().is_ok_and(|own| prefix.starts_with(own)));
    found.shown.extend(interpreter.filter(|prefix| !SYSTEM.iter().any(|system| prefix.starts_with(system))));
    found.compiled = vec![folder.join("lib")];
    found.env = python::variables();
    let name = if folder.join("conda-meta").is_dir() { "CONDA_PREFIX" } else { "VIRTUAL_ENV" };
    found.env.push((name, folder.display().to_string()));
    machine.presentable(found)
}
