//! Progress of a run while it goes on: one line per node on a terminal, one line per event elsewhere.
//!
//! It shows the journal's records, which are complete, and live hints, which may be lost. The records alone contain all facts. Progress
//! goes to stderr; the records of `--json` go to stdout.

use crate::terminal::{self, duration, lines, visible};
use glovebox_engine::event::{Attempt, Event, NodeId, Record, RunFinished, StageFinished};
use glovebox_host::call::Progress;
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::Status;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::time::Duration;

const DRAWS_PER_SECOND_MAX: u8 = 10;

/// Nodes on a board, each on a line of its own; the smallest usual screen has 24 lines.
const BOARD_NODES_MAX: usize = 20;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressFormat {
    /// A board that is redrawn.
    Live,
    /// A line per event.
    Lines,
    /// Records as JSON lines on stdout.
    Json,
    /// Not at all.
    Quiet,
}

impl ProgressFormat {
    /// Chooses by flags, and by whether stderr is a terminal.
    pub fn choose(json: bool, quiet: bool) -> Self {
        match (json, quiet) {
            (true, _) => ProgressFormat::Json,
            (false, true) => ProgressFormat::Quiet,
            (false, false) if terminal::is_live() => ProgressFormat::Live,
            (false, false) => ProgressFormat::Lines,
        }
    }

    /// A board that does not fit on the screen could hide the running node, so it becomes lines.
    fn for_nodes(self, nodes: usize) -> Self {
        if self == ProgressFormat::Live && nodes > BOARD_NODES_MAX { ProgressFormat::Lines } else { self }
    }
}

/// Shows a run's progress.
pub struct Reporter {
    format: ProgressFormat,
    board: Option<Board>,
}

impl Reporter {
    /// Shows progress over the nodes of a pipeline, in file order.
    pub fn new(format: ProgressFormat, pipeline: &Pipeline) -> Self {
        let format = format.for_nodes(pipeline.nodes.len());
        let board = (format == ProgressFormat::Live).then(|| Board::new(pipeline));
        Self { format, board }
    }

    /// Shows a journal record.
    pub fn record(&mut self, record: &Record) {
        match (self.format, &mut self.board) {
            (ProgressFormat::Json, _) => json_line(record),
            (ProgressFormat::Lines, _) => lines::of_record(record).iter().for_each(prose),
            (ProgressFormat::Live, Some(board)) => board.record(record),
            (ProgressFormat::Live, None) | (ProgressFormat::Quiet, _) => {}
        }
    }

    /// Shows what goes on within an attempt of a node.
    pub fn activity(&mut self, node: &NodeId, progress: &Progress) {
        match (self.format, &mut self.board) {
            (ProgressFormat::Lines, _) => {
                if let Some(line) = lines::of_progress(Timestamp::now(), node, progress) {
                    prose(line);
                }
            }
            (ProgressFormat::Live, Some(board)) => board.activity(node, progress),
            _ => {}
        }
    }

    /// Leaves the board as it is.
    pub fn close(&mut self) {
        if let Some(board) = self.board.take() {
            board.close();
        }
    }
}

/// Writes a line to stderr. A closed stderr does not stop a run.
fn prose(line: impl fmt::Display) {
    let _unread = writeln!(std::io::stderr(), "{line}");
}

fn json_line(record: &Record) {
    if let Ok(text) = serde_json::to_string(record) {
        let mut stdout = std::io::stdout().lock();
        let _unread = writeln!(stdout, "{}", visible::json(&text)).and_then(|()| stdout.flush());
    }
}

/// How the line of a node looks.
struct Styles {
    idle: ProgressStyle,
    running: ProgressStyle,
    good: ProgressStyle,
    bad: ProgressStyle,
}

impl Styles {
    fn new(coloured: bool) -> Self {
        let style = |mark: &str, colour: &str, rest: &str| {
            let prefix = if coloured { format!("{{prefix:.{colour}}}") } else { "{prefix}".to_owned() };
            let template = format!(" {mark} {prefix} {rest}{{wide_msg}}");
            ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_spinner())
        };
        Self {
            idle: style("○", "dim", ""),
            running: style("●", "cyan.bold", "{elapsed:>4} "),
            good: style("✓", "green", ""),
            bad: style("✗", "red", ""),
        }
    }

    fn of(&self, status: Status) -> &ProgressStyle {
        if matches!(status, Status::Fail | Status::Retry) { &self.bad } else { &self.good }
    }
}

/// One line per node, redrawn in place; refusals stay above it.
struct Board {
    bars: MultiProgress,
    nodes: BTreeMap<NodeId, ProgressBar>,
    visits: BTreeMap<NodeId, u32>,
    styles: Styles,
}

impl Board {
    fn new(pipeline: &Pipeline) -> Self {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND_MAX));
        let styles = Styles::new(terminal::paint::Paint::stderr().is_on());
        let ids = || pipeline.nodes.iter().map(|node| &node.id);
        let width = ids().map(|id| id.as_str().chars().count()).max().unwrap_or(0);
        let nodes = ids().map(|id| {
            let bar = bars.add(ProgressBar::new_spinner().with_style(styles.idle.clone()));
            bar.set_prefix(format!("{:<width$}", visible::line(id.as_str())));
            bar.set_message("");
            (id.clone(), bar)
        });
        let nodes = nodes.collect();
        Self { bars, nodes, visits: BTreeMap::new(), styles }
    }

    fn record(&mut self, record: &Record) {
        if let Event::RunFinished(RunFinished { exit_node: Some(exit), .. }) = &record.event {
            self.nodes.get(exit).iter().for_each(|bar| restyle(bar, &self.styles.good));
            self.nodes.get(exit).iter().for_each(|bar| bar.set_message("reached"));
        }
        let Some(bar) = record.event.node().and_then(|node| self.nodes.get(node)) else {
            return lines::of_record(record).iter().for_each(|line| self.above(line));
        };
        match &record.event {
            Event::StageStarted(stage) => {
                let task = &stage.attempt.task;
                self.visits.insert(task.node.clone(), task.visit);
                restyle(bar, &self.styles.running);
                bar.reset_elapsed();
                bar.enable_steady_tick(Duration::from_millis(500));
                bar.set_message(format!("{}running", self.mark(&stage.attempt)));
            }
            Event::StageFinished(stage) => {
                bar.disable_steady_tick();
                restyle(bar, self.styles.of(stage.outcome.status));
                bar.set_message(format!("{}{}", self.mark(&stage.attempt), ending(stage)));
                let refusals = lines::distinct(stage.refusals.iter());
                for (refusal, times) in refusals.into_iter().take(lines::REFUSALS_SHOWN_MAX) {
                    self.above(format_args!(
                        " {}: {}",
                        visible::line(stage.attempt.task.node.as_str()),
                        lines::refused(refusal, times)
                    ));
                }
            }
            Event::StageRetrying(stage) => {
                bar.set_message(format!("waiting {} before attempt {}", duration(stage.delay_ms), stage.ordinal));
            }
            Event::StagePassed(stage) => {
                restyle(bar, self.styles.of(stage.status));
                bar.set_message(stage.status.as_str());
            }
            Event::GateUnmet(_) => lines::of_record(record).iter().for_each(|line| self.above(line)),
            _ => {}
        }
    }

    /// `×2 ` from the second visit on, `try 2 ` from the second attempt on.
    fn mark(&self, Attempt { task, ordinal, .. }: &Attempt) -> String {
        let visit = self.visits.get(&task.node).copied().unwrap_or(1);
        let again = if visit > 1 { format!("×{visit} ") } else { String::new() };
        if *ordinal > 1 { format!("{again}try {ordinal} ") } else { again }
    }

    fn activity(&self, node: &NodeId, progress: &Progress) {
        if let (Some(bar), Some(what)) = (self.nodes.get(node), lines::activity(progress, false)) {
            bar.set_message(what);
        }
    }

    fn above(&self, line: impl fmt::Display) {
        let _unread = self.bars.println(line.to_string());
    }

    fn close(self) {
        self.nodes.values().for_each(ProgressBar::abandon);
    }
}

fn restyle(bar: &ProgressBar, style: &ProgressStyle) {
    bar.set_style(style.clone());
}

fn ending(stage: &StageFinished) -> String {
    let mut text = format!("{} in {}", stage.outcome.status.as_str(), duration(stage.duration_ms));
    if !stage.changes.is_empty() {
        text.push_str(&format!(", {} changed", stage.changes.len()));
    }
    if stage.refusals_total > 0 {
        text.push_str(&format!(", {} refused", stage.refusals_total));
    }
    if let Some(failure) = &stage.outcome.failure {
        text.push_str(&format!(": {}", visible::summary(&failure.reason, 100)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_that_does_not_fit_gives_way_to_lines() {
        for (asked, nodes, shown) in [
            (ProgressFormat::Live, BOARD_NODES_MAX, ProgressFormat::Live),
            (ProgressFormat::Live, BOARD_NODES_MAX + 1, ProgressFormat::Lines),
            (ProgressFormat::Quiet, 300, ProgressFormat::Quiet),
            (ProgressFormat::Json, 300, ProgressFormat::Json),
        ] {
            assert_eq!(asked.for_nodes(nodes), shown, "{asked:?} {nodes}");
        }
    }
}
