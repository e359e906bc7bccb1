//! The command line: every command, flag and help text, as one tree.
//!
//! This file is a table without control flow. What a command does is in `commands/<command>.rs`; exit codes are in
//! [`crate::exit`].

mod again;
mod answer_sources;
mod authoring;
mod checking;
mod command;
mod control;
mod deferred;
#[cfg(feature = "fleet")]
mod fleet;
mod fork;
mod groups;
mod help;
mod keeping;
mod labels;
mod machine;
mod models;
mod parallel;
mod plugin;
mod reading;
mod reports;
mod serve;
mod signing;
mod spend;
mod stall;
mod trust;
#[cfg(feature = "fleet")]
mod work;

pub use again::AgainArguments;
pub use answer_sources::{AnswerArguments, GatesArguments, PeopleArguments};
pub use authoring::{
    BuildPluginArguments, DevPluginArguments, EmbedArguments, NewPluginArguments, RebuildArguments, WitArguments,
};
pub use checking::{
    CheckArguments, CheckFor, CheckFormat, ExplainArguments, FmtArguments, GraphArguments, GraphFormat,
};
pub use command::CommandArguments;
pub use control::*;
pub use deferred::Deferred;
#[cfg(feature = "fleet")]
pub use fleet::{
    FleetAdmitArguments, FleetArguments, FleetCommand, FleetExpelArguments, FleetInitArguments, FleetKeyArguments,
    FleetListArguments, FleetPermissionsArguments,
};
pub use fork::ForkArguments;
pub use groups::tree;
pub use help::{CompletionsArguments, HelpArguments, ManArguments};
pub use keeping::{CollectArguments, ListArguments, RemoveArguments};
pub use labels::LabelArguments;
pub use machine::{CompileArguments, DoctorArguments, SchemaArguments, VersionArguments};
pub use models::{FakeArguments, ModelsCommand, ModelsListArguments, ModelsTestArguments};
pub use parallel::ParallelArguments;
pub use plugin::{
    AddArguments, InspectArguments, ListPluginsArguments, LockArguments, OutdatedArguments, PluginCommand,
    PullArguments, PushArguments, RehearseArguments, RemovePluginArguments, SearchArguments, TestArguments,
    UpdateArguments,
};
pub use reading::*;
pub use reports::*;
pub use serve::{
    ExportArguments, McpArguments, ServeArguments, TasksArguments, TokenAddArguments, TokenListArguments, TokensCommand,
};
pub use signing::{KeygenArguments, RevocationsArguments, RevokeArguments, SignArguments, VerifyPluginArguments};
pub use spend::SpendArguments;
pub use stall::StallArguments;
pub use trust::{TrustCommand, TrustGiveArguments, TrustListArguments, TrustRemoveArguments};
#[cfg(feature = "fleet")]
pub use work::{PullRunArguments, WorkArguments};

use crate::runs::{RUNS_DIR, RunSelector};
use crate::setup::starter::Template;
use clap::{Args, Parser, Subcommand};
use glovebox_journal::event::NodeId;
use glovebox_record::{Digest, Tier};
use std::path::PathBuf;
use std::time::Duration;

/// The newest run: the default of commands whose `RUN` argument is optional.
const LATEST: &str = "latest";

/// The text below the list of commands. A test compares the codes with [`crate::exit`].
pub const AFTER_HELP: &str = "\
RUN is a run's id, its unique beginning or end, or `latest`.

Exit codes: 0 ok, 1 run-failed, 2 usage, 3 invalid, 4 unverified, 5 budget, 6 policy, 7 plugin,
            8 provider, 9 transient, 10 paused, 11 mismatch, 70 internal, 130 interrupted,
            143 terminated
More: glovebox help exit-codes, glovebox help environment";

/// Runs software-factory pipelines whose stages are untrusted WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "glovebox", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = AFTER_HELP, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(flatten)]
    pub display: DisplayArguments,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a pipeline and settings that fit the project
    Init(Deferred<InitArguments>),
    /// Run a pipeline in a private copy of the project
    Run(Deferred<RunArguments>),
    /// Show problems in pipelines, with fixes
    Check(Deferred<CheckArguments>),
    /// Format pipeline files
    Fmt(Deferred<FmtArguments>),
    /// Explain a rule of `check` or a plugin's attributes, or list all
    Explain(Deferred<ExplainArguments>),
    /// Draw a pipeline or a run
    Graph(Deferred<GraphArguments>),
    /// Show what stages could read, write, run and reach; runs nothing
    Plan(Deferred<PlanArguments>),
    /// Continue a run that was stopped, or that failed
    Resume(Deferred<ResumeArguments>),
    /// Begin a new run from a stage of another one
    Fork(Deferred<ForkArguments>),
    /// Cancel a run for good
    Cancel(Deferred<ControlArguments>),
    /// Pause a run when its current stages end; `resume` continues it
    Pause(Deferred<ControlArguments>),
    /// Send a message to an agent at work
    Steer(Deferred<SteerArguments>),
    /// Wait for the end of a run, and end with its exit code
    Wait(Deferred<WaitArguments>),
    /// Show what a run does until it ends
    Attach(Deferred<AttachArguments>),
    /// List runs, newest first
    Ls(Deferred<ListArguments>),
    /// Remove runs
    Rm(Deferred<RemoveArguments>),
    /// Remove old runs, and what killed processes left behind
    Gc(Deferred<CollectArguments>),
    /// Answer a question of a human gate
    Answer(Deferred<AnswerArguments>),
    /// List the questions that wait for an answer
    Gates(Deferred<GatesArguments>),
    /// Show a run, or one node of it
    Show(Deferred<ShowArguments>),
    /// Explain why a run went where it went, edge by edge
    Why(Deferred<WhyArguments>),
    /// Verify that no record of a run was changed or lost
    Verify(Deferred<VerifyArguments>),
    /// List every command of a run with its receipt and what it proves
    Evidence(Deferred<EvidenceArguments>),
    /// Sign what a run proved, for people who do not have the run
    Attest(Deferred<AttestArguments>),
    /// Check a signed attestation, and the run that it is about
    VerifyRun(Deferred<VerifyRunArguments>),
    /// List each visit of a stage, and what it waits for
    Tasks(Deferred<TasksArguments>),
    /// Print the whole output of a node's commands
    Logs(Deferred<LogsArguments>),
    /// Print what an agent stage and its model said, turn by turn
    Transcript(Deferred<TranscriptArguments>),
    /// Write a run's changes to the project, or nothing on a conflict
    Apply(Deferred<ApplyArguments>),
    /// Show what a run changed, as a patch in git's format
    Diff(Deferred<DiffArguments>),
    /// Write, publish, add, lock and trust plugins
    Plugin {
        /// What to do with plugins.
        #[command(subcommand)]
        command: PluginCommand,
    },
    /// List the models of glovebox.toml, and ask them a test question
    Models {
        /// What to do with models.
        #[command(subcommand)]
        command: ModelsCommand,
    },
    /// Confirm what a project may send out, such as your keys
    Trust {
        /// What to do with confirmations.
        #[command(subcommand)]
        command: TrustCommand,
    },
    /// Show and steer runs over HTTP
    Serve(Deferred<ServeArguments>),
    /// Show runs to a coding agent, over MCP on stdin and stdout
    Mcp(Deferred<McpArguments>),
    /// Export a run as OpenTelemetry traces and metrics
    Export(Deferred<ExportArguments>),
    /// Make a fleet of machines that run pipelines together
    #[cfg(feature = "fleet")]
    Fleet {
        /// What to do with a fleet.
        #[command(subcommand)]
        command: FleetCommand,
    },
    /// Make stages of a fleet's runs on this machine, and drive runs
    #[cfg(feature = "fleet")]
    Work(Deferred<WorkArguments>),
    /// Make an ordinary run directory of a fleet's run
    #[cfg(feature = "fleet")]
    Pull(Deferred<PullRunArguments>),
    /// Make, list and remove tokens of clients of `serve`
    Tokens {
        /// What to do with tokens.
        #[command(subcommand)]
        command: TokensCommand,
    },
    /// Answer model calls from a file, for tests
    FakeLlm(Deferred<FakeArguments>),
    /// Show and verify the hold-outs of a run
    Holdout {
        /// What to do with hold-outs.
        #[command(subcommand)]
        command: HoldoutCommand,
    },
    /// Check sandbox support; `--attack` and `--ordinary` test it
    Doctor(Deferred<DoctorArguments>),
    /// Print the JSON Schema of a document, or list all
    Schema(Deferred<SchemaArguments>),
    /// Print the version of glovebox and of its built-in components
    Version(Deferred<VersionArguments>),
    /// Explain a command or a topic
    Help(Deferred<HelpArguments>),
    /// Print a script that completes commands and flags in a shell
    Completions(Deferred<CompletionsArguments>),
    /// Write man pages
    Man(Deferred<ManArguments>),
    /// Compile a component for another process of glovebox
    #[command(hide = true)]
    CompileComponent(Deferred<CompileArguments>),
}

/// `glovebox init`.
#[derive(Debug, Args)]
pub struct InitArguments {
    /// The shape of the pipeline
    #[arg(value_enum, default_value_t = Template::Default)]
    pub template: Template,
    /// The project folder; both files are written there
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// List the templates
    #[arg(long)]
    pub list: bool,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub print: bool,
    /// Then run the commands in the sandbox, and write the settings that make them succeed. Files that exist are kept
    #[arg(long = "try", conflicts_with_all = ["list", "print"])]
    pub tries: bool,
}

/// `glovebox run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The pipeline, a DOT file; default: `pipeline.dot` of the project, else its only DOT file
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub project: ProjectArguments,
    /// Exit with 11 if glovebox.lock differs from the plugins of the project in any way
    #[arg(long)]
    pub locked: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Begin at this node instead of the start node. Goal gates before it stay unmet unless a loop reaches them
    #[arg(long, value_name = "NODE")]
    pub from: Option<NodeId>,
    /// Id of the run: letters, digits, `-` and `_`; default: a new id
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
    /// Start only if the plan has this digest, as `glovebox plan --json` prints it
    #[arg(long, value_name = "DIGEST")]
    pub plan: Option<Digest>,
    /// Leave the session of the parent process, which may end before the run
    #[arg(long, hide = true)]
    pub own_session: bool,
    #[command(flatten)]
    pub execution: ExecutionArguments,
    /// Give model stages a simulated answer, which always succeeds; no model is asked
    #[arg(long, conflicts_with = "script")]
    pub simulate: bool,
    /// Run commands in this tier of the sandbox instead of the best one: full, bwrap or landlock. It must not be lower
    /// than `require` under `[sandbox]` in glovebox.toml
    #[arg(long, value_name = "T", value_parser = machine::tier, conflicts_with = "dangerously_no_sandbox")]
    pub tier: Option<Tier>,
    #[command(flatten)]
    pub people: PeopleArguments,
    #[command(flatten)]
    pub output: OutputArguments,
    #[command(flatten)]
    pub reports: ReportArguments,
    #[command(flatten)]
    pub again: AgainArguments,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: FleetArguments,
    /// Return when the run has begun in the fleet, and print its id
    #[cfg(feature = "fleet")]
    #[arg(long, requires = "nats")]
    pub detach: bool,
    /// Stop the run and exit with 6 if no machine of the fleet makes one of its stages for some seconds
    #[cfg(feature = "fleet")]
    #[arg(long, requires = "nats", conflicts_with = "detach")]
    pub no_wait: bool,
    #[command(flatten)]
    pub command: CommandArguments,
}

/// The project of a pipeline.
#[derive(Debug, Args)]
pub struct ProjectArguments {
    /// The project folder; a run works on a private copy and never writes here
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Set an input of the pipeline, as KEY=VALUE
    #[arg(long = "set", value_name = "K=V", value_parser = key_value)]
    pub inputs: Vec<(String, String)>,
}

/// How stages are executed.
#[derive(Debug, Args)]
pub struct ExecutionArguments {
    /// Answer model calls from this script (TOML) instead of a model
    #[arg(long, value_name = "F")]
    pub script: Option<PathBuf>,
    /// Maximum number of steps: visits of nodes, with start and retries. The smaller of this and the
    /// pipeline's `max_steps` wins; default 200
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// Maximum wall time of the run, such as `90s` or `2h`. The smaller of this and the pipeline's
    /// `max_wall_time` wins
    #[arg(long, value_name = "T", value_parser = wall_time)]
    pub max_wall_time: Option<Duration>,
    #[command(flatten)]
    pub parallel: ParallelArguments,
    #[command(flatten)]
    pub stall: StallArguments,
    #[command(flatten)]
    pub spend: SpendArguments,
    #[command(flatten)]
    pub labels: LabelArguments,
    /// Run the commands of stages without a sandbox
    #[arg(long)]
    pub dangerously_no_sandbox: bool,
}

/// Where runs are kept.
#[derive(Debug, Args)]
pub struct RunsArguments {
    /// Folder of the runs
    #[arg(long, value_name = "D", default_value = RUNS_DIR)]
    pub runs_dir: PathBuf,
}

/// `glovebox plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// The pipeline, a DOT file; default: `pipeline.dot` of the project, else its only DOT file
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub project: ProjectArguments,
    /// Exit with 11 if glovebox.lock differs from the plugins of the project in any way
    #[arg(long)]
    pub locked: bool,
    #[command(flatten)]
    pub execution: ExecutionArguments,
    /// Compare with the plan of another pipeline, or of a run: its pipeline with the current configuration
    #[arg(long, value_name = "FILE|RUN")]
    pub against: Option<String>,
    /// Show what the plan of this run allowed, as its record has it, and bind nothing
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "workdir", "inputs", "locked", "script", "max_steps",
        "max_wall_time", "max_parallel", "max_tokens", "max_budget_usd", "stall_timeout_ms", "stall_check_interval_ms",
        "labels", "dangerously_no_sandbox", "against", "deny"])]
    pub run: Option<RunSelector>,
    /// Exit with 6 if the plan has what RULE names: `run=cargo publish`, `write=.github/`, `read=secrets/`, `reach=*`,
    /// `plugin=*`, `model`, `network-full`, or `widened` for all that `--against` shows as new. Repeatable
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
    /// The run to resume. A failed run continues at the node that failed
    pub run: RunSelector,
    /// Begin again at this node, with everything as it is now, or with @V as it was before visit V
    #[arg(long, value_name = "NODE[@V]", value_parser = fork::visit_name)]
    pub from: Option<(NodeId, Option<u32>)>,
    /// Continue with the current glovebox.toml and plugins, and show what that changes
    #[arg(long)]
    pub replan: bool,
    /// With `--replan`: accept a plan that allows more, without a question
    #[arg(long, requires = "replan")]
    pub yes: bool,
    /// Leave the session of the parent process, which may end before the run
    #[arg(long, hide = true)]
    pub own_session: bool,
    /// Continue with this model script; its turns count from the start of the run
    #[arg(long, value_name = "F")]
    pub script: Option<PathBuf>,
    /// Repeat the model calls of an attempt that was cut off; without it, recorded answers are used
    #[arg(long)]
    pub live: bool,
    /// New maximum number of steps of the run, including those that it has made
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// New maximum wall time of the run, such as `30m`, including the time that it has used
    #[arg(long, value_name = "T", value_parser = wall_time)]
    pub max_wall_time: Option<Duration>,
    #[command(flatten)]
    pub parallel: ParallelArguments,
    #[command(flatten)]
    pub stall: StallArguments,
    #[command(flatten)]
    pub spend: SpendArguments,
    #[command(flatten)]
    pub labels: LabelArguments,
    /// Run the commands of stages without a sandbox; required again if the run was started with it
    #[arg(long)]
    pub dangerously_no_sandbox: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: FleetArguments,
    #[command(flatten)]
    pub people: PeopleArguments,
    #[command(flatten)]
    pub output: OutputArguments,
    #[command(flatten)]
    pub reports: ReportArguments,
}

/// `glovebox apply`.
#[derive(Debug, Args)]
pub struct ApplyArguments {
    /// The run
    #[arg(default_value = LATEST)]
    pub run: RunSelector,
    /// Apply only these files and folders, relative to the project
    #[arg(last = true, value_name = "PATH")]
    pub paths: Vec<String>,
    /// The project that gets the changes; default: the project of the run, if it is the current folder or below
    #[arg(long, value_name = "D")]
    pub workdir: Option<PathBuf>,
    /// Create a git branch with one commit for each stage that changed files; the project's files and index stay as
    /// they are
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Apply a run that you did not start on this machine; read `glovebox diff RUN` first
    #[arg(long, requires = "workdir")]
    pub foreign: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox holdout`.
#[derive(Debug, Subcommand)]
pub enum HoldoutCommand {
    /// Show what is sealed, which stages could read it, and what leaked
    Status(HoldoutArguments),
    /// Compare the sealed copy with the journal and with the project
    Verify(HoldoutArguments),
}

/// `glovebox holdout status` and `verify`.
#[derive(Debug, Args)]
pub struct HoldoutArguments {
    /// The run
    pub run: RunSelector,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
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
