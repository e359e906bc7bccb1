//! The commands of a component under test: refused, or in a sandbox of their own without a network. They are never unconfined.

use crate::error::TestError;
use glovebox_host::call::{CommandGrant, CommandSetting};
use glovebox_host::grants::Grants;
use glovebox_jail::jail::{ExecPolicy, Jail, JailSetting};
use glovebox_jail::lazy_jail::LazyJail;
use glovebox_jail::pulse::Pulse;
use glovebox_record::path::ScopePath;
use glovebox_record::{Limits, Network, Tier};
use glovebox_workspace::stage::WorkspaceView;
use std::path::Path;
use std::sync::Arc;

/// The path at which commands see the files.
pub(crate) const INSIDE: &str = "/workspace";

/// Returns the grant of a component that is granted these commands.
pub(crate) fn grant(grants: &Grants) -> CommandGrant {
    let words = |command: &String| command.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (any, prefixes): (Vec<_>, Vec<_>) = grants.commands.iter().partition(|command| command.trim() == "*");
    CommandGrant {
        shell_texts: Vec::new(),
        argv_prefixes: prefixes.into_iter().map(words).collect(),
        any: !any.is_empty(),
    }
}

/// The commands of one call, and the sandbox in which they run.
pub(crate) struct CallCommands {
    jail: Arc<LazyJail>,
    grant: CommandGrant,
}

impl CallCommands {
    /// Prepares the sandbox over the files of the call. The first command opens it.
    ///
    /// # Errors
    /// Fails if the files are a copy, and the sandbox cannot be opened.
    pub(crate) fn offer(
        tier: Tier,
        folder: &Path,
        view: &WorkspaceView,
        grants: &Grants,
        limits: Limits,
    ) -> Result<Self, TestError> {
        let setting = JailSetting {
            tier,
            policy: ExecPolicy { output_bytes_max: limits.command_output_bytes, ..ExecPolicy::default() },
            network: Network::None,
            limits,
            inside: INSIDE.into(),
            inner: Vec::new(),
            kept: Vec::new(),
            hidden: Vec::new(),
            folder: folder.to_owned(),
            pulse: Pulse::default(),
        };
        let jail = match view.as_layer() {
            None => LazyJail::opened(Jail::open(&setting, view.source()?)?),
            Some(layer) => {
                let layer = Arc::clone(layer);
                LazyJail::new(move || {
                    let jail = Jail::open(&setting, WorkspaceView::Layer(Arc::clone(&layer)).source()?)?;
                    layer.work_on(&jail.root())?;
                    Ok(jail)
                })
            }
        };
        Ok(Self { jail: Arc::new(jail), grant: grant(grants) })
    }

    /// Returns the commands of the call.
    pub(crate) fn setting(&self) -> CommandSetting {
        CommandSetting {
            grant: self.grant.clone(),
            jail: Arc::clone(&self.jail),
            workdir: ScopePath::root(),
            live: None,
        }
    }

    /// Ends the sandbox, so that no process of the call is alive.
    ///
    /// # Errors
    /// Fails if the sandbox could not be opened or ended.
    pub(crate) fn end(self) -> Result<(), TestError> {
        let lost = |problem: String| TestError::Host(problem);
        let jail =
            Arc::into_inner(self.jail).ok_or_else(|| lost("the sandbox of a call is still in use".to_owned()))?;
        match jail.into_jail().map_err(|error| lost(error.to_string()))? {
            Some(jail) => Ok(jail.end().map(drop)?),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_command_and_words_are_a_prefix() {
        let granted = |commands: &[&str]| {
            grant(&Grants { commands: commands.iter().map(|text| (*text).to_owned()).collect(), ..Grants::default() })
        };
        assert_eq!(granted(&[]), CommandGrant::default());
        assert!(granted(&["make", "*"]).any);
        assert_eq!(granted(&["cargo test", "make"]).argv_prefixes, [vec!["cargo", "test"], vec!["make"]]);
    }
}
