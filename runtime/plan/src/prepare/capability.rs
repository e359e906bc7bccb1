//! What this machine can enforce, probed once per boot and cached in the same folder as the compiled components.
//!
//! The sandbox probes the machine. This file caches the result and converts it for the binder.

use super::folders::cache_dir;
use crate::plan::HostCapability;
use glovebox_jail::jail::{ProbeReport, probe};

/// The name of the file with the result, in the cache folder.
const CAPABILITY_FILE: &str = "sandbox.json";

/// Probes the machine, or reads the result from the cache if the machine has not changed.
pub fn find() -> ProbeReport {
    probe(cache_dir().map(|folder| folder.join(CAPABILITY_FILE)).as_deref())
}

/// Converts the result for the binder: the highest tier, and why there is no higher one.
pub fn to_bind(found: &ProbeReport) -> HostCapability {
    let joined = |texts: Vec<String>| texts.join("\n");
    HostCapability {
        tier: found.tier,
        degradations: found.degradations.clone(),
        why: joined(found.missing.iter().map(|missing| format!("`{}`: {}", missing.tier, missing.reason)).collect()),
        remedy: found.missing.first().map(|missing| missing.remedy.clone()).unwrap_or_default(),
    }
}
