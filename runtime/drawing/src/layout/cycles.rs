//! Finds the back edges by a depth-first search in file order, so that the same file always has the same back edges.
//!
//! The search follows links of the main path before those of a failure or a restart, so that the main path points
//! forward.

use super::Link;

/// The direction of a link in the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeDirection {
    /// Down the layers.
    Forward,
    /// Back up to a node on the path from the root.
    Back,
    /// A self-loop.
    Loop,
}

/// Maximum weight of a link off the main path.
const WEAK: u32 = 1;
/// Maximum work for classifying links off the main path. In a graph that needs more, all links are treated as links of
/// the main path.
const WORK_MAX: usize = 20_000_000;

/// Returns the direction of every link. Without the links `Back` and `Loop`, the graph has no cycle. The search begins
/// at `root`.
pub(crate) fn edge_directions(nodes: usize, links: &[Link], root: usize) -> Vec<EdgeDirection> {
    let weak = links.iter().filter(|link| link.weight <= WEAK).count();
    let is_weak = |link: &Link| link.weight <= WEAK && weak * (nodes + links.len()) <= WORK_MAX;
    let mut walk = Walk {
        links,
        leaving: vec![Vec::new(); nodes],
        aside: vec![Vec::new(); nodes],
        marks: vec![Mark::New; nodes],
        met: Vec::new(),
        entering: vec![Vec::new(); nodes],
        directions: vec![EdgeDirection::Forward; links.len()],
    };
    let mut is_entered = vec![false; nodes];
    for (index, link) in links.iter().enumerate() {
        let list = if is_weak(link) { &mut walk.aside } else { &mut walk.leaving };
        list[link.from].push(index);
        is_entered[link.to] |= link.from != link.to;
    }
    let sources = (0..nodes).filter(|node| !is_entered[*node]);
    for node in std::iter::once(root).chain(sources).chain(0..nodes).filter(|node| *node < nodes) {
        let first = walk.met.len();
        walk.from(node, &[]);
        walk.side_ways(first);
    }
    walk.directions
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    Open,
    Done,
}

struct Walk<'a> {
    links: &'a [Link],
    /// Links of the main path that leave each node.
    leaving: Vec<Vec<usize>>,
    /// Links off the main path that leave each node.
    aside: Vec<Vec<usize>>,
    marks: Vec<Mark>,
    /// Nodes in the order in which the search reached them.
    met: Vec<usize>,
    /// The nodes from which forward links enter each node.
    entering: Vec<Vec<usize>>,
    directions: Vec<EdgeDirection>,
}

impl Walk<'_> {
    /// Searches depth-first along links of the main path. A link to a node marked in `before` is a back edge. The stack
    /// is explicit, because a chain may be as long as the file.
    fn from(&mut self, node: usize, before: &[bool]) {
        if self.marks[node] != Mark::New {
            return;
        }
        self.meet(node);
        let mut stack = vec![(node, 0)];
        while let Some((node, next)) = stack.last_mut() {
            let node = *node;
            let Some(link) = self.leaving[node].get(*next).copied() else {
                self.marks[node] = Mark::Done;
                stack.pop();
                continue;
            };
            *next += 1;
            let to = self.links[link].to;
            let is_before = before.get(to).is_some_and(|is_before| *is_before);
            self.decide(link, self.marks[to] == Mark::Open || is_before);
            if self.marks[to] == Mark::New {
                self.meet(to);
                stack.push((to, 0));
            }
        }
    }

    fn meet(&mut self, node: usize) {
        self.marks[node] = Mark::Open;
        self.met.push(node);
    }

    fn decide(&mut self, link: usize, is_back: bool) {
        let Link { from, to, .. } = self.links[link];
        self.directions[link] = match is_back {
            _ if from == to => EdgeDirection::Loop,
            true => EdgeDirection::Back,
            false => {
                self.entering[to].push(from);
                EdgeDirection::Forward
            }
        };
    }

    /// Follows the links off the main path that leave the nodes from `met[first]` on, including nodes that are reached
    /// meanwhile.
    fn side_ways(&mut self, first: usize) {
        let mut next = first;
        while let Some(&node) = self.met.get(next) {
            next += 1;
            for index in 0..self.aside[node].len() {
                let link = self.aside[node][index];
                let before = self.ancestors(node);
                let to = self.links[link].to;
                self.decide(link, before[to]);
                self.from(to, &before);
            }
        }
    }

    /// Returns the nodes from which forward links lead to a node, including the node itself.
    fn ancestors(&self, node: usize) -> Vec<bool> {
        let mut found = vec![false; self.marks.len()];
        found[node] = true;
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            for &above in &self.entering[node] {
                if !std::mem::replace(&mut found[above], true) {
                    stack.push(above);
                }
            }
        }
        found
    }
}
