//! `glovebox doctor --attack`: the whole battery against one tier on this machine.
//!
//! Everything is laid out in a folder of its own below the folder for temporary files, and is gone afterwards. Rows run on
//! several threads; those that would disturb others have a jail for themselves.

use super::component;
use super::jailed::Jailed;
use super::report::AttackReport;
use crate::exit::{Exit, Stop};
use glovebox_host::host::Host;
use glovebox_hostile::battery;
use glovebox_hostile::rows;
use glovebox_sandbox::jail::{Capability, Tier, probe_tier};
use std::path::PathBuf;
use std::time::Instant;

/// The program that attacks.
const HOSTILE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/glovebox-hostile"));

/// Grounds at the same time; most of what they do is waiting.
const WORKERS: usize = 4;

/// Runs every row against a tier.
pub fn attack(tier: Tier, capability: &Capability, host: &Host) -> Result<AttackReport, Stop> {
    let begin = Instant::now();
    let place = Place::new().map_err(|error| Stop::io("make a folder for the attacks", &error))?;
    let table = rows::all();
    let mut judged =
        battery::run(&Jailed::new(tier), HOSTILE, &place.0, &battery::programs(&table, tier.as_str()), WORKERS);
    judged.extend(component::run(host, &place.0, &battery::components(&table), tier.as_str())?);
    let duration_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(AttackReport::new(tier.as_str(), capability, &judged, duration_ms))
}

/// The tier to attack: the one that was asked for, else the best there is.
pub fn tier(asked: Option<Tier>, capability: &Capability) -> Result<Tier, Stop> {
    let best = capability.tier.ok_or_else(|| {
        Stop::new(Exit::Policy, "this machine can confine no command, so there is nothing to attack")
            .with_help("`glovebox doctor` says what it lacks")
    })?;
    match asked {
        Some(tier) if tier > best => {
            let message = format!("this machine has no tier `{tier}`, the best it has is `{best}`");
            Err(Stop::new(Exit::Policy, message).with_help("`glovebox doctor` says what it lacks"))
        }
        // A better one is no proof of it: `bwrap` is a program of its own.
        Some(tier) if tier < best => probe_tier(tier).map(|()| tier).map_err(|missing| {
            let message = format!("this machine has no tier `{tier}`: {}", missing.reason);
            Stop::new(Exit::Policy, message).with_help(missing.remedy)
        }),
        Some(tier) => Ok(tier),
        None => Ok(best),
    }
}

/// A folder that is gone when this is dropped.
struct Place(PathBuf);

impl Place {
    /// By its real path: what is bound by descriptor may have no link on its way.
    fn new() -> std::io::Result<Self> {
        let parent = std::fs::canonicalize(std::env::temp_dir())?;
        let folder = parent.join(format!("glovebox-doctor-{}", ulid::Ulid::generate()));
        std::fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}
