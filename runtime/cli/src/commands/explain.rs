//! `glovebox explain`: what a rule of `check` demands, and why, what a row of the summary proves, or which attributes a plugin declares.

mod binding;
mod plugin;
mod verdicts;

use crate::arguments::ExplainArguments;
use crate::commands::help;
use crate::exit::{CommandResult, Exit, Stop};
use crate::terminal::{self, visible};
use binding::BINDING;
use glovebox_pipeline::lint::{RULES, Rule};
use glovebox_pipeline::nearest::nearest;
use verdicts::VERDICTS;

/// Prints the page of a rule, of a row of the summary or of a plugin, or lists what has a page.
pub fn explain(arguments: &ExplainArguments) -> CommandResult {
    let ExplainArguments { name, attribute, names, workdir } = arguments;
    match (name, attribute) {
        _ if *names => print_names(arguments)?,
        (None, _) => terminal::print(list()),
        (Some(name), Some(attribute)) => {
            require_plugin(arguments, name)?;
            terminal::print(plugin::attribute(workdir, name, attribute)?);
        }
        (Some(name), None) => match page(name) {
            Some(page) => terminal::print(page),
            None => {
                require_plugin(arguments, name)?;
                terminal::print(plugin::page(workdir, name)?);
            }
        },
    }
    Ok(Exit::Ok)
}

/// Returns the page of a rule or of a row of the summary.
fn page(name: &str) -> Option<String> {
    if let Some(row) = verdicts::named(name) {
        return Some(format!("{}: {}\n\n{}\n\nSee docs/evidence.md.\n", row.title, row.summary, row.page));
    }
    if let Some((_, page)) = BINDING.iter().find(|(id, _)| *id == name) {
        let shown = "Shown by `glovebox check`, `glovebox plan` and `glovebox run`. See docs/configuration.md.";
        return Some(format!("{name}\n\n{page}\n\n{shown}\n"));
    }
    Rule::named(name).map(Rule::page)
}

/// Refuses a name that neither a rule, a row nor a plugin of the project has. Only names of plugins have dots.
fn require_plugin(arguments: &ExplainArguments, name: &str) -> Result<(), Stop> {
    if !name.contains('.') {
        return Err(unknown(name));
    }
    let known = plugin::names(&arguments.workdir)?;
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    let stop = Stop::new(Exit::Usage, format!("`{}` is not a plugin of this project", visible::line(name)));
    Err(match nearest(name, known.iter().map(String::as_str)) {
        Some(meant) => stop.with_help(format!("did you mean `glovebox explain {meant}`?")),
        None => stop.with_help("see the plugins with `glovebox plugin ls`; a file: `glovebox plugin inspect FILE`"),
    })
}

/// Prints what can stand in the place of the next argument, one name in each line, with its meaning after a tab. The scripts of
/// `glovebox completions` read it.
fn print_names(arguments: &ExplainArguments) -> Result<(), Stop> {
    let print = |name: &str, meaning: &str| terminal::print(format_args!("{name}\t{}\n", visible::line(meaning)));
    if let Some(name) = &arguments.name {
        let found = plugin::attribute_names(&arguments.workdir, name)?;
        found.iter().for_each(|(name, meaning)| print(name, meaning));
        return Ok(());
    }
    RULES.iter().for_each(|rule| print(rule.id, rule.summary));
    BINDING.iter().for_each(|(id, page)| print(id, page));
    VERDICTS.iter().for_each(|page| print(page.name, page.summary));
    plugin::names(&arguments.workdir)?.iter().for_each(|name| print(name, "plugin of this project"));
    Ok(())
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
    let stop = Stop::new(Exit::Usage, format!("unknown rule `{}`", visible::line(name)));
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
