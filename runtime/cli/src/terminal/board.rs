//! The live view of a run: a head with the clock, and a line for each node in the order of the graph.
//!
//! The caller passes the time and the size of the screen. If there are more nodes than lines, ended nodes are folded
//! into one line, and nodes to come into another. A running node is not folded while there is room.

mod running;

use crate::terminal::paint::{Colour, Paint};
use crate::terminal::{colours, counted, duration, lines, order, visible};
use glovebox_host::call::Progress;
use glovebox_journal::event::{Attempt, BranchId, Event, NodeId, Record, RunFinished, StageFinished, Task, Work};
use glovebox_journal::liveness::{LivenessEvent, LivenessLine};
use glovebox_journal::rewind::Fold;
use glovebox_pipeline::ir::{Node, Pipeline};
use glovebox_record::{Status, Tokens, WaitKind};
use glovebox_state::evidence::{ProofCounts, Replay};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Minimum number of lines of a view: a head, a node, and two folds.
const LINES_MIN: usize = 4;

/// Columns that stay free, so that the terminal can echo `^C` without a new line.
const FREE_COLUMNS: usize = 4;

/// Maximum number of bytes of output that are kept for each node.
const OUTPUT_BYTES_MAX: usize = 1 << 10;
/// Minimum number of lines for nodes at which output gets lines.
const OUTPUT_ROOM_MIN: usize = 6;
/// Begins a line of output.
const OUTPUT_INDENT: &str = "     ";

/// Minimum time without a heartbeat that is shown. A heartbeat comes every ten seconds.
const SILENCE_SHOWN_MIN: Duration = Duration::from_secs(25);

/// The screen on which a view is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Number of lines.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Colours of the screen.
    pub paint: Paint,
}

/// State of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Running(Instant),
    Good,
    Bad,
}

impl Phase {
    fn from_status(status: Status) -> Self {
        if matches!(status, Status::Fail | Status::Retry) { Phase::Bad } else { Phase::Good }
    }

    fn has_ended(self) -> bool {
        matches!(self, Phase::Good | Phase::Bad)
    }
}

/// The line of a node.
#[derive(Debug)]
struct Row {
    id: NodeId,
    title: String,
    phase: Phase,
    visit: u32,
    /// Position of the node's last end in the order in which nodes ended; 0 if the node has not ended.
    ended: usize,
    text: String,
    /// The last bytes of output of the node's running command.
    output: Vec<u8>,
    /// The running attempt of the node, if any.
    attempt: Option<RunningAttempt>,
    /// What the pipeline lets the node read and write.
    scope: String,
}

/// The circumstances of a running attempt.
#[derive(Debug, Clone)]
struct RunningAttempt {
    /// The branch, unless it is the main branch.
    branch: Option<String>,
    /// The last sign of life.
    last_sign: Instant,
    waits_for: Option<WaitKind>,
}

/// The state of a view.
#[derive(Debug)]
pub struct Board {
    rows: Vec<Row>,
    began: Instant,
    visits: usize,
    ends: usize,
    refused: u64,
    turns: u64,
    tokens: Tokens,
    /// The result of the records so far, for what they prove.
    replay: Replay,
}

impl Board {
    /// Creates the board of a run that has not begun.
    pub fn new(pipeline: &Pipeline, began: Instant) -> Self {
        let row = |node: &Node| Row {
            id: node.id.clone(),
            title: visible::line(node.id.as_str()).into_owned(),
            phase: Phase::Idle,
            visit: 0,
            ended: 0,
            text: String::new(),
            output: Vec::new(),
            attempt: None,
            scope: running::scope(node),
        };
        let rows = order::nodes(pipeline).into_iter().map(row).collect();
        let (tokens, replay) = (Tokens::default(), Replay::default());
        Self { rows, began, visits: 0, ends: 0, refused: 0, turns: 0, tokens, replay }
    }

    /// Updates the board with a record. Returns the lines to print above the view.
    pub fn record(&mut self, record: &Record, now: Instant) -> Vec<String> {
        self.replay.apply(record);
        match &record.event {
            Event::StageStarted(stage) => {
                let is_work = stage.attempt.task.work != Work::Verify;
                let text = format!("{}{}", again(&stage.attempt), if is_work { "running" } else { "verifying" });
                self.visits += usize::from(stage.attempt.ordinal == 1 && is_work);
                let Task { node, visit, branch, .. } = &stage.attempt.task;
                self.update(node, Phase::Running(now), *visit, text);
                let branch = (*branch != BranchId::main()).then(|| visible::line(branch.as_str()).into_owned());
                if let Some(row) = self.row(node) {
                    row.attempt = Some(RunningAttempt { branch, last_sign: now, waits_for: None });
                }
            }
            Event::StageFinished(stage) => return self.finished(stage),
            Event::StageHeld(held) => {
                let text = lines::quota_wait(&held.provider, held.resume_at);
                self.update(&held.attempt.task.node, Phase::Running(now), held.attempt.task.visit, text);
            }
            Event::StageRetrying(stage) => {
                let text = format!("waiting {} before attempt {}", duration(stage.delay_ms), stage.ordinal);
                if let Some(row) = record.event.node().and_then(|node| self.row(node)) {
                    row.text = text;
                }
            }
            Event::StagePassed(stage) => {
                self.visits += 1;
                self.update(
                    &stage.node,
                    Phase::from_status(stage.status),
                    stage.visit,
                    stage.status.as_str().to_owned(),
                );
            }
            Event::RunFinished(RunFinished { exit_node: Some(exit), .. }) => {
                self.update(exit, Phase::Good, 1, "reached".to_owned());
                return lines::of_record(record);
            }
            Event::QuestionAsked(asked) => {
                self.visits += usize::from(asked.recovery.is_none());
                self.update(&asked.node, Phase::Running(now), asked.visit, "waits for an answer".to_owned());
                return lines::of_record(record);
            }
            Event::QuestionAnswered(answered) if answered.recovery => return lines::of_record(record),
            Event::RecoveryDecided(decided) => {
                let status = decided.outcome.status;
                let visit = decided.attempt.task.visit;
                self.update(decided.node(), Phase::from_status(status), visit, status.as_str().to_owned());
                return lines::of_record(record);
            }
            Event::QuestionAnswered(answered) => {
                let status = answered.outcome().status;
                self.update(&answered.node, Phase::from_status(status), answered.visit, status.as_str().to_owned());
                return lines::of_record(record);
            }
            Event::GateUnmet(_) | Event::CycleBroken(_) | Event::StatusIngested(_) => return lines::of_record(record),
            event if event.node().is_none_or(|node| self.rows.iter().all(|row| row.id != *node)) => {
                return lines::of_record(record);
            }
            _ => {}
        }
        Vec::new()
    }

    /// Shows what a stage is doing.
    pub fn activity(&mut self, node: &NodeId, progress: &Progress) {
        if let (Some(row), Some(what)) = (self.row(node), lines::activity(progress, false)) {
            row.text = what;
        }
    }

    /// Shows a sign of life of a stage.
    pub fn liveness(&mut self, line: &LivenessLine, at: Instant) {
        let is_heartbeat = line.event == LivenessEvent::StageHeartbeat;
        let Some(attempt) = line.attempt.as_ref().filter(|_| is_heartbeat) else { return };
        if let Some(running) = self.row(&attempt.attempt_node_id).and_then(|row| row.attempt.as_mut()) {
            (running.last_sign, running.waits_for) = (at, line.waits_for);
        }
    }

    /// Shows the output of a stage's running command.
    pub fn output(&mut self, node: &NodeId, bytes: &[u8]) {
        if let Some(row) = self.row(node) {
            let new = &bytes[bytes.len().saturating_sub(OUTPUT_BYTES_MAX)..];
            let excess = (row.output.len() + new.len()).saturating_sub(OUTPUT_BYTES_MAX);
            row.output.drain(..excess);
            row.output.extend_from_slice(new);
        }
    }

    fn row(&mut self, node: &NodeId) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.id == *node)
    }

    fn update(&mut self, node: &NodeId, phase: Phase, visit: u32, text: String) {
        self.ends += usize::from(phase.has_ended());
        let ended = self.ends;
        if let Some(row) = self.row(node) {
            (row.phase, row.visit, row.ended, row.text) = (phase, visit, ended, text);
            row.output.clear();
            row.attempt = None;
        }
    }

    fn finished(&mut self, stage: &StageFinished) -> Vec<String> {
        self.refused += stage.refusals.total;
        self.turns += u64::from(stage.model.turns_used);
        self.tokens.input = self.tokens.input.saturating_add(stage.model.tokens.input);
        self.tokens.output = self.tokens.output.saturating_add(stage.model.tokens.output);
        let task = &stage.attempt.task;
        let text = format!("{}{}", again(&stage.attempt), ending(stage));
        self.update(&task.node, Phase::from_status(stage.outcome.status), task.visit, text);
        let node = visible::line(task.node.as_str());
        let refusals = lines::distinct(stage.refusals.listed.iter());
        let shown = refusals.into_iter().take(lines::REFUSALS_SHOWN_MAX);
        shown.map(|(refusal, times)| format!(" {node}: {}", lines::refused(refusal, times))).collect()
    }

    /// Returns the lines of the view for a screen.
    pub fn lines(&self, screen: Screen, now: Instant) -> Vec<String> {
        let room = screen.rows.saturating_sub(1).max(LINES_MIN) - 1;
        let outputs = self.outputs(room);
        let shown = self.shown(room - outputs.len());
        let hidden = |has_ended| {
            let is_hidden = |(index, row): &(usize, &Row)| row.phase.has_ended() == has_ended && !shown.contains(index);
            self.rows.iter().enumerate().filter(is_hidden).count()
        };
        let fold = |count: usize, what: &str| {
            (count > 0).then(|| screen.paint.with(Colour::Dim, format!(" … {count} {what}")))
        };
        let titles = self.rows.iter().map(|row| row.title.width());
        let width = titles.max().unwrap_or(0).min(screen.columns / 2);
        let nodes = shown.iter().flat_map(|index| {
            let output = outputs.get(index).map(|output| output_line(output, screen));
            std::iter::once(self.rows[*index].line(width, screen, now)).chain(output)
        });
        let mut lines = vec![self.head(screen, now)];
        lines.extend(fold(hidden(true), "done"));
        lines.extend(nodes);
        lines.extend(fold(hidden(false), "to come"));
        lines
    }

    /// Returns the last line of output of running nodes, by row. A small screen has no room for output.
    fn outputs(&self, room: usize) -> BTreeMap<usize, String> {
        let most = if room < OUTPUT_ROOM_MIN { 0 } else { room / 3 };
        let lines = self.rows.iter().enumerate().filter_map(|(index, row)| Some((index, row.last_line()?)));
        lines.take(most).collect()
    }

    /// Returns the rows that get a line, in order: all rows if there is room, or else the running ones, the last ended
    /// ones and the next ones.
    fn shown(&self, room: usize) -> Vec<usize> {
        if self.rows.len() <= room {
            return (0..self.rows.len()).collect();
        }
        let room = room.saturating_sub(2);
        let having = |is_wanted: fn(Phase) -> bool| {
            let wanted = self.rows.iter().enumerate().filter(move |(_, row)| is_wanted(row.phase));
            wanted.map(|(index, _)| index).collect::<Vec<usize>>()
        };
        let mut shown = having(|phase| matches!(phase, Phase::Running(_)));
        shown.truncate(room);
        let first_running = shown.first().copied().unwrap_or(0);
        let (mut ended, mut idle) = (having(Phase::has_ended), having(|phase| phase == Phase::Idle));
        // Nodes before the first running one, which the run passed over on another branch, come last.
        idle.sort_by_key(|index| *index < first_running);
        ended.sort_by_key(|index| std::cmp::Reverse(self.rows[*index].ended));
        let left = room - shown.len();
        ended.truncate((left * 2 / 3).max(left.saturating_sub(idle.len())));
        idle.truncate(left.saturating_sub(ended.len()));
        shown.extend(ended.into_iter().chain(idle));
        shown.sort_unstable();
        shown
    }

    fn head(&self, screen: Screen, now: Instant) -> String {
        let ended = self.rows.iter().filter(|row| row.phase.has_ended()).count();
        let mut text = format!(" {ended} of {}", counted(self.rows.len(), "node"));
        text.push_str(&format!(", {}", counted(self.visits, "visit")));
        text.push_str(&proof(self.replay.summary.proof.counts()));
        if self.refused > 0 {
            text.push_str(&format!(", {} refused", self.refused));
        }
        if self.turns > 0 {
            text.push_str(&format!(", {}", counted(usize::try_from(self.turns).unwrap_or(usize::MAX), "model turn")));
        }
        if !self.tokens.is_zero() {
            text.push_str(&format!(", {} tokens in, {} out", self.tokens.input, self.tokens.output));
        }
        let clock = format!(" {}", clock(now.saturating_duration_since(self.began).as_secs()));
        let left = screen.columns.saturating_sub(clock.chars().count() + FREE_COLUMNS);
        format!("{}{}", screen.paint.with(Colour::Bold, &clock), cut(&text, left))
    }
}

/// Returns what the run proved so far. Empty until a stage passed or a command failed.
fn proof(counts: ProofCounts) -> String {
    let ProofCounts { proved, reserved, claimed, not_proved } = counts;
    let parts = [(proved, "proved"), (reserved, "with reservation"), (claimed, "claimed"), (not_proved, "not proved")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    parts.map(|(count, what)| format!(", {count} {what}")).collect()
}

/// Returns the line with the output of a running node, below the line of the node.
fn output_line(output: &str, screen: Screen) -> String {
    let left = screen.columns.saturating_sub(OUTPUT_INDENT.len() + FREE_COLUMNS);
    let shown = colours::fit(output, left, screen.paint);
    // A line without colours of its own is dim.
    let shown = if shown.contains('\x1b') { shown } else { screen.paint.with(Colour::Dim, shown) };
    format!("{OUTPUT_INDENT}{shown}")
}

impl Row {
    /// Returns the last line of output that is not empty, as the command wrote it; `None` if the node does not run.
    fn last_line(&self) -> Option<String> {
        if self.output.is_empty() || !matches!(self.phase, Phase::Running(_)) {
            return None;
        }
        let text = String::from_utf8_lossy(&self.output);
        // The first character may be incomplete, because only the last bytes are kept.
        let mut lines = text.split(['\n', '\r']).rev().map(|line| line.trim_start_matches('\u{fffd}').trim());
        lines.find(|line| !colours::dropped(line).trim().is_empty()).map(str::to_owned)
    }

    /// Returns the branch of a running attempt, what it waits for, and its silence, in parentheses. Empty if there is nothing
    /// to say.
    fn circumstances(&self, now: Instant) -> String {
        let Some(RunningAttempt { branch, last_sign, waits_for }) = &self.attempt else { return String::new() };
        let waits = waits_for.map(|kind| format!("waits for {}", kind.described()));
        let silent = Some(now.saturating_duration_since(*last_sign)).filter(|silent| *silent >= SILENCE_SHOWN_MIN);
        let silent = silent.map(|silent| format!("no sign of life for {}", clock(silent.as_secs())));
        let parts: Vec<String> = branch.clone().into_iter().chain(silent.or(waits)).collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
    }

    fn line(&self, width: usize, screen: Screen, now: Instant) -> String {
        let (mark, colour, elapsed) = match self.phase {
            Phase::Idle => ("○", Colour::Dim, String::new()),
            Phase::Running(since) => ("●", Colour::Cyan, clock(now.saturating_duration_since(since).as_secs()) + " "),
            Phase::Good => ("✓", Colour::Green, String::new()),
            Phase::Bad => ("✗", Colour::Red, String::new()),
        };
        let visit = if self.visit > 1 { format!("×{} ", self.visit) } else { String::new() };
        let title = cut(&self.title, width);
        let title = format!("{title}{}", " ".repeat(width.saturating_sub(title.width())));
        let left = screen.columns.saturating_sub(width + 4 + FREE_COLUMNS);
        let text = cut(&format!("{elapsed}{visit}{}{}", self.text, self.circumstances(now)), left);
        format!(" {} {text}", screen.paint.with(colour, format!("{mark} {title}"))).trim_end().to_owned()
    }
}

/// Cuts a text to a number of columns, with a mark if it is cut. Some characters take two columns, and some none.
fn cut(text: &str, columns_max: usize) -> String {
    if text.width() <= columns_max {
        return text.to_owned();
    }
    let (mut taken, mut short) = (0, String::new());
    for character in text.chars() {
        taken += character.width().unwrap_or(0);
        if taken >= columns_max {
            break;
        }
        short.push(character);
    }
    short + "…"
}

/// Returns `try 2 ` for the second attempt, and so on; empty for the first.
fn again(attempt: &Attempt) -> String {
    if attempt.ordinal > 1 { format!("try {} ", attempt.ordinal) } else { String::new() }
}

/// Formats a duration as `0:42`, `12:05` or `1:00:00`.
fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

fn ending(stage: &StageFinished) -> String {
    let mut text = format!("{} in {}", stage.outcome.status.as_str(), duration(stage.duration_ms));
    if !stage.files.changes.is_empty() {
        text.push_str(&format!(", {} changed", stage.files.changes.len()));
    }
    if stage.refusals.total > 0 {
        text.push_str(&format!(", {} refused", stage.refusals.total));
    }
    if let Some(failure) = &stage.outcome.failure {
        text.push_str(&format!(": {}", visible::summary(&failure.reason, 100)));
    }
    text
}

#[cfg(test)]
mod tests;
