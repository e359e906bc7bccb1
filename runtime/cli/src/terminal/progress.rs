//! Progress of a run while it goes on: a board of its nodes on a terminal, one line per event elsewhere.
//!
//! It shows the journal's records, which are complete, and live hints, which may be lost. The records alone contain all facts. Progress
//! goes to stderr; the records of `--json` go to stdout.

use crate::terminal::board::Board;
use crate::terminal::{self, lines, visible};
use glovebox_engine::event::{NodeId, Record};
use glovebox_host::call::Progress;
use glovebox_pipeline::ir::Pipeline;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const DRAWS_PER_SECOND_MAX: u8 = 10;

/// How often the clocks of the live view go on.
const REDRAW: Duration = Duration::from_millis(500);

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
}

/// Shows a run's progress.
pub struct Reporter {
    format: ProgressFormat,
    view: Option<Arc<Mutex<LiveView>>>,
}

impl Reporter {
    /// Shows progress over the nodes of a pipeline.
    pub fn new(format: ProgressFormat, pipeline: &Pipeline) -> Self {
        Self { format, view: (format == ProgressFormat::Live).then(|| LiveView::start(pipeline)) }
    }

    /// For messages from elsewhere.
    pub fn notices(&self) -> Notices {
        Notices { view: self.view.clone() }
    }

    /// Shows a journal record.
    pub fn record(&mut self, record: &Record) {
        match (self.format, &self.view) {
            (ProgressFormat::Json, _) => json_line(record),
            (ProgressFormat::Lines, _) => lines::of_record(record).iter().for_each(prose),
            (ProgressFormat::Live, Some(view)) => lock(view).record(record),
            (ProgressFormat::Live, None) | (ProgressFormat::Quiet, _) => {}
        }
    }

    /// Shows what goes on within an attempt of a node.
    pub fn activity(&mut self, node: &NodeId, progress: &Progress) {
        match (self.format, &self.view) {
            (ProgressFormat::Lines, _) => {
                if let Some(line) = lines::of_progress(Timestamp::now(), node, progress) {
                    prose(line);
                }
            }
            (ProgressFormat::Live, Some(view)) => {
                let mut view = lock(view);
                view.board.activity(node, progress);
                view.draw();
            }
            _ => {}
        }
    }

    /// Leaves the view as it is.
    pub fn close(&mut self) {
        self.view.take().iter().for_each(|view| lock(view).leave());
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

/// A board that is drawn again when it changes, and twice a second for its clocks.
struct LiveView {
    board: Board,
    bar: ProgressBar,
}

impl LiveView {
    fn start(pipeline: &Pipeline) -> Arc<Mutex<Self>> {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND_MAX));
        // The board fits on the screen by itself.
        let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        let view = Self { board: Board::new(pipeline, Instant::now()), bar: bar.with_style(style) };
        let view = Arc::new(Mutex::new(view));
        let weak = Arc::downgrade(&view);
        std::thread::spawn(move || {
            while let Some(view) = weak.upgrade() {
                lock(&view).draw();
                drop(view);
                std::thread::sleep(REDRAW);
            }
        });
        view
    }

    fn draw(&self) {
        if !self.bar.is_finished() {
            self.bar.set_message(self.board.lines(terminal::screen(), Instant::now()).join("\n"));
        }
    }

    fn record(&mut self, record: &Record) {
        self.board.record(record, Instant::now()).iter().for_each(|line| self.bar.println(line));
        self.draw();
    }

    /// Leaves the last state on the screen, and the cursor below it.
    fn leave(&self) {
        self.draw();
        self.bar.abandon();
    }
}

/// A view is never left half changed, so a panic elsewhere does not spoil it.
fn lock(view: &Mutex<LiveView>) -> MutexGuard<'_, LiveView> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes messages while a run goes on, above its live view if it has one.
#[derive(Clone)]
pub struct Notices {
    view: Option<Arc<Mutex<LiveView>>>,
}

impl Notices {
    /// Writes a message of one line.
    pub fn say(&self, line: &str) {
        match &self.view {
            Some(view) => lock(view).bar.println(line),
            None => prose(line),
        }
    }

    /// Draws the view no more, because the process ends.
    pub fn leave(&self) {
        self.view.iter().for_each(|view| lock(view).leave());
    }
}
