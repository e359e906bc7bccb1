//! `glovebox why`: explains the path of a run through the graph, from the first edge to the exit code.

use crate::arguments::WhyArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs::journal;
use crate::runs::recorded;
use crate::runs::{self, RunFolder};
use crate::terminal::paint::Paint;
use crate::terminal::rows::Rows;
use crate::terminal::{self, duration, pager, routes, visible};
use glovebox_journal::event::{BranchId, NodeId};
use glovebox_names::shell;
use glovebox_pipeline::source::Source;
use glovebox_plan::prepare::source::CheckedPipeline;
use glovebox_state::why::{AttemptWhy, BranchWhy, ChoiceWhy, EndWhy, GateWhy, JoinWhy, RouteWhy, Step, What, Why};
use std::collections::BTreeSet;

/// Prints each step of a run, or only the steps of one node, with the reasons.
pub fn why(arguments: &WhyArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    if arguments.json {
        terminal::print_json(&document(&run, arguments.node.as_ref())?)?;
        return Ok(Exit::Ok);
    }
    let (found, kept) = read(&run, arguments.node.as_ref())?;
    let is_whole = arguments.node.is_none();
    pager::show(&render(&found, &kept.file.to_string_lossy(), is_whole));
    Ok(Exit::Ok)
}

/// Returns the document that `why --json` prints.
pub fn document(run: &RunFolder, node: Option<&NodeId>) -> Result<Why, Stop> {
    read(run, node).map(|(found, _)| found)
}

/// Returns the steps of a run, or those of one node, and the pipeline of the run. The journal is closed when this
/// returns: an open reader would prevent the removal of its write-ahead log while a person reads the output.
fn read(run: &RunFolder, node: Option<&NodeId>) -> Result<(Why, CheckedPipeline), Stop> {
    let journal = journal::open_to_show(run)?;
    let kept = recorded::read(run, journal::beginning(run, &journal.verified.records)?)?;
    let text = kept.rule_report.transformed.as_ref().unwrap_or(&kept.text);
    let whole = Why::read(&kept.pipeline, Source::new(text), &journal);
    let whole = whole.map_err(|error| journal::unreadable(run, &error))?;
    let Some(node) = node else { return Ok((whole, kept)) };
    let seen: BTreeSet<String> =
        whole.steps.iter().map(|step| format!("`{}`", visible::line(step.node.as_str()))).collect();
    let found = whole.at(node);
    if found.steps.is_empty() {
        let message = format!("run `{}` has no step at a node `{node}`", run.id);
        let seen = seen.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Stop::new(Exit::Usage, message).with_help(format!("the run has steps at {seen}")));
    }
    Ok((found, kept))
}

fn render(why: &Why, file: &str, is_whole: bool) -> String {
    let paint = Paint::stdout();
    let mut rows = Rows::below_a_title(12).painted(paint);
    rows.line(format_args!("{} {}", paint.title(&format!("{:<12}", "pipeline")), visible::line(file)));
    let (mut last, main) = (None, BranchId::main());
    for step in &why.steps {
        // A step that a resume has undone and a later step at the same node get separate headings.
        let here = (step.generation, &step.branch, &step.node, step.is_undone);
        if last.replace(here) != Some(here) {
            let branch = if step.branch == main { String::new() } else { format!(" (branch {})", step.branch) };
            let again = terminal::of_generation(step.generation);
            let left = if step.is_undone { terminal::LEFT } else { "" };
            rows.line(format_args!("{}{}{again}{left}", visible::line(step.node.as_str()), visible::line(&branch)));
        }
        self::step(&mut rows, step);
    }
    if let Some(end) = why.end.as_ref().filter(|_| is_whole) {
        self::end(&mut rows, end);
    }
    rows.finish()
}

fn step(rows: &mut Rows, step: &Step) {
    match &step.what {
        What::Attempt(attempt) => self::attempt(rows, attempt),
        What::Passed(passed) => {
            rows.row(
                "passed",
                format_args!("visit {}: the engine passes on the status `{}`", passed.visit, passed.status),
            );
        }
        What::GateUnmet(gate) => self::gate(rows, gate),
        What::BranchEnded(branch) => branch_ended(rows, branch),
        What::Joined(join) => joined(rows, join),
        What::Chose(choice) => chose(rows, choice),
        What::Route(route) | What::NoRoute(route) => self::route(rows, route),
        What::Restarted(restart) => {
            rows.row("restart", format_args!("generation {} begins at `{}`", restart.begins, restart.at));
            if !restart.kept.is_empty() {
                rows.row("", format_args!("context keys kept: {}", restart.kept.join(", ")));
            }
        }
    }
}

fn attempt(rows: &mut Rows, attempt: &AttemptWhy) {
    let what = if attempt.is_verification { "verification" } else { "attempt" };
    rows.row(what, format_args!("{} of visit {}: {}", attempt.attempt, attempt.visit, attempt.status));
    if let Some(action) = attempt.decided {
        rows.row("decided", format_args!("{action}: a person decided about the stage's writes outside of its scope"));
    }
    if let Some(failure) = &attempt.failure {
        rows.row("because", format_args!("{} ({}): {}", failure.class.as_str(), failure.code.as_str(), failure.reason));
    }
    if attempt.no_change {
        rows.row("changed", terminal::NO_CHANGE);
    }
    if let Some(meta) = &attempt.error_meta {
        let command = meta.failed_command.as_deref().map(|line| format!(": {line}")).unwrap_or_default();
        let wanted = meta.failed_command_source.map(|source| format!(" ({})", source.as_str())).unwrap_or_default();
        rows.row("failed", format_args!("{} ({}){command}{wanted}", meta.failure_code, meta.category.as_str()));
    }
    if let Some(delay) = attempt.delay_ms.filter(|_| attempt.retried) {
        rows.row("retried", format_args!("after {}", duration(delay)));
    }
}

fn branch_ended(rows: &mut Rows, branch: &BranchWhy) {
    let why = branch.failure.as_ref().map(|failure| format!(": {}", failure.reason)).unwrap_or_default();
    let score = if branch.score == 0.0 { String::new() } else { format!(", score {}", branch.score) };
    rows.row("branch", format_args!("{} {}{score}{why}", branch.ended, branch.outcome));
}

fn joined(rows: &mut Rows, join: &JoinWhy) {
    let JoinWhy { join_policy, error_policy, status, succeeded, failed, canceled, never_started } = join;
    rows.row(
        "join",
        format_args!(
            "{status} by {join_policy} and {error_policy}: {succeeded} succeeded, {failed} failed, {canceled} canceled, \
             {never_started} never began"
        ),
    );
}

fn chose(rows: &mut Rows, choice: &ChoiceWhy) {
    let best = choice.best.as_ref().map_or("no branch", |best| best.as_str());
    rows.row("chose", format_args!("{best}, judged by {}", choice.judge));
    if let Some(failure) = &choice.failure {
        rows.row("because", format_args!("{} ({}): {}", failure.class.as_str(), failure.code.as_str(), failure.reason));
    }
}

fn gate(rows: &mut Rows, gate: &GateWhy) {
    let found = gate.status.map_or_else(|| "was never visited".to_owned(), |status| format!("ended with `{status}`"));
    if !gate.dropped_checks.is_empty() {
        let dropped = gate.dropped_checks.join("`, `");
        return rows.row("gate", format_args!("`{}` skipped commands of the verify contract: `{dropped}`", gate.gate));
    }
    let then = match &gate.target {
        Some(target) => format!("so the run goes to `{target}`"),
        None => "and no `retry_target` is set".to_owned(),
    };
    rows.row("gate", format_args!("`{}` {found}, {then}", gate.gate));
}

fn route(rows: &mut Rows, route: &RouteWhy) {
    match &route.to {
        Some(to) => rows.row("route", format_args!("-> {to} ({}), with `{}`", route.how, route.status)),
        None => rows.row("route", format_args!("none for the status `{}`", route.status)),
    }
    routes::edges(rows, &route.edges);
}

fn end(rows: &mut Rows, end: &EndWhy) {
    rows.line("end");
    for command in &end.commands {
        rows.row("command", format_args!("{}: {}", shell::line(&command.argv), command.ended));
    }
    if let Some(failure) = &end.failure {
        let stage = end.failed_node.as_ref().map(|node| format!(" at `{node}`")).unwrap_or_default();
        let (class, code) = (failure.class.as_str(), failure.code.as_str());
        rows.row("because", format_args!("{class} ({code}){stage}: {}", failure.reason));
    }
    rows.row("run", end.status);
    rows.row("exit", format_args!("{} ({})", end.exit_code, end.exit_name));
}
