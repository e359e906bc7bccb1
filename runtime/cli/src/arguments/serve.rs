//! The arguments of `serve`, `mcp`, `export`, `tokens` and `tasks`.

use super::{LATEST, LabelArguments, RunsArguments};
use crate::runs::RunSelector;
use clap::{Args, Subcommand};
use glovebox_serve::right::Right;
use std::net::SocketAddr;
use std::path::PathBuf;

/// `glovebox serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Address and port; another address than that of this machine needs `--tls-cert`, `--tls-key` and `--tokens`. Port
    /// 0 is a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Listen on this socket file instead, which only this user can open
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "tls_cert", "tls_key"])]
    pub socket: Option<PathBuf>,
    /// Certificate chain in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// File with the accepted tokens, which only this user can read; default: those of `glovebox tokens`
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// Other names of this server, as clients write them after `https://`
    #[arg(long, value_name = "HOST")]
    pub name: Vec<String>,
    /// Send each run that ends to this collector of telemetry, such as `http://localhost:4318`
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    #[command(flatten)]
    pub headers: HeaderArguments,
    #[command(flatten)]
    pub labels: LabelArguments,
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print the address and the link as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox mcp`.
#[derive(Debug, Args)]
pub struct McpArguments {
    /// What the agent may do besides reading and starting runs: `operate` or `apply`; repeatable
    #[arg(long = "right", value_name = "RIGHT", value_parser = right_of_agent)]
    pub rights: Vec<Right>,
    #[command(flatten)]
    pub labels: LabelArguments,
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    #[command(flatten)]
    pub runs: RunsArguments,
}

/// Parses a right that an agent can get. It never sees more than builders do, and starts no plan that it has not seen.
fn right_of_agent(text: &str) -> Result<Right, String> {
    match text.parse() {
        Ok(right @ (Right::Operate | Right::Apply)) => Ok(right),
        _ => Err("an agent can get the rights `operate` and `apply`".to_owned()),
    }
}

/// `glovebox export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The run
    #[arg(default_value = LATEST)]
    pub run: RunSelector,
    /// Where to: a file for OTLP JSON, or the address of a collector, such as `http://localhost:4318`
    #[arg(long, value_name = "FILE|URL")]
    pub otlp: String,
    #[command(flatten)]
    pub headers: HeaderArguments,
    #[command(flatten)]
    pub runs: RunsArguments,
}

/// Headers of requests to a collector of telemetry.
#[derive(Debug, Args)]
pub struct HeaderArguments {
    /// Header of requests to the collector, with the file that contains its value; repeatable. The variable
    /// OTEL_EXPORTER_OTLP_HEADERS has headers too
    #[arg(long, value_name = "NAME=FILE", value_parser = header_file)]
    pub otlp_header: Vec<(String, PathBuf)>,
}

fn header_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err("expected NAME=FILE".to_owned()),
    }
}

/// `glovebox tokens`.
#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    /// Make a token for a client, and print it once
    Add(TokenAddArguments),
    /// List the names and rights of tokens
    Ls(TokenListArguments),
    /// Remove a token
    Remove(TokenRemoveArguments),
}

/// `glovebox tokens add`.
#[derive(Debug, Args)]
pub struct TokenAddArguments {
    /// Name of the client; records name it as the person who acted
    pub name: String,
    /// What the client may do: `builder`, `view`, `withheld`, `start`, `start-unseen`, `operate` or `apply`; repeatable
    #[arg(long = "right", value_name = "RIGHT", required = true)]
    pub rights: Vec<Right>,
}

/// `glovebox tokens ls`.
#[derive(Debug, Args)]
pub struct TokenListArguments {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox tokens remove`.
#[derive(Debug, Args)]
pub struct TokenRemoveArguments {
    /// Name of the client
    pub name: String,
}

/// `glovebox tasks`.
#[derive(Debug, Args)]
pub struct TasksArguments {
    /// The run
    #[arg(default_value = LATEST)]
    pub run: RunSelector,
    /// List only tasks in this state: queued, running, done, failed or blocked; repeatable
    #[arg(long, value_name = "STATE", value_parser = ["queued", "running", "done", "failed", "blocked"])]
    pub state: Vec<String>,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
