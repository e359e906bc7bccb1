//! The battery of attacks on the sandbox and on the component host, which `glovebox doctor --attack` starts as
//! `glovebox-attack`.
//!
//! It is a separate program, so that the program that runs pipelines contains no attacks. The two programs share only
//! [`message`]. `glovebox-attack` takes one [`AttackRequest`] as its only argument and prints one [`AttackAnswer`]. It
//! chooses no tier, and it reads no configuration and no environment. `hostile/` is the program that attacks from
//! inside of a jail, and `plugins/intruder` is the component that attacks its host.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(target_os = "linux")]
mod battery;
#[cfg(target_os = "linux")]
mod component;
#[cfg(target_os = "linux")]
mod jailed;
pub mod message;

use message::{AttackAnswer, AttackRequest, RowResult};
use std::process::ExitCode;

/// The version of glovebox that the attacks belong to.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The attacking program and component.
#[derive(Debug, Clone, Copy)]
pub struct Attackers {
    /// The bytes of the program `glovebox-hostile`.
    pub program: &'static [u8],
    /// The bytes of the component `intruder`.
    pub component: &'static [u8],
}

/// The program `glovebox-attack`.
pub fn main(attackers: Attackers) -> ExitCode {
    let request = std::env::args().nth(1).and_then(|text| serde_json::from_str::<AttackRequest>(&text).ok());
    let Some(request) = request else {
        eprintln!("error: `glovebox-attack` cannot be used alone\nhelp: run `glovebox doctor --attack`");
        return ExitCode::from(2);
    };
    let answer = attack(&request, attackers).map_or_else(AttackAnswer::Failed, AttackAnswer::Rows);
    match serde_json::to_writer(std::io::stdout().lock(), &answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn attack(request: &AttackRequest, attackers: Attackers) -> Result<Vec<RowResult>, String> {
    if request.version != VERSION {
        return Err(format!("`glovebox-attack` has version {VERSION}, `glovebox` has version {}", request.version));
    }
    #[cfg(target_os = "linux")]
    return battery::run(request, attackers);
    #[cfg(not(target_os = "linux"))]
    Err("the attacks are system calls of Linux".to_owned())
}
