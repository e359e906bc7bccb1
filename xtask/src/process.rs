//! Runs other programs, and reports which one failed.
//!
//! A nested cargo does not get the outer call's target directory and flags. With a shared target directory, it would wait for the
//! outer call's lock.

use crate::Step;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Separator of the flags in `CARGO_ENCODED_RUSTFLAGS`, which allows spaces in paths.
const FLAG_SEPARATOR: &str = "\u{1f}";

/// Returns the command of the cargo that runs this program, in a folder and with the user's environment.
pub(crate) fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Returns the command of a nested cargo, with its own target directory and exactly these flags for the target's crates.
pub(crate) fn nested_cargo(folder: &Path, rustflags: &[String]) -> Command {
    let mut command = cargo(folder);
    for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "RUSTFLAGS", "CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS"] {
        command.env_remove(name);
    }
    if rustflags.is_empty() {
        command.env_remove("CARGO_ENCODED_RUSTFLAGS");
    } else {
        command.env("CARGO_ENCODED_RUSTFLAGS", rustflags.join(FLAG_SEPARATOR));
    }
    command
}

/// Runs a program with this program's standard streams, and returns an error unless it succeeds.
pub(crate) fn demand(command: &mut Command) -> Step<()> {
    let status = command.status().map_err(|error| format!("cannot start {}: {error}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", shown(command))) }
}

/// Runs a program and returns its standard output as text. Its standard error is passed through.
pub(crate) fn capture(command: &mut Command) -> Step<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", shown(command)))?;
    if !output.status.success() {
        return Err(format!("{} ended with {}", shown(command), output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{} printed something that is not UTF-8", shown(command)))
}

/// Returns a command in the form in which a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(OsStr::to_string_lossy);
    format!("`{}`", words.collect::<Vec<_>>().join(" "))
}

/// Adds the path to a file system error.
pub(crate) fn at<T>(path: &Path, result: std::io::Result<T>) -> Step<T> {
    result.map_err(|error| format!("`{}`: {error}", path.display()))
}
