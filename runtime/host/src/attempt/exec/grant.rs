//! The commands that a call may run, and their jail.

use glovebox_jail::lazy_jail::LazyJail;
use glovebox_record::path::ScopePath;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Commands a component may run. The default is none at all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandGrant {
    /// Texts the pipeline's author wrote; only these exact texts run by `sh -c`.
    pub shell_texts: Vec<String>,
    /// Word prefixes an argv must begin with, such as `["cargo", "test"]`.
    pub argv_prefixes: Vec<Vec<String>>,
    /// Any shell text and any argv (`allowed_commands="*"`).
    pub any: bool,
}

/// Grant, jail and working directory of an attempt's commands; none of it comes from the guest.
#[derive(Debug, Clone)]
pub struct CommandSetting {
    /// Granted commands.
    pub grant: CommandGrant,
    /// Their jail, opened for the first command. Its files are those of [`crate::attempt::files::FileSetting::source`], if there are any.
    pub jail: Arc<LazyJail>,
    /// Default working directory.
    pub workdir: ScopePath,
}
