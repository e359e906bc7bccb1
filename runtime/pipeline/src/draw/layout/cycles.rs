//! Which links lead back: a depth-first walk in file order, so that the same file always has the same loops.

use super::Link;

/// Which way a link goes in the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// Down the layers.
    Onward,
    /// Back up to a node on the way from the root.
    Back,
    /// From a node to itself.
    Loop,
}

/// The course of every link. Without the `Back` and `Loop` ones the graph has no cycle. The walk begins at `root`.
pub(super) fn courses(nodes: usize, links: &[Link], root: usize) -> Vec<Course> {
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut entered = vec![false; nodes];
    for (index, link) in links.iter().enumerate() {
        leaving[link.from].push(index);
        entered[link.to] |= link.from != link.to;
    }
    let mut walk = Walk { links, leaving: &leaving, marks: vec![Mark::New; nodes], courses: vec![Course::Onward; links.len()] };
    let sources = (0..nodes).filter(|node| !entered[*node]);
    for node in std::iter::once(root).chain(sources).chain(0..nodes).filter(|node| *node < nodes) {
        walk.from(node);
    }
    walk.courses
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    Open,
    Done,
}

struct Walk<'a> {
    links: &'a [Link],
    leaving: &'a [Vec<usize>],
    marks: Vec<Mark>,
    courses: Vec<Course>,
}

impl Walk<'_> {
    /// Walks everything that is new and can be reached; its own stack, since a chain may be as long as the file.
    fn from(&mut self, node: usize) {
        if self.marks[node] != Mark::New {
            return;
        }
        self.marks[node] = Mark::Open;
        let mut stack = vec![(node, 0)];
        while let Some((node, next)) = stack.last_mut() {
            let Some(link) = self.leaving[*node].get(*next).copied() else {
                self.marks[*node] = Mark::Done;
                stack.pop();
                continue;
            };
            *next += 1;
            let to = self.links[link].to;
            self.courses[link] = match self.marks[to] {
                Mark::Open if to == *node => Course::Loop,
                Mark::Open => Course::Back,
                Mark::New | Mark::Done => Course::Onward,
            };
            if self.marks[to] == Mark::New {
                self.marks[to] = Mark::Open;
                stack.push((to, 0));
            }
        }
    }
}
