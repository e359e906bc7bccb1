//! The `codergen` handler (spec §4.5): an agent loop that asks the node's model, runs the tools it calls, and goes on until
//! an answer is text only.
//!
//! Reading order: `prompt` is what is asked, `agent` the loop, `conversation` what it says and keeps short, `subagents` the loops that it
//! begins, `program` an agent program in its place, `ending` how the answer becomes an outcome, `questions` what is asked again for a plan,
//! `toolbox` the tools, `tool_calls` executes the calls. Nothing here is a security boundary: the host enforces scope, turns, commands and
//! secrets, even if this code is wrong.
#![forbid(unsafe_code)]

mod agent;
mod arguments;
mod artifact;
mod compaction;
mod conversation;
mod documents;
mod ending;
mod files;
mod numbering;
mod patch;
mod path;
mod picture;
mod planned;
mod program;
mod prompt;
mod provided;
mod questions;
mod search;
mod shell;
mod subagents;
mod thread;
mod tool_calls;
mod tool_result;
mod toolbox;
mod truncate;
mod values;

use glovebox_plugin_sdk::{Handler, Outcome, Stage, export};

struct Codergen;

impl Handler for Codergen {
    fn execute(stage: Stage) -> Outcome {
        match program::for_stage(&stage) {
            Some(program) => program::run(&stage, &program),
            None => agent::run(&stage),
        }
    }
}

export!(
    Codergen,
    manifest = concat!(
        r#"{"name":"codergen","version":""#,
        env!("CARGO_PKG_VERSION"),
        r#"","description":"Works on the workspace with a model and tools.","#,
        r#""wants":{"filesystem":"posix","read":["./"],"write":["./"],"commands":["*"],"model":true}}"#
    )
);
