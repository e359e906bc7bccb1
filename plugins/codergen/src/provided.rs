//! Tools of tool servers and of plugins. The host asks these for their tools.
//!
//! The names of these tools begin with `mcp__` or `plugin__`. A call of a tool with such a prefix that is not offered is passed to the
//! host nevertheless, which refuses and records the call.

use crate::tool_result::ToolResult;
use crate::truncate;
use glovebox_plugin_sdk::llm::{Part, ToolDef};
use glovebox_plugin_sdk::tools;

/// Prefixes of the names of these tools.
const PREFIXES: [&str; 2] = ["mcp__", "plugin__"];

/// The offered tools, which stay the same during an attempt.
#[derive(Debug, Default)]
pub(crate) struct ProvidedTools(Vec<ToolDef>);

impl ProvidedTools {
    /// Asks the host for the tools.
    pub(crate) fn find() -> Self {
        Self(tools::available())
    }

    /// Returns the definitions of the tools for the model.
    pub(crate) fn definitions(&self) -> &[ToolDef] {
        &self.0
    }

    /// Returns true if the name is that of a tool of a server or a plugin, offered or not.
    pub(crate) fn has(name: &str) -> bool {
        PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// The error text is a sentence for the model.
    pub(crate) fn call(call: &Part) -> Result<ToolResult, String> {
        let (name, id) = (call.field("name").unwrap_or_default(), call.field("id").unwrap_or_default());
        let output = tools::call(name, &call.text, id).map_err(|error| format!("{name}: {}", error.message))?;
        let text = truncate::SHELL.keep_ends(&output.content);
        let whole = Some(output.content).filter(|whole| whole.len() > text.len());
        Ok(ToolResult { text, is_error: output.is_error, evidence: None, whole, picture: None })
    }
}
