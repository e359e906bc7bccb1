//! Finds and runs the program that builds a plugin, and says where to get what is missing.

use super::project_file::Build;
use crate::drive;
use crate::exit::{Exit, Stop};
use crate::plugin_language::Language;
use crate::replaced_file;
use crate::terminal::visible;
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// Folders of a project that have the programs of its dependencies. They are searched before the search path.
const LOCAL: [&str; 2] = [".venv/bin", "node_modules/.bin"];

/// Runs the build command of a project. Its output goes to standard error.
///
/// # Errors
/// Exit 2 if a program is missing, and exit 7 if the command fails.
pub fn build(folder: &Path, build: &Build, language: Language) -> Result<(), Stop> {
    let (name, arguments) = build.command.split_first().expect("`plugin.toml` was checked");
    let path = search_path(folder);
    let Some(program) = find(folder, &path, name) else {
        let message = format!("`{}` is not installed, or not on the search path", visible::line(name));
        return Err(Stop::new(Exit::Usage, message).with_help(where_to_get(language)));
    };
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(|error| Stop::io("open standard error", &error))?;
    if let Some(parent) = folder.join(build.output.as_str()).parent() {
        replaced_file::create_folder_below(folder, parent)?;
    }
    let mut command = Command::new(&program);
    command.args(arguments).current_dir(folder).env("PATH", &path).stdin(Stdio::null()).stdout(output);
    let child = command.spawn().map_err(|error| Stop::io(format!("start `{}`", program.display()), &error))?;
    let ended = run_to_end(child)?.status;
    if ended.success() {
        return Ok(());
    }
    if let Some(missing) = missing_part(&program, &path, language) {
        return Err(Stop::new(Exit::Usage, missing).with_help(where_to_get(language)));
    }
    let message = format!("the build failed: `{}` ended with {ended}", visible::line(&build.command.join(" ")));
    Err(Stop::new(Exit::Plugin, message))
}

/// Does work on another thread, and returns its result.
///
/// # Errors
/// Exit 130 or 143 if a signal came before the end of the work, which then ends with this process.
pub fn until_signal<T: Send + 'static>(work: impl FnOnce() -> Result<T, Stop> + Send + 'static) -> Result<T, Stop> {
    drive::block_on_within(Duration::ZERO, async move {
        let (mut interrupt, mut terminate) = signals()?;
        tokio::select! {
            result = tokio::task::spawn_blocking(work) => {
                result.map_err(|error| Stop::new(Exit::Internal, error.to_string()))?
            }
            _ = interrupt.recv() => Err(Stop::silent(Exit::Interrupted)),
            _ = terminate.recv() => Err(Stop::silent(Exit::Terminated)),
        }
    })?
}

/// Returns the signals that end a command. From now on, they no longer end the process at once.
fn signals() -> Result<(Signals, Signals), Stop> {
    let on = |kind: SignalKind| signal(kind).map_err(|error| Stop::io("listen for signals", &error));
    Ok((on(SignalKind::interrupt())?, on(SignalKind::terminate())?))
}

/// Waits for a program, and returns its piped output. A signal to this process is passed on.
///
/// # Errors
/// Exit 130 or 143 if a signal came before the program ended.
pub fn run_to_end(child: Child) -> Result<Output, Stop> {
    let process = Pid::from_child(&child);
    drive::block_on(async move {
        let (mut interrupt, mut terminate) = signals()?;
        let mut ended = tokio::task::spawn_blocking(move || child.wait_with_output());
        let mut stopped = None;
        loop {
            let (sent, exit) = tokio::select! {
                output = &mut ended => {
                    let output = output.map_err(|error| Stop::new(Exit::Internal, error.to_string()))?;
                    return match stopped {
                        Some(exit) => Err(Stop::silent(exit)),
                        None => output.map_err(|error| Stop::io("wait for a program", &error)),
                    };
                }
                _ = interrupt.recv() => (Signal::INT, Exit::Interrupted),
                _ = terminate.recv() => (Signal::TERM, Exit::Terminated),
            };
            stopped = Some(exit);
            // It may have ended meanwhile.
            let _ = kill_process(process, sent);
        }
    })?
}

/// Returns the search path of the build: the project's own programs, then those of the author.
pub fn search_path(folder: &Path) -> OsString {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let own = LOCAL.iter().map(|local| folder.join(local));
    let author = env::var_os("PATH").unwrap_or_default();
    let all: Vec<PathBuf> = own.chain(env::split_paths(&author)).collect();
    env::join_paths(all).unwrap_or(author)
}

fn find(folder: &Path, path: &OsStr, name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        let program = std::path::absolute(folder.join(name)).ok()?;
        return program.is_file().then_some(program);
    }
    env::split_paths(path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Asks the compiler which part of its target is missing, after a build failed. `None` if it has all of them.
fn missing_part(program: &Path, path: &OsStr, language: Language) -> Option<String> {
    let ask = |program: &OsStr, words: &[&str]| {
        let printed = Command::new(program).args(words).env("PATH", path).stderr(Stdio::null()).output().ok()?;
        let answer = String::from_utf8_lossy(&printed.stdout).trim().to_owned();
        // The build command may be another program than the compiler, which does not know these flags.
        (printed.status.success() && !answer.is_empty()).then(|| PathBuf::from(answer))
    };
    match language {
        Language::Rust => {
            let libraries = ask("rustc".as_ref(), &["--print", "target-libdir", "--target", "wasm32-wasip2"])?;
            let is_std = |name: &OsStr| name.to_string_lossy().starts_with("libstd-");
            let has_std = libraries
                .read_dir()
                .is_ok_and(|mut found| found.any(|entry| entry.is_ok_and(|entry| is_std(&entry.file_name()))));
            let is_elsewhere = env::var_os("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS").is_some();
            (!has_std && !is_elsewhere).then(|| "the Rust target `wasm32-wasip2` is not installed".to_owned())
        }
        Language::C => {
            // For a file that it does not find, clang prints the name that it was asked for.
            let start = ask(program.as_os_str(), &["--target=wasm32-wasi", "--print-file-name=crt1-reactor.o"])?;
            let linker = ask(program.as_os_str(), &["--target=wasm32-wasi", "--print-prog-name=wasm-ld"])?;
            if !start.is_file() {
                return Some("the C library for `wasm32-wasi` is not installed".to_owned());
            }
            (!linker.is_file() && !env::split_paths(path).any(|folder| folder.join(&linker).is_file()))
                .then(|| "the linker `wasm-ld` is not installed".to_owned())
        }
        Language::JavaScript | Language::Python => None,
    }
}

/// Returns where to get the tools of a language.
fn where_to_get(language: Language) -> &'static str {
    match language {
        Language::Rust => "install Rust from https://rustup.rs, then the target: `rustup target add wasm32-wasip2`",
        Language::JavaScript => "install Node.js 18 or newer, then run `npm install` in the project",
        Language::Python => {
            "install Python 3.10 or newer, then run in the project:\n\
             python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"
        }
        Language::C => {
            "Debian and Ubuntu: `apt install clang lld wasi-libc libclang-rt-dev-wasm32`; elsewhere the `clang` of the WASI SDK: \
             https://github.com/WebAssembly/wasi-sdk"
        }
    }
}
