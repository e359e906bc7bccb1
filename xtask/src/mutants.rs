//! `cargo xtask mutants`: changes the code of a crate in many small ways, one at a time, and tells which change no test of it noticed.
//!
//! `cargo-mutants` does the work, installed once below `target/`. Survivors that are no fault of the tests are named in
//! `.cargo/mutants.toml`, each with its reason. It takes seconds for each of thousands of mutants, so CI does not run it.

use crate::process::demand;
use crate::{Step, repository};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The installed release, whose options this file uses.
const VERSION: &str = "^27";

/// Returns the folder that the tool is installed in.
fn folder() -> PathBuf {
    repository().join("target/mutants")
}

/// Runs it over the named crate, or over the files of it that are named.
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
