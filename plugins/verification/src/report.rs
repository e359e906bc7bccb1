//! The artifacts of a stage about its commands: `verification.results.json`, and the output for the next stage.

use crate::commands::{Command, Commands};
use crate::failure::Code;
use crate::recovery::Adjustment;
use glovebox_plugin_sdk::exec::Exit;
use glovebox_plugin_sdk::{Stage, Value, artifact, json, log};

const RESULTS_FILE: &str = "verification.results.json";
/// Maximum length of each output in the results, in bytes. The beginning of a longer output is cut off.
const OUTPUT_BYTES_MAX: usize = 16 << 10;

/// The results so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Files of the plan, all of which exist.
    checked_files: Vec<String>,
    /// One entry for each command that ran.
    commands: Vec<Value>,
    /// Adjustments of the list of commands.
    adjustments: Vec<Value>,
    /// Commands that were left out because of a limit.
    left_out: Vec<String>,
    /// Commands of the verify contract that were not run: they were dropped, or the plan left no room for them.
    dropped_checks: Vec<String>,
    /// The last failure that was not corrected by an adjustment (decision failure-codes).
    error_meta: Option<Value>,
}

impl Report {
    pub(crate) fn new(checked_files: Vec<String>, commands: &Commands) -> Self {
        let (left_out, dropped_checks) = (commands.left_out.clone(), commands.crowded_out.clone());
        Self { checked_files, left_out, dropped_checks, ..Self::default() }
    }

    pub(crate) fn ran(&mut self, command: &Command, exit: &Exit) {
        let [stdout, stderr] = [&exit.stdout, &exit.stderr].map(|stream| stream.text());
        self.commands.push(json!({
            "command": command.line,
            "exit_code": exit.code,
            "stdout": end_of(&stdout, OUTPUT_BYTES_MAX),
            "stderr": end_of(&stderr, OUTPUT_BYTES_MAX),
        }));
    }

    /// Records that a command was dropped.
    pub(crate) fn dropped(&mut self, command: &Command) {
        if command.is_operators {
            self.dropped_checks.push(command.line.clone());
        }
    }

    pub(crate) fn adjusted(&mut self, adjustment: &Adjustment) {
        self.adjustments.push(adjustment.to_json());
    }

    pub(crate) fn failed(&mut self, command: &Command, code: Code, stderr: &str) {
        self.error_meta = Some(json!({
            "source": "verification",
            "failureCode": code.as_str(),
            "failedCommand": command.line,
            "failedCommandSource": command.source.as_str(),
            "failedCommandStderr": end_of(stderr, OUTPUT_BYTES_MAX),
        }));
    }

    /// Removes the recorded failure, because the adjusted list passed.
    pub(crate) fn forget_failure(&mut self) {
        self.error_meta = None;
    }

    pub(crate) fn keep(self) {
        let mut results = json!({ "checked_files": self.checked_files, "commands": self.commands });
        if !self.adjustments.is_empty() {
            results["adjustments"] = Value::Array(self.adjustments);
        }
        if !self.left_out.is_empty() {
            results["left_out"] = json!(self.left_out);
        }
        if !self.dropped_checks.is_empty() {
            results["dropped_checks"] = json!(self.dropped_checks);
        }
        if let Some(error_meta) = self.error_meta {
            results["error_meta"] = error_meta;
        }
        keep(RESULTS_FILE, &results);
    }
}

/// Stores the output of a command as feedback for the next stage.
pub(crate) fn keep_output(stage: &Stage, exit: &Exit) {
    let code = exit.code.map_or_else(|| exit.how.clone(), |code| code.to_string());
    let text = format!("exit_code={code}\nstdout:\n{}\nstderr:\n{}\n", exit.stdout.text(), exit.stderr.text());
    keep_text(&format!("{}.output", stage.node_id()), &text);
}

pub(crate) fn keep(name: &str, value: &Value) {
    keep_text(name, &format!("{value:#}\n"));
}

/// Stores a text as an artifact. If it is refused, the stage does not fail.
fn keep_text(name: &str, text: &str) {
    if let Err(reason) = artifact::put_text(name, text) {
        log::warn("artifact not kept", &[("name", name), ("reason", &reason)]);
    }
}

/// Returns the end of a text, at most `bytes_max` bytes, cut between two characters.
pub(crate) fn end_of(text: &str, bytes_max: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes_max);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}
