//! The result of a test: a verdict for each check, the peaks of the limits, and the outcome of the given input.

use crate::TestRequest;
use crate::bench::Bench;
use crate::checks::Check;
use glovebox_record::{Digest, LimitName, Outcome};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::time::Duration;

/// The verdict of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The component does what is checked.
    Passed,
    /// The component does not do what is checked.
    Failed,
    /// The check does not apply to this component.
    NotApplicable,
    /// The check could not be made.
    NotRun,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It passed, with what was measured.
    Passed(Option<String>),
    /// It failed: what happened.
    Failed(String),
    /// It does not apply: why.
    NotApplicable(String),
    /// It was not made: why.
    NotRun(String),
}

impl Finding {
    pub(crate) fn passed() -> Self {
        Self::Passed(None)
    }

    /// Returns a failure with the first problem, or a pass.
    pub(crate) fn of(problem: Option<String>) -> Self {
        problem.map_or_else(Self::passed, Self::Failed)
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckResult {
    /// Name of the check, such as `contract.outcome`. The names are stable.
    pub name: Cow<'static, str>,
    /// What is checked, in one sentence.
    pub checks: Cow<'static, str>,
    /// The verdict.
    pub verdict: Verdict,
    /// What happened, or what was measured; absent if there is nothing to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What the author should change; absent unless the check failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<Cow<'static, str>>,
}

impl CheckResult {
    pub(crate) fn new(check: &Check, finding: Finding) -> Self {
        Self::named(check.name.into(), check.checks.into(), check.help.into(), finding)
    }

    pub(crate) fn named(
        name: Cow<'static, str>,
        checks: Cow<'static, str>,
        help: Cow<'static, str>,
        finding: Finding,
    ) -> Self {
        let (verdict, detail) = match finding {
            Finding::Passed(detail) => (Verdict::Passed, detail),
            Finding::Failed(detail) => (Verdict::Failed, Some(detail)),
            Finding::NotApplicable(why) => (Verdict::NotApplicable, Some(why)),
            Finding::NotRun(why) => (Verdict::NotRun, Some(why)),
        };
        let help = (verdict == Verdict::Failed).then_some(help);
        Self { name, checks, verdict, detail, help }
    }
}

/// The highest use of a limit in all calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Peak {
    /// Name of the limit.
    pub limit: LimitName,
    /// The highest use.
    pub used: u64,
    /// The limit.
    pub of: u64,
    /// The call with the highest use.
    pub call: String,
}

/// The outcome of the input that was given.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct InputResult {
    /// The outcome.
    pub outcome: Outcome,
    /// The changed files.
    pub changes: Vec<InputChange>,
    /// What the component asked for and did not get.
    pub refused: Vec<String>,
    /// Number of host calls.
    pub host_calls: u64,
    /// Duration of the call, in milliseconds.
    pub duration_ms: u64,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InputChange {
    /// The path, with unprintable characters escaped.
    pub path: String,
    /// `write`, `delete`, `mkdir`, `rmdir`, `symlink` or `special`.
    pub op: &'static str,
    /// Why the change would not be committed; absent for an allowed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The result of testing a component.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "plugin-test.json")]
pub struct TestReport {
    /// Version of this schema: 1.
    pub schema_version: u32,
    /// Digest of the component.
    pub digest: Digest,
    /// Name in the manifest; absent without a manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Version in the manifest; absent without a manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// World of the component.
    pub world: &'static str,
    /// True if the component could run commands.
    pub commands_allowed: bool,
    /// Number of calls that were made.
    pub calls: u64,
    /// Duration of the whole test, in milliseconds.
    pub duration_ms: u64,
    /// The checks, in order.
    pub checks: Vec<CheckResult>,
    /// The highest use of each limit that was used.
    pub peaks: Vec<Peak>,
    /// The outcome of the input that was given; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<InputResult>,
}

impl TestReport {
    pub(crate) fn new(
        request: &TestRequest<'_>,
        checks: Vec<CheckResult>,
        bench: Option<&Bench<'_>>,
        took: Duration,
    ) -> Self {
        let manifest = request.inspection.manifest.as_ref();
        let summaries = bench.map(Bench::summaries).unwrap_or_default();
        let peak = |name: &LimitName| {
            let used = summaries.iter().flat_map(|call| call.usage.iter().map(move |usage| (call, usage)));
            let used = used.filter(|(_, usage)| usage.name == *name).filter_map(|(call, usage)| {
                let used = usage.used.filter(|used| *used > 0)?;
                Some(Peak { limit: *name, used, of: usage.limit, call: call.title.clone() })
            });
            used.reduce(|most, next| if next.used > most.used { next } else { most })
        };
        Self {
            schema_version: 1,
            digest: request.inspection.digest,
            name: manifest.map(|manifest| manifest.name.clone()),
            version: manifest.map(|manifest| manifest.version.clone()),
            world: request.inspection.world,
            commands_allowed: request.commands.is_some(),
            calls: summaries.len() as u64,
            duration_ms: milliseconds(took),
            checks,
            peaks: LimitName::ALL.iter().filter_map(peak).collect(),
            input: None,
        }
    }

    /// Returns the number of checks with a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|check| check.verdict == verdict).count()
    }
}

pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
