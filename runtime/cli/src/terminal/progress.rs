//! Progress of a run while it is driven: a board of its nodes on a terminal, one line per event elsewhere.
//!
//! The progress shows the journal's records, which are complete, and live progress of attempts, which may be lost. The
//! records alone contain all facts. Progress is written to stderr, and the records of `--json` to stdout.

use crate::terminal::board::Board;
use crate::terminal::command_output::CommandOutput;
use crate::terminal::{self, keys, lines, visible};
use glovebox_engine::live::OutputWatch;
use glovebox_host::call::{OutputStream, Progress};
use glovebox_journal::event::{BranchId, NodeId, Record};
use glovebox_journal::liveness::LivenessLine;
use glovebox_pipeline::ir::Pipeline;
use jiff::Timestamp;
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

/// Minimum time between two draws of the live view.
const DRAW_PAUSE: Duration = Duration::from_millis(100);

/// Maximum time that a log line waits for a view that is being drawn.
const DRAWING_MAX: Duration = Duration::from_millis(50);

/// The live view of this process, above which log lines are written.
static LIVE: Mutex<Weak<Mutex<LiveView>>> = Mutex::new(Weak::new());

/// The lines that wait while a person is asked; `None` while no question is on the screen.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Maximum number of lines that wait. Further lines are dropped; the journal has all of them.
const KEPT_LINES_MAX: usize = 1000;

/// Interval at which the clocks of the live view are updated.
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
    /// Progress is not shown.
    Quiet,
    /// The output of the commands, and no progress.
    Output,
}

impl ProgressFormat {
    /// Chooses the format of `run -- COMMAND`: the output of the command, unless a flag asks for something else.
    pub fn choose_for_command(json: bool, quiet: bool) -> Self {
        if json || quiet { Self::choose(json, quiet) } else { ProgressFormat::Output }
    }

    /// Chooses the format from the flags, and from whether stderr is a terminal.
    pub fn choose(json: bool, quiet: bool) -> Self {
        match (json, quiet) {
            (true, _) => ProgressFormat::Json,
            (false, true) => ProgressFormat::Quiet,
            (false, false) if terminal::is_live() => ProgressFormat::Live,
            (false, false) => ProgressFormat::Lines,
        }
    }
}

/// Shows the progress of a run.
pub struct Reporter {
    format: ProgressFormat,
    view: Option<Arc<Mutex<LiveView>>>,
    output: Option<CommandOutput>,
}

impl Reporter {
    /// Creates a reporter for a run of a pipeline.
    pub fn new(format: ProgressFormat, pipeline: &Pipeline) -> Self {
        let output = (format == ProgressFormat::Output).then(CommandOutput::new);
        Self { format, view: (format == ProgressFormat::Live).then(|| LiveView::start(pipeline)), output }
    }

    /// Returns a writer for messages of other parts of the program.
    pub fn notices(&self) -> Notices {
        Notices { view: self.view.clone() }
    }

    /// Returns the function that shows the output of running commands; `None` if it is not shown.
    pub fn output_watch(&self) -> Option<OutputWatch> {
        let view = self.view.as_ref().map(Arc::downgrade);
        let on_board = view.map(|view| -> OutputWatch {
            Arc::new(move |node: &NodeId, _: OutputStream, bytes: &[u8]| {
                view.upgrade().iter().for_each(|view| show_output(view, node, bytes));
            })
        });
        on_board.or_else(|| self.output.as_ref().map(CommandOutput::watch))
    }

    /// Shows output of a command that another process runs.
    pub fn output(&self, node: &NodeId, bytes: &[u8]) {
        self.view.iter().for_each(|view| show_output(view, node, bytes));
    }

    /// Shows a journal record.
    pub fn record(&mut self, record: &Record) {
        match (self.format, &self.view) {
            (ProgressFormat::Json, _) => json_line(record),
            (ProgressFormat::Lines, _) => lines::of_record(record).iter().for_each(prose),
            (ProgressFormat::Live, Some(view)) => lock(view).record(record),
            (ProgressFormat::Live, None) | (ProgressFormat::Quiet | ProgressFormat::Output, _) => {}
        }
    }

    /// Shows the live progress of an attempt of a node.
    pub fn activity(&mut self, branch: &BranchId, node: &NodeId, progress: &Progress) {
        match (self.format, &self.view) {
            (ProgressFormat::Lines, _) => {
                if let Some(line) = lines::of_progress(Timestamp::now(), branch, node, progress) {
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

    /// Shows a sign of life of an attempt on the board.
    pub fn liveness(&mut self, line: &LivenessLine) {
        if let Some(view) = &self.view {
            let age = Timestamp::now().duration_since(line.at);
            let at = Instant::now().checked_sub(Duration::try_from(age).unwrap_or_default());
            let mut view = lock(view);
            view.board.liveness(line, at.unwrap_or_else(Instant::now));
            view.draw();
        }
    }

    /// Ends the view, and leaves its last state on the screen.
    pub fn close(&mut self) {
        self.view.take().iter().for_each(|view| lock(view).leave());
        self.output.iter().for_each(CommandOutput::close);
    }
}

/// Passes output on to the board, which the next update of the clocks draws. A command never waits for the terminal:
/// output that arrives while the board is being drawn is not shown.
fn show_output(view: &Mutex<LiveView>, node: &NodeId, bytes: &[u8]) {
    if let Ok(mut view) = view.try_lock() {
        view.board.output(node, bytes);
    }
}

/// Writes a line to stderr, or keeps it while a question is on the screen. A closed stderr does not stop a run.
fn prose(line: impl fmt::Display) {
    let line = line.to_string();
    if !keep([&line]) {
        let _unread = writeln!(std::io::stderr(), "{line}");
    }
}

/// Keeps lines until the question on the screen is answered. Returns false, without keeping them, if there is no
/// question.
fn keep<'a>(lines: impl IntoIterator<Item = &'a String>) -> bool {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(kept) = &mut *held else { return false };
    let left = KEPT_LINES_MAX.saturating_sub(kept.len());
    kept.extend(lines.into_iter().take(left).cloned());
    true
}

fn json_line(record: &Record) {
    if let Ok(text) = serde_json::to_string(record) {
        let mut stdout = std::io::stdout().lock();
        let _unread = writeln!(stdout, "{}", visible::json(&text)).and_then(|()| stdout.flush());
    }
}

/// A board that is redrawn when it changes, and twice a second for its clocks.
///
/// The cursor stays on a free line below the board, so that the `^C` that the terminal echoes does not move it.
struct LiveView {
    board: Board,
    lines_drawn: usize,
    drawn_at: Option<Instant>,
    is_over: bool,
}

impl LiveView {
    fn start(pipeline: &Pipeline) -> Arc<Mutex<Self>> {
        let board = Board::new(pipeline, Instant::now());
        let view = Arc::new(Mutex::new(Self { board, lines_drawn: 0, drawn_at: None, is_over: false }));
        let weak = Arc::downgrade(&view);
        weak.clone_into(&mut LIVE.lock().unwrap_or_else(PoisonError::into_inner));
        let pressed = weak.clone();
        keys::begin(move || pressed.upgrade().iter().for_each(|view| lock(view).tell_running()));
        std::thread::spawn(move || {
            while let Some(view) = weak.upgrade() {
                std::thread::sleep(REDRAW);
                let mut view = lock(&view);
                // Before the first record, other messages are written to the screen.
                if view.drawn_at.is_some() {
                    view.draw();
                }
            }
        });
        view
    }

    /// Draws the board, unless it was drawn a moment ago. The next update of the clocks then shows the change.
    fn draw(&mut self) {
        if self.drawn_at.is_none_or(|at| at.elapsed() > DRAW_PAUSE) {
            self.print(&[]);
        }
    }

    /// Writes lines, and the board below them, in one write.
    fn print(&mut self, above: &[String]) {
        if keep(above) {
            return;
        }
        let mut text = String::new();
        if self.lines_drawn > 0 {
            text.push_str(&format!("\r\x1b[{}A\x1b[J", self.lines_drawn));
        }
        above.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        if !self.is_over {
            let lines = self.board.lines(terminal::screen(), Instant::now());
            lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
            (self.lines_drawn, self.drawn_at) = (lines.len(), Some(Instant::now()));
        }
        if !text.is_empty() {
            terminal::say(text);
        }
    }

    fn record(&mut self, record: &Record) {
        match self.board.record(record, Instant::now()) {
            above if above.is_empty() => self.draw(),
            above => self.print(&above),
        }
    }

    /// Prints what runs now above the board.
    fn tell_running(&mut self) {
        if self.drawn_at.is_some() && !self.is_over {
            let lines = self.board.running(Instant::now());
            self.print(&lines);
        }
    }

    /// Leaves the last state on the screen, and the cursor below it.
    fn leave(&mut self) {
        keys::end();
        if !self.is_over {
            self.print(&[]);
            (self.lines_drawn, self.is_over) = (0, true);
        }
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        keys::end();
    }
}

/// Locks a view. A view is always consistent, so it can be used after a panic of another thread.
fn lock(view: &Mutex<LiveView>) -> MutexGuard<'_, LiveView> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes lines above the live view. Returns false, without writing them, if no view is drawn or if the view stays
/// locked.
pub fn write_above(text: &str) -> bool {
    let lines: Vec<String> = text.lines().map(|line| visible::line(line).into_owned()).collect();
    if keep(&lines) {
        return true;
    }
    let live = LIVE.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
    let Some(live) = live else { return false };
    let since = Instant::now();
    let mut view = loop {
        match live.try_lock() {
            Ok(view) => break view,
            Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if since.elapsed() > DRAWING_MAX => return false,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let is_drawn = view.drawn_at.is_some() && !view.is_over;
    if is_drawn {
        view.print(&lines);
    }
    is_drawn
}

/// Writes messages while a run is driven, above its live view if it has one.
#[derive(Clone)]
pub struct Notices {
    view: Option<Arc<Mutex<LiveView>>>,
}

impl Notices {
    /// Writes a message of one line.
    pub fn say(&self, line: &str) {
        match &self.view {
            Some(view) => lock(view).print(&[line.to_owned()]),
            None => prose(line),
        }
    }

    /// Stops the output, so that a question can be shown. Lines wait until the question is answered.
    pub fn hold(&self) {
        keys::hold();
        let mut view = self.view.as_ref().map(|view| lock(view));
        if let Some(view) = view.as_mut().filter(|view| view.drawn_at.is_some() && !view.is_over) {
            view.print(&[]);
            view.lines_drawn = 0;
        }
        *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
    }

    /// Writes the lines that waited, and continues the output.
    pub fn release(&self) {
        keys::release();
        let mut view = self.view.as_ref().map(|view| lock(view));
        let lines = HELD.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        match &mut view {
            Some(view) => view.print(&lines),
            None => lines.iter().for_each(prose),
        }
    }

    /// Ends the view, because the process ends.
    pub fn leave(&self) {
        self.view.iter().for_each(|view| lock(view).leave());
    }
}
