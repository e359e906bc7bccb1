//! The hold-out folders of a pipeline, and the nodes whose commands name them.

use crate::ir::holdouts::FOLDER_DEFAULT;
use crate::ir::{Node, Pipeline};
use crate::key::{self, Key};
use glovebox_record::scope::Entry;

/// Attributes whose value is a command.
const COMMANDS: [Key<'static>; 2] = [key::TOOL_COMMAND, key::COMMAND];

/// Returns true if a command of the node names one of the folders.
pub(crate) fn runs_scenarios(node: &Node, folders: &[String]) -> bool {
    let commands = COMMANDS.into_iter().filter_map(|key| node.attributes.get(key));
    let names = |command: &str| folders.iter().any(|folder| command.contains(folder.trim_end_matches('/')));
    commands.into_iter().any(|command| names(&command.value))
}

impl Pipeline {
    /// Returns the hold-out folders that the file names, or the default folder if it names none.
    pub fn scenario_entries(&self) -> Vec<Entry> {
        self.scenarios.clone().unwrap_or_else(|| Entry::parse(FOLDER_DEFAULT).into_iter().collect())
    }

    /// As [`Pipeline::scenario_entries`], but as text, each with a final slash.
    pub fn scenario_folders(&self) -> Vec<String> {
        self.scenario_entries().iter().map(ToString::to_string).collect()
    }

    /// Returns true if a run has hold-outs: the file or one of its commands names a hold-out folder, or the caller found one.
    /// Linear in the length of the file.
    pub fn has_scenarios(&self) -> bool {
        let folders = self.scenario_folders();
        let named = |node: &Node| node.access.holdouts.named.as_ref().is_some_and(|named| !named.is_none());
        let names = |node: &Node| named(node) || runs_scenarios(node, &folders);
        self.scenarios_found || self.scenarios.is_some() || self.stages().any(names)
    }
}
