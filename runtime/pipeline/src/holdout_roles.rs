//! The hold-out folders of a pipeline, and the nodes that name them in a command.

use crate::ir::holdouts::FOLDER_DEFAULT;
use crate::ir::{Node, Pipeline};
use crate::key::{self, Key};
use glovebox_record::scope::Entry;

/// Attributes that contain a command.
const COMMANDS: [Key<'static>; 2] = [key::TOOL_COMMAND, key::COMMAND];

/// True for a node with a command that names one of the folders.
pub(crate) fn runs_scenarios(node: &Node, folders: &[String]) -> bool {
    let commands = COMMANDS.into_iter().filter_map(|key| node.attributes.get(key));
    let names = |command: &str| folders.iter().any(|folder| command.contains(folder.trim_end_matches('/')));
    commands.into_iter().any(|command| names(&command.value))
}

impl Pipeline {
    /// The hold-out folders that the file names, or the default folder.
    pub fn scenario_entries(&self) -> Vec<Entry> {
        self.scenarios.clone().unwrap_or_else(|| Entry::parse(FOLDER_DEFAULT).into_iter().collect())
    }

    /// The same as text, each with a final slash.
    pub fn scenario_folders(&self) -> Vec<String> {
        self.scenario_entries().iter().map(ToString::to_string).collect()
    }

    /// True if a run has hold-outs: the file or one of its commands names a folder, or the caller found one. Linear in the file.
    pub fn has_scenarios(&self) -> bool {
        let folders = self.scenario_folders();
        let named = |node: &Node| node.access.holdouts.named.as_ref().is_some_and(|named| !named.is_none());
        let names = |node: &Node| named(node) || runs_scenarios(node, &folders);
        self.scenarios_found || self.scenarios.is_some() || self.stages().any(names)
    }
}
