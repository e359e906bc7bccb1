//! `glovebox explain`: what a rule of `check` demands, and why.

use crate::arguments::ExplainArguments;
use crate::exit::{Ended, Exit, Stop};
use crate::terminal;
use glovebox_pipeline::lint::{RULES, Rule};
use glovebox_pipeline::nearest::nearest;

/// Prints the page of a rule, or the list of all.
pub fn explain(arguments: &ExplainArguments) -> Ended {
    let Some(name) = &arguments.rule else {
        let width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
        let lines =
            RULES.iter().map(|rule| format!("{:width$}  {:7}  {}\n", rule.id, rule.severity.as_str(), rule.summary));
        terminal::print(&lines.collect::<String>());
        return Ok(Exit::Ok);
    };
    let rule = Rule::named(name).ok_or_else(|| {
        let stop = Stop::new(Exit::Usage, format!("there is no rule `{name}`"));
        match nearest(name, RULES.iter().map(|rule| rule.id)) {
            Some(meant) => stop.with_help(format!("did you mean `glovebox explain {meant}`?")),
            None => stop.with_help("`glovebox explain` lists the rules"),
        }
    })?;
    terminal::print(&rule.page());
    Ok(Exit::Ok)
}
