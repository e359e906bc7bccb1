//! The commands that a stage may run. The host enforces the grant, and the guest gets it as part of its input.

use serde::{Deserialize, Serialize};

/// Commands that a component may run. The default is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandGrant {
    /// Shell texts of the pipeline's author. `sh -c` runs only exactly these texts.
    pub shell_texts: Vec<String>,
    /// Prefixes that an argument list must begin with, such as `["cargo", "test"]`.
    pub argv_prefixes: Vec<Vec<String>>,
    /// True if any shell text and any argument list may run (`allowed_commands="*"`).
    pub any: bool,
}
