//! The verdict on one attack. It depends first on what the witnesses saw, and then on what the attack reported.
//!
//! This module has no side effects. The verdict on an attack that did not run is [`Verdict::Broken`], not
//! [`Verdict::Blocked`].

use crate::observe::Observation;
use crate::row::{Payload, Proof, Row};
use crate::target::{Change, CommandResult, Ending, NotRun, OUTPUT_BYTES_MAX, Tier};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The result text of an attack that the host did not observe in time.
const NOT_OBSERVED: &str = "not observed";

/// The verdict on an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The attack was stopped.
    Blocked,
    /// The attack succeeded, and that is not a known gap.
    Through,
    /// The attack succeeded, and that is a known gap of this tier.
    KnownGap,
    /// An operation that must work works.
    Works,
    /// An operation that must work fails, or the attack could not run.
    Broken,
}

impl Verdict {
    /// Returns the verdict as text for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Through => "GOT THROUGH",
            Self::KnownGap => "known gap",
            Self::Works => "works",
            Self::Broken => "BROKEN",
        }
    }

    /// Returns true for a verdict that a user must always see.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Through | Self::Broken)
    }
}

/// The report of the hostile program or component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct AttackResult {
    /// True if the attack reported success.
    pub worked: bool,
    /// Error that the attack got, or what it achieved.
    pub answer: String,
}

/// All information about one attack.
#[derive(Debug, Clone, Default)]
pub struct Finding {
    /// The host's observation of the command.
    pub command: CommandResult,
    /// Why the attack could not run. `None` if it ran.
    pub failed: Option<NotRun>,
    /// Report of the attack, if there is one.
    pub result: Option<AttackResult>,
    /// Things outside of the sandbox that changed or were reached.
    pub touched: Vec<String>,
    /// Number of processes of the attack that were alive afterwards.
    pub survivors: usize,
    /// True if a canary was in the output.
    pub leaked: bool,
    pub(crate) watched: Observation,
}

impl Finding {
    /// Returns the finding of a component from its report and from what the witnesses saw.
    pub fn of_component(result: Option<AttackResult>, how: Ending, touched: Vec<String>, leaked: bool) -> Self {
        let command = CommandResult { how, ..CommandResult::default() };
        Self { command, result, touched, leaked, ..Self::default() }
    }
}

/// The verdict on one row, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluatedRow {
    /// The row.
    pub row: Row,
    /// The verdict.
    pub verdict: Verdict,
    /// Error that the attack got, or how it ended.
    pub answer: String,
    /// Observations of the witnesses.
    pub witness: String,
    /// True if the machine prevented the attack, so that the battery may repeat it.
    pub is_prevented: bool,
}

/// Decides the verdict on one attack. `changes` are the changes of its stage, or why the stage failed.
pub fn evaluate(row: &Row, mut finding: Finding, changes: &Result<Vec<Change>, String>, tier: Tier) -> EvaluatedRow {
    let mut through = std::mem::take(&mut finding.touched);
    through.extend(seen_outside(&finding));
    let done = |verdict, answer, witness| EvaluatedRow { row: *row, verdict, answer, witness, is_prevented: false };
    if through.is_empty()
        && let Some(NotRun { reason, by_attack }) = not_run(row, &mut finding, changes)
    {
        return EvaluatedRow { is_prevented: !by_attack, ..done(Verdict::Broken, reason, "not tried".to_owned()) };
    }
    through.extend(by_proof(row, &finding, changes, tier));
    let verdict = match (row.must_work(), through.is_empty()) {
        (true, true) => Verdict::Works,
        (false, true) => Verdict::Blocked,
        (_, false) if row.gap(tier).is_some() => Verdict::KnownGap,
        (true, false) => Verdict::Broken,
        (false, false) => Verdict::Through,
    };
    let witness = if through.is_empty() { witness(row.proof).to_owned() } else { through.join("; ") };
    done(verdict, answer(row, finding), witness)
}

/// Returns observations that mean success for every attack.
fn seen_outside(finding: &Finding) -> impl Iterator<Item = String> {
    let leaked = finding.leaked.then(|| "a canary was in the output".to_owned());
    let survivors = finding.survivors;
    let alive = (survivors > 0).then(|| format!("{survivors} of its processes were alive afterwards"));
    leaked.into_iter().chain(alive)
}

fn by_proof(row: &Row, finding: &Finding, changes: &Result<Vec<Change>, String>, tier: Tier) -> Option<String> {
    let worked = finding.result.as_ref().is_some_and(|result| result.worked);
    match row.proof {
        Proof::Answer | Proof::Ended => worked.then(|| "it reported success".to_owned()),
        Proof::Works => (!worked).then(|| "it does not work".to_owned()),
        Proof::Untouched | Proof::Reaped => None,
        Proof::Commit(path) => committed(changes, Path::new(path), |_| true),
        Proof::Below(path) => committed(changes, Path::new(path), |change| change.op != "mkdir"),
        Proof::Plain(path) => {
            committed(changes, Path::new(path), |change| !matches!(change.op.as_str(), "write" | "delete"))
        }
        Proof::Refused => changes.is_ok().then(|| "all its changes would be committed".to_owned()),
        Proof::Bounded => {
            let kept = finding.command.stdout.len().max(finding.command.stderr.len()) as u64;
            (kept > OUTPUT_BYTES_MAX).then(|| format!("{kept} bytes of output were captured"))
        }
        Proof::Environment => strange_variable(finding),
        Proof::Never(word) => finding.command.text().contains(word).then(|| format!("`{word}` was in the output")),
        Proof::Closed => finding.watched.reached.then(|| "the host reached the port".to_owned()),
        Proof::Unprivileged => wrong_rights(finding, tier),
        Proof::ProcessesAtMost(most) => {
            let peak = finding.watched.processes_peak;
            (peak > most).then(|| format!("{peak} processes at the same time"))
        }
    }
}

/// Describes the first change at or below a path that would be committed and for which `counts` returns true.
fn committed(changes: &Result<Vec<Change>, String>, path: &Path, counts: impl Fn(&Change) -> bool) -> Option<String> {
    let changes = changes.as_ref().ok()?;
    let is_below = |change: &Change| Path::new(&change.path).starts_with(path);
    let found = changes.iter().find(|change| is_below(change) && change.allowed && counts(change));
    found.map(|change| format!("`{}` ({}) would be committed", change.path, change.op))
}

/// Variables that every command has.
const VARIABLES: &[&str] = &[
    "PATH", "HOME", "TMPDIR", "LANG", "TZ", "TERM", "USER", "LOGNAME", "SHELL", "CI", "NO_COLOR", "PWD", "OLDPWD",
    "SHLVL", "_",
];

fn strange_variable(finding: &Finding) -> Option<String> {
    let text = finding.command.text();
    let listed: Vec<&str> = match &finding.result {
        Some(_) => text.split("\"loot\":\"").nth(1)?.split('"').next()?.split("\\n").collect(),
        None => text.lines().collect(),
    };
    let names = listed.iter().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    let strange: Vec<&str> = names.filter(|name| !VARIABLES.contains(name) && !name.starts_with("GLOVEBOX_")).collect();
    (!strange.is_empty()).then(|| format!("it saw {}", strange.join(", ")))
}

fn wrong_rights(finding: &Finding, tier: Tier) -> Option<String> {
    let Some(rights) = &finding.watched.rights else { return Some("the host did not see it".to_owned()) };
    let is_zero = |text: &str| text.chars().all(|digit| digit == '0');
    let good = rights.split(' ').all(|field| match field.split_once('=') {
        Some(("NoNewPrivs", value)) => value == "1",
        Some(("Seccomp", value)) => value == "2",
        // Without capabilities a process cannot reduce its bounding set, and with NoNewPrivs it cannot gain
        // capabilities.
        Some(("CapBnd", _)) if tier == Tier::Landlock => true,
        Some((_, value)) => is_zero(value),
        None => false,
    });
    (!good).then(|| rights.clone())
}

/// Returns why an attack was not executed, or `None` if it was.
fn not_run(row: &Row, finding: &mut Finding, changes: &Result<Vec<Change>, String>) -> Option<NotRun> {
    if let Some(failed) = finding.failed.take() {
        return Some(failed);
    }
    let failed = |reason: String| Some(NotRun::from(reason));
    if finding.result.as_ref().is_some_and(|result| result.answer == NOT_OBSERVED) {
        return failed("the host did not observe it in time".to_owned());
    }
    let is_late = finding.command.how == Ending::TimedOut && finding.result.is_none();
    let must_report = row.proof == Proof::Refused && changes.is_ok() || row.proof == Proof::Answer && !row.limits.alone;
    if is_late && must_report {
        return failed("the attack did not end in time".to_owned());
    }
    let over = finding.command.how != Ending::Exited || finding.command.over.is_some();
    let silent =
        matches!(row.payload, Payload::Program(_) | Payload::Component(_)) && finding.result.is_none() && !over;
    if !silent || row.proof == Proof::Bounded {
        return None;
    }
    let text = finding.command.text();
    let said = text.trim().chars().take(200).collect::<String>();
    failed(format!("the attack reported nothing (code {:?}): {said}", finding.command.code))
}

fn answer(row: &Row, finding: Finding) -> String {
    let CommandResult { how, code, over, .. } = finding.command;
    match (finding.result, over, how) {
        (Some(result), ..) => result.answer,
        (None, Some(over), _) => format!("killed: {over}"),
        (None, None, Ending::TimedOut) => "killed at its time limit".to_owned(),
        (None, None, Ending::Signaled) => format!("killed by signal {}", code.unwrap_or(0)),
        (None, None, how) if matches!(row.payload, Payload::Shell(_)) => {
            code.map_or_else(|| how.to_string(), |code| format!("exit {code}"))
        }
        (None, None, how) => how.to_string(),
    }
}

fn witness(proof: Proof) -> &'static str {
    match proof {
        Proof::Answer => "it failed; canaries, listeners and victim untouched",
        Proof::Untouched => "canaries, listeners and victim untouched",
        Proof::Commit(_) | Proof::Below(_) => "would not be committed",
        Proof::Plain(_) => "only a regular file would be committed",
        Proof::Refused => "the stage fails as a whole",
        Proof::Ended => "the host ended it, no process alive",
        Proof::Reaped => "no process alive",
        Proof::Bounded => "no more captured than the limit",
        Proof::Environment => "only the variables that every command gets",
        Proof::Never(_) => "not in the output",
        Proof::Closed => "the host could not reach the port",
        Proof::Unprivileged => "seen by the host: no capability, none to gain, system calls filtered",
        Proof::ProcessesAtMost(_) => "no more processes seen than the limit",
        Proof::Works => "works",
    }
}
