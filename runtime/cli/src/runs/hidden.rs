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
    /// Reads the start of a run.
    pub fn of(run: &RunFolder) -> Result<Self, Stop> {
        Ok(Self::in_records(&journal::open_to_show(run)?.close().records))
    }

    /// Returns the stages that the start of a run names.
    pub fn in_records(records: &[Record]) -> Self {
        let started = records.first().and_then(|record| record.event.run_started());
        let sealed = started.and_then(|started| started.workspace.holdouts.as_ref());
        let reach = sealed.into_iter().flat_map(|sealed| &sealed.reach);
        Self { nodes: reach.map(|node| NodeId::from(node.as_str())).collect(), is_sealed: sealed.is_some() }
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
