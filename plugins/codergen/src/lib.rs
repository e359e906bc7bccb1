//! The `codergen` handler (spec §4.5): an agent loop that asks the node's model and executes its tool calls, until an answer contains
//! only text.
//!
//! Reading order: `prompt` writes the prompts, `agent` is the loop, `conversation` keeps the messages within the context window,
//! `subagents` are further loops, `program` runs an agent program instead, `ending` converts the answer to an outcome, `questions`
//! asks again for a plan, `toolbox` has the tools, and `tool_calls` executes calls. Nothing here is a security boundary: the host
//! enforces scope, turns, commands and secrets, even if this code is wrong.
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
mod text_file;
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
