//! The verdict on one attack, from what was seen outside and only then from what it was told.
//!
//! Pure. An attack that did not run is no attack that was stopped: it is [`Verdict::Broken`].

use crate::observe::Watched;
use crate::row::{Payload, Proof, Row};
use crate::target::{Change, CommandResult, NotRun, OUTPUT_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// What an attack came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It was stopped.
    Blocked,
    /// It got through, and nothing had been admitted.
    Through,
    /// It got through, as is admitted for this tier.
    KnownGap,
    /// What must work does.
    Works,
    /// What must work does not, or the attack could not be tried.
    Broken,
}

impl Verdict {
    /// Returns the word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Through => "GOT THROUGH",
            Self::KnownGap => "known gap",
            Self::Works => "works",
            Self::Broken => "BROKEN",
        }
    }

    /// True for what a user has to be told in any case.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Through | Self::Broken)
    }
}

/// What the hostile program or component said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct AttackResult {
    /// Whether it believes that it did what it wanted.
    pub worked: bool,
    /// What it was told.
    pub answer: String,
}

/// Everything about one attack that was tried.
#[derive(Debug, Clone, Default)]
pub struct Finding {
    /// What was seen of its command.
    pub command: CommandResult,
    /// Why it could not be run.
    pub failed: Option<NotRun>,
    /// What it said, if it came to say it.
    pub result: Option<AttackResult>,
    /// What was touched outside.
    pub touched: Vec<String>,
    /// Processes of it that were alive afterwards.
    pub survivors: usize,
    /// Whether a canary was in its output.
    pub leaked: bool,
    pub(crate) watched: Watched,
}

impl Finding {
    /// A finding of something that is no host program: what it said, and what was seen outside.
    pub fn of_component(result: Option<AttackResult>, ended: &str, touched: Vec<String>, leaked: bool) -> Self {
        let command = CommandResult { how: ended.to_owned(), ..CommandResult::default() };
        Self { command, result, touched, leaked, ..Self::default() }
    }
}

/// The verdict on one row, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluatedRow {
    /// Which.
    pub row: Row,
    /// The verdict.
    pub verdict: Verdict,
    /// What the attack was told, or how it ended.
    pub answer: String,
    /// What was seen outside.
    pub witness: String,
    /// Whether the machine did not let it be tried; then it may be tried once more.
    pub is_untried: bool,
}

/// Decides about one attack. `changes` is what its stage left, or why the stage failed.
pub fn evaluate(row: &Row, finding: &Finding, changes: &Result<Vec<Change>, String>, tier: &str) -> EvaluatedRow {
    let mut through = outside(finding);
    let done = |verdict, answer: String, witness: String| EvaluatedRow {
        row: *row,
        verdict,
        answer,
        witness,
        is_untried: false,
    };
    if let Some(NotRun { reason, by_attack }) = not_tried(row, finding, changes)
        && through.is_empty()
    {
        return EvaluatedRow { is_untried: !by_attack, ..done(Verdict::Broken, reason, "not tried".to_owned()) };
    }
    through.extend(by_proof(row, finding, changes, tier));
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

/// What counts whatever the row says.
fn outside(finding: &Finding) -> Vec<String> {
    let mut through = finding.touched.clone();
    if finding.leaked {
        through.push("a canary was in the output".to_owned());
    }
    if finding.survivors > 0 {
        through.push(format!("{} of its processes were alive afterwards", finding.survivors));
    }
    through
}

fn by_proof(row: &Row, finding: &Finding, changes: &Result<Vec<Change>, String>, tier: &str) -> Option<String> {
    let worked = finding.result.as_ref().is_some_and(|result| result.worked);
    match row.proof {
        Proof::Answer | Proof::Ended => worked.then(|| "it did what it wanted".to_owned()),
        Proof::Works => (!worked).then(|| "it does not work".to_owned()),
        Proof::Untouched | Proof::Reaped => None,
        Proof::Commit(path) => committed(changes, path, |_| true),
        Proof::Below(path) => committed(changes, path, |op| op != "mkdir"),
        Proof::Plain(path) => committed(changes, path, |op| !matches!(op, "write" | "delete")),
        Proof::Refused => changes.is_ok().then(|| "all of it would be committed".to_owned()),
        Proof::Bounded => {
            let kept = finding.command.stdout.len().max(finding.command.stderr.len()) as u64;
            (kept > OUTPUT_BYTES_MAX).then(|| format!("{kept} bytes of output were kept"))
        }
        Proof::Environment => strange_variable(finding),
        Proof::Never(word) => finding.command.text().contains(word).then(|| format!("`{word}` was in the output")),
        Proof::Closed => finding.watched.reached.then(|| "the port was reached from outside".to_owned()),
        Proof::Unprivileged => badly_standing(finding, tier),
        Proof::ProcessesAtMost(most) => {
            let peak = finding.watched.processes_peak;
            (peak > most).then(|| format!("{peak} processes at the same time"))
        }
    }
}

fn committed(changes: &Result<Vec<Change>, String>, path: &str, counts: impl Fn(&str) -> bool) -> Option<String> {
    let changes = changes.as_ref().ok()?;
    let found = changes.iter().find(|change| {
        let below = change.path == path || change.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        below && change.allowed && counts(&change.op)
    });
    found.map(|change| format!("`{}` ({}) would be committed", change.path, change.op))
}

/// Variables every command has; the last is a marker by which its processes are found.
const VARIABLES: &[&str] = &["PATH", "HOME", "TMPDIR", "LANG", "TZ", "TERM", "PWD", "OLDPWD", "SHLVL", "_"];

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

fn badly_standing(finding: &Finding, tier: &str) -> Option<String> {
    let Some(standing) = &finding.watched.standing else { return Some("it was not seen from outside".to_owned()) };
    let is_zero = |text: &str| text.chars().all(|digit| digit == '0');
    let good = standing.split(' ').all(|field| match field.split_once('=') {
        Some(("NoNewPrivs", value)) => value == "1",
        Some(("Seccomp", value)) => value == "2",
        // Only who has capabilities can drop them from what could be gained, and nothing can be gained by NoNewPrivs.
        Some(("CapBnd", _)) if tier == "landlock" => true,
        Some((_, value)) => is_zero(value),
        None => false,
    });
    (!good).then(|| standing.clone())
}

/// Why an attack does not count as tried.
fn not_tried(row: &Row, finding: &Finding, changes: &Result<Vec<Change>, String>) -> Option<NotRun> {
    if let Some(failed) = &finding.failed {
        return Some(failed.clone());
    }
    let failed = |reason: &str| Some(NotRun::from(reason.to_owned()));
    if finding.result.as_ref().is_some_and(|result| result.answer == "nobody looked") {
        return failed("nobody outside came to look");
    }
    let is_late = finding.command.how == "timed-out" && finding.result.is_none();
    let has_to_say = row.proof == Proof::Refused && changes.is_ok() || row.proof == Proof::Answer && !row.limits.alone;
    if is_late && has_to_say {
        return failed("the attack was not done in its time");
    }
    let over = finding.command.how != "exited" || finding.command.over.is_some();
    let silent =
        matches!(row.payload, Payload::Program(_) | Payload::Component(_)) && finding.result.is_none() && !over;
    if !silent || row.proof == Proof::Bounded {
        return None;
    }
    let text = finding.command.text();
    let said = text.trim().chars().take(200).collect::<String>();
    failed(&format!("the attack said nothing (code {:?}): {said}", finding.command.code))
}

fn answer(row: &Row, finding: &Finding) -> String {
    match (&finding.result, &finding.command.over, finding.command.how.as_str()) {
        (Some(result), ..) => result.answer.clone(),
        (None, Some(over), _) => format!("killed: {over}"),
        (None, None, "timed-out") => "killed at its time".to_owned(),
        (None, None, "signaled") => format!("killed by signal {}", finding.command.code.unwrap_or(0)),
        (None, None, how) if matches!(row.payload, Payload::Shell(_)) => {
            finding.command.code.map_or_else(|| how.to_owned(), |code| format!("exit {code}"))
        }
        (None, None, how) => how.to_owned(),
    }
}

fn witness(proof: Proof) -> &'static str {
    match proof {
        Proof::Answer => "told no; canaries, listeners and victim untouched",
        Proof::Untouched => "canaries, listeners and victim untouched",
        Proof::Commit(_) | Proof::Below(_) => "would not be committed",
        Proof::Plain(_) => "nothing but a regular file would be committed",
        Proof::Refused => "the stage fails as a whole",
        Proof::Ended => "ended from outside, no process alive",
        Proof::Reaped => "no process alive",
        Proof::Bounded => "no more kept than the bound",
        Proof::Environment => "only the variables every command gets",
        Proof::Never(_) => "not in the output",
        Proof::Closed => "the port was closed from outside",
        Proof::Unprivileged => "seen from outside: no capability, none to be had, system calls filtered",
        Proof::ProcessesAtMost(_) => "no more processes seen than the bound",
        Proof::Works => "works",
    }
}
