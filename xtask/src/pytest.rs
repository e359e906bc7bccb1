//! `cargo xtask pytest`: installs pytest in a separate virtual environment, for the test of `examples/scenarios-pytest`.
//!
//! The environment is below `target/` and outside of every project, as it should be for users. It is created once, and only then is
//! the package registry contacted.

use crate::process::demand;
use crate::{Step, repository};
use std::path::PathBuf;
use std::process::Command;

/// The release of pytest, on whose options the example depends.
const PYTEST: &str = "pytest>=8,<10";

/// Returns the folder of the virtual environment.
fn folder() -> PathBuf {
    repository().join("target/pytest")
}

/// Creates the virtual environment, unless there is one that works.
pub(crate) fn prepare() -> Step<()> {
    let folder = folder();
    let works = Command::new(folder.join("bin/pytest")).arg("--version").output();
    if works.is_ok_and(|ended| ended.status.success()) {
        return Ok(());
    }
    let failed = |reason| {
        format!(
            "failed to make pytest in `{}`: {reason}\nhelp: install python3 with its module venv (Debian: `apt install python3-venv`), \
             and run this once with a network",
            folder.display()
        )
    };
    demand(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder)).map_err(failed)?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYTEST];
    demand(Command::new(folder.join("bin/python3")).args(pip)).map_err(failed)
}
