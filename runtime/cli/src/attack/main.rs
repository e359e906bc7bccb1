//! `glovebox-attack`: the battery of attacks, started by `glovebox doctor --attack`.
//!
//! A program of its own, so that the program that runs pipelines holds no attacks. It takes one [`AttackRequest`] as its only
//! argument and prints one [`AttackAnswer`]. It chooses no tier, and it reads no configuration and no environment.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![expect(unreachable_pub, reason = "a binary exports nothing; `pub` marks what other modules use")]

#[cfg(target_os = "linux")]
mod battery;
#[cfg(target_os = "linux")]
mod component;
#[cfg(target_os = "linux")]
mod jailed;
mod message;

use message::{AttackAnswer, AttackRequest, RowResult};
use std::process::ExitCode;

/// The version of glovebox that this program is a part of.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    let request = std::env::args().nth(1).and_then(|text| serde_json::from_str::<AttackRequest>(&text).ok());
    let Some(request) = request else {
        eprintln!("error: `glovebox-attack` cannot be used alone\nhelp: run `glovebox doctor --attack`");
        return ExitCode::from(2);
    };
    let answer = attack(&request).map_or_else(AttackAnswer::Failed, AttackAnswer::Rows);
    match serde_json::to_writer(std::io::stdout().lock(), &answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn attack(request: &AttackRequest) -> Result<Vec<RowResult>, String> {
    if request.version != VERSION {
        return Err(format!("`glovebox-attack` has version {VERSION}, `glovebox` has version {}", request.version));
    }
    #[cfg(target_os = "linux")]
    return battery::run(request);
    #[cfg(not(target_os = "linux"))]
    Err("the attacks are system calls of Linux".to_owned())
}
