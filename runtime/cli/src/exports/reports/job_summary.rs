//! Writes a run as Markdown, for the page of a CI job.
//!
//! In every text of a stage or a program, characters that are special in Markdown or HTML are written as character
//! references.

use super::{Report, StageReport, Verdict};
use crate::terminal::summary::title;
use crate::terminal::{counted, duration, missing, status_files, visible};
use glovebox_state::evidence::{ExitClass, Proof};
use std::fmt::Write;

/// Maximum number of characters of a cell.
const TEXT_MAX: usize = 300;
/// Maximum number of rows of a table, because CI services limit the size of the page.
const ROWS_MAX: usize = 200;

/// Returns the report as Markdown.
pub(super) fn render(report: &Report) -> String {
    let summary = &report.summary;
    let mark = if summary.end.exit == ExitClass::Ok { "✅" } else { "❌" };
    let (code, name) = (summary.end.exit.code(), summary.end.exit.name());
    let (pipeline, time) = (text(&summary.pipeline), duration(summary.duration_ms));
    let mut page = format!("### {mark} Glovebox: {pipeline}, exit {code} ({name}) in {time}\n\n");
    if let Some(cause) = summary.cause() {
        let node = cause.node.map(|node| format!("{}: ", text(node.as_str()))).unwrap_or_default();
        line(&mut page, format_args!("**{node}{}**\n", text(&cause.failure.reason)));
    }
    line(&mut page, "| stage | result | time | evidence |\n|---|---|---|---|");
    for stage in report.stages.iter().take(ROWS_MAX) {
        let visit = if stage.visit > 1 { format!(" (visit {})", stage.visit) } else { String::new() };
        let (name, time) = (text(&stage.name()), duration(stage.duration_ms));
        line(&mut page, format_args!("| {name}{visit} | {} | {time} | {} |", result(stage), evidence(report, stage)));
    }
    if report.stages.len() > ROWS_MAX {
        line(&mut page, format_args!("\n{} more stages", report.stages.len() - ROWS_MAX));
    }
    rest(report, &mut page);
    page
}

/// Adds the notes below the table of stages.
fn rest(report: &Report, page: &mut String) {
    let summary = &report.summary;
    page.push('\n');
    for (_, row) in missing::rows(&summary.proof) {
        line(page, format_args!("- **Missing**: {}", text(&row)));
    }
    for (_, row) in status_files::rows(&summary.proof) {
        line(page, format_args!("- **Status file**: {}", text(&row)));
    }
    if !summary.access.refused.is_empty() {
        let count = counted(summary.access.refused.len(), "request");
        line(page, format_args!("- **Refused**: {count} outside of the grants"));
        for refused in summary.access.refused.iter().take(ROWS_MAX) {
            line(page, format_args!("  - {}: {}", text(refused.node.as_str()), text(&refused.refusal.to_string())));
        }
    }
    if !summary.files.quarantined.is_empty() {
        line(page, format_args!("- **Set aside**: {}", counted(summary.files.quarantined.len(), "changed file")));
    }
    line(page, format_args!("- **Changed**: {}", counted(summary.files.changed.len(), "path")));
    if summary.model.cost.0 > 0 {
        let about = if summary.model.is_estimated { "~" } else { "" };
        line(page, format_args!("- **Cost**: {about}{}", summary.model.cost));
    }
    line(page, format_args!("- **Run**: {}, record {}\n", text(&summary.run_id), summary.head.hash));
}

fn line(page: &mut String, line: impl std::fmt::Display) {
    writeln!(page, "{line}").expect("writing to a string does not fail");
}

fn result(stage: &StageReport) -> String {
    match stage.has_failed() {
        true => format!("❌ {}", text(&stage.reason())),
        false => stage.status.as_str().to_owned(),
    }
}

fn evidence(report: &Report, stage: &StageReport) -> String {
    let verified: Vec<Proof> = report.commands(stage).filter(|it| it.verified).map(|it| it.proof()).collect();
    // The weakest proof of the verified commands.
    let weakest = verified.iter().copied().find(|proof| *proof != Proof::Verified).or(verified.first().copied());
    let proved = weakest.map(|proof| format!("{}, {}", text(title(proof)), counted(verified.len(), "command")));
    match report.verdict(stage) {
        Verdict::Failed | Verdict::Skipped => "–".to_owned(),
        Verdict::Simulated => "simulated".to_owned(),
        Verdict::NotTaken => "not taken".to_owned(),
        Verdict::NoReceipt => "its own word".to_owned(),
        Verdict::Unproven(why) => format!("not verified, {why}"),
        Verdict::Dropped => format!("not verified, skipped: {}", text(&stage.dropped_checks.join(", "))),
        Verdict::Verified => proved.unwrap_or_default(),
        Verdict::Partial(open) => {
            let proved = proved.map(|proved| proved + "; ").unwrap_or_default();
            let rest = if open == 0 { "commands were left out".to_owned() } else { counted(open, "command") };
            format!("{proved}not verified, {rest}")
        }
    }
}

/// Returns a text for Markdown: one line, of limited length, with character references for all special ASCII
/// characters.
fn text(raw: &str) -> String {
    let shown = visible::line(raw);
    let is_cut = shown.chars().nth(TEXT_MAX).is_some();
    let mut safe = String::new();
    for character in shown.chars().take(TEXT_MAX) {
        match character {
            ' ' | '-' | ',' | '/' => safe.push(character),
            sign if sign.is_ascii_punctuation() => {
                write!(safe, "&#{};", u32::from(sign)).expect("writing to a string does not fail");
            }
            other => safe.push(other),
        }
    }
    safe.push_str(if is_cut { "…" } else { "" });
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_stage_is_never_markup() {
        let hostile = "</td> | ![x](https://a.example/p) `code` **b** @all\n# title\n<script>";
        let safe = text(hostile);
        let signs = ["<", ">", "|", "!", "[", "(", "`", "*", "@", "\n"];
        assert!(signs.iter().all(|sign| !safe.contains(sign)), "{safe}");
        assert_eq!(text("a_b/c-d, e"), "a&#95;b/c-d, e");
        assert!(text(&"x".repeat(1000)).chars().count() <= TEXT_MAX + 1);
    }
}
