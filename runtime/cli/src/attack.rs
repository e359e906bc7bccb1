//! `glovebox-attack`: runs the battery of attacks, with the hostile program and the hostile component.

#![forbid(unsafe_code)]

use glovebox_attack::Attackers;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/glovebox-hostile"));
/// Empty, because the hostile program is built for Linux only.
#[cfg(not(target_os = "linux"))]
const PROGRAM: &[u8] = &[];
const COMPONENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/intruder.wasm"));

fn main() -> ExitCode {
    glovebox_attack::main(Attackers { program: PROGRAM, component: COMPONENT })
}
