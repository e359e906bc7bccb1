//! `glovebox tokens`: the tokens of clients of `glovebox serve`.

use crate::arguments::{TokenAddArguments, TokenListArguments, TokensCommand};
use crate::exit::{CommandResult, Exit};
use crate::terminal::rows::Rows;
use crate::terminal::{self, visible};
use crate::token_file;
use glovebox_serve::right::Right;
use schemars::JsonSchema;
use serde::Serialize;

/// The document that `tokens ls --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "tokens.json")]
pub struct TokensFile {
    /// Version of this document.
    schema_version: u32,
    /// The tokens, in the order in which they were added.
    tokens: Vec<ListedToken>,
}

/// One token.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedToken {
    /// Name of the client.
    name: String,
    /// What the client may do.
    rights: Vec<&'static str>,
}

/// Adds, lists or removes tokens.
pub fn tokens(command: &TokensCommand) -> CommandResult {
    match command {
        TokensCommand::Add(arguments) => add(arguments),
        TokensCommand::Ls(arguments) => list(arguments),
        TokensCommand::Remove(arguments) => {
            token_file::remove(&arguments.name)?;
            terminal::say(format_args!("removed the token of {}\n", visible::line(&arguments.name)));
            Ok(Exit::Ok)
        }
    }
}

fn add(arguments: &TokenAddArguments) -> CommandResult {
    let token = token_file::add(&arguments.name, arguments.rights.iter().copied().collect())?;
    terminal::print(format_args!("{token}\n"));
    let rights: Vec<String> = arguments.rights.iter().map(|right| right.about().to_owned()).collect();
    terminal::say(format_args!("this token is not shown again. Its bearer may: {}\n", rights.join("; ")));
    Ok(Exit::Ok)
}

fn list(arguments: &TokenListArguments) -> CommandResult {
    let tokens: Vec<ListedToken> = token_file::own()?
        .into_iter()
        .map(|token| ListedToken { name: token.name, rights: token.rights.iter().map(Right::as_str).collect() })
        .collect();
    if arguments.json {
        terminal::print_json(&TokensFile { schema_version: 1, tokens })?;
        return Ok(Exit::Ok);
    }
    let width = tokens.iter().map(|token| token.name.chars().count()).max().unwrap_or_default();
    let mut rows = Rows::new(width);
    tokens.iter().for_each(|token| rows.row(visible::line(&token.name), token.rights.join(", ")));
    terminal::print(rows.finish());
    Ok(Exit::Ok)
}
