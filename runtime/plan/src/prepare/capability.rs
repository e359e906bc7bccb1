//! What this machine can enforce, probed once per boot and cached in the same folder as the compiled components.
//!
//! The sandbox probes the machine. This file caches the result and converts it for the binder.

use super::folders::cache_dir;
use super::refusal::{Class, Refusal};
use super::toolchain;
use crate::plan::{HostCapability, ProgramFolders};
use glovebox_jail::jail::{ProbeReport, probe, probe_tier};
use glovebox_record::placement::ProgramName;
use glovebox_record::{Arch, Label, MachineFacts, Tier};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

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

/// Returns what this machine has, for the needs of stages: the labels that its operator names, and the architecture and the
/// tier that were found. A machine whose commands run without a sandbox has no tier.
pub fn facts(labels: BTreeSet<Label>, tier: Option<Tier>) -> MachineFacts {
    MachineFacts { labels, arch: Arch::parse(std::env::consts::ARCH), tier, programs: BTreeMap::new() }
}

/// Looks for programs where commands find them: in the system's folders and in `folders`.
pub fn look_for<'a>(
    programs: impl IntoIterator<Item = &'a ProgramName>,
    folders: &ProgramFolders,
) -> BTreeMap<ProgramName, bool> {
    let ProgramFolders { toolchains, path, venv } = folders;
    let venv = venv.iter().map(|venv| Path::new(venv).join("bin"));
    let further: Vec<PathBuf> = path.iter().map(PathBuf::from).chain(venv).collect();
    let is_here = |program: &ProgramName| toolchain::finds(program.as_str(), toolchains, &further);
    programs.into_iter().map(|program| (program.clone(), is_here(program))).collect()
}

/// Limits the result to a lower tier, which `--tier` chose, as if the machine had no higher tier.
///
/// # Errors
///
/// Fails if the tier is lower than the operator requires, or if the machine does not have it.
pub fn limited(found: ProbeReport, tier: Tier, require: Tier) -> Result<ProbeReport, Refusal> {
    let refused = |message: String, help: String| Err(Refusal::new(Class::Policy, message).with_help(help));
    if tier < require {
        let message = format!("`--tier {tier}` is lower than the tier `{require}`, which the run requires");
        return refused(message, format!("set `require = \"{tier}\"` under `[sandbox]` in glovebox.toml to accept it"));
    }
    match found.tier {
        Some(best) if tier == best => Ok(found),
        // A better tier does not imply this one: `bwrap` needs a separate program.
        Some(best) if tier < best => match probe_tier(tier) {
            Ok(()) => Ok(ProbeReport { tier: Some(tier), ..found }),
            Err(missing) => refused(format!("this machine has no tier `{tier}`: {}", missing.reason), missing.remedy),
        },
        _ => {
            let missing = found.missing.into_iter().find(|missing| missing.tier == tier);
            let (reason, help) = missing.map(|missing| (missing.reason, missing.remedy)).unwrap_or_default();
            refused(format!("this machine has no tier `{tier}`: {reason}"), help)
        }
    }
}
