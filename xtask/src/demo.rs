//! `cargo xtask demo`: from a new clone to a finished run of `examples/quickstart`.
//!
//! The exit code is that of the run, and the output of the run is printed unchanged.

use crate::{Step, components, process, repository, wasm_std::StdSource};
use std::process::ExitCode;

const QUICKSTART: &str = "examples/quickstart";

/// Builds the components and the binary, locks the example's plugin and runs the example's pipeline.
pub(crate) fn run() -> Step {
    components::build(StdSource::from_environment()?, &[components::REVIEW_PLUGIN])?;
    process::demand(process::cargo(&repository()).args(["build", "--package", "glovebox"]))?;
    let locked = glovebox(&["plugin", "lock", "--workdir", QUICKSTART])?;
    if locked != ExitCode::SUCCESS {
        return Ok(locked);
    }
    let (pipeline, script) = (format!("{QUICKSTART}/pipeline.dot"), format!("{QUICKSTART}/script.toml"));
    glovebox(&["run", &pipeline, "--workdir", QUICKSTART, "--script", &script])
}

fn glovebox(arguments: &[&str]) -> Step {
    let mut command = process::cargo(&repository());
    command.args(["run", "--quiet", "--package", "glovebox", "--bin", "glovebox", "--"]).args(arguments);
    eprintln!("$ glovebox {}", arguments.join(" "));
    let status = command.status().map_err(|error| format!("cannot start {}: {error}", process::shown(&command)))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map(ExitCode::from).ok_or_else(|| format!("{} ended with {status}", process::shown(&command)))
}
