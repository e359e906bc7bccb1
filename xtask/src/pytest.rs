//! `cargo xtask pytest`: pytest in a virtual environment of its own, for the test of `examples/scenarios-pytest`.
//!
//! It lies below `target/`, outside of every project, as it should for users. Made once; the registry is asked that one time.

use crate::process::demand;
use crate::{Step, repository};
use std::path::PathBuf;
use std::process::Command;

/// The installed release, whose options the example uses.
const PYTEST: &str = "pytest>=8,<10";

/// Returns the folder of the virtual environment.
fn folder() -> PathBuf {
    repository().join("target/pytest")
}

/// Makes the virtual environment where there is none that works.
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
