//! The arguments of commands with which people answer a run.

use super::RunsArguments;
use crate::runs::RunSelector;
use clap::Args;
use std::path::PathBuf;

/// Who answers the questions of human gates besides a person at the terminal.
#[derive(Debug, Args)]
pub struct PeopleArguments {
    /// Answer human gates from this file: one answer per line in order, or `node: answer`
    #[arg(long, value_name = "F")]
    pub answers: Option<PathBuf>,
    /// Approve every human gate without asking: yes, or the first choice. The record says so
    #[arg(long, conflicts_with = "answers")]
    pub auto_approve: bool,
    /// Ask nothing in the terminal: a question that is not answered in another way pauses the run
    #[arg(long)]
    pub no_input: bool,
}

/// `glovebox answer`.
#[derive(Debug, Args)]
pub struct AnswerArguments {
    /// The run
    pub run: RunSelector,
    /// The question, as `glovebox gates` lists it; the node alone if it asks one question
    pub question: String,
    /// The answer: the key, label or target of a choice, `yes` or `no`, or text
    pub value: String,
    /// Text besides the answer; the pipeline finds it as `human.gate.text`
    #[arg(long, value_name = "T")]
    pub text: Option<String>,
    /// Continue the run at once, in this process
    #[arg(long)]
    pub resume: bool,
    /// Who answers; default: the name of the user
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub runs: RunsArguments,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::FleetArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox gates`.
#[derive(Debug, Args)]
pub struct GatesArguments {
    /// The run; default: every run
    pub run: Option<RunSelector>,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
