//! Runs the commands in order. A failure that is the list's own adjusts the list, as often as the operator allows (seed 4).

use crate::commands::{Command, Commands, Source};
use crate::failure::{Code, Ended, cause};
use crate::project::Project;
use crate::recovery::{self, Adjustment};
use crate::report::{Report, end_of, keep_output};
use crate::settings::Settings;
use glovebox_plugin_sdk::exec::{self, Exit};
use glovebox_plugin_sdk::plan::Problem;
use glovebox_plugin_sdk::{Outcome, Stage};

/// Bytes of output in a failure's notes.
const QUOTE_BYTES_MAX: usize = 2000;

/// The stage, and what bounds its commands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds<'a> {
    pub(crate) stage: &'a Stage,
    /// Where the commands start.
    pub(crate) folder: Option<&'a str>,
    /// None where the operator has no `[verify]`: nothing is adjusted.
    pub(crate) settings: Option<&'a Settings>,
}

/// What became of one command.
enum Step {
    Passed(String),
    /// The list may be to blame. The outcome stands if it is not adjusted.
    Failed(Code, Box<Outcome>),
    /// Nothing follows.
    Ended(Outcome),
}

/// The commands as far as they ran.
struct Running<'a> {
    bounds: Bounds<'a>,
    /// As it was before the first command.
    project: Project,
    commands: Commands,
    report: Report,
    /// Receipts of the commands that passed.
    passed: Vec<String>,
    /// Commands that were dropped, each with the cause.
    dropped: Vec<(String, Code)>,
    /// Commands of the list at any time.
    tried: Vec<String>,
    adjustments_left: u64,
}

/// Runs the commands up to the first failure that stands.
pub(crate) fn run(commands: Commands, report: Report, bounds: Bounds<'_>) -> Result<Outcome, Problem> {
    let adjustments_left = bounds.settings.map_or(0, |settings| settings.recovery_attempts);
    let tried = commands.lines();
    let (project, passed, dropped) = (Project::of(bounds.folder), Vec::new(), Vec::new());
    let mut running = Running { bounds, project, commands, report, passed, dropped, tried, adjustments_left };
    let ended = running.run_all();
    running.report.keep();
    ended
}

impl Running<'_> {
    fn run_all(&mut self) -> Result<Outcome, Problem> {
        let mut next = 0;
        loop {
            while let Some(command) = self.commands.list.get(next).cloned() {
                match self.step(&command)? {
                    Step::Passed(receipt) => {
                        self.passed.push(receipt);
                        next += 1;
                    }
                    Step::Failed(code, outcome) => match self.adjust(next, code) {
                        Some(from) => next = from,
                        None => return Ok(*outcome),
                    },
                    Step::Ended(outcome) => return Ok(outcome),
                }
            }
            let is_empty = self.commands.list.is_empty();
            let has_more =
                is_empty && self.bounds.settings.is_some_and(|settings| self.commands.fall_back(settings, &self.tried));
            if !has_more {
                return Ok(self.outcome());
            }
            self.tried.extend(self.commands.lines());
            next = 0;
        }
    }

    /// What the commands that are left have shown. What was dropped or left out has shown nothing.
    fn outcome(&self) -> Outcome {
        let total = self.passed.len() + self.dropped.len();
        let mut notes = format!("verification passed: {} of {total} commands", self.passed.len());
        let dropped = self.dropped.iter().map(|(line, code)| format!("{line} ({})", code.as_str()));
        let dropped = dropped.collect::<Vec<_>>().join(", ");
        if !self.dropped.is_empty() {
            notes += &format!("; not verified, dropped: {dropped}");
        }
        let left_out = self.commands.left_out.join(", ");
        if !left_out.is_empty() {
            notes += &format!("; not verified, left out by `max_commands`: {left_out}");
        }
        let outcome = match (self.passed.is_empty(), self.dropped.first()) {
            (true, Some((_, code))) => {
                let reason = format!("no verification command is left; dropped: {dropped}");
                return Outcome::fail(code.as_str(), reason);
            }
            (_, Some(_)) => Outcome::partial_success(),
            (_, None) if !left_out.is_empty() => Outcome::partial_success(),
            (_, None) => Outcome::success(),
        };
        self.passed.iter().fold(outcome.notes(notes), |outcome, receipt| outcome.claim_command(receipt))
    }

    /// Runs one command.
    fn step(&mut self, command: &Command) -> Result<Step, Problem> {
        let Bounds { stage, folder, .. } = self.bounds;
        if let Some(code) = command.fault() {
            self.report.failed(command, code, "");
            let reason = format!("Unsupported command format. Shell operators are not allowed.: {}", command.line);
            return Ok(Step::Failed(code, Box::new(Outcome::fail(code.as_str(), reason))));
        }
        let described = exec::argv(&command.words).set_up_by(stage);
        let described = described.map_err(|reason| Problem::new("verification/timeout-syntax", reason))?;
        let exit = match folder {
            Some(folder) => described.cwd(folder).run(),
            None => described.run(),
        };
        let exit = match exit {
            Ok(exit) => exit,
            Err(error) => return Ok(Step::Ended(Outcome::from(error))),
        };
        self.report.ran(command, &exit);
        if exit.passed() {
            return Ok(Step::Passed(exit.receipt));
        }
        keep_output(stage, &exit);
        let [stdout, stderr] = [&exit.stdout, &exit.stderr].map(|stream| stream.text());
        let (code, outcome) = match (exit.how.as_str(), exit.code) {
            ("exited", Some(number)) => {
                let ended = Ended { words: &command.words, code: number, stdout: &stdout, stderr: &stderr };
                let code = cause(&ended, &self.project);
                let reason = format!("verification command failed: {} (exit={number})", command.line);
                (Some(code), Outcome::fail(code.as_str(), reason))
            }
            _ => (None, ended_otherwise(&command.line, &exit)),
        };
        self.report.failed(command, code.unwrap_or(Code::Failed), &stderr);
        let quote = [&stderr, &stdout].into_iter().find(|text| !text.trim().is_empty());
        let outcome = outcome.notes(quote.map_or("", |text| end_of(text.trim(), QUOTE_BYTES_MAX)));
        Ok(match code {
            Some(code) => Step::Failed(code, Box::new(outcome)),
            None => Step::Ended(outcome),
        })
    }

    /// Adjusts the list after a failure; gives the command to go on with, or none where the failure stands.
    fn adjust(&mut self, failed: usize, code: Code) -> Option<usize> {
        let settings = self.bounds.settings?;
        let list = &self.commands.list;
        let command = list.get(failed)?;
        let may_drop = match command.source {
            Source::Plan => settings.recovers_explicit,
            Source::Worker => settings.skips_invalid,
        };
        let adjustment = match code.is_invalid() {
            true if may_drop => recovery::without(list, failed, code),
            true => return None,
            false => recovery::reordered(list, failed)?,
        };
        self.adjustments_left = self.adjustments_left.checked_sub(1)?;
        self.report.adjusted(&adjustment);
        let Adjustment { rule, next, .. } = adjustment;
        let from = if rule == recovery::DROP {
            self.dropped.push((command.line.clone(), code));
            failed
        } else {
            // The cleanup has run: what it removed must be made again.
            self.passed.clear();
            0
        };
        self.commands.list = next;
        Some(from)
    }
}

fn ended_otherwise(line: &str, exit: &Exit) -> Outcome {
    match exit.how.as_str() {
        "timed-out" => {
            let reason = format!("verification command timed out: {line} (after {} ms)", exit.duration_ms);
            Outcome::fail("verification/timeout", reason).class("transient")
        }
        "canceled" => Outcome::fail("verification/canceled", "the run was canceled").class("canceled"),
        how => Outcome::fail(Code::Failed.as_str(), format!("verification command failed: {line} ({how})")),
    }
}
