//! Renders the summary of a run as text: verified, refused, changed, quarantined, and the next command.
//!
//! It renders the summary that the journal folds to and decides nothing. `run`, `resume` and `show` print the same
//! text.

use crate::terminal::branches_now;
use crate::terminal::failed_output::FailedOutput;
use crate::terminal::missing;
use crate::terminal::paint::Paint;
use crate::terminal::rows::Rows;
use crate::terminal::status_files;
use crate::terminal::{counted, duration, hints, lines, moment, remedy, size, visible};
use glovebox_engine::attempt::exchanges::HeldCost;
use glovebox_journal::event::{ChangeOp, FileChange, ForkedFrom};
use glovebox_names::shell;
use glovebox_pipeline::ir::{HandlerKind, NodeId};
use glovebox_record::spend::{Money, SpendTotals};
use glovebox_record::{Failure, FailureCode, Hook, HookKind, LimitUnit, LimitUse, Receipt, Tokens};
use glovebox_state::evidence::configuration::NewConfiguration;
use glovebox_state::evidence::{
    CommandEvidence, DroppedChecks, FailedBranch, Proof, RecoveryDecision, Resumption, RunStatus, RunSummary,
    UnverifiedStage,
};
use glovebox_state::refused_writes::Folded;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of stages in the row of unverified stages.
const UNVERIFIED_SHOWN_MAX: usize = 10;

/// Maximum number of rows for programs under test of one stage. A test suite starts one program for each case.
const SUBJECTS_SHOWN_MAX: usize = 3;

/// Maximum number of files that a row lists for one stage: files that it saw together with hold-outs, or loaded at
/// start-up.
const CONFIGURATION_SHOWN_MAX: usize = 5;
/// Maximum number of failed branches that get a row with the reason. The others are only named.
const BRANCHES_SHOWN_MAX: usize = 10;

/// The help for a run that failed because a stage needs a model and none is configured.
const NO_MODEL: &str =
    "no model is configured, so nothing repaired the failure: add `[models]` to glovebox.toml (docs/models.md)";

/// Maximum number of characters of a command.
const COMMAND_CHARACTERS_MAX: usize = 100;

/// The names of a run in the commands that are suggested to the user.
pub struct RunNames {
    /// `latest` or the id, for commands that only show the run.
    pub short: String,
    /// Always the id, because `latest` may name another run later.
    pub exact: String,
}

/// Renders a summary for people.
pub fn render(
    summary: &RunSummary,
    new: &[NewConfiguration],
    failed: Option<&FailedOutput>,
    named: &RunNames,
    paint: Paint,
) -> String {
    let next = &named.short;
    let mut rows = Rows::new(12).painted(paint);
    let mut row = |title: &'static str, body: String| rows.block(title, body);
    row("run", headline(summary, paint));
    running(summary).into_iter().for_each(|body| row("branch", body));
    for asked in &summary.open_questions {
        let question = visible::line(asked.question.as_str());
        let expected = visible::line(&asked.answers().expected()).into_owned();
        row("waits for", format!("an answer to {question}: {}\nexpected {expected}", indented(&asked.text)));
    }
    reasons(summary, failed, paint).into_iter().for_each(|(title, body)| row(title, body));
    failed_branches(summary, next).into_iter().for_each(|body| row("failed", body));
    if let Some(remedy) = remedy::for_run(summary) {
        row("help", remedy);
    }
    for node in &summary.proof.misses_holdouts {
        let node = visible::line(node.as_str());
        row("help", format!("`{node}` {}", lines::MISSES_HOLDOUTS));
    }
    receipts(summary, named)
        .into_iter()
        .chain([missing::rows(&summary.proof), status_files::rows(&summary.proof)].concat())
        .for_each(|(title, body)| row(title, body));
    if let Some(open) = summary.proof.receipts.iter().find(|evidence| evidence.proof() == Proof::VerifiedNotIsolated) {
        row("help", beside_holdouts(summary, &open.node));
    }
    startup_files(summary).into_iter().for_each(|body| row("help", body));
    if let Some(open) = summary.proof.receipts.iter().find(|evidence| evidence.proof() == Proof::VerifiedWithCaches) {
        let node = visible::line(open.node.as_str());
        row(
            "help",
            format!("`{node}` started with caches that builders' code had written: glovebox explain with-caches"),
        );
    }
    if let Some((nodes, by)) = summary.outdated().filter(|_| summary.status == RunStatus::Success) {
        let by = visible::line(by.as_str());
        row(
            "help",
            format!("`{by}` changed files after these stages passed: {}. Run them again after `{by}`", listed(&nodes)),
        );
    }
    dropped(summary).into_iter().for_each(|body| row("dropped", body));
    if !summary.has_pipeline_command() {
        row("verified", "nothing: no tool or verify stage ran a command".to_owned());
    }
    if summary.has_full_network() {
        row("network", "full: commands could reach every host, and their traffic is not recorded".to_owned());
    }
    if !summary.model.simulated.is_empty() {
        row("simulated", format!("{}: no model was asked", listed(&summary.model.simulated)));
    }
    origins(summary).into_iter().for_each(|(title, body)| row(title, body));
    if !summary.model.tokens.is_zero() {
        row("tokens", spent(summary.model.tokens, summary.model.cost, summary.model.is_estimated));
    }
    if !summary.proof.unverified.is_empty() {
        row("unverified", claims(&summary.proof.unverified, &summary.model.provider));
    }
    refused(summary, next).into_iter().for_each(|body| row("refused", body));
    summary.files.changed.values().for_each(|change| row("changed", change_line(change)));
    lines::new_configuration(new).into_iter().for_each(|body| row("new configuration", body));
    for decision in &summary.files.recovery {
        row("recovery", recovery_line(decision));
    }
    quarantined(summary, named).into_iter().for_each(|body| row("quarantined", body));
    summary.files.ignored.iter().for_each(|files| row("ignored", lines::ignored(files)));
    row("next", what_next(summary, named));
    rows.finish()
}

/// Returns a row for each branch of a running run.
fn running(summary: &RunSummary) -> Vec<String> {
    let now = Timestamp::now();
    summary.branches_now.iter().map(|branch| branches_now::described(branch, now)).collect()
}

/// Returns a row for each earlier run from which this run took something.
fn origins(summary: &RunSummary) -> Vec<(&'static str, String)> {
    let caches = summary.proof.caches_from.as_ref().map(|from| visible::line(from.as_str()));
    let caches = caches.map(|from| ("caches", format!("the build caches came from run {from}")));
    caches.into_iter().chain(summary.forked_from.as_ref().map(|from| ("forked", origin(from)))).collect()
}

/// Describes the run, and the visit in it, at which a forked run began.
fn origin(from: &ForkedFrom) -> String {
    let again = if from.generation == 0 { String::new() } else { format!(" generation {}", from.generation) };
    let (run, node) = (visible::line(from.run_id.as_str()), visible::line(from.node.as_str()));
    format!("from {run} before {node} visit {}{again}", from.visit)
}

/// Returns the rows that say why a run failed: the stage with its failure, the end of its output, and its failed tests.
fn reasons(summary: &RunSummary, failed: Option<&FailedOutput>, paint: Paint) -> Vec<(&'static str, String)> {
    let because = summary.cause().map(|cause| ("because", because(cause.node, cause.failure)));
    let output = failed.into_iter().flat_map(|failed| failed.rows(paint));
    let hint = failed.and_then(|failed| hints::for_lines(failed.lines(), summary.has_full_network()));
    let help = summary.lacks_model().then(|| NO_MODEL.to_owned());
    let help = used_up(summary).into_iter().chain(hint).chain(help).map(|help| ("help", help));
    let quota = quota(summary).map(|quota| ("quota", quota));
    because.into_iter().chain(quota).chain(output).chain(help).collect()
}

/// Returns the row of a paused run about the quota that a stage waits for.
fn quota(summary: &RunSummary) -> Option<String> {
    let waits = lines::quota_waits(summary.end.quota_waits);
    let resumes = summary.end.resume_at.map(|at| format!("it resumes at {}, as the provider says", moment(at)));
    let parts: Vec<String> = resumes.into_iter().chain(waits).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns a line for each limit that the failed stage used up, and that refuses instead of killing the command.
fn used_up(summary: &RunSummary) -> Vec<String> {
    let node = summary.cause().and_then(|cause| cause.node);
    let Some((node, stage)) = node.and_then(|node| Some((node, summary.proof.failed.get(node)?))) else {
        return Vec::new();
    };
    let node = visible::line(node.as_str());
    let line = |usage: &LimitUse| {
        let name = usage.name;
        let limit = match name.unit() {
            LimitUnit::Bytes => size(usage.limit),
            LimitUnit::Milliseconds | LimitUnit::Count => usage.limit.to_string(),
        };
        format!("`{node}` used all of `{name}` ({limit}): raise `{name}` under `[limits]` in glovebox.toml")
    };
    stage.used_up.iter().map(line).collect()
}

/// Returns why the run failed, and at which stage.
fn because(node: Option<&NodeId>, failure: &Failure) -> String {
    let node = node.map(|node| format!("{}: ", visible::line(node.as_str()))).unwrap_or_default();
    let (class, code) = (failure.class.as_str(), visible::line(failure.code.as_str()));
    let reason = match failure.reason.strip_prefix("tool_exit_code_").filter(|_| code == "tool/exit-code") {
        Some(number) => format!("exit {}", visible::line(number)),
        None => indented(&failure.reason),
    };
    format!("{node}{class} ({code}): {reason}")
}

/// Returns a row for each branch that failed, even if the parallel node continued without it.
fn failed_branches(summary: &RunSummary, next: &str) -> Vec<String> {
    let failed = &summary.proof.failed_branches;
    let line = |failed: &FailedBranch| {
        let branch = visible::line(failed.branch.as_str());
        let at = failed.node.as_ref().map(|node| format!(" at {}", visible::line(node.as_str()))).unwrap_or_default();
        let why = failed.failure.as_ref().map(|failure| format!(": {}", because(None, failure)));
        format!("branch {branch}{at}{}", why.unwrap_or_default())
    };
    let mut lines: Vec<String> = failed.iter().take(BRANCHES_SHOWN_MAX).map(line).collect();
    let more = failed.len().saturating_sub(BRANCHES_SHOWN_MAX);
    if more > 0 {
        let names: Vec<_> = failed[BRANCHES_SHOWN_MAX..].iter().map(|one| visible::line(one.branch.as_str())).collect();
        lines.push(format!(
            "{more} more branches (for their reasons: glovebox show {next} --json): {}",
            names.join(", ")
        ));
    }
    lines
}

/// Returns a row for each stage that skipped commands of the verify contract.
fn dropped(summary: &RunSummary) -> Vec<String> {
    let line = |dropped: &DroppedChecks| {
        let commands: Vec<_> = dropped.commands.iter().map(|line| visible::line(line)).collect();
        let node = visible::line(dropped.node.as_str());
        format!("{node}: {} (the verify contract asks for it)", commands.join(", "))
    };
    summary.proof.dropped_checks.iter().map(line).collect()
}

/// Describes the decision of a person about writes outside of the scope.
fn recovery_line(decision: &RecoveryDecision) -> String {
    let granted: Vec<_> = decision.granted.iter().map(|file| visible::line(file.path.as_str())).collect();
    let granted = if granted.is_empty() { String::new() } else { format!(" {}", granted.join(", ")) };
    let by = if decision.by.is_empty() { String::new() } else { format!(" by {}", visible::line(&decision.by)) };
    let node = visible::line(decision.node.as_str());
    format!("{node}: {}{granted} ({}{by})", decision.action, decision.how.as_str())
}

/// Names the files that a stage saw together with hold-outs and from which test runners run code.
fn beside_holdouts(summary: &RunSummary, node: &NodeId) -> String {
    let shown = |text: &str| visible::line(text).into_owned();
    let name = shown(node.as_str());
    let seen =
        format!("`{name}` saw the project together with its hold-outs: glovebox explain project_beside_holdouts");
    let files = summary.proof.beside_holdouts.of(node).map(|(path, author, reader)| {
        let (path, author) = (shown(path.as_str()), shown(author.as_str()));
        format!(
            "`{path}` was written by `{author}`, and {reader} reads it together with hold-outs unless `read_paths` hides it"
        )
    });
    let mut lines: Vec<String> = files.collect();
    let more = lines.len().saturating_sub(CONFIGURATION_SHOWN_MAX);
    lines.truncate(CONFIGURATION_SHOWN_MAX);
    lines.extend((more > 0).then(|| format!("and {more} more such files")));
    lines.insert(0, seen);
    lines.join("\n")
}

/// Returns a row for each verifier whose commands loaded files of other stages at start-up.
fn startup_files(summary: &RunSummary) -> Vec<String> {
    let shown = |text: &str| visible::line(text).into_owned();
    let mut nodes: BTreeMap<&NodeId, BTreeSet<String>> = BTreeMap::new();
    let open = summary.proof.receipts.iter().filter(|evidence| evidence.proof() == Proof::VerifiedWithStartupFiles);
    for evidence in open {
        let node = shown(evidence.node.as_str());
        nodes.entry(&evidence.node).or_default().extend(evidence.startup.iter().map(|file| {
            let (path, by, reader) = (shown(file.path.as_str()), shown(file.by.as_str()), file.reader);
            format!("`{path}` was written by `{by}`, and {reader} loads it in `{node}` at start-up")
        }));
    }
    let of_node = |files: BTreeSet<String>| {
        let more = files.len().saturating_sub(CONFIGURATION_SHOWN_MAX);
        let mut lines: Vec<String> = files.into_iter().take(CONFIGURATION_SHOWN_MAX).collect();
        lines.extend((more > 0).then(|| format!("and {more} more such files")));
        lines.push("such a file can make a failing check pass: look at it, or hide it with `read_paths`".to_owned());
        lines.join("\n")
    };
    nodes.into_values().map(of_node).collect()
}

/// Returns a row for each command, but only the first few programs under test of one stage.
fn receipts(summary: &RunSummary, RunNames { short: next, .. }: &RunNames) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let alike = |one: &CommandEvidence, other: &CommandEvidence| {
        one.node == other.node && one.receipt.subject == other.receipt.subject
    };
    let (hooks, commands): (Vec<_>, Vec<_>) =
        summary.proof.receipts.iter().partition(|evidence| evidence.proof() == Proof::Hook);
    for group in commands.chunk_by(|one, other| alike(one, other)) {
        let most = if group[0].receipt.subject { SUBJECTS_SHOWN_MAX } else { usize::MAX };
        rows.extend(group.iter().take(most).map(|evidence| (title(evidence.proof()), receipt(evidence))));
        let left = group.get(most..).unwrap_or_default();
        if !left.is_empty() {
            let failed = left.iter().filter(|evidence| evidence.receipt.code != Some(0)).count();
            let (node, more) = (visible::line(group[0].node.as_str()), left.len());
            rows.push(("subject", format!("{node}: {more} more, {failed} failed: glovebox show {next} {node}")));
        }
    }
    rows.extend(hooks.chunk_by(|one, other| one.node == other.node).map(|group| ("hook", of_hooks(group, next))));
    rows
}

/// Returns one line for the hooks of a node. The calls that they refused are in the rows of refusals.
fn of_hooks(group: &[&CommandEvidence], next: &str) -> String {
    let failed = |kind: HookKind| {
        let is_meant = |hook: &Hook| hook.kind == kind;
        let of_kind = group.iter().filter(|one| one.receipt.hook.as_ref().is_some_and(is_meant));
        of_kind.filter(|one| !one.receipt.passed()).count()
    };
    let (refused, failed) = (failed(HookKind::Pre), failed(HookKind::Post));
    let node = visible::line(group[0].node.as_str());
    let (ran, refused) = (counted(group.len(), "hook"), counted(refused, "call"));
    let failed = if failed > 0 { format!(", {failed} post failed") } else { String::new() };
    format!("{node}: {ran} ran, {refused} refused{failed}: glovebox show {next} {node}")
}

/// Returns the first refusals of each stage, so that many refusals of one stage do not hide those of another.
fn refused(summary: &RunSummary, next: &str) -> Vec<String> {
    let nodes: BTreeSet<&NodeId> = summary.access.refused.iter().map(|refused| &refused.node).collect();
    let shown_max = lines::REFUSALS_SHOWN_MAX.div_ceil(nodes.len().max(1)).max(2);
    let mut rows = Vec::new();
    for node in nodes {
        let whose = visible::line(node.as_str());
        let of_node: Vec<_> = summary.access.refused.iter().filter(|refused| refused.node == *node).collect();
        rows.extend(of_node.iter().take(shown_max).map(|refused| {
            let line = lines::refused(&refused.refusal, refused.times);
            format!("{whose}: {}", line.trim_start_matches("refused "))
        }));
        if of_node.len() > shown_max {
            rows.push(format!("{whose}: and {} more: glovebox show {next} {whose}", of_node.len() - shown_max));
        }
    }
    rows
}

/// Returns a row for each folder in which files of a stage were quarantined, with the remedy if there is one.
fn quarantined(summary: &RunSummary, RunNames { short: next, .. }: &RunNames) -> Vec<String> {
    let nodes: BTreeSet<&NodeId> = summary.files.quarantined.iter().map(|file| &file.node).collect();
    let folded = nodes.into_iter().flat_map(|node| {
        let of_node = summary.files.quarantined.iter().filter(move |file| file.node == *node);
        let of_node = of_node.map(|file| (file.path.as_str(), file.reason.as_str()));
        Folded::group(of_node).into_iter().map(move |files| (node, files))
    });
    let folded: Vec<_> = folded.collect();
    let mut rows = Vec::new();
    for (node, files) in folded.iter().take(lines::QUARANTINED_SHOWN_MAX) {
        let (which, why) = lines::set_aside(files);
        let help = files.help().map(|help| format!("; help: {}", visible::line(&help))).unwrap_or_default();
        rows.push(format!("{}: {which} ({why}{help})", visible::line(node.as_str())));
    }
    let unshown: usize = folded.iter().skip(lines::QUARANTINED_SHOWN_MAX).map(|(_, files)| files.files).sum();
    if unshown > 0 {
        rows.push(format!("and {unshown} more: glovebox show {next} --json"));
    }
    rows
}

/// Returns the title of a command's row, which says what the command proves.
pub const fn title(proof: Proof) -> &'static str {
    match proof {
        Proof::Subject => "subject",
        Proof::Hook => "hook",
        Proof::Verified => "verified",
        Proof::VerifiedNotIsolated => "verified (subject not isolated)",
        Proof::VerifiedWithStartupFiles => "verified (with start-up files of builders)",
        Proof::VerifiedWithCaches => "verified (with caches of builders' code)",
        Proof::NotVerified => "not verified",
        Proof::NotTaken => "not taken",
        Proof::Ran => "ran",
    }
}

/// Describes the unverified stages, grouped by the model or handler that claims their success.
pub fn claims(unverified: &[UnverifiedStage], model: &str) -> String {
    let mut claims: Vec<(String, Vec<String>)> = Vec::new();
    for stage in unverified.iter().take(UNVERIFIED_SHOWN_MAX) {
        let whose = match HandlerKind::from_name(&stage.handler) {
            HandlerKind::Codergen => format!("the {} model", visible::line(model)),
            _ => visible::line(&stage.handler).into_owned(),
        };
        let node = visible::line(stage.node.as_str()).into_owned();
        match claims.iter_mut().find(|(known, _)| *known == whose) {
            Some((_, nodes)) => nodes.push(node),
            None => claims.push((whose, vec![node])),
        }
    }
    let more = unverified.len().saturating_sub(UNVERIFIED_SHOWN_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let claims: Vec<String> =
        claims.iter().map(|(whose, nodes)| format!("{}: claimed by {whose}", nodes.join(", "))).collect();
    format!("{}{more}", claims.join("; "))
}

/// Names the first nodes, and gives the number of the others.
fn listed(nodes: &BTreeSet<NodeId>) -> String {
    let shown: Vec<_> = nodes.iter().take(UNVERIFIED_SHOWN_MAX).map(|node| visible::line(node.as_str())).collect();
    match nodes.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Formats tokens and money, with `~` if a part is estimated.
pub fn spent(tokens: Tokens, cost: Money, is_estimated: bool) -> String {
    let about = if is_estimated { "~" } else { "" };
    let cost = if cost.is_zero() { String::new() } else { format!(", {about}{cost}") };
    format!("{about}{} sent, {about}{} received{cost}", tokens.input, tokens.output)
}

/// Formats money, with `~` if a part is estimated.
pub fn cost(spent: SpendTotals) -> String {
    format!("{}{}", if spent.is_estimated { "~" } else { "" }, spent.cost)
}

/// Describes the model answers that a resume reuses instead of paying again, in a few words.
pub fn held(held: HeldCost) -> String {
    let HeldCost { answers, uncounted: SpendTotals { tokens, cost, is_estimated } } = held;
    let uncounted = (!tokens.is_zero()).then(|| format!("not counted yet: {}", spent(tokens, cost, is_estimated)));
    let answers = (answers > 0).then(|| {
        let answers = counted(usize::try_from(answers).unwrap_or(usize::MAX), "model answer");
        format!("{answers}, which a resume reuses without paying again")
    });
    answers.into_iter().chain(uncounted).collect::<Vec<_>>().join("; ")
}

/// Indents the following lines of a text to the column of the first line.
fn indented(text: &str) -> String {
    visible::block(text.trim_end()).replace('\n', "\n             ")
}

fn headline(summary: &RunSummary, paint: Paint) -> String {
    let (id, name) = (visible::line(&summary.run_id), visible::line(&summary.pipeline));
    let exit = match summary.status {
        RunStatus::Success | RunStatus::Unfinished | RunStatus::Paused | RunStatus::Running => String::new(),
        RunStatus::Fail => format!(", exit {} ({})", summary.end.exit.code(), summary.end.exit.name()),
    };
    let visits = counted(summary.visited.len(), "visit");
    let status = paint.status(summary.status.as_str());
    format!("{id} of {name}: {status}{exit}, {visits} in {}", duration(summary.duration_ms))
}

/// Describes how a command ended, and why it proves nothing if it does not.
pub fn ending(receipt: &Receipt) -> String {
    let end = receipt.code.map_or_else(|| receipt.how.to_string(), |code| format!("exit {code}"));
    receipt.no_proof.map(|why| format!("{end} ({why})")).unwrap_or(end)
}

fn receipt(evidence: &CommandEvidence) -> String {
    let receipt = &evidence.receipt;
    let end = ending(receipt);
    let command = visible::summary(&shell::line(&receipt.argv), COMMAND_CHARACTERS_MAX);
    format!(
        "{}: {command} {end} in {} ({})",
        visible::line(evidence.node.as_str()),
        duration(receipt.duration_ms),
        receipt.tier
    )
}

/// Describes one change in a few words.
pub fn change_line(change: &FileChange) -> String {
    let path = visible::line(change.path.as_str());
    match change.op {
        ChangeOp::Write => format!("{path} ({} bytes)", change.bytes),
        ChangeOp::Delete => format!("{path} (deleted)"),
        ChangeOp::Mkdir => format!("{path}/"),
        ChangeOp::Rmdir => format!("{path}/ (deleted)"),
        ChangeOp::Symlink => format!("{path} -> {}", visible::line(change.target.as_deref().unwrap_or("?"))),
    }
}

/// Returns the stage whose output shows why a run failed: the first stage whose failure led to the end, or the failed
/// stage if it ran a command, or else the stage whose failed command it should have fixed.
fn with_output(summary: &RunSummary) -> Option<&NodeId> {
    if summary.lacks_model() {
        return summary.cause()?.node;
    }
    if let Some(first) = summary.end.resumes_at.as_ref().filter(|first| summary.end.failed_node.as_ref() != Some(first))
    {
        return Some(first);
    }
    let failed = summary.end.failed_node.as_ref()?;
    if summary.proof.receipts.iter().any(|evidence| evidence.node == *failed) {
        return Some(failed);
    }
    let unrepaired = summary.proof.receipts.iter().rev().find(|evidence| evidence.receipt.code != Some(0));
    Some(unrepaired.map_or(failed, |evidence| &evidence.node))
}

/// Describes where a resume begins, unless it is at the stage that ended the run.
fn begins_at(summary: &RunSummary) -> String {
    let first = summary.end.resumes_at.as_ref().filter(|first| summary.end.failed_node.as_ref() != Some(first));
    first.map(|first| format!(" (restarts at {})", visible::line(first.as_str()))).unwrap_or_default()
}

fn what_next(summary: &RunSummary, named: &RunNames) -> String {
    let next = &named.short;
    let node = with_output(summary).map(|node| format!(" {}", visible::line(node.as_str()))).unwrap_or_default();
    let exact = &named.exact;
    let at = begins_at(summary);
    match (summary.status, summary.files.changed.is_empty()) {
        (RunStatus::Success, false) => format!("glovebox diff {next}, then glovebox apply {next}"),
        (RunStatus::Success, true) => format!("glovebox show {next}"),
        (RunStatus::Paused, _) if !summary.open_questions.is_empty() => {
            let question = visible::line(summary.open_questions[0].question.as_str());
            format!(
                "glovebox gates {exact}, then glovebox answer {exact} {} VALUE, then glovebox resume {exact}",
                shell::word(&question)
            )
        }
        (RunStatus::Running, _) => {
            format!("wait until it ends: glovebox attach {exact}, or end it: glovebox cancel {exact}")
        }
        _ if summary.end.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::REVOKED) => {
            format!("glovebox show {next}{node}, then use another version of the plugin: glovebox plugin update NAME")
        }
        (_, nothing_changed) => match (summary.resumption(), nothing_changed) {
            (Resumption::Continues, _) => format!("glovebox resume {exact}"),
            (Resumption::NeedsSteps, _) => format!("glovebox resume {exact} --max-steps N, with a higher N"),
            (Resumption::NeedsTokens, _) => format!("glovebox resume {exact} --max-tokens N, with a larger N"),
            (Resumption::NeedsMoney, _) => {
                format!("glovebox resume {exact} --max-budget-usd USD, with a larger amount")
            }
            (Resumption::NeedsTime, _) => format!("glovebox resume {exact} --max-wall-time T, with a longer T"),
            (Resumption::Shows, _) => format!("glovebox show {next}{node}, then run again"),
            // No failed stage has visits left, so a resume would need another stage to begin at.
            (Resumption::Repeats, _) if summary.end.resumes_at.is_none() => {
                format!("glovebox show {next}{node}, then run again")
            }
            (Resumption::Repeats, true) => {
                format!("glovebox show {next}{node}, then glovebox resume {exact}{at} or run again")
            }
            (Resumption::Repeats, false) => {
                format!(
                    "glovebox show {next}{node}, glovebox diff {next}, then glovebox resume {exact}{at} or run again"
                )
            }
        },
    }
}
