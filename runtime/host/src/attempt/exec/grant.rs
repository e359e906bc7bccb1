//! The setting of the commands that a call may run: their grant and their jail.

use super::live::LiveOutput;
use crate::command_grant::CommandGrant;
use glovebox_jail::lazy_jail::LazyJail;
use glovebox_record::path::ScopePath;
use std::sync::Arc;

/// Grant, jail and working directory of an attempt's commands; none of it comes from the guest.
#[derive(Debug, Clone)]
pub struct CommandSetting {
    /// Granted commands.
    pub grant: CommandGrant,
    /// Jail of the commands, opened for the first command. If the component itself can use files, the component and its
    /// commands use the same files: [`crate::attempt::files::FileSetting::source`].
    pub jail: Arc<LazyJail>,
    /// Default working directory.
    pub workdir: ScopePath,
    /// Gets the output of commands while they run; `None` if nobody may watch.
    pub live: Option<LiveOutput>,
}
