//! The arguments of `check`, `fmt`, `explain` and `graph`.

use super::{RunsArguments, key_value};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `glovebox check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Pipelines to check; `-` reads standard input; default: `pipeline.dot` of this folder, else its only DOT file
    pub files: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    pub format: CheckFormat,
    /// Apply the safe fixes, and show the remaining problems
    #[arg(long)]
    pub fix: bool,
    /// Exit with 3 for warnings too
    #[arg(long)]
    pub strict: bool,
    /// What the pipelines are checked for
    #[arg(long = "for", value_enum, default_value_t = CheckFor::Run)]
    pub purpose: CheckFor,
    /// Exit with 11 if glovebox.lock differs from the plugins of the project in any way
    #[arg(long)]
    pub locked: bool,
    /// Set an input of the pipeline, as KEY=VALUE
    #[arg(long = "set", value_name = "K=V", value_parser = key_value)]
    pub inputs: Vec<(String, String)>,
}

/// What `check` looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFor {
    /// Everything that `run` would refuse, plugins and configuration included
    Run,
    /// Only the pipeline language; what this version does not execute is a warning
    Lint,
}

/// How diagnostics are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// Source lines with marks, on standard error
    Text,
    /// One JSON array, on standard output
    Json,
    /// SARIF 2.1.0, on standard output
    Sarif,
    /// GitHub workflow commands, on standard output
    Github,
}

/// `glovebox fmt`.
#[derive(Debug, Args)]
pub struct FmtArguments {
    /// Pipelines to format; `-` reads standard input and writes standard output
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Change nothing; exit with 3 if a file is not formatted
    #[arg(long)]
    pub check: bool,
}

/// `glovebox explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// A rule, as in the brackets after `error` or `warning`, a row of the summary, such as `with-caches`, or a plugin of the project;
    /// without it all rules and rows are listed
    #[arg(value_name = "RULE|ROW|PLUGIN")]
    pub name: Option<String>,
    /// An attribute that the plugin declares
    pub attribute: Option<String>,
    /// Print only the names that can be explained, or the attributes of the plugin, each with a tab and its meaning
    #[arg(long, conflicts_with = "attribute")]
    pub names: bool,
    /// The project whose plugins are explained
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

/// `glovebox graph`.
#[derive(Debug, Args)]
pub struct GraphArguments {
    /// The pipeline, a DOT file, or a run
    #[arg(value_name = "FILE|RUN")]
    pub target: String,
    /// Output format
    #[arg(long, value_enum)]
    pub format: GraphFormat,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "F")]
    pub output: Option<PathBuf>,
    /// Set an input of the pipeline, as KEY=VALUE
    #[arg(long = "set", value_name = "K=V", value_parser = key_value)]
    pub inputs: Vec<(String, String)>,
    #[command(flatten)]
    pub runs: RunsArguments,
}

/// Output format of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// A picture for browsers, light and dark
    Svg,
    /// Refused with a command that converts an SVG
    #[value(hide = true)]
    Png,
    /// Nodes and their edges, as a list
    Text,
    /// Canonical DOT
    Dot,
    /// Nodes, edges and their positions, as one JSON document
    Json,
}
