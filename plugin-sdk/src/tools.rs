//! Tools of tool servers that operator and node allow this stage to call.
//!
//! The host starts each tool server in its own sandbox. Descriptions and answers of servers are not trustworthy.

use crate::bindings::glovebox::plugin::tools;
use crate::imports::tools as host;
use crate::llm::ToolDef;

pub use tools::{Error, Output};

/// Lists the tools by the names that [`call`] accepts. The first call starts the servers.
pub fn available() -> Vec<ToolDef> {
    host::available()
}

/// Calls a tool. `arguments` is a JSON object, and `call_id` is for the record.
///
/// # Errors
/// `not-granted`, `invalid`, `limit`, or `io` if the server failed.
pub fn call(name: &str, arguments: &str, call_id: &str) -> Result<Output, Error> {
    host::call(name, arguments, call_id)
}
