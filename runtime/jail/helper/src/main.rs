//! The jail helper: builds the sandbox that a policy describes, then runs commands in the sandbox as PID 1.
//!
//! The helper has one thread, no arguments and no environment. Descriptor 0 is the control socket, and when the host
//! closes it, the jail ends. Reading order: `stage` receives the policy, `template` prepares, `build` builds the
//! sandbox from `mounts` and `landlock`, `serve` answers requests, `command` becomes a program. If a part of the
//! sandbox cannot be built, that is a failure: the helper never omits a part. Under the name `subject`, the file is
//! another program, `client`: the command with which a verifier starts the program under test.
#![deny(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(target_os = "linux")]
mod bounds;
#[cfg(target_os = "linux")]
mod build;
#[cfg(target_os = "linux")]
mod bwrap;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod credentials;
#[cfg(target_os = "linux")]
mod device;
#[cfg(target_os = "linux")]
mod entry;
#[cfg(target_os = "linux")]
mod fault;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(target_os = "linux")]
mod reaper;
#[cfg(target_os = "linux")]
mod renames;
#[cfg(target_os = "linux")]
mod root;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod selftest;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod stores;
#[cfg(target_os = "linux")]
mod template;
#[cfg(target_os = "linux")]
mod watch;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    if client::is_called() { client::run() } else { stage::enter() }
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("glovebox-jail: this system is not supported, expected Linux");
    std::process::ExitCode::FAILURE
}
