//! The command line: every command, flag and word of help, as one tree.
//!
//! A table without control flow. What a command does is in `commands/<command>.rs`; exit codes are in [`crate::exit`].

use clap::{Args, Parser, Subcommand, ValueEnum};
use glovebox_sandbox::jail::Tier;
use std::path::PathBuf;
use std::time::Duration;

/// Where runs are kept unless `--runs-dir` says otherwise.
pub const RUNS_DIR: &str = ".glovebox/runs";

/// Runs software-factory pipelines whose stages are untrusted WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "glovebox", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "RUN is a run's id, a unique prefix of it, or `latest`.\nExit codes: docs/exit-codes.md")]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a pipeline in a private copy of the project
    Run(RunArguments),
    /// Check pipelines and point at what is wrong
    Check(CheckArguments),
    /// Write pipelines in the one way
    Fmt(FmtArguments),
    /// Explain a rule of `check`, or list all
    Explain(ExplainArguments),
    /// Draw a pipeline, or a run over its pipeline
    Graph(GraphArguments),
    /// Print what a pipeline could read, write, execute and spend; runs nothing
    Plan(PlanArguments),
    /// Go on with a run that was interrupted
    Resume(ResumeArguments),
    /// List runs, newest first
    Ls(ListArguments),
    /// Show a run, or one node of it
    Show(ShowArguments),
    /// Bring a run's changes into the project; refuses on conflict
    Apply(ApplyArguments),
    /// Show what a run changed
    Diff(DiffArguments),
    /// Look into plugins and lock them
    Plugin {
        /// What to do with plugins.
        #[command(subcommand)]
        command: PluginCommand,
    },
    /// Look at what a run was judged by: the hold-outs and the commitment to them
    Holdout {
        /// What to do with hold-outs.
        #[command(subcommand)]
        command: HoldoutCommand,
    },
    /// Say what this machine can enforce; on request prove it by attack
    Doctor(DoctorArguments),
    /// Print the version of glovebox and of its built-in components
    Version(VersionArguments),
    /// Compile a component for another process of glovebox
    #[command(hide = true)]
    CompileComponent(CompileArguments),
}

/// `glovebox compile-component`, which the host of a run starts.
#[derive(Debug, Args)]
pub struct CompileArguments {
    /// What it may take and who asks
    pub bounds: String,
}

/// `glovebox run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The pipeline, a DOT file
    pub file: PathBuf,
    #[command(flatten)]
    pub project: ProjectArguments,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Name of the run: letters, digits, `-` and `_`; default is a new id
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
    #[command(flatten)]
    pub execution: ExecutionArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// The project a pipeline is about.
#[derive(Debug, Args)]
pub struct ProjectArguments {
    /// The project; a run works on a private copy and never writes here
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Give an input of the pipeline, as KEY=VALUE
    #[arg(long = "set", value_name = "K=V", value_parser = key_value)]
    pub inputs: Vec<(String, String)>,
}

/// How stages are executed.
#[derive(Debug, Args)]
pub struct ExecutionArguments {
    /// Answer model calls from this script (TOML) instead of a model
    #[arg(long, value_name = "F")]
    pub script: Option<PathBuf>,
    /// Most visits of nodes, start and retries included; the lower of this and the pipeline's
    /// `max_steps` holds, 200 when neither says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// Longest wall time of the run, such as `90s` or `2h`; the lower of this and the pipeline's
    /// `max_wall_time` holds
    #[arg(long, value_name = "T", value_parser = wall_time)]
    pub max_wall_time: Option<Duration>,
    /// Let stages run host programs without a sandbox
    #[arg(long)]
    pub dangerously_no_sandbox: bool,
}

/// Where runs are kept.
#[derive(Debug, Args)]
pub struct RunsArguments {
    /// Where runs are kept
    #[arg(long, value_name = "D", default_value = RUNS_DIR)]
    pub runs_dir: PathBuf,
}

/// What a run prints.
#[derive(Debug, Args)]
pub struct OutputArguments {
    /// Print the journal's records as they are written, one JSON document per line
    #[arg(long)]
    pub json: bool,
    /// Print no progress, only the closing summary
    #[arg(long, short)]
    pub quiet: bool,
}

/// `glovebox check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Pipelines to check; `-` is standard input
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// How to print what was found
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    pub format: CheckFormat,
    /// Make the edits that are certain, and show what is left
    #[arg(long)]
    pub fix: bool,
    /// End with exit 3 for warnings too
    #[arg(long)]
    pub strict: bool,
    /// Give an input of the pipeline, as KEY=VALUE
    #[arg(long = "set", value_name = "K=V", value_parser = key_value)]
    pub inputs: Vec<(String, String)>,
}

/// How diagnostics are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// Marked source, on stderr
    Text,
    /// One array, on stdout
    Json,
    /// SARIF 2.1.0, on stdout
    Sarif,
    /// GitHub workflow commands, on stdout
    Github,
}

/// `glovebox fmt`.
#[derive(Debug, Args)]
pub struct FmtArguments {
    /// Pipelines to format; `-` is standard input, written to standard output
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Change nothing, and end with exit 3 when something is not formatted
    #[arg(long)]
    pub check: bool,
}

/// `glovebox explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// The rule, as it stands in brackets after `error` or `warning`; without it all are listed
    pub rule: Option<String>,
}

/// `glovebox graph`.
#[derive(Debug, Args)]
pub struct GraphArguments {
    /// The pipeline, a DOT file, or a run
    #[arg(value_name = "FILE|RUN")]
    pub target: String,
    /// What to draw with
    #[arg(long, value_enum)]
    pub format: GraphFormat,
    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "F")]
    pub output: Option<PathBuf>,
    /// Give an input of the pipeline, as KEY=VALUE
    #[arg(long = "set", value_name = "K=V", value_parser = key_value)]
    pub inputs: Vec<(String, String)>,
    #[command(flatten)]
    pub runs: RunsArguments,
}

/// What a graph is drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// A picture for browsers, light and dark
    Svg,
    /// Refused with a command that converts an SVG
    #[value(hide = true)]
    Png,
    /// Text in ASCII characters
    Ascii,
    /// Text with box drawing characters
    Unicode,
    /// Canonical DOT
    Dot,
    /// Nodes, edges and their places, one document
    Json,
}

/// `glovebox plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// The pipeline, a DOT file
    pub file: PathBuf,
    #[command(flatten)]
    pub project: ProjectArguments,
    #[command(flatten)]
    pub execution: ExecutionArguments,
    /// Compare with the plan of another pipeline, or of a run: its pipeline with the configuration as it is now
    #[arg(long, value_name = "FILE|RUN")]
    pub against: Option<String>,
    /// End with exit 6 when the plan has what RULE names, such as `run=cargo publish`, `write=.github/`, `reach=*`, `read=secrets/`,
    /// `plugin=*`, `model`, `network-full`, or `widened` for all that is new beside `--against`; may be given again
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox resume`.
#[derive(Debug, Args)]
pub struct ResumeArguments {
    /// The run to go on with
    pub run: String,
    /// Let stages run host programs without a sandbox; must be given again for a run that was started so
    #[arg(long)]
    pub dangerously_no_sandbox: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    #[command(flatten)]
    pub output: OutputArguments,
}

/// `glovebox ls`.
#[derive(Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The run
    pub run: String,
    /// Show this node's attempts
    pub node: Option<String>,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox apply`.
#[derive(Debug, Args)]
pub struct ApplyArguments {
    /// The run
    pub run: String,
    /// The project that gets the changes; default is where the run was started for, if that is here or below
    #[arg(long, value_name = "D")]
    pub workdir: Option<PathBuf>,
    /// Apply a run that you did not start on this machine; look at it with `glovebox diff` first
    #[arg(long, requires = "workdir")]
    pub foreign: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox diff`.
#[derive(Debug, Args)]
pub struct DiffArguments {
    /// The run
    pub run: String,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox plugin`.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Read a component's imports, exports, world, wants and digest; runs nothing
    Inspect(InspectArguments),
    /// Print what each plugin imports, wants and is granted, and write glovebox.lock
    Lock(LockArguments),
}

/// `glovebox plugin inspect`.
#[derive(Debug, Args)]
pub struct InspectArguments {
    /// The component
    pub file: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox plugin lock`.
#[derive(Debug, Args)]
pub struct LockArguments {
    /// A pipeline: the glovebox.toml beside or above it is locked
    pub file: Option<PathBuf>,
    /// The project whose glovebox.toml is locked
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox holdout`.
#[derive(Debug, Subcommand)]
pub enum HoldoutCommand {
    /// Print what is sealed, which stages could read it, and what leaked
    Status(HoldoutArguments),
    /// Open the commitment: compare the sealed copy and the project with the journal
    Verify(HoldoutArguments),
}

/// `glovebox holdout status` and `verify`.
#[derive(Debug, Args)]
pub struct HoldoutArguments {
    /// The run
    pub run: String,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox version`.
#[derive(Debug, Args)]
pub struct VersionArguments {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// The project whose glovebox.toml says what is required
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Let a hostile program and a hostile component try every wall
    #[arg(long)]
    pub attack: bool,
    /// Attack this tier instead of the best one: full, bwrap or landlock
    #[arg(long, value_name = "T", requires = "attack", value_parser = tier)]
    pub tier: Option<Tier>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

fn tier(text: &str) -> Result<Tier, String> {
    let found = Tier::parse(text).filter(|tier| Tier::CONFINING.contains(tier));
    found.ok_or_else(|| "expected `full`, `bwrap` or `landlock`".to_owned())
}

fn wall_time(text: &str) -> Result<Duration, String> {
    let found = glovebox_pipeline::lower::duration(text).filter(|duration| !duration.is_zero());
    found.ok_or_else(|| "expected a duration such as `90s`, `15m` or `2h`".to_owned())
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_tree_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_input_may_contain_equal_signs() {
        assert_eq!(key_value("goal=a=b"), Ok(("goal".to_owned(), "a=b".to_owned())));
        assert!(key_value("=b").is_err() && key_value("goal").is_err());
    }
}
