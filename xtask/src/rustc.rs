//! The compiler that cargo uses, and information about it.

use crate::{Step, process};
use std::process::Command;

/// Target of every component.
pub(crate) const TARGET: &str = "wasm32-wasip2";

/// Returns the command of the compiler that cargo uses.
pub(crate) fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Returns one field of `rustc -vV`, such as `release` or `commit-hash`.
pub(crate) fn rustc_field(name: &str) -> Step<String> {
    let printed = process::capture(rustc().arg("-vV"))?;
    let value = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value.map(str::to_owned).ok_or_else(|| format!("`rustc -vV` prints no `{name}`"))
}
