//! Tools of other programs that operator and node allow this stage to call.
//!
//! The host starts the programs, each in a sandbox of its own. Their descriptions and answers are texts that nobody has checked.

use crate::bindings::glovebox::plugin::tools;
use crate::imports::tools as host;
use crate::llm::ToolDef;

pub use tools::{Error, Output};

/// Lists the tools, under the names by which [`call`] knows them. The first call starts the programs.
pub fn available() -> Vec<ToolDef> {
    host::available()
}

/// Calls a tool. `arguments` is a JSON object, `call_id` is for the record.
///
/// # Errors
/// `not-granted`, `invalid`, `limit`, or `io` when the program failed.
pub fn call(name: &str, arguments: &str, call_id: &str) -> Result<Output, Error> {
    host::call(name, arguments, call_id)
}
