//! `glovebox explain`: what a rule of `check` demands, and why, or what a row of the summary proves.

mod binding;
mod verdicts;

use crate::arguments::ExplainArguments;
use crate::commands::help;
use crate::exit::{CommandResult, Exit, Stop};
use crate::terminal;
use binding::BINDING;
use glovebox_pipeline::lint::{RULES, Rule};
use glovebox_pipeline::nearest::nearest;
use verdicts::VERDICTS;

/// Prints the page of a rule or of a row of the summary, or lists all of them.
pub fn explain(arguments: &ExplainArguments) -> CommandResult {
    let Some(name) = &arguments.rule else {
        terminal::print(list());
        return Ok(Exit::Ok);
    };
    if let Some(row) = verdicts::named(name) {
        terminal::print(format_args!("{}: {}\n\n{}\n\nSee docs/evidence.md.\n", row.title, row.summary, row.page));
        return Ok(Exit::Ok);
    }
    if let Some((_, page)) = BINDING.iter().find(|(id, _)| id == name) {
        terminal::print(format_args!(
            "{name}\n\n{page}\n\nShown by `glovebox check`, `glovebox plan` and `glovebox run`. See docs/configuration.md.\n"
        ));
        return Ok(Exit::Ok);
    }
    let rule = Rule::named(name).ok_or_else(|| unknown(name))?;
    terminal::print(rule.page());
    Ok(Exit::Ok)
}

/// Lists the rules that need only the pipeline, those that need its configuration, and the rows of the summary.
fn list() -> String {
    let names = RULES.iter().map(|rule| rule.id).chain(BINDING.iter().map(|(id, _)| *id));
    let width = names.map(str::len).max().unwrap_or_default();
    let row = |name: &str, kind: &str, text: &str| format!("{name:width$}  {kind:7}  {text}\n");
    let rules = RULES.iter().map(|rule| row(rule.id, rule.severity.as_str(), rule.summary));
    let binding = BINDING.iter().map(|(id, page)| {
        let (severity, text) = page.split_once(": ").unwrap_or(("Error", page));
        let first = text.split_once(". ").map_or(text, |(first, _)| first);
        row(id, &severity.to_lowercase(), first)
    });
    let rows = VERDICTS.iter().map(|page| row(page.name, "row", page.summary));
    rules.chain(binding).chain(rows).collect()
}

/// Returns the error for a name that no rule has. It suggests the nearest rule, a command or topic with that name, or
/// the nearest command or topic.
fn unknown(name: &str) -> Stop {
    let stop = Stop::new(Exit::Usage, format!("unknown rule `{name}`"));
    let rows = || VERDICTS.iter().map(|page| page.name);
    let rules = || RULES.iter().map(|rule| rule.id).chain(BINDING.iter().map(|(id, _)| *id)).chain(rows());
    let rule = nearest(name, rules());
    let part = || rules().find(|known| name.len() > 2 && known.contains(name));
    let page = help::nearest_page(name);
    match (rule.or_else(part), page) {
        (rule, Some(page)) if rule.is_none() || page == name => {
            stop.with_help(format!("did you mean `glovebox help {page}`? List all rules: `glovebox explain`"))
        }
        (Some(meant), _) => stop.with_help(format!("did you mean `glovebox explain {meant}`?")),
        (None, _) => stop.with_help("list all rules: `glovebox explain`"),
    }
}
