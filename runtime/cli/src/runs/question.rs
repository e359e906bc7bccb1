//! Renders a question to a person: what is asked, what an answer approves, and what can be answered.
//!
//! Stages produce much of the content: names of files, commands, the text itself. All of it is escaped, and every line
//! of the text after the first one begins with a bar, so that no stage can imitate a row.

use crate::runs::review::{Check, ChoiceReview, Review, ReviewedFile, RunSpending};
use crate::terminal::paint::Paint;
use crate::terminal::rows::Rows;
use crate::terminal::{counted, duration, summary, visible};
use glovebox_journal::event::{QuestionAsked, time_format};
use glovebox_names::shell;
use glovebox_pipeline::ir::NodeId;
use glovebox_plan::plan::CapabilityLists;
use glovebox_record::Choice;
use std::collections::BTreeSet;

/// Width of the column of titles, in characters.
const TITLE_WIDTH: usize = 12;
/// Maximum number of changed files that get a line.
const FILES_SHOWN_MAX: usize = 20;
/// Maximum number of names or grants in a row.
const LISTED_MAX: usize = 12;
/// Maximum number of characters of a command or a grant.
const TEXT_CHARACTERS_MAX: usize = 100;

/// Renders the rows of a question: its review or why there is none, its choices, and how to answer it.
pub fn render(asked: &QuestionAsked, review: Result<&Review, &str>, run: &str, paint: Paint) -> String {
    let mut rows = Rows::below_a_title(TITLE_WIDTH).painted(paint);
    match review {
        Ok(review) => approved(&mut rows, review),
        Err(problem) => rows.row("not shown", format!("what an answer approves: {problem}")),
    }
    let review_of = |choice: &Choice| {
        let is_of = |one: &&ChoiceReview| one.key.as_ref() == Some(&choice.key);
        review.ok().and_then(|review| review.choices.iter().find(is_of))
    };
    for choice in &asked.choices {
        let (key, label) = (visible::line(&choice.key), visible::line(choice.shown()));
        let to = Some(visible::line(choice.to.as_str())).filter(|_| asked.recovery.is_none());
        rows.block(format_args!("[{key}]"), to.map_or_else(|| label.to_string(), |to| format!("{label} -> {to}")));
        review_of(choice).into_iter().for_each(|after| next(&mut rows, after));
    }
    if let Some(other) = review.ok().and_then(|review| review.choices.iter().find(|one| one.key.is_none())) {
        match asked.choices.is_empty() {
            true => rows.block("answer", "any text"),
            false => rows.block("otherwise", "if the gate fails or nobody answers in time"),
        }
        next(&mut rows, other);
    }
    if let Some(default) = &asked.default {
        rows.row("default", default.shown());
    }
    if let Some(due) = &asked.due_at {
        rows.row("until", time_format::text(due));
    }
    if !run.is_empty() {
        let question = visible::line(asked.question.as_str());
        rows.block("to answer", format!("glovebox answer {run} {} VALUE", shell::word(&question)));
    }
    rows.finish()
}

/// Returns the text of a question, in which each line after the first one begins with a bar.
pub fn text(asked: &QuestionAsked) -> String {
    visible::block(asked.text.trim()).replace('\n', "\n  | ")
}

fn approved(rows: &mut Rows, review: &Review) {
    changed(rows, review);
    for check in &review.checks {
        let after = if check.is_before_changes { ", before the last changes" } else { "" };
        rows.block(format!("{}{after}", summary::title(check.proof)), command(check));
    }
    let unverified = summary::claims(&review.unverified, &review.model);
    if !unverified.is_empty() {
        rows.block("unverified", unverified);
    }
    rows.block("spent", spent(&review.spent));
}

fn changed(rows: &mut Rows, review: &Review) {
    let since = review.since.as_ref().map_or("the run began".into(), |question| visible::line(question.as_str()));
    let count = review.changed.len() + review.directories.len();
    if count == 0 {
        return rows.block("changed", format!("nothing since {since}"));
    }
    let paths = if count == 1 { "1 path".to_owned() } else { format!("{count} paths") };
    rows.block("changed", format!("{paths} since {since}: {}", review.diff));
    let files = review.changed.iter().map(file);
    let directories = review.directories.iter().map(|path| format!("{}/", visible::line(path.as_str())));
    files.chain(directories).take(FILES_SHOWN_MAX).for_each(|line| rows.block("", line));
    if count > FILES_SHOWN_MAX {
        rows.block("", format!("and {} more", count - FILES_SHOWN_MAX));
    }
}

fn file(file: &ReviewedFile) -> String {
    let path = visible::line(file.path.as_str());
    let from = file.moved_from.as_ref().map(|from| format!("{} => ", visible::line(from.as_str())));
    let what = match (file.before, file.after) {
        (None, Some(mode)) => format!(" (new{})", of_mode(mode)),
        (Some(_), None) => " (gone)".to_owned(),
        (Some(before), Some(after)) if before != after => format!(" (now {})", after.digits()),
        _ => String::new(),
    };
    let lines = match (file.added, file.removed) {
        (Some(added), Some(removed)) => format!(" +{added} -{removed}"),
        _ => " (lines not counted)".to_owned(),
    };
    format!("{}{path}{what}{lines}", from.unwrap_or_default())
}

fn of_mode(mode: crate::patch::Mode) -> &'static str {
    use crate::patch::Mode;
    match mode {
        Mode::File => "",
        Mode::Executable => ", executable",
        Mode::Link => ", link",
    }
}

fn command(check: &Check) -> String {
    let command = visible::summary(&check.command, TEXT_CHARACTERS_MAX);
    let (node, took) = (visible::line(check.node.as_str()), duration(check.duration_ms));
    format!("{node}: {command} {} in {took} ({})", visible::line(&check.end), check.tier)
}

fn spent(spent: &RunSpending) -> String {
    let of = |bound: Option<String>| bound.map(|bound| format!(" of {bound}")).unwrap_or_default();
    let tokens_max = of(spent.spend_max.tokens_max.map(|most| most.to_string()));
    let cost_max = of(spent.spend_max.cost_max.map(|most| most.to_string()));
    let wall_max = of(spent.wall_max_ms.map(duration));
    let (tokens, cost, time) = (spent.tokens, spent.cost, duration(spent.driven_ms));
    format!("{} tokens sent, {} received{tokens_max}; {cost}{cost_max}; {time}{wall_max}", tokens.input, tokens.output)
}

/// Adds rows about the stages that may run after a choice.
fn next(rows: &mut Rows, after: &ChoiceReview) {
    let ends = match (after.gates.as_slice(), after.may_end) {
        ([], true) => "then the run ends".to_owned(),
        ([], false) => "then no exit can be reached".to_owned(),
        (gates, may_end) => {
            let end = if may_end { ", or the run ends" } else { "" };
            format!("then asks {}{end}", named(gates))
        }
    };
    let stages =
        if after.stages.is_empty() { "runs nothing".to_owned() } else { format!("runs {}", named(&after.stages)) };
    rows.block("", format!("{stages}; {ends}"));
    if let (Some(could), false) = (&after.could, after.stages.is_empty()) {
        grants(could).into_iter().for_each(|line| rows.block("", line));
    }
}

fn grants(could: &CapabilityLists) -> Vec<String> {
    let listed = |what: &str, grants: &BTreeSet<String>| {
        let shown: Vec<String> =
            grants.iter().take(LISTED_MAX).map(|one| visible::summary(one, TEXT_CHARACTERS_MAX)).collect();
        let more = grants.len().saturating_sub(LISTED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!grants.is_empty()).then(|| format!("may {what} {}{more}", shown.join(", ")))
    };
    let lists = [listed("write", &could.write), listed("run", &could.execute), listed("reach", &could.reach)];
    let model = could.model.then(|| "may ask the model".to_owned());
    let lines: Vec<String> = lists.into_iter().chain([model]).flatten().collect();
    if lines.is_empty() { vec!["may write, run and reach nothing".to_owned()] } else { lines }
}

fn named(nodes: &[NodeId]) -> String {
    let shown: Vec<_> = nodes.iter().take(LISTED_MAX).map(|id| visible::line(id.as_str())).collect();
    match nodes.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {}", shown.join(", "), counted(more, "other")),
    }
}
