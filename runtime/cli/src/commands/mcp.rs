//! `glovebox mcp`: runs for a coding agent, over the Model Context Protocol on standard input and output.
//!
//! Only messages of the protocol are written to standard output.

use crate::arguments::McpArguments;
use crate::commands::desk::OwnDesk;
use crate::exit::{CommandResult, Exit, Stop};
use crate::terminal::Silence;
use glovebox_mcp::server::{self, Ended};
use std::sync::Arc;

/// Threads for calls that read files, and for those that wait for runs.
const BLOCKING_THREADS_MAX: usize = 24;

/// Answers the calls of one client until its standard input ends.
pub fn mcp(arguments: &McpArguments) -> CommandResult {
    let project = std::path::absolute(&arguments.workdir).map_err(|error| Stop::io("find the project", &error))?;
    let runs_dir = std::path::absolute(&arguments.runs.runs_dir).map_err(|error| Stop::io("find the runs", &error))?;
    if !project.is_dir() {
        return Err(Stop::new(Exit::Usage, format!("`{}` is not a folder", project.display())));
    }
    let desk = Arc::new(OwnDesk::new(project, runs_dir, arguments.labels.clone())?);
    let rights = arguments.rights.iter().copied().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .map_err(|error| Stop::io("start the server", &error))?;
    // Notes that commands print for a person would be mixed with the messages.
    let _silence = Silence::begin();
    let served = runtime.block_on(server::serve(desk, &rights, std::io::stdin(), std::io::stdout()));
    match served {
        Ok(()) => Ok(Exit::Ok),
        Err(Ended::NotBegun) => {
            let message = "the client ended before `initialize`, or sent another message first";
            Err(Stop::new(Exit::Usage, message).with_help("start `glovebox mcp` from an agent: see docs/serve-mcp.md"))
        }
        Err(Ended::Failed(error)) => Err(Stop::new(Exit::Internal, format!("answer the client: {error}"))),
    }
}
