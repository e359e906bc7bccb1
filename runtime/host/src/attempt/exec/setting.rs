//! Which commands a call may run, and in which jail.

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

/// Where and how commands of this attempt run; none of it comes from the guest.
#[derive(Debug, Clone)]
pub struct CommandSetting {
    /// What may run.
    pub grant: CommandGrant,
    /// The jail they run in, opened for the first of them; its files are those of [`crate::attempt::files::FileSetting::source`] when there are any.
    pub jail: Arc<LazyJail>,
    /// Where they start when they do not say.
    pub workdir: ScopePath,
}
