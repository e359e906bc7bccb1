//! `cargo xtask moto`: installs moto, a server with the protocol of S3, in an environment of its own, for the tests of
//! blobs in object stores.
//!
//! The environment is below `target/`. It is created once, and only then is the package registry contacted.

use crate::process::demand;
use crate::{Step, repository};
use std::process::Command;

/// The package with its server.
const MOTO: &str = "moto[server]==5.2.5";

/// Creates the environment, unless there is one that works.
pub(crate) fn prepare() -> Step<()> {
    let folder = repository().join("target/moto");
    let works = Command::new(folder.join("bin/moto_server")).arg("--help").output();
    if works.is_ok_and(|ended| ended.status.success()) {
        return Ok(());
    }
    let failed = |reason| {
        format!(
            "failed to install moto in `{}`: {reason}\nhelp: install python3 with its module venv (Debian: \
             `apt install python3-venv`), and run this once with a network",
            folder.display()
        )
    };
    demand(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder)).map_err(failed)?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", MOTO];
    demand(Command::new(folder.join("bin/python3")).args(pip)).map_err(failed)
}
