//! What this machine can enforce, found out once per boot and kept beside the compiled components.
//!
//! The probe is the sandbox's; here is only where its answer is kept and how it reaches the binding of a plan.

use crate::project::cache_dir;
use glovebox_engine::bind::HostCapability;
use glovebox_sandbox::jail::{Capability, probe};

/// File in the cache folder that keeps the answer.
const CAPABILITY_FILE: &str = "sandbox.json";

/// Finds out what can be enforced, from the cache when nothing has changed since.
pub fn capability() -> Capability {
    probe(cache_dir().map(|folder| folder.join(CAPABILITY_FILE)).as_deref())
}

/// The same as a plan is bound by: the tier there is, and why there is no higher one.
pub fn available(found: &Capability) -> HostCapability {
    let joined = |texts: Vec<String>| texts.join("\n");
    HostCapability {
        tier: found.tier,
        degradations: found.degradations.clone(),
        why: joined(found.missing.iter().map(|missing| format!("`{}`: {}", missing.tier, missing.reason)).collect()),
        remedy: found.missing.first().map(|missing| missing.remedy.clone()).unwrap_or_default(),
    }
}
