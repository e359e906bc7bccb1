//! `cargo xtask mutants`: changes the code of a crate in many small ways, one at a time, and reports the changes that no test of the
//! crate detected.
//!
//! `cargo-mutants` does the work. It is installed once below `target/`. Undetected changes that are not a fault of the tests are
//! listed in `.cargo/mutants.toml` with their reasons. There are thousands of changes, each of which takes seconds, so CI does not run
//! this.

use crate::process::demand;
use crate::{Step, repository};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The release of `cargo-mutants`, on whose options this file depends.
const VERSION: &str = "^27";

/// Returns the folder in which the tool is installed.
fn folder() -> PathBuf {
    repository().join("target/mutants")
}

/// Runs the tool on a crate, or only on the named files of the crate.
pub(crate) fn run(package: &str, files: &[String]) -> Step {
    install()?;
    let mut command = Command::new(folder().join("bin/cargo-mutants"));
    command.current_dir(repository()).args(["mutants", "--package", &format!("glovebox-{package}")]);
    command.args(["--no-shuffle", "--minimum-test-timeout", "30", "--output"]).arg(folder().join(package));
    command.env("CARGO_TARGET_DIR", folder().join("build"));
    for file in files {
        command.arg("--file").arg(file);
    }
    let ended = command.status().map_err(|error| format!("failed to start cargo-mutants: {error}"))?;
    Ok(ended.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(u8::try_from(code).unwrap_or(1))))
}

fn install() -> Step<()> {
    let works = Command::new(folder().join("bin/cargo-mutants")).args(["mutants", "--version"]).output();
    if works.is_ok_and(|ended| ended.status.success()) {
        return Ok(());
    }
    let mut command = Command::new("cargo");
    command.args(["install", "--locked", "cargo-mutants", "--version", VERSION, "--root"]).arg(folder());
    demand(&mut command).map_err(|reason| format!("failed to install cargo-mutants: {reason}"))
}
