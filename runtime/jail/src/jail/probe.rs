//! Determines by trial what this machine can enforce.
//!
//! Feature flags are not reliable: a call may succeed and the next step fail, or a feature may be compiled in but
//! disabled. For each tier, best first, the probe therefore opens a whole jail. A program in the jail tries actions
//! that must fail and actions that must work, with witnesses outside. The machine supports a tier only if the program
//! and the witnesses confirm it.

mod cache;
mod remedy;
mod witness;

use super::run::{Invocation, Streams, run_request};
use super::{Jail, JailError, JailSetting, JailStatus, SelfTestCheck};
use crate::jail::ExecPolicy;
use glovebox_jail_helper::policy::Source;
use glovebox_jail_helper::wire::{Command, Program, Request};
use glovebox_record::{Limits, Network, Tier};
use glovebox_workspace::tree::remove_all;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use witness::Witness;

/// Maximum duration of the self-test.
const TEST_MAX: Duration = Duration::from_secs(30);

/// The confinement that this machine can enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeReport {
    /// The best tier whose self-test passed; `None` if this machine cannot confine commands.
    pub tier: Option<Tier>,
    /// The Landlock ABI in force in the tier; 0 if Landlock is not used.
    pub landlock_abi: u32,
    /// Guarantees of the tier that are weaker on this machine, such as `memory=soft`.
    pub degradations: Vec<String>,
    /// The better tiers that this machine does not support, best first.
    pub missing: Vec<MissingTier>,
    /// Results of the self-test in the tier.
    pub checks: Vec<SelfTestCheck>,
}

/// A tier that this machine does not support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissingTier {
    /// The tier.
    pub tier: Tier,
    /// The step that failed, and the error of the system.
    pub reason: String,
    /// Lines to paste, or a description of what to change.
    pub remedy: String,
}

/// Finds out what this machine can enforce. Stores the best result in `cache`, for this boot, kernel, user, helper,
/// control group and user namespace. A worse result is never stored, so that a remedy takes effect at once. Blocks for
/// a few hundred milliseconds at most.
pub fn probe(cache: Option<&Path>) -> ProbeReport {
    if !cfg!(target_os = "linux") {
        return unsupported();
    }
    if let Some(known) = cache.and_then(cache::read) {
        return known;
    }
    let mut missing = Vec::new();
    for tier in Tier::CONFINING {
        match attempt(tier, cache.and_then(Path::parent)) {
            Ok((status, checks)) => {
                let JailStatus { landlock_abi, degradations, .. } = status;
                let found = ProbeReport { tier: Some(tier), landlock_abi, degradations, missing, checks };
                if let (Some(Tier::Full), Some(cache)) = (found.tier, cache)
                    && let Err(error) = cache::write(cache, &found)
                {
                    tracing::debug!(%error, "the result of the probe is not kept");
                }
                return found;
            }
            Err(failure) => missing.push(failure.into_missing(tier)),
        }
    }
    ProbeReport { tier: None, landlock_abi: 0, degradations: Vec::new(), missing, checks: Vec::new() }
}

/// Finds out whether this machine can enforce this tier. Blocks as long as [`probe`], and stores nothing.
///
/// # Errors
/// Returns the step that failed, and the remedy.
pub fn probe_tier(tier: Tier) -> Result<(), MissingTier> {
    if !cfg!(target_os = "linux") {
        return Err(unsupported().missing.remove(0));
    }
    attempt(tier, None).map(drop).map_err(|failure| failure.into_missing(tier))
}

/// The step at which a probe failed, and the error of the system.
#[derive(Debug)]
struct ProbeFailure(String);

impl ProbeFailure {
    fn into_missing(self, tier: Tier) -> MissingTier {
        MissingTier { tier, remedy: remedy::remedy_for(tier, &self), reason: self.0 }
    }
}

fn unsupported() -> ProbeReport {
    const REASON: &str = "this version cannot confine host programs on this system";
    const REMEDY: &str = "run pipelines with commands on Linux, or in a Linux virtual machine";
    let missing =
        Tier::CONFINING.map(|tier| MissingTier { tier, reason: REASON.to_owned(), remedy: REMEDY.to_owned() });
    ProbeReport { tier: None, landlock_abi: 0, degradations: Vec::new(), missing: missing.into(), checks: Vec::new() }
}

/// Opens a jail of this tier and runs its self-test. The error names the step that failed.
fn attempt(tier: Tier, near: Option<&Path>) -> Result<(JailStatus, Vec<SelfTestCheck>), ProbeFailure> {
    let folder = ProbeFolder::new(near)
        .map_err(|error| ProbeFailure(format!("failed to make a folder for the test: {error}")))?;
    let witness =
        Witness::new(&folder.0).map_err(|error| ProbeFailure(format!("failed to set up witnesses: {error}")))?;
    let setting = JailSetting {
        tier,
        policy: ExecPolicy::default(),
        network: Network::None,
        limits: Limits::default(),
        inside: PathBuf::from("/workspace"),
        inner: Vec::new(),
        kept: Vec::new(),
        hidden: vec![folder.0.clone()],
        folder: folder.0.join("attempt"),
        pulse: crate::pulse::Pulse::default(),
    };
    let path = |name: &str| folder.0.join(name);
    let source = if tier == Tier::Full {
        Source::Overlay { lower: vec![path("lower")], upper: path("upper"), work: path("work") }
    } else {
        Source::Directory(path("lower"))
    };
    let failed = |error: JailError| ProbeFailure(error.to_string());
    let jail = Jail::open(&setting, source).map_err(failed)?;
    let checks = self_test(&jail, &witness).map_err(ProbeFailure)?;
    let status = jail.status().clone();
    jail.end().map_err(failed)?;
    witness.check().map_err(ProbeFailure)?;
    Ok((status, checks))
}

fn self_test(jail: &Jail, witness: &Witness) -> Result<Vec<SelfTestCheck>, String> {
    let program = Program::SelfTest(witness.targets());
    let env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let request = Request::Run(Command { program, arguments: Vec::new(), env, cwd: String::new() });
    let canceled = AtomicBool::new(false);
    let name = "self-test".to_owned();
    let invocation =
        Invocation { request, streams: Streams::Empty, timeout: TEST_MAX, canceled: &canceled, is_shell: false, name };
    let exit = run_request(jail, invocation).map_err(|error| error.to_string())?;
    if exit.code != Some(0) || exit.stdout.truncated {
        let text = String::from_utf8_lossy(&exit.stderr.head).trim().to_owned();
        let code = exit.code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        return Err(format!("the self-test ended: {}, code {code}: {text}", exit.how.as_str()));
    }
    let said = [exit.stdout.head, exit.stdout.tail].concat();
    let checks: Vec<SelfTestCheck> =
        serde_json::from_slice(&said).map_err(|error| format!("the self-test wrote a malformed report: {error}"))?;
    evaluate(&checks)?;
    Ok(checks)
}

/// Checks that every action ended as required, and that actions of both kinds were tried.
fn evaluate(checks: &[SelfTestCheck]) -> Result<(), String> {
    if let Some(check) = checks.iter().find(|check| check.must_work != check.worked) {
        let came_out = if check.worked { "worked but must fail" } else { "failed but must work" };
        return Err(format!("self-test: `{}` {came_out}: {}", check.name, check.answer));
    }
    if [true, false].iter().any(|kind| !checks.iter().any(|check| check.must_work == *kind)) {
        return Err("the self-test must run checks that must work and checks that must fail, but one kind is missing"
            .to_owned());
    }
    Ok(())
}

/// A folder for one test. Dropping it removes the folder with everything in it.
struct ProbeFolder(PathBuf);

impl ProbeFolder {
    fn new(near: Option<&Path>) -> io::Result<Self> {
        // Runs are most likely on the same file system as the cache.
        let parent = near.filter(|near| near.is_dir()).map_or_else(std::env::temp_dir, Path::to_owned);
        let made = parent.join(format!(".probe-{}", witness::draw()?));
        let builder = || {
            let mut builder = fs::DirBuilder::new();
            builder.mode(0o700);
            builder
        };
        builder().create(&made)?;
        // From here on, dropping `folder` removes it.
        let folder = Self(fs::canonicalize(made)?);
        for name in ["attempt", "lower", "upper", "work", "outside"] {
            builder().create(folder.0.join(name))?;
        }
        Ok(folder)
    }
}

impl Drop for ProbeFolder {
    fn drop(&mut self) {
        if let Err(error) = remove_all(&self.0) {
            tracing::debug!(%error, "could not remove the folder of a probe");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_tried_nothing_or_failed_is_no_proof() {
        let check =
            |must_work, worked| SelfTestCheck { name: "a".to_owned(), must_work, worked, answer: String::new() };
        assert!(evaluate(&[check(true, true), check(false, false)]).is_ok());
        assert!(evaluate(&[check(true, true), check(false, true)]).is_err());
        assert!(evaluate(&[check(true, false), check(false, false)]).is_err());
        assert!(
            evaluate(&[check(true, true)]).is_err()
                && evaluate(&[check(false, false)]).is_err()
                && evaluate(&[]).is_err()
        );
    }
}
