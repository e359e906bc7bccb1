//! Compiles components in a child process of this program, within limits that the user's environment may set.
//!
//! The limits protect the user's machine from the project's components, so a project cannot set them. An invalid value
//! is an error; it is never ignored.

use glovebox_host::aot;
use glovebox_host::compile::{CompileBounds, Compiler, MEMORY_BOUND, TIME_BOUND};
use glovebox_jail::worker::Worker;
use glovebox_plan::prepare::refusal::{Class, Refusal};
use glovebox_record::LimitUnit;
use std::path::PathBuf;

/// Name of the hidden command that compiles a component; see `commands/compile.rs`.
pub const COMMAND: &str = "compile-component";

/// Environment variable that limits the total size of the compiled components in the cache.
const CACHE_BOUND: &str = "GLOVEBOX_CACHE_BYTES";

/// Returns the compiler of this process. It runs the same program, even if the file of the program was replaced.
pub fn compiler() -> Result<Compiler, Refusal> {
    worker().map(|(worker, bounds)| Compiler::Child(worker, bounds))
}

/// Returns the child process that compiles, and its bounds.
pub fn worker() -> Result<(Worker, CompileBounds), Refusal> {
    let default = CompileBounds::default();
    let milliseconds = amount(TIME_BOUND, LimitUnit::Milliseconds, default.cpu_seconds * 1000)?;
    let memory_bytes = amount(MEMORY_BOUND, LimitUnit::Bytes, default.memory_bytes)?;
    let bounds = CompileBounds { memory_bytes, cpu_seconds: milliseconds.div_ceil(1000).max(1) };
    let worker = Worker { program: PathBuf::from("/proc/self/exe"), arguments: vec![COMMAND.to_owned()] };
    Ok((worker, bounds))
}

/// Returns the maximum total size of the compiled components in the cache, in bytes.
pub fn cache_bytes_max() -> Result<u64, Refusal> {
    amount(CACHE_BOUND, LimitUnit::Bytes, aot::BYTES_MAX)
}

/// Reads an amount from an environment variable. An empty variable is as one that is not set.
pub fn amount(name: &str, unit: LimitUnit, default: u64) -> Result<u64, Refusal> {
    let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else { return Ok(default) };
    let amount = value.to_str().and_then(|text| unit.parse(text)).filter(|amount| *amount > 0);
    amount.ok_or_else(|| {
        let message =
            format!("the environment variable `{name}` is `{}`, which is not an amount", value.to_string_lossy());
        let example = if unit == LimitUnit::Bytes { "1GiB" } else { "2m" };
        Refusal::new(Class::Usage, message).with_help(format!("set it as in `{name}={example}`, or unset it"))
    })
}
