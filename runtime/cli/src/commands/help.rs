//! `glovebox help`: prints a command's flags, or a topic. Each topic is a page of `docs/`.

use crate::arguments::{self, Arguments, HelpArguments};
use crate::exit::{CommandResult, Exit, Stop};
use crate::terminal::{self, page};
use clap::CommandFactory;
use clap::error::ErrorKind;
use glovebox_pipeline::nearest::nearest;

/// The documentation page with every exit code.
pub const EXIT_CODES: &str = include_str!("../../../../docs/exit-codes.md");

/// Every topic with its page.
const TOPICS: [(&str, &str); 2] =
    [("exit-codes", EXIT_CODES), ("environment", include_str!("../../../../docs/environment.md"))];

/// Prints the help of a command, the page of a topic, or the list of all commands.
pub fn help(arguments: &HelpArguments) -> CommandResult {
    let named = |word: &&(&str, &str)| arguments.words.len() == 1 && arguments.words[0] == word.0;
    if let Some((_, text)) = TOPICS.iter().find(named) {
        terminal::print(page::render(text, terminal::columns()));
        return Ok(Exit::Ok);
    }
    let words = std::iter::once("glovebox").chain(arguments.words.iter().map(String::as_str)).chain(["--help"]);
    match arguments::tree().try_get_matches_from(words) {
        Err(shown) if shown.kind() == ErrorKind::DisplayHelp => {
            terminal::print(shown.render());
            Ok(Exit::Ok)
        }
        _ => Err(unknown(arguments)),
    }
}

fn unknown(arguments: &HelpArguments) -> Stop {
    let asked = arguments.words.join(" ");
    let help = match nearest_page(&asked) {
        Some(meant) => format!("did you mean `glovebox help {meant}`?"),
        None => format!("commands: `glovebox help`; topics: {}", TOPICS.map(|(name, _)| name).join(", ")),
    };
    Stop::new(Exit::Usage, format!("no command or topic `{asked}`")).with_help(help)
}

/// Returns the command or topic whose name is most similar to a word, if a name is similar enough.
pub fn nearest_page(word: &str) -> Option<String> {
    let tree = Arguments::command();
    let commands = tree.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    nearest(word, commands.chain(TOPICS.iter().map(|(name, _)| *name))).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_topic_has_the_name_of_a_command() {
        let tree = Arguments::command();
        assert!(tree.get_subcommands().all(|command| TOPICS.iter().all(|(name, _)| *name != command.get_name())));
    }

    #[test]
    fn every_variable_of_the_program_is_on_the_page() {
        let sources = [
            include_str!("../terminal/mod.rs"),
            include_str!("../terminal/paint.rs"),
            include_str!("../terminal/pager.rs"),
            include_str!("../compiler.rs"),
            include_str!("../../../plan/src/prepare/folders.rs"),
        ];
        let page = TOPICS.iter().find(|(name, _)| *name == "environment").unwrap().1;
        let mut found = 0;
        for name in sources.iter().flat_map(|source| source.split('"').skip(1).step_by(2)) {
            let is_name = name.len() > 3 && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
            if is_name && name != "HOME" && !name.starts_with("CARGO_") {
                found += 1;
                assert!(page.contains(name), "docs/environment.md lacks `{name}`");
            }
        }
        assert!(found > 6, "the search found {found} variables");
    }
}
