//! `glovebox doctor --attack`: starts `glovebox-attack` for one tier and reads its results.
//!
//! The attacks are in a separate program in the same folder as `glovebox`, so that the program that runs pipelines
//! contains no attacks. They work in a temporary folder, which is removed afterwards.

use super::report::AttackReport;
use crate::compiler;
use crate::exit::{Exit, Stop};
use crate::setup::temporary_folder::TemporaryFolder;
use glovebox_attack::message::{AttackAnswer, AttackRequest, RowResult};
use glovebox_jail::jail::{ProbeReport, probe_tier};
use glovebox_plan::prepare::folders::cache_dir;
use glovebox_record::Tier;
use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Name of the program with the attacks, in the folder of `glovebox`.
const PROGRAM: &str = "glovebox-attack";

/// Runs every attack against a tier.
pub fn attack(tier: Tier, capability: ProbeReport) -> Result<AttackReport, Stop> {
    let begin = Instant::now();
    let folder =
        TemporaryFolder::new("doctor").map_err(|error| Stop::io("make a temporary folder for the attacks", &error))?;
    let rows = start(&request(tier, &folder)?)?;
    let duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(AttackReport::new(tier, capability, rows, duration_ms))
}

fn request(tier: Tier, folder: &TemporaryFolder) -> Result<AttackRequest, Stop> {
    let (worker, bounds) = compiler::worker()?;
    Ok(AttackRequest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tier: tier.as_str().to_owned(),
        folder: folder.path().to_owned(),
        cache_dir: cache_dir(),
        cache_bytes_max: compiler::cache_bytes_max()?,
        // The executable of this process, at a path that another process can open.
        compiler: (format!("/proc/{}/exe", std::process::id()).into(), worker.arguments),
        compile_memory_bytes: bounds.memory_bytes,
        compile_cpu_seconds: bounds.cpu_seconds,
    })
}

fn start(request: &AttackRequest) -> Result<Vec<RowResult>, Stop> {
    let own = std::env::current_exe().map_err(|error| Stop::io("find the folder of glovebox", &error))?;
    let program = own.with_file_name(PROGRAM);
    let argument = serde_json::to_string(request).map_err(|error| failed(&error))?;
    let started = Command::new(&program).arg(argument).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = started.map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(&program),
        _ => Stop::io(format!("start `{}`", program.display()), &error),
    })?;
    match serde_json::from_slice(&output.stdout) {
        Ok(AttackAnswer::Rows(rows)) => Ok(rows),
        Ok(AttackAnswer::Failed(reason)) => Err(Stop::new(Exit::Internal, reason)),
        Err(_) => Err(failed(&format!("`{PROGRAM}` ended with {} and printed no results", output.status))),
    }
}

fn failed(reason: &impl std::fmt::Display) -> Stop {
    Stop::new(Exit::Internal, format!("run the attacks: {reason}"))
}

fn missing(program: &std::path::Path) -> Stop {
    Stop::new(Exit::Usage, format!("cannot find `{}`, the program with the attacks", program.display()))
        .with_help("install it beside `glovebox`; in a source tree: `cargo build --package glovebox`")
}

/// Returns the tier to test: the tier of `--tier`, or else the best tier.
pub fn tier(chosen: Option<Tier>, capability: &ProbeReport) -> Result<Tier, Stop> {
    let best = capability.tier.ok_or_else(|| {
        Stop::new(Exit::Policy, "this machine can confine no command, so it has no sandbox to test")
            .with_help("show what is missing: `glovebox doctor`")
    })?;
    match chosen {
        Some(tier) if tier > best => {
            let message = format!("this machine has no tier `{tier}`; its best tier is `{best}`");
            Err(Stop::new(Exit::Policy, message).with_help("show what is missing: `glovebox doctor`"))
        }
        // A better tier does not imply this tier: `bwrap` needs a separate program.
        Some(tier) if tier < best => probe_tier(tier).map(|()| tier).map_err(|missing| {
            let message = format!("this machine has no tier `{tier}`: {}", missing.reason);
            Stop::new(Exit::Policy, message).with_help(missing.remedy)
        }),
        Some(tier) => Ok(tier),
        None => Ok(best),
    }
}
