//! Runs the commands in order. After a failure that the list itself caused, the list is adjusted, as often as the operator allows
//! (decision command-list-adjustments).

use crate::commands::{Command, Commands, Source};
use crate::failure::{Cause, Code, CommandEnd, cause, no_effect};
use crate::project::Project;
use crate::recovery::{self, Adjustment};
use crate::report::{Report, end_of, keep_output};
use crate::settings::Settings;
use glovebox_plugin_sdk::exec::{self, Exit};
use glovebox_plugin_sdk::plan::Problem;
use glovebox_plugin_sdk::{Outcome, Stage};

/// Maximum length of output in the notes of a failure, in bytes.
const QUOTE_BYTES_MAX: usize = 2000;

/// The stage, and the settings for its commands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds<'a> {
    pub(crate) stage: &'a Stage,
    /// Working directory of the commands.
    pub(crate) folder: Option<&'a str>,
    /// Settings of the operator; `None` without `[verify]`, when nothing is adjusted.
    pub(crate) settings: Option<&'a Settings>,
}

/// The result of one command.
enum CommandResult {
    Passed(String),
    /// The list may be the cause. The outcome applies if the list is not adjusted.
    Failed(Code, Box<Outcome>),
    /// The stage ends with this outcome.
    Ended(Outcome),
}

/// The state of the commands while they run.
struct CommandRun<'a> {
    bounds: Bounds<'a>,
    /// The project before the first command.
    project: Project,
    commands: Commands,
    report: Report,
    /// Receipts of the commands that passed.
    passed: Vec<String>,
    /// Commands that passed although their test runner ran no test.
    without_tests: Vec<String>,
    /// Dropped commands with their causes.
    dropped: Vec<(String, Code)>,
    /// All commands that were in the list at any time.
    tried: Vec<String>,
    adjustments_left: u64,
    /// True if the next command must begin with the files that the first command began with.
    starts_over: bool,
}

/// Runs the commands up to the first failure that no adjustment corrects.
pub(crate) fn run(commands: Commands, report: Report, bounds: Bounds<'_>) -> Result<Outcome, Problem> {
    let adjustments_left = bounds.settings.map_or(0, |settings| settings.recovery_attempts);
    let tried = commands.lines();
    let place = bounds.folder.map(str::to_owned).or_else(|| working_dir(bounds.stage));
    let project = Project::read(place.as_deref(), bounds.settings.map(|settings| &settings.base));
    let mut running = CommandRun {
        bounds,
        project,
        commands,
        report,
        passed: Vec::new(),
        without_tests: Vec::new(),
        dropped: Vec::new(),
        tried,
        adjustments_left,
        starts_over: false,
    };
    let ended = running.run_all();
    running.report.keep();
    ended
}

/// Returns the working directory from the node's attribute, for a stage without `verification.workdir`.
fn working_dir(stage: &Stage) -> Option<String> {
    let written = stage.attribute("working_dir")?;
    Some(written.split('/').filter(|name| !matches!(*name, "" | ".")).collect::<Vec<_>>().join("/"))
}

impl CommandRun<'_> {
    fn run_all(&mut self) -> Result<Outcome, Problem> {
        let mut next = 0;
        loop {
            while let Some(command) = self.commands.list.get(next).cloned() {
                match self.step(&command)? {
                    CommandResult::Passed(receipt) => {
                        self.passed.push(receipt);
                        next += 1;
                    }
                    CommandResult::Failed(code, outcome) => match self.adjust(next, code) {
                        Some(from) => next = from,
                        None => return Ok(*outcome),
                    },
                    CommandResult::Ended(outcome) => return Ok(outcome),
                }
            }
            let is_empty = self.commands.list.is_empty();
            let has_more =
                is_empty && self.bounds.settings.is_some_and(|settings| self.commands.fall_back(settings, &self.tried));
            if !has_more {
                let outcome = self.outcome();
                if outcome.failure().is_none() {
                    self.report.forget_failure();
                }
                return Ok(outcome);
            }
            self.tried.extend(self.commands.lines());
            next = 0;
        }
    }

    /// Returns the outcome after all commands ran. Commands that were dropped or left out are not part of the proof.
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
        if !self.without_tests.is_empty() {
            notes += &format!("; ran no test: {}", self.without_tests.join(", "));
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
    fn step(&mut self, command: &Command) -> Result<CommandResult, Problem> {
        let Bounds { stage, folder, .. } = self.bounds;
        if let Some(code) = command.fault() {
            self.report.failed(command, code, "");
            let reason = format!("Unsupported command format. Shell operators are not allowed.: {}", command.line);
            return Ok(CommandResult::Failed(code, Box::new(Outcome::fail(code.as_str(), reason))));
        }
        let described = exec::argv(&command.words).set_up_by(stage);
        let described = described.map_err(|reason| Problem::new("verification/timeout-syntax", reason))?;
        let described = if command.stands_in { described.stand_in() } else { described };
        let described = if std::mem::take(&mut self.starts_over) { described.start_over() } else { described };
        let exit = match folder {
            Some(folder) => described.cwd(folder).run(),
            None => described.run(),
        };
        let exit = match exit {
            Ok(exit) => exit,
            Err(error) => return Ok(CommandResult::Ended(Outcome::from(error))),
        };
        self.report.ran(command, &exit);
        let [stdout, stderr] = [&exit.stdout, &exit.stderr].map(|stream| stream.text());
        let number = exit.code.filter(|_| exit.how == "exited");
        let ended = number.map(|code| CommandEnd {
            words: &command.words,
            code,
            stdout: &stdout,
            stderr: &stderr,
            is_operators: command.is_operators,
        });
        let adjusts = self.bounds.settings.is_some();
        let cause = match ended.filter(|_| adjusts || !exit.passed()) {
            Some(ended) if exit.passed() => no_effect(&ended, exit.ran_no_test(), &self.project),
            Some(ended) => Some(cause(&ended, &self.project)),
            None => None,
        };
        if exit.passed() && cause.is_none() {
            self.without_tests.extend(exit.ran_no_test().then(|| command.line.clone()));
            return Ok(CommandResult::Passed(exit.receipt));
        }
        keep_output(stage, &exit);
        let (code, outcome) = match (cause, number) {
            (Some(Cause { code, removed }), Some(number)) => {
                let removed = removed.map(|what| format!("; the run removed {what}")).unwrap_or_default();
                let reason = format!("verification command failed: {} (exit={number}){removed}", command.line);
                (Some(code), Outcome::fail(code.as_str(), reason))
            }
            _ => (None, ended_otherwise(&command.line, &exit)),
        };
        self.report.failed(command, code.unwrap_or(Code::Failed), &stderr);
        let quote = [&stderr, &stdout].into_iter().find(|text| !text.trim().is_empty());
        let outcome = outcome.notes(quote.map_or("", |text| end_of(text.trim(), QUOTE_BYTES_MAX)));
        Ok(match code {
            Some(code) => CommandResult::Failed(code, Box::new(outcome)),
            None => CommandResult::Ended(outcome),
        })
    }

    /// Adjusts the list after a failure. Returns the index of the next command, or `None` if the list is not adjusted.
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
            self.report.dropped(command);
            self.dropped.push((command.line.clone(), code));
            failed
        } else {
            // A list in another order is a new verification, so earlier results are discarded.
            self.passed.clear();
            self.without_tests.clear();
            self.starts_over = true;
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
