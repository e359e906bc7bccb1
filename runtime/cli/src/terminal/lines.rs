//! Describes events in one line each, for pipes, logs and people who scroll.
//!
//! `12:04:31 build exec cargo check exit=0 11.2s`: time, node, what happened. A line depends only on the event. Text
//! from a stage is escaped. Refusals are printed from the journal's record and not from the live progress, so that each
//! is printed once.

use crate::terminal::{counted, duration, moment, of_generation, status_files, visible};
use glovebox_host::call::{LogLine, Progress};
use glovebox_host::llm::Provider;
use glovebox_journal::event::{
    BranchId, Event, FanInFinished, IgnoredFiles, LoopRestarted, Moved, NodeId, Record, Refusal, RunFinished,
    RunPaused, RunResumed, RunStarted, StageFinished, StageStarted, Task, Verdict, Work,
};
use glovebox_journal::event::{
    ChildObserved, GateUnmet, ParallelStarted, QuestionAnswered, QuestionAsked, RecoveryDecided, SupervisionEnd,
};
use glovebox_record::question::Answer;
use glovebox_record::{Failure, Status};
use glovebox_state::evidence::configuration::NewConfiguration;
use glovebox_state::refused_writes::Folded;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::borrow::Cow;
use std::fmt::Display;

const TEXT_CHARACTERS_MAX: usize = 160;

/// Maximum number of fields of a log line that are shown. The record has all of them.
const LOG_FIELDS_SHOWN_MAX: usize = 4;

/// Maximum number of refusals of one attempt that get a line each. `glovebox show` prints all of them.
pub const REFUSALS_SHOWN_MAX: usize = 10;
/// The hint for a stage that failed and could not see hold-outs, because the node names none.
pub const MISSES_HOLDOUTS: &str = "has no hold-outs, because it names none. If a script of its command runs hold-outs, \
    add `holdouts=true` to the node";
/// Maximum number of quarantined entries that are shown for one stage.
pub const QUARANTINED_SHOWN_MAX: usize = 20;

/// Maximum number of new configuration files that are named.
const NEW_CONFIGURATION_SHOWN_MAX: usize = 10;

/// Returns the lines of a journal record; empty for a record that is not shown to people.
pub fn of_record(record: &Record) -> Vec<String> {
    let place = place(&record.event);
    words(&record.event).into_iter().map(|what| stamped(record.at, &place, what)).collect()
}

/// Returns the line for live progress of an attempt; `None` for progress that a record will show later.
pub fn of_progress(at: Timestamp, branch: &BranchId, node: &NodeId, progress: &Progress) -> Option<String> {
    let branch = Some(branch).filter(|branch| **branch != BranchId::main());
    activity(progress, true).map(|what| stamped(at, &named(branch, Some(node)), what))
}

/// Describes what a stage is doing, in a few words. With `finished`, commands are described when they end and not when
/// they begin, and refusals are left out.
pub fn activity(progress: &Progress, finished: bool) -> Option<String> {
    match progress {
        Progress::Log(LogLine { level, message, fields }) => {
            let mut text = format!("{} {}", visible::line(level), visible::summary(message, TEXT_CHARACTERS_MAX));
            for (name, value) in fields.iter().take(LOG_FIELDS_SHOWN_MAX) {
                let value = visible::summary(value, TEXT_CHARACTERS_MAX);
                text.push_str(&format!(" {}={value}", visible::line(name)));
            }
            Some(text)
        }
        Progress::ModelTurn(turn) => Some(format!("model turn {turn}")),
        Progress::ModelWaits(kind, wait) => {
            let wait = duration(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            Some(format!("model: {kind}, asking again in {wait}"))
        }
        Progress::CommandStarted(text) if !finished => {
            Some(format!("exec {}", visible::summary(text, TEXT_CHARACTERS_MAX)))
        }
        Progress::CommandEnded(text, how, code, milliseconds) => {
            let end = code.map_or_else(|| how.to_string(), |code| format!("exit={code}"));
            let text = visible::summary(text, TEXT_CHARACTERS_MAX);
            Some(format!("exec {text} {end} {}", duration(*milliseconds)))
        }
        Progress::Refused(refusal) if !finished => {
            Some(format!("refused {} {}", visible::line(&refusal.operation), visible::line(&refusal.path)))
        }
        Progress::CommandStarted(_) | Progress::Refused(_) | Progress::Emitted(..) => None,
    }
}

/// Returns a line with the time, the place and the description.
fn stamped(at: Timestamp, place: &str, what: impl Display) -> String {
    let time = at.to_zoned(TimeZone::system()).strftime("%H:%M:%S");
    format!("{time} {place} {what}")
}

/// Returns the place of an event: its node, after its branch unless that is the main branch; `run` for an event of the
/// whole run.
fn place(event: &Event) -> Cow<'_, str> {
    let branch = event.branch().filter(|branch| **branch != BranchId::main());
    let is_of_branch = matches!(event, Event::BranchStarted(_) | Event::BranchCanceled(_) | Event::BranchFinished(_));
    named(branch, event.node().filter(|_| !is_of_branch))
}

fn named<'n>(branch: Option<&'n BranchId>, node: Option<&'n NodeId>) -> Cow<'n, str> {
    match (branch, node) {
        (None, None) => "run".into(),
        (None, Some(node)) => visible::line(node.as_str()),
        (Some(branch), None) => visible::line(branch.as_str()),
        (Some(branch), Some(node)) => {
            format!("{}/{}", visible::line(branch.as_str()), visible::line(node.as_str())).into()
        }
    }
}

fn words(event: &Event) -> Vec<String> {
    let one = |text: String| vec![text];
    match event {
        Event::RunStarted(run) => one(format!(
            "started {} pipeline={}{} sandbox={}",
            visible::line(run.run_id.as_str()),
            visible::line(&run.pipeline.name),
            model(run).map(|model| format!(" model={}", visible::line(model))).unwrap_or_default(),
            visible::line(&run.commands.tier)
        )),
        Event::RunResumed(resumed) => one(self::resumed(resumed)),
        Event::RunTakenOver(taken) => one(format!("taken over by {}", visible::line(taken.machine.as_str()))),
        Event::CacheFilled(filled) => one(match filled.receipts.first().map(|receipt| receipt.duration_ms) {
            Some(ms) => format!("caches filled from the files the run began with, in {}", duration(ms)),
            None => "caches filled from the files the run began with".to_owned(),
        }),
        Event::StageReady(_) | Event::StagePassed(_) => Vec::new(),
        Event::StageStarted(stage) => one(started(stage)),
        Event::StageSteered(steered) => one(format!(
            "message from {}: {}",
            visible::line(&steered.by),
            visible::summary(&steered.text, TEXT_CHARACTERS_MAX)
        )),
        Event::StatusIngested(ingested) => status_files::line(ingested).into_iter().collect(),
        Event::StageFinished(stage) => finished(stage),
        Event::StageHeld(held) => {
            one(format!("{}{}", quota_wait(&held.provider, held.resume_at), because(Some(&held.failure))))
        }
        Event::StageRetrying(stage) => {
            one(format!("retrying attempt={} in {}", stage.ordinal, duration(stage.delay_ms)))
        }
        Event::RouteTaken(route) => {
            one(format!("-> {} ({})", visible::line(route.to.as_str()), visible::line(&route.how.replace('_', " "))))
        }
        Event::LoopRestarted(restarted) => one(restarted_line(restarted)),
        Event::GateUnmet(gate) => one(unmet_line(gate)),
        Event::ParallelStarted(fork) => one(parallel_line(fork)),
        Event::ParallelExpired(_) => one("the timeout of the parallel node has passed".to_owned()),
        Event::ChildObserved(observed) => one(observed_line(observed)),
        Event::BranchStarted(_) => one("branch started".to_owned()),
        Event::BranchCanceled(branch) => one(format!("branch is asked to stop: {}", visible::line(&branch.reason))),
        Event::BranchFinished(branch) => {
            one(format!("branch {}{}", branch.outcome.as_str(), because(branch.failure.as_ref())))
        }
        Event::ParallelJoined(fork) => one(format!(
            "joined {}: {} succeeded, {} failed, {} canceled{}",
            fork.status.as_str(),
            fork.succeeded,
            fork.failed,
            fork.canceled,
            because(fork.failure.as_ref())
        )),
        Event::FanInFinished(finished) => chosen(finished),
        Event::QuestionAsked(asked) => one(asked_line(asked)),
        Event::QuestionAnswered(answered) => one(answered_line(answered)),
        Event::RecoveryDecided(decided) => one(decided_line(decided)),
        Event::RunPaused(paused) => one(paused_line(paused)),
        Event::RunCanceled(cancel) => one(format!("canceled by {}", visible::line(&cancel.by))),
        Event::RunStalled(stalled) => one(visible::summary(&stalled.failure().reason, TEXT_CHARACTERS_MAX)),
        Event::RunFinished(run) => one(ended_line(run)),
        // The lines of the cancellation and of the ends of branches are enough.
        Event::BranchExited(_) => Vec::new(),
        Event::CycleBroken(cycle) => one(format!(
            "loop ended: failed {} times in the same way, {} is {}",
            cycle.count,
            visible::line(&cycle.limit_name),
            cycle.limit
        )),
    }
}

fn ended_line(run: &RunFinished) -> String {
    match (&run.status, &run.failure) {
        (Verdict::Success, _) => "success".to_owned(),
        (Verdict::Fail, None) => "fail".to_owned(),
        (Verdict::Fail, Some(failure)) => {
            format!("fail {}: {}", failure.class.as_str(), visible::summary(&failure.reason, TEXT_CHARACTERS_MAX))
        }
    }
}

fn unmet_line(gate: &GateUnmet) -> String {
    let exit = visible::line(gate.exit_node.as_str());
    if gate.dropped_checks.is_empty() {
        let status = gate.status.map_or("none, never visited", |status| status.as_str());
        return format!("goal gate unmet at {exit}: last status {status}");
    }
    let skipped = visible::line(&gate.dropped_checks.join(", ")).into_owned();
    format!("commands of the verify contract were skipped, seen at {exit}: {skipped}")
}

fn started(StageStarted { attempt, machine, moved, .. }: &StageStarted) -> String {
    let text = match (&attempt.task, attempt.ordinal) {
        (Task { work: Work::Verify, visit, .. }, _) => format!("verification started visit={visit}"),
        (Task { visit: 1, .. }, 1) => "started".to_owned(),
        (Task { visit, .. }, ordinal) => format!("started visit={visit} attempt={ordinal}"),
    };
    let machine = machine.as_ref().map(|machine| format!(" on {}", visible::line(machine.as_str())));
    let moved = moved.as_deref().map(|Moved { from, left }| {
        let from = visible::line(from.as_str());
        let left = left.as_ref().map(|IgnoredFiles { files, names, .. }| {
            let names = visible::line(&names.join(", ")).into_owned();
            format!(
                ": {} at ignored paths ({names}) stayed there",
                counted(usize::try_from(*files).unwrap_or(usize::MAX), "file")
            )
        });
        format!(", moved from {from}{}", left.unwrap_or_default())
    });
    text + &machine.unwrap_or_default() + &moved.unwrap_or_default()
}

/// Describes a resume: the node at which the run continues, and what was restored or removed.
fn resumed(resumed: &RunResumed) -> String {
    let mut text = match (&resumed.from, resumed.back) {
        (Some(node), Some(back)) => format!(
            "resumed from {} visit {}{}; everything after it is undone",
            visible::line(node.as_str()),
            back.visit,
            of_generation(back.generation)
        ),
        (Some(node), None) => format!("resumed from {}", visible::line(node.as_str())),
        (None, _) => "resumed".to_owned(),
    };
    if let Some(repaired) = resumed.repaired {
        text += &format!("; workspace restored: {} recreated, {} removed", repaired.made, repaired.removed);
    }
    if resumed.caches_removed {
        text += match resumed {
            RunResumed { back: Some(_), .. } => "; caches and files at ignored paths removed, since no record has them",
            RunResumed { clock_went_back: true, .. } => {
                "; caches removed, since the clock of this machine was set back"
            }
            _ => "; caches removed, since an attempt did not finish",
        };
    }
    text
}

fn because(failure: Option<&Failure>) -> String {
    failure.map(|failure| format!(": {}", visible::summary(&failure.reason, TEXT_CHARACTERS_MAX))).unwrap_or_default()
}

fn chosen(finished: &FanInFinished) -> Vec<String> {
    let status = finished.status.as_str();
    let choice = match &finished.best {
        Some(best) => format!("{status}: chose {}", visible::line(best.as_str())),
        None => status.to_owned(),
    };
    let merged = match finished.changes.len() {
        0 => String::new(),
        count => format!(", merged {}", counted(count, "change")),
    };
    let mut lines = vec![format!("{choice}{merged}{}", because(finished.failure.as_ref()))];
    let shown = finished.conflicts.iter().take(QUARANTINED_SHOWN_MAX);
    lines.extend(shown.map(|one| format!("{} {}", visible::line(one.path.as_str()), visible::line(&one.reason()))));
    lines
}

fn parallel_line(fork: &ParallelStarted) -> String {
    let branches = match fork.children.as_slice() {
        [only] => format!("begins branch {}", visible::line(only.id.as_str())),
        all => format!("forks into {} branches", all.len()),
    };
    format!("{branches}, joined at {}", visible::line(fork.join.as_str()))
}

fn observed_line(observed: &ChildObserved) -> String {
    let stage = observed.context.get("stack.child.stage").and_then(|stage| stage.as_str()).unwrap_or_default();
    let ends = match observed.ends {
        Some(SupervisionEnd::StopCondition) => ", its stop condition is true",
        Some(SupervisionEnd::MaxCycles) => ", the last cycle",
        None => "",
    };
    format!("polls its child, cycle {}: at {}{ends}", observed.cycle, visible::line(stage))
}

fn restarted_line(LoopRestarted { generation, to, failure, .. }: &LoopRestarted) -> String {
    let to = visible::line(to.as_str());
    format!("restarts the loop at {to}: generation {generation} begins{}", because(failure.as_ref()))
}

/// Describes a wait for the quota of a provider.
pub fn quota_wait(provider: &str, until: Timestamp) -> String {
    format!("waits for the quota of {} until {}", visible::line(provider), moment(until))
}

/// Describes the end of the waits of a stage for its quota, after which only a person can help.
pub fn quota_waits(waits: u32) -> Option<String> {
    (waits > 0).then(|| format!("it has waited {} for its quota before", times(waits)))
}

fn times(count: u32) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), "time")
}

fn paused_line(paused: &RunPaused) -> String {
    match paused {
        RunPaused { held: Some(held), .. } => {
            let waits = quota_waits(held.waits).map(|waits| format!("; {waits}")).unwrap_or_default();
            format!("paused: {}{}{waits}", visible::line(held.node.as_str()), because(Some(&held.failure)))
        }
        RunPaused { by: Some(by), .. } => format!("paused by {}", visible::line(by)),
        RunPaused { problem: Some(problem), .. } => format!("paused: waits for an answer; {}", visible::line(problem)),
        _ => "paused: waits for an answer".to_owned(),
    }
}

fn asked_line(asked: &QuestionAsked) -> String {
    let text = visible::summary(&asked.text, TEXT_CHARACTERS_MAX);
    format!("asks {}: {text} [{}]", visible::line(asked.question.as_str()), visible::line(&asked.answers().expected()))
}

fn answered_line(answered: &QuestionAnswered) -> String {
    let value = match &answered.answer {
        Some(Answer::Choice(choice)) => visible::summary(choice.shown(), TEXT_CHARACTERS_MAX),
        Some(Answer::No) => "no".to_owned(),
        Some(Answer::Text) => visible::summary(&answered.text, TEXT_CHARACTERS_MAX),
        None => "nobody answered in time".to_owned(),
    };
    let by = if answered.by.is_empty() { String::new() } else { format!(" by {}", visible::line(&answered.by)) };
    format!("answered {}: {value} ({}{by})", visible::line(answered.question.as_str()), answered.how.as_str())
}

/// Describes the decision about writes outside of the scope, and the outcome of the stage after it.
pub fn decided_line(decided: &RecoveryDecided) -> String {
    let granted: Vec<_> = decided.granted().map(|path| visible::line(path.as_str())).collect();
    let granted = if granted.is_empty() { String::new() } else { format!(" {}", granted.join(", ")) };
    let by = if decided.by.is_empty() { String::new() } else { format!(" by {}", visible::line(&decided.by)) };
    let (action, status) = (decided.action, decided.outcome.status.as_str());
    format!("recovery: {action}{granted} ({}{by}); the stage ends with {status}", decided.how.as_str())
}

/// Returns the provider of model calls; `None` if no stage asks a model.
fn model(run: &RunStarted) -> Option<&str> {
    let is_asked = run.model.provider != Provider::Simulated.as_str() || !run.model.simulated.is_empty();
    is_asked.then_some(run.model.provider.as_str())
}

/// Describes files that were quarantined for one reason: which files, and why.
pub fn set_aside<'f>(files: &Folded<'f>) -> (String, Cow<'f, str>) {
    let at = visible::line(&files.at);
    let which = match files.files {
        0 | 1 => at.into_owned(),
        count if files.is_dropped() => {
            let named: Vec<_> = files.paths().take(QUARANTINED_SHOWN_MAX).map(visible::line).collect();
            let more = count - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}{more}", named.join(", "))
        }
        count if files.is_scratch() => format!("{at} and {} more", count - 1),
        count => format!("{count} files in {at}"),
    };
    (which, visible::line(files.why()))
}

/// Describes the writes to paths that git ignores.
pub fn ignored(files: &IgnoredFiles) -> String {
    let count = counted(usize::try_from(files.files).unwrap_or(usize::MAX), "file");
    let names: Vec<_> = files.names.iter().map(|name| visible::line(name)).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    format!("left out {count} that git ignores{names}")
}

fn finished(stage: &StageFinished) -> Vec<String> {
    let refusals = distinct(stage.refusals.listed.iter());
    let mut lines: Vec<String> =
        refusals.iter().take(REFUSALS_SHOWN_MAX).map(|(one, times)| refused(one, *times)).collect();
    if refusals.len() > REFUSALS_SHOWN_MAX {
        lines.push(format!("refused {} more", refusals.len() - REFUSALS_SHOWN_MAX));
    }
    let folded = Folded::group(stage.files.quarantined.iter().map(|file| (file.path.as_str(), file.reason.as_str())));
    for files in folded.iter().take(QUARANTINED_SHOWN_MAX) {
        let (which, why) = set_aside(files);
        // The help is printed only for the first attempt, because repetitions would hide what is new.
        let help = files.help().filter(|_| stage.attempt.task.visit == 1 && stage.attempt.ordinal == 1);
        let help = help.map(|help| format!("; help: {}", visible::line(&help))).unwrap_or_default();
        lines.push(format!("quarantined {which}: {why}{help}"));
    }
    let unshown: usize = folded.iter().skip(QUARANTINED_SHOWN_MAX).map(|files| files.files).sum();
    if unshown > 0 {
        lines.push(format!("quarantined {unshown} more"));
    }
    lines.extend(stage.files.ignored.iter().map(ignored));
    let mut end = format!("{} {}", stage.outcome.status.as_str(), duration(stage.duration_ms));
    if stage.model.turns_used > 0 {
        end.push_str(&format!(" turns={}", stage.model.turns_used));
    }
    if !stage.files.changes.is_empty() {
        end.push_str(&format!(" changed={}", stage.files.changes.len()));
    }
    if let Some(failure) = &stage.outcome.failure {
        let reason = visible::summary(&failure.reason, TEXT_CHARACTERS_MAX);
        end.push_str(&format!(" {} [{}]: {reason}", failure.class.as_str(), visible::line(failure.code.as_str())));
    }
    if stage.outcome.status == Status::PartialSuccess && !stage.outcome.notes.is_empty() {
        end.push_str(&format!(": {}", visible::summary(&stage.outcome.notes, TEXT_CHARACTERS_MAX)));
    }
    lines.push(end);
    lines
}

/// Merges refusals of the same operation on the same path. Returns each with its count, in the order of first
/// occurrence.
pub fn distinct<'a>(refusals: impl Iterator<Item = &'a Refusal>) -> Vec<(&'a Refusal, usize)> {
    let mut found: Vec<(&Refusal, usize)> = Vec::new();
    for refusal in refusals {
        let same = |known: &Refusal| known.operation == refusal.operation && known.path == refusal.path;
        match found.iter_mut().find(|(known, _)| same(known)) {
            Some((_, times)) => *times += 1,
            None => found.push((refusal, 1)),
        }
    }
    found
}

/// Describes a refusal, its count, and the grant that would allow it, if there is one.
pub fn refused(refusal: &Refusal, times: usize) -> String {
    let again = if times > 1 { format!(" (×{times})") } else { String::new() };
    let mut line = format!(
        "refused {} {}{again}: {}",
        visible::line(&refusal.operation),
        visible::line(&refusal.path),
        visible::summary(&refusal.reason, TEXT_CHARACTERS_MAX)
    );
    if !refusal.help.is_empty() {
        line.push_str(&format!(" ({})", visible::line(&refusal.help)));
    }
    line
}

/// Describes new configuration files that a person should review, and why.
pub fn new_configuration(new: &[NewConfiguration]) -> Vec<String> {
    let line = |NewConfiguration { path, reader }: &NewConfiguration| match reader {
        Some(reader) => format!("{} ({reader} takes settings or code from it)", visible::line(path)),
        None => format!("{} (programs look for names that begin with a dot)", visible::line(path)),
    };
    let mut lines: Vec<String> = new.iter().take(NEW_CONFIGURATION_SHOWN_MAX).map(line).collect();
    let more = new.len().saturating_sub(NEW_CONFIGURATION_SHOWN_MAX);
    lines.extend((more > 0).then(|| format!("and {more} more; `--json` lists all of them")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_as_one_line_and_obeys_nothing() {
        let at: Timestamp = "2026-01-02T12:04:31Z".parse().unwrap();
        let ended = Progress::CommandEnded(
            "cargo \u{1b}[2Jcheck\nrm".into(),
            glovebox_record::CommandEnding::Exited,
            Some(0),
            11_230,
        );
        let (main, node) = (BranchId::main(), NodeId::new("bu\u{7}ild"));
        let line = of_progress(at, &main, &node, &ended).unwrap();
        assert!(line.ends_with(" bu\\x07ild exec cargo \\x1b[2Jcheck exit=0 11.2s"), "{line}");
        let line = of_progress(at, &BranchId::new("f-a"), &node, &ended).unwrap();
        assert!(line.contains(" f-a/bu\\x07ild exec"), "{line}");
        assert!(of_progress(at, &main, &node, &Progress::CommandStarted("cargo check".into())).is_none());
    }
}
