//! Which stages of a run had hold-outs in reach. What they made is shown to nobody who works without hold-outs.

use super::RunFolder;
use super::journal;
use crate::exit::Stop;
use glovebox_journal::event::Record;
use glovebox_record::NodeId;
use std::collections::BTreeSet;

/// The stages of a run that had hold-outs in reach.
#[derive(Debug, Clone, Default)]
pub struct Hidden {
    nodes: BTreeSet<NodeId>,
    is_sealed: bool,
}

impl Hidden {
    /// Reads the start of a run. No other record is read or verified: this is for a caller that has verified the journal to
    /// make a document, and removes what must not be shown from it.
    pub fn of(run: &RunFolder) -> Result<Self, Stop> {
        Ok(Self::in_records(&journal::read_start(run)?))
    }

    /// Returns the stages that the start of a run names.
    pub fn in_records(records: &[Record]) -> Self {
        let started = records.first().and_then(|record| record.event.run_started());
        let sealed = started.and_then(|started| started.workspace.holdouts.as_ref());
        let reach = sealed.into_iter().flat_map(|sealed| &sealed.reach);
        Self { nodes: reach.map(|node| NodeId::from(node.as_str())).collect(), is_sealed: sealed.is_some() }
    }

    /// Returns the stages of a run in which these can read hold-outs.
    #[cfg(test)]
    pub fn with_reach(nodes: &[&str]) -> Self {
        Self { nodes: nodes.iter().map(|node| NodeId::from(*node)).collect(), is_sealed: true }
    }

    /// Returns true if the stage, or the stage whose verification it is, had hold-outs in reach.
    pub fn has(&self, node: &NodeId) -> bool {
        self.nodes.contains(node) || self.nodes.contains(&node.verification())
    }

    /// Returns true if no stage had hold-outs in reach.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns true if the run has hold-outs.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }
}
