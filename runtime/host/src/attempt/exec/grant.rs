//! The commands that a call may run, and their jail.

use glovebox_jail::lazy_jail::LazyJail;
use glovebox_record::path::ScopePath;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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

/// Grant, jail and working directory of an attempt's commands; none of it comes from the guest.
#[derive(Debug, Clone)]
pub struct CommandSetting {
    /// Granted commands.
    pub grant: CommandGrant,
    /// Jail of the commands, opened for the first command. If the call has files, they are those of
    /// [`crate::attempt::files::FileSetting::source`].
    pub jail: Arc<LazyJail>,
    /// Default working directory.
    pub workdir: ScopePath,
}
