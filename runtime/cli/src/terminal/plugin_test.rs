//! The text of `glovebox plugin test`: a row for each check, the peaks of the limits, and the outcome of the given input.
//!
//! The component chooses most of these texts. All of them are escaped here, whether or not they are already.

use crate::terminal::paint::{Colour, Paint};
use crate::terminal::rows::Rows;
use crate::terminal::{about, counted, duration, visible};
use glovebox_contract::report::{CheckResult, InputResult, Peak, TestReport, Verdict};
use glovebox_record::LimitUnit;
use std::fmt::Write;

/// Minimum share of a limit, in percent, whose peak is a row.
const SHOWN_PERCENT_MIN: u64 = 1;

/// Renders the result of a test.
pub fn render(report: &TestReport) -> String {
    let mut text = title(report);
    let paint = Paint::stdout();
    let width = report.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or_default();
    for check in &report.checks {
        push_check(&mut text, check, width, paint);
    }
    if let Some(input) = &report.input {
        text.push_str(&rows_of_input(input));
    }
    let mut rows = Rows::new(9);
    for peak in report.peaks.iter().filter(|peak| peak.used.saturating_mul(100) / peak.of.max(1) >= SHOWN_PERCENT_MIN) {
        rows.row("peak", peak_line(peak));
    }
    text.push_str(&rows.finish());
    text.push_str(&summary(report));
    text
}

fn title(report: &TestReport) -> String {
    let name = report.name.as_deref().map_or("a plugin without a manifest".into(), visible::line);
    let version = report.version.as_deref().map(|version| format!(" {}", visible::line(version))).unwrap_or_default();
    format!("{name}{version} ({}), {}\n", report.world, report.digest)
}

fn push_check(text: &mut String, check: &CheckResult, width: usize, paint: Paint) {
    let (word, colour) = match check.verdict {
        Verdict::Passed => ("passed", Colour::Green),
        Verdict::Failed => ("FAILED", Colour::Red),
        Verdict::NotApplicable => ("not applicable", Colour::Bold),
        Verdict::NotRun => ("not run", Colour::Yellow),
    };
    let word = paint.with(colour, format_args!("{word:<14}"));
    let (name, detail) = (visible::line(&check.name), check.detail.as_deref().unwrap_or_default());
    let mut push = |line: String| {
        text.push_str(line.trim_end());
        text.push('\n');
    };
    if check.verdict == Verdict::Failed {
        push(format!("  {word} {name}"));
        push(format!("      checks  {}", visible::line(&check.checks)));
        let mut lines = detail.lines();
        push(format!("      found   {}", visible::line(lines.next().unwrap_or_default())));
        lines.for_each(|line| push(format!("              {}", visible::line(line))));
        push(format!("      help    {}", visible::line(check.help.as_deref().unwrap_or_default())));
    } else {
        push(format!("  {word} {name:<width$}  {}", visible::line(detail)));
    }
}

fn rows_of_input(input: &InputResult) -> String {
    let mut rows = Rows::new(9);
    let outcome = &input.outcome;
    rows.row("outcome", outcome.status.as_str());
    if let Some(failure) = &outcome.failure {
        rows.row("failure", format_args!("{} ({}): {}", failure.class.as_str(), failure.code, failure.reason));
    }
    outcome.preferred_label.iter().for_each(|label| rows.row("label", label));
    outcome.suggested_next_ids.iter().for_each(|id| rows.row("next", id));
    outcome.context_updates.iter().for_each(|(key, value)| rows.row("context", format_args!("{key} = {value}")));
    if !outcome.notes.is_empty() {
        rows.row("notes", &outcome.notes);
    }
    for change in &input.changes {
        let refused = change.refused.as_deref().map(|reason| format!(": refused: {reason}")).unwrap_or_default();
        rows.row("changed", format_args!("{} {}{refused}", change.op, change.path));
    }
    input.refused.iter().for_each(|refusal| rows.row("refused", refusal));
    let calls = counted(usize::try_from(input.host_calls).unwrap_or(usize::MAX), "host call");
    rows.row("took", format_args!("{}, {calls}", duration(input.duration_ms)));
    rows.finish()
}

fn peak_line(peak: &Peak) -> String {
    let shown = |amount: u64| match peak.limit.unit() {
        LimitUnit::Bytes => about(amount),
        LimitUnit::Milliseconds => duration(amount),
        LimitUnit::Count => amount.to_string(),
    };
    format!("{} {} of {}, with {}", peak.limit, shown(peak.used), shown(peak.of), peak.call)
}

fn summary(report: &TestReport) -> String {
    let mut text = String::new();
    let counts = [
        (Verdict::Passed, "passed"),
        (Verdict::Failed, "failed"),
        (Verdict::NotApplicable, "not applicable"),
        (Verdict::NotRun, "not run"),
    ];
    let parts = counts.iter().map(|(verdict, word)| (report.count(*verdict), word));
    let parts: Vec<String> =
        parts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let calls = counted(usize::try_from(report.calls).unwrap_or(usize::MAX), "call");
    // Writing to a string does not fail.
    let _written = writeln!(text, "{}; {calls} in {}", parts.join(", "), duration(report.duration_ms));
    text
}
