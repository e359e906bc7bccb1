//! What a run came to: verified, refused, changed, quarantined, and the command to go on with.
//!
//! A fold of the journal's records and nothing else, so that `run`, `resume` and `show` say the same of the same journal. Verified
//! is a command of a tool or verify stage that passed, by its host-made receipt; a command that a model or a plugin chose for
//! itself only ran, and a success without either is the stage's own word.

use crate::exit::Exit;
use crate::terminal::{counted, duration, lines, remedy, visible};
use glovebox_engine::disk::DISK_CODE;
use glovebox_engine::event::{
    ChangeOp, Event, FileChange, Isolation, Receipt, Record, Refusal, RunFinished, RunStarted, StageFinished, Verdict,
};
use glovebox_engine::outcome::FailureClass;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The word for a run that has not ended.
const UNFINISHED: &str = "unfinished";

/// Stages named in the row of those that passed on their own word.
const OWN_WORDS_SHOWN_MAX: usize = 10;

/// The title of a verdict that builders' code could have forged.
const NOT_ISOLATED: &str = "verified (subject not isolated)";

/// Programs under test of one stage that get a row of their own; a suite starts one for each case.
const SUBJECTS_SHOWN_MAX: usize = 3;

/// What a run came to so far.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// The run.
    pub run_id: String,
    /// The graph's name.
    pub pipeline: String,
    /// `success`, `fail`, or `unfinished`.
    pub status: String,
    /// How the process that drove it would end.
    pub exit: ExitRecord,
    /// Who answered model calls: `scripted` or `simulated`.
    pub model: String,
    /// The failure's class, code and reason.
    pub failure: Option<glovebox_engine::outcome::Failure>,
    /// The stage whose failure that is, when it is one's.
    pub failed_node: Option<String>,
    /// Every finished visit in order.
    pub visited: Vec<Visit>,
    /// Receipts of each node's last attempt.
    pub receipts: Vec<Evidence>,
    /// Stages whose last visit passed on their own word, and what executed them.
    pub unverified: Vec<OwnWord>,
    /// What was refused, by node; each once.
    pub refused: Vec<Refused>,
    /// What is changed in the end, one entry per path.
    pub changed: Vec<FileChange>,
    /// What was set aside, by node.
    pub quarantined: Vec<Quarantine>,
    /// From the first record to the last, milliseconds.
    pub duration_ms: u64,
    #[serde(skip)]
    canceled_by: Option<String>,
    #[serde(skip)]
    last_failure: Option<(String, glovebox_engine::outcome::Failure)>,
}

/// An exit code with its name.
#[derive(Debug, Clone, Serialize)]
pub struct ExitRecord {
    /// The number.
    pub code: u8,
    /// The name.
    pub name: &'static str,
    #[serde(skip)]
    exit: Exit,
}

impl ExitRecord {
    /// The exit it describes.
    pub fn exit(&self) -> Exit {
        self.exit
    }
}

impl From<Exit> for ExitRecord {
    fn from(exit: Exit) -> Self {
        Self { code: exit.code(), name: exit.name(), exit }
    }
}

impl Default for ExitRecord {
    fn default() -> Self {
        Exit::Transient.into()
    }
}

/// One finished visit.
#[derive(Debug, Clone, Serialize)]
pub struct Visit {
    /// The node.
    pub node: String,
    /// Which visit.
    pub visit: u32,
    /// Attempts it took.
    pub attempts: u32,
    /// How it ended.
    pub status: &'static str,
}

/// A stage that passed without a receipt that says so.
#[derive(Debug, Clone, Serialize)]
pub struct OwnWord {
    /// The node.
    pub node: String,
    /// What executed it.
    pub handler: String,
}

/// A receipt and whose it is.
#[derive(Debug, Clone, Serialize)]
pub struct Evidence {
    /// The node.
    pub node: String,
    /// What executed it.
    pub handler: String,
    /// True when the command was the pipeline's own and its stage passed.
    pub verified: bool,
    /// Whether the program under test was kept from the hold-outs; none when none were in the stage's reach.
    pub isolation: Option<Isolation>,
    /// The evidence.
    #[serde(flatten)]
    pub receipt: Receipt,
}

/// A refusal and whose it is.
#[derive(Debug, Clone, Serialize)]
pub struct Refused {
    /// The node.
    pub node: String,
    /// How many times.
    pub times: usize,
    /// What was refused.
    #[serde(flatten)]
    pub refusal: Refusal,
}

/// Something set aside.
#[derive(Debug, Clone, Serialize)]
pub struct Quarantine {
    /// The node.
    pub node: String,
    /// The path in the workspace.
    pub path: String,
    /// Why.
    pub reason: String,
}

impl Summary {
    /// Folds the records of a journal.
    pub fn of(records: &[Record]) -> Self {
        let mut summary = Self { status: UNFINISHED.to_owned(), ..Self::default() };
        let mut changed = BTreeMap::new();
        let mut finished = None;
        for record in records {
            match &record.event {
                Event::RunStarted(run) => summary.started(run),
                Event::StageFinished(stage) => {
                    summary.stage(stage);
                    changed.extend(stage.changes.iter().map(|change| (change.path.clone(), change.clone())));
                }
                Event::RunCanceled(cancel) => summary.canceled_by = Some(cancel.by.clone()),
                Event::RunResumed(_) => {
                    summary.canceled_by = None;
                    finished = None;
                }
                Event::RunFinished(run) => finished = Some(run),
                _ => {}
            }
        }
        summary.changed = changed.into_values().collect();
        if let (Some(first), Some(last)) = (records.first(), records.last()) {
            summary.duration_ms = last.at.duration_since(first.at).as_millis().try_into().unwrap_or(0);
        }
        summary.finish(finished);
        summary
    }

    fn started(&mut self, run: &RunStarted) {
        self.run_id.clone_from(&run.run_id);
        self.model.clone_from(&run.model);
        self.pipeline.clone_from(&run.pipeline_name);
    }

    fn stage(&mut self, stage: &StageFinished) {
        let node = || stage.node.clone();
        self.visited.retain(|visit| visit.node != stage.node || visit.visit != stage.visit);
        let status = stage.outcome.status.as_str();
        self.visited.push(Visit { node: node(), visit: stage.visit, attempts: stage.ordinal, status });
        self.receipts.retain(|evidence| evidence.node != stage.node);
        let evidence = stage.receipts.iter().map(|receipt| evidence(stage, receipt));
        self.receipts.extend(evidence);
        self.unverified.retain(|word| word.node != stage.node);
        if stage.outcome.status.satisfies_gate()
            && !self.receipts.iter().any(|one| one.node == stage.node && one.verified)
        {
            self.unverified.push(OwnWord { node: node(), handler: stage.handler.clone() });
        }
        if let Some(failure) = &stage.outcome.failure {
            self.last_failure = Some((node(), failure.clone()));
        }
        for (refusal, times) in lines::distinct(stage.refusals.iter()) {
            let same = |known: &Refusal| known.operation == refusal.operation && known.path == refusal.path;
            match self.refused.iter_mut().find(|known| known.node == stage.node && same(&known.refusal)) {
                Some(known) => known.times += times,
                None => self.refused.push(Refused { node: node(), times, refusal: refusal.clone() }),
            }
        }
        self.quarantined.extend(stage.quarantined.iter().map(|file| Quarantine {
            node: node(),
            path: file.path.clone(),
            reason: file.reason.clone(),
        }));
    }

    fn finish(&mut self, finished: Option<&RunFinished>) {
        let exit = match finished {
            None => Exit::Transient,
            Some(run) if run.status == Verdict::Success => Exit::Ok,
            Some(run) => exit_of(run.failure.as_ref(), self.canceled_by.as_deref()),
        };
        if let Some(run) = finished {
            self.status = if run.status == Verdict::Success { "success" } else { "fail" }.to_owned();
            self.failure.clone_from(&run.failure);
            let last = self.last_failure.take().filter(|(_, failure)| Some(failure) == run.failure.as_ref());
            self.failed_node = last.map(|(node, _)| node);
        }
        self.exit = exit.into();
    }
}

/// What a receipt of a stage is worth.
fn evidence(stage: &StageFinished, receipt: &Receipt) -> Evidence {
    let passed = stage.outcome.status.satisfies_gate() && receipt.code == Some(0);
    let verified = is_the_pipelines(&stage.handler) && !receipt.subject && passed;
    let (node, handler, isolation) = (stage.node.clone(), stage.handler.clone(), stage.isolation);
    Evidence { node, handler, verified, isolation, receipt: receipt.clone() }
}

/// True when a stage runs what the pipeline's author wrote, not what a model or a plugin chose. Third-party handlers cannot
/// take these names: theirs have a dot.
fn is_the_pipelines(handler: &str) -> bool {
    matches!(handler, "tool" | "verify")
}

/// The exit code of a failed run, from the failure's class and code (design §9 #16).
pub fn exit_of(failure: Option<&glovebox_engine::outcome::Failure>, canceled_by: Option<&str>) -> Exit {
    let Some(failure) = failure else { return Exit::RunFailed };
    match failure.class {
        FailureClass::Canceled if canceled_by.is_some_and(|by| by.contains("TERM")) => Exit::Terminated,
        FailureClass::Canceled => Exit::Interrupted,
        FailureClass::Budget => Exit::Budget,
        FailureClass::Scope => Exit::Policy,
        _ if is_model(&failure.code) && failure.class != FailureClass::Transient => Exit::Provider,
        FailureClass::Contract => Exit::Plugin,
        FailureClass::Internal if failure.code.starts_with("trap/") => Exit::Plugin,
        FailureClass::Internal => Exit::Internal,
        FailureClass::Transient => Exit::Transient,
        FailureClass::Deterministic if failure.code == "GoalGateUnsatisfied" => Exit::Unverified,
        FailureClass::Deterministic => Exit::RunFailed,
    }
}

/// How a run is named in the commands that go on: what follows `glovebox diff`, and what follows `glovebox resume`.
pub struct Named {
    /// May be `latest`.
    pub short: String,
    /// Always the id, since `latest` may be another run by then.
    pub exact: String,
}

/// True for failures of the model, or of the script that stands in for it.
fn is_model(code: &str) -> bool {
    code.starts_with("provider/") || code.starts_with("script/")
}

/// Prints a summary for people.
pub fn render(summary: &Summary, named: &Named) -> String {
    let next = &named.short;
    let mut text = String::new();
    let mut row = |title: &str, body: String| {
        let written = writeln!(text, "{title:<12} {body}");
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    };
    row("run", headline(summary));
    if let Some(failure) = &summary.failure {
        let whose = summary.failed_node.as_ref().map(|node| format!("{}: ", visible::line(node))).unwrap_or_default();
        let (class, code) = (failure.class.as_str(), visible::line(&failure.code));
        row("because", format!("{whose}{class} ({code}): {}", indented(&failure.reason)));
    }
    if let Some(remedy) = remedy::of(summary) {
        row("help", remedy);
    }
    receipts(summary, next).into_iter().for_each(|(title, body)| row(title, body));
    if let Some(open) = summary.receipts.iter().find(|evidence| worth(evidence) == NOT_ISOLATED) {
        let node = visible::line(&open.node);
        row("help", format!("`{node}` saw the project beside its hold-outs: glovebox explain project_beside_holdouts"));
    }
    if !summary.receipts.iter().any(|evidence| is_the_pipelines(&evidence.handler)) {
        row("verified", "nothing: no tool or verify stage ran a command".to_owned());
    }
    if !summary.unverified.is_empty() {
        row("unverified", own_words(summary));
    }
    for refused in summary.refused.iter().take(lines::REFUSALS_SHOWN_MAX) {
        let line = lines::refused(&refused.refusal, refused.times);
        row("refused", format!("{}: {}", visible::line(&refused.node), line.trim_start_matches("refused ")));
    }
    if let Some(first_left_out) = summary.refused.get(lines::REFUSALS_SHOWN_MAX) {
        let more = summary.refused.len() - lines::REFUSALS_SHOWN_MAX;
        row("refused", format!("and {more} more: glovebox show {next} {}", visible::line(&first_left_out.node)));
    }
    for change in &summary.changed {
        row("changed", change_line(change));
    }
    quarantined(summary, next).into_iter().for_each(|body| row("quarantined", body));
    row("next", what_next(summary, named));
    text
}

/// A row for each command; of the programs under test of one stage the first few.
fn receipts(summary: &Summary, next: &str) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let alike =
        |one: &Evidence, other: &Evidence| one.node == other.node && one.receipt.subject == other.receipt.subject;
    for group in summary.receipts.chunk_by(alike) {
        let most = if group[0].receipt.subject { SUBJECTS_SHOWN_MAX } else { usize::MAX };
        rows.extend(group.iter().take(most).map(|evidence| (worth(evidence), receipt(evidence))));
        let left = group.get(most..).unwrap_or_default();
        if !left.is_empty() {
            let failed = left.iter().filter(|evidence| evidence.receipt.code != Some(0)).count();
            let (node, more) = (visible::line(&group[0].node), left.len());
            rows.push(("subject", format!("{node}: {more} more, {failed} failed: glovebox show {next} {node}")));
        }
    }
    rows
}

/// A row for each path that was set aside; of those alike and not refused one for all.
fn quarantined(summary: &Summary, next: &str) -> Vec<String> {
    let alike = |one: &Quarantine, other: &Quarantine| {
        one.node == other.node && lines::is_same_scratch(&one.reason, &other.reason)
    };
    let mut unshown = summary.quarantined.len();
    let mut rows = Vec::new();
    for files in summary.quarantined.chunk_by(alike).take(lines::QUARANTINED_SHOWN_MAX) {
        unshown -= files.len();
        let Quarantine { node, path, reason } = &files[0];
        let paths = lines::and_more(path, files.len());
        rows.push(format!("{}: {paths} ({})", visible::line(node), visible::line(reason)));
    }
    if unshown > 0 {
        rows.push(format!("and {unshown} more: glovebox show {next} --json"));
    }
    rows
}

/// What a command proves, as the title of its row.
fn worth(evidence: &Evidence) -> &'static str {
    match (evidence.verified, is_the_pipelines(&evidence.handler)) {
        _ if evidence.receipt.subject => "subject",
        (true, _) if evidence.isolation == Some(Isolation::NotIsolated) => NOT_ISOLATED,
        (true, _) => "verified",
        (false, true) => "not verified",
        (false, false) => "ran",
    }
}

/// The stages that passed on their own word, by whose word it is.
fn own_words(summary: &Summary) -> String {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for word in summary.unverified.iter().take(OWN_WORDS_SHOWN_MAX) {
        let whose = match word.handler.as_str() {
            "codergen" => format!("the {} model", visible::line(&summary.model)),
            handler => visible::line(handler).into_owned(),
        };
        let node = visible::line(&word.node).into_owned();
        match said.iter_mut().find(|(known, _)| *known == whose) {
            Some((_, nodes)) => nodes.push(node),
            None => said.push((whose, vec![node])),
        }
    }
    let more = summary.unverified.len().saturating_sub(OWN_WORDS_SHOWN_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let said: Vec<String> =
        said.iter().map(|(whose, nodes)| format!("{}: by the word of {whose}", nodes.join(", "))).collect();
    format!("{}{more}", said.join("; "))
}

/// Text of several lines under its title.
fn indented(text: &str) -> String {
    visible::block(text.trim_end()).replace('\n', "\n             ")
}

fn headline(summary: &Summary) -> String {
    let (id, name) = (visible::line(&summary.run_id), visible::line(&summary.pipeline));
    let exit = match (summary.exit.code, summary.status.as_str()) {
        (0, _) | (_, UNFINISHED) => String::new(),
        (code, _) => format!(", exit {code} ({})", summary.exit.name),
    };
    let visits = counted(summary.visited.len(), "visit");
    format!("{id} of {name}: {}{exit}, {visits} in {}", summary.status, duration(summary.duration_ms))
}

fn receipt(evidence: &Evidence) -> String {
    let receipt = &evidence.receipt;
    let end = receipt.code.map_or_else(|| visible::line(&receipt.how).into_owned(), |code| format!("exit {code}"));
    let command = visible::summary(&receipt.argv.join(" "), 100);
    format!(
        "{}: {command} {end} in {} ({})",
        visible::line(&evidence.node),
        duration(receipt.duration_ms),
        visible::line(&receipt.tier)
    )
}

/// A change of a path in a few words.
pub fn change_line(change: &FileChange) -> String {
    let path = visible::line(&change.path);
    match change.op {
        ChangeOp::Write => format!("{path} ({} bytes)", change.bytes),
        ChangeOp::Delete => format!("{path} (deleted)"),
        ChangeOp::Mkdir => format!("{path}/"),
        ChangeOp::Rmdir => format!("{path}/ (deleted)"),
        ChangeOp::Symlink => format!("{path} -> {}", visible::line(change.target.as_deref().unwrap_or("?"))),
    }
}

/// True for a failed run that a resume takes up: a signal stopped it, or its folder had no room for the next stage.
fn can_go_on(summary: &Summary) -> bool {
    let is_out_of_disk = summary.failure.as_ref().is_some_and(|failure| failure.code == DISK_CODE);
    is_out_of_disk || matches!(summary.exit.exit, Exit::Interrupted | Exit::Terminated)
}

fn what_next(summary: &Summary, named: &Named) -> String {
    let next = &named.short;
    let node = summary.failed_node.as_ref().map(|node| format!(" {}", visible::line(node))).unwrap_or_default();
    match (summary.status.as_str(), summary.changed.is_empty()) {
        ("success", false) => format!("glovebox diff {next}, then glovebox apply {next}"),
        ("success", true) => format!("glovebox show {next}"),
        ("fail", _) if can_go_on(summary) => format!("glovebox resume {}", named.exact),
        ("fail", true) => format!("glovebox show {next}{node}, then run again"),
        ("fail", false) => format!("glovebox show {next}{node}, glovebox diff {next}, then run again"),
        _ => format!("glovebox resume {}", named.exact),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_engine::outcome::Failure;

    #[test]
    fn the_exit_follows_from_class_and_code_and_never_from_the_reason() {
        for (class, code, by, exit) in [
            (FailureClass::Deterministic, "tool/exit-code", None, Exit::RunFailed),
            (FailureClass::Deterministic, "GoalGateUnsatisfied", None, Exit::Unverified),
            (FailureClass::Deterministic, "script/exhausted", None, Exit::Provider),
            (FailureClass::Deterministic, "provider/authentication", None, Exit::Provider),
            (FailureClass::Transient, "provider/rate_limit", None, Exit::Transient),
            (FailureClass::Budget, "limit/wall_ms", None, Exit::Budget),
            (FailureClass::Scope, "scope/write", None, Exit::Policy),
            (FailureClass::Contract, "outcome/malformed", None, Exit::Plugin),
            (FailureClass::Internal, "trap/unreachable", None, Exit::Plugin),
            (FailureClass::Internal, "host/fault", None, Exit::Internal),
            (FailureClass::Canceled, "run/canceled", Some("signal INT"), Exit::Interrupted),
            (FailureClass::Canceled, "run/canceled", Some("signal TERM"), Exit::Terminated),
        ] {
            let failure = Failure::new(class, code, "signal TERM: budget GoalGateUnsatisfied");
            assert_eq!(exit_of(Some(&failure), by), exit, "{code}");
        }
        assert_eq!(exit_of(None, None), Exit::RunFailed);
    }
}
