//! The arguments of commands that show what a run did.

use super::fork::visit_name;
use super::{LATEST, ReportArguments, RunsArguments};
use crate::runs::RunSelector;
use clap::{Args, ColorChoice};
use glovebox_journal::event::{Digest, NodeId};
use std::path::PathBuf;

/// Display options of every command.
#[derive(Debug, Args)]
pub struct DisplayArguments {
    /// Use colours; `auto` means on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto, value_enum)]
    pub color: ColorChoice,
    /// Never start a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
}

/// `glovebox show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The run
    pub run: RunSelector,
    /// Show this node's attempts
    pub node: Option<NodeId>,
    /// List every limit of the node's attempts with its use, also those of which less than 80 % was used
    #[arg(long, requires = "node")]
    pub limits: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::FleetArguments,
    #[command(flatten)]
    pub reports: ReportArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox why`.
#[derive(Debug, Args)]
pub struct WhyArguments {
    /// The run
    #[arg(default_value = LATEST)]
    pub run: RunSelector,
    /// Explain only this node
    pub node: Option<NodeId>,
    #[command(flatten)]
    pub runs: RunsArguments,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::FleetArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox logs`.
#[derive(Debug, Args)]
pub struct LogsArguments {
    /// The run
    pub run: RunSelector,
    /// The node; default: every node
    pub node: Option<NodeId>,
    /// Print only the output of this visit; default: of every visit
    #[arg(long, value_name = "N", requires = "node", value_parser = clap::value_parser!(u32).range(1..))]
    pub visit: Option<u32>,
    /// Print only standard output
    #[arg(long, conflicts_with = "stderr")]
    pub stdout: bool,
    /// Print only standard error
    #[arg(long)]
    pub stderr: bool,
    /// Print output while commands run, until the run ends. The output of a stage with hold-outs comes when it has ended
    #[arg(long, short)]
    pub follow: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::FleetArguments,
    /// Print one JSON document for each output, in one line
    #[arg(long)]
    pub json: bool,
}

/// `glovebox transcript`.
#[derive(Debug, Args)]
pub struct TranscriptArguments {
    /// The run
    pub run: RunSelector,
    /// The agent stage: all of its visits, or visit V
    #[arg(value_name = "NODE[@V]", value_parser = visit_name)]
    pub at: (NodeId, Option<u32>),
    /// Print everything: the system prompt, whole results, what earlier stages of the thread said
    #[arg(long)]
    pub full: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document for each turn, in one line
    #[arg(long)]
    pub json: bool,
}

/// `glovebox diff`.
#[derive(Debug, Args)]
pub struct DiffArguments {
    /// The run
    #[arg(default_value = LATEST)]
    pub run: RunSelector,
    /// Show only these files and folders, relative to the project
    #[arg(last = true, value_name = "PATH")]
    pub paths: Vec<String>,
    /// Show the number of changed lines of each file instead of the patch
    #[arg(long, conflicts_with = "json")]
    pub stat: bool,
    /// Show only what a human gate asks about: the changes since the last question that a person answered
    #[arg(long, value_name = "QUESTION")]
    pub question: Option<String>,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox verify`.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// The run
    pub run: RunSelector,
    /// The hash of a record that the journal must have: `journal.hash` of `glovebox show --json`
    #[arg(long, value_name = "HASH")]
    pub head: Option<Digest>,
    #[command(flatten)]
    pub runs: RunsArguments,
}

/// `glovebox evidence`.
#[derive(Debug, Args)]
pub struct EvidenceArguments {
    /// The run
    #[arg(default_value = LATEST)]
    pub run: RunSelector,
    /// List only the commands of this node
    pub node: Option<NodeId>,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox attest`.
#[derive(Debug, Args)]
pub struct AttestArguments {
    /// The run
    pub run: RunSelector,
    /// Your private key: Ed25519, PEM, readable only by you
    #[arg(long, value_name = "KEY")]
    pub key: PathBuf,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub runs: RunsArguments,
}

/// `glovebox verify-run`.
#[derive(Debug, Args)]
pub struct VerifyRunArguments {
    /// The attestation
    pub file: PathBuf,
    /// The public key of the attestation's author: Ed25519, PEM
    #[arg(long, value_name = "KEY.PUB")]
    pub key: PathBuf,
    /// A folder that must have every file as the run left it, such as a checkout
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
    /// Do not compare the run's folder
    #[arg(long)]
    pub signature_only: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
}
