//! Finds the fan-in where the branches of a parallel node meet, and the nodes of each branch.
//!
//! A branch consists of the nodes from an edge of the parallel node up to the fan-in. Every path of a branch must end
//! at that one fan-in or at a node without a successor, so that no branch can end the run or bypass the fan-in. The
//! engine and the lint use the same function.

use crate::ir::{Handler, NodeId, Pipeline};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum nesting depth of parallel nodes.
pub const NESTED_MAX: usize = 8;

/// Why the branches of a parallel node do not meet in one fan-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinFault<'a> {
    /// The parallel node has no edge to a declared node.
    NoBranch,
    /// No branch leads to a fan-in.
    NoJoin,
    /// The branches lead to more than one fan-in.
    ManyJoins(&'a NodeId, &'a NodeId),
    /// A branch can reach this exit.
    Exit(&'a NodeId),
    /// A branch can lead back to this parallel node.
    Back(&'a NodeId),
    /// This parallel node inside a branch has no join.
    Inner(&'a NodeId),
    /// This parallel node is nested deeper than [`NESTED_MAX`].
    Deep(&'a NodeId),
}

/// The fan-in of a parallel node, and the nodes of its branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region<'a> {
    /// The fan-in.
    pub join: &'a NodeId,
    /// The nodes between the parallel node and the fan-in, including those of nested branches.
    pub inside: BTreeSet<&'a NodeId>,
}

impl Pipeline {
    /// Returns the fan-in to which all branches of a parallel node lead, and the nodes before it.
    ///
    /// # Errors
    /// Returns a [`JoinFault`] if the branches do not meet in one fan-in. A run never begins a parallel node with such
    /// a fault.
    pub fn region<'a>(&'a self, parallel: &'a NodeId) -> Result<Region<'a>, JoinFault<'a>> {
        self.region_within(parallel, &mut vec![parallel])
    }

    /// Returns the nodes of the branch that begins at `first`, up to the fan-in.
    pub fn branch_nodes<'a>(&'a self, parallel: &'a NodeId, first: &'a NodeId) -> BTreeSet<&'a NodeId> {
        let mut walk = Walk { pipeline: self, parallel, joins: BTreeSet::new(), inside: BTreeSet::new() };
        // For a branch with a fault, the nodes found before the fault are returned.
        let _fault = walk.from(first, &mut vec![parallel]);
        walk.inside
    }

    /// Returns the nearest node that every branch of a parallel node can reach, whatever its handler. A missing fan-in belongs
    /// before this node. `None` if there is no such node or only one branch.
    pub fn meeting<'a>(&'a self, parallel: &NodeId) -> Option<&'a NodeId> {
        let branches: Vec<BTreeMap<&NodeId, usize>> =
            self.outgoing(parallel).map(|(_, edge)| self.distances(&edge.to, parallel)).collect();
        let (first, others) = branches.split_first().filter(|(_, others)| !others.is_empty())?;
        let farthest = |(id, distance): (&&'a NodeId, &usize)| {
            let all: Option<Vec<usize>> = others.iter().map(|branch| branch.get(*id).copied()).collect();
            Some((all?.into_iter().max()?.max(*distance), *id))
        };
        first.iter().filter_map(farthest).min().map(|(_, id)| id)
    }

    /// Returns the distance in edges from `first` to each node that can be reached without passing the parallel node.
    fn distances<'a>(&'a self, first: &'a NodeId, parallel: &NodeId) -> BTreeMap<&'a NodeId, usize> {
        let mut found = BTreeMap::from([(first, 0)]);
        let mut open = VecDeque::from([(first, 0)]);
        while let Some((id, distance)) = open.pop_front() {
            for next in self.outgoing(id).map(|(_, edge)| &edge.to).filter(|next| *next != parallel) {
                if let Entry::Vacant(place) = found.entry(next) {
                    place.insert(distance + 1);
                    open.push_back((next, distance + 1));
                }
            }
        }
        found
    }

    fn region_within<'a>(
        &'a self,
        parallel: &'a NodeId,
        parallels: &mut Vec<&'a NodeId>,
    ) -> Result<Region<'a>, JoinFault<'a>> {
        let mut walk = Walk { pipeline: self, parallel, joins: BTreeSet::new(), inside: BTreeSet::new() };
        let firsts: Vec<&NodeId> =
            self.outgoing(parallel).map(|(_, edge)| &edge.to).filter(|to| self.node(to).is_some()).collect();
        if firsts.is_empty() {
            return Err(JoinFault::NoBranch);
        }
        for first in firsts {
            walk.from(first, parallels)?;
        }
        let mut joins = walk.joins.into_iter();
        match (joins.next(), joins.next()) {
            (None, _) => Err(JoinFault::NoJoin),
            (Some(join), None) => Ok(Region { join, inside: walk.inside }),
            (Some(one), Some(other)) => Err(JoinFault::ManyJoins(one, other)),
        }
    }

    /// Returns the nodes that may follow a node: along its edges, and at its retry targets.
    fn next<'a>(&'a self, id: &'a NodeId) -> impl Iterator<Item = &'a NodeId> {
        self.outgoing(id).map(|(_, edge)| &edge.to).chain(self.jumps(id))
    }

    fn jumps<'a>(&'a self, id: &NodeId) -> impl Iterator<Item = &'a NodeId> + use<'a> {
        let targets = self.node(id).map(|node| [&node.routing.retry_target, &node.routing.fallback_retry_target]);
        targets.into_iter().flatten().flatten()
    }
}

/// The traversal of the branches of one parallel node.
struct Walk<'a> {
    pipeline: &'a Pipeline,
    parallel: &'a NodeId,
    joins: BTreeSet<&'a NodeId>,
    inside: BTreeSet<&'a NodeId>,
}

impl<'a> Walk<'a> {
    fn from(&mut self, first: &'a NodeId, parallels: &mut Vec<&'a NodeId>) -> Result<(), JoinFault<'a>> {
        let mut open = vec![first];
        while let Some(id) = open.pop() {
            let Some(node) = self.pipeline.node(id) else { continue };
            match node.handler {
                _ if id == self.parallel => return Err(JoinFault::Back(id)),
                Handler::Exit => return Err(JoinFault::Exit(id)),
                Handler::FanIn(_) => {
                    self.joins.insert(id);
                }
                _ if !self.inside.insert(id) => {}
                Handler::Parallel => {
                    let join = self.inner(id, parallels)?;
                    open.extend(self.pipeline.next(join));
                    open.extend(self.pipeline.jumps(id));
                }
                _ => open.extend(self.pipeline.next(id)),
            }
        }
        Ok(())
    }

    /// Traverses the branches of a nested parallel node, and returns its fan-in.
    fn inner(&mut self, id: &'a NodeId, parallels: &mut Vec<&'a NodeId>) -> Result<&'a NodeId, JoinFault<'a>> {
        if parallels.contains(&id) {
            return Err(JoinFault::Back(id));
        }
        if parallels.len() >= NESTED_MAX {
            return Err(JoinFault::Deep(id));
        }
        parallels.push(id);
        let region = self.pipeline.region_within(id, parallels);
        parallels.pop();
        let Region { join, inside } = region.map_err(|fault| match fault {
            JoinFault::Deep(_) => fault,
            _ => JoinFault::Inner(id),
        })?;
        self.inside.extend(inside);
        self.inside.insert(join);
        Ok(join)
    }
}
