//! `glovebox show`: the summary of a run, or the attempts of one node.

use crate::answer_sources;
use crate::arguments::ShowArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::exports::reports;
use crate::runs;
use crate::runs::RunFolder;
use crate::runs::branches_now;
use crate::runs::changes;
use crate::runs::failure::{self, OUTPUTS};
use crate::runs::journal;
use crate::terminal::colours;
use crate::terminal::paint::Paint;
use crate::terminal::rows::Rows;
use crate::terminal::summary::{self, RunNames};
use crate::terminal::{self, duration, lines, pager, routes, visible};
use glovebox_engine::attempt::TRANSCRIPT_FILE;
use glovebox_engine::inbox::GivenAnswer;
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::{
    Event, HostTraffic, NodeId, Record, RouteTaken, RunStarted, StageFinished, StageSteered,
};
use glovebox_journal::ports::BlobStore;
use glovebox_journal::reading::ReadRecords;
use glovebox_journal::sqlite::OpenJournal;
use glovebox_names::shell;
use glovebox_record::Session;
use glovebox_state::evidence::configuration::NewConfiguration;
use glovebox_state::evidence::{Resumption, RunSummary, VerdictFile};
use glovebox_state::refused_writes::Folded;
use glovebox_state::why::EdgeWhy;
use std::collections::{BTreeMap, BTreeSet};

const OUTPUT_BYTES_MAX: u64 = 16 << 20;
const OUTPUT_LINES_MAX: usize = 20;
const OUTPUT_CHARACTERS_MAX: usize = 200;
/// Minimum use of a limit, in percent, at which the limit is shown without `--limits`.
const LIMIT_SHOWN_PERCENT: u8 = 80;

/// Prints a run's summary, or every attempt of a node with its limits, receipts, refusals and the edge that was taken
/// after it.
pub fn show(arguments: &ShowArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    reports::require_places(&arguments.reports)?;
    reports::write(&arguments.reports, &run)?;
    let journal = journal::open_to_show(&run)?;
    journal::beginning(&run, &journal.verified.records)?;
    match &arguments.node {
        None => show_run(arguments, &run, journal),
        Some(node) => show_node(arguments, &run, node, journal),
    }
}

/// Returns the document that `show --json` prints for a run, as text.
pub fn document(run: &RunFolder) -> Result<String, Stop> {
    summarize(run, journal::open_to_show(run)?)?.document()
}

/// Returns the records about one node, which `show --json` prints.
pub fn node_records(run: &RunFolder, node: &NodeId) -> Result<Vec<Record>, Stop> {
    let journal = journal::open_to_show(run)?;
    journal::beginning(run, &journal.verified.records)?;
    let mut about = Vec::new();
    each_about(run, node, journal, |record| about.push(record.clone()))?;
    Ok(about)
}

/// What `show` prints about a run.
struct Shown {
    summary: RunSummary,
    terms: RunStarted,
    new_configuration: Vec<NewConfiguration>,
}

impl Shown {
    fn document(self) -> Result<String, Stop> {
        let mut verdict = VerdictFile::new(&self.summary, &self.terms);
        verdict.new_configuration = self.new_configuration;
        terminal::json(&verdict)
    }
}

fn summarize(run: &RunFolder, journal: OpenJournal) -> Result<Shown, Stop> {
    let mut summary = RunSummary::read(&journal, |_| {}).map_err(|error| journal::unreadable(run, &error))?;
    // The journal is closed before a person reads the output, so that its write-ahead log can be removed.
    let verified = journal.close();
    if runs::is_live(run) {
        summary.is_running(jiff::Timestamp::now());
        branches_now::note(run, &mut summary.branches_now);
    }
    let terms = journal::current_start(run, &verified.records)?;
    let new_configuration = changes::new_configuration(run, &terms.workspace.base_digest, &summary)?;
    Ok(Shown { summary, terms, new_configuration })
}

fn show_run(arguments: &ShowArguments, run: &RunFolder, journal: OpenJournal) -> CommandResult {
    let shown = summarize(run, journal)?;
    if arguments.json {
        terminal::print(shown.document()? + "\n");
        return Ok(Exit::Ok);
    }
    let Shown { summary: mut found, new_configuration: new, .. } = shown;
    let paint = Paint::stdout();
    let kept = answer_sources::kept_for(run, &found.open_questions.iter().collect::<Vec<_>>());
    found.open_questions.retain(|asked| kept.iter().all(|given| given.question != asked.question));
    let failed = failure::read(run, &found);
    let mut text = summary::render(&found, &new, failed.as_ref(), &runs::named(run, &arguments.runs.runs_dir)?, paint);
    let can_go_on = !matches!(found.resumption(), Resumption::Shows);
    if let Some(held) = can_go_on.then(|| run.held()).flatten() {
        text.push_str(&format!("{} {}\n", paint.title("held        "), summary::held(held)));
    }
    for GivenAnswer { question, value, by, .. } in &kept {
        let (question, value) = (visible::line(question.as_str()), visible::line(value));
        let (title, by) = (paint.title("answered    "), visible::line(by));
        text.push_str(&format!("{title} {question} with `{value}` by {by}; the resume records it\n"));
    }
    for visit in &found.visited {
        let again = if visit.visit > 1 { format!(" visit {}", visit.visit) } else { String::new() };
        let again = again + &terminal::of_generation(visit.generation);
        let tries = if visit.attempts > 1 { format!(" after {} attempts", visit.attempts) } else { String::new() };
        text.push_str(&format!(
            "{} {}{again}: {}{tries}\n",
            paint.title(&format!("{:<12}", "visited")),
            visible::line(visit.node.as_str()),
            paint.status(visit.status)
        ));
    }
    text.push_str(&format!("{} {}\n", paint.title("folder      "), visible::line(&run.path.to_string_lossy())));
    pager::show(&text);
    Ok(Exit::Ok)
}

fn show_node(arguments: &ShowArguments, run: &RunFolder, node: &NodeId, journal: OpenJournal) -> CommandResult {
    if arguments.json {
        drop(journal);
        terminal::print_json(&node_records(run, node)?)?;
        return Ok(Exit::Ok);
    }
    let mut rows = Rows::below_a_title(12).painted(Paint::stdout());
    let (blobs, named) = (changes::open_blobs(run)?, runs::named(run, &arguments.runs.runs_dir)?);
    let in_force = journal.in_force();
    let mut steered = Vec::new();
    each_about(run, node, journal, |record| match &record.event {
        Event::StageFinished(stage) => {
            attempt(&mut rows, stage, in_force.iter().any(|range| range.contains(&record.seq)));
            told(&mut rows, stage, &steered);
            output(&mut rows, stage, &blobs, &named);
            limits(&mut rows, stage, arguments.limits);
        }
        Event::RouteTaken(route) if route.from == *node => edge(&mut rows, route),
        event => {
            if let Event::StageSteered(told) = event {
                steered.push((**told).clone());
            }
            lines::of_record(record).iter().for_each(|line| rows.line(line));
        }
    })?;
    drop(blobs);
    pager::show(&rows.finish());
    Ok(Exit::Ok)
}

/// Calls `take` with every record about a node. If there is none, returns an error that lists the visited nodes.
fn each_about(run: &RunFolder, node: &NodeId, journal: OpenJournal, mut take: impl FnMut(&Record)) -> Result<(), Stop> {
    let (mut seen, mut is_there) = (BTreeSet::new(), false);
    let read = journal.read(1..=journal.last_seq(), &mut |record| {
        let nodes = nodes_of(&record.event);
        if nodes.contains(&Some(node)) {
            is_there = true;
            take(record);
        } else if !is_there {
            for other in nodes.into_iter().flatten() {
                if !seen.contains(other) {
                    seen.insert(other.clone());
                }
            }
        }
    });
    read.map_err(|error| journal::unreadable(run, &error))?;
    if is_there {
        return Ok(());
    }
    let seen: Vec<String> = seen.iter().map(|name| format!("`{}`", visible::line(name.as_str()))).collect();
    Err(Stop::new(Exit::Usage, format!("run `{}` never visited a node `{node}`", run.id))
        .with_help(format!("the run visited {}", seen.join(", "))))
}

/// Returns the nodes that an event is about. A route is about both of its ends, because the arrival at an exit has no
/// event of its own.
fn nodes_of(event: &Event) -> [Option<&NodeId>; 2] {
    match event {
        Event::RouteTaken(route) => [Some(&route.from), Some(&route.to)],
        Event::RunFinished(run) => [run.exit_node.as_ref(), None],
        event => [event.node(), None],
    }
}

/// Adds rows for the steering messages to the stage's agent, each with the turn in which the model got it.
fn told(rows: &mut Rows, stage: &StageFinished, steered: &[StageSteered]) {
    for told in steered {
        let (of, at) = (&told.attempt, &stage.attempt);
        if (&of.task, of.ordinal) != (&at.task, at.ordinal) {
            continue;
        }
        let heard = stage.model.steered.iter().find(|heard| heard.message == told.message).and_then(|heard| heard.turn);
        let heard = heard.map_or_else(
            || "not delivered, because the model was not asked again".to_owned(),
            |turn| format!("delivered in turn {turn}"),
        );
        let (by, text) = (visible::line(&told.by), visible::summary(&told.text, OUTPUT_CHARACTERS_MAX));
        rows.row("told", format_args!("by {by}, {heard}: {text}"));
    }
}

/// Adds rows for the artifacts of a stage and for the end of a command's output, where a failed command reports its
/// error.
fn output(rows: &mut Rows, stage: &StageFinished, blobs: &DirBlobs, named: &RunNames) {
    let mut is_cut = false;
    for artifact in &stage.files.artifacts {
        rows.row("kept", format_args!("{} ({} bytes)", artifact.name, artifact.bytes));
        let is_output = OUTPUTS.iter().any(|ending| artifact.name.ends_with(ending));
        let Some(bytes) = is_output.then(|| blobs.read_all(&artifact.digest, OUTPUT_BYTES_MAX).ok()).flatten() else {
            continue;
        };
        let printed = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = printed.lines().collect();
        for line in &lines[lines.len().saturating_sub(OUTPUT_LINES_MAX)..] {
            let (line, is_short) = colours::cut(line, OUTPUT_CHARACTERS_MAX, Paint::stdout());
            is_cut |= is_short;
            rows.block("", format_args!("| {line}"));
        }
        is_cut |= lines.len() > OUTPUT_LINES_MAX;
    }
    let (node, visit) = (visible::line(stage.attempt.task.node.as_str()), stage.attempt.task.visit);
    if stage.files.artifacts.iter().any(|artifact| artifact.name == TRANSCRIPT_FILE) {
        rows.block("transcript", format_args!("glovebox transcript {} {node}@{visit}", named.short));
    }
    if is_cut {
        rows.block("all output", format_args!("glovebox logs {} {node} --visit {visit}", named.short));
    }
}

fn attempt(rows: &mut Rows, stage: &StageFinished, counts: bool) {
    let (attempt, status) = (&stage.attempt, stage.outcome.status.as_str());
    let (visit, time) = (attempt.task.visit, duration(stage.duration_ms));
    let again = terminal::of_generation(attempt.task.generation);
    let left = if counts { "" } else { terminal::LEFT };
    rows.row("attempt", format_args!("{} of visit {visit}{again}: {status} in {time}{left}", attempt.ordinal));
    if let Some(asked) = &stage.model.asked {
        let answered = asked.answered_by.as_ref().filter(|name| **name != asked.model);
        let answered = answered.map(|name| format!(", answered as {}", visible::line(name))).unwrap_or_default();
        let (name, model) = (visible::line(&asked.name), visible::line(&asked.model));
        rows.row("model", format_args!("{name}: {} {model}{answered}", asked.provider));
    }
    if !stage.model.tokens.is_zero() {
        rows.row("tokens", summary::spent(stage.model.tokens, stage.model.cost, stage.model.is_estimated));
    }
    if let Some(failure) = &stage.outcome.failure {
        let (class, code) = (failure.class.as_str(), failure.code.as_str());
        rows.row("because", format_args!("{class} ({code}): {}", failure.reason));
    }
    if stage.commands.misses_holdouts {
        rows.row("help", format_args!("the stage {}", lines::MISSES_HOLDOUTS));
    }
    if stage.follow_up.no_change {
        rows.row("changed", terminal::NO_CHANGE);
    }
    if !stage.outcome.notes.is_empty() {
        // The following lines are indented to the column of the first line.
        let notes = visible::block(stage.outcome.notes.trim_end()).replace('\n', "\n               ");
        rows.block("notes", notes);
    }
    stage.model.session.iter().for_each(|session| context(rows, session));
    stored_values(rows, stage);
    for receipt in &stage.commands.receipts {
        let end = summary::ending(receipt);
        let (command, time) = (shell::line(&receipt.argv), duration(receipt.duration_ms));
        let title = match receipt.hook {
            Some(_) => "hook",
            None if receipt.subject => "subject",
            None => "command",
        };
        let of_call = receipt.hook.iter().map(|hook| format!("{} {}: ", hook.kind, hook.tool)).collect::<String>();
        rows.row(title, format_args!("{of_call}{command}: {end} in {time} ({})", receipt.tier));
    }
    tool_calls(rows, stage);
    network(stage).iter().for_each(|line| rows.block("network", line));
    for (refusal, times) in lines::distinct(stage.refusals.listed.iter()) {
        rows.block("refused", lines::refused(refusal, times).trim_start_matches("refused "));
    }
    stage.files.changes.iter().for_each(|change| rows.block("changed", summary::change_line(change)));
    for files in Folded::group(stage.files.quarantined.iter().map(|file| (file.path.as_str(), file.reason.as_str()))) {
        let (which, why) = lines::set_aside(&files);
        rows.block("quarantined", format_args!("{which}: {why}"));
        files.help().iter().for_each(|help| rows.row("help", help));
    }
    stage.files.ignored.iter().for_each(|files| rows.block("ignored", lines::ignored(files)));
}

/// Adds one row for each tool of a tool server or a plugin that the stage called.
fn tool_calls(rows: &mut Rows, stage: &StageFinished) {
    let mut counted: BTreeMap<(&str, Option<&str>), (usize, usize, u64)> = BTreeMap::new();
    for call in &stage.commands.tool_calls {
        let (calls, failed, time) = counted.entry((&call.server, call.tool.as_deref())).or_default();
        (*calls, *failed, *time) = (*calls + 1, *failed + usize::from(call.is_error), *time + call.duration_ms);
    }
    let kept = stage.commands.tool_calls.iter().filter(|call| call.is_replayed).count();
    for ((server, tool), (calls, failed, time)) in counted {
        let (server, time) = (visible::line(server), duration(time));
        let Some(tool) = tool.map(visible::line) else {
            // Only the name of a plugin has a dot.
            let (title, how) = match (server.contains('.'), failed) {
                (true, 0) => ("plugin", "listed its tools"),
                (true, _) => ("plugin", "could not list its tools"),
                (false, 0) => ("server", "started"),
                (false, _) => ("server", "did not start"),
            };
            rows.row(title, format_args!("{server} {how} in {time}"));
            continue;
        };
        let separator = if server.contains('.') { '/' } else { '.' };
        let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
        rows.row(
            "tool",
            format_args!("{server}{separator}{tool}: {}{failed}, {time}", terminal::counted(calls, "call")),
        );
    }
    if kept > 0 {
        rows.row("tool", format_args!("{kept} recorded results reused, from before the attempt was interrupted"));
    }
}

/// Adds rows for the context values that are stored as blobs because they are too large for the context.
fn stored_values(rows: &mut Rows, stage: &StageFinished) {
    for (key, stored) in stage.stored_values() {
        let (name, bytes) = (stored.file_name(), stored.bytes);
        rows.row("stored", format_args!("context value `{key}`, {bytes} bytes: {name}"));
    }
}

/// Adds rows with the fidelity and the thread of the stage's session.
fn context(rows: &mut Rows, session: &Session) {
    let thread = session.thread.as_ref().map(|thread| format!(", thread `{thread}`")).unwrap_or_default();
    let begins = if session.continues.is_some() { ", continued" } else { "" };
    rows.row("context", format_args!("{}{thread}{begins}", session.fidelity));
    session.degraded.iter().for_each(|reason| rows.row("", format_args!("not `full`: {reason}")));
}

/// Adds a row for each limit with its usage. Without `all`, limits of which less than 80 % was used are only counted.
fn limits(rows: &mut Rows, stage: &StageFinished, all: bool) {
    let mut hidden = 0;
    for usage in &stage.usage {
        // A limit that was not measured or not used gets no row.
        let Some(used) = usage.used.filter(|used| *used > 0) else { continue };
        match all || is_nearly_used(used, usage.limit) {
            true => rows.row("limit", format_args!("{} {used} of {}", usage.name, usage.limit)),
            false => hidden += 1,
        }
    }
    if hidden > 0 {
        let limits = terminal::counted(hidden, "limit");
        rows.row("limits", format_args!("{limits} with less than {LIMIT_SHOWN_PERCENT} % used: `--limits` lists them"));
    }
}

fn is_nearly_used(used: u64, limit: u64) -> bool {
    u128::from(used) * 100 >= u128::from(limit) * u128::from(LIMIT_SHOWN_PERCENT)
}

/// Returns one line with the network requests of the stage's commands for each host.
fn network(stage: &StageFinished) -> Vec<String> {
    let Some(network) = &stage.commands.network else { return Vec::new() };
    let hosts = network.hosts.iter().map(|(host, traffic)| (visible::line(host), traffic));
    let others =
        std::iter::once(("others".into(), &network.others)).filter(|(_, traffic)| **traffic != HostTraffic::default());
    let line = |(host, traffic): (std::borrow::Cow<'_, str>, &HostTraffic)| {
        format!(
            "{host}: {}, {} refused, {} bytes sent, {} received",
            terminal::counted(usize::try_from(traffic.requests).unwrap_or(usize::MAX), "request"),
            traffic.refused,
            traffic.bytes_sent,
            traffic.bytes_received
        )
    };
    let lines: Vec<String> = hosts.chain(others).map(line).collect();
    if lines.is_empty() { vec!["no requests".to_owned()] } else { lines }
}

fn edge(rows: &mut Rows, route: &RouteTaken) {
    rows.row("route", format_args!("-> {} ({})", route.to, route.how));
    let edges: Vec<EdgeWhy> = route.candidates.iter().map(EdgeWhy::from).collect();
    routes::edges(rows, &edges);
}
